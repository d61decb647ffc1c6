//! What one transaction took and gave back, and the bits on the media that will record it.
//!
//! Objects are noted by the words of bitmaps ([`Places`]): where a transaction takes neighbours, as it mostly does, an
//! entry is about dozens of them.

mod ending;

pub(super) use ending::{give_back, shrink};

use std::ops::Deref;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use durum_format::extent::slab::{SLAB_BITMAP_OFFSET, SLAB_BITMAP_WORDS_MAX};
use durum_format::{GRANULE, SLAB_OBJECT_MAX};
use durum_persist::Site;

use super::bits::{BitChange, Bitmap};
use super::ground::Ground;
use super::headers::{announce_object, object_extent};
use super::places::{Places, note};
use super::pool::{Allocate, Element, ThreadCache};
use super::pool_heap::PoolHeap;
use super::puddle::{Puddle, puddle_at};
use super::slab::{Class, Slab};
use crate::announced::{Announced, FRESH_LARGE};
use crate::before_images::before_store;
use crate::error::{Error, Result};
use crate::steps;

/// A step that a test leaves out.
const KEEP: Site = Site("snapshot: keep the place of a small object that is made in place");

const GRANULE_SIZE: usize = GRANULE as usize;
const LINE: usize = durum_persist::line::LINE;
/// No element of a slab is large enough to go home by itself, and neighbours do together only where no committed record
/// can be about their slab ([`Slab::has_records`]): when an element was freed is not noted, only when its slab was.
const _: () = assert!((SLAB_OBJECT_MAX as usize) < FRESH_LARGE);
/// What one commit gives back of slabs that others have left empty, in words of bitmaps: 64 thousand slabs, mostly, and
/// a quarter of a megabyte to be logged.
const RETIRED_WORDS_MAX: usize = 1 << 14;
/// The part of a slab header that is written once: extent header and geometry.
const SLAB_HEADER_FIXED: usize = SLAB_BITMAP_OFFSET as usize;

/// A slab that nobody but this thread knows yet.
#[derive(Debug)]
struct NewSlab {
    slab: NonNull<Slab>,
    puddle: NonNull<Puddle>,
    /// Some element of it is allocated when the transaction commits.
    is_published: bool,
}

/// Reservations and frees of a running transaction.
///
/// Each step takes as long as what it is about, however much there is already: nothing here looks through what was
/// reserved but the end of the transaction, which does it once.
#[derive(Debug, Default)]
pub(crate) struct Allocation {
    reserved: Vec<Places>,
    freed: Vec<Places>,
    /// These entries of both are of before the part that can be taken back alone, and stay as they are.
    before_part: AllocationMark,
    /// Slabs that nobody but this thread knows yet and that this transaction will publish. Each knows its place here
    /// ([`Slab::entry`]).
    new_slabs: Vec<NewSlab>,
    /// Puddles in which a root was reserved.
    roots: Vec<NonNull<Puddle>>,
    /// Some object was allocated and freed in this transaction.
    cancelled: bool,
    /// Those objects; while a part of the transaction can be taken back alone.
    cancelled_since: Vec<Places>,
    /// Empty slabs whose extents this commit gives back.
    retired: Vec<(NonNull<Puddle>, Arc<Slab>)>,
}

/// What an object of `size` bytes takes of a slab, if it is no row of several: nothing but its size says how many there
/// are. Where an eighth or less is lost by that it takes whole lines, and so lies in as few as it can: whoever reads it
/// waits for fewer of them, and fewer are logged and written home.
pub(crate) fn lone_room(size: usize) -> usize {
    let lines = size.next_multiple_of(LINE);
    match lines - size <= lines / 8 {
        true => lines,
        false => size,
    }
}

/// Where the reservations and frees of a part of a transaction begin ([`Allocation::roll_back_to`]).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct AllocationMark {
    reserved: usize,
    freed: usize,
}

impl NewSlab {
    /// Nothing in it is allocated yet.
    fn bitmap(&self) -> Bitmap {
        // SAFETY: the slab is owned by this thread and unpublished, so it stays.
        let slab = unsafe { self.slab.as_ref() };
        Bitmap {
            puddle: self.puddle,
            address: slab.address + SLAB_BITMAP_OFFSET as usize,
            words: [0; SLAB_BITMAP_WORDS_MAX],
            len: slab.geometry.bitmap_words as usize,
        }
    }

    /// Its extent.
    fn extent(&self) -> Places {
        // SAFETY: the slab is owned by this thread and unpublished, so it stays.
        slab_extent(self.puddle, unsafe { self.slab.as_ref() })
    }
}

