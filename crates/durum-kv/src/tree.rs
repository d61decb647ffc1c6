//! The tree: leaves in the pool, upper levels in memory, and how a change is made in both.
//!
//! A put of a new key makes a record and stores its address in a free slot of a leaf: one word that existed before
//! changes. A put of a known key does the same with the slot that it has, and frees the old record, unless somebody
//! still reads by an older sequence number: then the new record leads to the old one, and the leaf's word `stale` says
//! that this slot is to be looked at again. Where nobody does, and the new value is as long as the old one, the record
//! itself is changed.
//!
//! Memory follows at once. If the transaction fails, the caller has it read again ([`Tree::load`]).

use std::collections::VecDeque;

use durum::Tx;
use durum_persist::line::prefetch_to_write;

use crate::batch::Change;
use crate::chunk::{Chunk, Node};
use crate::comparator::Keys;
use crate::entries::Entries;
use crate::error::{Error, Result};
use crate::index::{Index, Position};
use crate::media::{
    Database, Guide, GuidedDatabase, LAYOUT_WITHOUT_GUIDES, Leaf, Media, Record, Start, slot_of,
    store,
};
use crate::versions::{Readers, versions, visible};

pub(crate) mod group;
mod guides;
mod leaves;
mod sweep;

/// A key with older versions, or one that was deleted while somebody still saw it.
#[derive(Debug)]
struct Stale {
    /// The commit that superseded them. Those who read by an older number may need them.
    sequence: u64,
    key: Box<[u8]>,
}

/// How a leaf is found again: by its lower bound, which the first leaf has not. When it has gone, this finds the one
/// that took over its range.
#[derive(Debug)]
pub(crate) struct LeafKey(Option<Box<[u8]>>);

/// Where a key is, or belongs: in which node, and at which index of its entries.
#[derive(Debug)]
struct Spot {
    at: Position,
    found: Result<usize, usize>,
}

#[derive(Debug)]
pub(crate) struct Tree {
    pub(crate) media: Media,
    pub(crate) keys: Keys,
    database: *mut Database,
    /// Where the root has the first guide; null in a database that has none.
    guides: *mut *mut Guide,
    /// Where guides have room.
    free_starts: Vec<*mut Start>,
    /// The root says so ([`HAS_STALE`](crate::media::HAS_STALE)).
    pub(crate) has_stale: bool,
    pub(crate) index: Index,
    /// Each slot that is marked stale, once.
    stale: VecDeque<Stale>,
    /// The leaves that the running commit takes entries from.
    leaving: Vec<LeafKey>,
    /// Memory says what is not committed yet: no reader may see it before.
    pub(crate) is_ahead: bool,
    /// Counts the times that a key, or a leaf, came or went: as long as it is the same, so are all positions and
    /// indices.
    pub(crate) shape: u64,
    /// Reading the pool has failed: what memory says is not to be believed.
    pub(crate) broken: Option<String>,
}

// SAFETY: the pointers lead into the pool, which any thread may use, and to places that only the tree's owner changes.
unsafe impl Send for Tree {}
// SAFETY: what a shared reference changes is in `OnceLock`s.
unsafe impl Sync for Tree {}

impl Tree {
    /// Reads where the leaves of a database are. They, and their records, are read when they are first asked for. With
    /// `leaves`, how many there are, guides are made anew before.
    pub(crate) fn open(
        media: Media,
        keys: Keys,
        database: *mut Database,
        leaves: Option<usize>,
    ) -> Result<Self> {
        let none = Chunk::new(&keys, vec![Node::new(std::ptr::null_mut(), Box::default())]);
        // SAFETY: the root is live as long as the pool is open.
        let guides = match unsafe { (*database).layout } as u32 {
            LAYOUT_WITHOUT_GUIDES => std::ptr::null_mut(),
            // SAFETY: the root of this layout is a `GuidedDatabase`.
            _ => unsafe { &raw mut (*database.cast::<GuidedDatabase>()).guides },
        };
        let mut tree = Self {
            index: Index::new(&keys, vec![none]),
            media,
            keys,
            database,
            guides,
            free_starts: Vec::new(),
            has_stale: false,
            stale: VecDeque::new(),
            leaving: Vec::new(),
            is_ahead: false,
            shape: 0,
            broken: None,
        };
        if let Some(leaves) = leaves
            && !guides.is_null()
        {
            tree.renew_guides(leaves)?;
        }
        tree.load()?;
        Ok(tree)
    }

