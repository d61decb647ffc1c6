//! The word of a `PMutex`. The lower half is what threads wait on, the upper half says whose it is:
//!
//! ```text
//! 63       33      32            31    0
//! thread's number  guard lives   0 free, 1 locked, 2 locked and somebody waits
//! ```

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::volatile_words::VolatileWord;
use crate::futex_lock::FutexLock;

/// Of its lock: all words are zero when a pool is opened.
pub(super) const NO_EPOCH: u32 = 0;

/// The word of a [`PMutex`](super::PMutex).
#[repr(transparent)]
#[derive(Debug, Default)]
pub(super) struct LockWord(AtomicU64);

// SAFETY: transparent, and 0 is free.
unsafe impl VolatileWord for LockWord {}

impl LockWord {
    /// The half that threads wait on.
    pub(super) fn lock(&self) -> &FutexLock {
        // SAFETY: the lower half of a 64-bit atomic, which is used by halves only; transparent, and 0 is free.
        unsafe { &*std::ptr::from_ref(self).cast::<FutexLock>() }
    }

    /// The half that says whose it is.
    pub(super) fn owner(&self) -> &AtomicU32 {
        // SAFETY: the upper half of a 64-bit atomic, which is used by halves only.
        unsafe { &*std::ptr::from_ref(self).cast::<AtomicU32>().add(1) }
    }

    /// Unlocks a mutex that this thread has locked, when its transaction is over.
    pub(super) fn unlock(&self) {
        self.owner().store(0, Ordering::Relaxed);
        self.lock().unlock(NO_EPOCH);
    }
}
