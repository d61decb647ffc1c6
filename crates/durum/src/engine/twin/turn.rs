//! Whose transaction may change a Twin pool: one at a time.

use std::sync::{Arc, Condvar, Mutex, PoisonError};

use crate::pool::PoolInner;

/// The turns of a pool.
#[derive(Debug, Default)]
pub(super) struct Turns {
    is_taken: Mutex<bool>,
    given_up: Condvar,
}

impl Turns {
    fn take(&self) {
        let taken = self.is_taken.lock().unwrap_or_else(PoisonError::into_inner);
        let mut taken = self
            .given_up
            .wait_while(taken, |taken| *taken)
            .unwrap_or_else(PoisonError::into_inner);
        *taken = true;
    }

    fn give_up(&self) {
        *self.is_taken.lock().unwrap_or_else(PoisonError::into_inner) = false;
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
