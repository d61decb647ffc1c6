//! The tree: leaves in the pool, upper levels in memory, and how a change is made in both.
//!
//! A put of a new key makes a record and stores its address in a free slot of a leaf: one word that existed before
//! changes. A put of a known key does the same with the slot that it has, and frees the old record, unless somebody
//! still reads by an older sequence number: then the new record leads to the old one, and the leaf's word `stale` says
//! that this slot is to be looked at again.
//!
//! Memory follows at once. If the transaction fails, the caller has it read again ([`Tree::load`]).

use std::collections::VecDeque;

use durum::Tx;
use durum_persist::line::prefetch_to_write;

use crate::comparator::Keys;
use crate::error::{Error, Result};
use crate::index::{Entries, Index, Node, Position};
use crate::media::{Database, Leaf, Media, Record, SLOTS, Text, slot_of};

/// With at most so many records a leaf looks for a neighbour to merge with.
const FEW: usize = SLOTS / 8;

/// The sequence numbers that somebody reads by.
#[derive(Debug, Default)]
pub(crate) struct Readers {
    /// Those of snapshots and iterators, ascending.
    pub(crate) pinned: Vec<u64>,
    /// That of readers who come while the commit goes on. It is over for them when the commit is.
    pub(crate) beside: Option<u64>,
}

impl Readers {
    /// Whether one of them sees what came with commit `from` and was superseded by commit `until`.
    fn need(&self, from: u64, until: u64) -> bool {
        let is_seen_beside = |sequence| from <= sequence && sequence < until;
        self.beside.is_some_and(is_seen_beside) || self.need_pinned(from, until)
    }

    /// The same of those who read by a number for longer than the commit takes.
    fn need_pinned(&self, from: u64, until: u64) -> bool {
        let at = self.pinned.partition_point(|&sequence| sequence < from);
        self.pinned
            .get(at)
            .is_some_and(|&sequence| sequence < until)
    }

    /// The smallest one.
    fn oldest(&self) -> Option<u64> {
        self.pinned.first().copied().or(self.beside)
    }
}

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

#[derive(Debug)]
pub(crate) struct Tree {
    pub(crate) media: Media,
    pub(crate) keys: Keys,
    database: *mut Database,
    pub(crate) index: Index,
    /// Each slot that is marked stale, once.
    stale: VecDeque<Stale>,
    /// The leaves that the running commit takes entries from.
    leaving: Vec<LeafKey>,
    /// Memory says what is not committed yet: no reader may see it before.
    pub(crate) is_ahead: bool,
    /// Counts the times that a key, or a leaf, came or went.
    shape: u64,
    /// Reading the pool has failed: what memory says is not to be believed.
    pub(crate) broken: Option<String>,
}

// SAFETY: the pointers lead into the pool, which any thread may use, and to places that only the tree's owner changes.
unsafe impl Send for Tree {}
// SAFETY: as above; what a shared reference changes is in `OnceLock`s.
unsafe impl Sync for Tree {}

impl Tree {
    /// Reads the leaves of a database. Their records are read when they are first asked for.
    pub(crate) fn open(media: Media, keys: Keys, database: *mut Database) -> Result<Self> {
        let none = Node::new(std::ptr::null_mut(), Box::default());
        let mut tree = Self {
            index: Index::new(&keys, none),
            media,
            keys,
            database,
            stale: VecDeque::new(),
            leaving: Vec::new(),
            is_ahead: false,
            shape: 0,
            broken: None,
        };
        tree.load()?;
        Ok(tree)
    }

    /// Makes the first leaf of a new database.
    pub(crate) fn make_first(tx: &Tx) -> Result<*mut Leaf> {
        Ok(tx.alloc_zeroed::<Leaf>()?)
    }

    /// Reads the pool again.
    pub(crate) fn load(&mut self) -> Result<()> {
        self.stale.clear();
        self.leaving.clear();
        self.is_ahead = false;
        self.shape += 1;
        // SAFETY: the root is live as long as the pool is open.
        let first = unsafe { (*self.database).first };
        let mut at = self.media.leaf(first)?;
        self.note_stale(at)?;
        self.index = Index::new(&self.keys, Node::new(at, Box::default()));
        let mut last = self.index.first();
        loop {
            // SAFETY: `at` was checked, and nobody changes it meanwhile.
            let next = unsafe { (*at).next };
            if next.is_null() {
                return Ok(());
            }
            at = self.media.leaf(next)?;
            // SAFETY: as above.
            let low = self.media.text(unsafe { (*at).low })?;
            let is_first = last == self.index.first();
            // Leaves that ascend form no circle.
            if !is_first && self.keys.compare(low, &self.index.node(last).low).is_le() {
                let reason = "the bounds of two leaves do not ascend";
                return Err(Error::damaged(at.addr(), reason));
            }
            self.note_stale(at)?;
            let node = Node::new(at, low.into());
            self.index.insert_after(&self.keys, last, node);
            last = self.index.last();
        }
    }

