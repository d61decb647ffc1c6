//! How often a thread had to wait for another one.

use std::sync::atomic::{AtomicU64, Ordering};

static CONTENDED: AtomicU64 = AtomicU64::new(0);

pub(super) fn count_contended() {
    CONTENDED.fetch_add(1, Ordering::Relaxed);
}

/// How often a thread of this process found taken what it wanted to lock: a [`PMutex`](super::PMutex), or a counted object whose counts were being committed.
/// Threads that use different objects never do.
pub fn contended() -> u64 {
    CONTENDED.load(Ordering::Relaxed)
}
