//! Snapshots: sequence numbers that somebody reads by.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::db::Inner;

/// The sequence numbers of snapshots and iterators. A number is entered while readers keep the writer out, so that a writer which finds none
/// knows that no older version is needed.
#[derive(Debug, Default)]
pub(crate) struct Pins {
    /// The number of pins, so that a writer sees without a lock that there are none.
    count: AtomicUsize,
    by_sequence: Mutex<BTreeMap<u64, usize>>,
}

impl Pins {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, usize>> {
        self.by_sequence
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn enter(&self, sequence: u64) {
        let mut by_sequence = self.lock();
        *by_sequence.entry(sequence).or_default() += 1;
        self.count.fetch_add(1, Ordering::Relaxed);
    }

    fn leave(&self, sequence: u64) {
        let mut by_sequence = self.lock();
        if let Some(count) = by_sequence.get_mut(&sequence) {
            *count -= 1;
            if *count == 0 {
                by_sequence.remove(&sequence);
            }
            self.count.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// The numbers, ascending. For the writer, while it keeps readers out.
    #[inline]
    pub(crate) fn sequences(&self) -> Vec<u64> {
        match self.count.load(Ordering::Relaxed) {
            0 => Vec::new(),
            _ => self.lock().keys().copied().collect(),
        }
    }

    /// The number of pins.
    pub(crate) fn len(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }
}

/// As long as it lives, what its sequence number sees stays in the database.
pub(crate) struct Pin {
    pub(crate) db: Arc<Inner>,
    pub(crate) sequence: u64,
}

impl Pin {
    /// Pins what is there now.
    pub(crate) fn now(db: &Arc<Inner>) -> Self {
        let _reading = db.tree.read();
        Self::at(db, db.visible())
    }

    /// Pins a number that is pinned, or that is the visible one while the caller keeps the writer out.
    pub(crate) fn at(db: &Arc<Inner>, sequence: u64) -> Self {
        db.pins.enter(sequence);
        Self {
            db: db.clone(),
            sequence,
        }
    }
}

impl Drop for Pin {
    fn drop(&mut self) {
        self.db.pins.leave(self.sequence);
    }
}

/// A database as it was at one moment. Values that were superseded since stay as long as it lives.
///
/// It belongs to the process: none outlives a crash or the closing of the database, which stays open while there is one.
pub struct Snapshot {
    pub(crate) pin: Pin,
}

impl fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Snapshot")
            .field("sequence", &self.pin.sequence)
            .finish_non_exhaustive()
    }
}

impl Snapshot {
    /// Which commit it sees as the last one. Later snapshots have larger numbers, or the same.
    pub fn sequence(&self) -> u64 {
        self.pin.sequence
    }
}
