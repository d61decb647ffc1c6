//! Which pools a transaction has joined: the one that it began on, and those whose puddles it touches.

use std::ptr::NonNull;
use std::sync::Arc;

use super::Tx;
use crate::alloc::{Puddle, puddle_followed_at};
use crate::demand::follow_at;
use crate::error::{Error, Result, Step};
use crate::fault::{check_forked, forked};
use crate::opened::{PoolInner, PoolRef, TxState};

impl Tx {
    /// The pool that the outermost transaction began on. The reference lives as long as that runs.
    pub(super) fn origin(&self) -> Result<&Arc<PoolInner>> {
        if self.depth.get() == 0 {
            return Err(Error::NoTransaction);
        }
        // SAFETY: set by the outermost `begin`, whose borrow of the pool lasts as long as the depth is not zero.
        match unsafe { self.origin.get().as_ref() } {
            Some(origin) => Ok(origin),
            None => Err(Error::NoTransaction),
        }
    }

    #[inline(always)]
    pub(super) fn enter_pool(&self, state: &mut TxState, pool: &Arc<PoolInner>) -> Result<()> {
        let is_first = state
            .pools
            .first()
            .is_some_and(|first| first.key == pool.key);
        // A pool that stayed from the last transaction is not there in one on another pool.
        if forked() || self.depth.get() == 0 || !is_first {
            self.enter_other_pool(state, pool)?;
        }
        self.touch();
        Ok(())
    }

    #[cold]
    fn enter_other_pool(&self, state: &mut TxState, pool: &Arc<PoolInner>) -> Result<()> {
        check_forked()?;
        if self.depth.get() == 0 {
            return Err(Error::NoTransaction);
        }
        if pool.store.key != self.store_key {
            return Err(Error::NotInPool { address: 0, len: 0 });
        }
        if !state.pools.iter().any(|other| other.key == pool.key) {
            state.join(self, pool)?;
        }
        Ok(())
    }
}

impl TxState {
    /// Checks that a range lies in an open pool which this transaction may touch.
    #[inline(always)]
    pub(super) fn touch(&mut self, tx: &Tx, address: usize, len: usize) -> Step<NonNull<Puddle>> {
        let refused = || Box::new(Error::NotInPool { address, len });
        let pointer = puddle_followed_at(address)?.ok_or_else(refused)?;
        // SAFETY: puddles in the table live while their store is open; the transaction keeps its own store open, and
        // for another store's puddle only plain fields are read.
        let puddle = unsafe { pointer.as_ref() };
        if puddle.store_key != tx.store_key || puddle.pool_key == 0 || !puddle.holds(address, len) {
            return Err(refused());
        }
        if tx.depth.get() == 0 {
            return Err(Error::NoTransaction.into());
        }
        match self.pools.first() {
            Some(pool) if pool.key == puddle.pool_key => {}
            // SAFETY: null, or set by the outermost `begin`, which borrows the pool until its level ends.
            None if let Some(origin) = unsafe { tx.origin.get().as_ref() }
                && origin.key == puddle.pool_key =>
            {
                origin.check_usable()?;
                origin.engine.enter(self, origin)?;
                self.pools.push(PoolRef(NonNull::from(&**origin)));
            }
            _ => return self.touch_pool(tx, pointer, address, len),
        }
        Ok(pointer)
    }

    /// Makes the pool of a puddle part of the transaction, which is not the one that it began on or not its first.
    #[inline(never)]
    fn touch_pool(
        &mut self,
        tx: &Tx,
        pointer: NonNull<Puddle>,
        address: usize,
        len: usize,
    ) -> Step<NonNull<Puddle>> {
        // SAFETY: as in `touch`.
        let puddle = unsafe { pointer.as_ref() };
        if self.pools.iter().any(|pool| pool.key == puddle.pool_key) {
            return Ok(pointer);
        }
        // SAFETY: null, or set by the outermost `begin`, which borrows the pool until its level ends.
        if let Some(origin) = unsafe { tx.origin.get().as_ref() }
            && origin.key == puddle.pool_key
        {
            self.join(tx, origin)?;
            return Ok(pointer);
        }
        match PoolInner::of(puddle) {
            Some(pool) => {
                self.join(tx, &pool)?;
                Ok(pointer)
            }
            // It is just being closed: an access opens it again, and so does this.
            None if follow_at(address)? => self.touch(tx, address, len),
            None => Err(Error::NotInPool { address, len }.into()),
        }
    }

    /// Makes a pool part of the transaction.
    pub(super) fn join(&mut self, tx: &Tx, pool: &Arc<PoolInner>) -> Result<()> {
        pool.check_usable()?;
        if self.is_empty() {
            self.forget_pools();
        }
        match self.pools.first() {
            None => {
                pool.check_turn_may_come()?;
                pool.engine.enter(self, pool)?;
            }
            Some(first) if first.commits_with(pool) => {}
            Some(first) => return Err(first.mixed_with(pool)),
        }
        // SAFETY: null, or set by the outermost `begin`, which borrows the pool until its level ends.
        if unsafe { tx.origin.get().as_ref() }.is_none_or(|origin| origin.key != pool.key) {
            self.held.push(pool.clone());
        }
        self.pools.push(PoolRef(NonNull::from(&**pool)));
        Ok(())
    }

    /// The pool with this key.
    pub(crate) fn pool_of(pools: &[PoolRef], key: u64) -> Option<PoolRef> {
        pools.iter().find(|pool| pool.key == key).copied()
    }

    /// Whether it has changed nothing in any pool.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.announced.is_empty()
            && self.allocation.is_empty()
            && self.sets.is_empty()
            && self.section.is_none()
    }

    /// Forgets the pools of the last transaction.
    pub(super) fn forget_pools(&mut self) {
        self.pools.clear();
        self.forget_recent();
    }
}
