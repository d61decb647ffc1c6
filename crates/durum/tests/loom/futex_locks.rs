//! Threads that lock a `PMutex` in turn.

use std::sync::Arc;

use loom::cell::UnsafeCell;
use loom::thread;

use crate::futex_lock::FutexLock;
use crate::model;

/// loom fails if two threads have it at a time, and if one sleeps for ever.
struct Shared {
    lock: FutexLock,
    value: UnsafeCell<usize>,
}
// SAFETY: `value` is used by who has the lock, and loom checks that.
unsafe impl Sync for Shared {}
// SAFETY: as above.
unsafe impl Send for Shared {}

impl Shared {
    fn change(&self) {
        if !self.lock.try_lock(0) {
            self.lock.lock_slowly(0);
        }
        // SAFETY: locked.
        self.value.with_mut(|value| unsafe { *value += 1 });
        self.lock.unlock(0);
    }
}

fn threads_take_turns(preemptions: usize, others: &'static [usize], times: usize) {
    model(preemptions, move || {
        let shared = Arc::new(Shared {
            lock: FutexLock::default(),
            value: UnsafeCell::new(0),
        });
        let threads: Vec<_> = others
            .iter()
            .map(|&times| {
                let shared = shared.clone();
                thread::spawn(move || (0..times).for_each(|_| shared.change()))
            })
            .collect();
        (0..times).for_each(|_| shared.change());
        for thread in threads {
            thread.join().unwrap();
        }
        let changes = times + others.iter().sum::<usize>();
        // SAFETY: the others have ended.
        assert_eq!(shared.value.with(|value| unsafe { *value }), changes);
    });
}

#[test]
fn two_threads_take_turns() {
    threads_take_turns(3, &[2], 2);
}

/// Two may sleep at a time, and each call wakes one.
#[test]
fn nobody_sleeps_for_ever() {
    threads_take_turns(3, &[1, 1], 1);
}
