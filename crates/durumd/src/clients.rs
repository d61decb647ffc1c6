//! The clients, whether they live, and what happens when one is gone.
//!
//! The lock of a client is the truth. Its pidfd and the end of its connection are reasons to look at the lock: after
//! `exec` the pidfd says nothing, and after `fork` a child keeps the socket open. A client whose lock is free, and
//! whose process lives, has perhaps lost it by accident: it is asked, and has [`GRACE`] to take it again. So has one
//! that a service finds at its start without its lock: it comes by itself.

mod line;
mod process;
mod roster;

use std::collections::{HashMap, HashSet};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use durum_format::Uuid;
use durum_protocol::Note;
use durum_service::{Error, Host, Life, Quota, Quotas, Result, Watched};
use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::event::{EventfdFlags, Timespec, eventfd};

pub(crate) use self::line::Line;
use self::process::{ends_within, has_ended, open_process};
use crate::audit;
use crate::completions::Completions;
use crate::metrics::Metrics;

/// How long a client that lost its lock has to take it again.
const GRACE: Duration = Duration::from_secs(5);

/// How long a process may take to end that has closed its files: it does so when it is nearly through.
const DYING: Duration = Duration::from_millis(300);

/// How often all locks are looked at.
const TICK: Duration = Duration::from_millis(250);

/// All clients of the store.
#[derive(Debug)]
pub(crate) struct Clients {
    host: Arc<Host>,
    metrics: Arc<Metrics>,
    completions: Arc<Completions>,
    table: Mutex<Table>,
    /// A client was recovered, or came again.
    changed: Condvar,
    /// Tells which process has ended, by its number, and that somebody rings.
    events: OwnedFd,
    /// Whoever has a reason to look at all says so.
    bell: OwnedFd,
    began: Instant,
    /// When all were looked at, in milliseconds since the begin.
    looked: AtomicU64,
}

/// Stands for the bell among the numbers of processes.
const BELL: u64 = 0;

#[derive(Debug, Default)]
struct Table {
    living: HashMap<Uuid, Client>,
    /// Clients that are being recovered, and how many were.
    recovering: HashSet<Uuid>,
    recovered: u64,
    /// Clients that were recovered and have files left, which are being removed.
    clearing: usize,
    /// Clients that are gone and could not be recovered, when that was tried, and what is left of them.
    stuck: HashMap<Uuid, (Instant, Gone)>,
    ends: bool,
}

#[derive(Debug)]
struct Client {
    pid: u32,
    uid: Option<u32>,
    pidfd: Arc<OwnedFd>,
    lock: Watched,
    /// Absent while it has no connection.
    line: Option<Arc<Line>>,
    /// When it was asked whether it is there.
    asked: Option<Instant>,
    /// Held while a request of it is under way: requests of an earlier connection end first.
    turn: Arc<Mutex<()>>,
}

/// What is left of a client that is gone, as far as it is known.
#[derive(Debug, Default)]
struct Gone {
    pid: Option<u32>,
    uid: Option<u32>,
    line: Option<Arc<Line>>,
    turn: Arc<Mutex<()>>,
    /// Its process. One that lives was stopped, or executes another program; it may go on to write.
    process: Option<Arc<OwnedFd>>,
    /// Why it was not recovered.
    why: String,
}

impl From<Client> for Gone {
    fn from(client: Client) -> Gone {
        Gone {
            pid: Some(client.pid),
            uid: client.uid,
            line: client.line,
            turn: client.turn,
            process: Some(client.pidfd),
            why: String::new(),
        }
    }
}

