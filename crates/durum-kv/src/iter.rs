//! Going over entries in the order of keys.
//!
//! An iterator pins a sequence number, so the records that it sees stay where they are. It takes a row of records at a
//! time, and needs no lock until it comes to the end of the row. Rows begin short, for those who look for one entry,
//! and grow up to a leaf.
//!
//! As long as no key comes or goes, the next row is where this one ends. Otherwise the key at this end is looked for:
//! its record is pinned, and whatever came or went beside it is nothing that the pinned number sees.

use std::fmt;
use std::ops::Range;

use crate::error::Result;
use crate::index::Position;
use crate::media::{Record, SLOTS};
use crate::snapshot::Pin;
use crate::tree::Tree;
use crate::versions::visible;

/// The entries of a database as they were when the iterator was made, in the order of keys.
///
/// It stands at an entry, or at none: after it was made, after the last entry, before the first, and after an error.
/// Each step says whether it stands at one.
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
    /// What the pinned number sees of a row of entries, ascending.
    // INVARIANT: each was live and visible at the pinned number when it was taken, so it stays until the pin goes.
    records: Vec<*const Record>,
    /// The entry that it stands at; none if there is no such index.
    at: usize,
    /// The leaf that the row lies in, and where in it, as long as the tree has this shape.
    leaf: Position,
    row: Range<usize>,
    shape: u64,
    /// The leaf that was checked last, and the shape of the tree then.
    verified: Option<(Position, u64)>,
    /// How many entries are taken next.
    reach: usize,
}

/// Entries that are taken where one is looked for.
const SHORT: usize = 1;
/// Entries that are taken where many are.
const LONG: usize = 16;
/// So many times the entries of one row has the next one.
const GROWTH: usize = 4;

// SAFETY: the records are read by whoever has the iterator, and changed by nobody.
unsafe impl Send for Iter {}
// SAFETY: shared references only read the records, which nobody changes.
unsafe impl Sync for Iter {}

impl fmt::Debug for Iter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Iter")
            .field("sequence", &self.pin.sequence)
            .field("key", &self.key())
            .finish_non_exhaustive()
    }
}

/// The leaf that a key belongs to, and which of its entries are equal: one, or none where it would be.
fn place(tree: &Tree, key: &[u8]) -> Result<(Position, Range<usize>)> {
    let position = tree.find(key)?;
    let found = tree.entries(position)?.find(&tree.keys, key);
    Ok((
        position,
        found.map_or_else(|place| place..place, |place| place..place + 1),
    ))
}

/// What is visible of some entries, put to `records`.
#[inline]
fn take(records: &mut Vec<*const Record>, entries: &[*mut Record], sequence: u64) {
    records.clear();
    // SAFETY: entered records are live, and the writer is kept out.
    let seen = entries
        .iter()
        .filter_map(|&record| unsafe { visible(record, sequence) });
    records.extend(seen);
}

/// Checks a leaf as a whole, unless it is the one that was checked last: a key that is damaged stands at another place
/// of it.
fn verify_once(tree: &Tree, leaf: Position, verified: &mut Option<(Position, u64)>) -> Result<()> {
    let here = Some((leaf, tree.shape));
    if *verified != here {
        tree.verify(leaf)?;
        *verified = here;
    }
    Ok(())
}

impl Iter {
    pub(crate) fn new(pin: Pin, verifies: bool) -> Self {
        Self {
            pin,
            verifies,
            records: Vec::new(),
            at: 0,
            leaf: Position::default(),
            row: 0..0,
            shape: 0,
            verified: None,
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
        self.row_from::<true>(|tree, _| Ok((tree.first()?, 0)))
    }

    /// Goes to the last entry. Whether there is one.
    ///
    /// # Errors
    /// As for [`Iter::seek_to_first`].
    pub fn seek_to_last(&mut self) -> Result<bool> {
        self.reach = LONG;
        self.row_from::<false>(|tree, _| {
            let last = tree.last()?;
            Ok((last, tree.entries(last)?.len()))
        })
    }

    /// Goes to the first entry whose key is not smaller. Whether there is one.
    ///
    /// # Errors
    /// As for [`Iter::seek_to_first`].
    pub fn seek(&mut self, key: &[u8]) -> Result<bool> {
        self.reach = SHORT;
        self.row_from::<true>(|tree, _| {
            let (position, equal) = place(tree, key)?;
            Ok((position, equal.start))
        })
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
            return Ok(true);
        }
        self.next_row::<true>()
    }

