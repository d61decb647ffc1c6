//! What the lock and the pins stand on. `tests/loom` has the same names for loom's, so that all interleavings of them
//! can be tried.

use std::cell::Cell;
pub(crate) use std::hint::spin_loop as relax;
use std::sync::PoisonError;
pub(crate) use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
pub(crate) use std::sync::{Condvar, Mutex, MutexGuard};
pub(crate) use std::thread::yield_now;
use std::time::Duration;

pub(crate) use durum::{can_fence_all, fence_all, light_fence as keep_order};

/// How often one looks before one sleeps, or lets other threads run.
pub(crate) const SPINS: u32 = 200;
/// How often a writer looks whether those who slept have come through.
pub(crate) const COURTESY: u32 = 100;
/// After so many turns in a row a thread owns the lock, at first.
pub(crate) const TURNS_MIN: usize = 16;
/// Pins that have a place of their own.
pub(crate) const PLACES: usize = 64;
/// A writer waits for each counter of readers.
const COUNTERS_MAX: usize = 32;

/// How many counters readers share: a power of two.
pub(crate) fn counters() -> usize {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    (2 * processors).next_power_of_two().min(COUNTERS_MAX)
}

/// Who has waited for long lets others run.
pub(crate) fn nap() {
    std::thread::sleep(Duration::from_micros(50));
}

/// Sequentially consistent operations need no fence between them.
#[inline(always)]
pub(crate) fn order() {}

/// Locks a mutex that guards nothing a panic could leave half done.
pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits on a condition variable, as [`locked`] locks.
pub(crate) fn waited<'a, T>(condition: &Condvar, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
    condition
        .wait(guard)
        .unwrap_or_else(PoisonError::into_inner)
}

/// A small number of this thread's, which no other has had.
#[inline]
pub(crate) fn thread_number() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local!(static NUMBER: Cell<usize> = const { Cell::new(usize::MAX) });
    NUMBER.with(|number| {
        if number.get() == usize::MAX {
            number.set(NEXT.fetch_add(1, Ordering::Relaxed));
        }
        number.get()
    })
}
