//! What programs were interrupted in is completed by the code that they have deposited, when somebody opens a pool that
//! it concerns (docs/internals/resumption.md). In a store whose host is this process: another one does that by itself.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Condvar, Mutex};

use durum_format::Uuid;
use durum_remote::completing;
use durum_runner::{Here, Limits};
use durum_service::Host;

use crate::error::Result;
use crate::primitive::{locked, waited};

/// Who has code complete what is left in a pool. Behind a trait, as code that is itself such code has none.
pub(crate) trait Completer: fmt::Debug + Send + Sync {
    /// Whether any was completed.
    ///
    /// # Errors
    /// Of the store.
    fn complete(&self, pool: &str) -> Result<bool>;
}

/// That somebody is at it; who waits for that goes on when it is dropped, also by a panic.
struct Turn<'c> {
    of: &'c ByDeposit,
    client: Uuid,
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        locked(&self.of.running).remove(&self.client);
        self.of.has_ended.notify_all();
    }
}

/// The store's host.
#[derive(Debug)]
pub(crate) struct ByDeposit {
    host: Arc<Host>,
    /// Whose sections are being completed, and the names of the pools that they concern: when they are done the store
    /// knows of none any more, and the code has them until it has ended.
    running: Mutex<HashMap<Uuid, Vec<String>>>,
    has_ended: Condvar,
}

impl ByDeposit {
    pub(crate) fn new(host: Arc<Host>) -> ByDeposit {
        ByDeposit {
            host,
            running: Mutex::default(),
            has_ended: Condvar::new(),
        }
    }

    /// What is to be completed next in this pool. Another thread may be at it: who wants the same pool waits.
    fn next(&self, pool: &str) -> Result<Option<Turn<'_>>> {
        let mut running = locked(&self.running);
        while running.values().flatten().any(|name| name == pool) {
            running = waited(&self.has_ended, running);
        }
        // What was tried is not tried again: whoever opens the store anew does.
        let mut left = self.host.to_complete()?.into_iter();
        let next = left.find(|client| self.host.has_pool(*client, pool));
        running.extend(next.map(|client| (client, self.host.pools_of(client))));
        Ok(next.map(|client| Turn { of: self, client }))
    }
}

impl Completer for ByDeposit {
    fn complete(&self, pool: &str) -> Result<bool> {
        // Without bounds nobody's code is run but one's own.
        let runner = Here::new();
        let mut any = false;
        while let Some(turn) = self.next(pool)? {
            let client = turn.client;
            // Whoever opens the pool is told why not.
            let completed = match &runner {
                Ok(runner) => {
                    let limits = Limits::default();
                    let completed = completing::complete(&self.host, client, runner, &limits);
                    Ok(completed.is_ok())
                }
                Err(missing) => {
                    let why = format!("its code is not run: {missing}");
                    let noted = self.host.note_not_completed(client, &why);
                    noted.map(|()| false)
                }
            };
            drop(turn);
            any |= completed?;
        }
        Ok(any)
    }
}
