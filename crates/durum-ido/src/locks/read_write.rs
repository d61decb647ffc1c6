//! A lock of one 64-bit word, which one thread has or several readers have.
//!
//! ```text
//! 63     32   31       30            29      0
//! epoch       a writer threads wait  readers
//! ```
//!
//! Threads wait on the lower half. Whoever makes it free wakes all of them.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use durum::primitive::{futex_wait, futex_wait_for, futex_wake_all};

use super::deadline::Deadline;
use crate::held::Mode;
use crate::reach;

const EPOCH_SHIFT: u32 = 32;
const WRITER: u32 = 1 << 31;
const AWAITED: u32 = 1 << 30;
const READERS: u32 = AWAITED - 1;

/// Such a word. Any bytes are one.
#[repr(transparent)]
#[derive(Debug)]
pub(super) struct ReadWriteWord(AtomicU64);

fn in_this_opening(state: u32) -> u64 {
    u64::from(reach::epoch()) << EPOCH_SHIFT | u64::from(state)
}

/// What is known of this opening.
fn state_of(word: u64) -> u32 {
    match word >> EPOCH_SHIFT == u64::from(reach::epoch()) {
        true => word as u32,
        false => 0,
    }
}

const fn step(mode: Mode) -> u32 {
    match mode {
        Mode::Exclusive => WRITER,
        Mode::Shared => 1,
    }
}

fn is_free_for(mode: Mode, state: u32) -> bool {
    match mode {
        Mode::Exclusive => state & !AWAITED == 0,
        Mode::Shared => state & WRITER == 0 && state & READERS != READERS,
    }
}

impl ReadWriteWord {
    fn change(&self, from: u64, to: u32) -> bool {
        let (to, order) = (in_this_opening(to), (Ordering::AcqRel, Ordering::Relaxed));
        self.0.compare_exchange(from, to, order.0, order.1).is_ok()
    }

    /// Takes it if it is free.
    pub(super) fn try_lock(&self, mode: Mode) -> bool {
        loop {
            let found = self.0.load(Ordering::Relaxed);
            let state = state_of(found);
            if !is_free_for(mode, state) {
                return false;
            }
            if self.change(found, state + step(mode)) {
                return true;
            }
        }
    }

    /// Waits until it is free, and takes it. Whether that was before the deadline.
    pub(super) fn lock(&self, mode: Mode, deadline: Option<&Deadline>) -> bool {
        loop {
            if self.try_lock(mode) {
                return true;
            }
            let found = self.0.load(Ordering::Relaxed);
            let state = state_of(found);
            if is_free_for(mode, state) || !self.change(found, state | AWAITED) {
                continue;
            }
            let awaited = state | AWAITED;
            match deadline.map(Deadline::left) {
                None => futex_wait(self.lower(), awaited),
                Some(Some(left)) => futex_wait_for(self.lower(), awaited, left),
                Some(None) => return false,
            }
        }
    }

    pub(super) fn unlock(&self, mode: Mode) {
        loop {
            let found = self.0.load(Ordering::Relaxed);
            let left = state_of(found).wrapping_sub(step(mode));
            let is_free = left & !AWAITED == 0;
            if self.change(found, if is_free { 0 } else { left }) {
                if is_free && left == AWAITED {
                    futex_wake_all(self.lower());
                }
                return;
            }
        }
    }

    /// What the kernel looks at. Nobody here reads it.
    fn lower(&self) -> &AtomicU32 {
        let index = usize::from(cfg!(target_endian = "big"));
        // SAFETY: a half of the word, which is as long lent as that; only the kernel looks at it by halves.
        unsafe { &*std::ptr::from_ref(self).cast::<AtomicU32>().add(index) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readers_share_it_and_a_writer_does_not() {
        reach::open(0, 0, 7);
        for left in [0, u64::MAX, 6 << EPOCH_SHIFT | u64::from(WRITER)] {
            let word = ReadWriteWord(AtomicU64::new(left));
            assert!(word.try_lock(Mode::Shared) && word.try_lock(Mode::Shared));
            assert!(!word.try_lock(Mode::Exclusive));
            word.unlock(Mode::Shared);
            assert!(!word.try_lock(Mode::Exclusive));
            word.unlock(Mode::Shared);
            assert!(word.lock(Mode::Exclusive, None));
            assert!(!word.try_lock(Mode::Shared));
            word.unlock(Mode::Exclusive);
        }
    }

    #[test]
    fn whoever_waits_is_woken() {
        reach::open(0, 0, 7);
        let word = ReadWriteWord(AtomicU64::new(0));
        let taken = AtomicU32::new(0);
        std::thread::scope(|scope| {
            for number in 0..4 {
                let mode = if number % 2 == 0 {
                    Mode::Exclusive
                } else {
                    Mode::Shared
                };
                let (word, taken) = (&word, &taken);
                scope.spawn(move || {
                    for _ in 0..2000 {
                        assert!(word.lock(mode, None));
                        taken.fetch_add(1, Ordering::Relaxed);
                        word.unlock(mode);
                    }
                });
            }
        });
        assert_eq!(taken.into_inner(), 8000);
    }
}
