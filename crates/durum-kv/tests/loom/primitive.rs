//! loom's, under the names of `src/primitive.rs`. Rare paths are common here: sleep at once, few counters and places,
//! and two turns make an owner.

use std::cell::Cell;

pub(crate) use loom::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
pub(crate) use loom::sync::{Condvar, Mutex, MutexGuard};
pub(crate) use loom::thread::{yield_now, yield_now as nap, yield_now as relax};

use loom::sync::atomic::fence;

pub(crate) const SPINS: u32 = 0;
pub(crate) const COURTESY: u32 = 0;
pub(crate) const TURNS_MIN: usize = 1;
pub(crate) const PLACES: usize = 1;

pub(crate) fn counters() -> usize {
    2
}

pub(crate) fn can_fence_all() -> bool {
    true
}

/// loom has no fence in all threads: each half of the handshake makes its own. What one thread's fence does for another
/// one is not tried here.
pub(crate) fn fence_all() {
    fence(Ordering::SeqCst);
}

pub(crate) fn keep_order() {
    fence(Ordering::SeqCst);
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

/// Set by each thread of a model: loom's share those of the system.
pub(crate) fn thread_number() -> usize {
    NUMBER.with(Cell::get)
}

pub(crate) fn be(number: usize) {
    NUMBER.with(|own| own.set(number));
}

loom::thread_local!(static NUMBER: Cell<usize> = Cell::new(0));
