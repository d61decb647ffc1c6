//! The clients, whether they live, and what happens when one is gone.
//!
//! The lock of a client is the truth. Its pidfd and the end of its connection are reasons to look at the lock: after
//! `exec` the pidfd says nothing, and after `fork` a child keeps the socket open. A client whose lock is free, and
//! whose process lives, has perhaps lost it by accident: it is asked, and has [`GRACE`] to take it again.

use std::collections::{HashMap, HashSet};
use std::os::fd::OwnedFd;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use durum_format::Uuid;
use durum_protocol::frame::{Frame, Kind};
use durum_protocol::{Note, message};
use durum_remote::socket::Socket;
use durum_service::{Error, Host, Result};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

/// How long a client that lost its lock has to take it again.
const GRACE: Duration = Duration::from_secs(3);

/// How often all locks are looked at.
const TICK: Duration = Duration::from_millis(250);

/// All clients of the store.
#[derive(Debug)]
pub(crate) struct Clients {
    host: Arc<Host>,
    table: Mutex<Table>,
    /// A client was recovered, or came again.
    changed: Condvar,
    /// Whoever has a reason to look says so.
    bell: (Socket, Socket),
}

#[derive(Debug, Default)]
struct Table {
    living: HashMap<Uuid, Client>,
    /// Clients that are being recovered, and how many were.
    recovering: HashSet<Uuid>,
    recovered: u64,
    ends: bool,
}

#[derive(Debug)]
struct Client {
    pid: u32,
    uid: Option<u32>,
    pidfd: OwnedFd,
    /// Absent while it has no connection.
    line: Option<Arc<Line>>,
    /// When it was asked whether it is there.
    asked: Option<Instant>,
    /// Held while a request of it is under way: requests of an earlier connection end first.
    turn: Arc<Mutex<()>>,
}

/// The connection of a client.
#[derive(Debug)]
pub(crate) struct Line {
    pub(crate) calls: Socket,
    pub(crate) bell: Socket,
}

impl Line {
    fn tell(&self, note: &Note) -> bool {
        let frame = Frame {
            number: 0,
            kind: Kind::Note,
            more: false,
            again: false,
            length: 0,
        };
        self.bell.send(frame, &message::encode(note), &[]).is_ok()
    }

    fn end(&self) {
        self.calls.shut_down();
        self.bell.shut_down();
    }
}

impl Clients {
    /// The clients that an earlier service left, if they live.
    pub(crate) fn new(host: Arc<Host>) -> Result<Arc<Clients>> {
        let bell = Socket::pair().map_err(|error| system("making a socket pair", error))?;
        let clients = Arc::new(Clients {
            host,
            table: Mutex::default(),
            changed: Condvar::new(),
            bell,
        });
        for (client, pid) in clients.host.served()? {
            match open_process(pid) {
                // Asked again: the number may have been given to another process meanwhile.
                Ok(pidfd) if clients.host.process_of(client)? == Some(pid) => {
                    tracing::info!(%client, pid, "a client of the service before lives");
                    clients
                        .table()
                        .living
                        .insert(client, Client::new(pid, None, pidfd));
                }
                _ => clients.recover(client),
            }
        }
        Ok(clients)
    }

    /// Looks after the clients for as long as the service runs.
    pub(crate) fn watch(self: &Arc<Self>) -> std::io::Result<()> {
        let clients = self.clone();
        let watch = move || {
            while !clients.table().ends {
                clients.wait_for_a_reason();
                drop(clients.look());
            }
        };
        thread::Builder::new()
            .name("watch".to_owned())
            .spawn(watch)
            .map(drop)
    }

