//! When a thread that has no transaction open should do something for its store.

use std::sync::atomic::{AtomicUsize, Ordering};

use crossbeam_utils::CachePadded;

/// A level that rises, and where it calls for work.
#[derive(Debug)]
pub(crate) struct Upkeep(CachePadded<Levels>);

#[derive(Debug)]
struct Levels {
    now: AtomicUsize,
    due: AtomicUsize,
}

impl Default for Upkeep {
    /// Never due.
    fn default() -> Self {
        Self(CachePadded::new(Levels {
            now: AtomicUsize::new(0),
            due: AtomicUsize::new(usize::MAX),
        }))
    }
}

impl Upkeep {
    /// Whether a thread that has no transaction open should work.
    #[inline]
    pub(crate) fn is_due(&self) -> bool {
        self.level() >= self.0.due.load(Ordering::Relaxed)
    }

    #[inline]
    pub(crate) fn level(&self) -> usize {
        self.0.now.load(Ordering::Relaxed)
    }

    pub(crate) fn raise(&self, by: usize) {
        self.0.now.fetch_add(by, Ordering::Relaxed);
    }

    pub(crate) fn lower(&self, by: usize) {
        self.0.now.fetch_sub(by, Ordering::Relaxed);
    }

    /// From this level on.
    pub(crate) fn set_due(&self, level: usize) {
        self.0.due.store(level, Ordering::Relaxed);
    }
}