    /// As long as this is the same, so are all positions and indices.
    #[inline]
    pub(crate) fn shape(&self) -> u64 {
        self.shape
    }

    fn note_stale(&mut self, leaf: *mut Leaf) -> Result<()> {
        // SAFETY: the caller has checked it.
        let mut marks = unsafe { (*leaf).stale };
        while marks != 0 {
            let slot = marks.trailing_zeros() as usize;
            marks &= marks - 1;
            if slot >= SLOTS {
                let reason = "a leaf marks slots that it does not have";
                return Err(Error::damaged(leaf.addr(), reason));
            }
            // SAFETY: as above.
            let record = self.media.record(unsafe { (*leaf).slots[slot] })?;
            // SAFETY: just checked.
            let (sequence, key) = unsafe { ((*record).sequence(), Record::key(record)) };
            let key = key.into();
            self.stale.push_back(Stale { sequence, key });
        }
        Ok(())
    }

    #[inline]
    pub(crate) fn entries(&self, at: Position) -> Result<&Entries> {
        self.index.entries(&self.media, &self.keys, at)
    }

    /// The entries of a node in which a key is looked for.
    #[inline]
    fn entries_to_search(&self, at: Position) -> Result<&Entries> {
        self.index.entries_to_search(&self.media, &self.keys, at)
    }

    /// The record of a key that a reader by `sequence` sees.
    #[inline]
    pub(crate) fn get(&self, key: &[u8], sequence: u64) -> Result<Option<*const Record>> {
        let entries = self.entries_to_search(self.index.find(&self.keys, key))?;
        let record = entries.find_to_read(&self.keys, key);
        // SAFETY: entered records are live.
        Ok(record.and_then(|record| unsafe { visible(record, sequence) }))
    }

