//! Which leaf a key belongs to: the upper levels of the tree, in plain memory, made anew when a database is opened.
//!
//! Two levels: chunks of up to [`CHUNK_MAX`] nodes, and a row of chunks. Both are searched by heads ([`Sorted`]). A
//! million keys have some 25 thousand leaves, hence two hundred chunks.

use std::sync::OnceLock;

use arrayvec::ArrayVec;
use durum_persist::line::{LINE, prefetch, prefetch_to_write};

use crate::comparator::Keys;
use crate::error::{Error, Result};
use crate::media::{Leaf, Media, Record, SLOTS, slot_of};
use crate::sorted::Sorted;

const CHUNK_MAX: usize = 128;

/// A leaf, as it is known in memory.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) leaf: *mut Leaf,
    /// No key of the leaf is smaller. Empty in the first node, where it is no bound.
    pub(crate) low: Box<[u8]>,
    /// Set when the leaf is first looked at. As long as it is not, nobody has changed the leaf.
    entries: OnceLock<Box<Entries>>,
}

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
        let start = (&raw const self.records).addr();
        for line in (start..start + size_of_val(&self.records)).step_by(LINE) {
            prefetch(line);
        }
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
    fn load(
        media: &Media,
        keys: &Keys,
        leaf: *mut Leaf,
        low: Option<&[u8]>,
        high: Option<&[u8]>,
    ) -> Result<Box<Self>> {
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

    /// The place of a key, which is about to be written: if it has a record, that is freed and its slot changes, and
    /// these places are fetched together with the record's key.
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

impl Node {
    pub(crate) fn new(leaf: *mut Leaf, low: Box<[u8]>) -> Self {
        Self {
            leaf,
            low,
            entries: OnceLock::new(),
        }
    }

    pub(crate) fn with_entries(leaf: *mut Leaf, low: Box<[u8]>, entries: Entries) -> Self {
        Self {
            leaf,
            low,
            entries: OnceLock::from(Box::new(entries)),
        }
    }
}

/// Which node, as long as no node comes or goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Position {
    chunk: usize,
    node: usize,
}

#[derive(Debug)]
struct Chunk {
    /// The bounds of all nodes but the first.
    order: Sorted<Vec<u64>>,
    nodes: Vec<Node>,
}

impl Chunk {
    fn new(keys: &Keys, nodes: Vec<Node>) -> Self {
        Self {
            order: Sorted::of(keys, nodes.len() - 1, |index| &nodes[index + 1].low),
            nodes,
        }
    }

    fn low(&self) -> &[u8] {
        &self.nodes[0].low
    }
}

/// Fetches the records that come first in a row, forward or backward, up to `count`. How many of these it has not.
fn fetch<const FORWARD: bool>(records: &[*mut Record], count: usize) -> usize {
    let reached = count.min(records.len());
    let near = match FORWARD {
        true => &records[..reached],
        false => &records[records.len() - reached..],
    };
    near.iter().for_each(|record| prefetch(record.addr()));
    count - reached
}

/// All nodes in the order of their keys: at least one.
#[derive(Debug)]
pub(crate) struct Index {
    /// The bounds of all chunks but the first.
    order: Sorted<Vec<u64>>,
    chunks: Vec<Chunk>,
}

impl Index {
    pub(crate) fn new(keys: &Keys, first: Node) -> Self {
        Self {
            order: Sorted::default(),
            chunks: vec![Chunk::new(keys, vec![first])],
        }
    }

    /// The node that a key belongs to.
    #[inline]
    pub(crate) fn find(&self, keys: &Keys, key: &[u8]) -> Position {
        let chunk = self
            .order
            .find(keys, key, |index| self.chunks[index + 1].low());
        let chunk = chunk.map_or_else(|before| before, |equal| equal + 1);
        let Chunk { order, nodes } = &self.chunks[chunk];
        let node = order.find(keys, key, |index| &nodes[index + 1].low);
        let node = node.map_or_else(|before| before, |equal| equal + 1);
        Position { chunk, node }
    }

