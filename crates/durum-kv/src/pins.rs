//! The sequence numbers that somebody reads by.

use std::collections::BTreeMap;

use crate::primitive::{
    AtomicU64, AtomicUsize, Mutex, MutexGuard, Ordering, PLACES, locked, thread_number,
};

/// The sequence numbers of snapshots and iterators. A number is entered while readers keep the writer out, so that a writer which finds none
/// knows that no older version is needed.
#[derive(Debug)]
pub(crate) struct Pins {
    /// The number of pins, so that a writer sees without a look at the places that there are none.
    count: AtomicUsize,
    /// A number and 1, or 0 where nobody is. Who finds no place is counted under a lock.
    places: Box<[AtomicU64]>,
    others: Mutex<BTreeMap<u64, usize>>,
}

impl Default for Pins {
    fn default() -> Self {
        Self {
            count: AtomicUsize::new(0),
            places: (0..PLACES).map(|_| AtomicU64::new(0)).collect(),
            others: Mutex::new(BTreeMap::new()),
        }
    }
}

impl Pins {
    fn lock_others(&self) -> MutexGuard<'_, BTreeMap<u64, usize>> {
        locked(&self.others)
    }

    /// Where it is entered, if it has a place.
    pub(crate) fn enter(&self, sequence: u64) -> Option<usize> {
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

    pub(crate) fn leave(&self, sequence: u64, place: Option<usize>) {
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
        // Release: what was read by the pin was read before a writer finds that there are none.
        self.count.fetch_sub(1, Ordering::Release);
    }

    /// The numbers, ascending. For the writer, while it keeps readers out.
    #[inline]
    pub(crate) fn sequences(&self) -> Vec<u64> {
        match self.count.load(Ordering::Acquire) {
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