    /// Goes to the entry before. Whether there is one; if not, or if it stands at none, it stands at none.
    ///
    /// # Errors
    /// As for [`Iter::seek_to_first`].
    #[inline]
    pub fn prev(&mut self) -> Result<bool> {
        if self.valid() && self.at > 0 {
            self.at -= 1;
            return Ok(true);
        }
        self.next_row::<false>()
    }

    /// How many entries there are.
    pub(crate) fn count(mut self) -> Result<u64> {
        let mut count = 0;
        let mut is_there = self.seek_to_first()?;
        while is_there {
            count += 1;
            is_there = self.next()?;
        }
        Ok(count)
    }

    /// Takes the row beyond this one.
    #[inline(never)]
    fn next_row<const FORWARD: bool>(&mut self) -> Result<bool> {
        let end = match FORWARD {
            true => self.records.last(),
            false => self.records.first(),
        };
        let Some(&end) = end.filter(|_| self.valid()) else {
            self.records.clear();
            return Ok(false);
        };
        self.reach = (GROWTH * self.reach).min(SLOTS);
        self.row_from::<FORWARD>(|tree, iter| {
            let (leaf, row) = iter.row_of(tree, end)?;
            Ok((leaf, if FORWARD { row.end } else { row.start }))
        })
    }

    /// Where the row is that it stands in; or this record of it, if entries have moved since.
    fn row_of(&self, tree: &Tree, record: *const Record) -> Result<(Position, Range<usize>)> {
        match tree.shape == self.shape {
            true => Ok((self.leaf, self.row.clone())),
            // SAFETY: the invariant of `records`.
            false => place(tree, unsafe { Record::key(record) }),
        }
    }

    /// Takes the nearest row that has entries: forward from a place on, or backward up to before it. A place is a leaf,
    /// and an index there.
    fn row_from<const FORWARD: bool>(
        &mut self,
        place: impl FnOnce(&Tree, &Self) -> Result<(Position, usize)>,
    ) -> Result<bool> {
        let db = &*self.pin.db;
        let tree = db.readable().inspect_err(|_| self.records.clear())?;
        let placed = place(&tree, self);
        self.records.clear();
        let (mut leaf, mut at) = placed?;
        loop {
            if self.verifies {
                verify_once(&tree, leaf, &mut self.verified)?;
            }
            let entries = tree.entries(leaf)?;
            let row = match FORWARD {
                true => at..(at + self.reach).min(entries.len()),
                false => at.saturating_sub(self.reach)..at,
            };
            let records = &entries.records()[row.clone()];
            take(&mut self.records, records, self.pin.sequence);
            at = if FORWARD { row.end } else { row.start };
            if let Some(last) = self.records.len().checked_sub(1) {
                if self.reach >= LONG {
                    tree.index.fetch_beyond::<FORWARD>(leaf, at, self.reach);
                }
                self.at = if FORWARD { 0 } else { last };
                (self.leaf, self.row, self.shape) = (leaf, row, tree.shape);
                return Ok(true);
            }
            if at == if FORWARD { entries.len() } else { 0 } {
                let Some(next) = tree.beyond::<FORWARD>(leaf)? else {
                    return Ok(false);
                };
                leaf = next;
                at = if FORWARD {
                    0
                } else {
                    tree.entries(leaf)?.len()
                };
            }
        }
    }
}