    #[inline]
    pub(crate) fn node(&self, at: Position) -> &Node {
        &self.chunks[at.chunk].nodes[at.node]
    }

    /// The records of a node.
    #[inline]
    pub(crate) fn entries(&self, media: &Media, keys: &Keys, at: Position) -> Result<&Entries> {
        match self.node(at).entries.get() {
            Some(entries) => Ok(entries),
            None => self.load(media, keys, at),
        }
    }

    #[cold]
    fn load(&self, media: &Media, keys: &Keys, at: Position) -> Result<&Entries> {
        let node = self.node(at);
        let low = (at != self.first()).then_some(&*node.low);
        let high = self.next(at).map(|next| &*self.node(next).low);
        let entries = Entries::load(media, keys, node.leaf, low, high)?;
        Ok(node.entries.get_or_init(|| entries))
    }

    /// Fetches what somebody will look at soon who goes forward or backward: `count` records from `place` on or before
    /// it, and where those beyond them are.
    pub(crate) fn fetch_beyond<const FORWARD: bool>(
        &self,
        mut at: Position,
        place: usize,
        count: usize,
    ) {
        let entries_of = |at: Position| self.node(at).entries.get();
        let Some(entries) = entries_of(at) else {
            return;
        };
        let records = match FORWARD {
            true => entries.records.get(place..),
            false => entries.records.get(..place),
        };
        let mut left = fetch::<FORWARD>(records.unwrap_or_default(), count);
        while left > 0
            && let Some(next) = self.beyond::<FORWARD>(at)
            && let Some(entries) = entries_of(next)
        {
            left = fetch::<FORWARD>(&entries.records, left);
            at = next;
        }
        if let Some(entries) = self.beyond::<FORWARD>(at).and_then(entries_of) {
            entries.fetch_records();
        }
    }

    /// The records of a node, to be changed.
    pub(crate) fn entries_mut(
        &mut self,
        media: &Media,
        keys: &Keys,
        at: Position,
    ) -> Result<&mut Entries> {
        self.entries(media, keys, at)?;
        let node = &mut self.chunks[at.chunk].nodes[at.node];
        Ok(node.entries.get_mut().expect("they were just loaded"))
    }

    pub(crate) fn first(&self) -> Position {
        Position { chunk: 0, node: 0 }
    }

    pub(crate) fn last(&self) -> Position {
        let chunk = self.chunks.len() - 1;
        let node = self.chunks[chunk].nodes.len() - 1;
        Position { chunk, node }
    }

    /// The next node, forward or backward.
    pub(crate) fn beyond<const FORWARD: bool>(&self, at: Position) -> Option<Position> {
        if FORWARD {
            self.next(at)
        } else {
            self.previous(at)
        }
    }

    pub(crate) fn next(&self, at: Position) -> Option<Position> {
        let Position { chunk, node } = at;
        if node + 1 < self.chunks[chunk].nodes.len() {
            let node = node + 1;
            return Some(Position { chunk, node });
        }
        let chunk = chunk + 1;
        (chunk < self.chunks.len()).then_some(Position { chunk, node: 0 })
    }

    pub(crate) fn previous(&self, at: Position) -> Option<Position> {
        let Position { chunk, node } = at;
        if node > 0 {
            let node = node - 1;
            return Some(Position { chunk, node });
        }
        let chunk = chunk.checked_sub(1)?;
        let node = self.chunks[chunk].nodes.len() - 1;
        Some(Position { chunk, node })
    }

