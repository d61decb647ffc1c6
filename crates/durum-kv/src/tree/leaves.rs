//! Leaves come and go: a full one is split, those with few records are merged. And what goes with a commit that others
//! read beside stays in memory until it is through.

use durum::Tx;

use super::{LeafKey, Tree};
use crate::chunk::Node;
use crate::entries::Entries;
use crate::error::Result;
use crate::index::Position;
use crate::media::{Leaf, SLOTS, Text, store};

/// With at most so many records a leaf looks for a neighbour to merge with.
const FEW: usize = SLOTS / 8;

impl Tree {
    /// Takes a key's entry away, and frees its versions.
    pub(super) fn remove(&mut self, tx: &Tx, at: Position, index: usize) -> Result<()> {
        self.take_out(tx, at, index)?;
        self.shape += 1;
        let entries = self.index.entries_mut(&self.media, &self.keys, at)?;
        entries.remove(index);
        if entries.len() <= FEW {
            self.merge_around(tx, at)?;
        }
        Ok(())
    }

    /// The same for a commit that others read beside. The entry stays until the commit is through
    /// ([`Tree::remove_leaving`]), for those who read meanwhile: nothing need be made for them, and what they see is
    /// whole until the commit is. Not so what this commit has made itself, which nobody sees: that memory may be given
    /// to the next record that it makes, so no entry leads there.
    pub(super) fn leave(
        &mut self,
        tx: &Tx,
        at: Position,
        index: usize,
        sequence: u64,
    ) -> Result<()> {
        let seen = self.newest_before(sequence, self.entries(at)?.record(index))?;
        self.take_out(tx, at, index)?;
        let is_first = at == Position::default();
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
            let at = self.find_leaf(leaf)?;
            let leaf = self.index.node(at).leaf;
            let entries = self.index.entries_mut(&self.media, &self.keys, at)?;
            entries.remove_leaving(leaf);
        }
        Ok(leaving)
    }

    /// Merges those of these leaves that have few records left.
    pub(crate) fn merge_few(&mut self, tx: &Tx, leaves: &[LeafKey]) -> Result<()> {
        for leaf in leaves {
            let at = self.find_leaf(leaf)?;
            if self.entries(at)?.len() <= FEW {
                self.merge_around(tx, at)?;
            }
        }
        Ok(())
    }

    fn find_leaf(&self, LeafKey(low): &LeafKey) -> Result<Position> {
        match low {
            Some(low) => self.find(low),
            None => self.first(),
        }
    }

    /// Makes room in a full leaf for `key`, which belongs at `index`.
    pub(super) fn split(&mut self, tx: &Tx, at: Position, index: usize, key: &[u8]) -> Result<()> {
        let is_last = self.index.is_last(at);
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
        let rows = moved.into_iter().enumerate();
        let rows: Vec<_> = rows.map(|(slot, (record, _))| (record, slot)).collect();
        let mut entries = Entries::of(&self.keys, &rows);
        if has_leaving {
            entries.note_leaving();
            self.leaving.push(LeafKey(Some(low.clone())));
        }
        let node = Node::with_entries(new, low, entries);
        self.enter(tx, at, node)
    }

    /// A leaf has few records: it goes, or takes in its neighbour, if there is room.
    pub(super) fn merge_around(&mut self, tx: &Tx, at: Position) -> Result<()> {
        let len = self.entries(at)?.len();
        let pairs = [
            self.beyond::<false>(at)?.map(|previous| (previous, at)),
            self.beyond::<true>(at)?.map(|next| (at, next)),
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
        let entries = self.index.entries_mut(&self.media, &self.keys, right)?;
        let moved = entries.split_off(0);
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
            // No guide agrees with what has gone.
            store(tx, &raw mut (*from).low, std::ptr::null_mut())?;
            tx.free(from)?;
        }
        self.take_off(tx, right)
    }
}
