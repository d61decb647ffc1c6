//! Whose transaction may change a Twin pool: one at a time.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};

use crate::pool::PoolInner;

/// The turns of a pool.
#[derive(Debug, Default)]
pub(super) struct Turns {
    /// Whose it is.
    holder: Mutex<Option<ThreadId>>,
    given_up: Condvar,
}

impl Turns {
    fn lock(&self) -> MutexGuard<'_, Option<ThreadId>> {
        self.holder.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self) {
        let mut holder = self
            .given_up
            .wait_while(self.lock(), |holder| holder.is_some())
            .unwrap_or_else(PoisonError::into_inner);
        *holder = Some(thread::current().id());
    }

    /// Whether it was nobody's, and now is this thread's.
    pub(super) fn try_take(&self) -> bool {
        let mut holder = self.lock();
        let is_free = holder.is_none();
        if is_free {
            *holder = Some(thread::current().id());
        }
        is_free
    }

    pub(super) fn is_mine(&self) -> bool {
        *self.lock() == Some(thread::current().id())
    }

    pub(super) fn give_up(&self) {
        *self.lock() = None;
        self.given_up.notify_one();
    }
}

/// The right of a transaction to change a Twin pool, until it is dropped.
#[derive(Debug)]
pub(crate) struct Turn(Arc<PoolInner>);

impl Turn {
    /// Waits until no other transaction has it. `None` where transactions need none.
    pub(crate) fn take(pool: &Arc<PoolInner>) -> Option<Self> {
        let copies = pool.copies.as_ref()?;
        copies.turns.take();
        Some(Self(pool.clone()))
    }

    /// Whose it is.
    pub(crate) fn pool(&self) -> &PoolInner {
        &self.0
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        if let Some(copies) = &self.0.copies {
            copies.turns.give_up();
        }
    }
}
