//! Reference counts: what a transaction adds to them.
//!
//! A count is shared by all threads, so undoing a change by its old value would be wrong: what another transaction has
//! added and committed meanwhile would be undone with it. A transaction therefore only remembers how many references it
//! added and dropped, and applies the sums at its commit, while it has the objects locked until the new counts are
//! durable. Nothing is logged for a reference that comes and goes.
//!
//! A transaction that makes a strong reference of a weak one *pins* the object until its end, because the count does
//! not tell of the new reference yet. The last reference to an object that another transaction has pinned becomes a
//! deferred drop (`deferred_drops`).
//!
//! Lock and pins are in the object's word (`count_word`).

use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};

use rustc_hash::FxHashMap;

use super::count_word::{CountWord, Held, Taken};
use super::drop_glue::DropGlue;
use super::volatile_words::{VolatileWord, VolatileWords};
use super::waiting::Pause;

// SAFETY: transparent, and 0 is what nobody knows.
unsafe impl VolatileWord for CountWord {}

/// The counts of an object, at its start.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) strong: u64,
    pub(crate) weak: u64,
}

/// What the transaction has done about an object.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) address: usize,
    pub(super) glue: &'static DropGlue,
    /// References that it added, less those that it dropped.
    pub(super) strong: i64,
    pub(super) weak: i64,
    /// Threads share it.
    pub(super) is_shared: bool,
    /// Allocated in this transaction.
    pub(super) is_fresh: bool,
    pub(super) state: ObjectState,
    /// What of its word is this transaction's.
    pub(super) held: Held,
    /// In `Counts::pending`.
    pub(super) is_pending: bool,
}

/// What the transaction has made of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ObjectState {
    /// As it was.
    Kept,
    /// The value was dropped.
    Dropped,
    /// Freed, with its word as it was before.
    Freed { word: Taken },
}

/// Up to so many entries are looked through one by one.
const FEW: usize = 12;

/// What a transaction has done about counted objects.
#[derive(Debug, Default)]
pub(super) struct Counts {
    pub(super) entries: Vec<Entry>,
    /// By address, where there are more than a few.
    index: FxHashMap<usize, u32>,
    last: usize,
    /// Threads share some of them: these may be locked or pinned.
    pub(super) has_shared: bool,
    /// An entry whose sums have become zero. Mostly nothing is left to do about it, and the next object gets the entry:
    /// a walk along counted pointers needs two entries, however long it is.
    idle: Option<u32>,
    /// The entries whose sums are not zero.
    pub(super) pending: Vec<u32>,
}

impl Counts {
    #[inline]
    pub(super) fn find(&mut self, address: usize) -> Option<usize> {
        match self.entries.get(self.last) {
            Some(entry) if entry.address == address => Some(self.last),
            _ => self.find_other(address),
        }
    }

    #[inline]
    fn find_other(&mut self, address: usize) -> Option<usize> {
        let found = match self.index.is_empty() {
            true => self
                .entries
                .iter()
                .position(|entry| entry.address == address),
            false => self.index.get(&address).map(|at| *at as usize),
        };
        self.last = found.unwrap_or(self.last);
        found
    }

    #[inline]
    pub(super) fn entry(
        &mut self,
        address: usize,
        glue: &'static DropGlue,
        is_shared: bool,
    ) -> usize {
        match self.find(address) {
            Some(at) => at,
            None => self.new_entry(address, glue, is_shared),
        }
    }

    pub(super) fn new_entry(
        &mut self,
        address: usize,
        glue: &'static DropGlue,
        is_shared: bool,
    ) -> usize {
        if let Some(at) = self.idle.take()
            && self.reuse(at as usize, address, glue, is_shared)
        {
            return at as usize;
        }
        let at = self.entries.len();
        self.entries.push(Entry {
            address,
            glue,
            strong: 0,
            weak: 0,
            is_shared,
            is_fresh: false,
            state: ObjectState::Kept,
            held: Held::default(),
            is_pending: false,
        });
        self.has_shared |= is_shared;
        if at >= FEW {
            self.index_entry(at);
        }
        self.last = at;
        at
    }

    /// Gives an entry to another object, if nothing would be forgotten by that.
    #[inline]
    fn reuse(
        &mut self,
        at: usize,
        address: usize,
        glue: &'static DropGlue,
        is_shared: bool,
    ) -> bool {
        let entry = &mut self.entries[at];
        let is_touched =
            entry.is_fresh || !entry.held.is_nothing() || entry.state != ObjectState::Kept;
        if entry.strong != 0 || entry.weak != 0 || is_touched {
            return false;
        }
        let old = std::mem::replace(&mut entry.address, address);
        // Where it is pending, it stays so.
        (entry.glue, entry.is_shared) = (glue, is_shared);
        self.has_shared |= is_shared;
        if !self.index.is_empty() {
            self.index.remove(&old);
            self.index.insert(address, at as u32);
        }
        self.last = at;
        true
    }

    #[inline(never)]
    fn index_entry(&mut self, at: usize) {
        if self.index.is_empty() {
            let addresses = self.entries.iter().enumerate();
            self.index = addresses
                .map(|(at, entry)| (entry.address, at as u32))
                .collect();
        } else {
            self.index.insert(self.entries[at].address, at as u32);
        }
    }

    #[inline]
    pub(super) fn change(&mut self, at: usize, strong: i64, weak: i64) {
        let entry = &mut self.entries[at];
        entry.strong += strong;
        entry.weak += weak;
        if entry.strong == 0 && entry.weak == 0 {
            self.idle = Some(at as u32);
        }
        if !std::mem::replace(&mut entry.is_pending, true) {
            self.pending.push(at as u32);
        }
    }

