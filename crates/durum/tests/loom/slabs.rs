//! The thread that reserves elements of a slab, others that free them, one that takes the slab out of use, and the list
//! of slabs with room.

use std::sync::Arc;

use durum_format::extent::SlabGeometry;
use loom::cell::UnsafeCell;
use loom::sync::atomic::{AtomicIsize, AtomicUsize, Ordering};
use loom::thread;

use crate::model;
use crate::slab::{Class, Slab, bit};

const ELEMENTS: usize = 2;

struct Shared {
    slab: Arc<Slab>,
    /// loom fails if two threads have the same one at a time.
    elements: [UnsafeCell<usize>; ELEMENTS],
    /// As a puddle counts them: slabs in which something is.
    occupied: AtomicIsize,
    /// How often the slab is in the list.
    listed: AtomicUsize,
}
// SAFETY: an element is used by who has reserved it, and loom checks that.
unsafe impl Sync for Shared {}
// SAFETY: as above.
unsafe impl Send for Shared {}

impl Shared {
    fn new() -> Arc<Self> {
        let geometry = SlabGeometry {
            extent_size: 4096,
            capacity: ELEMENTS as u64,
            data_offset: 64,
            bitmap_words: 1,
        };
        let class = Class {
            type_id: 7,
            element_size: 1024,
        };
        let slab = Slab::new(0x1000, class, geometry, &[], true);
        slab.owned.store(true, Ordering::SeqCst);
        Arc::new(Self {
            slab,
            elements: [(); ELEMENTS].map(|()| UnsafeCell::new(0)),
            occupied: AtomicIsize::new(0),
            listed: AtomicUsize::new(0),
        })
    }

    fn reserve(&self) -> Option<usize> {
        let (index, first) = self.slab.reserve(false)?;
        self.occupied.fetch_add(first.into(), Ordering::Relaxed);
        // SAFETY: reserved.
        self.elements[index].with_mut(|element| unsafe { *element += 1 });
        Some(index)
    }

    /// As a commit that has freed it.
    fn free(&self, index: usize) {
        assert!(self.slab.begin_free(index, false), "it is live");
        // SAFETY: allocated, and freed by this thread.
        self.elements[index].with_mut(|element| unsafe { *element += 1 });
        let (word, mask) = bit(index);
        let empty = self.slab.release(word, mask, false);
        self.occupied.fetch_sub(empty.into(), Ordering::Relaxed);
        if self.slab.wants_listing() {
            self.listed.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn disown(&self) {
        if self.slab.disown() {
            self.listed.fetch_add(1, Ordering::Relaxed);
        }
    }
}

#[test]
fn an_element_belongs_to_one_thread_at_a_time() {
    model(3, || {
        let shared = Shared::new();
        let taken = [(); ELEMENTS].map(|()| shared.reserve().expect("room"));
        let freeing = {
            let shared = shared.clone();
            thread::spawn(move || taken.into_iter().for_each(|index| shared.free(index)))
        };
        let again = [shared.reserve(), shared.reserve()];
        freeing.join().unwrap();
        again
            .into_iter()
            .flatten()
            .for_each(|index| shared.free(index));
        assert!(shared.slab.is_empty());
        assert_eq!(
            shared.occupied.load(Ordering::Relaxed),
            0,
            "each end was noticed once"
        );
    });
}

#[test]
fn one_of_two_frees_of_an_object_is_refused() {
    model(3, || {
        let shared = Shared::new();
        let index = shared.reserve().expect("room");
        let other = {
            let shared = shared.clone();
            thread::spawn(move || shared.slab.begin_free(index, false))
        };
        let is_first = shared.slab.begin_free(index, false);
        assert_ne!(is_first, other.join().unwrap());
    });
}

#[test]
fn who_takes_an_empty_slab_out_of_use_agrees_with_who_uses_it() {
    model(3, || {
        let shared = Shared::new();
        let using = {
            let shared = shared.clone();
            thread::spawn(move || {
                for index in (0..2).filter_map(|_| shared.reserve()) {
                    shared.free(index);
                }
            })
        };
        if shared.slab.retire() {
            assert!(!shared.slab.has_room(), "it has nothing to give");
            shared.slab.revive();
        }
        using.join().unwrap();
        assert!(shared.slab.is_empty());
        assert_eq!(
            shared.occupied.load(Ordering::Relaxed),
            0,
            "each end was noticed once"
        );
    });
}

#[test]
fn a_slab_out_of_use_gives_nothing() {
    model(3, || {
        let shared = Shared::new();
        let index = shared.reserve().expect("room");
        let retiring = {
            let shared = shared.clone();
            thread::spawn(move || shared.slab.retire())
        };
        shared.free(index);
        let again = shared.reserve();
        let is_retired = retiring.join().unwrap();
        assert!(!is_retired || again.is_none());
        // Whoever made it empty was told.
        let left = isize::from(again.is_some());
        assert_eq!(shared.occupied.load(Ordering::Relaxed), left);
    });
}

/// The owner leaves a full slab while another thread frees an element.
#[test]
fn a_slab_with_room_is_listed_once() {
    model(3, || {
        let shared = Shared::new();
        let [first, second] = [(); ELEMENTS].map(|()| shared.reserve().expect("room"));
        let freeing = [first, second].map(|index| {
            let shared = shared.clone();
            thread::spawn(move || shared.free(index))
        });
        shared.disown();
        for thread in freeing {
            thread.join().unwrap();
        }
        assert_eq!(shared.listed.load(Ordering::Relaxed), 1);
    });
}

/// A slab that was filled since it was listed finds an owner that gets nothing, while another thread frees an element.
#[test]
fn a_slab_that_was_listed_for_nothing_is_listed_again() {
    model(3, || {
        let shared = Shared::new();
        let taken = [(); ELEMENTS].map(|()| shared.reserve().expect("room"));
        shared.slab.listed.store(true, Ordering::SeqCst);
        shared.slab.owned.store(false, Ordering::SeqCst);
        let freeing = {
            let shared = shared.clone();
            thread::spawn(move || shared.free(taken[0]))
        };
        // As `listed_element`.
        shared.slab.owned.store(true, Ordering::SeqCst);
        shared.slab.listed.store(false, Ordering::SeqCst);
        let got = shared.reserve();
        if got.is_none() {
            shared.disown();
        }
        freeing.join().unwrap();
        let listed = shared.listed.load(Ordering::Relaxed);
        assert!(listed >= usize::from(got.is_none()), "nobody finds it");
        // It may be in the list beside its owner, too (`Slab::wants_listing`).
        assert!(listed <= 1);
    });
}
