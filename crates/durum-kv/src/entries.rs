//! What a leaf has, sorted: in plain memory, made when the leaf is first looked at.

use std::ops::Range;

use arrayvec::ArrayVec;
use durum_persist::line::{LINE, prefetch, prefetch_all, prefetch_to_write};

use crate::comparator::Keys;
use crate::error::{Error, Result};
use crate::media::{Leaf, Media, Record, SLOTS, slot_of};
use crate::sorted::{Sorted, find_among};

/// A record, and its slot in the leaf.
type Row = (*mut Record, usize);

/// The records of a leaf in the order of their keys. In one piece, because it is rarely in the cache: its lines can be
/// fetched together.
#[derive(Debug, Default)]
#[repr(C, align(64))]
pub(crate) struct Entries {
    order: Sorted<ArrayVec<u64, SLOTS>>,
    records: ArrayVec<*mut Record, SLOTS>,
    /// Where each record stands in the leaf.
    slots: ArrayVec<u8, SLOTS>,
    /// Bit i: slot i has a record.
    used: u64,
    /// Some of them leave with the running commit ([`Tree::leave`](crate::tree::Tree)).
    has_leaving: bool,
}

impl Entries {
    /// Fetches the records' addresses: where the search finds which of them is wanted, it need not wait once more.
    #[inline(always)]
    pub(crate) fn fetch_records(&self) {
        prefetch_all(&self.records);
    }

    /// Fetches the order, by which [`Entries::narrow`] goes.
    #[inline(always)]
    pub(crate) fn fetch_order(&self) {
        prefetch_all(&self.order);
    }

    /// Among which entries a key is, if it is there. Fetches what the first of them leads to, and its slot.
    #[inline]
    pub(crate) fn narrow(&self, keys: &Keys, key: &[u8]) -> Range<usize> {
        let among = self.order.narrow(keys, key);
        prefetch(self.records.as_ptr().wrapping_add(among.start).addr());
        prefetch(self.slots.as_ptr().wrapping_add(among.start).addr());
        among
    }

    /// The place of a key among those that [`Entries::narrow`] has left.
    #[inline]
    pub(crate) fn find_among(
        &self,
        among: Range<usize>,
        keys: &Keys,
        key: &[u8],
    ) -> Result<usize, usize> {
        find_among(among, keys, key, |index| self.key(index))
    }

    #[inline(always)]
    pub(crate) fn records(&self) -> &[*mut Record] {
        &self.records
    }

    #[inline(always)]
    pub(crate) fn record(&self, index: usize) -> *mut Record {
        self.records[index]
    }

    pub(crate) fn replace(&mut self, index: usize, record: *mut Record) {
        self.records[index] = record;
    }

    /// Reads a leaf, all of whose keys have to lie between the bounds.
    pub(crate) fn load(
        media: &Media,
        keys: &Keys,
        leaf: *mut Leaf,
        low: Option<&[u8]>,
        high: Option<&[u8]>,
    ) -> Result<Box<Self>> {
        // SAFETY: the leaf lies in the pool, and nobody changes it before it is known in memory.
        if !media.has_stale && unsafe { (*leaf).stale } != 0 {
            let reason = "a leaf marks slots, and the root says that none is marked";
            return Err(Error::damaged(leaf.addr(), reason));
        }
        let mut found: Vec<Row> = Vec::with_capacity(SLOTS);
        let compare = |a: &Row, b: &Row| {
            // SAFETY: those that are found were checked.
            let (a, b) = unsafe { (Record::key(a.0), Record::key(b.0)) };
            keys.compare(a, b)
        };
        for slot in 0..SLOTS {
            // SAFETY: the leaf lies in the pool, and nobody changes it before it is known in memory.
            let record = unsafe { (*leaf).slots[slot] };
            if record.is_null() {
                continue;
            }
            let record = media.record(record)?;
            // SAFETY: nobody changes the leaf before it is known in memory.
            let is_stale = unsafe { (*leaf).stale } >> slot & 1 == 1;
            // SAFETY: just checked.
            let key = unsafe {
                media.check_newest(&*record, is_stale)?;
                Record::key(record)
            };
            let is_below = low.is_some_and(|low| keys.compare(key, low).is_lt());
            let is_above = high.is_some_and(|high| keys.compare(key, high).is_ge());
            if is_below || is_above {
                let reason = "a key lies outside of the bounds of its leaf";
                return Err(Error::damaged(record.addr(), reason));
            }
            found.push((record, slot));
        }
        found.sort_unstable_by(compare);
        let mut pairs = found.windows(2);
        if let Some(pair) = pairs.find(|pair| compare(&pair[0], &pair[1]).is_eq()) {
            let reason = "a leaf has two records of one key";
            return Err(Error::damaged(pair[0].0.addr(), reason));
        }
        Ok(Box::new(Self::of(keys, &found)))
    }

