//! The lock by itself, on the processor's atomics. `tests/loom` tries its interleavings.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use crate::asymmetric::{TURNS_MAX, TURNS_MIN, own_word};
use crate::lock::ReadersWriter;

#[test]
fn readers_never_see_half_of_a_change() {
    let lock = ReadersWriter::new([0u64; 16], true);
    let (reads, done) = (AtomicU64::new(0), AtomicBool::new(false));
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    let value = lock.read();
                    assert!(value.iter().all(|word| *word == value[0]), "{:?}", *value);
                    drop(value);
                    reads.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        for round in 1..=2000 {
            let turn = lock.turn();
            // SAFETY: the first of this turn.
            let mut value = unsafe { turn.write() };
            value.iter_mut().for_each(|word| *word = round);
            if round % 500 == 0 {
                // Long enough that readers sleep.
                thread::sleep(Duration::from_millis(2));
            }
            drop(value);
            if round % 100 == 0 {
                let before = reads.load(Ordering::Relaxed);
                while reads.load(Ordering::Relaxed) == before {
                    thread::yield_now();
                }
            }
        }
        done.store(true, Ordering::Relaxed);
    });
    assert_eq!(lock.read()[3], 2000);
}

/// Changes two numbers that only an exclusion keeps equal.
fn change(lock: &ReadersWriter<(u64, u64)>) -> bool {
    let Some(turn) = lock.try_turn() else {
        return false;
    };
    assert_eq!(lock.read().0, lock.read().1);
    // SAFETY: the first of this turn.
    let mut value = unsafe { turn.write() };
    value.0 += 1;
    std::hint::black_box(&mut *value);
    value.1 += 1;
    assert_eq!(value.0, value.1);
    true
}

#[test]
fn owners_come_and_go() {
    let lock = ReadersWriter::new((0, 0), true);
    let may_be_owned = crate::asymmetric::can_fence_all();
    let changed = AtomicU64::new(0);
    thread::scope(|scope| {
        for thread in 0..3 {
            let (lock, changed) = (&lock, &changed);
            scope.spawn(move || {
                for round in 0..200 {
                    // Long enough alone, now and then, to own it.
                    for _ in 0..100 {
                        changed.fetch_add(u64::from(change(lock)), Ordering::Relaxed);
                    }
                    match (thread + round) % 4 {
                        0 => thread::sleep(Duration::from_micros(300)),
                        1 => {
                            let value = lock.read();
                            assert_eq!(value.0, value.1);
                        }
                        2 => drop(lock.turn()),
                        _ => thread::yield_now(),
                    }
                }
            });
        }
    });
    assert_eq!(lock.read().0, changed.load(Ordering::Relaxed));
    for _ in 0..2 * TURNS_MAX {
        assert!(change(&lock));
    }
    assert_eq!(lock.owner_word() == own_word(), may_be_owned);
    // A turn that may last is never the owner's.
    let turn = lock.turn();
    assert_eq!(lock.owner_word(), 0);
    assert!(lock.try_turn().is_none());
    thread::scope(|scope| {
        scope.spawn(|| assert!(lock.try_turn().is_none() && lock.read().0 > 0));
    });
    drop(turn);
    assert!(lock.try_turn().is_some());
}

#[test]
fn who_comes_waits_for_the_owner() {
    let lock = ReadersWriter::new((0, 0), true);
    for _ in 0..3 * TURNS_MIN {
        change(&lock);
    }
    if lock.owner_word() == 0 {
        return;
    }
    let turn = lock.try_turn().unwrap();
    // SAFETY: the first of this turn.
    let mut value = unsafe { turn.write() };
    thread::scope(|scope| {
        let reader = scope.spawn(|| *lock.read());
        thread::sleep(Duration::from_millis(20));
        assert!(!reader.is_finished());
        *value = (7, 7);
        drop(value);
        drop(turn);
        assert_eq!(reader.join().unwrap(), (7, 7));
    });
    assert_eq!(lock.owner_word(), 0);
}

#[test]
fn where_nobody_may_own_it_nobody_does() {
    let lock = ReadersWriter::new((0, 0), false);
    for _ in 0..2 * TURNS_MAX {
        change(&lock);
    }
    assert_eq!(lock.owner_word(), 0);
}

/// As a comparator would that reads the database which is being changed.
#[test]
fn who_writes_as_the_owner_does_not_read() {
    let lock = ReadersWriter::new((0, 0), true);
    for _ in 0..3 * TURNS_MIN {
        change(&lock);
    }
    if lock.owner_word() == 0 {
        return;
    }
    let turn = lock.try_turn().unwrap();
    // SAFETY: the first of this turn.
    let value = unsafe { turn.write() };
    let read = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| lock.read().0));
    assert!(read.is_err());
    drop(value);
    assert_eq!(lock.read().0, lock.read().1);
}
