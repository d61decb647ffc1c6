//! Savepoints: a part of a running transaction that can be taken back alone.
//!
//! Combined updates are parts of one transaction ([`combine`](crate::combine)): each sees what those before it did, and
//! one that fails takes only its own changes back. What that needs lies in volatile memory and knows no engine: the old
//! contents of what the part announces, as they were when it began. Taken back, a range stays announced with the
//! contents that it had, which an engine makes durable like any other, or notices that nothing has changed.
//!
//! Places that the part reserved stay reserved until the transaction has ended, as objects do that a transaction
//! allocates and frees again: the commit still visits their bytes. Deferred stores are made at a mark, since those who
//! come after it have to see them.

use std::mem::ManuallyDrop;

use durum_persist::line;

use super::Tx;
use crate::announced::LARGE;
use crate::deferred::Set;
use crate::error::{Error, Step};
use crate::fault::guarded;
use crate::opened::{Announce, TxState};

impl TxState {
    /// Makes deferred stores now. Those that could not be made stay deferred.
    fn settle_sets(&mut self) -> Step {
        let mut sets = std::mem::take(&mut self.sets).into_iter();
        for set in sets.by_ref() {
            let announced = self.announce_set(&set);
            if let Err(error) = announced {
                self.sets = std::iter::once(set).chain(sets).collect();
                return Err(error);
            }
            // SAFETY: the range was checked by `set` and is announced; the caller of `set` promised that only this
            // thread changes it.
            unsafe { set.make(&self.set_bytes) };
        }
        self.set_bytes.clear();
        self.set_index.clear();
        Ok(())
    }

    fn announce_set(&mut self, set: &Set) -> Step {
        let Some(pool) = self.pools.first().copied() else {
            return Err(Error::NoTransaction.into());
        };
        if pool.facts.takes_turns {
            pool.engine.before_store(self, set.target, set.len)?;
        }
        // SAFETY: puddles live while their store is open, and a transaction keeps its store open.
        let puddle = unsafe { set.puddle.as_ref() };
        if set.len >= LARGE || !pool.facts.keeps_lines {
            return pool
                .engine
                .announce(self, puddle, set.target, set.len, Announce::Backup);
        }
        // SAFETY: the range was checked by `set`, whose caller promised that only this thread changes it.
        unsafe { self.save_in_lines(set.target, set.len) };
        puddle.check_failed()?;
        Ok(())
    }

    /// Begins a part of the transaction, as the end of the one before.
    fn mark(&mut self) -> Step {
        if !self.sets.is_empty() {
            self.settle_sets()?;
        }
        // The short ways of `add` keep no second copy.
        self.forget_recent();
        let (volatile, allocation) = (self.volatile.mark(), self.allocation.mark());
        let savepoint = self.savepoint.get_or_insert_default();
        savepoint.clear();
        savepoint.volatile = volatile;
        savepoint.allocation = allocation;
        Ok(())
    }

    fn roll_back_to_mark(&mut self) -> bool {
        let Some(savepoint) = self.savepoint.as_deref_mut() else {
            return false;
        };
        self.sets.clear();
        self.set_bytes.clear();
        self.set_index.clear();
        guarded(|| {
            savepoint.old.restore(|target, saved| {
                // SAFETY: the range was saved when it was announced; it is still mapped, and nobody else changes it.
                unsafe { line::copy(target as *mut u8, saved.as_ptr(), saved.len()) };
            });
        });
        // SAFETY: the caller of `Tx::volatile_bytes` promised that the memory stays valid and unshared until the
        // transaction ends.
        unsafe {
            self.volatile
                .restore_to(savepoint.volatile, |target, saved| {
                    std::ptr::copy_nonoverlapping(saved.as_ptr(), target as *mut u8, saved.len());
                });
        }
        let has_lost_root = self.allocation.roll_back_to(savepoint.allocation);
        savepoint.clear();
        has_lost_root
    }

    /// Bytes that its commit visits, roughly.
    fn commit_bytes(&self) -> usize {
        let large = self.announced.large().bytes();
        let small = self.announced.lines().len() + self.announced.words().len();
        small * line::LINE + large + self.set_bytes.len()
    }
}

impl Tx {
    /// Begins a part that [`Tx::roll_back_to_mark`] takes back alone; what came before can only be taken back with the
    /// whole transaction. The deferred stores of the part before are made.
    ///
    /// # Errors
    /// No part begins: there is no room to announce what was deferred. The transaction can be committed as it is.
    pub(crate) fn mark(&self) -> Step {
        self.state.borrow_mut().mark()
    }

    /// Takes everything back that happened since the mark. Whether another transaction has to go on: this one made the
    /// pool's root and does not make it any more, which nobody may see before it has ended.
    pub(crate) fn roll_back_to_mark(&self) -> bool {
        self.state.borrow_mut().roll_back_to_mark()
    }

    /// There are no more parts.
    pub(crate) fn end_parts(&self) {
        let mut state = self.state.borrow_mut();
        if let Some(savepoint) = &mut state.savepoint {
            savepoint.clear();
            state.savepoint = None;
        }
    }

    /// Bytes that the commit of the running transaction visits, roughly.
    pub(crate) fn commit_bytes(&self) -> usize {
        self.state.borrow().commit_bytes()
    }

    /// Ends the levels that a part left open, and forgets that it was aborted. Whether it can be kept: neither
    /// happened.
    pub(crate) fn end_part(&self, depth: u32) -> bool {
        let is_balanced = self.depth.replace(depth) == depth;
        !self.doomed.replace(false) && is_balanced
    }

    /// [`end_part`](Self::end_part) of the transaction that runs on this thread.
    #[inline]
    pub(crate) fn end_part_of_this_thread(depth: u32) -> bool {
        Self::if_running(|tx| tx.end_part(depth)) == Some(true)
    }

    /// The levels of this transaction.
    pub(crate) fn depth(&self) -> u32 {
        self.depth.get()
    }
}

/// What runs within a transaction and may leave levels open, which end with it, however it ends.
#[derive(Debug)]
pub(crate) struct Part<'t> {
    tx: &'t Tx,
    depth: u32,
}

impl<'t> Part<'t> {
    #[inline]
    pub(crate) fn begin(tx: &'t Tx) -> Self {
        Self {
            tx,
            depth: tx.depth(),
        }
    }

    /// Whether it can be kept, as [`Tx::end_part`] says.
    #[inline]
    pub(crate) fn end(self) -> bool {
        let part = ManuallyDrop::new(self);
        part.tx.end_part(part.depth)
    }
}

impl Drop for Part<'_> {
    fn drop(&mut self) {
        self.tx.end_part(self.depth);
    }
}
