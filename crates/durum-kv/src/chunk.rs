//! Nodes that follow each other: one for each leaf, read when somebody first looks for a key among them.

use std::sync::OnceLock;

use crate::comparator::Keys;
use crate::entries::Entries;
use crate::error::{Error, Result};
use crate::media::{Leaf, Media, Start};
use crate::sorted::Sorted;

/// A chunk with more nodes is split.
pub(crate) const CHUNK_MAX: usize = 128;

/// A leaf, as it is known in memory.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) leaf: *mut Leaf,
    /// No key of the leaf is smaller. Empty in the first node, where it is no bound.
    pub(crate) low: Box<[u8]>,
    /// Set when the leaf is first looked at. As long as it is not, nobody has changed the leaf.
    pub(crate) entries: OnceLock<Box<Entries>>,
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

/// At least one node.
#[derive(Debug)]
pub(crate) struct Row {
    /// The bounds of all nodes but the first.
    pub(crate) order: Sorted<Vec<u64>>,
    pub(crate) nodes: Vec<Node>,
}

impl Row {
    pub(crate) fn new(keys: &Keys, nodes: Vec<Node>) -> Self {
        Self {
            order: Sorted::of(keys, nodes.len() - 1, |index| &nodes[index + 1].low),
            nodes,
        }
    }
}

/// Some nodes, of which the first one is known before they are read.
#[derive(Debug)]
pub(crate) struct Chunk {
    pub(crate) first: *mut Leaf,
    /// The bound of the first leaf. Empty in the first chunk.
    pub(crate) low: Box<[u8]>,
    /// Where the guides say so. Null in the first chunk, which needs no guide, and in databases that have none.
    pub(crate) start: *mut Start,
    /// Set when a key is first looked for among them. As long as it is not, nobody has changed their leaves.
    pub(crate) row: OnceLock<Row>,
}

impl Chunk {
    /// A chunk whose nodes are not read yet.
    pub(crate) fn unread(first: *mut Leaf, low: Box<[u8]>, start: *mut Start) -> Self {
        Self {
            first,
            low,
            start,
            row: OnceLock::new(),
        }
    }

    /// A chunk of these nodes, at least one.
    pub(crate) fn new(keys: &Keys, nodes: Vec<Node>) -> Self {
        Self {
            first: nodes[0].leaf,
            low: nodes[0].low.clone(),
            start: std::ptr::null_mut(),
            row: OnceLock::from(Row::new(keys, nodes)),
        }
    }

    /// Its nodes, which were read before.
    #[inline(always)]
    pub(crate) fn known(&self) -> &Row {
        self.row
            .get()
            .expect("a position in a chunk was found by reading it")
    }

    pub(crate) fn known_mut(&mut self) -> &mut Row {
        self.row.get_mut().expect("as in `known`")
    }

    /// Reads its nodes: up to where the next chunk begins, if there is one.
    #[cold]
    pub(crate) fn read(&self, media: &Media, keys: &Keys, next: Option<&Chunk>) -> Result<&Row> {
        // A bound that lies would have keys looked for in the wrong one of two chunks.
        self.check_start(media)?;
        if let Some(next) = next.filter(|next| next.row.get().is_none()) {
            next.check_start(media)?;
        }
        let end = next.map(|next| (next.first, &*next.low));
        // The first chunk is told of by no guide.
        let low = (!self.start.is_null()).then_some(&*self.low);
        let nodes = read_nodes(media, keys, self.first, low, end)?;
        Ok(self.row.get_or_init(|| Row::new(keys, nodes)))
    }

    /// Compares what a guide says with the leaf that it leads to, before anybody has changed one of them.
    fn check_start(&self, media: &Media) -> Result<()> {
        if self.start.is_null() {
            return Ok(());
        }
        // SAFETY: the pointers were checked before they were followed; nobody changes what is not read yet.
        let (own, guide) = unsafe { ((*self.first).low, (*self.start).low) };
        if own != guide || media.text(own)? != &*self.low {
            let reason = "a leaf and its guide have different bounds";
            return Err(Error::damaged(self.first.addr(), reason));
        }
        Ok(())
    }
}

/// The leaves from one on, up to `end`, which has a larger bound than all of them; or up to the last one. `low` is the
/// bound of the first one, if that has any.
pub(crate) fn read_nodes(
    media: &Media,
    keys: &Keys,
    first: *mut Leaf,
    low: Option<&[u8]>,
    end: Option<(*mut Leaf, &[u8])>,
) -> Result<Vec<Node>> {
    let mut nodes = vec![Node::new(
        media.leaf(first)?,
        low.unwrap_or_default().into(),
    )];
    let mut at = first;
    loop {
        // SAFETY: `at` was checked, and nobody changes it meanwhile.
        let next = unsafe { (*at).next };
        if next == end.map_or(std::ptr::null_mut(), |(leaf, _)| leaf) {
            return Ok(nodes);
        }
        at = media.leaf(next)?;
        // SAFETY: `at` was checked, and nobody changes it meanwhile.
        let bound = media.text(unsafe { (*at).low })?;
        let before = match nodes.len() {
            1 => low,
            len => Some(&*nodes[len - 1].low),
        };
        let is_beyond = end.is_some_and(|(_, end)| keys.compare(bound, end).is_ge());
        // Leaves that ascend form no circle.
        if is_beyond || before.is_some_and(|before| keys.compare(bound, before).is_le()) {
            let reason = "the bounds of two leaves do not ascend";
            return Err(Error::damaged(at.addr(), reason));
        }
        nodes.push(Node::new(at, bound.into()));
    }
}
