//! The clients, whether they live, and what happens when one is gone.
//!
//! The lock of a client is the truth. Its pidfd and the end of its connection are reasons to look at the lock: after
//! `exec` the pidfd says nothing, and after `fork` a child keeps the socket open. A client whose lock is free, and
//! whose process lives, has perhaps lost it by accident: it is asked, and has [`GRACE`] to take it again. So has one
//! that a service finds at its start without its lock: it comes by itself.

use std::collections::{HashMap, HashSet};
use std::os::fd::OwnedFd;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use durum_format::Uuid;
use durum_protocol::{Frame, Note, message};
use durum_remote::socket::Socket;
use durum_service::{Error, Host, Life, Result};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

/// How long a client that lost its lock has to take it again.
const GRACE: Duration = Duration::from_secs(5);

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
    /// Clients that are gone and could not be recovered, and when that was tried.
    stuck: HashMap<Uuid, Instant>,
    ends: bool,
}

#[derive(Debug)]
struct Client {
    pid: u32,
    uid: Option<u32>,
    pidfd: Arc<OwnedFd>,
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
        let message = message::encode(note);
        self.bell.send(Frame::note(), &message, &[]).is_ok()
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
        for (client, life) in clients.host.served()? {
            clients.take_over(client, life)?;
        }
        Ok(clients)
    }

    /// Knows a client of an earlier service, or recovers it if it is gone by now.
    fn take_over(&self, client: Uuid, mut life: Life) -> Result<()> {
        // One of a namespace that the service does not see was never let in. It got the lock from a client, whose pools
        // are its own loss.
        while let Some(pid) = life.process() {
            let opened = open_process(pid);
            // Asked again: the number may have been given to another process meanwhile.
            let now = self.host.life_of(client)?;
            if now != life {
                life = now;
                continue;
            }
            // Who lives and cannot be watched now is not recovered: it may be writing.
            let pidfd = opened.map_err(|error| system("looking at a client that lives", error))?;
            tracing::info!(%client, pid, "a client of the service before lives");
            let mut known = Client::new(pid, None, pidfd);
            known.asked = matches!(life, Life::Doubtful(_)).then(Instant::now);
            self.table().living.insert(client, known);
            return Ok(());
        }
        if !self.recover(client) {
            self.table().stuck.insert(client, Instant::now());
        }
        Ok(())
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
        is_new: bool,
        most: (usize, usize),
    ) -> Result<Arc<Mutex<()>>> {
        let holder = match self.host.life_of(client)? {
            Life::Certain(Some(pid)) if pid == peer.pid => None,
            Life::Certain(Some(pid)) => Some(format!("process {pid}")),
            Life::Certain(None) => Some("a process that the service does not see".to_owned()),
            Life::Doubtful(_) | Life::Gone => Some("nobody".to_owned()),
        };
        if let Some(holder) = holder {
            return Err(Error::Told {
                kind: durum_service::ErrorKind::User,
                text: format!(
                    "the liveness lock of process {} is held by {holder}: it has to be a record lock of that process, \
                     in the service's pid namespace",
                    peer.pid,
                ),
            });
        }
        self.host.note_process(client, peer.pid)?;
        let mut table = self.table();
        if let Some(known) = table.living.get_mut(&client) {
            known.asked = None;
            known.uid = Some(peer.uid);
            if let Some(old) = known.line.replace(line) {
                old.end();
            }
            let turn = known.turn.clone();
            drop(table);
            self.changed.notify_all();
            return Ok(turn);
        }
        // It was recovered, since it was looked up.
        if !is_new {
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

    /// Whether this is still the connection of the client. To be asked in the client's turn: what an earlier connection
    /// has left over must not be done after a later one has begun, nor after the client was recovered.
    pub(crate) fn is_current(&self, client: Uuid, line: &Arc<Line>) -> bool {
        let table = self.table();
        let known = table.living.get(&client);
        known
            .and_then(|known| known.line.as_ref())
            .is_some_and(|now| Arc::ptr_eq(now, line))
    }

    /// The connection has ended.
    pub(crate) fn left(&self, client: Uuid, line: &Arc<Line>) {
        // The bell stays open: it may be rung yet.
        if self.is_current(client, line) {
            line.calls.shut_down();
        }
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

    /// Looks who is gone, and waits until all those are recovered; for those of whom it is not known it waits at most
    /// twice [`GRACE`]. Tells whether any were recovered since there were so many: then it is worth while to ask again
    /// for a pool that was somebody's.
    pub(crate) fn settle(self: &Arc<Self>, before: u64) -> bool {
        let until = Instant::now() + 2 * GRACE;
        let mut table = self.look();
        loop {
            let mut asked = table.living.values().filter_map(|client| client.asked);
            let left = until.saturating_duration_since(Instant::now());
            let wait = match (table.recovering.is_empty(), asked.next()) {
                (false, _) => TICK,
                // Until it is looked at again.
                (true, Some(_)) if !left.is_zero() => TICK.min(left),
                (true, _) => return table.recovered != before,
            };
            let waited = self.changed.wait_timeout(table, wait);
            table = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
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
        let _ = self.bell.0.send(Frame::note(), &[], &[]);
    }

    /// Until a process has ended, somebody has rung, or it is time.
    fn wait_for_a_reason(&self) {
        // Held: a client may end while they are polled.
        let table = self.table();
        let pidfds = table.living.values().map(|client| client.pidfd.clone());
        let pidfds: Vec<Arc<OwnedFd>> = pidfds.collect();
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
            if let Some(client) = table.living.remove(&id) {
                self.begin_recovery(&mut table, id, client.line, client.turn);
            }
        }
        let again = table.stuck.extract_if(|_, tried| tried.elapsed() > GRACE);
        for (id, _) in again.collect::<Vec<_>>() {
            self.begin_recovery(&mut table, id, None, Arc::default());
        }
        table
    }

    /// Recovers a client on a thread of its own; others go on.
    fn begin_recovery(
        self: &Arc<Self>,
        table: &mut Table,
        id: Uuid,
        line: Option<Arc<Line>>,
        turn: Arc<Mutex<()>>,
    ) {
        table.recovering.insert(id);
        let clients = self.clone();
        let recover = move || {
            if let Some(line) = line {
                line.end();
            }
            // What it has asked for is done first: it may be making a puddle.
            drop(turn.lock());
            let is_done = clients.recover(id);
            let mut table = clients.table();
            table.recovering.remove(&id);
            match is_done {
                true => table.recovered += 1,
                false => drop(table.stuck.insert(id, Instant::now())),
            }
            clients.changed.notify_all();
        };
        let thread = thread::Builder::new().name("recover".to_owned());
        if let Err(error) = thread.spawn(recover) {
            tracing::error!(client = %id, %error, "a client that is gone cannot be recovered now");
            table.recovering.remove(&id);
            table.stuck.insert(id, Instant::now());
        }
    }

    fn is_gone(&self, id: Uuid, client: &mut Client) -> bool {
        let mut process = [PollFd::new(&client.pidfd, PollFlags::IN)];
        let now = rustix::event::Timespec::default();
        if poll(&mut process, Some(&now)).is_ok_and(|ended| ended > 0) {
            return true;
        }
        match self.host.life_of(id) {
            Ok(Life::Certain(_)) => {
                client.asked = None;
                false
            }
            Ok(Life::Doubtful(_) | Life::Gone) => match client.asked {
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

    fn recover(&self, client: Uuid) -> bool {
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
                true
            }
            Err(error) => {
                tracing::error!(%client, "a client that is gone was not recovered: {error}");
                false
            }
        }
    }
}

impl Client {
    fn new(pid: u32, uid: Option<u32>, pidfd: OwnedFd) -> Client {
        Client {
            pid,
            uid,
            pidfd: Arc::new(pidfd),
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
