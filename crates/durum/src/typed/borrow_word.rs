//! The word of a `PRefCell`: the number of readers, or bit 63 and the number of the transaction that borrows it to
//! write.

use std::sync::atomic::{AtomicU64, Ordering};

use super::volatile_words::VolatileWord;

/// Borrowed by a writer.
pub(super) const WRITER: u64 = 1 << 63;

/// The word of a [`PRefCell`](super::PRefCell).
#[repr(transparent)]
#[derive(Debug, Default)]
pub(super) struct BorrowWord(AtomicU64);

// SAFETY: transparent, and 0 is that nobody borrows.
unsafe impl VolatileWord for BorrowWord {}

impl BorrowWord {
    // One thread at a time: plain loads and stores.
    #[inline(always)]
    pub(super) fn load(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    #[inline(always)]
    pub(super) fn store(&self, word: u64) {
        self.0.store(word, Ordering::Relaxed);
    }

    /// Whether somebody reads the cell.
    pub(super) fn has_readers(&self) -> bool {
        // More readers than that there are not: another kind of cell has taken the place.
        (1..=u64::from(u32::MAX)).contains(&self.load())
    }
}
