//! Which leaf a key belongs to: the upper levels of the tree, in plain memory, made anew when a database is opened.
//!
//! Two levels: chunks of up to [`CHUNK_MAX`] nodes, and a row of chunks. Both are searched by heads ([`Sorted`]). A
//! million keys have some 25 thousand leaves, hence two hundred chunks.

use std::sync::OnceLock;

use durum_persist::line::prefetch;

use crate::comparator::Keys;
use crate::entries::Entries;
use crate::error::Result;
use crate::media::{Leaf, Media, Record};
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
    shape: u64,
}

impl Index {
    pub(crate) fn new(keys: &Keys, first: Node) -> Self {
        Self {
            order: Sorted::default(),
            chunks: vec![Chunk::new(keys, vec![first])],
            shape: 0,
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

    /// The records of a node, if it was looked at before.
    #[inline]
    pub(crate) fn known_entries(&self, at: Position) -> Option<&Entries> {
        self.node(at).entries.get().map(|entries| &**entries)
    }

    /// Counts the times that a node of this index came or went: as long as it is the same, so are all positions.
    #[inline]
    pub(crate) fn shape(&self) -> u64 {
        self.shape
    }

    /// The records of a node.
    #[inline]
    pub(crate) fn entries(&self, media: &Media, keys: &Keys, at: Position) -> Result<&Entries> {
        match self.known_entries(at) {
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
        let entries_of = |at| self.known_entries(at);
        let Some(entries) = entries_of(at) else {
            return;
        };
        let records = match FORWARD {
            true => entries.records().get(place..),
            false => entries.records().get(..place),
        };
        let mut left = fetch::<FORWARD>(records.unwrap_or_default(), count);
        while left > 0
            && let Some(next) = self.beyond::<FORWARD>(at)
            && let Some(entries) = entries_of(next)
        {
            left = fetch::<FORWARD>(entries.records(), left);
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
        self.shape += 1;
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
        self.shape += 1;
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
