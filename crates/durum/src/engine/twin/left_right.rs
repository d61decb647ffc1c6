//! Readers beside a writer: each of them reads the copy that nobody is changing (left-right; Romulus, SPAA'18, §5.3).
//!
//! Readers are sent to one of the copies. The writer changes the other one, sends new readers there, and waits until the readers of the first copy have left
//! before it changes that one. A reader says that it comes, asks where to, reads and leaves: it never waits, whatever the writer does, and even if that never
//! goes on.
//!
//! Readers are counted under one of two *versions*, and the writer waits for both in turn: for the next one, which is nearly always empty, then for the one under
//! which readers came until now. So new readers cannot keep it waiting (Ramalhete and Correia, "Brief announcement: left-right", SPAA'15).

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use crossbeam_utils::{Backoff, CachePadded};

/// Counters of each version. Threads are spread over them, so that readers mostly share no cache line.
const STRIPES: usize = 32;

/// Where readers are sent, and who is reading.
#[derive(Debug, Default)]
pub(super) struct LeftRight {
    /// Whether they are sent to main.
    to_main: AtomicBool,
    version: AtomicUsize,
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
        // ORDER (of threads): it is counted before it asks where to. So a writer that finds nobody here has sent it to the other copy.
        counter.fetch_add(1, Ordering::SeqCst);
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
        let version = self.version.load(Ordering::SeqCst);
        self.wait_for(version + 1);
        self.version.store((version + 1) % 2, Ordering::SeqCst);
        self.wait_for(version);
    }

    fn wait_for(&self, version: usize) {
        for counter in &self.readers[version % 2] {
            let backoff = Backoff::new();
            while counter.load(Ordering::SeqCst) != 0 {
                match backoff.is_completed() {
                    false => backoff.snooze(),
                    // A reader that takes its time, or one that does not run: let it.
                    true => thread::sleep(std::time::Duration::from_micros(50)),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::UnsafeCell;
    use std::sync::atomic::AtomicU64;

    /// Two copies of two words that are always equal in a copy that is whole.
    struct Copies {
        left_right: LeftRight,
        words: [UnsafeCell<[u64; 2]>; 2],
        reads: AtomicU64,
    }

    // SAFETY: what the tests are about.
    unsafe impl Sync for Copies {}

    #[test]
    fn readers_never_meet_the_writer() {
        let copies = Copies {
            left_right: LeftRight::default(),
            words: Default::default(),
            reads: AtomicU64::new(0),
        };
        thread::scope(|scope| {
            let copies = &copies;
            for _ in 0..3 {
                scope.spawn(move || {
                    let mut last = 0;
                    while last < 20_000 {
                        let reading = copies.left_right.come();
                        let copy = copies.words[usize::from(!reading.is_main)].get();
                        // SAFETY: the writer is at the other copy.
                        let [first, second] = unsafe { copy.read_volatile() };
                        assert_eq!(first, second);
                        assert!(first >= last, "time does not go back");
                        last = first;
                        copies.reads.fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
            for value in 1..=20_000 {
                // Main is what the writer changes first; readers are at back.
                for copy in [0, 1] {
                    copies.left_right.send(copy == 1);
                    let words = copies.words[copy].get();
                    // SAFETY: the readers are at the other copy.
                    unsafe {
                        words.cast::<u64>().write_volatile(value);
                        words.cast::<u64>().add(1).write_volatile(value);
                    }
                }
                if value == 20_000 {
                    copies.left_right.send(true);
                }
            }
        });
        assert!(copies.reads.load(Ordering::Relaxed) > 0);
    }
}
