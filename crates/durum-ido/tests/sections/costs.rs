//! What operations cost: fences and lines.

use durum_persist::count;

use crate::memory::replace;
use crate::program::{Root, node, own, pop, push, push_in_one, set, set_word};
use crate::support::with_heap;

/// Fences and lines written back of one operation.
fn cost(operation: impl FnOnce()) -> (u64, u64) {
    let before = count::thread_counters();
    operation();
    let cost = count::thread_counters() - before;
    (cost.fences, cost.write_backs)
}

/// The thread's first section makes a place for its records.
fn counted(body: impl FnOnce(*mut Root) + Send) {
    with_heap(|root| {
        unsafe { set(root, 0, 1) };
        body(root);
    });
}

#[test]
fn a_section_of_one_region_takes_three_fences() {
    counted(|root| unsafe {
        // The record, the lines of node and root, the end.
        let fresh = node();
        assert_eq!(cost(|| push_in_one(root, fresh, 7)), (3, 4));
        // Here the record takes two lines.
        assert_eq!(cost(|| set(root, 5, 7)), (3, 4));
    });
}

#[test]
fn a_section_of_one_word_takes_one_fence() {
    counted(|root| unsafe {
        assert_eq!(cost(|| set_word(root, 5, 7)), (1, 1));
        // The next one has a record again.
        assert_eq!(cost(|| set(root, 5, 7)).0, 3);
    });
}

#[test]
fn what_is_owned_takes_a_fence_with_the_section_that_links_it() {
    counted(|root| unsafe {
        let other = node();
        let node = own(node(), 1);
        assert_eq!(cost(|| set_word(root, 5, node)), (2, 2));
        let node = own(other, 2);
        assert_eq!(cost(|| set(root, 5, node)).0, 4);
    });
}

#[test]
fn each_further_region_takes_one_fence() {
    counted(|root| unsafe {
        // The record takes two lines, as it tells what the region before has stored.
        let fresh = node();
        assert_eq!(cost(|| push(root, fresh, 7)), (4, 6));
    });
}

#[test]
fn what_is_freed_costs_nothing_before_the_section_has_ended() {
    counted(|root| unsafe {
        push(root, node(), 7);
        // The nine words of the record take two lines; nv_free is a transaction behind it.
        let (fences, _) = cost(|| _ = pop(root));
        println!("pop with nv_free: {fences} fences");
        assert!(fences >= 3);
    });
}

#[test]
fn a_section_that_stores_nothing_is_free() {
    counted(|root| unsafe {
        assert_eq!(cost(|| _ = pop(root)), (0, 0));
    });
}

#[test]
fn to_take_and_to_free_costs_no_fence() {
    with_heap(|root| unsafe {
        for round in 0..4 {
            // The record takes two lines, the box and the root one each, and the end of the section.
            let push = cost(|| replace(root, 0, 24, 1));
            let pop = cost(|| replace(root, 0, 0, 0));
            println!("{push:?} {pop:?}");
            if round > 0 {
                // What was freed is taken again: no bits change.
                assert_eq!((push, pop), ((3, 5), (3, 4)));
            }
        }
    });
}
