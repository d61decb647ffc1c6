//! The one thread that commits, visitors, and a second one that commits, at the latch of Shadow's checkpoint.

use std::sync::Arc;

use loom::cell::UnsafeCell;
use loom::thread::{self, yield_now};

use crate::asymmetric::{can_fence_all, fails_without_either_half, without_membarrier};
use crate::latch::Latch;
use crate::model;

/// loom fails if two change it at a time.
struct Checkpoint(UnsafeCell<usize>);
// SAFETY: used by who holds the latch only, and loom checks that.
unsafe impl Send for Checkpoint {}

impl Checkpoint {
    fn change(&self) {
        // SAFETY: held.
        self.0.with_mut(|value| unsafe { *value += 1 });
    }
}

fn latch() -> Arc<Latch<Checkpoint>> {
    Arc::new(Latch::new(Checkpoint(UnsafeCell::new(0))))
}

/// What a member does; whether it was alone.
fn commit(latch: &Latch<Checkpoint>) -> bool {
    if let Some(held) = latch.try_alone() {
        held.change();
        return true;
    }
    loop {
        if let Some(held) = latch.try_among_others() {
            held.change();
            return false;
        }
        yield_now();
    }
}

fn total(latch: &Latch<Checkpoint>) -> usize {
    let held = latch.lock();
    // SAFETY: held.
    held.0.with(|value| unsafe { *value })
}

fn a_visitor_comes(preemptions: usize) {
    model(preemptions, || {
        let latch = latch();
        latch.join(true);
        let visitor = {
            let latch = latch.clone();
            thread::spawn(move || latch.lock().change())
        };
        commit(&latch);
        commit(&latch);
        visitor.join().unwrap();
        assert_eq!(commit(&latch), can_fence_all(), "it has gone");
        assert_eq!(total(&latch), 4);
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
fn the_latch_needs_both_halves_of_the_fence() {
    fails_without_either_half(|| a_visitor_comes(3));
}

#[test]
fn a_second_member_never_meets_who_is_alone() {
    model(3, || {
        let latch = latch();
        latch.join(true);
        let other = {
            let latch = latch.clone();
            thread::spawn(move || {
                latch.join(true);
                assert!(!commit(&latch), "two are not alone");
                latch.leave();
            })
        };
        commit(&latch);
        other.join().unwrap();
        assert!(commit(&latch), "it has gone");
        assert_eq!(total(&latch), 3);
    });
}

/// The first member decides that somebody may be alone, while a visitor has come already or comes just then.
#[test]
fn a_visitor_comes_before_the_first_member() {
    model(3, || {
        let latch = latch();
        let visitor = {
            let latch = latch.clone();
            thread::spawn(move || {
                latch.try_lock().is_some_and(|held| {
                    held.change();
                    true
                })
            })
        };
        latch.join(true);
        commit(&latch);
        let visits = usize::from(visitor.join().unwrap());
        assert_eq!(total(&latch), 1 + visits);
    });
}

/// Both are the first, as far as each of them knows.
#[test]
fn two_members_come_at_a_time() {
    model(3, || {
        let latch = latch();
        let other = {
            let latch = latch.clone();
            thread::spawn(move || {
                latch.join(true);
                commit(&latch);
            })
        };
        latch.join(true);
        commit(&latch);
        other.join().unwrap();
        assert!(!commit(&latch), "two are not alone");
        assert_eq!(total(&latch), 3);
    });
}
