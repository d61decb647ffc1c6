//! The turn of a transaction that changes a Twin pool.

use std::sync::Arc;

use crate::contention;
use crate::pool::PoolInner;

/// The right of a transaction to change a Twin pool, until it is dropped.
#[derive(Debug)]
pub(crate) struct Turn(Arc<PoolInner>);

impl Turn {
    /// Waits until no other transaction has it. `None` where transactions need none.
    pub(crate) fn take(pool: &Arc<PoolInner>) -> Option<Self> {
        let copies = pool.copies.as_ref()?;
        if !copies.turns.try_take() {
            contention::count();
            copies.turns.take();
        }
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
