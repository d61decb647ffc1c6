//! The slab level: many small objects of one type in one extent, mirrored in volatile memory.
//!
//! The media bitmap says which elements are durably allocated. The volatile mirror decides who may take one:
//!
//! * `busy`: the element is allocated, reserved by a running transaction, or freed by one that is not durable yet. Only
//!   an element that is not busy can be reserved.
//! * `freeing`: some transaction is about to free the element; so a second free of the same object is noticed, whoever
//!   does it.
//!
//! One thread at a time *owns* a slab and reserves in it; any thread may free. So `busy` bits are set by the owner
//! and cleared by all: atomic operations, no lock; and plain ones while one thread is alone with the store
//! (`is_alone`), because an atomic one waits for the last fence.

use std::sync::{Arc, Weak};

use durum_format::SLAB_OBJECT_MAX;
use durum_format::extent::SlabGeometry;
use durum_format::extent::slab::SLAB_BITMAP_OFFSET;
use durum_persist::line::{LINE, prefetch_to_write};
use durum_persist::{Site, record as recorder};

use crate::primitive::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering, order};

/// A step that a crash test leaves out.
const WORN: Site =
    Site("slab: small objects go home with their commit where nobody had one before");

/// What the elements of a slab have in common.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Class {
    pub(crate) type_id: u64,
    pub(crate) element_size: u64,
}

impl Class {
    /// That of objects of a type in places of `room` bytes, aligned to `align`; `None` where slabs have no such places.
    #[inline(always)]
    pub(crate) fn of(type_id: u64, room: usize, align: usize) -> Option<Self> {
        const MAX: usize = SLAB_OBJECT_MAX as usize;
        if room > MAX || align > MAX || !align.is_power_of_two() {
            return None;
        }
        // An element is aligned to the largest power of two that divides its size.
        let last = align.max(8) - 1;
        let size = (room.max(1) + last) & !last;
        (size <= MAX).then_some(Self {
            type_id,
            element_size: size as u64,
        })
    }
}

/// The volatile mirror of one slab.
#[derive(Debug)]
pub(crate) struct Slab {
    /// Address of the extent.
    pub(crate) address: usize,
    pub(crate) class: Class,
    pub(crate) geometry: SlabGeometry,
    /// The extent's start bit is durable. Until then the slab exists for its owner only.
    pub(super) published: AtomicBool,
    /// A record that was committed may be about its elements, although it is not published: they were allocated and
    /// freed in one transaction.
    pub(super) has_records: AtomicBool,
    /// An element of it was given back: records may be about any of those that are free.
    is_worn: AtomicBool,
    /// Some thread reserves in it.
    pub(super) owned: AtomicBool,
    /// It waits in the pool's list of slabs with room.
    pub(super) listed: AtomicBool,
    /// While it is not published: where its owner's transaction has noted it. Says nothing by itself.
    pub(super) entry: AtomicUsize,
    /// Elements that are not busy; exact when nobody is in between.
    free: AtomicU32,
    words: Box<[Word]>,
    this: Weak<Slab>,
}

/// The bits of 64 elements, side by side: who frees an element looks at both.
#[derive(Debug)]
struct Word {
    busy: AtomicU64,
    freeing: AtomicU64,
}

/// A slab is offered to others when this part of it is free. If one element were enough, threads would go from slab to
/// slab for one element at a time where a program frees here and there: each change takes some atomic operations, which
/// wait for the last commit's fence, and new neighbours would lie in different slabs, so that a commit would change as
/// many bitmaps and lines as it makes objects. What is free below that is used before a pool grows.
pub(super) const OFFERED_PART: u32 = 8;

pub(super) fn bit(index: usize) -> (usize, u64) {
    (index / 64, 1 << (index % 64))
}

/// The bits of a bitmap word that stand behind the last element: busy for ever, so that a search never yields them.
fn beyond(capacity: usize, word: usize) -> u64 {
    match capacity.saturating_sub(word * 64) {
        room if room >= 64 => 0,
        room => !0 << room,
    }
}

