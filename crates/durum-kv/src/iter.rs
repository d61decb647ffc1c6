//! Going over entries in the order of keys.
//!
//! An iterator pins a sequence number, so the records that it sees stay where they are. It takes a row of records at a time, and needs no lock until it comes to the end of the row. Rows
//! begin short, for those who look for one entry, and grow up to a leaf.

use std::fmt;

use crate::error::Result;
use crate::index::{Entries, Position};
use crate::media::{Record, SLOTS};
use crate::snapshot::Pin;
use crate::tree::{Tree, visible};

/// The entries of a database as they were when the iterator was made, in the order of keys.
///
/// It stands at an entry, or at none: after it was made, after the last entry, before the first, and after an error. Each step says whether it stands at one.
///
/// ```
/// # let dir = tempfile::tempdir_in("/dev/shm").unwrap();
/// # let path = dir.path().join("db");
/// let db = durum_kv::Db::open(path, durum_kv::Options::new().create_if_missing(true))?;
/// db.put(b"one", b"1")?;
/// db.put(b"two", b"2")?;
/// let mut entries = db.iter();
/// let mut is_there = entries.seek(b"p")?;
/// while is_there {
///     assert_eq!((entries.key(), entries.value()), (Some(&b"two"[..]), Some(&b"2"[..])));
///     is_there = entries.next()?;
/// }
/// # Ok::<(), durum_kv::Error>(())
/// ```
pub struct Iter {
    pin: Pin,
    verifies: bool,
    /// What the pinned number sees between two bounds, ascending.
    // INVARIANT: each was live and visible at the pinned number when it was taken, so it stays until the pin goes.
    records: Vec<*const Record>,
    /// The entry that it stands at; none if there is no such index.
    at: usize,
    /// `records` are all from the first bound up to before the second. `None`: there is no bound.
    low: Option<Vec<u8>>,
    high: Option<Vec<u8>>,
    /// How many entries are taken next.
    reach: usize,
}

/// Entries that are taken where one is looked for.
const SHORT: usize = 4;
/// Entries that are taken where many are.
const LONG: usize = 16;

// SAFETY: the records are read by whoever has the iterator, and changed by nobody.
unsafe impl Send for Iter {}
// SAFETY: as above; shared references only read.
unsafe impl Sync for Iter {}

impl fmt::Debug for Iter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Iter")
            .field("sequence", &self.pin.sequence)
            .field("key", &self.key())
            .finish_non_exhaustive()
    }
}

/// Copies a bound to where one was before.
fn keep(place: &mut Option<Vec<u8>>, bound: Option<&[u8]>) {
    match (place, bound) {
        (place, None) => *place = None,
        (Some(kept), Some(bound)) => {
            kept.clear();
            kept.extend_from_slice(bound);
        }
        (place, Some(bound)) => *place = Some(bound.to_vec()),
    }
}

/// The leaf that a key belongs to, and where in it: the index of the first entry that is not smaller.
fn place(tree: &Tree, key: &[u8]) -> Result<(Position, usize)> {
    let position = tree.index.find(&tree.keys, key);
    let found = tree.entries(position)?.find(&tree.keys, key);
    Ok((position, found.unwrap_or_else(|place| place)))
}

impl Iter {
    pub(crate) fn new(pin: Pin, verifies: bool) -> Self {
        Self {
            pin,
            verifies,
            records: Vec::new(),
            at: 0,
            low: None,
            high: None,
            reach: SHORT,
        }
    }

    /// Whether it stands at an entry.
    #[inline]
    pub fn valid(&self) -> bool {
        self.at < self.records.len()
    }

    /// The key of the entry that it stands at.
    #[inline]
    pub fn key(&self) -> Option<&[u8]> {
        let record = *self.records.get(self.at)?;
        // SAFETY: the invariant of `records`.
        Some(unsafe { Record::key(record) })
    }

    /// The value of the entry that it stands at.
    #[inline]
    pub fn value(&self) -> Option<&[u8]> {
        let record = *self.records.get(self.at)?;
        // SAFETY: the invariant of `records`.
        Some(unsafe { Record::value(record) })
    }

    /// Goes to the first entry. Whether there is one.
    ///
    /// # Errors
    /// `Damaged`, `Broken`; it stands at none then.
    pub fn seek_to_first(&mut self) -> Result<bool> {
        self.reach = LONG;
        self.forward_from(None)
    }

    /// Goes to the last entry. Whether there is one.
    ///
    /// # Errors
    /// As for [`Iter::seek_to_first`].
    pub fn seek_to_last(&mut self) -> Result<bool> {
        self.reach = LONG;
        self.backward_from(None)
    }

