//! Tables of groups of slots, as they lie in the pool. What is here knows places, and moves values; it calls no code of
//! the user.

use std::borrow::Cow;
use std::marker::PhantomData;
use std::mem::{MaybeUninit, needs_drop, offset_of};
use std::ptr;

use durum_format::types::{Count, Field, Type};

use crate::described::{Described, Walk};
use crate::typed::collections::map::slot::{Place, Slot, copies, map_name};
use crate::typed::layout::WORD;
use crate::typed::psafe::PSafe;
use crate::typed::typed_tx::TypedTx;

/// Slots of a group: one byte of its word each, and one for the entries that went on.
const SLOTS: usize = 7;
/// A table takes so many entries for each group on average; then it grows. Three of ten groups are full then; with one
/// entry more it would be twice as many.
const ENTRIES_PER_GROUP: usize = 5;
const LINE: usize = 64;

#[repr(C)]
struct Group<K, V> {
    word: u64,
    slots: [MaybeUninit<Slot<K, V>>; SLOTS],
}

/// A group's word: a tag for each slot, and in the last byte how many entries found no room here and went on. From
/// [`OVERFLOW_MAX`] on that is not counted any more.
#[derive(Clone, Copy)]
struct Word(u64);

const OVERFLOW_SHIFT: u32 = 56;
const OVERFLOW_MAX: u64 = 0xff;
/// The highest bit of each tag: set where an entry is. A vacant slot's tag is 0.
const TAKEN: u64 = 0x0080_8080_8080_8080;
const LOW_BITS: u64 = 0x0101_0101_0101_0101;

impl Word {
    fn taken(self) -> u64 {
        self.0 & TAKEN
    }

    fn vacant(self) -> u64 {
        !self.0 & TAKEN
    }

    /// The highest bits of the tags that are `tag`.
    fn matching(self, tag: u8) -> u64 {
        let different = self.0 ^ (LOW_BITS * u64::from(tag));
        let low = !(TAKEN | OVERFLOW_MAX << OVERFLOW_SHIFT);
        // No byte's sum carries into the next one.
        !(((different & low) + low) | different) & TAKEN
    }

    fn overflow(self) -> u64 {
        self.0 >> OVERFLOW_SHIFT
    }

    fn with_tag(self, slot: usize, tag: u8) -> Self {
        let shift = 8 * slot;
        Self(self.0 & !(0xff << shift) | u64::from(tag) << shift)
    }
}

/// The slot of the first of some highest bits.
fn first_slot(bits: u64) -> Option<usize> {
    (bits != 0).then(|| bits.trailing_zeros() as usize / 8)
}

/// The tag of an entry with this hash. Its bits choose no group.
pub(super) fn tag_of(hash: u64) -> u8 {
    (hash >> 57) as u8 | 0x80
}

/// Where a table lies.
pub(super) struct Table<K, V> {
    start: usize,
    /// A power of two; 0 where there is no table.
    groups: usize,
    _entries: PhantomData<(*mut K, *mut V)>,
}

/// A group in a table.
struct GroupAt<K, V> {
    address: usize,
    _entries: PhantomData<(*mut K, *mut V)>,
}

/// Where an entry was found in a table.
pub(super) struct Found<K, V> {
    group: GroupAt<K, V>,
    slot: usize,
}

copies! { Table GroupAt Found }

impl<K: PSafe, V: PSafe> GroupAt<K, V> {
    /// Bytes from one group to the next. Where that wastes little they begin with lines, so that the word lies on one
    /// with the first slots.
    const STRIDE: usize = {
        let size = size_of::<Group<K, V>>();
        let in_lines = size.next_multiple_of(LINE);
        match in_lines - size <= size / 8 {
            true => in_lines,
            false => size,
        }
    };
    const ALIGN: usize = match Self::STRIDE.is_multiple_of(LINE) && align_of::<Group<K, V>>() < LINE
    {
        true => LINE,
        false => align_of::<Group<K, V>>(),
    };

    fn word(self) -> Word {
        // SAFETY: a group of a table that the map owns.
        Word(unsafe { ptr::with_exposed_provenance::<u64>(self.address).read() })
    }

    /// Replaces the word, which is announced or fresh.
    fn set_word(self, word: Word) {
        // SAFETY: a group of a table that the map owns; whoever changes the map has it to himself.
        unsafe { ptr::with_exposed_provenance_mut::<u64>(self.address).write(word.0) };
    }

    fn announce_word(self, tx: &TypedTx) {
        tx.announce(self.address, size_of::<Word>());
    }

    fn slot(self, slot: usize) -> Found<K, V> {
        Found { group: self, slot }
    }
}

impl<K: PSafe, V: PSafe> Found<K, V> {
    pub(super) fn place(self) -> Place<K, V> {
        let slots = self.group.address + offset_of!(Group<K, V>, slots);
        Place::of_slot(slots, self.slot)
    }

