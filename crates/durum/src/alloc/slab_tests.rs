//! Slabs by themselves, on the processor's atomics. `tests/loom` tries their interleavings.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use durum_format::extent::slab_geometry;

use super::slab::{Class, OFFERED_PART, Slab, bit};

fn slab(element_size: u64) -> Arc<Slab> {
    Slab::new(
        0x1000,
        Class {
            type_id: 7,
            element_size,
        },
        slab_geometry(element_size),
        &[],
        true,
    )
}

/// Whether it is empty now.
fn release(slab: &Slab, index: usize) -> bool {
    let (word, mask) = bit(index);
    slab.release(word, mask, false)
}

#[test]
fn every_element_is_handed_out_once() {
    for element_size in [8, 16, 24, 64, 72, 128, 256] {
        let slab = slab(element_size);
        let mut seen = std::collections::BTreeSet::new();
        while let Some((index, first)) = slab.reserve(false) {
            assert_eq!(first, seen.is_empty());
            let address = slab.element_address(index);
            assert_eq!(slab.index_of(address), Some(index));
            assert_eq!(slab.index_of(address + 1), None);
            assert!(
                address + element_size as usize
                    <= slab.address + slab.geometry.extent_size as usize
            );
            assert!(seen.insert(index));
        }
        assert_eq!(seen.len(), slab.geometry.capacity as usize);
        assert!(!slab.has_room());
        let last = seen.len() - 1;
        for (count, index) in seen.into_iter().enumerate() {
            assert_eq!(release(&slab, index), count == last);
        }
        assert!(slab.is_empty());
    }
}

#[test]
fn a_slab_is_offered_once_enough_of_it_is_free() {
    for element_size in [8, 64, 152, 256] {
        let slab = slab(element_size);
        let mut taken = Vec::new();
        while let Some((index, _)) = slab.reserve(false) {
            taken.push(index);
        }
        let enough = (taken.len() / OFFERED_PART as usize).max(1);
        for (count, index) in taken.into_iter().enumerate() {
            release(&slab, index);
            assert_eq!(slab.wants_listing(), count + 1 == enough, "{count}");
        }
        slab.listed.store(false, Ordering::SeqCst);
        slab.owned.store(true, Ordering::SeqCst);
        assert!(!slab.wants_listing() && !slab.wants_listing_with_any_room());
        // What no commit has made known is its maker's, however much room it has.
        slab.published.store(false, Ordering::SeqCst);
        slab.owned.store(false, Ordering::SeqCst);
        assert!(!slab.wants_listing_with_any_room() && slab.wants_listing());
    }
}

#[test]
fn any_room_is_offered_if_it_is_asked_for() {
    let slab = slab(8);
    while slab.reserve(false).is_some() {}
    assert!(!slab.wants_listing_with_any_room(), "it has none");
    release(&slab, 3);
    assert!(!slab.wants_listing());
    assert!(slab.wants_listing_with_any_room());
    assert!(!slab.wants_listing_with_any_room(), "once");
}

#[test]
fn a_second_free_is_noticed() {
    let slab = slab(32);
    let (index, _) = slab.reserve(false).expect("room");
    assert!(slab.begin_free(index, false));
    assert!(!slab.begin_free(index, false));
    let (word, mask) = bit(index);
    slab.cancel_free(word, mask);
    assert!(slab.begin_free(index, false));
    slab.release(word, mask, false);
    assert!(!slab.begin_free(index, false));
    assert!(!slab.begin_free(index + 1, false), "never allocated");
}

#[test]
fn releases_and_retirements_at_the_same_moment_agree_on_what_is_free() {
    let slab = slab(256);
    // As the puddle counts them: slabs that hold something.
    let occupied = std::sync::atomic::AtomicI64::new(0);
    let until = Instant::now() + Duration::from_millis(500);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while Instant::now() < until {
                if slab.retire() {
                    assert!(!slab.has_room(), "a retired slab has nothing to give");
                    slab.revive();
                }
            }
        });
        while Instant::now() < until {
            for (index, first) in (0..1000).filter_map(|_| slab.reserve(false)) {
                occupied.fetch_add(i64::from(first), Ordering::Relaxed);
                let empty = release(&slab, index);
                occupied.fetch_sub(i64::from(empty), Ordering::Relaxed);
            }
        }
    });
    assert!(slab.is_empty());
    assert_eq!(occupied.into_inner(), 0, "each end was noticed once");
}

#[test]
fn only_an_empty_slab_retires_and_then_nobody_gets_anything() {
    let slab = slab(8);
    let (index, _) = slab.reserve(false).expect("room");
    assert!(!slab.retire());
    assert_eq!(
        slab.reserve(false),
        Some((1, false)),
        "a refused retirement changes nothing"
    );
    release(&slab, 1);
    release(&slab, index);
    assert!(slab.retire());
    assert_eq!(slab.reserve(false), None);
    slab.revive();
    assert!(slab.is_empty());
    assert_eq!(slab.reserve(false), Some((0, true)));
}

/// What plain loads and stores do is what atomic operations do.
#[test]
fn alone_is_no_different() {
    let slabs = [(slab(64), false), (slab(64), true)];
    let same = |[one, other]: [Option<(usize, bool)>; 2]| {
        assert_eq!(one, other);
        one
    };
    let mut taken = Vec::new();
    for step in 0..1000usize {
        if step % 3 < 2 {
            let reserved = slabs.each_ref().map(|(slab, alone)| slab.reserve(*alone));
            taken.extend(same(reserved).map(|(index, _)| index));
        } else {
            let index = taken.swap_remove(step * 7919 % taken.len());
            same(slabs.each_ref().map(|(slab, alone)| {
                assert!(slab.begin_free(index, *alone));
                assert!(!slab.begin_free(index, *alone));
                let (word, mask) = bit(index);
                Some((index, slab.release(word, mask, *alone)))
            }));
        }
    }
    for index in taken {
        same(slabs.each_ref().map(|(slab, alone)| {
            let (word, mask) = bit(index);
            Some((index, slab.release(word, mask, *alone)))
        }));
    }
    assert!(slabs.iter().all(|(slab, _)| slab.is_empty()));
}
