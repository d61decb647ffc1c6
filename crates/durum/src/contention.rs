//! How often a thread found taken a lock that all threads of a pool share.
//!
//! Counted where a lock is taken already, so that taking one that is free costs what it did.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, TryLockError};

use crate::primitive::locked;

static FOUND_TAKEN: AtomicU64 = AtomicU64::new(0);

/// Locks a mutex whose value is whole at every moment.
#[inline]
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    match mutex.try_lock() {
        Ok(guard) => guard,
        Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
        Err(TryLockError::WouldBlock) => wait(mutex),
    }
}

#[cold]
fn wait<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    count();
    locked(mutex)
}

/// A lock was taken already.
#[cold]
pub(crate) fn count() {
    FOUND_TAKEN.fetch_add(1, Ordering::Relaxed);
}

pub(crate) fn found_taken() -> u64 {
    FOUND_TAKEN.load(Ordering::Relaxed)
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_lock_that_is_taken_counts_and_one_that_is_free_does_not() {
        let (mutex, held) = (Mutex::new(0), Barrier::new(2));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut value = lock(&mutex);
                held.wait();
                std::thread::sleep(Duration::from_millis(50));
                *value = 1;
            });
            held.wait();
            let before = found_taken();
            assert_eq!(*lock(&mutex), 1);
            // Other tests of this process may count, too.
            assert!(found_taken() > before);
        });
    }
}