    fn set_tag(self, tag: u8) {
        self.group
            .set_word(self.group.word().with_tag(self.slot, tag));
    }

    /// Takes the entry out that is here.
    pub(super) fn take(self, tx: &TypedTx) -> (K, V) {
        let place = self.place();
        self.group.announce_word(tx);
        if Place::<K, V>::HAS_POINTERS {
            place.announce(tx);
        }
        self.set_tag(0);
        let entry = place.take(tx);
        place.wipe();
        entry
    }
}

impl<K: PSafe, V: PSafe> Table<K, V> {
    /// As its groups are.
    pub(super) const ALIGN: usize = GroupAt::<K, V>::ALIGN;

    pub(super) fn at(start: usize, groups: usize) -> Self {
        Self {
            start,
            groups,
            _entries: PhantomData,
        }
    }

    pub(super) fn start(self) -> usize {
        self.start
    }

    pub(super) fn groups(self) -> usize {
        self.groups
    }

    /// Its bytes, if there are so many in memory.
    pub(super) fn bytes(self) -> Option<usize> {
        self.groups.checked_mul(GroupAt::<K, V>::STRIDE)
    }

    /// Entries that it takes. At least one slot of each table that is not full is vacant.
    pub(super) fn capacity(self) -> usize {
        match self.groups {
            0 | 1 => self.groups * SLOTS,
            groups => groups * ENTRIES_PER_GROUP,
        }
    }

    /// Groups of a table for so many entries; `None` if there is no such table.
    pub(super) fn groups_for(entries: usize) -> Option<usize> {
        let groups = match entries {
            0..=SLOTS => 1,
            _ => entries
                .div_ceil(ENTRIES_PER_GROUP)
                .checked_next_power_of_two()?,
        };
        let bytes = groups.checked_mul(GroupAt::<K, V>::STRIDE)?;
        (bytes <= isize::MAX as usize).then_some(groups)
    }

    /// Allocates a table without entries.
    pub(super) fn allocate(groups: usize, tx: &TypedTx) -> Self {
        let bytes = groups * GroupAt::<K, V>::STRIDE;
        let start = tx.allocate::<TableType<K, V>>(bytes, GroupAt::<K, V>::ALIGN);
        let table = Self::at(start, groups);
        if Place::<K, V>::HAS_POINTERS {
            // SAFETY: just allocated.
            unsafe { ptr::with_exposed_provenance_mut::<u8>(start).write_bytes(0, bytes) };
        } else {
            (0..groups).for_each(|at| table.group(at).set_word(Word(0)));
        }
        table
    }

    fn group(self, at: usize) -> GroupAt<K, V> {
        GroupAt {
            address: self.start + at * GroupAt::<K, V>::STRIDE,
            _entries: PhantomData,
        }
    }

    /// The groups in which an entry with this hash may be, each once.
    fn probe(self, hash: u64) -> impl Iterator<Item = GroupAt<K, V>> {
        // Odd, so that it comes to all groups.
        let step = 2 * usize::from(tag_of(hash)) + 1;
        let mut at = hash as usize;
        (0..self.groups).map(move |_| {
            let group = self.group(at & (self.groups - 1));
            at = at.wrapping_add(step);
            group
        })
    }

    /// The entry with this hash for whose key `is_it` is true.
    #[inline]
    pub(super) fn find(self, hash: u64, mut is_it: impl FnMut(&K) -> bool) -> Option<Found<K, V>> {
        for group in self.probe(hash) {
            let word = group.word();
            let mut candidates = word.matching(tag_of(hash));
            while let Some(slot) = first_slot(candidates) {
                let found = group.slot(slot);
                // SAFETY: an entry of the map, which the caller has borrowed.
                if is_it(unsafe { &*found.place().key() }) {
                    return Some(found);
                }
                candidates &= candidates - 1;
            }
            if word.overflow() == 0 {
                return None;
            }
        }
        None
    }

    /// Puts an entry in, in a table that is not full.
    pub(super) fn put(self, hash: u64, key: K, value: V, tx: &TypedTx) -> Place<K, V> {
        let vacancy = self.vacancy(hash, |group| group.announce_word(tx));
        let place = vacancy.place();
        place.announce(tx);
        // Nothing fails from here on.
        self.count_overflow(hash, vacancy, |overflow| (overflow + 1).min(OVERFLOW_MAX));
        place.put(key, value, tx);
        vacancy.set_tag(tag_of(hash));
        place
    }

    /// Moves an entry here from another table, where the caller forgets it. This one is fresh, and not full.
    pub(super) fn move_here(self, hash: u64, from: Found<K, V>, tx: &TypedTx) {
        let vacancy = self.vacancy(hash, |_| ());
        self.count_overflow(hash, vacancy, |overflow| (overflow + 1).min(OVERFLOW_MAX));
        from.place().copy_to(vacancy.place(), tx);
        vacancy.set_tag(tag_of(hash));
    }

