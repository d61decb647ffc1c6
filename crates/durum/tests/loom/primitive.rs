//! loom's, under the names of `src/combine/primitive.rs`. Rare paths are common here: who waits looks once more before
//! it sleeps, and there are few counters.

pub(crate) use loom::cell::UnsafeCell;
pub(crate) use loom::sync::atomic::{
    AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering,
};
pub(crate) use loom::sync::{Condvar, Mutex};
pub(crate) use loom::thread::{Thread, current, park};

use loom::sync::MutexGuard;
use loom::sync::atomic::fence;

pub(crate) const SPINS: u32 = 1;
pub(crate) const FIRST_STRIPES: usize = 1;
pub(crate) const BLOCKS: usize = 2;

pub(crate) const COPY_STRIPES: usize = 1;

pub(crate) const PASSES_MAX: usize = 1;

/// Between two looks. Others may come in between or not: nobody lets them by this.
pub(crate) fn relax() {}

/// Waits for another thread, which loom runs meanwhile.
pub(crate) struct Patience;

impl Patience {
    pub(crate) fn new() -> Self {
        Self
    }

    pub(crate) fn wait(&self) {
        loom::thread::yield_now();
    }
}

/// loom knows sequential consistency of fences only.
pub(crate) fn order() {
    fence(Ordering::SeqCst);
}

pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap()
}

pub(crate) fn waited<'a, T>(condition: &Condvar, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
    condition.wait(guard).unwrap()
}

/// loom's threads share those of the system.
pub(crate) fn this_thread() -> usize {
    loom::thread_local!(static PLACE: Box<u8> = Box::new(0));
    PLACE.with(|place| std::ptr::from_ref(&**place).addr())
}
