//! Copies between allocations: pointers in the destination are counted.

use std::ptr::null_mut;

use crate::support::*;

#[test]
fn a_copied_struct_counts_its_pointers() {
    for engine in ENGINES {
        let place = Place::new(engine);
        let (a, b, c, d) = (place.node(1), place.node(2), place.node(3), place.node(4));
        place.set_root(a);
        unsafe {
            store(&raw mut (*a).next, b);
            store(&raw mut (*b).next, c);
            store(&raw mut (*b).other, d);
            // From a node, and from memory of the program.
            __nvl_copy(a.cast(), b.cast(), size_of::<Node>());
            assert_eq!((strong(b), strong(c), strong(d)), (0, 2, 2));
            assert_eq!((*a).value, 2);
            let volatile = Node {
                value: 9,
                next: d,
                other: null_mut(),
                back: 0,
            };
            __nvl_copy(a.cast(), (&raw const volatile).cast(), size_of::<Node>());
            assert_eq!((strong(c), strong(d), (*a).value), (1, 2, 9));
            // Only the value: no transaction, and no fence.
            let before = durum::thread_counters();
            __nvl_copy(a.cast(), b.cast(), 8);
            assert_eq!(durum::thread_counters() - before, durum::Stats::default());
            __nvl_fill(a.cast(), 0, size_of::<Node>());
            assert_eq!((strong(d), (*a).value), (1, 0));
            transaction(place.heap, |_| __nvl_copy(a.cast(), b.cast(), 24));
            assert_eq!((strong(c), strong(d), (*a).value), (2, 2, 2));
        }
    }
}

#[test]
fn overlapping_copies_move_pointers() {
    for engine in ENGINES {
        let place = Place::new(engine);
        unsafe {
            let row: *mut *mut Node = __nvl_alloc(place.heap, 6, 8, SLOT.as_ptr()).cast();
            __nvl_set_root(place.heap, row.cast(), SLOT.as_ptr());
            let nodes: Vec<_> = (0..4).map(|value| place.node(value)).collect();
            for (index, node) in nodes.iter().enumerate() {
                store(row.add(index), *node);
            }
            __nvl_copy(row.add(2).cast(), row.cast(), 32);
            let found: Vec<_> = (0..6).map(|index| (**row.add(index)).value).collect();
            assert_eq!(found, [0, 1, 0, 1, 2, 3]);
            let counts: Vec<_> = nodes.iter().map(|node| strong(*node)).collect();
            assert_eq!(counts, [2, 2, 1, 1], "{engine:?}");
            __nvl_copy(row.cast(), row.add(3).cast(), 24);
            let counts: Vec<_> = nodes.iter().map(|node| strong(*node)).collect();
            assert_eq!(counts, [0, 2, 2, 2], "{engine:?}");
        }
    }
}
