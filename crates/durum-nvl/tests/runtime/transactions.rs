//! Explicit transactions: all or nothing, with clauses, nested, and rolled back by whatever leaves them.

use std::ptr::null_mut;

use crate::support::*;

fn log<T>(place: *const T) {
    unsafe { __nvl_log(place.cast(), size_of::<T>()) };
}

fn begin(block: *mut TxBlock, kind: i32, heap: *mut durum_nvl::Handle) {
    let heaps = [heap.cast_const()];
    unsafe { __nvl_tx_begin(block, kind, 1, heaps.as_ptr()) };
}

#[test]
fn what_a_jump_leaves_is_rolled_back() {
    for engine in ENGINES {
        let place = Place::new(engine);
        let root = place.node(1);
        place.set_root(root);
        let depth = || unsafe { *__nvl_tx_depth() };
        let mut block = std::mem::MaybeUninit::<TxBlock>::uninit();
        let block = block.as_mut_ptr();
        unsafe {
            for way in 0..2 {
                let other = place.node(2);
                begin(block, 0, place.heap);
                assert_eq!(depth(), 1);
                log(&raw const (*root).value);
                (*root).value = 100;
                store(&raw mut (*root).next, other);
                let new = place.node(7);
                store(&raw mut (*root).other, new);
                assert_eq!((*root).other, new);
                match way {
                    // Told by the place where control came back, or found out when the block begins again.
                    0 => __nvl_tx_unwind(0),
                    _ => {
                        begin(block, 0, place.heap);
                        assert_eq!((*root).value, 1);
                        __nvl_tx_end(block);
                    }
                }
                assert_eq!(depth(), 0);
                assert_eq!(
                    ((*root).value, (*root).next, (*root).other),
                    (1, null_mut(), null_mut())
                );
                assert_eq!(header(other), (0, FRESH | LISTED, 1), "{engine:?}");
            }
        }
    }
}

#[test]
fn a_thread_that_ends_inside_rolls_back() {
    for engine in ENGINES {
        let mut place = Place::new(engine);
        let root = place.node(1);
        place.set_root(root);
        let (heap, at) = (place.heap.addr(), root.addr());
        std::thread::spawn(move || {
            let heap: *mut durum_nvl::Handle = std::ptr::with_exposed_provenance_mut(heap);
            let root: *mut Node = std::ptr::with_exposed_provenance_mut(at);
            let block = Box::leak(Box::new(std::mem::MaybeUninit::<TxBlock>::uninit()));
            begin(block.as_mut_ptr(), 0, heap);
            unsafe {
                log(&raw const (*root).value);
                (*root).value = 5;
                store(&raw mut (*root).next, node(heap, 6));
            }
        })
        .join()
        .unwrap();
        unsafe { assert_eq!(((*root).value, (*root).next), (1, null_mut())) };
        transaction(place.heap, |_| unsafe {
            log(&raw const (*root).value);
            (*root).value = 2;
        });
        place.reopen();
        assert_eq!(unsafe { (*place.root()).value }, 2, "{engine:?}");
    }
}

#[test]
fn inner_levels_become_part_of_the_outer_one() {
    for engine in ENGINES {
        let mut place = Place::new(engine);
        let root = place.node(1);
        place.set_root(root);
        transaction(place.heap, |_| unsafe {
            transaction(place.heap, |block| {
                __nvl_tx_range(block, 1, (&raw const (*root).value).cast(), 1, 8);
                (*root).value = 2;
                store(&raw mut (*root).next, place.node(3));
            });
            assert_eq!(
                strong((*root).next),
                0,
                "counts change with the outermost end"
            );
        });
        assert_eq!(unsafe { strong((*root).next) }, 1);
        let mut outer = std::mem::MaybeUninit::<TxBlock>::uninit();
        begin(outer.as_mut_ptr(), 0, place.heap);
        transaction(place.heap, |_| unsafe {
            store(&raw mut (*root).next, null_mut())
        });
        __nvl_tx_unwind(0);
        unsafe { assert_eq!((*(*root).next).value, 3, "an inner end commits nothing") };
        place.reopen();
        unsafe { assert_eq!((*(*place.root()).next).value, 3, "{engine:?}") };
    }
}