    /// Copies an entry to here from another table, which nobody uses again. This one is fresh, and not full.
    pub(super) fn put_copy(self, hash: u64, from: Found<K, V>) {
        let vacancy = self.vacancy(hash, |_| ());
        self.count_overflow(hash, vacancy, |overflow| (overflow + 1).min(OVERFLOW_MAX));
        from.place().copy_bytes_to(vacancy.place());
        vacancy.set_tag(tag_of(hash));
    }

    /// Takes an entry out that [`Table::find`] found with this hash.
    pub(super) fn take(self, hash: u64, found: Found<K, V>, tx: &TypedTx) -> (K, V) {
        let passed = self
            .probe(hash)
            .take_while(|group| group.address != found.group.address);
        passed.for_each(|group| group.announce_word(tx));
        found.group.announce_word(tx);
        let entry = found.take(tx);
        self.count_overflow(hash, found, |overflow| match overflow {
            // It is not known how many they are.
            OVERFLOW_MAX => OVERFLOW_MAX,
            // Less than none only where the key's `Hash` contradicts itself.
            overflow => overflow.saturating_sub(1),
        });
        entry
    }

    /// The first vacant slot for an entry with this hash, after `visit` has seen the groups up to it.
    fn vacancy(self, hash: u64, mut visit: impl FnMut(GroupAt<K, V>)) -> Found<K, V> {
        for group in self.probe(hash) {
            visit(group);
            if let Some(slot) = first_slot(group.word().vacant()) {
                return group.slot(slot);
            }
        }
        unreachable!("a table that is not full has a vacant slot")
    }

    /// Counts in the groups that an entry has passed on its way to a slot.
    fn count_overflow(self, hash: u64, slot: Found<K, V>, count: impl Fn(u64) -> u64) {
        for group in self
            .probe(hash)
            .take_while(|group| group.address != slot.group.address)
        {
            let Word(word) = group.word();
            let overflow = count(word >> OVERFLOW_SHIFT);
            group.set_word(Word(
                word & !(OVERFLOW_MAX << OVERFLOW_SHIFT) | overflow << OVERFLOW_SHIFT,
            ));
        }
    }

    /// The open ranges of values in it end: they are about to be moved.
    pub(super) fn close_ranges(self, tx: &TypedTx) {
        if K::OWNERS || V::OWNERS {
            tx.close_ranges(self.start, self.groups * GroupAt::<K, V>::STRIDE);
        }
    }

    pub(super) fn entries(self) -> Entries<K, V> {
        Entries {
            table: self,
            next_group: 0,
            group: self.group(0),
            taken: 0,
        }
    }
}

/// Where entries are in a table.
pub(super) struct Entries<K, V> {
    table: Table<K, V>,
    next_group: usize,
    group: GroupAt<K, V>,
    taken: u64,
}

impl<K, V> Clone for Entries<K, V> {
    fn clone(&self) -> Self {
        Self { ..*self }
    }
}

impl<K: PSafe, V: PSafe> Iterator for Entries<K, V> {
    type Item = Found<K, V>;

    #[inline]
    fn next(&mut self) -> Option<Found<K, V>> {
        loop {
            if let Some(slot) = first_slot(self.taken) {
                self.taken &= self.taken - 1;
                return Some(self.group.slot(slot));
            }
            if self.next_group == self.table.groups {
                return None;
            }
            self.group = self.table.group(self.next_group);
            self.taken = self.group.word().taken();
            self.next_group += 1;
        }
    }
}

/// Drops the entries of a table whose map is gone, and frees it.
pub(super) unsafe fn drop_table<K: PSafe, V: PSafe>(tx: &TypedTx, start: usize, groups: usize) {
    if needs_drop::<K>() || needs_drop::<V>() {
        for found in Table::<K, V>::at(start, groups).entries() {
            // SAFETY: the map owned the entry, and is gone.
            unsafe { found.place().drop_entry(tx) };
        }
    }
    tx.free(start);
}

/// The type of an allocation with a table in it: as many groups as fit.
pub(super) struct TableType<K, V>(PhantomData<(K, V)>);

// SAFETY: the compiler measures size and offsets. A slot without an entry is zero where entries have pointers.
unsafe impl<K: PSafe, V: PSafe> Described for TableType<K, V> {
    fn name() -> Option<Cow<'static, str>> {
        Some(Cow::Owned(map_name::<K, V>("PHashMap") + ".table"))
    }

    fn layout(walk: &mut Walk) -> Type<String> {
        let slots = offset_of!(Group<K, V>, slots);
        let mut fields = vec![Field::new("tags", 0, WORD)];
        fields.extend(Slot::<K, V>::row("PHashMap", SLOTS, slots, walk));
        let (stride, align) = (GroupAt::<K, V>::STRIDE, align_of::<Group<K, V>>());
        let name = map_name::<K, V>("PHashMap") + ".group";
        Type::structure(name, stride as u64, align as u64, fields).array(Count::Tail)
    }
}
