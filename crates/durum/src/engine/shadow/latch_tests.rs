//! The latch by itself, on the processor's atomics. `tests/loom` tries its interleavings.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use super::latch::Latch;
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
fn work(latch: &Latch<Pair>, rounds: u64) -> u64 {
    let mut alone = 0;
    for _ in 0..rounds {
        match latch.try_alone() {
            Some(mut pair) => {
                change(&mut pair);
                alone += 1;
            }
            None => loop {
                if let Some(mut pair) = latch.try_among_others() {
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
    let latch = Latch::new((0, 0));
    latch.join(true);
    let rounds = 20_000;
    std::thread::scope(|scope| {
        let member = scope.spawn(|| work(&latch, rounds));
        scope.spawn(|| {
            for turn in 0..100 {
                match turn % 2 == 0 {
                    true => change(&mut latch.lock()),
                    false => while latch.try_lock().map(|mut pair| change(&mut pair)).is_none() {},
                }
                std::thread::yield_now();
            }
        });
        scope.spawn(|| {
            for _ in 0..50 {
                latch.join(true);
                work(&latch, rounds / 50);
                latch.leave();
                std::thread::yield_now();
            }
        });
        member.join().unwrap();
    });
    assert_eq!(*latch.lock(), (2 * rounds + 100, 2 * rounds + 100));
    let is_possible = asymmetric::can_fence_all();
    assert_eq!(work(&latch, 10), if is_possible { 10 } else { 0 });
    latch.join(true);
    assert_eq!(work(&latch, 10), 0, "two are not alone");
    latch.leave();
    assert_eq!(work(&latch, 10), if is_possible { 10 } else { 0 });
    assert_eq!(latch.members(), 1);
}

#[test]
fn a_visitor_waits_for_who_is_alone() {
    let latch = Latch::new((0, 0));
    latch.join(true);
    if !asymmetric::can_fence_all() {
        return;
    }
    let held = latch.try_alone().unwrap();
    std::thread::scope(|scope| {
        let visit = scope.spawn(|| change(&mut latch.lock()));
        std::thread::sleep(Duration::from_millis(20));
        assert!(!visit.is_finished());
        drop(held);
        visit.join().unwrap();
    });
    assert_eq!(latch.lock().0, 1);
}

#[test]
fn where_nobody_may_be_alone_nobody_is() {
    let latch = Latch::new((0, 0));
    latch.join(false);
    assert_eq!(work(&latch, 10), 0);
}

#[test]
fn who_comes_too_late_takes_nothing_away() {
    let latch = Latch::new(());
    let held = latch.lock();
    assert!(latch.try_lock().is_none() && latch.try_among_others().is_none());
    assert!(latch.try_lock().is_none(), "it is still held");
    drop(held);
    assert!(latch.try_lock().is_some());
}

#[test]
fn a_panic_lets_go() {
    let latch = Latch::new(());
    latch.join(true);
    let _ = catch_unwind(AssertUnwindSafe(|| {
        let _held = latch.lock();
        assert!(latch.try_lock().is_none());
        panic!("on purpose");
    }));
    let held = latch.try_lock();
    assert!(held.is_some() && latch.try_lock().is_none());
}
