//! Older versions: a leaf marks the slots that have some, and they are freed when nobody needs them.

use durum::Tx;

use super::{Stale, Tree};
use crate::error::{Error, Result};
use crate::media::{HAS_STALE, Leaf, Record, SLOTS, store};
use crate::versions::Readers;

impl Stale {
    /// # Safety
    /// The newest record of the key, which is live.
    unsafe fn of(record: *const Record) -> Self {
        // SAFETY: as the caller promises.
        let (sequence, key) = unsafe { ((*record).sequence(), Record::key(record).into()) };
        Self { sequence, key }
    }
}

impl Tree {
    pub(super) fn note_stale(&mut self, leaf: *mut Leaf) -> Result<()> {
        // SAFETY: the caller has checked it.
        let mut marks = unsafe { (*leaf).stale };
        while marks != 0 {
            let slot = marks.trailing_zeros() as usize;
            marks &= marks - 1;
            if slot >= SLOTS {
                let reason = "a leaf marks slots that it does not have";
                return Err(Error::damaged(leaf.addr(), reason));
            }
            // SAFETY: the caller has checked the leaf, and the slot is one of its own.
            let record = self.media.record(unsafe { (*leaf).slots[slot] })?;
            // SAFETY: just checked.
            self.stale.push_back(unsafe { Stale::of(record) });
        }
        Ok(())
    }

    /// Whether a pinned number sees a value among the versions of a key, of which `newest` is superseded by commit
    /// `until`.
    pub(super) fn is_pinned(
        &self,
        newest: *mut Record,
        mut until: u64,
        readers: &Readers,
    ) -> Result<bool> {
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
    pub(super) fn newest_before(&self, sequence: u64, newest: *mut Record) -> Result<*mut Record> {
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
    pub(super) fn free_versions(&self, tx: &Tx, newest: *mut Record) -> Result<()> {
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

    /// Frees the versions behind `newest` that nobody needs. Whether any are left.
    pub(super) fn prune(&self, tx: &Tx, newest: *mut Record, readers: &Readers) -> Result<bool> {
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
    pub(super) fn mark(
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
        if is_stale && !self.has_stale {
            self.note_has_stale(tx, true)?;
        }
        // SAFETY: a field of the live leaf.
        store(tx, unsafe { &raw mut (*leaf).stale }, wanted)?;
        if is_stale {
            // SAFETY: the caller's record is live.
            self.stale.push_back(unsafe { Stale::of(record) });
        }
        Ok(())
    }

    /// Notes in the root whether leaves may have marks: if not, the next opener need not look for them.
    pub(crate) fn note_has_stale(&mut self, tx: &Tx, has_stale: bool) -> Result<()> {
        if self.guides.is_null() {
            return Ok(());
        }
        // SAFETY: the root is live as long as the pool is open.
        let place = unsafe { &raw mut (*self.database).layout };
        // SAFETY: only the writer changes it.
        let layout = unsafe { *place };
        let wanted = match has_stale {
            true => layout | HAS_STALE,
            false => layout & !HAS_STALE,
        };
        store(tx, place, wanted)?;
        self.has_stale = has_stale;
        Ok(())
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
        let at = self.find(key)?;
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
