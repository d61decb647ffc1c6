//! Readers beside a writer: each of them reads the copy that nobody is changing (left-right; Romulus, SPAA'18, §5.3).
//!
//! Readers are sent to one of the copies. The writer changes the other one, sends new readers there, and waits until
//! the readers of the first copy have left before it changes that one. A reader says that it comes, asks where to,
//! reads and leaves: it never waits, whatever the writer does, and even if that never goes on.
//!
//! Readers are counted under one of two *versions*, and the writer waits for both in turn: for the next one, which is
//! nearly always empty, then for the one under which readers came until now. So new readers cannot keep it waiting
//! (Ramalhete and Correia, "Brief announcement: left-right", SPAA'15).

use crossbeam_utils::CachePadded;

use crate::primitive::{AtomicBool, AtomicUsize, Ordering, Patience, limit, order};

/// Counters of readers, for each version.
const STRIPES: usize = limit(32, 1);

/// Where readers are sent, and who is reading.
#[derive(Debug, Default)]
pub(super) struct LeftRight {
    /// Whether they are sent to main.
    to_main: AtomicBool,
    version: AtomicUsize,
    /// Those of each version. Threads are spread over the counters, so that readers mostly share no cache line.
    readers: [[CachePadded<AtomicUsize>; STRIPES]; 2],
}

/// A reader, until it is dropped.
#[derive(Debug)]
pub(super) struct Reading<'a> {
    counter: &'a AtomicUsize,
    /// Whether it is to read main.
    pub(super) is_main: bool,
}

impl Drop for Reading<'_> {
    fn drop(&mut self) {
        // ORDER (of threads): what it has read, it has read before the writer goes on.
        self.counter.fetch_sub(1, Ordering::Release);
    }
}

thread_local! {
    static STRIPE: usize = {
        use std::sync::atomic::{AtomicUsize, Ordering};
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        NEXT.fetch_add(1, Ordering::Relaxed) % STRIPES
    };
}

impl LeftRight {
    /// A reader comes. Never waits.
    #[inline]
    pub(super) fn come(&self) -> Reading<'_> {
        let version = self.version.load(Ordering::SeqCst);
        let stripe = STRIPE.try_with(|stripe| *stripe).unwrap_or(0);
        let counter = &*self.readers[version % 2][stripe];
        // ORDER (of threads): it is counted before it asks where to. So a writer that finds nobody here has sent it to
        // the other copy.
        counter.fetch_add(1, Ordering::SeqCst);
        order();
        Reading {
            counter,
            is_main: self.to_main.load(Ordering::SeqCst),
        }
    }

    /// Sends readers to the given copy, and waits until nobody reads the other one. For one thread at a time.
    pub(super) fn send(&self, to_main: bool) {
        if self.to_main.swap(to_main, Ordering::SeqCst) == to_main {
            return;
        }
        order();
        let version = self.version.load(Ordering::SeqCst);
        self.wait_for(version + 1);
        self.version.store((version + 1) % 2, Ordering::SeqCst);
        self.wait_for(version);
    }

    fn wait_for(&self, version: usize) {
        for counter in &self.readers[version % 2] {
            let patience = Patience::new();
            while counter.load(Ordering::SeqCst) != 0 {
                patience.wait();
            }
        }
    }
}