impl Slab {
    /// A slab whose media bitmap holds `allocated` (all zero for a new one).
    pub(super) fn new(
        address: usize,
        class: Class,
        geometry: SlabGeometry,
        allocated: &[u64],
        published: bool,
    ) -> Arc<Self> {
        let capacity = geometry.capacity as usize;
        let words = geometry.bitmap_words as usize;
        let set = |word: usize| allocated.get(word).copied().unwrap_or(0) & !beyond(capacity, word);
        let taken: u32 = (0..words).map(|word| set(word).count_ones()).sum();
        Arc::new_cyclic(|this| Self {
            address,
            class,
            geometry,
            published: AtomicBool::new(published),
            has_records: AtomicBool::new(published),
            is_worn: AtomicBool::new(false),
            owned: AtomicBool::new(false),
            listed: AtomicBool::new(false),
            entry: AtomicUsize::new(0),
            free: AtomicU32::new(capacity as u32 - taken),
            words: (0..words)
                .map(|word| Word {
                    busy: AtomicU64::new(set(word) | beyond(capacity, word)),
                    freeing: AtomicU64::new(0),
                })
                .collect(),
            this: this.clone(),
        })
    }

    /// The shared handle of this slab; `None` once its extent was given back.
    pub(super) fn shared(&self) -> Option<Arc<Slab>> {
        self.this.upgrade()
    }

    pub(crate) fn element_address(&self, index: usize) -> usize {
        self.address + self.geometry.data_offset as usize + index * self.class.element_size as usize
    }

    /// The element that starts at `address`.
    #[inline]
    pub(crate) fn index_of(&self, address: usize) -> Option<usize> {
        let offset = address.checked_sub(self.address + self.geometry.data_offset as usize)?;
        // Both fit 32 bits, in which a division takes half the time.
        let (offset, size) = (u32::try_from(offset).ok()?, self.class.element_size as u32);
        (offset % size == 0 && u64::from(offset / size) < self.geometry.capacity)
            .then_some((offset / size) as usize)
    }

    /// Address and size of the element that an address lies in, if it is allocated or reserved.
    pub(super) fn element_holding(&self, address: usize) -> Option<(usize, usize)> {
        let offset = address.checked_sub(self.address + self.geometry.data_offset as usize)?;
        // As in `index_of`.
        let (offset, size) = (u32::try_from(offset).ok()?, self.class.element_size as u32);
        let index = (offset / size) as usize;
        if index as u64 >= self.geometry.capacity {
            return None;
        }
        let (word, mask) = bit(index);
        let is_busy = self.words[word].busy.load(Ordering::Relaxed) & mask != 0;
        is_busy.then(|| (self.element_address(index), size as usize))
    }

    /// The media bitmap word of an element, and its bit in it.
    pub(crate) fn media_bit(&self, index: usize) -> (usize, u64) {
        let (word, mask) = bit(index);
        (self.media_word(word), mask)
    }

    /// The address of a word of the media bitmap.
    pub(super) fn media_word(&self, word: usize) -> usize {
        self.address + SLAB_BITMAP_OFFSET as usize + word * 8
    }

    pub(super) fn has_room(&self) -> bool {
        self.free.load(Ordering::SeqCst) > 0
    }

    /// Whether the element that was just reserved has lines of its own, and no record is about them: nobody has had it
    /// while its pool was open. What lay there when the slab was something else, its puddle knows.
    #[inline(always)]
    pub(super) fn has_fresh_lines(&self) -> bool {
        (self.class.element_size as usize).is_multiple_of(LINE)
            && (!self.is_worn.load(Ordering::Relaxed) || recorder::leaves_out(WORN))
    }

    /// No element is allocated, reserved or waiting for its free to become durable.
    pub(super) fn is_empty(&self) -> bool {
        self.free.load(Ordering::Relaxed) == self.geometry.capacity as u32
    }

