//! All interleavings of threads that look heaps up and one that closes a heap and opens another one in its place.
#![allow(dead_code, reason = "the module has more than these tests call")]

#[path = "../../../durum/tests/loom/asymmetric.rs"]
mod asymmetric;
#[path = "../../src/in_use.rs"]
mod in_use;
#[path = "../../../durum/tests/loom/primitive.rs"]
mod primitive;

use std::ptr;
use std::sync::Arc;

use asymmetric::{fails_without_either_half, without_membarrier};
use in_use::{Place, Presence, PresenceList};
use loom::cell::UnsafeCell;
use loom::thread;

/// What the files name of a crate beside [`primitive`] and [`asymmetric`].
mod error {
    #[derive(Debug)]
    pub(crate) enum Error {}
}

/// Interleavings in which a thread is put aside more often than this against its will are not tried.
fn model(preemptions: usize, body: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(body);
}

/// Has its handle in it, or 0 when it is closed: loom fails if it is closed while somebody reads.
struct Heap(UnsafeCell<usize>);
// SAFETY: read by who found it, changed by who closes it, and loom checks that they never meet.
unsafe impl Sync for Heap {}
// SAFETY: as above.
unsafe impl Send for Heap {}

struct Heaps {
    place: Place<Heap>,
    /// By their handles. Never freed in a run, so that a canary reads what is closed, not what is gone.
    heaps: [Heap; 2],
    presences: PresenceList,
}

const BIT: u64 = 1;
const POOL: u64 = 7;

impl Heaps {
    fn open(&self, handle: usize) {
        let heap = &self.heaps[handle - 1];
        // SAFETY: nobody finds it yet.
        heap.0.with_mut(|open| unsafe { *open = handle });
        let heap = ptr::from_ref(heap).cast_mut();
        self.place.publish(handle, POOL, heap);
    }

    /// # Safety
    /// Found in the place since the words were announced.
    unsafe fn read(&self) -> Option<usize> {
        // SAFETY: null, or open until the words have it no more.
        let heap = unsafe { self.place.heap().as_ref() }?;
        // SAFETY: the same.
        Some(heap.0.with(|handle| unsafe { *handle }))
    }

    /// A function that is given a handle: whether that is open.
    fn look_up(&self, own: &Presence, handle: usize, is_fenced: bool) -> bool {
        own.announce(is_fenced);
        let is_open = self.place.has_handle(handle);
        if is_open {
            own.only(BIT);
            // SAFETY: found.
            assert_eq!(unsafe { self.read() }, Some(handle));
        }
        own.leave();
        is_open
    }

    /// A function that is given an address in the pool, and waits for nobody.
    fn glance(&self, own: &Presence, is_fenced: bool) -> Option<usize> {
        own.announce(is_fenced);
        let found = self.place.has_pool(POOL);
        // SAFETY: found.
        let handle = found.then(|| unsafe { self.read() }).flatten();
        own.leave();
        handle
    }

    fn close(&self, own: Option<&Presence>, is_fenced: bool) {
        let heap = self.place.heap();
        self.place.hide();
        self.presences
            .wait_for_others(own, BIT, is_fenced, |_| panic!("no transactions here"));
        self.place.clear();
        // SAFETY: published by `open`.
        let heap = unsafe { &*heap };
        // SAFETY: nobody uses it.
        heap.0.with_mut(|handle| unsafe { *handle = 0 });
    }
}

fn heaps() -> Arc<Heaps> {
    let heaps = Arc::new(Heaps {
        place: Place::new(),
        heaps: [(); 2].map(|()| Heap(UnsafeCell::new(0))),
        presences: PresenceList::new(),
    });
    heaps.open(1);
    heaps
}

fn one_looks_up_what_is_closed(preemptions: usize, is_fenced: bool) {
    model(preemptions, move || {
        let heaps = heaps();
        let looking = {
            let heaps = heaps.clone();
            thread::spawn(move || {
                // A thread's first look comes with words of its own.
                let own = heaps.presences.take();
                let is_open = heaps.look_up(own, 1, is_fenced);
                assert!(is_open || !heaps.look_up(own, 1, is_fenced));
                own.give_back();
            })
        };
        heaps.close(None, is_fenced);
        looking.join().unwrap();
    });
}

#[test]
fn nobody_uses_a_heap_that_is_closed() {
    one_looks_up_what_is_closed(3, false);
}

#[test]
fn nobody_uses_a_heap_that_is_closed_without_membarrier() {
    without_membarrier(|| one_looks_up_what_is_closed(3, true));
}

#[test]
fn handles_need_both_halves_of_the_fence() {
    fails_without_either_half(|| one_looks_up_what_is_closed(3, false));
}

/// Who has words already looks while another heap is opened in the same place.
#[test]
fn nobody_takes_another_heap_for_the_one_that_was_closed() {
    model(3, || {
        let heaps = heaps();
        let looking = {
            let heaps = heaps.clone();
            thread::spawn(move || {
                let own = heaps.presences.take();
                heaps.look_up(own, 1, false);
                assert!(matches!(heaps.glance(own, false), None | Some(1 | 2)));
                own.give_back();
            })
        };
        let own = heaps.presences.take();
        heaps.close(Some(own), false);
        heaps.open(2);
        looking.join().unwrap();
        assert!(heaps.look_up(own, 2, false) && !heaps.look_up(own, 1, false));
        heaps.close(Some(own), false);
        own.give_back();
    });
}

/// Two threads come and go: each has words of its own, and nobody is missed.
#[test]
fn two_threads_have_words_of_their_own() {
    model(2, || {
        let heaps = heaps();
        let looking = [(); 2].map(|()| {
            let heaps = heaps.clone();
            thread::spawn(move || {
                let own = heaps.presences.take();
                heaps.look_up(own, 1, false);
                ptr::from_ref(own).addr()
            })
        });
        heaps.close(None, false);
        let words = looking.map(|thread| thread.join().unwrap());
        assert_ne!(words[0], words[1], "both are there still");
    });
}
