//! What the lock and the list of announcements stand on: the standard library's, or loom's where their interleavings are tried (`tests/loom.rs`).

#[cfg(not(loom))]
mod real {
    pub(crate) use std::hint::spin_loop as relax;
    pub(crate) use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicUsize, Ordering};
    pub(crate) use std::sync::{Condvar, Mutex};
    pub(crate) use std::thread::{Thread, current, park};

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

    /// How often a thread looks before it goes to sleep: about a microsecond, which is what most of what it waits for takes.
    pub(crate) const SPINS: u32 = 200;
    /// Stripes of the first block of the read indicator; each block has twice as many as the one before.
    pub(crate) const FIRST_STRIPES: usize = 8;
    /// Blocks of the read indicator.
    pub(crate) const BLOCKS: usize = 16;

    /// Sequentially consistent operations need no fence between them.
    #[inline(always)]
    pub(crate) fn order() {}
}

#[cfg(loom)]
mod real {
    pub(crate) use loom::cell::UnsafeCell;
    pub(crate) use loom::sync::atomic::{AtomicPtr, AtomicU32, AtomicUsize, Ordering, fence};
    pub(crate) use loom::sync::{Condvar, Mutex};
    pub(crate) use loom::thread::{Thread, current, park, yield_now as relax};

    // Rare paths are common here: sleep at once, and few counters.
    pub(crate) const SPINS: u32 = 0;
    pub(crate) const FIRST_STRIPES: usize = 1;
    pub(crate) const BLOCKS: usize = 2;

    /// loom knows sequential consistency of fences only.
    pub(crate) fn order() {
        fence(Ordering::SeqCst);
    }
}

pub(crate) use real::*;

/// Locks a mutex that guards nothing a panic could leave half done.
#[cfg(not(loom))]
pub(crate) fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Waits on a condition variable, as [`locked`] locks.
#[cfg(not(loom))]
pub(crate) fn waited<'a, T>(
    condition: &Condvar,
    guard: std::sync::MutexGuard<'a, T>,
) -> std::sync::MutexGuard<'a, T> {
    condition
        .wait(guard)
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}

#[cfg(loom)]
pub(crate) fn locked<T>(mutex: &Mutex<T>) -> loom::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap()
}

#[cfg(loom)]
pub(crate) fn waited<'a, T>(
    condition: &Condvar,
    guard: loom::sync::MutexGuard<'a, T>,
) -> loom::sync::MutexGuard<'a, T> {
    condition.wait(guard).unwrap()
}