    /// Takes a free element, and tells whether the slab was empty before. Owner only. `is_alone`: no other thread
    /// changes the slab meanwhile ([`Ground::try_alone`](super::Ground::try_alone)).
    #[inline(always)]
    pub(super) fn reserve(&self, is_alone: bool) -> Option<(usize, bool)> {
        for (word, Word { busy, .. }) in self.words.iter().enumerate() {
            let seen = busy.load(Ordering::Relaxed);
            if seen == !0 {
                continue;
            }
            let position = (!seen).trailing_zeros();
            // Acquire: the free that cleared this bit happened before; its stores to the element are over.
            let before = set(busy, 1 << position, is_alone, Ordering::Acquire);
            if before & (1 << position) != 0 {
                // The slab was filled while being retired (`retire`); nothing is left for the owner.
                return None;
            }
            let free = self.count(-1, is_alone);
            return Some((
                word * 64 + position as usize,
                free == self.geometry.capacity as u32,
            ));
        }
        None
    }

    /// Marks a live element as being freed; false if it is not live.
    #[inline(always)]
    pub(super) fn begin_free(&self, index: usize, is_alone: bool) -> bool {
        let (word, mask) = bit(index);
        self.words[word].busy.load(Ordering::Relaxed) & mask != 0
            && set(&self.words[word].freeing, mask, is_alone, Ordering::Relaxed) & mask == 0
    }

    /// Fetches what a free of the element at this address looks at.
    #[inline]
    pub(crate) fn prefetch_free(&self, address: usize, home_offset: usize) {
        let Some(index) = self.index_of(address) else {
            return;
        };
        let (word, _) = bit(index);
        prefetch_to_write((&raw const self.words[word]).addr());
        let (word, _) = self.media_bit(index);
        prefetch_to_write(word);
        // Where the cleared bit goes soon after the commit.
        prefetch_to_write(word + home_offset);
    }

    /// Marks elements that are live, or are being freed already, as being freed.
    pub(super) fn begin_free_all(&self, word: usize, mask: u64) {
        self.words[word].freeing.fetch_or(mask, Ordering::Relaxed);
    }

    /// The transaction that wanted to free them is rolled back.
    pub(super) fn cancel_free(&self, word: usize, mask: u64) {
        self.words[word].freeing.fetch_and(!mask, Ordering::Relaxed);
    }

    /// Elements may be reserved again: their free is durable, or their allocation never will be. Tells whether the slab
    /// is empty now.
    #[inline(always)]
    pub(super) fn release(&self, word: usize, mask: u64, is_alone: bool) -> bool {
        let Word { busy, freeing } = &self.words[word];
        if freeing.load(Ordering::Relaxed) & mask != 0 {
            clear(freeing, mask, is_alone, Ordering::Relaxed);
        }
        if !self.is_worn.load(Ordering::Relaxed) {
            self.is_worn.store(true, Ordering::Relaxed);
        }
        // Release: pairs with the Acquire in `reserve`.
        clear(busy, mask, is_alone, Ordering::Release);
        // One element, mostly: to count bits takes a while where there is no instruction for it.
        debug_assert!(mask != 0);
        let more = match mask & mask.wrapping_sub(1) {
            0 => 1,
            _ => mask.count_ones(),
        };
        // Wrapping: whoever took an element just now may have counted before us.
        self.count(more as i32, is_alone).wrapping_add(more) == self.geometry.capacity as u32
    }

    /// Adds to the number of free elements; what it was before.
    #[inline]
    fn count(&self, more: i32, is_alone: bool) -> u32 {
        if !is_alone {
            return self.free.fetch_add(more as u32, Ordering::SeqCst);
        }
        let before = self.free.load(Ordering::Relaxed);
        self.free
            .store(before.wrapping_add(more as u32), Ordering::Relaxed);
        before
    }

