//! All interleavings of a few threads in the protocols of this crate, as docs/how-to/testing.md lists them.
//!
//! They stand on loom's atomics, mutex and cells ([`primitive`]), do not spin before they sleep, and have one counter
//! in the first block of the read indicator and of each version, so that rare paths are common. Those that stand on the
//! asymmetric fence have one fence on each side ([`asymmetric`]), and canaries that leave either out.
#![allow(
    dead_code,
    clippy::modulo_one,
    clippy::reversed_empty_ranges,
    reason = "the modules have more than these tests call, nobody spins here, and there is one counter"
)]

#[path = "../../src/combine/announce.rs"]
mod announce;
mod asymmetric;
#[path = "../../src/engine/shadow/biased_lock.rs"]
mod biased_lock;
mod biased_lock_tests;
mod copies;
#[path = "../../src/typed/count_word.rs"]
mod count_word;
mod counted;
#[path = "../../src/fair_lock.rs"]
mod fair_lock;
mod fair_lock_tests;
#[path = "../../src/futex_lock.rs"]
mod futex_lock;
mod futex_locks;
#[path = "../../src/gate.rs"]
mod gate;
mod gate_tests;
#[path = "../../src/engine/twin/left_right.rs"]
mod left_right;
#[path = "../../src/engine/shadow/log/missing.rs"]
mod missing;
mod owned_updates;
#[path = "../../src/engine/shadow/log/owners.rs"]
mod owners;
mod owners_tests;
mod primitive;
#[path = "../../src/typed/revocable.rs"]
mod revocable;
mod revocables;
#[path = "../../src/alloc/slab.rs"]
mod slab;
mod slabs;
#[path = "../../src/engine/shadow/log/stamps.rs"]
mod stamps;
mod stamps_tests;

use std::sync::Arc;

use announce::{Announcement, Announcements, Chain};
use asymmetric::ReadersWriter;
use loom::cell::UnsafeCell;
use loom::thread;
use primitive::be;

/// The table of owners, which is a mapping in the product.
mod line_owners {
    use std::ops::Range;

    use crate::primitive::{AtomicU8, Ordering};

    #[derive(Debug)]
    pub(crate) struct LineOwners(Vec<AtomicU8>);

    impl LineOwners {
        pub(crate) fn new(space: Range<usize>) -> Option<Self> {
            Some(Self(space.step_by(64).map(|_| AtomicU8::new(0)).collect()))
        }

        pub(crate) fn of(&self, address: usize) -> &AtomicU8 {
            &self.0[address / 64]
        }

        pub(crate) fn clear(&self) {
            let bytes = self.0.iter();
            bytes.for_each(|byte| byte.store(0, Ordering::Relaxed));
        }
    }
}

/// What the files name of this crate beside [`primitive`] and [`asymmetric`].
mod error {
    #[derive(Debug)]
    pub(crate) enum Error {}
    pub(crate) type Result<T> = std::result::Result<T, Error>;
}

/// The same.
mod fault {
    pub(crate) fn forked() -> bool {
        false
    }
}

/// The same.
mod contention {
    pub(crate) fn count() {}
}

/// Interleavings in which a thread is put aside more often than this against its will are not tried.
fn model(preemptions: usize, body: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(body);
}

/// What the lock guards: loom fails if anybody writes while another one reads or writes.
struct Guarded {
    lock: ReadersWriter,
    value: UnsafeCell<usize>,
}
// SAFETY: `value` is used inside of the lock only, and loom checks that.
unsafe impl Sync for Guarded {}
// SAFETY: as above.
unsafe impl Send for Guarded {}

fn guarded() -> Arc<Guarded> {
    Arc::new(Guarded {
        lock: ReadersWriter::new(true),
        value: UnsafeCell::new(0),
    })
}

fn read(guarded: &Guarded, number: usize) -> usize {
    be(number);
    let place = guarded.lock.enter();
    // SAFETY: inside as a reader.
    let value = guarded.value.with(|value| unsafe { *value });
    guarded.lock.leave(place);
    value
}

