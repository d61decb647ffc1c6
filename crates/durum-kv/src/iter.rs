//! Going over entries in the order of keys.
//!
//! An iterator pins a sequence number, so the records that it sees stay where they are. It takes the records of a leaf at a time, and needs no lock until it comes to the next one.

use std::fmt;

use crate::error::Result;
use crate::index::Position;
use crate::media::Record;
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
    /// What the pinned number sees of one leaf, ascending.
    // INVARIANT: each was live and visible at the pinned number when it was taken, so it stays until the pin goes.
    records: Vec<*const Record>,
    /// The entry that it stands at; none if there is no such index.
    at: usize,
    /// `records` are all from the first bound up to the second. `None`: there is no bound.
    low: Option<Vec<u8>>,
    high: Option<Vec<u8>>,
}

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

impl Iter {
    pub(crate) fn new(pin: Pin, verifies: bool) -> Self {
        Self {
            pin,
            verifies,
            records: Vec::new(),
            at: 0,
            low: None,
            high: None,
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
        self.forward_from(|tree| (tree.index.first(), None))
    }

    /// Goes to the last entry. Whether there is one.
    ///
    /// # Errors
    /// As for [`Iter::seek_to_first`].
    pub fn seek_to_last(&mut self) -> Result<bool> {
        self.backward_from(|tree| Some(tree.index.last()))
    }

    /// Goes to the first entry whose key is not smaller. Whether there is one.
    ///
    /// # Errors
    /// As for [`Iter::seek_to_first`].
    pub fn seek(&mut self, key: &[u8]) -> Result<bool> {
        self.forward_from(|tree| (tree.index.find(&tree.keys, key), Some(key)))
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
        self.next_leaf()
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
        self.previous_leaf()
    }

    #[inline(never)]
    fn next_leaf(&mut self) -> Result<bool> {
        let high = match self.valid() {
            true => self.high.take(),
            false => None,
        };
        let Some(high) = high else {
            return Ok(self.stand_nowhere());
        };
        // Leaves were split or merged meanwhile, perhaps: the bound still parts what was seen from what was not.
        self.forward_from(|tree| (tree.index.find(&tree.keys, &high), Some(&high)))
    }

    #[inline(never)]
    fn previous_leaf(&mut self) -> Result<bool> {
        let low = match self.valid() {
            true => self.low.take(),
            false => None,
        };
        let Some(low) = low else {
            return Ok(self.stand_nowhere());
        };
        self.records.clear();
        let pinned = self.pin.db.clone();
        let tree = pinned.readable()?;
        let at = tree.index.find(&tree.keys, &low);
        // The leaf may reach below the bound now.
        self.take(&tree, at)?;
        let before = self.count_below(&tree, &low);
        if before > 0 {
            self.records.truncate(before);
            self.high = Some(low);
            self.at = before - 1;
            return self.arrive();
        }
        drop(tree);
        self.backward_from(|tree| {
            let at = tree.index.find(&tree.keys, &low);
            tree.index.previous(at)
        })
    }

    fn stand_nowhere(&mut self) -> bool {
        self.records.clear();
        false
    }

    /// How many of the records have smaller keys.
    fn count_below(&self, tree: &Tree, key: &[u8]) -> usize {
        self.records.partition_point(|&record| {
            // SAFETY: the invariant of `records`.
            let other = unsafe { Record::key(record) };
            tree.keys.compare(other, key).is_lt()
        })
    }

    /// Goes to the first entry of a leaf that is not below a key, or of the leaves behind.
    fn forward_from<'k>(
        &mut self,
        begin: impl FnOnce(&Tree) -> (Position, Option<&'k [u8]>),
    ) -> Result<bool> {
        self.records.clear();
        let db = self.pin.db.clone();
        let tree = db.readable()?;
        let (position, key) = begin(&tree);
        self.take(&tree, position)?;
        self.at = key.map_or(0, |key| self.count_below(&tree, key));
        let mut next = tree.index.next(position);
        while !self.valid() {
            let Some(position) = next else {
                return Ok(self.stand_nowhere());
            };
            self.take(&tree, position)?;
            self.at = 0;
            next = tree.index.next(position);
        }
        self.arrive()
    }

    /// Goes to the last entry of a leaf, or of the leaves before.
    fn backward_from(&mut self, begin: impl FnOnce(&Tree) -> Option<Position>) -> Result<bool> {
        self.records.clear();
        let db = self.pin.db.clone();
        let tree = db.readable()?;
        let mut next = begin(&tree);
        while let Some(position) = next {
            self.take(&tree, position)?;
            if let Some(last) = self.records.len().checked_sub(1) {
                self.at = last;
                return self.arrive();
            }
            next = tree.index.previous(position);
        }
        Ok(self.stand_nowhere())
    }

    /// Takes what is visible of a leaf.
    fn take(&mut self, tree: &Tree, position: Position) -> Result<()> {
        self.records.clear();
        let entries = tree.entries(position)?;
        let sequence = self.pin.sequence;
        let records = entries.records.iter();
        // SAFETY: entered records are live, and the writer is kept out.
        let seen = records.filter_map(|&record| unsafe { visible(record, sequence) });
        self.records.extend(seen);
        let (low, high) = tree.bounds(position);
        keep(&mut self.low, low);
        keep(&mut self.high, high);
        Ok(())
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