/// The extent of a slab.
pub(super) fn slab_extent(puddle: NonNull<Puddle>, slab: &Slab) -> Places {
    // SAFETY: puddles live while their store is open, and a transaction keeps its store open.
    let start = unsafe { puddle.as_ref() }.address;
    Places::extent(puddle, (slab.address - start) / GRANULE_SIZE)
}

impl Allocation {
    pub(crate) fn is_empty(&self) -> bool {
        self.reserved.is_empty() && self.freed.is_empty()
    }

    /// Reserves an object, in a slab in a place of `room` bytes; its bytes are whatever was there. The fresh range is
    /// announced.
    // The first three are parts of the transaction, which the caller has borrowed one by one.
    #[allow(clippy::too_many_arguments)]
    pub(crate) fn reserve(
        &mut self,
        pool: &impl Allocate,
        cache: &mut ThreadCache,
        announced: &mut Announced,
        type_id: u64,
        size: usize,
        room: usize,
        align: usize,
    ) -> Result<usize> {
        // Refused before the size is rounded up.
        let (data_offset, granules) = object_extent(size, align)?;
        if let Some(class) = Class::of(type_id, room, align) {
            let element = pool.reserve_element(cache, class)?;
            // SAFETY: an element of it is reserved, so the slab stays.
            let slab = unsafe { element.slab.as_ref() };
            let address = slab.element_address(element.index);
            let is_new = !slab.published.load(Ordering::Relaxed);
            self.note_element(&element, address, class);
            if is_new && self.entry_of(slab).is_none() {
                self.enter_slab(element.slab, element.puddle, announced);
            }
            match pool.keeps_objects() {
                // A transaction that fills whole slabs: nobody else has had an element of them, and no record can come
                // home over it.
                true if is_new
                    && !slab.has_records.load(Ordering::Relaxed)
                    && announced.has_many_objects() =>
                {
                    announced.insert_neighbour(address, slab.class.element_size as usize);
                }
                _ if announced.has_many_lines() => {
                    announced.insert_beside(address, slab.class.element_size as usize);
                }
                true => announced.insert_object(address, size.max(1), slab.has_fresh_lines()),
                false => announced.insert(address, size.max(1)),
            }
            return Ok(address);
        }
        let (puddle, position) = pool.place(granules, |puddle, heap| {
            heap.reserve_object(puddle, granules, data_offset)
        })?;
        let place = Places::extent(puddle, position);
        note(&mut self.reserved, self.before_part.reserved, place);
        Ok(announce_object(
            place.puddle(),
            position,
            announced,
            type_id,
            size,
            data_offset,
        ))
    }

    /// The short way of [`Allocation::reserve`] for a small object. `None`: it is not possible, and nothing was done.
    #[inline(always)]
    pub(crate) fn reserve_at_hand(
        &mut self,
        pool: &impl Allocate,
        cache: &mut ThreadCache,
        announced: &mut Announced,
        class: Class,
        size: usize,
    ) -> Option<usize> {
        if announced.has_many_lines() {
            return None;
        }
        let element = pool.element_at_hand(cache, class)?;
        // SAFETY: an element of it is reserved, so the slab stays.
        let slab = unsafe { element.slab.as_ref() };
        let address = slab.element_address(element.index);
        self.note_element(&element, address, class);
        match pool.keeps_objects() {
            true => announced.insert_object(address, size.max(1), slab.has_fresh_lines()),
            false => announced.insert(address, size.max(1)),
        }
        Some(address)
    }

    /// The element at this address is reserved.
    #[inline(always)]
    fn note_element(&mut self, element: &Element, address: usize, class: Class) {
        let place = Places::element(element.puddle, element.slab, element.index);
        before_store(place.puddle(), address, class.element_size as usize, KEEP);
        note(&mut self.reserved, self.before_part.reserved, place);
    }

    /// Where a slab is in `new_slabs`, if it is there.
    #[inline]
    fn entry_of(&self, slab: &Slab) -> Option<usize> {
        let at = slab.entry.load(Ordering::Relaxed);
        // What it knows may be of an earlier transaction.
        let known = self.new_slabs.get(at)?;
        (known.slab == NonNull::from(slab)).then_some(at)
    }