    pub(crate) fn len(&self) -> usize {
        self.records.len()
    }

    pub(crate) fn slot(&self, index: usize) -> usize {
        usize::from(self.slots[index])
    }

    /// A slot without a record.
    pub(crate) fn free_slot(&self) -> Option<usize> {
        let slot = self.used.trailing_ones() as usize;
        (slot < SLOTS).then_some(slot)
    }

    #[inline]
    pub(crate) fn key(&self, index: usize) -> &[u8] {
        // SAFETY: records of entries were checked or made by us, and live as long as they are entered.
        unsafe { Record::key(self.records[index]) }
    }

    #[inline]
    pub(crate) fn find(&self, keys: &Keys, key: &[u8]) -> Result<usize, usize> {
        self.order.find(keys, key, |index| self.key(index))
    }

    /// The record of a key, which is about to be read: its first lines are fetched together. Where its value begins is
    /// known only when its head is there.
    #[inline]
    pub(crate) fn find_to_read(&self, keys: &Keys, key: &[u8]) -> Option<*mut Record> {
        let found = self.order.find(keys, key, |index| {
            let start = self.records[index].addr();
            prefetch(start + LINE);
            prefetch(start + 2 * LINE);
            self.key(index)
        });
        found.ok().map(|index| self.records[index])
    }

    /// The place of a key, which is about to be written: if it has a record, that changes, or it is freed and its slot
    /// changes. These places are fetched together with the record's key.
    #[inline]
    pub(crate) fn find_to_write(
        &self,
        media: &Media,
        keys: &Keys,
        leaf: *mut Leaf,
        key: &[u8],
    ) -> Result<usize, usize> {
        if let Keys::Custom(_) = keys {
            // Most of those that are compared are others.
            return self.find(keys, key);
        }
        self.order.find(keys, key, |index| {
            let start = self.records[index].addr();
            prefetch_to_write(start + LINE);
            prefetch_to_write(start + 2 * LINE);
            // SAFETY: entered records are live.
            unsafe { media.pool().prefetch_free(self.records[index].cast()) };
            prefetch_to_write(slot_of(leaf, self.slot(index)).addr());
            // Where the leaf's marks are.
            prefetch(leaf.addr());
            self.key(index)
        })
    }

    pub(crate) fn insert(&mut self, keys: &Keys, index: usize, record: *mut Record, slot: usize) {
        let Self { order, records, .. } = self;
        // SAFETY: as in `key`.
        let key_at = |index: usize| unsafe { Record::key(records[index]) };
        // SAFETY: the caller has made the record.
        order.insert(keys, index, unsafe { Record::key(record) }, key_at);
        records.insert(index, record);
        self.slots.insert(index, slot as u8);
        self.used |= 1 << slot;
    }

    /// Notes that an entry leaves with the running commit. Whether it is the first one.
    pub(crate) fn note_leaving(&mut self) -> bool {
        !std::mem::replace(&mut self.has_leaving, true)
    }

    pub(crate) fn has_leaving(&self) -> bool {
        self.has_leaving
    }

    /// Takes off the entries whose slots in the leaf are empty.
    pub(crate) fn remove_leaving(&mut self, leaf: *mut Leaf) {
        self.has_leaving = false;
        for index in (0..self.len()).rev() {
            // SAFETY: the leaf is live, and only the writer changes it.
            if unsafe { (*leaf).slots[self.slot(index)] }.is_null() {
                self.remove(index);
            }
        }
    }

    pub(crate) fn remove(&mut self, index: usize) {
        self.order.remove(index);
        self.records.remove(index);
        self.used &= !(1 << self.slots.remove(index));
    }

    /// Takes off the entries from `index` on.
    pub(crate) fn split_off(&mut self, index: usize) -> Vec<Row> {
        self.order.truncate(index);
        let slots = self.slots[index..].iter().map(|&slot| usize::from(slot));
        let records = self.records[index..].iter().copied();
        let taken: Vec<_> = records.zip(slots).collect();
        for (_, slot) in &taken {
            self.used &= !(1 << slot);
        }
        self.records.truncate(index);
        self.slots.truncate(index);
        taken
    }

    /// Entries of these records, which ascend.
    pub(crate) fn of(keys: &Keys, rows: &[Row]) -> Self {
        // SAFETY: as in `key`.
        let key_at = |index: usize| unsafe { Record::key(rows[index].0) };
        let mut entries = Self {
            order: Sorted::of(keys, rows.len(), key_at),
            ..Self::default()
        };
        for &(record, slot) in rows {
            entries.records.push(record);
            entries.slots.push(slot as u8);
            entries.used |= 1 << slot;
        }
        entries
    }
}
