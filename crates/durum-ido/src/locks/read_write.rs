//! A lock of one 64-bit word, which one thread has or several readers have.
//!
//! ```text
//! 63     32   31       30            29      0
//! epoch       a writer threads wait  readers
//! ```
//!
//! Threads wait for a number behind it to change. Whoever makes the lock free, and somebody waits, changes it and wakes
//! all of them.

use super::deadline::Deadline;
use crate::held::Mode;
use crate::primitive::{
    AtomicU32, AtomicU64, Ordering, futex_wait, futex_wait_for, futex_wake_all,
};
use crate::reach;

const EPOCH_SHIFT: u32 = 32;
const WRITER: u32 = 1 << 31;
const AWAITED: u32 = 1 << 30;
const READERS: u32 = AWAITED - 1;

/// Such a lock. Any bytes are one.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct ReadWriteLock {
    word: AtomicU64,
    /// Whatever it is at first.
    turn: AtomicU32,
}

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

impl ReadWriteLock {
    /// One that a crash has left so.
    #[cfg(test)]
    pub(crate) fn left(word: u64) -> Self {
        Self {
            word: AtomicU64::new(word),
            turn: AtomicU32::new(word as u32),
        }
    }

    fn change(&self, from: u64, to: u32) -> bool {
        let (to, order) = (in_this_opening(to), (Ordering::AcqRel, Ordering::Relaxed));
        self.word
            .compare_exchange(from, to, order.0, order.1)
            .is_ok()
    }

    /// Takes it if it is free.
    pub(crate) fn try_lock(&self, mode: Mode) -> bool {
        loop {
            let found = self.word.load(Ordering::Relaxed);
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
    pub(crate) fn lock(&self, mode: Mode, deadline: Option<&Deadline>) -> bool {
        loop {
            // ORDER (of threads): before the word is looked at. Whoever makes it free behind that changes the number
            // behind that, too, and nobody sleeps who has seen the old one.
            let turn = self.turn.load(Ordering::Acquire);
            if self.try_lock(mode) {
                return true;
            }
            let found = self.word.load(Ordering::Relaxed);
            let state = state_of(found);
            if is_free_for(mode, state) || !self.change(found, state | AWAITED) {
                continue;
            }
            match deadline.map(Deadline::left) {
                None => futex_wait(&self.turn, turn),
                Some(Some(left)) => futex_wait_for(&self.turn, turn, left),
                Some(None) => return false,
            }
        }
    }

    pub(crate) fn unlock(&self, mode: Mode) {
        loop {
            let found = self.word.load(Ordering::Relaxed);
            let left = state_of(found).wrapping_sub(step(mode));
            let is_free = left & !AWAITED == 0;
            if self.change(found, if is_free { 0 } else { left }) {
                if is_free && left == AWAITED {
                    self.turn.fetch_add(1, Ordering::AcqRel);
                    futex_wake_all(&self.turn);
                }
                return;
            }
        }
    }
}
