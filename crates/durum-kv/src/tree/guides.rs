//! Guides: where the index finds leaves when a database is opened, without going over all of them.
//!
//! A chunk of the index reads its leaves when somebody first looks for a key there. Where it begins it is told by a
//! guide, which changes in the transaction by which a leaf becomes the first of a chunk, or goes.

use std::collections::HashSet;

use durum::Tx;

use super::Tree;
use crate::chunk::{CHUNK_MAX, Chunk, Node, read_nodes};
use crate::error::{Error, Result};
use crate::index::{Index, Position};
use crate::media::{Guide, HAS_STALE, Leaf, STARTS, Start, store};

impl Tree {
    /// Reads the pool again.
    pub(crate) fn load(&mut self) -> Result<()> {
        self.stale.clear();
        self.leaving.clear();
        self.free_starts.clear();
        self.is_ahead = false;
        self.shape += 1;
        let chunks = match self.guides.is_null() {
            true => self.read_row()?,
            false => self.read_guides()?,
        };
        self.index = Index::new(&self.keys, chunks);
        // SAFETY: the root is live as long as the pool is open.
        self.has_stale = unsafe { (*self.database).layout } & HAS_STALE != 0;
        self.media.has_stale = self.has_stale || self.guides.is_null();
        if self.media.has_stale {
            self.index.read_all(&self.media, &self.keys)?;
            let leaves: Vec<_> = self.index.known_leaves().collect();
            leaves
                .into_iter()
                .try_for_each(|leaf| self.note_stale(leaf))?;
        }
        Ok(())
    }

    /// Makes guides anew where they are damaged, by the row of leaves alone, of which there are so many in the pool.
    /// What the old guides were is nobody's then: `durum gc` frees it. Durable on return.
    ///
    /// # Errors
    /// `Damaged` where the row has other leaves, too, or fewer: then only the old guides lead to the others.
    pub(crate) fn renew_guides(&mut self, leaves: usize) -> Result<()> {
        let by_guides = self.read_guides();
        let by_guides = by_guides.map(|chunks| Index::new(&self.keys, chunks));
        if by_guides.is_ok_and(|index| index.read_all(&self.media, &self.keys).is_ok()) {
            // Something else is damaged.
            return Ok(());
        }
        self.index = Index::new(&self.keys, self.read_row()?);
        if self.index.len() != leaves {
            let reason = "the pool has other leaves than their row";
            return Err(Error::damaged(self.database.addr(), reason));
        }
        let pool = self.media.pool().clone();
        pool.transaction(|tx| {
            store(tx, self.guides, std::ptr::null_mut())?;
            self.free_starts.clear();
            // The first chunk is told of by no guide.
            (1..self.index.chunks()).try_for_each(|chunk| self.begin(tx, chunk))
        })
    }

    /// All leaves of a database without guides.
    fn read_row(&self) -> Result<Vec<Chunk>> {
        // SAFETY: the root is live as long as the pool is open.
        let first = unsafe { (*self.database).first };
        let mut nodes = read_nodes(&self.media, &self.keys, first, None, None)?.into_iter();
        let mut chunks = Vec::new();
        loop {
            let some: Vec<Node> = nodes.by_ref().take(CHUNK_MAX).collect();
            if some.is_empty() {
                return Ok(chunks);
            }
            chunks.push(Chunk::new(&self.keys, some));
        }
    }

    /// The chunks that the guides tell of, which are not read yet.
    fn read_guides(&mut self) -> Result<Vec<Chunk>> {
        let mut chunks = Vec::new();
        let mut seen = HashSet::new();
        // SAFETY: the root is live as long as the pool is open.
        let (first, mut next) = unsafe { ((*self.database).first, *self.guides) };
        while !next.is_null() {
            let guide = self.media.guide(next)?;
            if !seen.insert(guide) {
                return Err(Error::damaged(guide.addr(), "guides form a circle"));
            }
            for index in 0..STARTS {
                let place = start_of(guide, index);
                // SAFETY: the guide was checked, and nobody changes it meanwhile.
                let start = unsafe { place.read() };
                if start.leaf.is_null() {
                    self.free_starts.push(place);
                    continue;
                }
                let low = start.bound(&self.media)?.into();
                chunks.push(Chunk::unread(self.media.leaf(start.leaf)?, low, place));
            }
            // SAFETY: as above.
            next = unsafe { (*guide).next };
        }
        chunks.sort_unstable_by(|a, b| self.keys.compare(&a.low, &b.low));
        let mut pairs = chunks.windows(2);
        let is_double = |pair: &&[Chunk]| self.keys.compare(&pair[0].low, &pair[1].low).is_eq();
        if let Some(pair) = pairs.find(is_double) {
            let reason = "two guides have one bound";
            return Err(Error::damaged(pair[0].start.addr(), reason));
        }
        let none = std::ptr::null_mut();
        chunks.insert(
            0,
            Chunk::unread(self.media.leaf(first)?, Box::default(), none),
        );
        Ok(chunks)
    }

    /// Enters a node behind another, and its leaf in a guide if a chunk begins with it.
    pub(super) fn enter(&mut self, tx: &Tx, at: Position, node: Node) -> Result<()> {
        let Some(chunk) = self.index.insert_after(&self.keys, at, node) else {
            return Ok(());
        };
        match self.guides.is_null() {
            true => Ok(()),
            false => self.begin(tx, chunk),
        }
    }

    /// Enters the leaf that a chunk begins with in a guide.
    fn begin(&mut self, tx: &Tx, chunk: usize) -> Result<()> {
        if self.free_starts.is_empty() {
            self.add_guide(tx)?;
        }
        let place = self.free_starts.pop().expect("a guide has been added");
        let start = self.start(self.index.first_leaf(chunk))?;
        store(tx, place, start)?;
        self.index.set_start(chunk, place);
        Ok(())
    }

    /// Takes a node off, which is not the first one, and whose leaf goes.
    pub(super) fn take_off(&mut self, tx: &Tx, at: Position) -> Result<()> {
        let Some((place, leaf)) = self.index.remove(&self.keys, at) else {
            return Ok(());
        };
        if place.is_null() {
            return Ok(());
        }
        if leaf.is_null() {
            self.free_starts.push(place);
            return store(tx, place, Start::NONE);
        }
        store(tx, place, self.start(leaf)?)
    }

    /// What a guide says of a leaf.
    fn start(&self, leaf: *mut Leaf) -> Result<Start> {
        // SAFETY: a leaf of the index is live, and only the writer changes it.
        let low = unsafe { (*leaf).low };
        Ok(Start::of(leaf, low, self.media.text(low)?))
    }

    fn add_guide(&mut self, tx: &Tx) -> Result<()> {
        let guide = tx.alloc_zeroed::<Guide>()?;
        // SAFETY: the root is live, and the guide is nobody else's yet.
        unsafe { ((*guide).own, (*guide).next) = (guide, *self.guides) };
        store(tx, self.guides, guide)?;
        self.free_starts
            .extend((0..STARTS).rev().map(|index| start_of(guide, index)));
        Ok(())
    }
}

/// A place of a guide that lies in the pool.
fn start_of(guide: *mut Guide, index: usize) -> *mut Start {
    // SAFETY: indices are below STARTS.
    unsafe { (&raw mut (*guide).starts).cast::<Start>().add(index) }
}