fn write(guarded: &Guarded) {
    guarded.lock.begin_turn();
    // SAFETY: one thread writes.
    unsafe { guarded.lock.write() };
    // SAFETY: inside as the writer.
    guarded.value.with_mut(|value| unsafe { *value += 1 });
    // SAFETY: as above.
    unsafe {
        guarded.lock.end_write();
        guarded.lock.end_turn(false);
    }
}

#[test]
fn a_writer_is_alone_and_nobody_sleeps_for_ever() {
    model(3, || {
        let shared = guarded();
        let reader = {
            let shared = shared.clone();
            thread::spawn(move || assert!(read(&shared, 1) <= 1))
        };
        write(&shared);
        reader.join().unwrap();
        assert_eq!(read(&shared, 0), 1);
    });
}

#[test]
fn a_writer_waits_for_two_readers_one_of_whom_makes_a_block() {
    model(2, || {
        let shared = guarded();
        let readers = [0, 1].map(|number| {
            let shared = shared.clone();
            thread::spawn(move || assert!(read(&shared, number) <= 1))
        });
        write(&shared);
        for reader in readers {
            reader.join().unwrap();
        }
    });
}

#[test]
fn a_reader_gets_in_between_two_writes() {
    // A writer that comes between two looks of a reader, once with and once without one before it, takes four.
    model(4, || {
        let shared = guarded();
        let reader = {
            let shared = shared.clone();
            thread::spawn(move || assert!(read(&shared, 0) <= 2))
        };
        write(&shared);
        write(&shared);
        reader.join().unwrap();
    });
}

/// A job adds to what all leaders share; loom fails if two lead at a time.
struct Combined {
    announcements: Announcements<usize>,
    sum: UnsafeCell<usize>,
}
// SAFETY: `sum` is used by leaders only, and loom checks that.
unsafe impl Sync for Combined {}
// SAFETY: as above.
unsafe impl Send for Combined {}

fn combined() -> Arc<Combined> {
    Arc::new(Combined {
        announcements: Announcements::new(),
        sum: UnsafeCell::new(0),
    })
}

fn add(shared: &Combined, job: usize) {
    // SAFETY: only a leader calls it.
    shared.sum.with_mut(|sum| unsafe { *sum += job });
}

/// Runs at most one announced job besides its own, so that leaders hand over.
fn lead(shared: &Combined, own: Option<&Announcement<usize>>) {
    let mut chain = Chain::EMPTY;
    // SAFETY: this thread leads.
    unsafe { shared.announcements.take(&mut chain) };
    let mut others = 0;
    while own.is_some_and(|own| !own.is_done()) || others == 0 {
        let Some(next) = chain.pop() else { break };
        // SAFETY: not done, so it is there; finished once.
        unsafe {
            add(shared, *next.as_ref().job());
            Announcement::finish(next);
        }
        others += 1;
    }
    // SAFETY: this thread leads, and took the chain.
    unsafe { shared.announcements.resign(chain) };
}

fn update(shared: &Combined, job: usize) {
    if shared.announcements.try_lead() {
        add(shared, job);
        lead(shared, None);
        return;
    }
    let announcement = Announcement::new(job);
    // SAFETY: new, and this thread does not lead.
    if unsafe { shared.announcements.announce(&announcement) } {
        lead(shared, Some(&announcement));
    }
    assert!(announcement.is_done());
}

#[test]
fn every_job_is_run_once_by_one_leader_at_a_time() {
    model(3, || {
        let shared = combined();
        let other = {
            let shared = shared.clone();
            thread::spawn(move || update(&shared, 1))
        };
        update(&shared, 10);
        other.join().unwrap();
        update(&shared, 100);
        // SAFETY: nobody else is left.
        assert_eq!(shared.sum.with(|sum| unsafe { *sum }), 111);
    });
}

#[test]
fn three_threads_hand_the_leadership_on() {
    model(2, || {
        let shared = combined();
        let others = [1, 10].map(|job| {
            let shared = shared.clone();
            thread::spawn(move || update(&shared, job))
        });
        update(&shared, 100);
        for other in others {
            other.join().unwrap();
        }
        // SAFETY: nobody else is left.
        assert_eq!(shared.sum.with(|sum| unsafe { *sum }), 111);
    });
}
