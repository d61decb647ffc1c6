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
#[derive(Debug)]
pub(crate) struct Held {
    locks: [HeldLock; LOCKS_MAX],
    count: usize,
}

impl Default for Held {
    fn default() -> Self {
        let none = HeldLock {
            address: 0,
            count: 0,
            mode: Mode::Exclusive,
            is_claimed: false,
        };
        Self {
            locks: [none; LOCKS_MAX],
            count: 0,
        }
    }
}

impl Held {
    /// Those that are let go soon were taken last.
    #[inline]
    pub(crate) fn find(&mut self, address: usize) -> Option<&mut HeldLock> {
        self.index(address).map(|index| &mut self.locks[index])
    }

    /// One that was taken for the first time.
    #[inline]
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

    #[inline]
    fn insert(&mut self, lock: HeldLock) {
        let Some(place) = self.locks.get_mut(self.count) else {
            let address = lock.address;
            fatal!(
                "a thread takes the lock at {address:#x} and holds {LOCKS_MAX} others, more than a record has room for"
            );
        };
        *place = lock;
        self.count += 1;
    }

    #[inline]
    pub(crate) fn remove(&mut self, address: usize) {
        if let Some(index) = self.index(address) {
            self.remove_at(index);
        }
    }

    /// Removes one that was taken once, by this thread. Whether it is such a one.
    #[inline]
    pub(crate) fn remove_plain(&mut self, address: usize) -> bool {
        let found = self.index(address);
        let found = found.filter(|index| {
            let lock = &self.locks[*index];
            lock.count == 1 && !lock.is_claimed
        });
        if let Some(index) = found {
            self.remove_at(index);
        }
        found.is_some()
    }

    #[inline]
    fn index(&self, address: usize) -> Option<usize> {
        let locks = self.locks.get(..self.count).unwrap_or_default();
        locks.iter().rposition(|lock| lock.address == address)
    }

    /// The others stay in their order.
    #[inline]
    fn remove_at(&mut self, index: usize) {
        for later in index + 1..self.count {
            self.locks[later - 1] = self.locks[later];
        }
        self.count -= 1;
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &HeldLock> {
        self.locks.iter().take(self.count)
    }
}
