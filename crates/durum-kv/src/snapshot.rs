//! Snapshots: sequence numbers that somebody reads by.

use std::fmt;
use std::sync::Arc;

use crate::inner::Inner;

/// As long as it lives, what its sequence number sees stays in the database.
pub(crate) struct Pin {
    pub(crate) db: Arc<Inner>,
    pub(crate) sequence: u64,
    place: Option<usize>,
}

impl Pin {
    /// Pins what is there now. Waits for a commit that deletes and goes on beside readers.
    pub(crate) fn now(db: &Arc<Inner>) -> Self {
        loop {
            {
                let _reading = db.tree.read();
                if !db.pins.is_shut() {
                    return Self::at(db, db.visible());
                }
            }
            if let Some((sequence, place)) = db.pins.wait() {
                let db = db.clone();
                return Self {
                    db,
                    sequence,
                    place,
                };
            }
        }
    }

    /// Pins a number that is pinned, or that is the visible one while the caller keeps the writer out.
    pub(crate) fn at(db: &Arc<Inner>, sequence: u64) -> Self {
        let place = db.pins.enter(sequence);
        Self {
            db: db.clone(),
            sequence,
            place,
        }
    }
}

impl Drop for Pin {
    fn drop(&mut self) {
        self.db.pins.leave(self.sequence, self.place);
    }
}

/// A database as it was at one moment. Values that were superseded since stay as long as it lives.
///
/// It belongs to the process: none outlives a crash or the closing of the database, which stays open while there is
/// one.
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
