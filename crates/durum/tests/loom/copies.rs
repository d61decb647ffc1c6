//! Readers of two copies and the writer who changes them, as a commit on a Twin pool does.

use std::sync::Arc;

use loom::cell::UnsafeCell;
use loom::sync::atomic::{AtomicUsize, Ordering};
use loom::thread;

use crate::left_right::LeftRight;
use crate::model;

/// Main and back: loom fails if anybody writes one of them while another one reads it.
struct Copies {
    left_right: LeftRight,
    copies: [UnsafeCell<usize>; 2],
    /// The last update whose commit has returned.
    committed: AtomicUsize,
}
// SAFETY: the copies are used by readers who are sent there and by the one writer, and loom checks that.
unsafe impl Sync for Copies {}
// SAFETY: as above.
unsafe impl Send for Copies {}

fn copies() -> Arc<Copies> {
    Arc::new(Copies {
        left_right: LeftRight::default(),
        copies: [UnsafeCell::new(0), UnsafeCell::new(0)],
        committed: AtomicUsize::new(0),
    })
}

const MAIN: usize = 0;
const BACK: usize = 1;

impl Copies {
    fn read(&self) -> usize {
        let committed = self.committed.load(Ordering::Acquire);
        let reading = self.left_right.come();
        let copy = if reading.is_main { MAIN } else { BACK };
        // SAFETY: sent there, and not gone yet.
        let value = self.copies[copy].with(|value| unsafe { *value });
        drop(reading);
        assert!(value >= committed, "what has returned is seen");
        value
    }

    fn store(&self, copy: usize, value: usize) {
        // SAFETY: readers are sent to the other one, and this is the only writer.
        self.copies[copy].with_mut(|place| unsafe { *place = value });
    }

    fn update(&self, value: usize) {
        self.left_right.send(false);
        self.store(MAIN, value);
        self.left_right.send(true);
        self.store(BACK, value);
        self.committed.store(value, Ordering::Release);
    }
}

/// Reads several times: time does not go back.
fn read_on(shared: &Copies, times: usize, last: usize) {
    let mut seen = 0;
    for _ in 0..times {
        let value = shared.read();
        assert!(value >= seen && value <= last, "{value} after {seen}");
        seen = value;
    }
}

#[test]
fn a_reader_never_meets_the_writer() {
    model(3, || {
        let shared = copies();
        let reader = {
            let shared = shared.clone();
            thread::spawn(move || read_on(&shared, 2, 2))
        };
        shared.update(1);
        shared.update(2);
        reader.join().unwrap();
        assert_eq!(shared.read(), 2);
    });
}

#[test]
fn two_readers_never_meet_the_writer() {
    model(2, || {
        let shared = copies();
        let readers = [1, 2].map(|times| {
            let shared = shared.clone();
            thread::spawn(move || read_on(&shared, times, 2))
        });
        shared.update(1);
        shared.update(2);
        for reader in readers {
            reader.join().unwrap();
        }
    });
}