    /// Locks the objects whose counts change, in the order of their addresses: who waits for one has none that is
    /// before it, so nobody waits in a circle.
    pub(super) fn lock_pending(&mut self, words: &VolatileWords) {
        let address = |at: &u32| self.entries[*at as usize].address;
        self.pending.sort_unstable_by_key(address);
        for at in &self.pending {
            let entry = &mut self.entries[*at as usize];
            let changes = entry.strong != 0 || entry.weak != 0 || entry.is_fresh;
            if !entry.is_shared || !changes {
                continue;
            }
            // SAFETY: an object of the open pool.
            let word = unsafe { words.at::<CountWord>(entry.address) };
            let mut pause = Pause::default();
            while !word.try_lock() {
                pause.wait();
            }
            entry.held.note_locked();
        }
    }

    /// The transaction is about to be rolled back: nobody may find what it has allocated.
    fn before_rollback(&mut self, words: &VolatileWords) {
        for entry in &mut self.entries {
            if let ObjectState::Freed { word } = entry.state {
                entry.state = ObjectState::Dropped;
                // SAFETY: an object of the open pool.
                unsafe { words.at::<CountWord>(entry.address) }.put_back(word);
            }
            if entry.is_fresh {
                // SAFETY: an object of the open pool.
                let word = unsafe { words.at::<CountWord>(entry.address) };
                let mut pause = Pause::default();
                word.take_unpinned(entry.held, || pause.wait());
                (entry.is_fresh, entry.held) = (false, Held::default());
            }
        }
    }

    /// The transaction is over: locks and pins are given back.
    #[inline]
    pub(super) fn end(&mut self, words: &VolatileWords, committed: bool) {
        if self.entries.is_empty() {
            return;
        }
        if !committed {
            self.before_rollback(words);
        }
        let held = match self.has_shared {
            true => &self.entries[..],
            false => &[],
        };
        for entry in held {
            let is_freed = matches!(entry.state, ObjectState::Freed { .. });
            if !entry.held.is_nothing() && !is_freed {
                // SAFETY: an object of the open pool.
                unsafe { words.at::<CountWord>(entry.address) }.release(entry.held);
            }
        }
        self.entries.clear();
        self.pending.clear();
        if !self.index.is_empty() {
            self.index.clear();
        }
        (self.last, self.has_shared, self.idle) = (0, false, None);
    }
}

/// The counts of the object at an address.
pub(super) fn tally(address: usize) -> *mut Tally {
    ptr::with_exposed_provenance_mut(address)
}

/// The strong references to the object at an address, as the last commit left them.
///
/// # Safety
/// A counted object lies there, which the caller keeps from being freed.
pub(super) unsafe fn committed_strong(address: usize) -> u64 {
    // SAFETY: as the caller promises. Others may change the count meanwhile, by atomic stores.
    unsafe { AtomicU64::from_ptr(&raw mut (*tally(address)).strong) }.load(Ordering::Acquire)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::described::Described;
    use crate::typed::binding::Binding;

    static BINDING: Binding = Binding::new("P");
    static GLUE: DropGlue = DropGlue {
        binding: || &BINDING,
        describe: u64::description,
        drop_value: |_| (),
        value: (16, 8),
    };

    #[test]
    fn a_walk_along_counted_pointers_needs_two_entries() {
        // As few objects as are looked through one by one, and more.
        for changed in [1, FEW + 3] {
            let mut counts = Counts::default();
            let count = |counts: &mut Counts, object: usize, strong: i64| {
                let at = counts.entry(64 * object, &GLUE, false);
                counts.change(at, strong, 0);
            };
            (1..=changed).for_each(|object| count(&mut counts, object, 1));
            count(&mut counts, 100, 1);
            for object in 100..1000 {
                count(&mut counts, object + 1, 1);
                count(&mut counts, object, -1);
            }
            assert_eq!(counts.entries.len(), changed + 2);
            // What others have changed is known still, each entry once, and each is looked at once.
            let sum = |counts: &mut Counts, object: usize| {
                let at = counts.find(64 * object)?;
                Some(counts.entries[at].strong)
            };
            (1..=changed).for_each(|object| assert_eq!(sum(&mut counts, object), Some(1)));
            assert_eq!(sum(&mut counts, 1000), Some(1));
            assert_eq!(sum(&mut counts, 500), None);
            counts.pending.sort_unstable();
            assert!(counts.pending.iter().copied().eq(0..changed as u32 + 2));
        }
    }

    #[test]
    fn objects_are_locked_in_order_and_none_is_given_back_to_wait_for_another() {
        const BASE: usize = 0x2000_0000_0000;
        let mapping = BINDING.words.reserve(BASE, 1 << 20, Path::new("store"));
        let beside = mapping.as_ref().unwrap().beside();
        beside.need(BASE, 1 << 20).unwrap();
        // SAFETY: words of the space that was reserved.
        let word = |at: usize| unsafe { BINDING.words.at::<CountWord>(BASE + 64 * at) };
        let is_locked = |at: usize| word(at).is_held_by_others(Held::default());
        let mut counts = Counts::default();
        for at in [5, 1, 7, 2, 4, 6, 3] {
            let entry = counts.entry(BASE + 64 * at, &GLUE, true);
            counts.entries[entry].strong = 1;
            counts.pending.push(entry as u32);
        }
        let mut held = Held::default();
        assert!(word(4).try_lock());
        held.note_locked();
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| counts.lock_pending(&BINDING.words));
            while !(1..4).all(is_locked) {
                std::thread::yield_now();
            }
            for _ in 0..1000 {
                assert!((1..=4).all(is_locked) && !(5..=7).any(is_locked));
                std::thread::yield_now();
            }
            word(4).release(held);
            waiting.join().unwrap();
        });
        assert!((1..=7).all(is_locked));
    }
}
