//! The volatile side of one puddle's heap: its buddy, its slabs, and what in it may be freed.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicIsize, AtomicPtr, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use durum_format::GRANULE;
use durum_format::extent::slab::SLAB_ALIGN;
use durum_format::extent::{self, ExtentKind, HeapBytes};
use durum_format::puddle::PuddleKind;
use durum_format::puddle::{self, PuddleHeader};
use rustc_hash::FxHashMap;

use super::buddy::Buddy;
use super::objects::{ObjectExtent, Objects};
use super::slab::{Class, Slab};
use crate::contention;
use crate::error::{Error, Result};
use crate::fault::guarded;
use crate::mapping::Mapping;
use crate::steps;

const GRANULE_SIZE: usize = GRANULE as usize;
/// Extents above this (1 MiB) may get a puddle of their own.
pub(super) const LARGE_GRANULES: usize = (1 << 20) / GRANULE_SIZE;

#[derive(Debug)]
struct Inner {
    buddy: Buddy,
    objects: Objects,
    /// By address of the extent.
    slabs: FxHashMap<usize, Arc<Slab>>,
    /// Being given back: nothing is placed here any more.
    closed: bool,
}

/// An object that an address lies in.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Found {
    pub(crate) address: usize,
    /// Bytes from there on that are the object's own.
    pub(crate) len: usize,
    pub(crate) type_id: u64,
}

/// Who may take what in a puddle. Positions count granules from the puddle's start.
#[derive(Debug)]
pub(crate) struct PuddleHeap {
    inner: Mutex<Inner>,
    /// The slab that covers each 4 KiB page, null where none does. The pointee is kept alive by `inner.slabs`, or by
    /// whoever still holds an element of it.
    pages: Box<[AtomicPtr<Slab>]>,
    free_granules: AtomicUsize,
    /// As many granules in one piece are not there, nor more: they were refused, and nothing was given back since.
    refused: AtomicUsize,
    /// Object extents, and slabs with at least one busy element. Zero: the puddle could be given back.
    occupied: AtomicIsize,
    /// Nothing but the root may be placed here yet.
    awaits_root: AtomicBool,
    /// The transaction that makes the root has not ended.
    root_pending: AtomicBool,
}

/// Reads the mapping of a puddle; a page that fails reads as zeros and poisons the pool.
struct Mapped<'a>(&'a Mapping);

impl HeapBytes for Mapped<'_> {
    type Error = extent::OutOfBounds;

    fn read(&self, offset: u64, buf: &mut [u8]) -> Result<(), extent::OutOfBounds> {
        if !self.0.contains(self.0.address + offset as usize, buf.len()) {
            return Err(extent::OutOfBounds {
                offset,
                needed: buf.len() as u64,
                len: self.0.size as u64,
            });
        }
        // SAFETY: the range was just checked to lie inside the mapped puddle.
        guarded(|| unsafe {
            std::ptr::copy_nonoverlapping(
                self.0.at(offset as usize).as_ptr(),
                buf.as_mut_ptr(),
                buf.len(),
            )
        });
        Ok(())
    }
}

fn header_of(puddle: &Mapping) -> PuddleHeader {
    PuddleHeader {
        kind: PuddleKind::Data,
        uuid: puddle.uuid,
        owner: puddle.uuid,
        address: puddle.address as u64,
        size: puddle.size as u64,
        is_root: puddle.is_root,
    }
}

impl PuddleHeap {
    /// The addresses of a puddle that transactions may have changed: its bitmap, and the heap up to the end of the last
    /// extent. Whole lines.
    ///
    /// # Errors
    /// `DamagedHeap` where the last extent cannot be read, `Poisoned`.
    pub(crate) fn used(puddle: &Mapping) -> Result<[Range<usize>; 2]> {
        let size = puddle.size as u64;
        let end = extent::used_end(&Mapped(puddle), &header_of(puddle));
        puddle.check_failed()?;
        let end = end.map_err(|error| Error::DamagedHeap {
            file: puddle.path.clone(),
            reason: error.to_string(),
        })?;
        let bitmap = puddle::BITMAP_OFFSET..puddle::BITMAP_OFFSET + puddle::bitmap_words(size) * 8;
        let heap = puddle::heap_offset(size)..end;
        let lines = |range: Range<u64>| {
            let end = range.end.next_multiple_of(durum_format::LINE);
            puddle.address + range.start as usize..puddle.address + end as usize
        };
        Ok([lines(bitmap), lines(heap)])
    }