    /// Enters a node behind another.
    pub(crate) fn insert_after(&mut self, keys: &Keys, at: Position, node: Node) {
        let chunk = &mut self.chunks[at.chunk];
        let Chunk { order, nodes } = chunk;
        order.insert(keys, at.node, &node.low, |index| &nodes[index + 1].low);
        nodes.insert(at.node + 1, node);
        if nodes.len() <= CHUNK_MAX {
            return;
        }
        // Keys that come in their order leave full chunks behind.
        let is_at_end = at.node + 2 == nodes.len();
        let kept = match is_at_end {
            true => nodes.len() - 1,
            false => nodes.len() / 2,
        };
        let rest = nodes.split_off(kept);
        order.truncate(kept - 1);
        let rest = Chunk::new(keys, rest);
        let chunks = &self.chunks;
        self.order
            .insert(keys, at.chunk, rest.low(), |index| chunks[index + 1].low());
        self.chunks.insert(at.chunk + 1, rest);
    }

    /// Takes a node off, which is not the first one. Its range goes to the node before.
    pub(crate) fn remove(&mut self, keys: &Keys, at: Position) {
        let Chunk { order, nodes } = &mut self.chunks[at.chunk];
        nodes.remove(at.node);
        if at.node > 0 {
            order.remove(at.node - 1);
            return;
        }
        // The chunk has another bound now, or goes.
        self.order.remove(at.chunk - 1);
        if nodes.is_empty() {
            self.chunks.remove(at.chunk);
            return;
        }
        order.remove(0);
        let chunks = &self.chunks;
        let key_at = |index: usize| match index + 1 < at.chunk {
            true => chunks[index + 1].low(),
            false => chunks[index + 2].low(),
        };
        let low = chunks[at.chunk].low();
        self.order.insert(keys, at.chunk - 1, low, key_at);
    }

    /// The number of nodes.
    pub(crate) fn len(&self) -> usize {
        self.chunks.iter().map(|chunk| chunk.nodes.len()).sum()
    }

    /// The number of nodes before this one.
    pub(crate) fn rank(&self, at: Position) -> usize {
        let before = self.chunks[..at.chunk].iter();
        before.map(|chunk| chunk.nodes.len()).sum::<usize>() + at.node
    }

    /// Bytes of plain memory that it takes, about.
    pub(crate) fn memory(&self) -> usize {
        let nodes = self.chunks.iter().flat_map(|chunk| &chunk.nodes);
        nodes
            .map(|node| {
                let entries = node.entries.get().map_or(0, |_| size_of::<Entries>());
                size_of::<Node>() + size_of::<u64>() + node.low.len() + entries
            })
            .sum()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn node(number: u64) -> Node {
        let low = match number {
            0 => Box::default(),
            number => Box::from(number.to_string().as_bytes()),
        };
        Node::with_entries(std::ptr::null_mut(), low, Entries::default())
    }

    proptest! {
        #[test]
        fn nodes_are_found_as_in_a_plain_row(
            steps in prop::collection::vec((1..100_000u64, 0..4u8), 0..900),
            ascending in any::<bool>(),
        ) {
            let keys = Keys::Bytewise;
            let mut index = Index::new(&keys, node(0));
            let mut row: Vec<Vec<u8>> = vec![Vec::new()];
            for (step, (number, kind)) in steps.into_iter().enumerate() {
                let number = match ascending {
                    true => 100_000 + step as u64,
                    false => number,
                };
                let key = number.to_string().into_bytes();
                let at = index.find(&keys, &key);
                let expected = row.partition_point(|low| *low <= key) - 1;
                prop_assert_eq!(index.rank(at), expected);
                prop_assert_eq!(&*index.node(at).low, &row[expected][..]);
                if kind == 0 && expected > 0 {
                    index.remove(&keys, at);
                    row.remove(expected);
                } else if row[expected] != key {
                    index.insert_after(&keys, at, node(number));
                    row.insert(expected + 1, key);
                }
                prop_assert_eq!(index.len(), row.len());
            }
            let mut at = Some(index.first());
            for low in &row {
                let here = at.expect("as many nodes as bounds");
                prop_assert_eq!(&*index.node(here).low, &low[..]);
                at = index.next(here);
                prop_assert!(at.is_none_or(|next| index.previous(next) == Some(here)));
            }
            prop_assert_eq!((at, index.rank(index.last()) + 1), (None, row.len()));
        }
    }
}
