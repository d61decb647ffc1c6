//! What programs have left in sections is completed by the code that they have deposited
//! (docs/internals/resumption.md), each on a thread of its own. Nobody waits for it but who wants its pools.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use durum_format::Uuid;
use durum_remote::completing::{self, NotCompleted};
use durum_runner::{Limits, Runner};
use durum_service::Host;

use crate::audit;
use crate::metrics::Metrics;

/// How many run at a time; of a user one, so that nobody's code holds that of others up.
const AT_A_TIME: usize = 4;

/// How often who waits looks again.
const TICK: Duration = Duration::from_millis(250);

/// What is completed.
#[derive(Debug)]
pub(crate) struct Completions {
    host: Arc<Host>,
    metrics: Arc<Metrics>,
    /// Or why no code is run.
    runner: Result<Box<dyn Runner>, String>,
    limits: Limits,
    table: Mutex<Table>,
    /// Something has ended.
    changed: Condvar,
}

/// That code is run, or will be at once; others' turn comes when it is dropped, also by a panic.
struct Turn {
    completions: Arc<Completions>,
    client: Uuid,
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.completions.has_ended(self.client);
    }
}

/// A user who has left sections; who opened the directory has no name here.
type User = Option<u32>;

#[derive(Debug)]
struct Running {
    user: User,
    /// The names of the pools that it concerns. When the sections are done the store knows of none any more, and the
    /// code has them until it has ended.
    pools: Vec<String>,
}

#[derive(Debug, Default)]
struct Table {
    /// What each user has left, in this order. Whose code has begun is behind all others.
    waiting: VecDeque<(User, VecDeque<Uuid>)>,
    running: HashMap<Uuid, Running>,
    /// How many have ended, well or not.
    ended: u64,
    is_over: bool,
}

impl Table {
    fn is_under_way(&self, client: Uuid) -> bool {
        let mut waiting = self.waiting.iter();
        self.running.contains_key(&client) || waiting.any(|(_, left)| left.contains(&client))
    }

    fn put(&mut self, user: User, client: Uuid) {
        match self.waiting.iter_mut().find(|(known, _)| *known == user) {
            Some((_, left)) => left.push_back(client),
            None => self.waiting.push_back((user, VecDeque::from([client]))),
        }
    }

    /// Somebody waits for this one: it is the next of its user.
    fn prefer(&mut self, client: Uuid) {
        for (_, left) in &mut self.waiting {
            if let Some(index) = left.iter().position(|other| *other == client) {
                left.swap(0, index);
            }
        }
    }

    /// Whether code runs that a pool of this name concerns.
    fn runs_in(&self, pool: &str) -> bool {
        let mut pools = self.running.values().flat_map(|running| &running.pools);
        pools.any(|name| name == pool)
    }

    /// The next one that may run now.
    fn next(&mut self) -> Option<(User, Uuid)> {
        if self.is_over || self.running.len() >= AT_A_TIME {
            return None;
        }
        let is_idle = |user: &User| self.running.values().all(|other| other.user != *user);
        let index = self.waiting.iter().position(|(user, _)| is_idle(user))?;
        let (user, mut left) = self.waiting.remove(index)?;
        let client = left.pop_front()?;
        if !left.is_empty() {
            self.waiting.push_back((user, left));
        }
        Some((user, client))
    }
}

impl Completions {
    pub(crate) fn new(
        host: Arc<Host>,
        metrics: Arc<Metrics>,
        runner: Result<Box<dyn Runner>, String>,
        limits: Limits,
    ) -> Arc<Completions> {
        Arc::new(Completions {
            host,
            metrics,
            runner,
            limits,
            table: Mutex::default(),
            changed: Condvar::new(),
        })
    }

    /// Begins with what clients have left that are gone by now. Each is tried once: what came of it is noted with the
    /// client. Whoever starts the service again has it tried again.
    pub(crate) fn look(self: &Arc<Self>) {
        // In hand, so that none ends between what the store says and what is under way.
        let mut table = self.table();
        let left = match self.host.to_complete() {
            Ok(left) => left,
            // Of a store that takes nothing any more.
            Err(error) => {
                return tracing::warn!("what sections have left is not looked at: {error}");
            }
        };
        if let Err(why) = &self.runner {
            for client in left {
                let _ = self.host.note_not_completed(client, why);
            }
            return;
        }
        for client in left {
            if !table.is_under_way(client) {
                table.put(self.host.user_of(client), client);
            }
        }
        self.begin(&mut table);
    }

    /// Begins with those that may run now.
    fn begin(self: &Arc<Self>, table: &mut Table) {
        while let Some((user, client)) = table.next() {
            let pools = self.host.pools_of(client);
            table.running.insert(client, Running { user, pools });
            let completions = self.clone();
            let complete = move || {
                let turn = Turn {
                    completions,
                    client,
                };
                turn.completions.complete(client);
            };
            let begun = thread::Builder::new().name("complete".to_owned());
            if let Err(error) = begun.spawn(complete) {
                tracing::warn!(%client, %error, "what sections have left cannot be completed now");
                let why = NotCompleted::NotStarted(error).to_string();
                let _ = self.host.note_not_completed(client, &why);
                table.running.remove(&client);
                table.ended += 1;
            }
        }
    }

