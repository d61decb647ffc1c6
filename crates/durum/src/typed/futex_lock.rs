//! A lock of one 32-bit word, which threads wait for asleep: that of Drepper, "Futexes are tricky" (mutex2).
//!
//! Whoever had to wait takes it as *awaited*, because it does not know whether others wait still. So it may be let go
//! with a call for nobody, and never without one for somebody.

use crate::primitive::{AtomicU32, Ordering, futex_wait, futex_wake};

const FREE: u32 = 0;
const TAKEN: u32 = 1;
const AWAITED: u32 = 2;

/// 0 is free.
#[repr(transparent)]
#[derive(Debug, Default)]
pub(super) struct FutexLock(AtomicU32);

impl FutexLock {
    #[inline(always)]
    pub(super) fn try_lock(&self) -> bool {
        let taken = self
            .0
            .compare_exchange(FREE, TAKEN, Ordering::Acquire, Ordering::Relaxed);
        taken.is_ok()
    }

    /// Waits until it is free, and takes it.
    pub(super) fn lock_slowly(&self) {
        // ORDER (of threads): what the last owner did is seen.
        while self.0.swap(AWAITED, Ordering::Acquire) != FREE {
            // Woken, interrupted, or changed before it slept: look again.
            futex_wait(&self.0, AWAITED);
        }
    }

    pub(super) fn unlock(&self) {
        // ORDER (of threads): whoever locks it next sees what the owner did.
        if self.0.swap(FREE, Ordering::Release) == AWAITED {
            futex_wake(&self.0);
        }
    }
}