    /// Rebuilds the volatile side from the media: one read for each extent.
    ///
    /// Slabs with room are handed to `with_room`.
    ///
    /// # Errors
    /// `DamagedHeap` where the extents contradict each other, `Poisoned` where they cannot be read.
    pub(super) fn load(puddle: &Mapping, mut with_room: impl FnMut(Arc<Slab>)) -> Result<Self> {
        let total = puddle.size / GRANULE_SIZE;
        let first = puddle::header_size(puddle.size as u64) as usize / GRANULE_SIZE;
        let mut inner = Inner {
            buddy: Buddy::new(total),
            objects: Objects::new(total),
            slabs: FxHashMap::default(),
            closed: false,
        };
        let pages: Box<[AtomicPtr<Slab>]> = (0..puddle.size / SLAB_ALIGN as usize)
            .map(|_| AtomicPtr::new(std::ptr::null_mut()))
            .collect();
        let mut free_from = first;
        let mut occupied = 0;
        let header = header_of(puddle);
        for extent in extent::extents(&Mapped(puddle), &header) {
            puddle.check_failed()?;
            let extent = extent.map_err(|error| Error::DamagedHeap {
                file: puddle.path.clone(),
                reason: error.to_string(),
            })?;
            let position = first + extent.granule() as usize;
            let granules = extent.granules() as usize;
            inner.buddy.release(free_from, position - free_from);
            free_from = position + granules;
            match extent.header().kind {
                ExtentKind::Object { data_offset, .. } => {
                    occupied += 1;
                    let object = ObjectExtent::new(granules, data_offset as usize);
                    inner.objects.insert(position, object);
                }
                ExtentKind::Slab { .. } => {
                    let Some(header) = extent.slab() else {
                        continue;
                    };
                    let class = Class {
                        type_id: extent.type_id(),
                        element_size: header.element_size(),
                    };
                    let address = puddle.address + extent.offset() as usize;
                    let (geometry, bitmap) = (header.geometry(), extent.slab_bitmap());
                    let slab = Slab::new(address, class, geometry, bitmap, true);
                    occupied += isize::from(!slab.is_empty());
                    enter(&pages, puddle, &slab, Arc::as_ptr(&slab).cast_mut());
                    if slab.has_room() {
                        with_room(slab.clone());
                    }
                    inner.slabs.insert(slab.address, slab);
                }
            }
        }
        puddle.check_failed()?;
        inner.buddy.release(free_from, total - free_from);
        let awaits_root = puddle.is_root && !inner.objects.contains(first);
        if puddle.is_root && !awaits_root {
            // The root never goes away, so its puddle never counts as empty.
            occupied += 1;
        }
        Ok(Self {
            free_granules: AtomicUsize::new(inner.buddy.free_granules()),
            refused: AtomicUsize::new(usize::MAX),
            inner: Mutex::new(inner),
            pages,
            occupied: AtomicIsize::new(occupied),
            awaits_root: AtomicBool::new(awaits_root),
            root_pending: AtomicBool::new(false),
        })
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        contention::lock(&self.inner)
    }

    /// Whether `granules` could fit, without the lock.
    pub(super) fn may_fit(&self, granules: usize) -> bool {
        self.free_granules.load(Ordering::Relaxed) >= granules
            && granules < self.refused.load(Ordering::Relaxed)
            && !self.awaits_root.load(Ordering::Relaxed)
    }

    /// After the buddy changed: what others see of it without the lock.
    fn recount(&self, inner: &Inner) {
        self.free_granules
            .store(inner.buddy.free_granules(), Ordering::Relaxed);
    }

