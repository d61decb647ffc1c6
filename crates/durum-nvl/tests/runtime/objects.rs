//! Allocations, roots, heaps: what is there after closing, and what is not.

use std::ptr::null_mut;

use durum_nvl::{Handle, Heap, OpenError};

use crate::support::*;

#[test]
fn what_the_root_leads_to_stays_and_the_rest_goes() {
    for engine in ENGINES {
        let mut place = Place::new(engine);
        assert!(place.root().is_null());
        let head = place.node(1);
        assert_eq!(header(head), (0, FRESH | LISTED, 1));
        assert_eq!(head.addr() % 16, 0);
        let tail = place.node(2);
        let lost = place.node(3);
        unsafe {
            store(&raw mut (*head).next, tail);
            assert_eq!(header(tail).0, 1);
            assert_eq!(header(tail).1, 0, "linked");
            store(&raw mut (*lost).next, tail);
            assert_eq!(strong(tail), 2);
            place.set_root(head);
            assert_eq!(header(head), (1, 0, 1));
            // The same again costs nothing and changes nothing.
            store(&raw mut (*head).next, tail);
            assert_eq!(strong(tail), 2);
        }
        place.reopen();
        let head = place.root();
        unsafe {
            assert_eq!(((*head).value, (*(*head).next).value), (1, 2));
            assert_eq!(strong((*head).next), 1, "the lost node is gone");
        }
        place.close();
        assert_eq!(leaks(&place.path()), 0);
        assert_eq!(objects(&place.path()), 3);
        place.heap = Heap::open(&place.path(), &place.options).unwrap();
        place.set_root(null_mut());
        place.close();
        assert_eq!(objects(&place.path()), 1, "{engine:?}");
    }
}

#[test]
fn allocations_of_all_sizes_are_zeroed_and_found_by_pointers_into_them() {
    for engine in ENGINES {
        let mut place = Place::new(engine);
        unsafe {
            let sizes = [0usize, 1, 3, 20, 1000, 9000, 400_000];
            let rows: *mut *mut i64 =
                __nvl_alloc(place.heap, sizes.len() + 1, 8, SLOT.as_ptr()).cast();
            __nvl_set_root(place.heap, rows.cast(), SLOT.as_ptr());
            for (index, count) in sizes.into_iter().enumerate() {
                let row: *mut i64 = __nvl_alloc(place.heap, count, 8, LONG.as_ptr()).cast();
                assert!((0..count).all(|at| *row.add(at) == 0));
                for at in 0..count {
                    *row.add(at) = at as i64;
                }
                // Into the middle, and behind the end.
                for at in [count / 2, count, 0] {
                    store(rows.add(index), row.add(at));
                    assert_eq!(strong(row), 1, "{engine:?} {count} {at}");
                }
            }
            __nvl_check_same((*rows.add(5)).cast(), (*rows.add(5)).add(9000).cast());
            place.reopen();
            let rows: *mut *mut i64 = __nvl_get_root(place.heap, SLOT.as_ptr()).cast();
            for (index, count) in sizes.into_iter().enumerate() {
                let row = *rows.add(index);
                assert!(
                    (0..count).all(|at| *row.add(at) == at as i64),
                    "{engine:?} {count}"
                );
            }
            __nvl_set_root(place.heap, null_mut(), SLOT.as_ptr());
        }
        place.close();
        assert_eq!(objects(&place.path()), 1);
    }
}

#[test]
fn heaps_that_cannot_be_opened_say_why() {
    let place = Place::new(durum::Engine::Shadow);
    let text = |result: Result<*mut Handle, OpenError>| result.unwrap_err().to_string();
    assert!(text(Heap::open(&place.path(), &place.options)).contains("open already"));
    assert!(text(Heap::create(&place.path(), 0, 0, &place.options)).contains("heap"));
    let nowhere = place.dir.path().join("nowhere");
    assert!(text(Heap::open(&nowhere, &place.options)).contains("nowhere"));
    assert!(text(Heap::open(&place.path().join("second"), &place.options)).contains("second"));
}

#[test]
fn a_store_may_have_several_heaps_and_a_transaction_all_of_them() {
    for engine in [durum::Engine::Shadow, durum::Engine::Hybrid] {
        let mut place = Place::new(engine);
        let path = place.path().join("second");
        let second = Heap::create(&path, 1 << 20, 0o640, &place.options).unwrap();
        let (a, b) = (place.node(1), node(second, 2));
        place.set_root(a);
        unsafe {
            __nvl_set_root(second, b.cast(), NODE.as_ptr());
            let mut block = std::mem::MaybeUninit::<TxBlock>::uninit();
            let heaps = [place.heap.cast_const(), second.cast_const()];
            __nvl_tx_begin(block.as_mut_ptr(), 0, 2, heaps.as_ptr());
            for (heap, node) in [(place.heap, a), (second, b)] {
                __nvl_log((&raw const (*node).value).cast(), 8);
                (*node).value += 10;
                store(&raw mut (*node).next, crate::support::node(heap, 5));
            }
            __nvl_tx_end(block.as_mut_ptr());
            nvl_close(second);
            place.reopen();
            let second = Heap::open(&path, &place.options).unwrap();
            let b: *mut Node = __nvl_get_root(second, NODE.as_ptr()).cast();
            let a = place.root();
            assert_eq!(((*a).value, (*b).value), (11, 12));
            assert_eq!(((*(*a).next).value, (*(*b).next).value), (5, 5));
            nvl_close(second);
        }
    }
}

#[test]
fn modes_are_those_of_open() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    for (mode, expected) in [(0, 0o700), (0o644, 0o755), (0o660, 0o770)] {
        let path = dir.path().join(format!("{mode}"));
        let heap = Heap::create(&path, 0, mode, &options(durum::Engine::Shadow)).unwrap();
        let found = std::fs::metadata(&path).unwrap().permissions().mode() & 0o777;
        assert_eq!(found, expected);
        unsafe { nvl_close(heap) };
    }
}
