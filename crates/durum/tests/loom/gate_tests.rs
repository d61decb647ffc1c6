//! Transactions that enter the gate of a store, and one who closes it.

use std::sync::Arc;
use std::time::Duration;

use loom::cell::UnsafeCell;
use loom::thread;

use crate::asymmetric::{fails_without_either_half, without_membarrier};
use crate::gate::Gate;
use crate::model;

/// What transactions use and who closes the gate changes: loom fails if both do at a time.
struct Store {
    gate: Arc<Gate>,
    value: UnsafeCell<usize>,
}
// SAFETY: `value` is used inside of the gate or while it is closed only, and loom checks that.
unsafe impl Sync for Store {}
// SAFETY: as above.
unsafe impl Send for Store {}

impl Store {
    /// A thread of its own: it becomes a member, and goes through the gate so many times.
    fn enter(self: &Arc<Self>, times: usize) -> thread::JoinHandle<()> {
        let store = self.clone();
        thread::spawn(move || {
            let member = store.gate.join();
            for _ in 0..times {
                let _pass = member.pass();
                // SAFETY: inside.
                store.value.with(|value| unsafe { *value });
            }
        })
    }

    fn change(&self) {
        // SAFETY: closed.
        self.value.with_mut(|value| unsafe { *value += 1 });
    }
}

fn who_closes_is_alone(preemptions: usize, members: &'static [usize], closes: usize) {
    model(preemptions, move || {
        let store = Arc::new(Store {
            gate: Gate::new(),
            value: UnsafeCell::new(0),
        });
        let threads: Vec<_> = members.iter().map(|&times| store.enter(times)).collect();
        for _ in 0..closes {
            let closed = store.gate.close().unwrap();
            store.change();
            drop(closed);
        }
        for thread in threads {
            thread.join().unwrap();
        }
    });
}

#[test]
fn who_closes_the_gate_is_alone() {
    who_closes_is_alone(3, &[2], 2);
}

#[test]
fn who_closes_the_gate_is_alone_though_two_come() {
    who_closes_is_alone(2, &[1, 1], 1);
}

#[test]
fn who_closes_the_gate_is_alone_without_membarrier() {
    without_membarrier(|| who_closes_is_alone(3, &[2], 1));
}

#[test]
fn the_gate_needs_both_halves_of_the_fence() {
    fails_without_either_half(|| who_closes_is_alone(3, &[1], 1));
}

/// One waits for the end of transactions, the other one does not.
#[test]
fn two_who_close_the_gate_take_turns() {
    model(2, || {
        let store = Arc::new(Store {
            gate: Gate::new(),
            value: UnsafeCell::new(0),
        });
        let member = store.enter(1);
        let other = {
            let store = store.clone();
            thread::spawn(move || {
                if let Some(closed) = store.gate.try_close(Duration::ZERO).unwrap() {
                    store.change();
                    drop(closed);
                }
            })
        };
        let closed = store.gate.close().unwrap();
        store.change();
        drop(closed);
        member.join().unwrap();
        other.join().unwrap();
    });
}
