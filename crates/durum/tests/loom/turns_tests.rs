//! Threads that take turns.

use std::sync::Arc;

use loom::cell::UnsafeCell;
use loom::thread;

use crate::model;
use crate::turns::Turns;

/// What is used by the thread whose turn it is: loom fails if two do at a time, and if a thread is never woken.
struct Shared {
    turns: Turns,
    value: UnsafeCell<usize>,
}
// SAFETY: `value` is used in turns only, and loom checks that.
unsafe impl Sync for Shared {}
// SAFETY: as above.
unsafe impl Send for Shared {}

impl Shared {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            turns: Turns::default(),
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
