//! The turn of a transaction that changes a Twin pool.

use super::copies::Copies;
use crate::contention;
use crate::fault::forked;
use crate::opened::{PoolInner, PoolRef};

/// The right of a transaction to change a Twin pool, until it is dropped. The transaction keeps the pool open for
/// longer.
#[derive(Debug)]
pub(super) struct Turn(PoolRef);

impl Turn {
    /// Waits until no other transaction has it.
    pub(super) fn take(pool: &PoolInner) -> Self {
        let copies = Copies::of(pool);
        if !copies.turn.try_take() {
            contention::count();
            copies.turn.take();
        }
        copies.begin_turn();
        Self(PoolRef(pool.into()))
    }

    /// Whose it is.
    pub(super) fn pool(&self) -> &PoolInner {
        &self.0
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        // In a forked child the transaction may end after the pool, and nobody waits for the turn.
        if !forked() {
            Copies::of(&self.0).turn.give_up();
        }
    }
}