    /// Goes to the first entry whose key is not smaller. Whether there is one.
    ///
    /// # Errors
    /// As for [`Iter::seek_to_first`].
    pub fn seek(&mut self, key: &[u8]) -> Result<bool> {
        self.reach = SHORT;
        self.forward_from(Some(key))
    }

    /// Goes to the next entry. Whether there is one; if not, or if it stands at none, it stands at none.
    ///
    /// # Errors
    /// As for [`Iter::seek_to_first`].
    #[expect(
        clippy::should_implement_trait,
        reason = "an entry is borrowed from the iterator, which `Iterator` cannot say"
    )]
    #[inline]
    pub fn next(&mut self) -> Result<bool> {
        if self.at + 1 < self.records.len() {
            self.at += 1;
            return self.arrive();
        }
        self.next_row()
    }

    /// Goes to the entry before. Whether there is one; if not, or if it stands at none, it stands at none.
    ///
    /// # Errors
    /// As for [`Iter::seek_to_first`].
    #[inline]
    pub fn prev(&mut self) -> Result<bool> {
        if self.valid() && self.at > 0 {
            self.at -= 1;
            return self.arrive();
        }
        self.previous_row()
    }

    #[inline(never)]
    fn next_row(&mut self) -> Result<bool> {
        let high = match self.valid() {
            true => self.high.take(),
            false => None,
        };
        self.reach = (2 * self.reach).min(SLOTS);
        match high {
            // Leaves were split or merged meanwhile, perhaps: the bound still parts what was seen from what was not.
            Some(high) => self.forward_from(Some(&high)),
            None => Ok(self.stand_nowhere()),
        }
    }

    #[inline(never)]
    fn previous_row(&mut self) -> Result<bool> {
        let low = match self.valid() {
            true => self.low.take(),
            false => None,
        };
        self.reach = (2 * self.reach).min(SLOTS);
        match low {
            Some(low) => self.backward_from(Some(&low)),
            None => Ok(self.stand_nowhere()),
        }
    }

    fn stand_nowhere(&mut self) -> bool {
        self.records.clear();
        false
    }

    /// Takes the first row of entries that are not below a key.
    fn forward_from(&mut self, key: Option<&[u8]>) -> Result<bool> {
        self.records.clear();
        let db = self.pin.db.clone();
        let tree = db.readable()?;
        let (mut position, mut from) = match key {
            None => (tree.index.first(), 0),
            Some(key) => place(&tree, key)?,
        };
        loop {
            let entries = tree.entries(position)?;
            let to = (from + self.reach).min(entries.len());
            self.take(entries, from..to);
            let is_end = to == entries.len();
            if !self.records.is_empty() {
                self.at = 0;
                let high = match is_end {
                    true => tree.bounds(position).1,
                    false => Some(entries.key(to)),
                };
                keep(&mut self.low, key);
                keep(&mut self.high, high);
                return self.arrive();
            }
            from = to;
            if is_end {
                let Some(next) = tree.index.next(position) else {
                    return Ok(false);
                };
                (position, from) = (next, 0);
            }
        }
    }

    /// Takes the last row of entries that are below a key.
    fn backward_from(&mut self, key: Option<&[u8]>) -> Result<bool> {
        self.records.clear();
        let db = self.pin.db.clone();
        let tree = db.readable()?;
        let (mut position, mut to) = match key {
            None => {
                let last = tree.index.last();
                (last, tree.entries(last)?.len())
            }
            Some(key) => place(&tree, key)?,
        };
        loop {
            let entries = tree.entries(position)?;
            let from = to.saturating_sub(self.reach);
            self.take(entries, from..to);
            if let Some(last) = self.records.len().checked_sub(1) {
                self.at = last;
                let low = match from {
                    0 => tree.bounds(position).0,
                    from => Some(entries.key(from)),
                };
                keep(&mut self.low, low);
                keep(&mut self.high, key);
                return self.arrive();
            }
            to = from;
            if to == 0 {
                let Some(previous) = tree.index.previous(position) else {
                    return Ok(false);
                };
                (position, to) = (previous, tree.entries(previous)?.len());
            }
        }
    }

    /// Takes what is visible of some entries.
    fn take(&mut self, entries: &Entries, row: std::ops::Range<usize>) {
        let sequence = self.pin.sequence;
        let records = entries.records[row].iter();
        // SAFETY: entered records are live, and the writer is kept out.
        let seen = records.filter_map(|&record| unsafe { visible(record, sequence) });
        self.records.extend(seen);
    }

    /// It stands at an entry, which is looked at now if that is wanted.
    #[inline]
    fn arrive(&mut self) -> Result<bool> {
        if self.verifies
            && let Some(&record) = self.records.get(self.at)
        {
            // SAFETY: the invariant of `records`.
            unsafe { Record::verify(record) }.inspect_err(|_| self.records.clear())?;
        }
        Ok(true)
    }
}
