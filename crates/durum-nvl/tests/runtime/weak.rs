//! Weak pointers: null once their target was freed, whatever happens in between.

use std::ptr::{null, null_mut};

use crate::support::*;

fn load(node: *mut Node) -> *mut Node {
    unsafe { __nvl_load_weak((&raw const (*node).back).cast()).cast() }
}

fn point(node: *mut Node, target: *mut Node) {
    unsafe { __nvl_store_weak((&raw mut (*node).back).cast(), untyped(target)) };
}

#[test]
fn a_weak_pointer_follows_its_target_as_long_as_that_lives() {
    for engine in ENGINES {
        let mut place = Place::new(engine);
        let (parent, child) = (place.node(1), place.node(2));
        unsafe { store(&raw mut (*parent).next, child) };
        place.set_root(parent);
        assert!(load(child).is_null());
        point(child, parent);
        assert_eq!(load(child), parent);
        assert_eq!(strong(parent), 1, "weak pointers do not count");
        place.reopen();
        let parent = place.root();
        unsafe {
            let child = (*parent).next;
            assert_eq!(load(child), parent);
            // The child becomes the root: the parent goes, although the child points to it.
            place.set_root(child);
            assert_eq!(load(child), parent, "it has not gone yet");
        }
        place.reopen();
        let child = place.root();
        assert!(load(child).is_null(), "{engine:?}");
        point(child, child);
        assert_eq!(load(child), child);
        place.set_root(null_mut());
        place.close();
        assert_eq!((objects(&place.path()), leaks(&place.path())), (1, 0));
    }
}

#[test]
fn weak_pointers_into_the_middle_and_many_to_one() {
    for engine in ENGINES {
        let mut place = Place::new(engine);
        unsafe {
            let row: *mut Node =
                __nvl_alloc(place.heap, 10, size_of::<Node>(), NODE.as_ptr()).cast();
            let holders: *mut Node =
                __nvl_alloc(place.heap, 20, size_of::<Node>(), NODE.as_ptr()).cast();
            place.set_root(holders);
            store(&raw mut (*holders).next, row);
            for index in 0..20 {
                point(holders.add(index), row.add(index / 2));
            }
            transaction(place.heap, |_| {
                for index in 0..20 {
                    point(holders.add(index), row.add(9 - index / 2));
                    point(holders.add(index), row.add(index / 2));
                }
            });
            place.reopen();
            let holders = place.root();
            let row = (*holders).next;
            for index in 0..20 {
                assert_eq!(load(holders.add(index)), row.add(index / 2));
            }
            store(&raw mut (*holders).next, null_mut());
            place.reopen();
            let holders = place.root();
            for index in 0..20 {
                assert!(load(holders.add(index)).is_null());
                point(holders.add(index), null_mut());
            }
        }
        place.close();
        assert_eq!(objects(&place.path()), 2, "no proxy is left on {engine:?}");
        place.heap = durum_nvl::Heap::open(&place.path(), &place.options).unwrap();
    }
}

#[test]
fn copies_of_weak_pointers_are_weak_pointers() {
    let mut place = Place::new(durum::Engine::Shadow);
    let (a, b, c) = (place.node(1), place.node(2), place.node(3));
    unsafe {
        place.set_root(a);
        store(&raw mut (*a).next, b);
        store(&raw mut (*b).next, c);
        point(b, c);
        __nvl_copy(
            (&raw mut (*a).back).cast(),
            (&raw const (*b).back).cast(),
            8,
        );
        point(b, null_mut());
        assert_eq!(load(a), c);
        store(&raw mut (*b).next, null_mut());
        place.reopen();
        let a = place.root();
        assert!(load(a).is_null());
        __nvl_store_weak((&raw mut (*a).back).cast(), null());
    }
    place.close();
    assert_eq!(objects(&place.path()), 3);
    place.heap = durum_nvl::Heap::open(&place.path(), &place.options).unwrap();
}
