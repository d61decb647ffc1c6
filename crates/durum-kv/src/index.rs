//! Which leaf a key belongs to: the upper levels of the tree, in plain memory, made anew when a database is opened.
//!
//! Two levels: chunks of up to [`CHUNK_MAX`] nodes, and a row of chunks. Both are searched by heads ([`Sorted`]). A
//! million keys have some 25 thousand leaves, hence two hundred chunks. Where chunks begin is read when the database is
//! opened, from its guides; their nodes when a key is first looked for there.

use durum_persist::line::prefetch;

use crate::chunk::{CHUNK_MAX, Chunk, Node, Row};
use crate::comparator::Keys;
use crate::entries::Entries;
use crate::error::Result;
use crate::media::{Leaf, Media, Record, Start};
use crate::sorted::Sorted;

/// Which node, as long as no node comes or goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Position {
    chunk: usize,
    node: usize,
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
    /// At least one chunk, ascending.
    pub(crate) fn new(keys: &Keys, chunks: Vec<Chunk>) -> Self {
        Self {
            order: Sorted::of(keys, chunks.len() - 1, |index| &chunks[index + 1].low),
            chunks,
            shape: 0,
        }
    }

    /// The nodes of a chunk.
    #[inline(always)]
    fn row(&self, media: &Media, keys: &Keys, chunk: usize) -> Result<&Row> {
        match self.chunks[chunk].row.get() {
            Some(row) => Ok(row),
            None => self.chunks[chunk].read(media, keys, self.chunks.get(chunk + 1)),
        }
    }

    /// Reads what nobody has looked at yet.
    pub(crate) fn read_all(&self, media: &Media, keys: &Keys) -> Result<()> {
        (0..self.chunks.len()).try_for_each(|chunk| self.row(media, keys, chunk).map(|_| ()))
    }

    pub(crate) fn chunks(&self) -> usize {
        self.chunks.len()
    }

    /// All leaves that were read.
    pub(crate) fn known_leaves(&self) -> impl Iterator<Item = *mut Leaf> {
        self.known_nodes().map(|node| node.leaf)
    }

    fn known_nodes(&self) -> impl Iterator<Item = &Node> {
        let rows = self.chunks.iter().filter_map(|chunk| chunk.row.get());
        rows.flat_map(|row| &row.nodes)
    }

    /// The node that a key belongs to.
    #[inline]
    pub(crate) fn find(&self, media: &Media, keys: &Keys, key: &[u8]) -> Result<Position> {
        let chunk = self
            .order
            .find(keys, key, |index| &self.chunks[index + 1].low);
        let chunk = chunk.map_or_else(|before| before, |equal| equal + 1);
        let Row { order, nodes } = self.row(media, keys, chunk)?;
        let node = order.find(keys, key, |index| &nodes[index + 1].low);
        let node = node.map_or_else(|before| before, |equal| equal + 1);
        Ok(Position { chunk, node })
    }

    #[inline]
    pub(crate) fn node(&self, at: Position) -> &Node {
        &self.chunks[at.chunk].known().nodes[at.node]
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
        let low = (at != Position::default()).then_some(&*node.low);
        let high = match self.known_next(at) {
            Some(next) => Some(&*self.node(next).low),
            None => self.chunks.get(at.chunk + 1).map(|chunk| &*chunk.low),
        };
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
            && let Some(next) = self.known_beyond::<FORWARD>(at)
            && let Some(entries) = entries_of(next)
        {
            left = fetch::<FORWARD>(entries.records(), left);
            at = next;
        }
        if let Some(entries) = self.known_beyond::<FORWARD>(at).and_then(entries_of) {
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
        let node = &mut self.chunks[at.chunk].known_mut().nodes[at.node];
        Ok(node.entries.get_mut().expect("they were just loaded"))
    }

    pub(crate) fn first(&self, media: &Media, keys: &Keys) -> Result<Position> {
        self.row(media, keys, 0)?;
        Ok(Position::default())
    }

    pub(crate) fn last(&self, media: &Media, keys: &Keys) -> Result<Position> {
        let chunk = self.chunks.len() - 1;
        let node = self.row(media, keys, chunk)?.nodes.len() - 1;
        Ok(Position { chunk, node })
    }

    /// Whether no node comes behind.
    pub(crate) fn is_last(&self, at: Position) -> bool {
        let Position { chunk, node } = at;
        chunk + 1 == self.chunks.len() && node + 1 == self.chunks[chunk].known().nodes.len()
    }

    /// The next node, forward or backward.
    pub(crate) fn beyond<const FORWARD: bool>(
        &self,
        media: &Media,
        keys: &Keys,
        at: Position,
    ) -> Result<Option<Position>> {
        let chunk = match FORWARD {
            true => at.chunk + 1,
            false => at.chunk.wrapping_sub(1),
        };
        let is_at_end = match FORWARD {
            true => at.node + 1 == self.chunks[at.chunk].known().nodes.len(),
            false => at.node == 0,
        };
        if is_at_end && chunk < self.chunks.len() {
            self.row(media, keys, chunk)?;
        }
        Ok(self.known_beyond::<FORWARD>(at))
    }

    /// The same, if it was read before.
    fn known_beyond<const FORWARD: bool>(&self, at: Position) -> Option<Position> {
        if FORWARD {
            self.known_next(at)
        } else {
            self.known_previous(at)
        }
    }

    fn known_next(&self, at: Position) -> Option<Position> {
        let Position { chunk, node } = at;
        if node + 1 < self.chunks[chunk].known().nodes.len() {
            let node = node + 1;
            return Some(Position { chunk, node });
        }
        let chunk = chunk + 1;
        self.chunks.get(chunk)?.row.get()?;
        Some(Position { chunk, node: 0 })
    }

    fn known_previous(&self, at: Position) -> Option<Position> {
        let Position { chunk, node } = at;
        if node > 0 {
            let node = node - 1;
            return Some(Position { chunk, node });
        }
        let chunk = chunk.checked_sub(1)?;
        let node = self.chunks[chunk].row.get()?.nodes.len() - 1;
        Some(Position { chunk, node })
    }

    /// Enters a node behind another. The number of the chunk that begins by that, if one does.
    pub(crate) fn insert_after(&mut self, keys: &Keys, at: Position, node: Node) -> Option<usize> {
        self.shape += 1;
        let Row { order, nodes } = self.chunks[at.chunk].known_mut();
        order.insert(keys, at.node, &node.low, |index| &nodes[index + 1].low);
        nodes.insert(at.node + 1, node);
        if nodes.len() <= CHUNK_MAX {
            return None;
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
            .insert(keys, at.chunk, &rest.low, |index| &chunks[index + 1].low);
        self.chunks.insert(at.chunk + 1, rest);
        Some(at.chunk + 1)
    }

    /// The first leaf of a chunk.
    pub(crate) fn first_leaf(&self, chunk: usize) -> *mut Leaf {
        self.chunks[chunk].first
    }

    /// Notes where the guides say where a chunk begins.
    pub(crate) fn set_start(&mut self, chunk: usize, start: *mut Start) {
        self.chunks[chunk].start = start;
    }

    /// Takes a node off, which is not the first one. Its range goes to the node before. If a chunk began with it: where
    /// the guides say so, and the leaf that it begins with now, null if it has gone.
    pub(crate) fn remove(&mut self, keys: &Keys, at: Position) -> Option<(*mut Start, *mut Leaf)> {
        self.shape += 1;
        let chunk = &mut self.chunks[at.chunk];
        let Row { order, nodes } = chunk.known_mut();
        nodes.remove(at.node);
        if at.node > 0 {
            order.remove(at.node - 1);
            return None;
        }
        // The chunk has another bound now, or goes.
        self.order.remove(at.chunk - 1);
        let start = self.chunks[at.chunk].start;
        let Row { order, nodes } = self.chunks[at.chunk].known_mut();
        let Some(first) = nodes.first() else {
            self.chunks.remove(at.chunk);
            return Some((start, std::ptr::null_mut()));
        };
        let (leaf, low) = (first.leaf, first.low.clone());
        order.remove(0);
        let chunk = &mut self.chunks[at.chunk];
        (chunk.first, chunk.low) = (leaf, low);
        let chunks = &self.chunks;
        let key_at = |index: usize| match index + 1 < at.chunk {
            true => &*chunks[index + 1].low,
            false => &*chunks[index + 2].low,
        };
        let low = &chunks[at.chunk].low;
        self.order.insert(keys, at.chunk - 1, low, key_at);
        Some((start, leaf))
    }

    /// The number of nodes. All were read ([`Index::read_all`]).
    pub(crate) fn len(&self) -> usize {
        self.known_nodes().count()
    }

    /// How many nodes `to` comes behind `from`.
    pub(crate) fn distance(
        &self,
        media: &Media,
        keys: &Keys,
        from: Position,
        to: Position,
    ) -> Result<usize> {
        let mut nodes = to.node;
        for chunk in from.chunk..to.chunk {
            nodes += self.row(media, keys, chunk)?.nodes.len();
        }
        Ok(nodes - from.node)
    }

    /// Bytes of plain memory that it takes, about.
    pub(crate) fn memory(&self) -> usize {
        self.known_nodes()
            .map(|node| {
                let entries = node.entries.get().map_or(0, |_| size_of::<Entries>());
                size_of::<Node>() + size_of::<u64>() + node.low.len() + entries
            })
            .sum()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use durum::{PoolOptions, Store, StoreOptions};
    use proptest::prelude::*;

    use super::*;

    /// Of an empty pool, as nothing is read here: all nodes are known.
    static MEDIA: LazyLock<Media> = LazyLock::new(|| {
        let dir = tempfile::tempdir_in("/dev/shm").unwrap();
        let store = Store::create(dir.path().join("store"), StoreOptions::new()).unwrap();
        Media::new(store.create_pool("kv", PoolOptions::new()).unwrap()).unwrap()
    });

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
            let (media, keys) = (&*MEDIA, &Keys::Bytewise);
            let mut index = Index::new(keys, vec![Chunk::new(keys, vec![node(0)])]);
            let mut row: Vec<Vec<u8>> = vec![Vec::new()];
            let distance = |index: &Index, at| index.distance(media, keys, Position::default(), at).unwrap();
            for (step, (number, kind)) in steps.into_iter().enumerate() {
                let number = match ascending {
                    true => 100_000 + step as u64,
                    false => number,
                };
                let key = number.to_string().into_bytes();
                let at = index.find(media, keys, &key).unwrap();
                let expected = row.partition_point(|low| *low <= key) - 1;
                prop_assert_eq!(distance(&index, at), expected);
                prop_assert_eq!(&*index.node(at).low, &row[expected][..]);
                if kind == 0 && expected > 0 {
                    index.remove(keys, at);
                    row.remove(expected);
                } else if row[expected] != key {
                    index.insert_after(keys, at, node(number));
                    row.insert(expected + 1, key);
                }
                prop_assert_eq!(index.len(), row.len());
            }
            let mut at = Some(index.first(media, keys).unwrap());
            for low in &row {
                let here = at.expect("as many nodes as bounds");
                prop_assert_eq!(&*index.node(here).low, &low[..]);
                at = index.beyond::<true>(media, keys, here).unwrap();
                let is_back = |next| index.beyond::<false>(media, keys, next).unwrap() == Some(here);
                prop_assert!(at.is_none_or(is_back));
                prop_assert_eq!(index.is_last(here), at.is_none());
            }
            let last = index.last(media, keys).unwrap();
            prop_assert_eq!((at, distance(&index, last) + 1), (None, row.len()));
        }
    }
}
