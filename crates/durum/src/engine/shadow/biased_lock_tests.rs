//! The biased lock by itself, on the processor's atomics. `tests/loom` tries its interleavings.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use super::biased_lock::BiasedLock;
use crate::asymmetric;

/// Two numbers that only an exclusion keeps equal.
type Pair = (u64, u64);

fn change(pair: &mut Pair) {
    let next = pair.0 + 1;
    pair.0 = next;
    std::hint::black_box(&mut *pair);
    assert_eq!(pair.1 + 1, next);
    pair.1 = next;
}

/// What a commit does: the number of changes made alone.
fn work(lock: &BiasedLock<Pair>, rounds: u64) -> u64 {
    let mut alone = 0;
    for _ in 0..rounds {
        match lock.try_alone() {
            Some(mut pair) => {
                change(&mut pair);
                alone += 1;
            }
            None => loop {
                if let Some(mut pair) = lock.try_among_others() {
                    break change(&mut pair);
                }
                std::thread::yield_now();
            },
        }
    }
    alone
}

#[test]
fn members_and_visitors_come_and_go() {
    let lock = BiasedLock::new((0, 0));
    lock.join(true);
    let rounds = 20_000;
    std::thread::scope(|scope| {
        let member = scope.spawn(|| work(&lock, rounds));
        scope.spawn(|| {
            for turn in 0..100 {
                match turn % 2 == 0 {
                    true => change(&mut lock.lock()),
                    false => while lock.try_lock().map(|mut pair| change(&mut pair)).is_none() {},
                }
                std::thread::yield_now();
            }
        });
        scope.spawn(|| {
            for _ in 0..50 {
                lock.join(true);
                work(&lock, rounds / 50);
                lock.leave();
                std::thread::yield_now();
            }
        });
        member.join().unwrap();
    });
    assert_eq!(*lock.lock(), (2 * rounds + 100, 2 * rounds + 100));
    let is_possible = asymmetric::can_fence_all();
    assert_eq!(work(&lock, 10), if is_possible { 10 } else { 0 });
    lock.join(true);
    assert_eq!(work(&lock, 10), 0, "two are not alone");
    lock.leave();
    assert_eq!(work(&lock, 10), if is_possible { 10 } else { 0 });
    assert_eq!(lock.members(), 1);
}

#[test]
fn a_visitor_waits_for_who_is_alone() {
    let lock = BiasedLock::new((0, 0));
    lock.join(true);
    if !asymmetric::can_fence_all() {
        return;
    }
    let held = lock.try_alone().unwrap();
    std::thread::scope(|scope| {
        let visit = scope.spawn(|| change(&mut lock.lock()));
        std::thread::sleep(Duration::from_millis(20));
        assert!(!visit.is_finished());
        drop(held);
        visit.join().unwrap();
    });
    assert_eq!(lock.lock().0, 1);
}

#[test]
fn where_nobody_may_be_alone_nobody_is() {
    let lock = BiasedLock::new((0, 0));
    lock.join(false);
    assert_eq!(work(&lock, 10), 0);
}

#[test]
fn who_comes_too_late_takes_nothing_away() {
    let lock = BiasedLock::new(());
    let held = lock.lock();
    assert!(lock.try_lock().is_none() && lock.try_among_others().is_none());
    assert!(lock.try_lock().is_none(), "it is still held");
    drop(held);
    assert!(lock.try_lock().is_some());
}

#[test]
fn a_panic_lets_go() {
    let lock = BiasedLock::new(());
    lock.join(true);
    let _ = catch_unwind(AssertUnwindSafe(|| {
        let _held = lock.lock();
        assert!(lock.try_lock().is_none());
        panic!("on purpose");
    }));
    let held = lock.try_lock();
    assert!(held.is_some() && lock.try_lock().is_none());
}