    /// Refuses if what memory says is not to be believed.
    #[inline]
    pub(crate) fn check(&self) -> Result<()> {
        match self.broken.clone() {
            None => Ok(()),
            Some(reason) => Err(Error::Broken { reason }),
        }
    }

    #[inline]
    pub(crate) fn entries(&self, at: Position) -> Result<&Entries> {
        self.index.entries(&self.media, &self.keys, at)
    }

    /// The node that a key belongs to.
    #[inline]
    pub(crate) fn find(&self, key: &[u8]) -> Result<Position> {
        self.index.find(&self.media, &self.keys, key)
    }

    pub(crate) fn first(&self) -> Result<Position> {
        self.index.first(&self.media, &self.keys)
    }

    pub(crate) fn last(&self) -> Result<Position> {
        self.index.last(&self.media, &self.keys)
    }

    /// The next node, forward or backward.
    pub(crate) fn beyond<const FORWARD: bool>(&self, at: Position) -> Result<Option<Position>> {
        self.index.beyond::<FORWARD>(&self.media, &self.keys, at)
    }

    /// The number of leaves, all of which are read for that.
    pub(crate) fn leaves(&self) -> Result<usize> {
        self.index.read_all(&self.media, &self.keys)?;
        Ok(self.index.len())
    }

    /// The entries of a node in which a key is looked for.
    #[inline]
    fn entries_to_search(&self, at: Position) -> Result<&Entries> {
        let entries = self.entries(at)?;
        entries.fetch_records();
        Ok(entries)
    }

    /// The record of a key that a reader by `sequence` sees.
    #[inline]
    pub(crate) fn get(&self, key: &[u8], sequence: u64) -> Result<Option<*const Record>> {
        let entries = self.entries_to_search(self.find(key)?)?;
        let record = entries.find_to_read(&self.keys, key);
        // SAFETY: entered records are live.
        Ok(record.and_then(|record| unsafe { visible(record, sequence) }))
    }

    /// Makes a change.
    #[inline]
    pub(crate) fn change(
        &mut self,
        tx: &Tx,
        change: Change<'_>,
        sequence: u64,
        readers: &Readers,
    ) -> Result<()> {
        match change {
            Change::Put(key, value) => self.put(tx, key, value, sequence, readers),
            Change::Delete(key) => {
                let spot = self.spot_to_write(key)?;
                self.delete_at(tx, spot, key, sequence, readers)
            }
        }
    }

    /// Sets the value of a key.
    fn put(
        &mut self,
        tx: &Tx,
        key: &[u8],
        value: &[u8],
        sequence: u64,
        readers: &Readers,
    ) -> Result<()> {
        let spot = self.spot_to_write(key)?;
        self.put_at(tx, spot, key, value, sequence, readers)
    }

    /// Where a key is, or belongs, which is about to be written.
    #[inline(always)]
    fn spot_to_write(&self, key: &[u8]) -> Result<Spot> {
        let at = self.find(key)?;
        let (entries, leaf) = (self.entries_to_search(at)?, self.index.node(at).leaf);
        let found = entries.find_to_write(&self.media, &self.keys, leaf, key);
        Ok(Spot { at, found })
    }

    /// Sets the value of a key, which is or belongs there.
    #[inline(always)]
    fn put_at(
        &mut self,
        tx: &Tx,
        Spot { at, found }: Spot,
        key: &[u8],
        value: &[u8],
        sequence: u64,
        readers: &Readers,
    ) -> Result<()> {
        let (entries, leaf) = (self.entries(at)?, self.index.node(at).leaf);
        match found {
            Ok(index) if is_empty(leaf, entries.slot(index)) => {
                // The commit has deleted it: what readers still see in its place has to go first, and no reader may
                // come any more.
                self.is_ahead = true;
                self.shape += 1;
                let entries = self.index.entries_mut(&self.media, &self.keys, at)?;
                entries.remove(index);
                self.insert(tx, at, index, key, value, sequence)
            }
            Ok(index) => self.supersede(tx, at, index, key, Some(value), sequence, readers),
            Err(index) => self.insert(tx, at, index, key, value, sequence),
        }
    }

    /// Deletes a key, if it is there. That makes a record only where a snapshot or an iterator needs what was there.
    fn delete_at(
        &mut self,
        tx: &Tx,
        Spot { at, found }: Spot,
        key: &[u8],
        sequence: u64,
        readers: &Readers,
    ) -> Result<()> {
        let Ok(index) = found else {
            return Ok(());
        };
        let entries = self.entries(at)?;
        let record = entries.record(index);
        if is_empty(self.index.node(at).leaf, entries.slot(index)) {
            return Ok(());
        }
        if !self.is_pinned(record, sequence, readers)? {
            return match readers.beside {
                Some(_) => self.leave(tx, at, index, sequence),
                None => self.remove(tx, at, index),
            };
        }
        // SAFETY: entered records are live.
        if unsafe { (*record).is_deletion() } {
            return Ok(());
        }
        self.supersede(tx, at, index, key, None, sequence, readers)
    }

