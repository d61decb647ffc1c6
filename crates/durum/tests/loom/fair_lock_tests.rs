//! Threads that take turns.

use std::sync::Arc;

use loom::cell::UnsafeCell;
use loom::thread;

use crate::fair_lock::{FairLock, PASSES_MAX};
use crate::model;

/// What is used by the thread whose turn it is: loom fails if two do at a time, and if a thread is never woken.
struct Shared {
    turns: FairLock,
    value: UnsafeCell<usize>,
}
// SAFETY: `value` is used in turns only, and loom checks that.
unsafe impl Sync for Shared {}
// SAFETY: as above.
unsafe impl Send for Shared {}

impl Shared {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            turns: FairLock::default(),
            value: UnsafeCell::new(0),
        })
    }

    fn use_turn(&self) {
        assert!(self.turns.is_mine());
        // SAFETY: this thread's turn.
        self.value.with_mut(|value| unsafe { *value += 1 });
        self.turns.give_up();
        assert!(!self.turns.is_mine());
    }
}

#[test]
fn one_at_a_time_and_nobody_sleeps_for_ever() {
    model(3, || {
        let shared = Shared::new();
        let others: Vec<_> = (0..2)
            .map(|_| {
                let shared = shared.clone();
                thread::spawn(move || {
                    shared.turns.take();
                    shared.use_turn();
                })
            })
            .collect();
        shared.turns.take();
        shared.use_turn();
        for other in others {
            other.join().unwrap();
        }
        // SAFETY: the others have ended.
        assert_eq!(shared.value.with(|value| unsafe { *value }), 3);
    });
}

#[test]
fn who_does_not_wait_gets_a_free_turn_only() {
    model(3, || {
        let shared = Shared::new();
        let other = {
            let shared = shared.clone();
            thread::spawn(move || {
                shared.turns.take();
                shared.use_turn();
            })
        };
        let is_taken = shared.turns.try_take();
        if is_taken {
            shared.use_turn();
        }
        other.join().unwrap();
        // SAFETY: the other has ended.
        let uses = shared.value.with(|value| unsafe { *value });
        assert_eq!(uses, 1 + usize::from(is_taken));
    });
}

#[test]
fn who_waits_is_passed_over_a_few_times_only() {
    model(3, || {
        let shared = Shared::new();
        let other = {
            let shared = shared.clone();
            thread::spawn(move || {
                shared.turns.take();
                // From here on it waits no more.
                // SAFETY: this thread's turn.
                shared.value.with_mut(|passes| unsafe { *passes = 0 });
                shared.turns.give_up();
            })
        };
        for _ in 0..PASSES_MAX + 3 {
            shared.turns.take();
            let is_past = shared.turns.has_waiters();
            // SAFETY: this thread's turn.
            let passes = shared.value.with_mut(|passes| unsafe {
                *passes += usize::from(is_past);
                *passes
            });
            // It may have come when the turn was taken already.
            assert!(passes <= PASSES_MAX + 1, "passed over again and again");
            shared.turns.give_up();
        }
        other.join().unwrap();
    });
}
