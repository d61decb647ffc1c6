//! What lock-free code of the workspace stands on: the system's atomics, mutexes and threads.
//!
//! This is the one seam for loom. Code that is to be tried names `crate::primitive` and nothing of the system's. The
//! tests of a crate compile the same files once more, with `crates/durum/tests/loom/primitive.rs` under this name: it
//! has the same names, and loom behind them. docs/how-to/testing.md lists what is tried so.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
pub use std::hint::spin_loop as relax;
use std::sync::PoisonError;
pub use std::sync::atomic::{
    AtomicBool, AtomicPtr, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence,
};
pub use std::sync::{Condvar, Mutex, MutexGuard};
pub use std::thread::{Thread, current, park, sleep, yield_now};
use std::time::Duration;

use rustix::thread::futex;

/// A constructor that is `const`, for what is static. Those of loom are not, so there it is a function as any other.
#[doc(hidden)]
#[macro_export]
macro_rules! __constructor {
    ($(#[$attribute:meta])* $visibility:vis fn $($rest:tt)*) => {
        $(#[$attribute])*
        $visibility const fn $($rest)*
    };
}
#[doc(hidden)]
pub use __constructor as constructor;

/// What one thread at a time uses, by other means than a lock of its own.
#[derive(Debug)]
pub struct UnsafeCell<T>(std::cell::UnsafeCell<T>);

impl<T> UnsafeCell<T> {
    /// A place with a value.
    pub const fn new(value: T) -> Self {
        Self(std::cell::UnsafeCell::new(value))
    }

    /// As loom's, which sees whether one reads while another one writes.
    #[inline(always)]
    pub fn with<R>(&self, body: impl FnOnce(*const T) -> R) -> R {
        body(self.0.get())
    }

    /// As loom's, which sees whether two threads are here at a time.
    #[inline(always)]
    pub fn with_mut<R>(&self, body: impl FnOnce(*mut T) -> R) -> R {
        body(self.0.get())
    }
}

/// A limit of the product. In models it is the second one, so that what is rare in the product is common there.
pub const fn limit(product: usize, _in_models: usize) -> usize {
    product
}

/// Waits for somebody who wakes nobody: at first it looks often, later it lets others run.
#[derive(Debug)]
pub struct Patience(crossbeam_utils::Backoff);

impl Patience {
    /// For one wait.
    pub fn new() -> Self {
        Self(crossbeam_utils::Backoff::new())
    }

    /// Between two looks.
    pub fn wait(&self) {
        match self.0.is_completed() {
            false => self.0.snooze(),
            // Somebody who takes their time, or does not run: let them.
            true => sleep(Duration::from_micros(50)),
        }
    }
}

impl Default for Patience {
    fn default() -> Self {
        Self::new()
    }
}

/// Sequentially consistent operations need no fence between them.
#[inline(always)]
pub fn order() {}

/// Locks a mutex that guards nothing a panic could leave half done.
pub fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits on a condition variable, as [`locked`] locks.
pub fn waited<'a, T>(condition: &Condvar, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
    condition
        .wait(guard)
        .unwrap_or_else(PoisonError::into_inner)
}

/// The same, for at most so long.
pub fn waited_for<'a, T>(
    condition: &Condvar,
    guard: MutexGuard<'a, T>,
    timeout: Duration,
) -> MutexGuard<'a, T> {
    let waited = condition.wait_timeout(guard, timeout);
    waited.unwrap_or_else(PoisonError::into_inner).0
}

/// Sleeps if the word still has this value, until [`futex_wake`]. It may return for no reason at all.
pub fn futex_wait(word: &AtomicU32, value: u32) {
    // Interrupted, or changed before it slept: the caller looks again.
    let _ = futex::wait(word, futex::Flags::PRIVATE, value, None);
}

/// Wakes one who sleeps on the word, if anybody does.
pub fn futex_wake(word: &AtomicU32) {
    // It fails only for a bad address.
    let _ = futex::wake(word, futex::Flags::PRIVATE, 1);
}

