//! The lock between those who read and the one who writes: readers share nothing, writers go first.
//!
//! Readers announce themselves in one of several counters, each on a cache line of its own, so that two processors that read disturb each other only where their threads share
//! a counter. A writer raises a flag and waits until all counters are zero. Reading costs two atomic additions.
//!
//! ```text
//! read                                   write (one at a time)
//! 1  own counter += 1                    1  flag = true
//! 2  flag up: counter -= 1, wait         2  wait until every counter is 0
//! ```
//!
//! Both steps are sequentially consistent: of a reader and a writer that meet, at least one sees the other.
//!
//! The flag stays up for as long as a writer changes memory: about a microsecond. Who waits longer than that sleeps. A writer lets those go first who have slept, for
//! a moment, so that a row of writers does not keep them out for good.

use std::cell::{Cell, UnsafeCell};
use std::fmt;
use std::hint::spin_loop;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::thread;

use crossbeam_utils::CachePadded;

/// A writer waits for each of them.
const COUNTERS_MAX: usize = 32;
/// How often one looks before one sleeps, or lets other threads run.
const SPINS: u32 = 200;
/// How often a writer looks whether those who slept have come through.
const COURTESY: u32 = 100;

thread_local! {
    static NUMBER: Cell<usize> = const { Cell::new(usize::MAX) };
}

/// A small number of this thread's.
#[inline]
fn thread_number() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    NUMBER.with(|number| {
        if number.get() == usize::MAX {
            number.set(NEXT.fetch_add(1, Ordering::Relaxed));
        }
        number.get()
    })
}

/// Something that many read and one changes.
pub(crate) struct ReadersWriter<T> {
    counters: Box<[CachePadded<AtomicUsize>]>,
    flag: CachePadded<AtomicBool>,
    /// Readers that sleep, or are about to.
    sleepers: AtomicUsize,
    sleep: Mutex<()>,
    awake: Condvar,
    value: UnsafeCell<T>,
}

impl<T> fmt::Debug for ReadersWriter<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReadersWriter").finish_non_exhaustive()
    }
}

// SAFETY: the value goes with the lock.
unsafe impl<T: Send> Send for ReadersWriter<T> {}
// SAFETY: `Reading` gives shared references to several threads, `Writing` a unique one to one.
unsafe impl<T: Send + Sync> Sync for ReadersWriter<T> {}

/// Nobody changes the value while this lives.
pub(crate) struct Reading<'l, T> {
    lock: &'l ReadersWriter<T>,
    counter: &'l AtomicUsize,
}

/// Nobody else sees the value while this lives.
pub(crate) struct Writing<'l, T> {
    lock: &'l ReadersWriter<T>,
}

impl<T> ReadersWriter<T> {
    pub(crate) fn new(value: T) -> Self {
        let processors = thread::available_parallelism().map_or(1, usize::from);
        let counters = (2 * processors).next_power_of_two().min(COUNTERS_MAX);
        Self {
            counters: (0..counters).map(|_| CachePadded::default()).collect(),
            flag: CachePadded::default(),
            sleepers: AtomicUsize::new(0),
            sleep: Mutex::new(()),
            awake: Condvar::new(),
            value: UnsafeCell::new(value),
        }
    }

    /// Waits until nobody writes.
    #[inline]
    pub(crate) fn read(&self) -> Reading<'_, T> {
        let counter = &*self.counters[thread_number() & (self.counters.len() - 1)];
        loop {
            counter.fetch_add(1, Ordering::SeqCst);
            if !self.flag.load(Ordering::SeqCst) {
                return Reading {
                    lock: self,
                    counter,
                };
            }
            counter.fetch_sub(1, Ordering::SeqCst);
            self.wait_for_writer();
        }
    }

    #[cold]
    fn wait_for_writer(&self) {
        for _ in 0..SPINS {
            if !self.flag.load(Ordering::Relaxed) {
                return;
            }
            spin_loop();
        }
        // Before the look at the flag: a writer that takes it down after this look sees that somebody sleeps.
        self.sleepers.fetch_add(1, Ordering::SeqCst);
        let mut asleep = self.sleep.lock().unwrap_or_else(PoisonError::into_inner);
        while self.flag.load(Ordering::SeqCst) {
            asleep = self
                .awake
                .wait(asleep)
                .unwrap_or_else(PoisonError::into_inner);
        }
        drop(asleep);
        self.sleepers.fetch_sub(1, Ordering::SeqCst);
    }

    /// Waits until nobody reads, and keeps readers out.
    ///
    /// # Safety
    /// No other thread is in this call or has what it returned.
    #[inline]
    pub(crate) unsafe fn write(&self) -> Writing<'_, T> {
        if self.sleepers.load(Ordering::Relaxed) > 0 {
            self.let_sleepers_pass();
        }
        self.flag.store(true, Ordering::SeqCst);
        for counter in &self.counters {
            let mut looks = 0;
            while counter.load(Ordering::SeqCst) > 0 {
                looks += 1;
                match looks < SPINS {
                    true => spin_loop(),
                    false => thread::yield_now(),
                }
            }
        }
        Writing { lock: self }
    }

    #[cold]
    fn let_sleepers_pass(&self) {
        for _ in 0..COURTESY {
            if self.sleepers.load(Ordering::Relaxed) == 0 {
                return;
            }
            thread::yield_now();
        }
    }
}

impl<T> Deref for Reading<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: the counter keeps writers out.
        unsafe { &*self.lock.value.get() }
    }
}

impl<T> Drop for Reading<'_, T> {
    #[inline]
    fn drop(&mut self) {
        // Release: what was read was read before a writer finds the counter at zero.
        self.counter.fetch_sub(1, Ordering::Release);
    }
}

impl<T> Deref for Writing<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: the flag keeps readers out, and there is one writer.
        unsafe { &*self.lock.value.get() }
    }
}

impl<T> DerefMut for Writing<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as above.
        unsafe { &mut *self.lock.value.get() }
    }
}

impl<T> Drop for Writing<'_, T> {
    #[inline]
    fn drop(&mut self) {
        self.lock.flag.store(false, Ordering::SeqCst);
        if self.lock.sleepers.load(Ordering::SeqCst) > 0 {
            // Whoever is between its look at the flag and its sleep holds the mutex.
            drop(self.lock.sleep.lock());
            self.lock.awake.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU64;
    use std::time::Duration;

    use super::*;

    #[test]
    fn readers_never_see_half_of_a_change() {
        let lock = ReadersWriter::new([0u64; 16]);
        let (reads, done) = (AtomicU64::new(0), AtomicBool::new(false));
        thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    while !done.load(Ordering::Relaxed) {
                        let value = lock.read();
                        assert!(value.iter().all(|word| *word == value[0]), "{:?}", *value);
                        drop(value);
                        reads.fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
            for round in 1..=2000 {
                // SAFETY: one thread writes.
                let mut value = unsafe { lock.write() };
                value.iter_mut().for_each(|word| *word = round);
                if round % 500 == 0 {
                    // Long enough that readers sleep.
                    thread::sleep(Duration::from_millis(2));
                }
                drop(value);
                if round % 100 == 0 {
                    let before = reads.load(Ordering::Relaxed);
                    while reads.load(Ordering::Relaxed) == before {
                        thread::yield_now();
                    }
                }
            }
            done.store(true, Ordering::Relaxed);
        });
        assert_eq!(lock.read()[3], 2000);
    }
}
