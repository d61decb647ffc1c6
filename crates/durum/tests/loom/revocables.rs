//! Threads whose transactions borrow the open pool, and one who closes it and opens another one.

use std::sync::Arc;

use loom::cell::UnsafeCell;
use loom::sync::atomic::{AtomicUsize, Ordering};
use loom::thread;

use crate::asymmetric::{fails_without_either_half, without_membarrier};
use crate::model;
use crate::revocable::Revocable;

/// loom fails if it is closed, which is to drop it, while somebody uses it.
struct Pool {
    value: UnsafeCell<usize>,
    /// How many are open.
    open: Arc<AtomicUsize>,
}
// SAFETY: changed when it is dropped only, and loom checks that nobody uses it then.
unsafe impl Sync for Pool {}
// SAFETY: as above.
unsafe impl Send for Pool {}

impl Pool {
    fn new(number: usize, open: &Arc<AtomicUsize>) -> Arc<Self> {
        assert_eq!(open.fetch_add(1, Ordering::Relaxed), 0, "one at a time");
        Arc::new(Self {
            value: UnsafeCell::new(number),
            open: open.clone(),
        })
    }

    fn number(&self) -> usize {
        // SAFETY: borrowed.
        self.value.with(|value| unsafe { *value })
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        // SAFETY: nobody has it any more.
        self.value.with_mut(|value| unsafe { *value = 0 });
        self.open.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A thread with so many transactions. None finds a pool that was closed before an earlier one of this thread.
fn transactions(revocable: &Arc<Revocable<Pool>>, times: usize) -> thread::JoinHandle<()> {
    let revocable = revocable.clone();
    thread::spawn(move || {
        let reader = revocable.reader();
        let mut last = 0;
        for _ in 0..times {
            if let Some(pool) = reader.enter() {
                let number = pool.number();
                assert!((last..=2).contains(&number) && number > 0);
                last = number;
                reader.leave();
            }
        }
    })
}

fn close(revocable: &Revocable<Pool>) {
    let mut locked = revocable.lock();
    let given_back = locked.revoke();
    drop(given_back);
    drop(locked);
}

fn a_pool_is_closed(preemptions: usize, threads: &'static [usize], opens_another: bool) {
    model(preemptions, move || {
        let revocable = Arc::new(Revocable::new());
        let open = Arc::new(AtomicUsize::new(0));
        revocable.lock().publish(Pool::new(1, &open));
        let threads: Vec<_> = threads
            .iter()
            .map(|&times| transactions(&revocable, times))
            .collect();
        close(&revocable);
        if opens_another {
            let mut locked = revocable.lock();
            // Refused while a transaction has the first one.
            if !locked.is_in_use() {
                locked.publish(Pool::new(2, &open));
            }
        }
        for thread in threads {
            thread.join().unwrap();
        }
        close(&revocable);
        assert_eq!(open.load(Ordering::Relaxed), 0, "nobody keeps one open");
        assert!(!revocable.lock().is_in_use());
    });
}

#[test]
fn nobody_uses_a_pool_that_is_closed() {
    a_pool_is_closed(3, &[2], false);
}

#[test]
fn nobody_takes_another_pool_for_the_one_that_was_closed() {
    a_pool_is_closed(3, &[2], true);
}

#[test]
fn who_closes_waits_for_neither_of_two() {
    a_pool_is_closed(2, &[1, 1], true);
}

#[test]
fn nobody_uses_a_pool_that_is_closed_without_membarrier() {
    without_membarrier(|| a_pool_is_closed(3, &[2], true));
}

#[test]
fn the_revocable_needs_both_halves_of_the_fence() {
    fails_without_either_half(|| a_pool_is_closed(3, &[2], false));
}
