//! Counters of what was made durable: cheap enough to be always on.
//!
//! Each thread counts for itself with plain loads and stores. Counters only grow; subtract two
//! snapshots to learn what an operation cost:
//!
//! ```
//! use durum_persist::{Site, count, line};
//! let before = count::thread_counters();
//! let word = 7u64;
//! // SAFETY: `word` is a live object of 8 bytes.
//! unsafe { line::write_back((&raw const word).cast(), 8, Site("example")) };
//! line::fence(Site("example"));
//! let cost = count::thread_counters() - before;
//! assert_eq!((cost.write_backs, cost.fences, cost.bytes_written), (1, 1, 8));
//! ```

use std::cell::Cell;
use std::ops::{Add, AddAssign, Sub};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

/// Defines the snapshot and the live counters of a thread from one list of names.
macro_rules! counters {
    ($($(#[$doc:meta])+ $name:ident,)+) => {
        /// A snapshot of counters. All of them only grow while a thread lives.
        #[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
        #[non_exhaustive]
        pub struct Counters {
            $($(#[$doc])+ pub $name: u64,)+
        }

        impl Sub for Counters {
            type Output = Counters;

            fn sub(self, earlier: Counters) -> Counters {
                Counters { $($name: self.$name.wrapping_sub(earlier.$name),)+ }
            }
        }

        impl Add for Counters {
            type Output = Counters;

            fn add(self, other: Counters) -> Counters {
                Counters { $($name: self.$name.wrapping_add(other.$name),)+ }
            }
        }

        const ZERO: Counters = Counters { $($name: 0,)+ };

        /// One thread's counters. Only the owning thread writes, so an increment is a load and a store; they are
        /// atomics because [`all_counters`] reads them from other threads. Aligned, so that no two threads write one
        /// line.
        #[repr(align(64))]
        struct Slot {
            background: AtomicBool,
            $($name: AtomicU64,)+
        }

        impl Slot {
            const fn new() -> Slot {
                Slot { background: AtomicBool::new(false), $($name: AtomicU64::new(0),)+ }
            }

            fn snapshot(&self) -> Counters {
                Counters { $($name: self.$name.load(Relaxed),)+ }
            }

            fn clear(&self) {
                $(self.$name.store(0, Relaxed);)+
            }
        }
    };
}

counters! {
    /// Fences on mapped memory.
    fences,
    /// Lines (64 bytes) written back.
    write_backs,
    /// Whole lines stored past the cache by [`crate::line::copy_streaming`].
    streamed_lines,
    /// Syncs of files and directories.
    syncs,
    /// Writes to files (`pwrite`).
    file_writes,
    /// Bytes of log entries, as told by [`add_bytes_logged`].
    bytes_logged,
    /// Bytes handed to write-back, to streaming stores and to file writes: what was meant to be durable,
    /// without the rest of the lines it lies on.
    bytes_written,
    /// Transactions that changed something and committed, as told by [`add_transaction`].
    commits,
    /// Transactions that changed something and were rolled back, as told by [`add_transaction`].
    aborts,
}

impl AddAssign for Counters {
    fn add_assign(&mut self, other: Counters) {
        *self = *self + other;
    }
}

/// What the calling thread has counted so far, since it began or since [`mark_background_thread`].
pub fn thread_counters() -> Counters {
    with_slot(Slot::snapshot)
}

/// The sum over all threads, living and ended, that are not background threads.
pub fn all_counters() -> Counters {
    registry(|registry| registry.sum(false))
}

/// The sum over all background threads, living and ended.
pub fn background_counters() -> Counters {
    registry(|registry| registry.sum(true))
}

/// From now on the calling thread's counts are kept apart, in [`background_counters`].
pub fn mark_background_thread() {
    with_slot(|_| ());
    SLOT.with(|current| {
        let fresh = registry(|registry| registry.take(true));
        let former = current.replace(fresh);
        // SAFETY: `with_slot` above registered the thread, so the pointer is one that `take` or `LATE` gave; slots are
        // never freed.
        let former = unsafe { &*former };
        if !ptr::eq(former, &LATE) {
            registry(|registry| registry.retire(former));
        }
    });
}

/// Counts `n` bytes of log entries. Told by the log, since only the log knows what an entry is.
#[inline]
pub fn add_bytes_logged(n: u64) {
    with_slot(|slot| Slot::add(&slot.bytes_logged, n));
}

/// Counts a transaction that changed something: committed, or rolled back. Told by the transactions.
#[inline]
pub fn add_transaction(committed: bool) {
    with_slot(|slot| match committed {
        true => Slot::add(&slot.commits, 1),
        false => Slot::add(&slot.aborts, 1),
    });
}

#[inline]
pub(crate) fn add_fence() {
    with_slot(|slot| Slot::add(&slot.fences, 1));
}

#[inline]
pub(crate) fn add_write_backs(lines: u64, bytes: u64) {
    with_slot(|slot| {
        Slot::add(&slot.write_backs, lines);
        Slot::add(&slot.bytes_written, bytes);
    });
}

#[inline]
pub(crate) fn add_streamed(lines: u64, bytes: u64) {
    with_slot(|slot| {
        Slot::add(&slot.streamed_lines, lines);
        Slot::add(&slot.bytes_written, bytes);
    });
}

pub(crate) fn add_sync() {
    with_slot(|slot| Slot::add(&slot.syncs, 1));
}

pub(crate) fn add_file_write(bytes: u64) {
    with_slot(|slot| {
        Slot::add(&slot.file_writes, 1);
        Slot::add(&slot.bytes_written, bytes);
    });
}

impl Slot {
    #[inline(always)]
    fn add(counter: &AtomicU64, n: u64) {
        counter.store(counter.load(Relaxed).wrapping_add(n), Relaxed);
    }
}

thread_local! {
    // No destructor, so that reaching it is one load relative to the thread pointer.
    static SLOT: Cell<*const Slot> = const { Cell::new(ptr::null()) };
    static RETIRE: Retire = const { Retire };
}

/// Used by threads that still count while their thread-locals are being destroyed; shared by them, so
/// that a count may get lost there.
static LATE: Slot = Slot::new();

#[inline(always)]
fn with_slot<R>(body: impl FnOnce(&Slot) -> R) -> R {
    let mut slot = SLOT.get();
    if slot.is_null() {
        slot = register();
    }
    // SAFETY: a non-null pointer comes from `register` or `mark_background_thread`, both of which store references to
    // slots that live as long as the process.
    body(unsafe { &*slot })
}

#[cold]
fn register() -> *const Slot {
    // A thread whose thread-locals are already gone cannot retire a slot later.
    let slot: &'static Slot = match RETIRE.try_with(|_| ()) {
        Ok(()) => registry(|registry| registry.take(false)),
        Err(_) => &LATE,
    };
    SLOT.set(slot);
    slot
}

/// Gives the thread's slot back when the thread ends.
struct Retire;

impl Drop for Retire {
    fn drop(&mut self) {
        let slot = SLOT.replace(&LATE);
        if !slot.is_null() && !ptr::eq(slot, &LATE) {
            // SAFETY: non-null pointers in `SLOT` are references to slots that live as long as the process.
            registry(|registry| registry.retire(unsafe { &*slot }));
        }
    }
}

struct Registry {
    living: Vec<&'static Slot>,
    free: Vec<&'static Slot>,
    ended: Counters,
    ended_background: Counters,
}

static REGISTRY: Mutex<Registry> = Mutex::new(Registry {
    living: Vec::new(),
    free: Vec::new(),
    ended: ZERO,
    ended_background: ZERO,
});

fn registry<R>(body: impl FnOnce(&mut Registry) -> R) -> R {
    body(&mut REGISTRY.lock().unwrap_or_else(PoisonError::into_inner))
}

impl Registry {
    fn take(&mut self, background: bool) -> &'static Slot {
        let slot = self
            .free
            .pop()
            .unwrap_or_else(|| Box::leak(Box::new(Slot::new())));
        slot.background.store(background, Relaxed);
        self.living.push(slot);
        slot
    }

    fn retire(&mut self, slot: &'static Slot) {
        let counts = slot.snapshot();
        if slot.background.load(Relaxed) {
            self.ended_background += counts;
        } else {
            self.ended += counts;
        }
        self.living.retain(|other| !ptr::eq(*other, slot));
        slot.clear();
        self.free.push(slot);
    }

    fn sum(&self, background: bool) -> Counters {
        let mut sum = if background {
            self.ended_background
        } else {
            self.ended + LATE.snapshot()
        };
        for slot in &self.living {
            if slot.background.load(Relaxed) == background {
                sum += slot.snapshot();
            }
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_of_ended_threads_stay_in_the_sum() {
        let before = all_counters();
        std::thread::spawn(|| {
            assert_eq!(
                thread_counters(),
                Counters::default(),
                "a thread starts at zero"
            );
            add_bytes_logged(1000);
            assert_eq!(thread_counters().bytes_logged, 1000);
        })
        .join()
        .unwrap();
        // Other tests count at the same time: at least ours must be there.
        assert!((all_counters() - before).bytes_logged >= 1000);
    }

    #[test]
    fn background_threads_are_counted_apart() {
        let before = background_counters();
        std::thread::spawn(|| {
            add_bytes_logged(3);
            mark_background_thread();
            assert_eq!(thread_counters().bytes_logged, 0);
            add_bytes_logged(500);
            assert_eq!(thread_counters().bytes_logged, 500);
        })
        .join()
        .unwrap();
        // No other test marks a background thread.
        assert_eq!((background_counters() - before).bytes_logged, 500);
    }

    #[test]
    fn a_reused_slot_starts_at_zero() {
        for _ in 0..3 {
            std::thread::spawn(|| {
                add_bytes_logged(1);
                assert_eq!(thread_counters().bytes_logged, 1);
            })
            .join()
            .unwrap();
        }
    }
}