    /// Takes a key's record out of the leaf, and frees all versions.
    fn take_out(&mut self, tx: &Tx, at: Position, index: usize) -> Result<()> {
        let entries = self.entries(at)?;
        let (record, slot) = (entries.record(index), entries.slot(index));
        let leaf = self.index.node(at).leaf;
        store(tx, slot_of(leaf, slot), std::ptr::null_mut())?;
        self.free_versions(tx, record)?;
        self.mark(tx, leaf, slot, false, record)
    }

    fn insert(
        &mut self,
        tx: &Tx,
        at: Position,
        index: usize,
        key: &[u8],
        value: &[u8],
        sequence: u64,
    ) -> Result<()> {
        let entries = self.entries(at)?;
        let Some(slot) = entries.free_slot() else {
            self.split(tx, at, index, key)?;
            return self.put(tx, key, value, sequence, &Readers::default());
        };
        let leaf = self.index.node(at).leaf;
        prefetch_to_write(slot_of(leaf, slot).addr());
        let record =
            self.media
                .alloc_record(tx, key, Some(value), sequence, std::ptr::null_mut())?;
        store(tx, slot_of(leaf, slot), record)?;
        self.shape += 1;
        let entries = self.index.entries_mut(&self.media, &self.keys, at)?;
        entries.insert(&self.keys, index, record, slot);
        Ok(())
    }

    /// A new version of a key that has a record.
    #[expect(clippy::too_many_arguments, reason = "where, what, and for whom")]
    fn supersede(
        &mut self,
        tx: &Tx,
        at: Position,
        index: usize,
        key: &[u8],
        value: Option<&[u8]>,
        sequence: u64,
        readers: &Readers,
    ) -> Result<()> {
        let entries = self.entries(at)?;
        let (old, slot) = (entries.record(index), entries.slot(index));
        // SAFETY: entered records are live.
        let (from, is_only_version) = unsafe { ((*old).sequence(), (*old).previous.is_null()) };
        let frees_old = is_only_version && !readers.need(from, sequence);
        // Beside readers not even what this commit has made: they come by it on their way to what they see.
        if frees_old
            && readers.beside.is_none()
            && let Some(value) = value
            // SAFETY: nobody sees the old record but those whom the writer keeps out until the commit is through.
            && unsafe { Record::rewrite(tx, old, key, value, sequence)? }
        {
            return self.mark(tx, self.index.node(at).leaf, slot, false, old);
        }
        let previous = match frees_old {
            true => std::ptr::null_mut(),
            false => old,
        };
        let record = self
            .media
            .alloc_record(tx, key, value, sequence, previous)?;
        let leaf = self.index.node(at).leaf;
        store(tx, slot_of(leaf, slot), record)?;
        let mut has_more = value.is_none();
        if frees_old {
            // SAFETY: nobody finds the old record any more, and its place is taken by the next writer, who waits for
            // those that read it now.
            unsafe { tx.free(old)? };
        } else {
            has_more |= self.prune(tx, record, readers)?;
        }
        self.mark(tx, leaf, slot, has_more, record)?;
        let entries = self.index.entries_mut(&self.media, &self.keys, at)?;
        entries.replace(index, record);
        Ok(())
    }

    /// Checks all versions that a leaf has, and that its neighbours keep to their bounds. A key that is not found in it
    /// is in the database under no other name.
    pub(crate) fn verify(&self, at: Position) -> Result<()> {
        for neighbour in [self.beyond::<false>(at)?, self.beyond::<true>(at)?] {
            neighbour.map_or(Ok(()), |at| self.entries(at).map(|_| ()))?;
        }
        // SAFETY: entered records are live.
        let mut versions = self
            .entries(at)?
            .records()
            .iter()
            .flat_map(|&record| unsafe { versions(record) });
        // SAFETY: they are live as long as the writer is kept out.
        versions.try_for_each(|version| unsafe { Record::verify(version) })
    }
}

/// Whether a slot has no record: its entry, if it has one, leaves with the running commit.
fn is_empty(leaf: *mut Leaf, slot: usize) -> bool {
    // SAFETY: the leaf is live, and slots are below SLOTS; callers are the writer.
    unsafe { slot_of(leaf, slot).read().is_null() }
}
