//! When a thread that has no transaction open should do something for its store.

use std::sync::atomic::{AtomicUsize, Ordering};

/// In the level: a thread is wanted whatever the level is.
const ASKED: usize = 1 << (usize::BITS - 1);

/// A level that rises, and where it calls for work.
#[derive(Debug)]
#[repr(align(128))]
pub(crate) struct Upkeep {
    /// As high as `due`, or higher: a thread that has no transaction open should work.
    pub(crate) now: AtomicUsize,
    pub(crate) due: AtomicUsize,
}

impl Default for Upkeep {
    /// Never due.
    fn default() -> Self {
        Self {
            now: AtomicUsize::new(0),
            due: AtomicUsize::new(usize::MAX),
        }
    }
}

impl Upkeep {
    /// Whether a thread that has no transaction open should work.
    #[inline]
    pub(crate) fn is_due(&self) -> bool {
        // Who is asked for comes, too: no level is as high.
        self.now.load(Ordering::Relaxed) >= self.due.load(Ordering::Relaxed)
    }

    /// Whether it is the level that calls for one.
    pub(crate) fn is_level_due(&self) -> bool {
        self.level() >= self.due.load(Ordering::Relaxed)
    }

    #[inline]
    pub(crate) fn level(&self) -> usize {
        self.now.load(Ordering::Relaxed) & !ASKED
    }

    /// Has a thread come, at whatever level.
    pub(crate) fn ask(&self) {
        self.now.fetch_or(ASKED, Ordering::Release);
    }

    /// A thread has come: whether one was asked for since the last time.
    pub(crate) fn was_asked(&self) -> bool {
        // Mostly it is the level that has brought it, again and again: then nothing is stored that others read.
        self.now.load(Ordering::Relaxed) & ASKED != 0
            && self.now.fetch_and(!ASKED, Ordering::Acquire) & ASKED != 0
    }

    pub(crate) fn raise(&self, by: usize) {
        self.now.fetch_add(by, Ordering::Relaxed);
    }

    pub(crate) fn lower(&self, by: usize) {
        self.now.fetch_sub(by, Ordering::Relaxed);
    }

    /// From this level on.
    pub(crate) fn set_due(&self, level: usize) {
        self.due.store(level, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_asked_for_comes_once_and_the_level_stays() {
        let upkeep = Upkeep::default();
        upkeep.set_due(10);
        upkeep.raise(3);
        assert!(!upkeep.is_due() && !upkeep.was_asked());
        upkeep.ask();
        upkeep.lower(2);
        assert_eq!(upkeep.level(), 1);
        assert!(upkeep.is_due() && !upkeep.is_level_due());
        assert!(upkeep.was_asked() && !upkeep.was_asked());
        assert!(!upkeep.is_due());
    }
}
