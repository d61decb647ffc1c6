//! A lock of one 32-bit word, which one thread has: that of Drepper, "Futexes are tricky" (mutex2), beside an epoch.
//!
//! ```text
//! 31    2   1                              0
//! epoch     0 free, 1 taken, 2 taken and somebody waits
//! ```

use super::deadline::Deadline;
use crate::primitive::{AtomicU32, Ordering, Patience, futex_wait, futex_wait_for, futex_wake};
use crate::reach;

const EPOCH_SHIFT: u32 = 2;
const STATE: u32 = 3;
const TAKEN: u32 = 1;
const AWAITED: u32 = 2;

const _: () = assert!(reach::EPOCH_END <= 1 << (32 - EPOCH_SHIFT));

/// Such a word. Any bytes are one.
#[repr(transparent)]
#[derive(Debug)]
pub(crate) struct LockWord(AtomicU32);

fn in_this_opening(state: u32) -> u32 {
    reach::epoch() << EPOCH_SHIFT | state
}

fn is_taken(word: u32) -> bool {
    word & !STATE == in_this_opening(0) && word & STATE != 0
}

impl LockWord {
    /// One that a crash has left so.
    #[cfg(test)]
    pub(crate) fn left(word: u32) -> Self {
        Self(AtomicU32::new(word))
    }

    /// Takes it if it is free.
    pub(crate) fn try_lock(&self) -> bool {
        let found = self.0.load(Ordering::Relaxed);
        let taken = in_this_opening(TAKEN);
        let order = (Ordering::Acquire, Ordering::Relaxed);
        !is_taken(found)
            && self
                .0
                .compare_exchange(found, taken, order.0, order.1)
                .is_ok()
    }

    /// Waits until it is free, and takes it. Whether that was before the deadline.
    pub(crate) fn lock(&self, deadline: Option<&Deadline>) -> bool {
        if self.try_lock() {
            return true;
        }
        let awaited = in_this_opening(AWAITED);
        // ORDER (of threads): what the last owner did is seen.
        while is_taken(self.0.swap(awaited, Ordering::Acquire)) {
            // Woken, interrupted, or changed before it slept: look again.
            match deadline.map(Deadline::left) {
                None => futex_wait(&self.0, awaited),
                Some(Some(left)) => futex_wait_for(&self.0, awaited, left),
                Some(None) => return false,
            }
        }
        true
    }

    /// As [`LockWord::lock`], awake.
    pub(crate) fn lock_awake(&self) {
        let patience = Patience::new();
        while !self.try_lock() {
            patience.wait();
        }
    }

    pub(crate) fn unlock(&self) {
        // ORDER (of threads): whoever takes it next sees what the owner did.
        let found = self.0.swap(in_this_opening(0), Ordering::Release);
        if found & STATE == AWAITED {
            futex_wake(&self.0);
        }
    }
}
