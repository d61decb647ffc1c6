//! The locks that a thread holds, in the order in which it has taken them.

use durum_format::section::LOCKS_MAX;

use crate::fatal::fatal;

/// How a lock is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// By one alone.
    Exclusive,
    /// By readers.
    Shared,
}

/// A lock that is held.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HeldLock {
    /// Where it lies.
    pub(crate) address: usize,
    /// How often it was taken.
    pub(crate) count: u32,
    pub(crate) mode: Mode,
    /// A crash has interrupted its holder, which goes on now: nothing is known in the lock itself.
    pub(crate) is_claimed: bool,
}

/// The locks of a thread, each once.
#[derive(Debug, Default)]
pub(crate) struct Held(Vec<HeldLock>);

impl Held {
    pub(crate) fn find(&mut self, address: usize) -> Option<&mut HeldLock> {
        self.0.iter_mut().rev().find(|lock| lock.address == address)
    }

    /// One that was taken for the first time.
    pub(crate) fn add(&mut self, address: usize, mode: Mode) {
        self.insert(HeldLock {
            address,
            count: 1,
            mode,
            is_claimed: false,
        });
    }

    /// One that a crash has left held.
    pub(crate) fn add_claimed(&mut self, address: usize, mode: Mode, count: u32) {
        self.insert(HeldLock {
            address,
            count,
            mode,
            is_claimed: true,
        });
    }

    fn insert(&mut self, lock: HeldLock) {
        if self.0.len() == LOCKS_MAX {
            let address = lock.address;
            fatal!(
                "a thread takes the lock at {address:#x} and holds {LOCKS_MAX} others, more than a record has room for"
            );
        }
        self.0.push(lock);
    }

    pub(crate) fn remove(&mut self, address: usize) {
        self.0.retain(|lock| lock.address != address);
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &HeldLock> {
        self.0.iter()
    }
}