    /// A client that holds its lock comes, or comes again. Its turn: whoever takes it waits for what is under way.
    ///
    /// # Errors
    /// `Told` where there are too many, or it does not hold its lock.
    pub(crate) fn enter(
        &self,
        client: Uuid,
        peer: &durum_remote::peer::Peer,
        line: Arc<Line>,
        most: (usize, usize),
    ) -> Result<Arc<Mutex<()>>> {
        let holder = self.host.process_of(client)?;
        if holder != Some(peer.pid) {
            return Err(Error::Told {
                kind: durum_service::ErrorKind::User,
                text: format!(
                    "the liveness lock of process {} is held by {}: it has to be a record lock of that process, in the \
                     service's pid namespace",
                    peer.pid,
                    holder.map_or_else(|| "nobody".to_owned(), |pid| format!("process {pid}"))
                ),
            });
        }
        let mut table = self.table();
        if let Some(known) = table.living.get_mut(&client) {
            known.asked = None;
            known.uid = Some(peer.uid);
            if let Some(old) = known.line.replace(line) {
                old.end();
            }
            return Ok(known.turn.clone());
        }
        if table.recovering.contains(&client) {
            return Err(Error::ClientUnknown {
                client: client.to_string(),
            });
        }
        let of_user = |known: &&Client| known.uid == Some(peer.uid);
        if table.living.len() >= most.0 || table.living.values().filter(of_user).count() >= most.1 {
            return Err(Error::Told {
                kind: durum_service::ErrorKind::User,
                text: format!(
                    "the service has as many clients as it may have ({}, {} of one user); close some, or raise \
                     --clients-max or --clients-per-user",
                    most.0, most.1
                ),
            });
        }
        let pidfd = open_process(peer.pid)
            .map_err(|error| system("looking at the client's process", error))?;
        let mut new = Client::new(peer.pid, Some(peer.uid), pidfd);
        new.line = Some(line);
        let turn = new.turn.clone();
        table.living.insert(client, new);
        drop(table);
        self.ring();
        Ok(turn)
    }

    /// Whether the client lives and its process is this one: it may come again.
    pub(crate) fn is_known(&self, client: Uuid, pid: u32) -> bool {
        let table = self.table();
        table
            .living
            .get(&client)
            .is_some_and(|known| known.pid == pid)
    }

    /// The connection has ended.
    pub(crate) fn left(&self, client: Uuid, line: &Arc<Line>) {
        let mut table = self.table();
        if let Some(known) = table.living.get_mut(&client)
            && known
                .line
                .as_ref()
                .is_some_and(|now| Arc::ptr_eq(now, line))
        {
            // The bell stays open: it may be rung yet.
            line.calls.shut_down();
        }
        drop(table);
        self.ring();
    }

    /// The client has ended in order.
    pub(crate) fn has_ended(&self, client: Uuid) {
        self.table().living.remove(&client);
        if let Err(error) = self.host.forget_client(client) {
            tracing::warn!(%client, "{error}");
        }
        self.changed.notify_all();
    }

    /// How many were recovered so far.
    pub(crate) fn recovered(&self) -> u64 {
        self.table().recovered
    }

    /// Looks who is gone, and waits until all those are recovered. Tells whether any were since there were so many:
    /// then it is worth while to ask again for a pool that was somebody's.
    pub(crate) fn settle(self: &Arc<Self>, before: u64) -> bool {
        let mut table = self.look();
        while !table.recovering.is_empty() {
            table = self
                .changed
                .wait(table)
                .unwrap_or_else(PoisonError::into_inner);
        }
        table.recovered != before
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        let table = self.table();
        table.living.len() + table.recovering.len()
    }