    /// A run of granules is free.
    fn give_back(&self, puddle: &Mapping, inner: &mut Inner, run: Range<usize>) {
        let start = puddle.address + run.start * GRANULE_SIZE;
        puddle.note_freed(start..start + run.len() * GRANULE_SIZE);
        inner.buddy.release(run.start, run.len());
        self.refused.store(usize::MAX, Ordering::Relaxed);
        self.recount(inner);
    }

    pub(crate) fn is_unused(&self) -> bool {
        self.occupied.load(Ordering::Relaxed) == 0
    }

    fn take(
        &self,
        puddle: &Mapping,
        inner: &mut Inner,
        granules: usize,
        align_granules: usize,
    ) -> Option<usize> {
        if inner.closed || self.awaits_root.load(Ordering::Relaxed) {
            return None;
        }
        let position = match inner.buddy.take(granules, align_granules) {
            Some(position) => position,
            // A large run may fit although no aligned block does: it goes to the front of an empty puddle.
            None if granules > LARGE_GRANULES => {
                let first = puddle::header_size(puddle.size as u64) as usize / GRANULE_SIZE;
                let position = first.next_multiple_of(align_granules);
                inner
                    .buddy
                    .take_at(position, granules)
                    .then_some(position)?
            }
            None => {
                if align_granules == 1 {
                    self.refused.fetch_min(granules, Ordering::Relaxed);
                }
                return None;
            }
        };
        self.recount(inner);
        Some(position)
    }

    /// Reserves an extent for one object; the position of its first granule.
    pub(super) fn reserve_object(
        &self,
        puddle: &Mapping,
        granules: usize,
        data_offset: usize,
    ) -> Option<usize> {
        let mut inner = self.lock();
        let align = (data_offset / GRANULE_SIZE).max(1);
        let position = self.take(puddle, &mut inner, granules, align)?;
        let object = ObjectExtent::new(granules, data_offset);
        inner.objects.insert(position, object);
        self.occupied.fetch_add(1, Ordering::Relaxed);
        Some(position)
    }

    /// Reserves the root's extent, at the first granule of the heap.
    pub(super) fn reserve_root(
        &self,
        puddle: &Mapping,
        granules: usize,
        data_offset: usize,
    ) -> Option<usize> {
        let mut inner = self.lock();
        let first = puddle::header_size(puddle.size as u64) as usize / GRANULE_SIZE;
        if inner.closed || !inner.buddy.take_at(first, granules) {
            return None;
        }
        self.recount(&inner);
        let object = ObjectExtent::new(granules, data_offset);
        inner.objects.insert(first, object);
        // Once for the object, once for ever: see `load`.
        self.occupied.fetch_add(2, Ordering::Relaxed);
        self.awaits_root.store(false, Ordering::Relaxed);
        self.root_pending.store(true, Ordering::Release);
        Some(first)
    }

    /// Whether a transaction is making the root: its bit may be set already, and not be durable.
    pub(crate) fn root_is_pending(&self) -> bool {
        self.root_pending.load(Ordering::Acquire)
    }

    /// The root is durable.
    pub(super) fn publish_root(&self) {
        self.root_pending.store(false, Ordering::Release);
    }

    /// The reservation of the root is rolled back.
    pub(super) fn cancel_root(&self) {
        self.occupied.fetch_sub(1, Ordering::Relaxed);
        self.awaits_root.store(true, Ordering::Relaxed);
        self.root_pending.store(false, Ordering::Release);
    }

    /// Reserves an extent for a new slab, which nobody else can see until it is published, and its first element:
    /// without one, the puddle could count as unused and be given back under the new owner.
    pub(super) fn reserve_slab(
        &self,
        puddle: &Mapping,
        class: Class,
    ) -> Option<(Arc<Slab>, usize)> {
        let geometry = extent::slab_geometry(class.element_size);
        let granules = geometry.extent_size as usize / GRANULE_SIZE;
        let mut inner = self.lock();
        let align = SLAB_ALIGN as usize / GRANULE_SIZE;
        let position = self.take(puddle, &mut inner, granules, align)?;
        let address = puddle.address + position * GRANULE_SIZE;
        let slab = Slab::new(address, class, geometry, &[], false);
        enter(&self.pages, puddle, &slab, Arc::as_ptr(&slab).cast_mut());
        slab.owned.store(true, Ordering::SeqCst);
        let (index, _) = slab.reserve(false)?;
        self.occupied.fetch_add(1, Ordering::Relaxed);
        inner.slabs.insert(slab.address, slab.clone());
        Some((slab, index))
    }