impl Clients {
    /// The clients that an earlier service left, if they live.
    pub(crate) fn new(
        host: Arc<Host>,
        metrics: Arc<Metrics>,
        completions: Arc<Completions>,
    ) -> Result<Arc<Clients>> {
        let (events, bell) = events().map_err(|error| system("making descriptors", error))?;
        let clients = Arc::new(Clients {
            host,
            metrics,
            completions,
            table: Mutex::default(),
            changed: Condvar::new(),
            events,
            bell,
            began: Instant::now(),
            looked: AtomicU64::new(0),
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
            let mut known = Client::new(
                pid,
                self.host.user_of(client),
                pidfd,
                self.host.watch(client)?,
            );
            known.asked = matches!(life, Life::Doubtful(_)).then(Instant::now);
            return self.insert(&mut self.table(), client, known);
        }
        let gone = Gone::default();
        if let Err(why) = self.recover(client, &gone) {
            let gone = Gone { why, ..gone };
            self.table().stuck.insert(client, (Instant::now(), gone));
        }
        Ok(())
    }

    /// Looks after the clients for as long as the service runs.
    pub(crate) fn watch(self: &Arc<Self>) -> std::io::Result<()> {
        let clients = self.clone();
        let watch = move || {
            while !clients.table().ends {
                match clients.wait_for_a_reason() {
                    Reason::Processes(ended) => {
                        drop(clients.look(|_, client| ended.contains(&client.pid)));
                    }
                    Reason::Any => {
                        drop(clients.look(|_, _| true));
                        let now = clients.began.elapsed().as_millis() as u64;
                        clients.looked.store(now, Ordering::Relaxed);
                    }
                }
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
        most: usize,
        quotas: &Quotas,
    ) -> Result<Arc<Mutex<()>>> {
        let lock = self.host.watch(client)?;
        let holder = match lock.life()? {
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
            known.lock = lock;
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
        if table.living.len() >= most {
            return Err(Error::Told {
                kind: durum_service::ErrorKind::User,
                text: format!(
                    "the service has as many clients as it may have ({most}); close some, or raise --clients-max"
                ),
            });
        }
        quotas.check(peer.uid, Quota::Clients, 1, || {
            let of_user = |known: &&Client| known.uid == Some(peer.uid);
            table.living.values().filter(of_user).count() as u64
        })?;
        let pidfd = open_process(peer.pid)
            .map_err(|error| system("looking at the client's process", error))?;
        let mut new = Client::new(peer.pid, Some(peer.uid), pidfd, lock);
        new.line = Some(line);
        let turn = new.turn.clone();
        self.insert(&mut table, client, new)?;
        Ok(turn)
    }

    /// Whoever waits for events hears from now on when the client's process ends.
    fn insert(&self, table: &mut Table, id: Uuid, client: Client) -> Result<()> {
        let data = EventData::new_u64(client.pid.into());
        epoll::add(&self.events, &client.pidfd, data, EventFlags::IN)
            .map_err(|errno| system("listening for the end of a client", errno.into()))?;
        table.living.insert(id, client);
        Ok(())
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
    pub(crate) fn left(self: &Arc<Self>, client: Uuid, line: &Arc<Line>) {
        // The bell stays open: it may be rung yet.
        if self.is_current(client, line) {
            line.calls.shut_down();
        }
        drop(self.look(|id, _| *id == client));
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

    /// Looks who is gone, and waits until those are recovered that have this pool; for those of whom it is not known it
    /// waits at most twice [`GRACE`]. Tells whether any were recovered since there were so many: then it is worth while
    /// to ask again for the pool.
    pub(crate) fn settle(self: &Arc<Self>, pool: &str, before: u64) -> bool {
        let until = Instant::now() + 2 * GRACE;
        drop(self.look(|_, _| true));
        loop {
            let table = self.table();
            let recovered = table.recovered;
            let recovering: Vec<Uuid> = table.recovering.iter().copied().collect();
            let is_asked = |(_, client): &(&Uuid, &Client)| client.asked.is_some();
            let asked = table.living.iter().filter(is_asked);
            let asked: Vec<Uuid> = asked.map(|(id, _)| *id).collect();
            drop(table);
            let has_it = |client: &Uuid| self.host.has_pool(*client, pool);
            let left = until.saturating_duration_since(Instant::now());
            let waits =
                recovering.iter().any(has_it) || !left.is_zero() && asked.iter().any(has_it);
            let table = self.table();
            if table.recovered != recovered {
                continue;
            }
            if !waits {
                return recovered != before;
            }
            drop(self.changed.wait_timeout(table, TICK));
        }
    }

    /// How many live, and how many are being recovered.
    pub(crate) fn counts(&self) -> (usize, usize) {
        let table = self.table();
        (table.living.len(), table.recovering.len())
    }

    /// Tells all that the service ends, and waits at most twice [`GRACE`] until nobody is being recovered: a client
    /// whose file is left behind counts as one that lives while its process does.
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
        self.ring();
        let is_at_work = |table: &mut Table| table.clearing > 0 || !table.recovering.is_empty();
        drop(
            self.changed
                .wait_timeout_while(table, 2 * GRACE, is_at_work),
        );
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether all clients were looked at within this time.
    pub(crate) fn are_watched(&self, limit: Duration) -> bool {
        let looked = Duration::from_millis(self.looked.load(Ordering::Relaxed));
        self.began.elapsed().saturating_sub(looked) <= limit
    }

    fn ring(&self) {
        let _ = rustix::io::write(&self.bell, &1_u64.to_ne_bytes());
    }

    /// Waits until a process has ended, somebody has rung, or it is time.
    fn wait_for_a_reason(&self) -> Reason {
        let mut events = Vec::with_capacity(64);
        let tick = Timespec::try_from(TICK).ok();
        let came = epoll::wait(&self.events, spare_capacity(&mut events), tick.as_ref());
        if came.is_err() {
            thread::sleep(TICK);
        }
        let numbers = events.iter().map(|event| event.data.u64());
        let numbers: HashSet<u64> = numbers.collect();
        if numbers.is_empty() || numbers.contains(&BELL) || !self.are_watched(TICK) {
            let _ = rustix::io::read(&self.bell, &mut [0_u8; 8]);
            return Reason::Any;
        }
        let pids = numbers.into_iter().map(|number| number as u32);
        Reason::Processes(pids.collect())
    }

    /// Has all of these recovered who are gone.
    fn look(self: &Arc<Self>, whom: impl Fn(&Uuid, &Client) -> bool) -> MutexGuard<'_, Table> {
        let mut table = self.table();
        let mut gone = Vec::new();
        for (id, client) in &mut table.living {
            if whom(id, client) && is_gone(*id, client) {
                gone.push(*id);
            }
        }
        for id in gone {
            if let Some(client) = table.living.remove(&id) {
                // The descriptor stays open yet, and would be told of again and again.
                let _ = epoll::delete(&self.events, &client.pidfd);
                self.begin_recovery(&mut table, id, client.into());
            }
        }
        let again = table
            .stuck
            .extract_if(|_, (tried, _)| tried.elapsed() > GRACE);
        for (id, (_, gone)) in again.collect::<Vec<_>>() {
            self.begin_recovery(&mut table, id, gone);
        }
        table
    }

    /// Recovers a client on a thread of its own; others go on.
    fn begin_recovery(self: &Arc<Self>, table: &mut Table, id: Uuid, gone: Gone) {
        table.recovering.insert(id);
        // Who waits for what a client that is gone has asked waits no more.
        self.changed.notify_all();
        let (clients, process) = (self.clone(), gone.process.clone());
        let recover = move || {
            if let Some(line) = &gone.line {
                line.end();
            }
            // What it has asked for is done first: it may be making a puddle.
            drop(gone.turn.lock());
            if let Err(why) = clients.recover(id, &gone) {
                let gone = Gone { why, ..gone };
                let mut table = clients.table();
                table.recovering.remove(&id);
                table.stuck.insert(id, (Instant::now(), gone));
                clients.changed.notify_all();
            }
        };
        let thread = thread::Builder::new().name("recover".to_owned());
        if let Err(error) = thread.spawn(recover) {
            tracing::error!(client = %id, %error, "a client that is gone cannot be recovered now");
            table.recovering.remove(&id);
            let gone = Gone {
                process,
                ..Gone::default()
            };
            table.stuck.insert(id, (Instant::now(), gone));
        }
    }

    /// Who waits for one of its pools goes on before all is done.
    fn has_recovered(&self, client: Uuid) {
        let mut table = self.table();
        table.recovering.remove(&client);
        table.recovered += 1;
        table.clearing += 1;
        self.changed.notify_all();
    }

    /// # Errors
    /// Why it is to be tried again.
    fn recover(&self, client: Uuid, gone: &Gone) -> std::result::Result<(), String> {
        let began = Instant::now();
        let parted = match &gone.process {
            Some(process) if !ends_within(process, DYING) => self.host.part_from(client),
            _ => Ok(()),
        };
        let ended = parted.and_then(|()| self.host.end_client(client));
        let took = began.elapsed();
        match ended {
            Ok(ended) => {
                // Known before anybody asks again for its pools.
                self.completions.look();
                self.has_recovered(client);
                let report = ended.report();
                self.metrics.recovered(Some(report), took);
                audit::recovered(client, gone.pid, gone.uid, report);
                tracing::info!(
                    %client,
                    logs = report.logs,
                    rolled_back = report.rolled_back,
                    rolled_forward = report.rolled_forward,
                    quarantined = report.quarantined.len(),
                    refused = report.refused.len(),
                    sections = report.sections(),
                    us = took.as_micros() as u64,
                    "a client is gone and was recovered"
                );
                if let Err(error) = ended.clear_up() {
                    tracing::warn!(%client, "files of its logs are left: {error}");
                }
                if let Err(error) = self.host.forget_client(client) {
                    tracing::warn!(%client, "{error}");
                }
                self.table().clearing -= 1;
                self.changed.notify_all();
                Ok(())
            }
            Err(error) => {
                self.metrics.recovered(None, took);
                tracing::error!(%client, "a client that is gone was not recovered: {error}");
                Err(error.to_string())
            }
        }
    }
}

/// Why somebody is to be looked at.
enum Reason {
    /// These processes have ended.
    Processes(HashSet<u32>),
    /// It is time, or somebody has rung.
    Any,
}

impl Client {
    fn new(pid: u32, uid: Option<u32>, pidfd: OwnedFd, lock: Watched) -> Client {
        Client {
            pid,
            uid,
            pidfd: Arc::new(pidfd),
            lock,
            line: None,
            asked: None,
            turn: Arc::default(),
        }
    }
}

fn is_gone(id: Uuid, client: &mut Client) -> bool {
    if has_ended(&client.pidfd) {
        return true;
    }
    match client.lock.life() {
        Ok(Life::Certain(_)) => {
            client.asked = None;
            false
        }
        Ok(Life::Doubtful(_) | Life::Gone) => match client.asked {
            Some(since) => since.elapsed() > GRACE,
            None => {
                client.asked = Some(Instant::now());
                let line = client.line.as_ref();
                // Where no thread of it sleeps on the bell any more, nobody can be asked.
                line.is_some_and(|line| !line.tell(&Note::AreYouThere))
            }
        },
        Err(error) => {
            tracing::warn!(client = %id, "{error}");
            false
        }
    }
}

/// What tells of events, and the bell that is among them.
fn events() -> std::io::Result<(OwnedFd, OwnedFd)> {
    let events = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    let bell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
    epoll::add(&events, &bell, EventData::new_u64(BELL), EventFlags::IN)?;
    Ok((events, bell))
}

pub(crate) fn system(operation: &'static str, source: std::io::Error) -> Error {
    Error::Io {
        operation,
        path: "/proc".into(),
        offset: None,
        source,
    }
}