    /// A slab of which this transaction has taken an element will be published by it.
    fn enter_slab(
        &mut self,
        slab: NonNull<Slab>,
        puddle: NonNull<Puddle>,
        announced: &mut Announced,
    ) {
        // SAFETY: an element of it is reserved, so the slab stays.
        let known = unsafe { slab.as_ref() };
        known.entry.store(self.new_slabs.len(), Ordering::Relaxed);
        self.new_slabs.push(NewSlab {
            slab,
            puddle,
            is_published: false,
        });
        announced.insert(known.address, SLAB_HEADER_FIXED);
    }

    /// Reserves the root object, at its fixed place.
    pub(crate) fn reserve_root(
        &mut self,
        pool: &impl Allocate,
        root_puddle: &Puddle,
        announced: &mut Announced,
        type_id: u64,
        size: usize,
        align: usize,
    ) -> Result<usize> {
        let (data_offset, granules) = object_extent(size, align)?;
        let room = durum_format::puddle::heap_size(root_puddle.size as u64) as usize - data_offset;
        let refused = Error::ObjectSize {
            size,
            align,
            size_max: room,
            align_max: 4096,
        };
        if align > 4096 {
            return Err(refused);
        }
        let heap = pool.heap_of(root_puddle)?;
        let position = heap
            .reserve_root(root_puddle, granules, data_offset)
            .ok_or_else(|| match heap.root_is_pending() {
                true => Error::RootPending {
                    pool: pool.name().to_owned(),
                },
                false => refused,
            })?;
        let puddle = NonNull::from(root_puddle);
        let place = Places::extent(puddle, position);
        note(&mut self.reserved, self.before_part.reserved, place);
        self.roots.push(puddle);
        Ok(announce_object(
            root_puddle,
            position,
            announced,
            type_id,
            size,
            data_offset,
        ))
    }

    /// Whether this transaction reserved the root object of this puddle.
    pub(crate) fn has_root_in(&self, puddle: &Puddle) -> bool {
        self.roots.contains(&NonNull::from(puddle))
    }

    /// Marks the object at `address` to be freed when the transaction commits.
    pub(crate) fn free(
        &mut self,
        pool: &impl Allocate,
        puddle: NonNull<Puddle>,
        address: usize,
    ) -> Result<()> {
        let (place, is_published) = begin_free(pool, puddle, address)?;
        self.note_freed(place, is_published);
        Ok(())
    }

    #[inline(always)]
    fn note_freed(&mut self, place: Places, is_published: bool) {
        match is_published && place.is_set_on_media() {
            true => note(&mut self.freed, self.before_part.freed, place),
            false => self.note_cancelled(place),
        }
    }

    /// Allocated by this transaction: its bit is never set. The place stays reserved to the end, because the commit may
    /// still visit the bytes.
    #[inline(never)]
    fn note_cancelled(&mut self, place: Places) {
        self.cancelled = true;
        note(&mut self.cancelled_since, 0, place);
    }

    /// The short way of [`Allocation::free`] for an element of a slab. False: it is not possible, and nothing was done.
    #[inline(always)]
    pub(crate) fn free_at_hand(
        &mut self,
        pool: &impl Allocate,
        puddle: NonNull<Puddle>,
        address: usize,
    ) -> bool {
        // SAFETY: puddles live while their store is open, and the caller keeps it open.
        let owner = unsafe { puddle.as_ref() };
        let Some(slab) = (owner.heap.get()).and_then(|heap| heap.slab_at(owner, address)) else {
            return false;
        };
        let begun = begin_free_element(pool, puddle, slab, address);
        if let Some((place, is_published)) = begun {
            self.note_freed(place, is_published);
            return true;
        }
        false
    }

    /// From here on reservations and frees can be taken back alone.
    pub(crate) fn mark(&mut self) -> AllocationMark {
        self.cancelled_since.clear();
        self.before_part = AllocationMark {
            reserved: self.reserved.len(),
            freed: self.freed.len(),
        };
        self.before_part
    }

    /// Takes back what was reserved and freed since `mark`, the latest one. Places that were reserved stay so until the
    /// transaction has ended, because its commit may still visit their bytes. Whether a root was among them.
    pub(crate) fn roll_back_to(&mut self, mark: AllocationMark) -> bool {
        let freed = self.freed.drain(mark.freed..);
        freed.for_each(|places| places.cancel_free());
        let cancelled = self.cancelled_since.drain(..);
        cancelled.for_each(|places| places.cancel_free());
        let mut had_root = false;
        for places in &self.reserved[mark.reserved..] {
            self.cancelled = true;
            had_root |= places.have_new_root();
            places.begin_free();
        }
        had_root
    }

