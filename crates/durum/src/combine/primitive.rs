//! What the lock, the list of announcements, left-right and the words of counted objects stand on. `tests/loom` has the
//! same names for loom's, so that all interleavings of them can be tried.

pub(crate) use std::hint::spin_loop as relax;
pub(crate) use std::sync::atomic::{
    AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering,
};
pub(crate) use std::sync::{Condvar, Mutex};
use std::sync::{MutexGuard, PoisonError};
pub(crate) use std::thread::{Thread, current, park};
use std::time::Duration;

/// What one thread at a time uses, by other means than a lock of its own.
#[derive(Debug)]
pub(crate) struct UnsafeCell<T>(std::cell::UnsafeCell<T>);

impl<T> UnsafeCell<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(std::cell::UnsafeCell::new(value))
    }

    /// As loom's, which sees whether two threads are here at a time.
    pub(crate) fn with_mut<R>(&self, body: impl FnOnce(*mut T) -> R) -> R {
        body(self.0.get())
    }
}

/// How often a thread looks before it goes to sleep: about a microsecond, which is what most of what it waits for
/// takes.
pub(crate) const SPINS: u32 = 200;
/// Stripes of the first block of the read indicator; each block has twice as many as the one before.
pub(crate) const FIRST_STRIPES: usize = 8;
/// Blocks of the read indicator.
pub(crate) const BLOCKS: usize = 16;

/// Counters of readers of a Twin pool's copies, for each version.
pub(crate) const COPY_STRIPES: usize = 32;

/// Turns that are taken past a thread which waits for one, before it is handed one: what it waits for at most beside
/// those that came before it.
pub(crate) const PASSES_MAX: usize = 64;

/// Waits for somebody who wakes nobody: at first it looks often, later it lets others run.
pub(crate) struct Patience(crossbeam_utils::Backoff);

impl Patience {
    pub(crate) fn new() -> Self {
        Self(crossbeam_utils::Backoff::new())
    }

    pub(crate) fn wait(&self) {
        match self.0.is_completed() {
            false => self.0.snooze(),
            // Somebody who takes their time, or does not run: let them.
            true => std::thread::sleep(Duration::from_micros(50)),
        }
    }
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

/// A number that no other thread has that is alive; not 0.
pub(crate) fn this_thread() -> usize {
    thread_local!(static PLACE: u8 = const { 0 });
    PLACE.with(|place| std::ptr::from_ref(place).addr())
}
