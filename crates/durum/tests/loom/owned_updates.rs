//! The lock of a pool's updates while a thread owns it, which it does after two turns.

use std::sync::Arc;

use loom::cell::UnsafeCell;
use loom::sync::Mutex;
use loom::thread;

use crate::asymmetric::{ReadersWriter, fails_without_either_half, without_membarrier};
use crate::model;
use crate::primitive::{be, locked};

/// What the lock guards: loom fails if anybody writes while another one reads or writes.
struct Guarded {
    /// Whoever has it leads.
    leadership: Mutex<()>,
    lock: ReadersWriter,
    value: UnsafeCell<usize>,
}
// SAFETY: `value` is used inside of the lock only, and loom checks that.
unsafe impl Sync for Guarded {}
// SAFETY: as above.
unsafe impl Send for Guarded {}

impl Guarded {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            leadership: Mutex::new(()),
            lock: ReadersWriter::new(true),
            value: UnsafeCell::new(0),
        })
    }

    fn read(&self) -> usize {
        let place = self.lock.enter();
        // SAFETY: inside as a reader.
        let value = self.value.with(|value| unsafe { *value });
        self.lock.leave(place);
        value
    }

    /// Whether it did so as the owner.
    fn write(&self) -> bool {
        // SAFETY: inside as the writer.
        let change = || self.value.with_mut(|value| unsafe { *value += 1 });
        if let Some(_inside) = self.lock.owner().try_enter() {
            change();
            return true;
        }
        let _lead = locked(&self.leadership);
        self.lock.begin_turn();
        // SAFETY: this thread leads.
        unsafe { self.lock.write() };
        change();
        // SAFETY: as above.
        unsafe {
            self.lock.end_write();
            self.lock.end_turn(true);
        }
        false
    }
}

/// This thread owns the lock.
fn owned() -> Arc<Guarded> {
    let shared = Guarded::new();
    assert!(!shared.write());
    assert!(!shared.write());
    shared
}

fn other(shared: &Arc<Guarded>, body: impl Fn(&Guarded) + 'static) -> thread::JoinHandle<()> {
    let shared = shared.clone();
    thread::spawn(move || {
        be(1);
        body(&shared);
    })
}

fn a_reader_comes() {
    model(3, || {
        let shared = owned();
        let reader = other(&shared, |shared| assert!((2..=3).contains(&shared.read())));
        shared.write();
        reader.join().unwrap();
        assert_eq!(shared.read(), 3);
        // It has left.
        assert!(!shared.write());
    });
}

#[test]
fn an_owner_leaves_for_a_reader() {
    a_reader_comes();
}

#[test]
fn an_owner_needs_both_halves_of_the_fence() {
    fails_without_either_half(a_reader_comes);
}

#[test]
fn an_owner_leaves_for_a_writer() {
    model(2, || {
        let shared = owned();
        let writer = other(&shared, |shared| assert!(!shared.write()));
        shared.write();
        writer.join().unwrap();
        assert_eq!(shared.read(), 4);
    });
}

#[test]
fn an_owner_reads_beside_others_and_stays_the_owner() {
    model(2, || {
        let shared = owned();
        assert_eq!(shared.read(), 2);
        assert!(shared.write());
        let reader = other(&shared, |shared| assert_eq!(shared.read(), 3));
        assert_eq!(shared.read(), 3);
        reader.join().unwrap();
    });
}

#[test]
fn who_becomes_the_owner_meets_a_reader() {
    model(2, || {
        let shared = Guarded::new();
        shared.write();
        let reader = other(&shared, |shared| assert!((1..=3).contains(&shared.read())));
        // The second turn, after which it is the owner if no reader has come.
        shared.write();
        shared.write();
        reader.join().unwrap();
        assert_eq!(shared.read(), 3);
    });
}

/// By turns without a write, which no impatient reader keeps from beginning.
#[test]
fn who_becomes_the_owner_leaves_an_impatient_reader_asleep_in_peace() {
    model(3, || {
        let shared = Guarded::new();
        let turn = |shared: &Guarded| {
            let _lead = locked(&shared.leadership);
            shared.lock.begin_turn();
            // SAFETY: this thread leads.
            unsafe { shared.lock.end_turn(true) };
        };
        turn(&shared);
        let reader = other(&shared, |shared| assert_eq!(shared.read(), 0));
        let writer = {
            let shared = shared.clone();
            thread::spawn(move || {
                be(2);
                for _ in 0..3 {
                    turn(&shared);
                }
            })
        };
        turn(&shared);
        reader.join().unwrap();
        writer.join().unwrap();
    });
}

#[test]
fn who_writes_while_another_one_becomes_the_owner_takes_it() {
    model(2, || {
        let shared = Guarded::new();
        shared.write();
        let writer = other(&shared, |shared| assert!(!shared.write()));
        shared.write();
        shared.write();
        writer.join().unwrap();
        assert_eq!(shared.read(), 4);
    });
}

#[test]
fn nobody_owns_the_lock_without_membarrier() {
    without_membarrier(|| {
        model(2, || {
            let shared = owned();
            assert!(!shared.write());
            let reader = other(&shared, |shared| assert!(shared.read() >= 3));
            assert!(!shared.write());
            reader.join().unwrap();
        });
    });
}