    /// The changes of the media's bitmaps that make this transaction's allocations and frees durable.
    #[inline(always)]
    pub(crate) fn changes(
        &mut self,
        pools: &[impl Deref<Target: Allocate>],
        bits: &mut Vec<BitChange>,
        bitmaps: &mut Vec<Bitmap>,
    ) {
        for pool in pools {
            if pool.heap().may_have_empty_slabs() {
                self.retire_empty_slabs(pool.heap(), bits);
            }
        }
        debug_assert!(bitmaps.is_empty());
        if self.cancelled || !self.new_slabs.is_empty() {
            self.change_reserved(bits, bitmaps);
        } else {
            steps::add(self.reserved.len());
            for places in &self.reserved {
                push(bits, places.change(true));
            }
        }
        steps::add(self.freed.len());
        for places in &self.freed {
            push(bits, places.change(false));
        }
    }

    /// The changes for what was reserved, of which some may have been freed, or may lie in slabs that are new.
    #[inline(never)]
    fn change_reserved(&mut self, bits: &mut Vec<BitChange>, bitmaps: &mut Vec<Bitmap>) {
        bitmaps.extend(self.new_slabs.iter().map(NewSlab::bitmap));
        steps::add(bitmaps.len() + self.reserved.len());
        for places in &self.reserved {
            let kept = match self.cancelled {
                true => places.that_are(true),
                false => *places,
            };
            let new = kept.slab().and_then(|slab| self.entry_of(slab));
            match new {
                Some(at) => bitmaps[at].words[kept.word] |= kept.mask,
                None if kept.mask != 0 => push(bits, kept.change(true)),
                None => {}
            }
        }
        for (new, bitmap) in self.new_slabs.iter_mut().zip(&*bitmaps) {
            new.is_published = bitmap.words.iter().any(|word| *word != 0);
            if new.is_published {
                push(bits, new.extent().change(true));
            }
        }
        bitmaps.retain(|bitmap| bitmap.words.iter().any(|word| *word != 0));
    }

    /// The extents of empty slabs go back with the next commit that writes bits anyway: all, as far as they change few
    /// enough words not to make that one a large commit.
    #[inline(never)]
    fn retire_empty_slabs(&mut self, heap: &PoolHeap, bits: &mut Vec<BitChange>) {
        let mut empty = heap.take_empty_slabs();
        while bits.len() < RETIRED_WORDS_MAX
            && let Some(slab) = empty.pop()
        {
            // It may have been used again, or retired with its puddle.
            if let Some(puddle) = puddle_at(slab.address)
                && slab.retire_unowned()
            {
                push(bits, slab_extent(puddle, &slab).change(false));
                self.retired.push((puddle, slab));
            }
        }
        heap.put_empty_slabs(empty);
    }
}

/// Marks the object at `address` as being freed: its place, and whether others can know that.
///
/// # Errors
/// `NotAllocated`: it is none, or somebody frees it already; `RootFreed`.
pub(super) fn begin_free(
    pool: &impl Allocate,
    puddle: NonNull<Puddle>,
    address: usize,
) -> Result<(Places, bool)> {
    // SAFETY: puddles live while their store is open, and the caller keeps it open.
    let owner = unsafe { puddle.as_ref() };
    let heap = pool.heap_of(owner)?;
    let refused = || Error::NotAllocated { address };
    match heap.slab_at(owner, address) {
        Some(slab) => begin_free_element(pool, puddle, slab, address).ok_or_else(refused),
        None if owner.is_root && heap.is_root_object(owner, address) => Err(Error::RootFreed {
            pool: pool.name().to_owned(),
        }),
        None => {
            let position = heap.begin_free_object(owner, address).ok_or_else(refused)?;
            Ok((Places::extent(puddle, position), true))
        }
    }
}

/// The same for an element of a slab; `None`: none begins there, or somebody frees it already.
#[inline(always)]
fn begin_free_element(
    pool: &impl Allocate,
    puddle: NonNull<Puddle>,
    slab: &Slab,
    address: usize,
) -> Option<(Places, bool)> {
    let index = slab.index_of(address)?;
    let alone = pool.try_alone();
    let place = Places::element(puddle, NonNull::from(slab), index);
    (slab.begin_free(index, alone.is_some()))
        .then(|| (place, slab.published.load(Ordering::Relaxed)))
}

#[inline]
fn push(bits: &mut Vec<BitChange>, change: BitChange) {
    // Neighbours are mostly allocated together: one entry for a word.
    if let Some(last) = bits.last_mut()
        && last.word == change.word
        && last.set == change.set
    {
        last.mask |= change.mask;
        return;
    }
    bits.push(change);
}
