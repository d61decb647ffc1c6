//! Which addresses are those of the open heap's store, and which opening this is.

use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};

/// As many openings locks can tell apart.
pub(crate) use crate::futex_lock::EPOCH_END;

static BASE: AtomicUsize = AtomicUsize::new(0);
/// 0 while no heap is open.
static SIZE: AtomicUsize = AtomicUsize::new(0);
static EPOCH: AtomicU32 = AtomicU32::new(0);
/// 0 while no heap is open.
static OPENING: AtomicU64 = AtomicU64::new(0);

/// A heap is open: its store has `size` bytes from `base` on, and this is the epoch of its locks.
pub(crate) fn open(base: u64, size: u64, epoch: u32) {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    debug_assert!((1..EPOCH_END).contains(&epoch));
    BASE.store(base as usize, Ordering::Relaxed);
    EPOCH.store(epoch, Ordering::Relaxed);
    SIZE.store(size as usize, Ordering::Release);
    OPENING.store(NEXT.fetch_add(1, Ordering::Relaxed), Ordering::Release);
}

/// No heap is open.
pub(crate) fn close() {
    OPENING.store(0, Ordering::Release);
    SIZE.store(0, Ordering::Release);
}

/// Where the store's addresses begin, and how many there are.
pub(crate) fn range() -> (usize, usize) {
    (BASE.load(Ordering::Acquire), SIZE.load(Ordering::Acquire))
}

/// A number that no other opening in this process has; 0 while no heap is open.
#[inline]
pub(crate) fn opening() -> u64 {
    OPENING.load(Ordering::Acquire)
}

/// Whether what lies at an address is the store's.
#[inline]
pub(crate) fn holds(address: usize) -> bool {
    let base = BASE.load(Ordering::Relaxed);
    address.wrapping_sub(base) < SIZE.load(Ordering::Relaxed)
}

/// The number of this opening among all of the heap: what bears another one is from before a crash.
#[inline]
pub(crate) fn epoch() -> u32 {
    EPOCH.load(Ordering::Relaxed)
}
