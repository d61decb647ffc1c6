//! loom's, under the names of `src/primitive.rs`: the one seam, for the models of all crates. Rare paths are common
//! here: limits are small, and who waits lets others run at once.
#![allow(
    unused_imports,
    unused_macros,
    dead_code,
    reason = "no crate's models need all of it"
)]

use std::cell::Cell;
use std::time::Duration;

pub(crate) use loom::cell::UnsafeCell;
pub(crate) use loom::sync::atomic::{
    AtomicBool, AtomicPtr, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence,
};
pub(crate) use loom::sync::{Condvar, Mutex, MutexGuard};
pub(crate) use loom::thread::{Thread, current, park, yield_now};

/// loom's constructors are not `const`.
macro_rules! constructor {
    ($(#[$attribute:meta])* $visibility:vis fn $($rest:tt)*) => {
        $(#[$attribute])*
        $visibility fn $($rest)*
    };
}
pub(crate) use constructor;

pub(crate) const fn limit(_product: usize, in_models: usize) -> usize {
    in_models
}

/// Between two looks. Others may come in between or not: nobody lets them by this.
pub(crate) fn relax() {}

/// loom knows no time: others run meanwhile.
pub(crate) fn sleep(_: Duration) {
    yield_now();
}

/// Waits for another thread, which loom runs meanwhile.
pub(crate) struct Patience;

impl Patience {
    pub(crate) fn new() -> Self {
        Self
    }

    pub(crate) fn wait(&self) {
        yield_now();
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

/// loom knows no time: who waits is woken.
pub(crate) fn waited_for<'a, T>(
    condition: &Condvar,
    guard: MutexGuard<'a, T>,
    _: Duration,
) -> MutexGuard<'a, T> {
    waited(condition, guard)
}

loom::lazy_static! {
    /// The kernel's side of a futex. A model has one word that threads sleep on.
    static ref ASLEEP: (Mutex<()>, Condvar) = (Mutex::new(()), Condvar::new());
}

/// The kernel looks at the word and puts the thread to sleep as one step. What it orders beyond that, loom is told by
/// the mutex: who sleeps has looked at the word anyway.
pub(crate) fn futex_wait(word: &AtomicU32, value: u32) {
    let asleep = locked(&ASLEEP.0);
    if word.load(Ordering::SeqCst) == value {
        drop(waited(&ASLEEP.1, asleep));
    }
}

/// loom knows no time: it passes, or somebody wakes.
pub(crate) fn futex_wait_for(word: &AtomicU32, value: u32, _: Duration) {
    futex_wait(word, value);
}

pub(crate) fn futex_wake_all(_: &AtomicU32) {
    let _one_at_a_time = locked(&ASLEEP.0);
    ASLEEP.1.notify_all();
}

pub(crate) fn futex_wake(_: &AtomicU32) {
    let _one_at_a_time = locked(&ASLEEP.0);
    ASLEEP.1.notify_one();
}

/// loom's threads share those of the system.
pub(crate) fn this_thread() -> usize {
    loom::thread_local!(static PLACE: Box<u8> = Box::new(0));
    PLACE.with(|place| std::ptr::from_ref(&**place).addr())
}

/// Set by each thread of a model ([`be`]).
pub(crate) fn thread_number() -> usize {
    NUMBER.with(Cell::get)
}

pub(crate) fn leased_number() -> usize {
    thread_number()
}

pub(crate) fn be(number: usize) {
    NUMBER.with(|own| own.set(number));
}

loom::thread_local!(static NUMBER: Cell<usize> = Cell::new(0));