    /// Sets the value of a key.
    pub(crate) fn put(
        &mut self,
        tx: &Tx,
        key: &[u8],
        value: &[u8],
        sequence: u64,
        readers: &Readers,
    ) -> Result<()> {
        let at = self.index.find(&self.keys, key);
        let (entries, leaf) = (self.entries_to_search(at)?, self.index.node(at).leaf);
        match entries.find_to_write(&self.media, &self.keys, leaf, key) {
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
    pub(crate) fn delete(
        &mut self,
        tx: &Tx,
        key: &[u8],
        sequence: u64,
        readers: &Readers,
    ) -> Result<()> {
        let at = self.index.find(&self.keys, key);
        let entries = self.entries_to_search(at)?;
        let Ok(index) = entries.find(&self.keys, key) else {
            return Ok(());
        };
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

    /// Whether a pinned number sees a value among the versions of a key, of which `newest` is superseded by commit
    /// `until`.
    fn is_pinned(&self, newest: *mut Record, mut until: u64, readers: &Readers) -> Result<bool> {
        if readers.pinned.is_empty() {
            return Ok(false);
        }
        let mut at = newest;
        while !at.is_null() {
            let version = self.version(at, until)?;
            // SAFETY: just checked.
            let (sequence, is_deletion, next) = unsafe {
                (
                    (*version).sequence(),
                    (*version).is_deletion(),
                    (*version).previous,
                )
            };
            if !is_deletion && readers.need_pinned(sequence, until) {
                return Ok(true);
            }
            (at, until) = (next, sequence);
        }
        Ok(false)
    }

    /// A version of a key that a record leads to, which came with commit `until`.
    fn version(&self, at: *mut Record, until: u64) -> Result<*mut Record> {
        let version = self.media.record(at)?;
        // SAFETY: just checked.
        if unsafe { (*version).sequence() } > until {
            let reason = "a version is younger than the one that superseded it";
            return Err(Error::damaged(at.addr(), reason));
        }
        Ok(version)
    }

    /// The first of a key's versions, from this one on, that came before a commit; null if none did.
    fn newest_before(&self, sequence: u64, newest: *mut Record) -> Result<*mut Record> {
        let mut at = newest;
        while !at.is_null() {
            let version = self.version(at, u64::MAX)?;
            // SAFETY: just checked.
            let (from, previous) = unsafe { ((*version).sequence(), (*version).previous) };
            if from < sequence {
                break;
            }
            at = previous;
        }
        Ok(at)
    }

    /// Frees all versions of a key.
    fn free_versions(&self, tx: &Tx, newest: *mut Record) -> Result<()> {
        let (mut at, mut until) = (newest, u64::MAX);
        while !at.is_null() {
            let version = self.version(at, until)?;
            // SAFETY: just checked. Nobody finds it any more; those who read it now, or while this commit goes on, do
            // so before the commit is through, and till then nothing else is there.
            unsafe {
                (at, until) = ((*version).previous, (*version).sequence());
                tx.free(version)?;
            }
        }
        Ok(())
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

    /// The same for a commit that others read beside. The entry stays until the commit is through
    /// ([`Tree::remove_leaving`]), for those who read meanwhile: nothing need be made for them, and what they see is
    /// whole until the commit is. Not so what this commit has made itself, which nobody sees: that memory may be given
    /// to the next record that it makes, so no entry leads there.
    fn leave(&mut self, tx: &Tx, at: Position, index: usize, sequence: u64) -> Result<()> {
        let seen = self.newest_before(sequence, self.entries(at)?.record(index))?;
        self.take_out(tx, at, index)?;
        let is_first = at == self.index.first();
        let entries = self.index.entries_mut(&self.media, &self.keys, at)?;
        let is_first_to_leave = entries.note_leaving();
        if seen.is_null() {
            entries.remove(index);
            self.shape += 1;
        } else {
            entries.replace(index, seen);
        }
        if is_first_to_leave {
            let low = (!is_first).then(|| self.index.node(at).low.clone());
            self.leaving.push(LeafKey(low));
        }
        Ok(())
    }

    /// The commit is through: takes its deleted keys out of memory. The leaves that have lost some, for
    /// [`Tree::merge_few`].
    pub(crate) fn remove_leaving(&mut self) -> Result<Vec<LeafKey>> {
        self.is_ahead = false;
        let leaving = std::mem::take(&mut self.leaving);
        self.shape += 1;
        for leaf in &leaving {
            let at = self.find_leaf(leaf);
            let leaf = self.index.node(at).leaf;
            let entries = self.index.entries_mut(&self.media, &self.keys, at)?;
            entries.remove_leaving(leaf);
        }
        Ok(leaving)
    }

    /// Merges those of these leaves that have few records left.
    pub(crate) fn merge_few(&mut self, tx: &Tx, leaves: &[LeafKey]) -> Result<()> {
        for leaf in leaves {
            let at = self.find_leaf(leaf);
            if self.entries(at)?.len() <= FEW {
                self.merge_around(tx, at)?;
            }
        }
        Ok(())
    }

    fn find_leaf(&self, LeafKey(low): &LeafKey) -> Position {
        match low {
            Some(low) => self.index.find(&self.keys, low),
            None => self.index.first(),
        }
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
        let (from, is_alone) = unsafe { ((*old).sequence(), (*old).previous.is_null()) };
        let frees_old = is_alone && !readers.need(from, sequence);
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

    /// Takes a key's entry away, and frees its versions.
    fn remove(&mut self, tx: &Tx, at: Position, index: usize) -> Result<()> {
        self.take_out(tx, at, index)?;
        self.shape += 1;
        let entries = self.index.entries_mut(&self.media, &self.keys, at)?;
        entries.remove(index);
        if entries.len() <= FEW {
            self.merge_around(tx, at)?;
        }
        Ok(())
    }

    /// Frees the versions behind `newest` that nobody needs. Whether any are left.
    fn prune(&self, tx: &Tx, newest: *mut Record, readers: &Readers) -> Result<bool> {
        // SAFETY: the caller gives a live record; the others are checked before they are looked at.
        unsafe {
            let (mut kept, mut until) = (newest, (*newest).sequence());
            let mut at = (*newest).previous;
            while !at.is_null() {
                let version = self.version(at, until)?;
                let (sequence, next) = ((*version).sequence(), (*version).previous);
                if readers.need(sequence, until) {
                    link(tx, kept, at)?;
                    kept = at;
                } else {
                    tx.free(at)?;
                }
                until = sequence;
                at = next;
            }
            link(tx, kept, std::ptr::null_mut())?;
            Ok(kept != newest)
        }
    }

    /// Notes in the leaf whether a slot is to be looked at again, and in memory that it is.
    fn mark(
        &mut self,
        tx: &Tx,
        leaf: *mut Leaf,
        slot: usize,
        is_stale: bool,
        record: *mut Record,
    ) -> Result<()> {
        // SAFETY: the leaf is live, and only the writer changes it.
        let marks = unsafe { (*leaf).stale };
        let wanted = match is_stale {
            true => marks | 1 << slot,
            false => marks & !(1 << slot),
        };
        if wanted == marks {
            return Ok(());
        }
        // SAFETY: as above.
        store(tx, unsafe { &raw mut (*leaf).stale }, wanted)?;
        if is_stale {
            // SAFETY: the caller's record is live.
            let (sequence, key) = unsafe { ((*record).sequence(), Record::key(record)) };
            let key = key.into();
            self.stale.push_back(Stale { sequence, key });
        }
        Ok(())
    }

    /// Checks all versions that a leaf has, and that its neighbours keep to their bounds. A key that is not found in it
    /// is in the database under no other name.
    pub(crate) fn verify(&self, at: Position) -> Result<()> {
        for neighbour in [self.index.previous(at), self.index.next(at)] {
            neighbour.map_or(Ok(()), |at| self.entries(at).map(|_| ()))?;
        }
        // SAFETY: entered records are live.
        let mut versions = self
            .entries(at)?
            .records()
            .iter()
            .flat_map(|&record| unsafe { versions(record) });
        // SAFETY: as above.
        versions.try_for_each(|version| unsafe { Record::verify(version) })
    }

    /// How many keys wait to be looked at again.
    pub(crate) fn stale_keys(&self) -> usize {
        self.stale.len()
    }

    /// Whether the key that has waited longest may lose versions now.
    pub(crate) fn can_sweep(&self, readers: &Readers) -> bool {
        self.stale.front().is_some_and(|front| {
            readers
                .oldest()
                .is_none_or(|oldest| oldest >= front.sequence)
        })
    }

    /// Frees what nobody needs any more, of `max` keys at most.
    pub(crate) fn sweep(&mut self, tx: &Tx, readers: &Readers, max: usize) -> Result<()> {
        for _ in 0..max {
            if !self.can_sweep(readers) {
                break;
            }
            let Some(front) = self.stale.pop_front() else {
                break;
            };
            self.sweep_key(tx, &front.key, readers)?;
        }
        Ok(())
    }

    fn sweep_key(&mut self, tx: &Tx, key: &[u8], readers: &Readers) -> Result<()> {
        let at = self.index.find(&self.keys, key);
        let entries = self.entries(at)?;
        let Ok(index) = entries.find(&self.keys, key) else {
            return Ok(());
        };
        let (record, slot) = (entries.record(index), entries.slot(index));
        let leaf = self.index.node(at).leaf;
        // SAFETY: leaf and record are live.
        let (is_stale, is_deletion) =
            unsafe { ((*leaf).stale & 1 << slot != 0, (*record).is_deletion()) };
        if !is_stale {
            return Ok(());
        }
        let has_more = self.prune(tx, record, readers)?;
        if is_deletion && !has_more {
            return self.remove(tx, at, index);
        }
        self.mark(tx, leaf, slot, false, record)?;
        match has_more {
            true => self.mark(tx, leaf, slot, true, record),
            false => Ok(()),
        }
    }

    /// Makes room in a full leaf for `key`, which belongs at `index`.
    fn split(&mut self, tx: &Tx, at: Position, index: usize, key: &[u8]) -> Result<()> {
        let is_last = self.index.next(at).is_none();
        let entries = self.entries(at)?;
        let len = entries.len();
        // Keys that come in their order leave full leaves behind.
        let (kept, above) = match is_last && index == len {
            true => (len, key),
            false => (len / 2, entries.key(len / 2)),
        };
        let low: Box<[u8]> = self.keys.separator(entries.key(kept - 1), above).into();
        let leaf = self.index.node(at).leaf;
        let new = tx.alloc_zeroed::<Leaf>()?;
        self.shape += 1;
        let entries = self.index.entries_mut(&self.media, &self.keys, at)?;
        let moved = entries.split_off(kept);
        let has_leaving = entries.has_leaving();
        // SAFETY: the old leaf is announced as a whole before it changes, the new one is nobody else's yet.
        unsafe {
            (*new).low = self.media.alloc_text(tx, &low)?;
            (*new).next = (*leaf).next;
            if moved.is_empty() {
                store(tx, &raw mut (*leaf).next, new)?;
            } else {
                tx.add(leaf)?;
                (*leaf).next = new;
            }
            for (to, (_, from)) in moved.iter().enumerate() {
                // Not the entry's record, which may be leaving.
                (*new).slots[to] = (*leaf).slots[*from];
                (*new).stale |= ((*leaf).stale >> from & 1) << to;
                (*leaf).slots[*from] = std::ptr::null_mut();
                (*leaf).stale &= !(1 << from);
            }
        }
        let records: Vec<_> = moved.into_iter().map(|(record, _)| record).collect();
        let mut entries = Entries::of(&self.keys, &records);
        if has_leaving {
            entries.note_leaving();
            self.leaving.push(LeafKey(Some(low.clone())));
        }
        let node = Node::with_entries(new, low, entries);
        self.index.insert_after(&self.keys, at, node);
        Ok(())
    }

    /// A leaf has few records: it goes, or takes in its neighbour, if there is room.
    fn merge_around(&mut self, tx: &Tx, at: Position) -> Result<()> {
        let len = self.entries(at)?.len();
        let pairs = [
            self.index.previous(at).map(|previous| (previous, at)),
            self.index.next(at).map(|next| (at, next)),
        ];
        for (left, right) in pairs.into_iter().flatten() {
            let other = if left == at { right } else { left };
            if len == 0 || self.entries(other)?.len() + len <= SLOTS / 2 {
                return self.merge(tx, left, right);
            }
        }
        Ok(())
    }

    /// Moves the records of a leaf to the one before, and frees it.
    fn merge(&mut self, tx: &Tx, left: Position, right: Position) -> Result<()> {
        let (to, from) = (self.index.node(left).leaf, self.index.node(right).leaf);
        self.shape += 1;
        let moved = {
            let entries = self.index.entries_mut(&self.media, &self.keys, right)?;
            entries.split_off(0)
        };
        let entries = self.index.entries_mut(&self.media, &self.keys, left)?;
        // SAFETY: both leaves are live, and what changes in the left one is announced before.
        unsafe {
            match moved.is_empty() {
                true => tx.add(&raw const (*to).next)?,
                false => tx.add(to)?,
            }
            (*to).next = (*from).next;
            for (record, slot) in moved {
                let free = entries.free_slot().expect("the caller looked for room");
                (*to).slots[free] = record;
                (*to).stale |= ((*from).stale >> slot & 1) << free;
                let end = entries.len();
                entries.insert(&self.keys, end, record, free);
            }
            tx.free::<Text>((*from).low)?;
            tx.free(from)?;
        }
        self.index.remove(&self.keys, right);
        Ok(())
    }
}

/// All versions of a key, from this record on.
///
/// # Safety
/// The record is live, and so are those that it leads to, as long as nobody writes.
pub(crate) unsafe fn versions<'a>(record: *const Record) -> impl Iterator<Item = &'a Record> {
    // SAFETY: as the caller promises.
    let first = unsafe { record.as_ref() };
    // SAFETY: as above.
    std::iter::successors(first, |version| unsafe { version.previous.as_ref() })
}

/// The version that a reader by `sequence` sees, if that is a value.
///
/// # Safety
/// The record is live, and so are those that it leads to, as long as nobody writes.
#[inline]
pub(crate) unsafe fn visible(mut record: *const Record, sequence: u64) -> Option<*const Record> {
    loop {
        // SAFETY: as the caller promises.
        let version = unsafe { record.as_ref() }?;
        if version.sequence() <= sequence {
            return (!version.is_deletion()).then_some(record);
        }
        record = version.previous;
    }
}

/// Whether a slot has no record: its entry, if it has one, leaves with the running commit.
fn is_empty(leaf: *mut Leaf, slot: usize) -> bool {
    // SAFETY: the leaf is live, and slots are below SLOTS; callers are the writer.
    unsafe { slot_of(leaf, slot).read().is_null() }
}

/// Announces a word and stores it.
fn store<T: Copy>(tx: &Tx, target: *mut T, value: T) -> Result<()> {
    // SAFETY: callers give a word of a live object, which only the writer changes.
    unsafe {
        tx.add(target)?;
        target.write(value);
    }
    Ok(())
}

/// Has `record` lead to `previous`.
///
/// # Safety
/// The record is live, and nobody reads it now.
unsafe fn link(tx: &Tx, record: *mut Record, previous: *mut Record) -> Result<()> {
    // SAFETY: as the caller promises.
    unsafe {
        if (*record).previous == previous {
            return Ok(());
        }
        store(tx, &raw mut (*record).previous, previous)
    }
}