    fn complete(&self, client: Uuid) {
        let Ok(runner) = &self.runner else {
            return;
        };
        let (began, uid) = (Instant::now(), self.host.user_of(client));
        let completed = completing::complete(&self.host, client, &**runner, &self.limits);
        let took = began.elapsed();
        audit::completed(client, uid, completed.as_ref().err());
        match completed {
            Ok(()) => {
                self.metrics.completed("completed");
                let us = took.as_micros() as u64;
                tracing::info!(%client, us, "what a client has left in sections was completed");
            }
            Err(why) => {
                let outcome = match why {
                    NotCompleted::NoCode => "no_code",
                    _ => "failed",
                };
                self.metrics.completed(outcome);
                tracing::warn!(%client, more = why.more(), "sections wait for their program: {why}");
            }
        }
    }

    fn has_ended(self: &Arc<Self>, client: Uuid) {
        let mut table = self.table();
        table.running.remove(&client);
        table.ended += 1;
        self.begin(&mut table);
        drop(table);
        self.changed.notify_all();
    }

    /// How many have ended so far.
    pub(crate) fn ended(&self) -> u64 {
        self.table().ended
    }

    /// Waits until nothing is being completed in this pool, or nobody wants it any more. Tells whether any attempt has
    /// ended since there were so many: then it is worth while to ask again for the pool.
    pub(crate) fn settle(&self, pool: &str, before: u64, is_wanted: impl Fn() -> bool) -> bool {
        while is_wanted() {
            let table = self.table();
            let (ended, runs) = (table.ended, table.runs_in(pool));
            let waiting = table.waiting.iter().flat_map(|(_, left)| left);
            let waiting = waiting.filter(|_| !table.is_over);
            let mut concerned: Vec<Uuid> = waiting.copied().collect();
            // What the store says is not asked for with the table in hand.
            drop(table);
            concerned.retain(|client| self.host.has_pool(*client, pool));
            let mut table = self.table();
            if table.ended != ended || table.runs_in(pool) != runs {
                continue;
            }
            if concerned.is_empty() && !runs {
                return ended != before;
            }
            concerned.iter().for_each(|client| table.prefer(*client));
            drop(self.changed.wait_timeout(table, TICK));
        }
        false
    }

    /// Whether none runs.
    pub(crate) fn are_done(&self) -> bool {
        self.table().running.is_empty()
    }

    /// Begins with none any more: the next service does.
    pub(crate) fn end(&self) {
        self.table().is_over = true;
        self.changed.notify_all();
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(number: u8) -> Uuid {
        Uuid([number; 16])
    }

    /// The next one, which runs from here on.
    fn begun(table: &mut Table) -> Option<Uuid> {
        let (user, client) = table.next()?;
        let pools = vec![format!("pool of {client}")];
        table.running.insert(client, Running { user, pools });
        Some(client)
    }

    /// Else one user's code would keep others' from beginning.
    #[test]
    fn the_unit_has_room_for_all_code_that_runs_at_a_time() {
        let unit = include_str!("../systemd/durum-runner@.service.in");
        let value = |name: &str| {
            let line = unit.lines().find_map(|line| line.strip_prefix(name));
            durum_runner::limits::number_of(line.unwrap()).unwrap()
        };
        let (limits, count) = (Limits::default(), AT_A_TIME as u64);
        // Each has more threads until they are counted, and a process and a thread that wait for it.
        assert!(value("TasksMax=") >= 2 * count * (limits.threads + 2));
        assert!(value("MemoryMax=") >= 2 * count * limits.memory);
    }

    #[test]
    fn who_has_left_much_holds_nobody_else_up() {
        let mut table = Table::default();
        for user in 1..=4 {
            for number in 1..=9 {
                table.put(Some(user), client(10 * user as u8 + number));
            }
        }
        table.put(Some(5), client(51));
        table.put(None, client(61));
        let first: Vec<Uuid> = std::iter::from_fn(|| begun(&mut table)).collect();
        assert_eq!(first, [11, 21, 31, 41].map(client));
        assert!(table.runs_in(&format!("pool of {}", client(31))));
        assert!(!table.runs_in(&format!("pool of {}", client(32))));
        assert!(table.is_under_way(client(11)) && table.is_under_way(client(19)));
        // Others come before the next one of a user that had its turn.
        for (ends, next) in [(31, 51), (21, 61), (51, 22), (61, 32), (11, 12)] {
            table.running.remove(&client(ends));
            assert_eq!(begun(&mut table), Some(client(next)));
            assert_eq!(begun(&mut table), None);
        }
        // Somebody waits for one: it is the next of its user, and of nobody else.
        table.prefer(client(18));
        table.running.remove(&client(12));
        assert_eq!(begun(&mut table), Some(client(18)));
        table.is_over = true;
        table.running.clear();
        assert_eq!(begun(&mut table), None);
    }
}