    /// Gives the extents of objects back. Of those that ascend neighbours go together.
    pub(super) fn release_objects(&self, puddle: &Mapping, positions: impl Iterator<Item = usize>) {
        let mut inner = self.lock();
        let (mut run, mut count) = (0..0, 0);
        for position in positions {
            steps::add(1);
            let Some(object) = inner.objects.remove(position) else {
                continue;
            };
            count += 1;
            let end = position + object.granules as usize;
            if run.end == position {
                run.end = end;
                continue;
            }
            let before = std::mem::replace(&mut run, position..end);
            if !before.is_empty() {
                self.give_back(puddle, &mut inner, before);
            }
        }
        if !run.is_empty() {
            self.give_back(puddle, &mut inner, run);
        }
        self.occupied.fetch_sub(count, Ordering::Relaxed);
    }

    /// Gives the extent of a retired slab back.
    pub(super) fn release_slab(&self, puddle: &Mapping, slab: &Slab) {
        let mut inner = self.lock();
        if inner.slabs.remove(&slab.address).is_none() {
            return;
        }
        enter(&self.pages, puddle, slab, std::ptr::null_mut());
        let position = (slab.address - puddle.address) / GRANULE_SIZE;
        let granules = slab.geometry.extent_size as usize / GRANULE_SIZE;
        self.give_back(puddle, &mut inner, position..position + granules);
    }