    /// Tells all that the service ends.
    pub(crate) fn end(&self) {
        let mut table = self.table();
        table.ends = true;
        for line in table
            .living
            .values()
            .filter_map(|client| client.line.as_ref())
        {
            line.tell(&Note::Ends);
            line.end();
        }
        drop(table);
        self.ring();
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ring(&self) {
        let frame = Frame {
            number: 0,
            kind: Kind::Note,
            more: false,
            again: false,
            length: 0,
        };
        let _ = self.bell.0.send(frame, &[], &[]);
    }

    /// Until a process has ended, somebody has rung, or it is time.
    fn wait_for_a_reason(&self) {
        // Duplicates: a client may end while they are polled.
        let table = self.table();
        let pidfds = table
            .living
            .values()
            .filter_map(|client| client.pidfd.try_clone().ok());
        let pidfds: Vec<OwnedFd> = pidfds.collect();
        drop(table);
        let Ok(bell) = self.bell.1.descriptor() else {
            return thread::sleep(TICK);
        };
        let bell = PollFd::from_borrowed_fd(bell, PollFlags::IN);
        let pidfds = pidfds.iter().map(|fd| PollFd::new(fd, PollFlags::IN));
        let mut all: Vec<PollFd<'_>> = std::iter::once(bell).chain(pidfds).collect();
        let tick = rustix::event::Timespec::try_from(TICK).ok();
        if poll(&mut all, tick.as_ref()).is_ok_and(|ready| ready > 0)
            && all.first().is_some_and(|bell| !bell.revents().is_empty())
        {
            let _ = self.bell.1.receive(1024, 0);
        }
    }

    /// Has all who are gone recovered.
    fn look(self: &Arc<Self>) -> MutexGuard<'_, Table> {
        let mut table = self.table();
        let mut gone = Vec::new();
        for (id, client) in &mut table.living {
            if self.is_gone(*id, client) {
                gone.push(*id);
            }
        }
        for id in gone {
            let Some(client) = table.living.remove(&id) else {
                continue;
            };
            table.recovering.insert(id);
            let clients = self.clone();
            let recover = move || {
                if let Some(line) = &client.line {
                    line.end();
                }
                // What it has asked for is done first: it may be making a puddle.
                drop(client.turn.lock());
                clients.recover(id);
                let mut table = clients.table();
                table.recovering.remove(&id);
                table.recovered += 1;
                clients.changed.notify_all();
            };
            if let Err(error) = thread::Builder::new()
                .name("recover".to_owned())
                .spawn(recover)
            {
                // The next start of the service does it.
                tracing::error!(client = %id, %error, "a client that is gone cannot be recovered now");
                table.recovering.remove(&id);
            }
        }
        table
    }

    fn is_gone(&self, id: Uuid, client: &mut Client) -> bool {
        let mut process = [PollFd::new(&client.pidfd, PollFlags::IN)];
        let now = rustix::event::Timespec::default();
        if poll(&mut process, Some(&now)).is_ok_and(|ended| ended > 0) {
            return true;
        }
        match self.host.process_of(id) {
            Ok(Some(_)) => {
                client.asked = None;
                false
            }
            Ok(None) => match client.asked {
                Some(since) => since.elapsed() > GRACE,
                None => {
                    client.asked = Some(Instant::now());
                    // Where no thread of it sleeps on the bell any more, nobody can be asked.
                    let line = client.line.as_ref();
                    line.is_some_and(|line| !line.tell(&Note::AreYouThere))
                }
            },
            Err(error) => {
                tracing::warn!(client = %id, "{error}");
                false
            }
        }
    }

    fn recover(&self, client: Uuid) {
        let began = Instant::now();
        match self.host.recover_client(client) {
            Ok(report) => {
                tracing::info!(
                    %client,
                    logs = report.logs,
                    rolled_back = report.rolled_back,
                    rolled_forward = report.rolled_forward,
                    quarantined = report.quarantined.len(),
                    refused = report.refused.len(),
                    us = began.elapsed().as_micros() as u64,
                    "a client is gone and was recovered"
                );
                if let Err(error) = self.host.forget_client(client) {
                    tracing::warn!(%client, "{error}");
                }
            }
            Err(error) => {
                tracing::error!(%client, "a client that is gone was not recovered: {error}")
            }
        }
    }
}

impl Client {
    fn new(pid: u32, uid: Option<u32>, pidfd: OwnedFd) -> Client {
        Client {
            pid,
            uid,
            pidfd,
            line: None,
            asked: None,
            turn: Arc::default(),
        }
    }
}

fn open_process(pid: u32) -> std::io::Result<OwnedFd> {
    let number = i32::try_from(pid).ok().and_then(Pid::from_raw);
    let number = number.ok_or_else(|| {
        std::io::Error::other(
            "it is in another pid namespace; run the service where it sees its clients",
        )
    })?;
    Ok(pidfd_open(number, PidfdFlags::empty())?)
}

pub(crate) fn system(operation: &'static str, source: std::io::Error) -> Error {
    Error::Io {
        operation,
        path: "/proc".into(),
        offset: None,
        source,
    }
}
