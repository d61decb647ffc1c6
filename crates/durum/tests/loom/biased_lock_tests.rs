//! The one thread that commits, visitors, and a second one that commits, at the lock of Shadow's checkpoint.

use std::sync::Arc;

use loom::cell::UnsafeCell;
use loom::thread::{self, yield_now};

use crate::asymmetric::{can_fence_all, fails_without_either_half, without_membarrier};
use crate::biased_lock::BiasedLock;
use crate::model;

/// loom fails if two change it at a time.
struct Checkpoint(UnsafeCell<usize>);
// SAFETY: used by who holds the lock only, and loom checks that.
unsafe impl Send for Checkpoint {}

impl Checkpoint {
    fn change(&self) {
        // SAFETY: held.
        self.0.with_mut(|value| unsafe { *value += 1 });
    }
}

fn lock() -> Arc<BiasedLock<Checkpoint>> {
    Arc::new(BiasedLock::new(Checkpoint(UnsafeCell::new(0))))
}

/// What a member does; whether it was alone.
fn commit(lock: &BiasedLock<Checkpoint>) -> bool {
    if let Some(held) = lock.try_alone() {
        held.change();
        return true;
    }
    loop {
        if let Some(held) = lock.try_among_others() {
            held.change();
            return false;
        }
        yield_now();
    }
}

fn total(lock: &BiasedLock<Checkpoint>) -> usize {
    let held = lock.lock();
    // SAFETY: held.
    held.0.with(|value| unsafe { *value })
}

fn a_visitor_comes(preemptions: usize) {
    model(preemptions, || {
        let lock = lock();
        lock.join(true);
        let visitor = {
            let lock = lock.clone();
            thread::spawn(move || lock.lock().change())
        };
        commit(&lock);
        commit(&lock);
        visitor.join().unwrap();
        assert_eq!(commit(&lock), can_fence_all(), "it has gone");
        assert_eq!(total(&lock), 4);
    });
}

#[test]
fn nobody_is_alone_without_membarrier() {
    without_membarrier(|| a_visitor_comes(3));
}

#[test]
fn a_visitor_never_meets_who_is_alone() {
    a_visitor_comes(3);
}

#[test]
fn the_lock_needs_both_halves_of_the_fence() {
    fails_without_either_half(|| a_visitor_comes(3));
}

#[test]
fn a_second_member_never_meets_who_is_alone() {
    model(3, || {
        let lock = lock();
        lock.join(true);
        let other = {
            let lock = lock.clone();
            thread::spawn(move || {
                lock.join(true);
                assert!(!commit(&lock), "two are not alone");
                lock.leave();
            })
        };
        commit(&lock);
        other.join().unwrap();
        assert!(commit(&lock), "it has gone");
        assert_eq!(total(&lock), 3);
    });
}

/// The first member decides that somebody may be alone, while a visitor has come already or comes just then.
#[test]
fn a_visitor_comes_before_the_first_member() {
    model(3, || {
        let lock = lock();
        let visitor = {
            let lock = lock.clone();
            thread::spawn(move || {
                lock.try_lock().is_some_and(|held| {
                    held.change();
                    true
                })
            })
        };
        lock.join(true);
        commit(&lock);
        let visits = usize::from(visitor.join().unwrap());
        assert_eq!(total(&lock), 1 + visits);
    });
}

/// Both are the first, as far as each of them knows.
#[test]
fn two_members_come_at_a_time() {
    model(3, || {
        let lock = lock();
        let other = {
            let lock = lock.clone();
            thread::spawn(move || {
                lock.join(true);
                commit(&lock);
            })
        };
        lock.join(true);
        commit(&lock);
        other.join().unwrap();
        assert!(!commit(&lock), "two are not alone");
        assert_eq!(total(&lock), 3);
    });
}
