//! What programs have left in sections is completed by the code that they have deposited
//! (docs/internals/resumption.md), each on a thread of its own. Nobody waits for it but who wants its pools.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use durum_format::Uuid;
use durum_remote::completing::{self, NotCompleted};
use durum_runner::{Ended, Limits, Runner};
use durum_service::{Host, InterruptedClient};

use crate::audit;
use crate::metrics::Metrics;

/// How many run at a time; of a user one, so that nobody's code holds that of others up.
const AT_A_TIME: usize = 4;

/// How often who waits looks again.
const TICK: Duration = Duration::from_millis(250);

/// What is completed, and was tried.
#[derive(Debug)]
pub(crate) struct Completions {
    host: Arc<Host>,
    metrics: Arc<Metrics>,
    /// Absent where no code is run.
    runner: Option<Box<dyn Runner>>,
    limits: Limits,
    table: Mutex<Table>,
    /// Something has ended.
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Table {
    /// In this order.
    waiting: VecDeque<Uuid>,
    /// With the user who has left the sections.
    running: HashMap<Uuid, Option<u32>>,
    /// Each is tried once. Whoever starts the service again has it tried again.
    tried: HashSet<Uuid>,
    /// How many have ended, well or not.
    ended: u64,
    is_over: bool,
}

impl Completions {
    pub(crate) fn new(
        host: Arc<Host>,
        metrics: Arc<Metrics>,
        runner: Option<Box<dyn Runner>>,
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

    /// Begins with what clients have left that are gone by now.
    pub(crate) fn look(self: &Arc<Self>) {
        if self.runner.is_none() {
            return;
        }
        let left = match self.host.to_complete() {
            Ok(left) => left,
            // Of a store that takes nothing any more.
            Err(error) => {
                return tracing::warn!("what sections have left is not looked at: {error}");
            }
        };
        let mut table = self.table();
        for InterruptedClient { client, .. } in left {
            if table.tried.insert(client) {
                table.waiting.push_back(client);
            }
        }
        self.begin(&mut table);
    }

    /// Begins with those that may run now.
    fn begin(self: &Arc<Self>, table: &mut Table) {
        while let Some((client, uid)) = self.next(table) {
            table.running.insert(client, uid);
            let completions = self.clone();
            let complete = move || {
                completions.complete(client);
                completions.has_ended(client);
            };
            let begun = thread::Builder::new().name("complete".to_owned());
            if let Err(error) = begun.spawn(complete) {
                tracing::warn!(%client, %error, "what sections have left cannot be completed now");
                table.running.remove(&client);
                table.ended += 1;
            }
        }
    }

    fn next(&self, table: &mut Table) -> Option<(Uuid, Option<u32>)> {
        if table.is_over || table.running.len() >= AT_A_TIME {
            return None;
        }
        let found = table
            .waiting
            .iter()
            .enumerate()
            .find_map(|(index, client)| {
                let uid = self.host.user_of(*client);
                let is_alone = table.running.values().all(|other| *other != uid);
                is_alone.then_some((index, *client, uid))
            });
        let (index, client, uid) = found?;
        table.waiting.remove(index);
        Some((client, uid))
    }

    fn complete(&self, client: Uuid) {
        let Some(runner) = &self.runner else {
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
                let cure = cure_of(&why);
                tracing::warn!(%client, "sections wait for their program: {why}{cure}");
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

    /// Waits until nothing is being completed in this pool. Tells whether any attempt has ended since there were so
    /// many: then it is worth while to ask again for the pool.
    pub(crate) fn settle(&self, pool: &str, before: u64) -> bool {
        loop {
            let table = self.table();
            let (ended, is_over) = (table.ended, table.is_over);
            let running = table.running.keys();
            let under_way: Vec<Uuid> = table.waiting.iter().chain(running).copied().collect();
            // What the store says is not asked for with the table in hand.
            drop(table);
            let waits = under_way
                .iter()
                .any(|client| self.host.has_pool(*client, pool));
            let table = self.table();
            if table.ended != ended {
                continue;
            }
            if !waits || is_over {
                return ended != before;
            }
            drop(self.changed.wait_timeout(table, TICK));
        }
    }

    /// Whether none is under way.
    pub(crate) fn are_done(&self) -> bool {
        let table = self.table();
        table.running.is_empty() && table.waiting.is_empty()
    }

    /// Begins with none any more. What runs ends with the service.
    pub(crate) fn end(&self) {
        self.table().is_over = true;
        self.changed.notify_all();
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What whoever runs the service can do, as a clause.
fn cure_of(why: &NotCompleted) -> &'static str {
    match why {
        NotCompleted::Ended(Ended::OverProcessor(_)) => {
            "; --code-limit processor=SECONDS lets code have more, when the service is started again"
        }
        NotCompleted::Ended(Ended::OverTime(_)) => {
            "; --code-limit time=SECONDS lets code have more, when the service is started again"
        }
        _ => "",
    }
}
