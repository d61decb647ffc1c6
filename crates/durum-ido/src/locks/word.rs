//! A lock of one word, which one thread has, in the epoch of this opening.

use super::deadline::Deadline;
use crate::futex_lock::FutexLock;
use crate::primitive::{AtomicU32, Patience, futex_wait, futex_wait_for};
use crate::reach;

/// Such a word. Any bytes are one.
#[repr(transparent)]
#[derive(Debug)]
pub(crate) struct LockWord(FutexLock);

impl LockWord {
    /// One that a crash has left so.
    #[cfg(test)]
    pub(crate) fn left(word: u32) -> Self {
        Self(AtomicU32::new(word).into())
    }

    /// Takes it if it is free.
    #[inline]
    pub(crate) fn try_lock(&self) -> bool {
        self.0.try_lock(reach::epoch())
    }

    /// Waits until it is free, and takes it. Whether that was before the deadline.
    pub(crate) fn lock(&self, deadline: Option<&Deadline>) -> bool {
        let wait = |word: &AtomicU32, awaited| match deadline.map(Deadline::left) {
            None => {
                futex_wait(word, awaited);
                true
            }
            Some(Some(left)) => {
                futex_wait_for(word, awaited, left);
                true
            }
            Some(None) => false,
        };
        self.try_lock() || self.0.lock_while(reach::epoch(), wait)
    }

    /// As [`LockWord::lock`], awake.
    pub(crate) fn lock_awake(&self) {
        let patience = Patience::new();
        while !self.try_lock() {
            patience.wait();
        }
    }

    #[inline]
    pub(crate) fn unlock(&self) {
        self.0.unlock(reach::epoch());
    }
}
