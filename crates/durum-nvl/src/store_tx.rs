//! The transaction of a store of pointers: the explicit one of the thread, or one of its own. What such a store does is
//! written once, and compiled for each of the two.

use durum::{Result, Tx};

use crate::fatal::Location;
use crate::heap::Heap;
use crate::layout::put;
use crate::pending::PendingCounts;
use crate::tx::{ClauseKind, ImplicitTx, Running};

/// A transaction in which pointers are stored.
pub(crate) trait StoreTx {
    /// Whether it has the heap's counts locked as long as it lasts.
    const HAS_COUNTS: bool;

    /// Its sums of counts.
    fn pending(&mut self) -> &mut PendingCounts;

    /// Runs `f` with the transaction as durum has it.
    fn with_core<R>(&self, f: impl FnOnce(&Tx) -> Result<R>) -> Result<R>;

    /// Before `count` words are given to `write`, from `start` on.
    fn announce_words(&mut self, heap: &Heap, start: usize, count: usize, at: Location);

    /// Changes a word that was announced.
    fn write(&mut self, address: usize, value: u64) -> Result<()>;
}

impl StoreTx for Running {
    // Other threads' transactions run beside this one; it locks counts when it commits.
    const HAS_COUNTS: bool = false;

    #[inline]
    fn pending(&mut self) -> &mut PendingCounts {
        &mut self.pending
    }

    #[inline]
    fn with_core<R>(&self, f: impl FnOnce(&Tx) -> Result<R>) -> Result<R> {
        Tx::with_running(f)
    }

    #[inline]
    fn announce_words(&mut self, heap: &Heap, start: usize, count: usize, at: Location) {
        self.announce(heap, start, 8 * count, ClauseKind::Backup, at);
    }

    #[inline]
    fn write(&mut self, address: usize, value: u64) -> Result<()> {
        // The program reads it next, so it cannot wait for the commit.
        // SAFETY: announced, and the program says that no other thread stores there.
        unsafe { put(address, value) };
        Ok(())
    }
}

impl StoreTx for ImplicitTx<'_, '_> {
    const HAS_COUNTS: bool = true;

    #[inline]
    fn pending(&mut self) -> &mut PendingCounts {
        self.pending
    }

    #[inline]
    fn with_core<R>(&self, f: impl FnOnce(&Tx) -> Result<R>) -> Result<R> {
        f(self.words.tx())
    }

    #[inline]
    fn announce_words(&mut self, _heap: &Heap, _start: usize, _count: usize, _at: Location) {
        // Each word is announced or deferred when it is written, whichever costs the engine less.
    }

    #[inline]
    fn write(&mut self, address: usize, value: u64) -> Result<()> {
        self.words.write(address, value)
    }
}
