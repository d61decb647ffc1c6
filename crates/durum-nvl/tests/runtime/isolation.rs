//! Heaps for concurrent use: transactions that name the same segments come one after the other.

use std::sync::atomic::{AtomicPtr, Ordering};

use crate::support::*;

/// Two accounts, in whatever order a thread names them; a reader sees their sum.
#[test]
fn transactions_serialize_and_none_waits_for_ever() {
    for engine in ENGINES {
        let mut place = Place::new(engine);
        unsafe { nvl_set_concurrent(place.heap, 1) };
        let row: *mut i64 = unsafe { __nvl_alloc(place.heap, 64, 8, LONG.as_ptr()).cast() };
        unsafe {
            __nvl_set_root(place.heap, row.cast(), LONG.as_ptr());
            transaction(place.heap, |block| {
                __nvl_tx_range(block, 1, row.cast(), 64, 8);
                (*row, *row.add(63)) = (1000, 1000);
            });
        }
        let (heap, shared) = (AtomicPtr::new(place.heap), AtomicPtr::new(row));
        std::thread::scope(|scope| {
            for thread in 0..4usize {
                let (heap, shared) = (&heap, &shared);
                scope.spawn(move || {
                    let heap = heap.load(Ordering::Relaxed);
                    let row = shared.load(Ordering::Relaxed);
                    for round in 0..300 {
                        let ends = [row, unsafe { row.add(63) }];
                        let (from, to) =
                            (ends[(thread + round) % 2], ends[(thread + round + 1) % 2]);
                        transaction(heap, |block| unsafe {
                            if thread == 3 {
                                __nvl_tx_range(block, 3, from.cast(), 1, 8);
                                __nvl_tx_range(block, 3, to.cast(), 1, 8);
                                let sum = from.read_volatile() + to.read_volatile();
                                assert_eq!(sum, 2000, "{engine:?}");
                                return;
                            }
                            __nvl_tx_range(block, 1, from.cast(), 1, 8);
                            __nvl_tx_range(block, 1, to.cast(), 1, 8);
                            let (a, b) = (from.read_volatile(), to.read_volatile());
                            from.write_volatile(a - 1);
                            if round % 16 == 0 {
                                std::thread::yield_now();
                            }
                            to.write_volatile(b + 1);
                        });
                    }
                });
            }
        });
        unsafe {
            assert_eq!(*row + *row.add(63), 2000);
            place.reopen();
            let row: *mut i64 = __nvl_get_root(place.heap, LONG.as_ptr()).cast();
            assert_eq!(*row + *row.add(63), 2000, "{engine:?}");
        }
    }
}

/// Three segments in a circle of threads, each of which wants the next one.
#[test]
fn circles_are_broken() {
    let place = Place::new(durum::Engine::Shadow);
    unsafe { nvl_set_concurrent(place.heap, 1) };
    let row: *mut i64 = unsafe { __nvl_alloc(place.heap, 3, 8, LONG.as_ptr()).cast() };
    unsafe { __nvl_set_root(place.heap, row.cast(), LONG.as_ptr()) };
    let (heap, shared) = (AtomicPtr::new(place.heap), AtomicPtr::new(row));
    std::thread::scope(|scope| {
        for thread in 0..3usize {
            let (heap, shared) = (&heap, &shared);
            scope.spawn(move || {
                let row = shared.load(Ordering::Relaxed);
                for _ in 0..400 {
                    transaction(heap.load(Ordering::Relaxed), |block| unsafe {
                        let at = |more: usize| row.add((thread + more) % 3);
                        __nvl_tx_range(block, 1, at(0).cast(), 1, 8);
                        std::thread::yield_now();
                        __nvl_tx_range(block, 1, at(1).cast(), 1, 8);
                        for more in 0..2 {
                            at(more).write_volatile(at(more).read_volatile() + 1);
                        }
                    });
                }
            });
        }
    });
    let sum: i64 = (0..3).map(|index| unsafe { *row.add(index) }).sum();
    assert_eq!(sum, 2400);
}
