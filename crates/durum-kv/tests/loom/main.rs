//! All interleavings of a few threads in the lock between readers and the writer, owned and not, and in the pins that
//! readers leave behind.
//!
//! They stand on loom's atomics and mutexes, with one counter in the first block of the read indicator, one place for
//! a pin, and an owner after two turns, so that rare paths are common.
#![allow(
    dead_code,
    clippy::absurd_extreme_comparisons,
    clippy::modulo_one,
    clippy::reversed_empty_ranges,
    reason = "the modules have more than these tests call, nobody spins here, and pins have one place"
)]

#[path = "../../../durum/tests/loom/asymmetric.rs"]
mod asymmetric;
#[path = "../../../durum/src/fair_lock.rs"]
mod fair_lock;
#[path = "../../src/lock.rs"]
mod lock;
#[path = "../../src/pins.rs"]
mod pins;
#[path = "../../../durum/tests/loom/primitive.rs"]
mod primitive;

use std::sync::Arc;

use asymmetric::{fails_without_either_half, without_membarrier};
use lock::ReadersWriter;
use loom::cell::UnsafeCell;
use loom::thread;
use pins::Pins;
use primitive::be;

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

/// loom fails if anybody writes it while another one reads or writes.
struct Guarded(UnsafeCell<usize>);
// SAFETY: used inside of the lock only, and loom checks that.
unsafe impl Sync for Guarded {}
// SAFETY: as above.
unsafe impl Send for Guarded {}

type Lock = ReadersWriter<Guarded>;

fn guarded() -> Arc<Lock> {
    Arc::new(Lock::new(Guarded(UnsafeCell::new(0)), true))
}

fn read(lock: &Lock) -> usize {
    let reading = lock.read();
    // SAFETY: inside as a reader.
    reading.0.with(|value| unsafe { *value })
}

/// Adds one, if nobody has the turn.
fn try_add(lock: &Lock) -> usize {
    let Some(turn) = lock.try_turn() else {
        return 0;
    };
    // SAFETY: the first of this turn.
    let writing = unsafe { turn.write() };
    // SAFETY: inside as the writer.
    writing.0.with_mut(|value| unsafe { *value += 1 });
    1
}

fn add(lock: &Lock) {
    let turn = lock.turn();
    // SAFETY: the first of this turn.
    let writing = unsafe { turn.write() };
    // SAFETY: inside as the writer.
    writing.0.with_mut(|value| unsafe { *value += 1 });
}

#[test]
fn nobody_reads_while_another_one_writes() {
    model(3, || {
        let lock = guarded();
        let other = lock.clone();
        let reader = thread::spawn(move || {
            be(1);
            let first = read(&other);
            assert!(first <= read(&other));
        });
        add(&lock);
        add(&lock);
        reader.join().unwrap();
        assert_eq!(read(&lock), 2);
    });
}

#[test]
fn nobody_owns_the_lock_without_membarrier() {
    without_membarrier(|| {
        model(2, || {
            let lock = guarded();
            assert_eq!(try_add(&lock) + try_add(&lock), 2);
            assert_eq!(lock.owner_word(), 0);
            let other = lock.clone();
            let reader = thread::spawn(move || {
                be(1);
                assert!(read(&other) >= 2);
            });
            add(&lock);
            reader.join().unwrap();
        });
    });
}

#[test]
fn an_owner_leaves_for_a_reader() {
    a_reader_comes();
}

#[test]
fn the_owner_needs_both_halves_of_the_fence() {
    fails_without_either_half(a_reader_comes);
}

fn a_reader_comes() {
    model(3, || {
        let lock = guarded();
        // From here on this thread owns it.
        assert_eq!(try_add(&lock) + try_add(&lock), 2);
        assert_ne!(lock.owner_word(), 0);
        let other = lock.clone();
        let reader = thread::spawn(move || {
            be(1);
            assert!(read(&other) >= 2);
        });
        assert_eq!(try_add(&lock), 1);
        assert_eq!(read(&lock), 3);
        reader.join().unwrap();
        assert_eq!(lock.owner_word(), 0);
    });
}

#[test]
fn an_owner_leaves_for_a_writer() {
    model(2, || {
        let lock = guarded();
        assert_eq!(try_add(&lock) + try_add(&lock), 2);
        let other = lock.clone();
        let writer = thread::spawn(move || {
            be(1);
            add(&other);
        });
        let added = try_add(&lock);
        writer.join().unwrap();
        assert_eq!(read(&lock), 3 + added);
    });
}

#[test]
fn who_becomes_the_owner_meets_a_reader() {
    model(2, || {
        let lock = guarded();
        assert_eq!(try_add(&lock), 1);
        let other = lock.clone();
        let reader = thread::spawn(move || {
            be(1);
            read(&other)
        });
        // The second turn, after which it is the owner if no reader has come.
        let added = try_add(&lock) + try_add(&lock);
        assert_eq!(added, 2);
        assert!(reader.join().unwrap() <= 3);
        assert_eq!(read(&lock), 3);
    });
}

#[test]
fn two_writers_take_turns() {
    model(2, || {
        let lock = guarded();
        let other = lock.clone();
        let writer = thread::spawn(move || {
            be(1);
            try_add(&other) + try_add(&other)
        });
        add(&lock);
        let added = 1 + try_add(&lock) + writer.join().unwrap();
        assert_eq!(read(&lock), added);
    });
}

/// Versions of a record: the writer takes one back as soon as no pin is on it.
struct Versions {
    /// The number of the version that is visible.
    lock: Lock,
    pins: Pins,
    versions: [Guarded; 2],
}

/// Reads the version that was visible when it was pinned.
fn read_pinned(of: &Versions) {
    let (sequence, place) = {
        let reading = of.lock.read();
        // SAFETY: inside as a reader.
        let visible = reading.0.with(|visible| unsafe { *visible });
        (visible, of.pins.enter(visible as u64))
    };
    // SAFETY: the pin keeps it.
    let value = of.versions[sequence].0.with(|value| unsafe { *value });
    assert_eq!(value, 0, "taken back while it was pinned");
    of.pins.leave(sequence as u64, place);
}

fn one_reads_what_is_superseded(readers: usize, preemptions: usize) {
    model(preemptions, move || {
        let of = Arc::new(Versions {
            lock: Lock::new(Guarded(UnsafeCell::new(0)), false),
            pins: Pins::default(),
            versions: [(); 2].map(|()| Guarded(UnsafeCell::new(0))),
        });
        let readers: Vec<_> = (1..=readers)
            .map(|number| {
                let of = of.clone();
                thread::spawn(move || {
                    be(number);
                    read_pinned(&of);
                })
            })
            .collect();
        {
            let turn = of.lock.turn();
            // SAFETY: the first of this turn.
            let writing = unsafe { turn.write() };
            // SAFETY: inside as the writer.
            writing.0.with_mut(|visible| unsafe { *visible = 1 });
            if !of.pins.sequences().contains(&0) {
                // SAFETY: nobody reads it any more, nor will.
                of.versions[0].0.with_mut(|value| unsafe { *value = 9 });
            }
        }
        readers
            .into_iter()
            .for_each(|reader| reader.join().unwrap());
        assert!(of.pins.sequences().is_empty() && of.pins.len() == 0);
    });
}

#[test]
fn what_is_pinned_is_not_taken_back() {
    one_reads_what_is_superseded(1, 3);
}

/// One of them finds no place.
#[test]
fn what_two_have_pinned_is_not_taken_back() {
    one_reads_what_is_superseded(2, 2);
}