#[test]
fn clauses_announce_their_segments() {
    for engine in ENGINES {
        let mut place = Place::new(engine);
        unsafe {
            let row: *mut i64 = __nvl_alloc(place.heap, 1000, 8, LONG.as_ptr()).cast();
            __nvl_set_root(place.heap, row.cast(), LONG.as_ptr());
            // Backup: no log is needed for stores there, and they come back.
            let mut block = std::mem::MaybeUninit::<TxBlock>::uninit();
            begin(block.as_mut_ptr(), 2, place.heap);
            __nvl_tx_range(block.as_mut_ptr(), 1, row.cast(), 500, 8);
            __nvl_tx_range(block.as_mut_ptr(), 3, row.add(990).cast(), 10, 8);
            __nvl_tx_range(block.as_mut_ptr(), 2, row.add(500).cast(), 100, 8);
            __nvl_tx_range(block.as_mut_ptr(), 1, row.cast(), 0, 8);
            (0..600).for_each(|index| *row.add(index) = -1);
            __nvl_tx_unwind(0);
            assert!((0..500).all(|index| *row.add(index) == 0), "{engine:?}");
            transaction(place.heap, |block| {
                __nvl_tx_range(block, 2, row.cast(), 1000, 8);
                (0..1000).for_each(|index| *row.add(index) = index as i64);
            });
            place.reopen();
            let row: *mut i64 = __nvl_get_root(place.heap, LONG.as_ptr()).cast();
            assert!(
                (0..1000).all(|index| *row.add(index) == index as i64),
                "{engine:?}"
            );
        }
    }
}

/// Stores to a fresh allocation before, in and after the transaction that links it; some of them store what is there
/// already.
#[test]
fn a_fresh_allocation_is_durable_whole_when_it_is_linked() {
    for engine in ENGINES {
        for count in [10usize, 3000, 200_000] {
            let mut place = Place::new(engine);
            unsafe {
                let rows: *mut *mut i64 = __nvl_alloc(place.heap, 2, 8, SLOT.as_ptr()).cast();
                __nvl_set_root(place.heap, rows.cast(), SLOT.as_ptr());
                let row: *mut i64 = __nvl_alloc(place.heap, count, 8, LONG.as_ptr()).cast();
                (0..count).for_each(|index| *row.add(index) = 7);
                // Not linked: no fence, whatever is asked for.
                let before = durum::thread_counters();
                __nvl_persist(row.cast(), count * 8);
                assert_eq!((durum::thread_counters() - before).fences, 0);
                transaction(place.heap, |_| {
                    log(row);
                    log(row.add(count / 2));
                    *row = 7;
                    *row.add(count / 2) = 8;
                    store(rows, row);
                    __nvl_log(row.add(1).cast(), 16);
                    *row.add(1) = 9;
                });
                assert_eq!(header(row), (1, 0, count as u64));
                place.reopen();
                let rows: *mut *mut i64 = __nvl_get_root(place.heap, SLOT.as_ptr()).cast();
                let row = *rows;
                for index in 0..count {
                    let expected = match index {
                        1 => 9,
                        _ if index == count / 2 => 8,
                        _ => 7,
                    };
                    assert_eq!(*row.add(index), expected, "{engine:?} {count} {index}");
                }
            }
        }
    }
}

#[test]
fn stores_to_a_fresh_allocation_come_back_when_their_transaction_does_not_commit() {
    for engine in ENGINES {
        let place = Place::new(engine);
        let (a, b) = (place.node(1), place.node(2));
        let mut block = std::mem::MaybeUninit::<TxBlock>::uninit();
        begin(block.as_mut_ptr(), 0, place.heap);
        unsafe {
            __nvl_log(a.cast(), size_of::<Node>());
            (*a).value = 4;
            store(&raw mut (*a).next, b);
            log(a);
            (*a).value = 5;
            __nvl_tx_unwind(0);
            assert_eq!(((*a).value, (*a).next), (1, null_mut()), "{engine:?}");
            assert_eq!(strong(b), 0);
        }
    }
}
