//! Reference counts: what a transaction adds to them, and what becomes of objects that nobody holds any more.
//!
//! A count is shared by all threads, so undoing a change by its old value would be wrong: what another transaction has
//! added and committed meanwhile would be undone with it. A transaction therefore only remembers how many references it
//! added and dropped, and applies the sums at its commit, while it has the objects locked until the new counts are
//! durable. Nothing is logged for a reference that comes and goes.
//!
//! Who gets a reference from a weak one *pins* the object until the end of the transaction: the count does not tell of
//! it yet. The last reference to an object that another transaction has pinned goes to the pool's limbo (`limbo`), from
//! which a later transaction drops it.
//!
//! Lock and pins are in the object's word (`count_word`).

use std::any::Any;
use std::hint::spin_loop;
use std::mem::offset_of;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rustc_hash::FxHashMap;

use super::binding::Binding;
use super::count_word::{CountWord, Held, Taken};
use super::limbo;
use super::running::Running;
use super::stats;
use super::words::Word;
use crate::described::{Description, notes_since};
use crate::error::Result;

// SAFETY: transparent, and 0 is what nobody knows.
unsafe impl Word for CountWord {}

/// What is known of the type of a counted object when only its address is at hand.
#[derive(Debug)]
pub struct Glue {
    /// Of the pool type that its pointers name: dropping the value drops these.
    pub(super) binding: fn() -> &'static Binding,
    pub(super) describe: fn() -> &'static Description,
    /// Drops the value in the object at an address.
    pub(super) drop_value: unsafe fn(&Running, usize),
    /// Where the value lies in the object, and its length.
    pub(super) value: (usize, usize),
}

/// What is known of the types of counted objects in an open pool, by type id. A reference in the limbo says of its
/// object no more than that id.
#[derive(Debug, Default)]
pub(crate) struct GlueTable(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    glue: FxHashMap<u64, &'static Glue>,
    /// So many of the process's notes are in it, or of other pool types.
    seen: usize,
}

impl GlueTable {
    /// Of a type that the program has used by now, reachable from the root or not.
    pub(super) fn find(&self, binding: &'static Binding, type_id: u64) -> Option<&'static Glue> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let notes = notes_since(known.seen);
        known.seen += notes.len();
        for note in notes {
            if let Some(glue) = (note as &dyn Any).downcast_ref::<Glue>()
                && std::ptr::eq((glue.binding)(), binding)
            {
                known.glue.insert((glue.describe)().id(), glue);
            }
        }
        known.glue.get(&type_id).copied()
    }
}

/// The counts of an object, at its start.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) strong: u64,
    pub(crate) weak: u64,
}

/// What the transaction has done about an object.
#[derive(Debug)]
struct Entry {
    address: usize,
    glue: &'static Glue,
    /// References that it added, less those that it dropped.
    strong: i64,
    weak: i64,
    /// Threads share it.
    is_shared: bool,
    /// Allocated in this transaction.
    is_fresh: bool,
    state: State,
    /// What of its word is this transaction's.
    held: Held,
    /// In `Counts::pending`.
    is_pending: bool,
}

/// What the transaction has made of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// As it was.
    Kept,
    /// The value was dropped.
    Dropped,
    /// Freed, with its word as it was before.
    Freed { word: Taken },
}

/// So many are looked through one by one.
const FEW: usize = 12;

/// What a transaction has done about counted objects.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    entries: Vec<Entry>,
    /// By address, where there are more than a few.
    index: FxHashMap<usize, u32>,
    last: usize,
    /// Threads share some of them: these may be locked or pinned.
    has_shared: bool,
    /// One whose sums have become zero: mostly nothing is left to do about it, and the next object gets its entry. Who
    /// walks along counted pointers, from a reference to the next, needs two entries for any way.
    idle: Option<u32>,
    /// Those whose sums are not zero.
    pending: Vec<u32>,
    /// The pool's limbo is this transaction's until its end.
    pub(super) has_limbo: bool,
    /// By how many references the limbo grows when it commits.
    pub(super) limbo_change: isize,
}

