//! Stores that a transaction has deferred to its commit.

use std::ptr::NonNull;

use durum_persist::line;

use crate::alloc::Puddle;
use crate::fault::guarded;

/// A change that `set` deferred to the commit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Set {
    pub(crate) puddle: NonNull<Puddle>,
    pub(crate) target: usize,
    pub(crate) len: usize,
    /// Where the bytes start in `TxState::set_bytes`.
    pub(crate) from: usize,
}

impl Set {
    /// What is to be stored, of all that is in `TxState::set_bytes`.
    pub(crate) fn bytes<'b>(&self, all: &'b [u8]) -> &'b [u8] {
        &all[self.from..self.from + self.len]
    }

    /// Makes the store.
    ///
    /// # Safety
    /// The target lies in a mapped puddle, and only this thread changes it.
    pub(crate) unsafe fn make(&self, all: &[u8]) {
        let source = self.bytes(all).as_ptr();
        // SAFETY: as the caller promises.
        guarded(|| unsafe { line::copy(self.target as *mut u8, source, self.len) });
    }
}
