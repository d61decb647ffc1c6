//! Snapshots: sequence numbers that somebody reads by.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::db::Inner;
use crate::lock::thread_number;

/// Pins that have a place of their own; more are counted under a lock.
const PLACES: usize = 64;

/// The sequence numbers of snapshots and iterators. A number is entered while readers keep the writer out, so that a writer which finds none
/// knows that no older version is needed.
#[derive(Debug)]
pub(crate) struct Pins {
    /// The number of pins, so that a writer sees without a look at the places that there are none.
    count: AtomicUsize,
    /// A number and 1, or 0 where nobody is.
    places: Box<[AtomicU64; PLACES]>,
    others: Mutex<BTreeMap<u64, usize>>,
}

impl Default for Pins {
    fn default() -> Self {
        Self {
            count: AtomicUsize::new(0),
            places: Box::new([const { AtomicU64::new(0) }; PLACES]),
            others: Mutex::default(),
        }
    }
}

impl Pins {
    fn lock_others(&self) -> MutexGuard<'_, BTreeMap<u64, usize>> {
        self.others.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Where it is entered, if it has a place.
    fn enter(&self, sequence: u64) -> Option<usize> {
        self.count.fetch_add(1, Ordering::Relaxed);
        let first = thread_number() % PLACES;
        let places = (first..PLACES).chain(0..first);
        for place in places {
            let word = &self.places[place];
            // Release: who finds the place free again has entered it anew.
            if word.load(Ordering::Relaxed) == 0
                && word
                    .compare_exchange(0, sequence + 1, Ordering::AcqRel, Ordering::Relaxed)
                    .is_ok()
            {
                return Some(place);
            }
        }
        *self.lock_others().entry(sequence).or_default() += 1;
        None
    }

    fn leave(&self, sequence: u64, place: Option<usize>) {
        match place {
            Some(place) => self.places[place].store(0, Ordering::Release),
            None => {
                let mut others = self.lock_others();
                if let Some(count) = others.get_mut(&sequence) {
                    *count -= 1;
                    if *count == 0 {
                        others.remove(&sequence);
                    }
                }
            }
        }
        self.count.fetch_sub(1, Ordering::Relaxed);
    }

    /// The numbers, ascending. For the writer, while it keeps readers out.
    #[inline]
    pub(crate) fn sequences(&self) -> Vec<u64> {
        match self.count.load(Ordering::Relaxed) {
            0 => Vec::new(),
            _ => self.entered(),
        }
    }

    fn entered(&self) -> Vec<u64> {
        let places = self
            .places
            .iter()
            .map(|place| place.load(Ordering::Acquire));
        let mut sequences: Vec<u64> = places.filter_map(|word| word.checked_sub(1)).collect();
        sequences.extend(self.lock_others().keys());
        sequences.sort_unstable();
        sequences.dedup();
        sequences
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
    place: Option<usize>,
}

impl Pin {
    /// Pins what is there now.
    pub(crate) fn now(db: &Arc<Inner>) -> Self {
        let _reading = db.tree.read();
        Self::at(db, db.visible())
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