impl Counts {
    #[inline]
    fn find(&mut self, address: usize) -> Option<usize> {
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
    fn entry(&mut self, address: usize, glue: &'static Glue, is_shared: bool) -> usize {
        match self.find(address) {
            Some(at) => at,
            None => self.new_entry(address, glue, is_shared),
        }
    }

    fn new_entry(&mut self, address: usize, glue: &'static Glue, is_shared: bool) -> usize {
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
            state: State::Kept,
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

    /// Has an entry say of another object that nothing is known yet, if nothing would be forgotten by that.
    #[inline]
    fn reuse(&mut self, at: usize, address: usize, glue: &'static Glue, is_shared: bool) -> bool {
        let entry = &mut self.entries[at];
        let is_touched = entry.is_fresh || !entry.held.is_nothing() || entry.state != State::Kept;
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

    /// References have come or gone.
    #[inline]
    pub(super) fn add(
        running: &Running,
        address: usize,
        glue: &'static Glue,
        is_shared: bool,
        strong: i64,
        weak: i64,
    ) {
        running.note_counted();
        let mut counts = running.counts.borrow_mut();
        let at = counts.entry(address, glue, is_shared);
        counts.change(at, strong, weak);
    }

    #[inline]
    fn change(&mut self, at: usize, strong: i64, weak: i64) {
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

    /// An object was allocated, with one reference.
    pub(super) fn add_fresh(
        running: &Running,
        address: usize,
        glue: &'static Glue,
        is_shared: bool,
    ) {
        running.note_counted();
        let mut counts = running.counts.borrow_mut();
        // What the transaction has freed is not allocated again before it has ended.
        debug_assert_eq!(counts.find(address), None);
        let at = counts.new_entry(address, glue, is_shared);
        counts.entries[at].is_fresh = true;
        counts.change(at, 1, 0);
    }

    /// The strong references to an object, with those of the running transaction.
    pub(super) fn strong(running: &Running, address: usize) -> u64 {
        let mut counts = running.counts.borrow_mut();
        let own = match counts.find(address) {
            Some(at) => counts.entries[at].strong,
            None => 0,
        };
        // SAFETY: a counted object lies there: the caller has a reference to it, or a pin.
        let strong = unsafe { AtomicU64::from_ptr(&raw mut (*tally(address)).strong) };
        strong.load(Ordering::Acquire).wrapping_add_signed(own)
    }

    /// Whether the running transaction has pinned an object before.
    pub(super) fn has_pinned(running: &Running, address: usize) -> bool {
        Self::held(running, address).is_pinned()
    }

    /// What of an object's word is the running transaction's.
    pub(super) fn held(running: &Running, address: usize) -> Held {
        let mut counts = running.counts.borrow_mut();
        match counts.find(address) {
            Some(at) => counts.entries[at].held,
            None => Held::default(),
        }
    }

    /// The running transaction has pinned an object.
    pub(super) fn note_pinned(running: &Running, address: usize, glue: &'static Glue) {
        running.note_counted();
        let mut counts = running.counts.borrow_mut();
        let at = counts.entry(address, glue, true);
        counts.entries[at].held.note_pinned();
    }

    /// Drops what was put off, and applies the sums. The transaction has the objects locked until its end.
    ///
    /// # Errors
    /// Those of an allocation, where a reference goes to the limbo.
    pub(crate) fn settle(running: &Running) -> Result<()> {
        running.do_works();
        let has_limbo = running.open().limbo.len() > 0;
        if running.counts.borrow().entries.is_empty() && !has_limbo {
            return Ok(());
        }
        {
            let mut counts = running.counts.borrow_mut();
            if counts.has_shared {
                counts.lock_pending(running.binding());
            }
        }
        if has_limbo {
            limbo::drop_some(running);
        }
        loop {
            // What is dropped with an object adds to both lists.
            let next = running.counts.borrow_mut().pending.pop();
            match next {
                Some(at) => Self::apply(running, at as usize)?,
                None if running.has_works() => running.do_works(),
                None => return Ok(()),
            }
        }
    }

    /// Locks the objects whose counts change, in the order of their addresses: who waits for one has none that is
    /// before it, so nobody waits in a circle.
    fn lock_pending(&mut self, binding: &Binding) {
        let Self {
            entries, pending, ..
        } = self;
        pending.sort_unstable_by_key(|at| entries[*at as usize].address);
        for at in pending {
            let entry = &mut entries[*at as usize];
            let changes = entry.strong != 0 || entry.weak != 0 || entry.is_fresh;
            if !entry.is_shared || !changes {
                continue;
            }
            // SAFETY: an object of the open pool.
            let word = unsafe { binding.words.at::<CountWord>(entry.address) };
            let mut pause = Pause::default();
            while !word.try_lock() {
                pause.wait();
            }
            entry.held.note_locked();
        }
    }

    /// Applies what was added to the counts of an object. Its value is dropped with the last reference.
    fn apply(running: &Running, at: usize) -> Result<()> {
        let mut guard = running.counts.borrow_mut();
        let entry = &mut guard.entries[at];
        let (strong, weak) = (entry.strong, entry.weak);
        (entry.strong, entry.weak, entry.is_pending) = (0, 0, false);
        if strong == 0 && weak == 0 && (!entry.is_fresh || entry.state != State::Kept) {
            return Ok(());
        }
        let (address, glue, is_fresh) = (entry.address, entry.glue, entry.is_fresh);
        // SAFETY: an object of the open pool.
        let word = unsafe { running.binding().words.at::<CountWord>(address) };
        if entry.is_shared && !entry.held.is_locked() {
            if !word.try_lock() {
                // A reference that was dropped with what held it, and another transaction is about to commit a change
                // of the counts. To wait could be to wait in a circle.
                debug_assert!(strong <= 0 && weak <= 0);
                drop(guard);
                return limbo::put(running, address, glue, -strong, -weak);
            }
            entry.held.note_locked();
        }
        // SAFETY: the counts are at the start of the object, and this thread is alone with them: they are locked, or
        // the object is not shared.
        let old = unsafe { tally(address).read() };
        let mut new = Tally {
            strong: old.strong.wrapping_add_signed(strong),
            weak: old.weak.wrapping_add_signed(weak),
        };
        let was_alive = (old.strong > 0 || entry.is_fresh) && entry.state == State::Kept;
        let is_pinned = entry.is_shared && word.is_pinned_by_others(entry.held);
        let mut dies = new.strong == 0 && was_alive;
        // Pinned, the last references stay until a later transaction.
        let (mut keeps_strong, mut keeps_weak) = (0, 0);
        if is_pinned && dies {
            (dies, new.strong, keeps_strong) = (false, 1, 1);
        } else if is_pinned && new.strong == 0 && new.weak == 0 {
            (new.weak, keeps_weak) = (1, 1);
        }
        if dies {
            entry.state = State::Dropped;
        }
        let is_free = new.strong == 0 && new.weak == 0;
        if is_free {
            entry.state = State::Freed { word: word.take() };
        }
        drop(guard);
        if dies {
            // SAFETY: no reference is left, and nobody can get one.
            unsafe { (glue.drop_value)(running, address) };
        }
        if is_free {
            running.close_accounts(address + glue.value.0, glue.value.1);
            running.free(address);
            return Ok(());
        }
        if new != old {
            // Mostly one of the two changes, and the other is not logged.
            for (offset, old, new) in [
                (offset_of!(Tally, strong), old.strong, new.strong),
                (offset_of!(Tally, weak), old.weak, new.weak),
            ] {
                if new == old {
                    continue;
                }
                if !is_fresh {
                    running.announce(address + offset, size_of::<u64>());
                }
                let count = std::ptr::with_exposed_provenance_mut::<u64>(address + offset);
                // SAFETY: as above. Others may look at the counts meanwhile, and look again when they see that they are
                // locked.
                unsafe { AtomicU64::from_ptr(count) }.store(new, Ordering::Release);
            }
        }
        if dies {
            // Weak references remain. What the value pointed to is gone.
            let (offset, len) = glue.value;
            running.announce(address + offset, len);
            // SAFETY: the value was dropped, and the memory is the object's.
            unsafe {
                std::ptr::with_exposed_provenance_mut::<u8>(address + offset).write_bytes(0, len);
            }
        }
        if keeps_strong + keeps_weak > 0 {
            return limbo::put(running, address, glue, keeps_strong, keeps_weak);
        }
        Ok(())
    }

    /// The transaction is about to be rolled back: nobody may find what it has allocated.
    pub(crate) fn before_rollback(&mut self, running: &Running) {
        let words = &running.binding().words;
        for entry in &mut self.entries {
            if let State::Freed { word } = entry.state {
                entry.state = State::Dropped;
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
    pub(crate) fn end(&mut self, running: &Running, committed: bool) {
        if self.has_limbo {
            let change = if committed { self.limbo_change } else { 0 };
            running.open().limbo.give_back(change);
            (self.has_limbo, self.limbo_change) = (false, 0);
        }
        if self.entries.is_empty() {
            return;
        }
        if !committed {
            self.before_rollback(running);
        }
        let words = &running.binding().words;
        let held = if self.has_shared {
            &self.entries[..]
        } else {
            &[]
        };
        for entry in held {
            let is_freed = matches!(entry.state, State::Freed { .. });
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
    std::ptr::with_exposed_provenance_mut(address)
}

/// Waits for another transaction to end its commit, longer each time.
#[derive(Debug, Default)]
pub(super) struct Pause {
    turns: u32,
}

impl Pause {
    pub(super) fn wait(&mut self) {
        if self.turns == 0 {
            stats::count_contended();
        }
        self.turns += 1;
        match self.turns {
            0..64 => spin_loop(),
            64..128 => std::thread::yield_now(),
            _ => std::thread::sleep(Duration::from_micros(20)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::described::Described;

    #[test]
    fn a_walk_along_counted_pointers_needs_two_entries() {
        static BINDING: Binding = Binding::new("P");
        static GLUE: Glue = Glue {
            binding: || &BINDING,
            describe: u64::description,
            drop_value: |_, _| (),
            value: (16, 8),
        };
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
        static BINDING: Binding = Binding::new("P");
        const BASE: usize = 0x2000_0000_0000;
        let mapping = BINDING.words.reserve(BASE, 1 << 20, Path::new("store"));
        let beside = mapping.as_ref().unwrap().beside();
        beside.need(BASE, 1 << 20).unwrap();
        static GLUE: Glue = Glue {
            binding: || &BINDING,
            describe: u64::description,
            drop_value: |_, _| (),
            value: (16, 8),
        };
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
            let waiting = scope.spawn(|| counts.lock_pending(&BINDING));
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
