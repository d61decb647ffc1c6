//! How often a thread had to wait for another one.

use std::sync::atomic::{AtomicU64, Ordering};

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