    /// Those of these elements that are allocated or reserved, and not being freed.
    pub(super) fn live(&self, word: usize, mask: u64) -> u64 {
        let Word { busy, freeing } = &self.words[word];
        busy.load(Ordering::Relaxed) & !freeing.load(Ordering::Relaxed) & mask
    }

    /// Gives up ownership; true if the caller has to list the slab, because it has room and nobody else did.
    pub(super) fn disown(&self) -> bool {
        // SeqCst on `owned` and `free`: of an owner that leaves and a thread that frees at the same moment, one sees
        // the other.
        self.owned.store(false, Ordering::SeqCst);
        self.wants_listing()
    }

    /// True for the one caller that has to put the slab into the pool's list, because there is enough room in it.
    ///
    /// If somebody takes it from the list just between the looks at `owned` and at `listed`, it is listed once more,
    /// and the next one to take it owns it, too. Then one of them may find nothing to reserve, and looks for another
    /// slab.
    #[inline(always)]
    pub(super) fn wants_listing(&self) -> bool {
        let capacity = self.geometry.capacity as u32;
        self.wants_listing_with((capacity / OFFERED_PART).max(1))
    }

    /// The same, if there is any room. For slabs that every commit knows: what a running transaction makes is its own.
    pub(super) fn wants_listing_with_any_room(&self) -> bool {
        self.published.load(Ordering::Relaxed) && self.wants_listing_with(1)
    }

    #[inline(always)]
    fn wants_listing_with(&self, room: u32) -> bool {
        // Behind what the caller has stored to `owned` or `free`.
        order();
        self.free.load(Ordering::SeqCst) >= room
            && !self.owned.load(Ordering::SeqCst)
            && !self.listed.load(Ordering::SeqCst)
            && !self.listed.swap(true, Ordering::SeqCst)
    }

    /// Takes the whole slab out of use if it is empty: after this no reservation succeeds, also by its owner.
    pub(super) fn retire(&self) -> bool {
        for (word, Word { busy, .. }) in self.words.iter().enumerate() {
            let empty = beyond(self.geometry.capacity as usize, word);
            if busy
                .compare_exchange(empty, !0, Ordering::AcqRel, Ordering::Relaxed)
                .is_err()
            {
                self.empty_words(word);
                return false;
            }
        }
        // A thread that is just releasing the last element has cleared its bit, and counts it next: it is to see the
        // slab empty.
        let capacity = self.geometry.capacity as u32;
        let all_counted =
            self.free
                .compare_exchange(capacity, 0, Ordering::SeqCst, Ordering::Relaxed);
        if all_counted.is_err() {
            self.empty_words(self.words.len());
        }
        all_counted.is_ok()
    }

    /// The same for one without an owner.
    pub(super) fn retire_unowned(&self) -> bool {
        !self.owned.load(Ordering::SeqCst) && self.retire()
    }

    /// Undoes `retire`.
    pub(super) fn revive(&self) {
        // Before the words are: from then on others reserve, and count what they take from this.
        self.free
            .store(self.geometry.capacity as u32, Ordering::SeqCst);
        self.empty_words(self.words.len());
    }

    fn empty_words(&self, count: usize) {
        for (word, Word { busy, .. }) in self.words[..count].iter().enumerate() {
            busy.store(
                beyond(self.geometry.capacity as usize, word),
                Ordering::Release,
            );
        }
    }
}

/// Sets bits of a word; the word before.
#[inline]
fn set(word: &AtomicU64, mask: u64, is_alone: bool, order: Ordering) -> u64 {
    if !is_alone {
        return word.fetch_or(mask, order);
    }
    let before = word.load(Ordering::Relaxed);
    word.store(before | mask, Ordering::Relaxed);
    before
}

/// Clears bits of a word.
#[inline]
fn clear(word: &AtomicU64, mask: u64, is_alone: bool, order: Ordering) {
    if !is_alone {
        word.fetch_and(!mask, order);
        return;
    }
    word.store(word.load(Ordering::Relaxed) & !mask, Ordering::Relaxed);
}