    /// A slab got its first busy element, or lost its last one.
    pub(super) fn slab_occupied(&self, occupied: bool) {
        if occupied {
            self.occupied.fetch_add(1, Ordering::Relaxed);
        } else {
            self.occupied.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// The slab that covers an address.
    #[inline]
    pub(crate) fn slab_at(&self, puddle: &Mapping, address: usize) -> Option<&Slab> {
        let page = self
            .pages
            .get((address - puddle.address) / SLAB_ALIGN as usize)?;
        // SAFETY: slabs stay in `inner.slabs` while any element of them is busy; the caller asks for the address of an
        // object that is allocated, or passes an invalid address, for which a slab that goes away in this moment is the
        // caller's race to answer for.
        unsafe { page.load(Ordering::Acquire).as_ref() }
    }

    /// The object, allocated or reserved, whose bytes hold this address.
    pub(crate) fn object_at(&self, puddle: &Mapping, address: usize) -> Option<Found> {
        if let Some(slab) = self.slab_at(puddle, address) {
            let (address, len) = slab.element_holding(address)?;
            return Some(Found {
                address,
                len,
                type_id: slab.class.type_id,
            });
        }
        let (start, data_offset) = {
            let inner = self.lock();
            let granule = (address - puddle.address) / GRANULE_SIZE;
            let (position, extent) = inner.objects.last_up_to(granule)?;
            let start = puddle.address + position * GRANULE_SIZE;
            (start, extent.data_offset())
        };
        // SAFETY: the header of an extent that is there, in the mapped puddle.
        let words = guarded(|| unsafe {
            (puddle
                .at(start - puddle.address)
                .as_ptr()
                .cast::<[u64; 2]>())
            .read()
        });
        let header = extent::parse(words).ok()?;
        let ExtentKind::Object { size, .. } = header.kind else {
            return None;
        };
        let found = Found {
            address: start + data_offset,
            len: size as usize,
            type_id: header.type_id,
        };
        (address >= found.address && address - found.address < found.len).then_some(found)
    }

    /// Whether the line at `address` holds the header of a slab that no commit has made durable. The caller keeps slabs
    /// from going away.
    pub(crate) fn is_unpublished_header(&self, puddle: &Mapping, address: usize) -> bool {
        self.slab_at(puddle, address)
            .is_some_and(|slab| slab.address == address && !slab.published.load(Ordering::Relaxed))
    }

    /// Gives `each` the slabs of a class.
    pub(super) fn slabs_of(&self, class: Class, mut each: impl FnMut(&Arc<Slab>)) {
        let inner = self.lock();
        let slabs = inner.slabs.values();
        slabs.filter(|slab| slab.class == class).for_each(&mut each);
    }

    /// Marks a live object extent as being freed: its position and granules.
    pub(super) fn begin_free_object(&self, puddle: &Mapping, address: usize) -> Option<usize> {
        let mut inner = self.lock();
        let offset = address - puddle.address;
        // The header is in the granule of the object, or in an earlier one where the alignment is large.
        let granule = offset / GRANULE_SIZE;
        let (position, object) = (0..=12)
            .map(|order| match order {
                0 => granule,
                _ => granule.saturating_sub(1 << (order - 1)),
            })
            .find_map(|position| {
                let object = inner.objects.get(position)?;
                (position * GRANULE_SIZE + object.data_offset() == offset).then_some(position)
            })
            .and_then(|position| Some((position, inner.objects.get_mut(position)?)))?;
        std::mem::replace(&mut object.live, false).then_some(position)
    }

    /// Goes over the object extents that start at these positions.
    pub(super) fn fold_objects<R>(
        &self,
        positions: impl Iterator<Item = usize>,
        first: R,
        mut each: impl FnMut(R, usize, &mut ObjectExtent) -> R,
    ) -> R {
        let mut inner = self.lock();
        positions.fold(first, |before, position| {
            match inner.objects.get_mut(position) {
                Some(object) => each(before, position, object),
                None => before,
            }
        })
    }

    /// Whether the root object of the pool starts at this address. It lives as long as its pool.
    pub(super) fn is_root_object(&self, puddle: &Mapping, address: usize) -> bool {
        let first = puddle::header_size(puddle.size as u64) as usize / GRANULE_SIZE;
        self.lock().objects.get(first).is_some_and(|root| {
            puddle.address + first * GRANULE_SIZE + root.data_offset() == address
        })
    }

    /// Closes an unused puddle for good: nothing can be placed in it after this. False if it is in use.
    pub(super) fn close_if_unused(&self) -> bool {
        let mut inner = self.lock();
        if inner.closed || !inner.objects.is_empty() || !self.is_unused() {
            return false;
        }
        let mut retired: Vec<&Arc<Slab>> = Vec::new();
        for slab in inner.slabs.values() {
            if !slab.retire() {
                retired.iter().for_each(|slab| slab.revive());
                return false;
            }
            retired.push(slab);
        }
        inner.closed = true;
        // The struct may be looked up until the store closes; what is large in it is not needed any more.
        inner.buddy = Buddy::new(0);
        inner.objects = Objects::new(0);
        self.free_granules.store(0, Ordering::Relaxed);
        true
    }

    /// Free blocks by size: entry k counts the blocks of `256 << k` bytes.
    pub(crate) fn histogram(&self) -> Vec<usize> {
        self.lock().buddy.histogram()
    }

    /// Bytes that no extent covers.
    pub(crate) fn free_bytes(&self) -> usize {
        self.free_granules.load(Ordering::Relaxed) * GRANULE_SIZE
    }

    /// Those of [`PuddleHeap::free_bytes`] in which an object may be placed now.
    pub(super) fn allocatable_bytes(&self) -> usize {
        match self.awaits_root.load(Ordering::Relaxed) {
            true => 0,
            false => self.free_bytes(),
        }
    }
}

fn enter(pages: &[AtomicPtr<Slab>], puddle: &Mapping, slab: &Slab, entry: *mut Slab) {
    let first = (slab.address - puddle.address) / SLAB_ALIGN as usize;
    let count = slab.geometry.extent_size.div_ceil(SLAB_ALIGN) as usize;
    for page in &pages[first..first + count] {
        page.store(entry, Ordering::Release);
    }
}
