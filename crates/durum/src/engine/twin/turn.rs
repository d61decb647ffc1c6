//! The turn of a transaction that changes a Twin pool.

use std::sync::Arc;

use super::copies::Copies;
use crate::contention;
use crate::opened::PoolInner;

/// The right of a transaction to change a Twin pool, until it is dropped.
#[derive(Debug)]
pub(super) struct Turn(Arc<PoolInner>);

impl Turn {
    /// Waits until no other transaction has it.
    pub(super) fn take(pool: &Arc<PoolInner>) -> Self {
        let copies = Copies::of(pool);
        if !copies.turns.try_take() {
            contention::count();
            copies.turns.take();
        }
        Self(pool.clone())
    }

    /// Whose it is.
    pub(super) fn pool(&self) -> &PoolInner {
        &self.0
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        Copies::of(&self.0).turns.give_up();
    }
}