/// As [`futex_wait`], for so long at most.
pub fn futex_wait_for(word: &AtomicU32, value: u32, time: Duration) {
    let timeout = futex::Timespec::try_from(time).ok();
    let _ = futex::wait(word, futex::Flags::PRIVATE, value, timeout.as_ref());
}

/// Wakes all who sleep on the word.
pub fn futex_wake_all(word: &AtomicU32) {
    let _ = futex::wake(word, futex::Flags::PRIVATE, i32::MAX as u32);
}

/// A number that no other thread has that is alive; not 0.
pub fn this_thread() -> usize {
    thread_local!(static PLACE: u8 = const { 0 });
    PLACE.with(|place| std::ptr::from_ref(place).addr())
}

/// A small number of this thread's, which no other has had.
#[inline]
pub fn thread_number() -> usize {
    use std::cell::Cell;
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local!(static NUMBER: Cell<usize> = const { Cell::new(usize::MAX) });
    NUMBER.with(|number| {
        if number.get() == usize::MAX {
            number.set(NEXT.fetch_add(1, Ordering::Relaxed));
        }
        number.get()
    })
}

/// Numbers that are leased to threads.
static LEASES: Mutex<Numbers> = Mutex::new(Numbers {
    given_back: BinaryHeap::new(),
    next: 0,
});

struct Numbers {
    given_back: BinaryHeap<Reverse<usize>>,
    /// The lowest that nobody ever had.
    next: usize,
}

impl Numbers {
    /// The lowest that nobody has.
    fn take(&mut self) -> usize {
        let given_back = self.given_back.pop().map(|Reverse(number)| number);
        given_back.unwrap_or_else(|| {
            self.next += 1;
            self.next - 1
        })
    }

    fn give_back(&mut self, number: usize) {
        self.given_back.push(Reverse(number));
    }
}

/// A thread's number, given back when it ends.
struct Lease(usize);

impl Lease {
    fn new() -> Self {
        Self(locked(&LEASES).take())
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        // In a forked child it may be held by a thread that is not there. Then the number is lost.
        if let Ok(mut numbers) = LEASES.try_lock() {
            numbers.give_back(self.0);
        }
    }
}

/// A number of this thread's which no other living one has, so there are no more of them than threads at a time. A
/// thread that is ending may share 0.
#[inline]
pub fn leased_number() -> usize {
    use std::cell::Cell;
    thread_local! {
        static LEASE: Lease = Lease::new();
        // The number in `LEASE`, plus one; 0 before it was asked for. Without destructor, so cheap.
        static NUMBER: Cell<usize> = const { Cell::new(0) };
    }
    #[cold]
    fn lease() -> usize {
        let number = LEASE.try_with(|lease| lease.0).unwrap_or(0);
        NUMBER.set(number + 1);
        number
    }
    match NUMBER.get() {
        0 => lease(),
        number => number - 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Who looks at all that have one looks at no more than have lived at once.
    #[test]
    fn the_lowest_number_is_given_first() {
        let mut numbers = Numbers {
            given_back: BinaryHeap::new(),
            next: 0,
        };
        assert_eq!([(); 4].map(|()| numbers.take()), [0, 1, 2, 3]);
        for number in [1, 3, 0] {
            numbers.give_back(number);
        }
        assert_eq!([(); 4].map(|()| numbers.take()), [0, 1, 3, 4]);
    }

    #[test]
    fn a_number_goes_to_the_next_thread_when_its_thread_ends() {
        let taken = || std::thread::spawn(leased_number).join().unwrap();
        let (first, second) = (taken(), taken());
        // Other tests take numbers meanwhile, but not as many as this would use up.
        let most = (0..1000).map(|_| taken()).max().unwrap();
        assert!(most < first.max(second) + 200, "{most}");
    }
}
