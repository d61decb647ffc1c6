//! All interleavings of threads that take locks of the heap, from what a crash has left of these.
#![allow(dead_code, reason = "the modules have more than these tests call")]

#[path = "../../src/locks/deadline.rs"]
mod deadline;
#[path = "../../../durum/src/futex_lock.rs"]
mod futex_lock;
#[path = "../../../durum/tests/loom/primitive.rs"]
mod primitive;
#[path = "../../src/locks/read_write.rs"]
mod read_write;
#[path = "../../src/locks/word.rs"]
mod word;

use std::sync::Arc;

use held::Mode;
use loom::cell::UnsafeCell;
use loom::thread;
use read_write::ReadWriteLock;
use word::LockWord;

/// What the files name of the crate.
mod reach {
    pub(crate) fn epoch() -> u32 {
        7
    }
}

/// The same.
mod held {
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(crate) enum Mode {
        Exclusive,
        Shared,
    }
}

/// Interleavings in which a thread is put aside more often than this against its will are not tried.
fn model(preemptions: usize, body: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(body);
}

/// loom fails if two threads have it at a time, and if one sleeps for ever.
struct Shared<L> {
    lock: L,
    value: UnsafeCell<usize>,
}
// SAFETY: `value` is used by who has the lock, and loom checks that.
unsafe impl<L: Sync> Sync for Shared<L> {}
// SAFETY: as above.
unsafe impl<L: Send> Send for Shared<L> {}

impl<L> Shared<L> {
    fn new(lock: L) -> Arc<Self> {
        let value = UnsafeCell::new(0);
        Arc::new(Self { lock, value })
    }

    fn change(&self) {
        // SAFETY: locked.
        self.value.with_mut(|value| unsafe { *value += 1 });
    }

    fn read(&self) -> usize {
        // SAFETY: locked.
        self.value.with(|value| unsafe { *value })
    }
}

/// `left`: of an opening before, in which somebody had it.
fn threads_take_turns(preemptions: usize, others: usize, left: u32) {
    model(preemptions, move || {
        let shared = Shared::new(LockWord::left(left));
        let change = |shared: &Shared<LockWord>| {
            assert!(shared.lock.lock(None));
            shared.change();
            shared.lock.unlock();
        };
        let threads: Vec<_> = (0..others)
            .map(|_| {
                let shared = shared.clone();
                thread::spawn(move || change(&shared))
            })
            .collect();
        change(&shared);
        change(&shared);
        for thread in threads {
            thread.join().unwrap();
        }
        assert_eq!(shared.read(), others + 2);
    });
}

#[test]
fn two_threads_take_turns() {
    threads_take_turns(3, 1, 6 << 2 | 1);
}

#[test]
fn three_threads_take_turns() {
    threads_take_turns(2, 2, 6 << 2 | 2);
}

fn readers_and_writers(preemptions: usize, others: &'static [Mode]) {
    model(preemptions, move || {
        let shared = Shared::new(ReadWriteLock::left(6 << 32 | 1 << 31));
        let take = |shared: &Shared<ReadWriteLock>, mode| {
            assert!(shared.lock.lock(mode, None));
            match mode {
                Mode::Exclusive => shared.change(),
                Mode::Shared => _ = shared.read(),
            }
            shared.lock.unlock(mode);
        };
        let threads: Vec<_> = others
            .iter()
            .map(|&mode| {
                let shared = shared.clone();
                thread::spawn(move || take(&shared, mode))
            })
            .collect();
        take(&shared, Mode::Exclusive);
        for thread in threads {
            thread.join().unwrap();
        }
        let writers = others.iter().filter(|mode| **mode == Mode::Exclusive);
        assert_eq!(shared.read(), writers.count() + 1);
    });
}

#[test]
fn a_reader_and_a_writer_take_turns() {
    readers_and_writers(3, &[Mode::Shared]);
}

#[test]
fn readers_and_writers_take_turns() {
    readers_and_writers(2, &[Mode::Shared, Mode::Shared]);
    readers_and_writers(2, &[Mode::Shared, Mode::Exclusive]);
}
