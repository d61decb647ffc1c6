//! A lock of one 32-bit word, which threads wait for asleep: that of Drepper, "Futexes are tricky" (mutex2), beside an
//! epoch. What bears another epoch was left by somebody who is gone, and is free.
//!
//! ```text
//! 31    2   1                              0
//! epoch     0 free, 1 taken, 2 taken and somebody waits
//! ```
//!
//! Whoever had to wait takes it as *awaited*, because it does not know whether others wait still. So it may be let go
//! with a call for nobody, and never without one for somebody.

use crate::primitive::{AtomicU32, Ordering, futex_wait, futex_wake};

const EPOCH_SHIFT: u32 = 2;
const STATE: u32 = 3;
const FREE: u32 = 0;
const TAKEN: u32 = 1;
const AWAITED: u32 = 2;

/// Epochs are below this.
pub const EPOCH_END: u32 = 1 << (32 - EPOCH_SHIFT);

/// 0 is free. So are any bytes that bear another epoch than the one which its methods are told.
#[repr(transparent)]
#[derive(Debug, Default)]
pub struct FutexLock(AtomicU32);

impl From<AtomicU32> for FutexLock {
    /// A lock that was left so.
    fn from(word: AtomicU32) -> Self {
        Self(word)
    }
}

#[inline(always)]
const fn word(epoch: u32, state: u32) -> u32 {
    epoch << EPOCH_SHIFT | state
}

#[inline(always)]
const fn is_taken(word: u32, epoch: u32) -> bool {
    word >> EPOCH_SHIFT == epoch && word & STATE != FREE
}

impl FutexLock {
    /// Takes it if it is free.
    #[inline(always)]
    pub fn try_lock(&self, epoch: u32) -> bool {
        let take = |free: u32| {
            let order = (Ordering::Acquire, Ordering::Relaxed);
            let taken = word(epoch, TAKEN);
            self.0.compare_exchange(free, taken, order.0, order.1)
        };
        match take(word(epoch, FREE)) {
            Ok(_) => true,
            Err(found) => !is_taken(found, epoch) && take(found).is_ok(),
        }
    }

    /// Waits until it is free, and takes it.
    pub fn lock_slowly(&self, epoch: u32) {
        self.lock_while(epoch, |word, awaited| {
            futex_wait(word, awaited);
            true
        });
    }

    /// The same, by `wait`: it sleeps while the word has this value, and says whether to look again. Whether the lock
    /// was taken.
    pub fn lock_while(&self, epoch: u32, mut wait: impl FnMut(&AtomicU32, u32) -> bool) -> bool {
        let awaited = word(epoch, AWAITED);
        // ORDER (of threads): what the last owner did is seen.
        while is_taken(self.0.swap(awaited, Ordering::Acquire), epoch) {
            // Woken, interrupted, or changed before it slept: look again.
            if !wait(&self.0, awaited) {
                return false;
            }
        }
        true
    }

    /// Lets it go. It bears this epoch.
    #[inline(always)]
    pub fn unlock(&self, epoch: u32) {
        // ORDER (of threads): whoever locks it next sees what the owner did.
        if self.0.swap(word(epoch, FREE), Ordering::Release) & STATE == AWAITED {
            futex_wake(&self.0);
        }
    }
}
