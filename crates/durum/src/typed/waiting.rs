//! Waiting for other threads: how it is done, and how often it was.

use std::hint::spin_loop;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::contention;

static CONTENDED: AtomicU64 = AtomicU64::new(0);

pub(super) fn count_contended() {
    CONTENDED.fetch_add(1, Ordering::Relaxed);
}

/// How often a thread of this process found taken what it wanted to lock: a [`PMutex`](super::PMutex), or a counted
/// object whose counts were being committed. Threads that use different objects never do. What they share nevertheless
/// is counted by [`contended_within`].
pub fn contended() -> u64 {
    CONTENDED.load(Ordering::Relaxed)
}

/// How often a thread of this process found taken a lock that all threads of a pool share, whatever objects they use:
/// the allocator's (for room in a puddle, for slabs that are full, for growing), and those of the pool's engine
/// (Shadow: the log's segments, the home updates, the order of buffered commits, the sync on a file system; Twin: the
/// turn).
///
/// Threads take these seldom and hold them briefly, but on Twin each transaction has the pool's turn.
pub fn contended_within() -> u64 {
    contention::found_taken()
}

/// Waits for another transaction to end its commit, longer each time.
#[derive(Debug, Default)]
pub(super) struct Pause {
    turns: u32,
}

impl Pause {
    pub(super) fn wait(&mut self) {
        if self.turns == 0 {
            count_contended();
        }
        self.turns += 1;
        match self.turns {
            0..64 => spin_loop(),
            64..128 => std::thread::yield_now(),
            _ => std::thread::sleep(Duration::from_micros(20)),
        }
    }
}
