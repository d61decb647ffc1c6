//! Objects that are taken and freed by records that their user keeps, in no transaction (docs/format/section.md).
//!
//! ```text
//! take       a place is reserved, headers of new extents are written    these are made durable
//! bits       what a record says                                         that is durable
//! set        the bits are 1, which is durable before a record does not say so any more
//!
//! free       nobody else can free it, nor take its place
//! bits       what a record says                                         that is durable
//! clear      the bits are 0, which is durable before a record does not say so any more
//! give back  the place may be taken, as no record says of it what a crash could make true
//!
//! take again a place of which records say that it was freed, by who keeps these: its bits are 1 and stay so, and the
//!            next record does not say it any more
//! ```

use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use durum_format::extent::slab::SLAB_BITMAP_OFFSET;
use durum_format::puddle::{BITMAP_OFFSET, bitmap_words};
use durum_format::section::{Bits, BitsChange};
use durum_persist::{Site, line};

use super::ground::Ground;
use super::growth::Grow;
use super::headers::{object_extent, write_object_header};
use super::places::{Places, note};
use super::pool::{Allocate, ThreadCache};
use super::puddle::{Puddle, puddle_at};
use super::reserve::{begin_free, give_back, shrink, slab_extent};
use super::slab::{Class, Slab};
use crate::before_images::before_store;
use crate::error::Result;

/// A step that a test leaves out.
const KEEP: Site = Site("snapshot: keep what a record is about to change");

/// What a thread takes of a pool, and the slabs that it takes from.
#[derive(Debug)]
pub struct Taking {
    cache: ThreadCache,
    /// What no durable record tells of.
    taken: Vec<Places>,
    /// The same, whose bytes are to be zeros.
    blank: Vec<Places>,
    /// Slabs of which nobody else knows yet.
    new_slabs: Vec<Arc<Slab>>,
    /// Something was taken again of which the last durable record says that it was freed.
    has_again: bool,
    /// Of that what is to be of zeros.
    blank_again: Vec<Places>,
}

impl Taking {
    pub(crate) fn new(pool_key: u64) -> Self {
        Self {
            cache: ThreadCache::new(pool_key),
            taken: Vec::new(),
            blank: Vec::new(),
            new_slabs: Vec::new(),
            has_again: false,
            blank_again: Vec::new(),
        }
    }

    /// Reserves an object: its address. What has to be durable before a record tells of it is given to `fresh`, as
    /// addresses and sizes. `is_blank`: it is to be zeros when the section goes on that takes it.
    pub(crate) fn take(
        &mut self,
        pool: &impl Allocate,
        type_id: u64,
        (size, align): (usize, usize),
        is_blank: bool,
        mut fresh: impl FnMut(usize, usize),
    ) -> Result<usize> {
        let (data_offset, granules) = object_extent(size, align)?;
        if let Some(class) = Class::of(type_id, size, align) {
            return self.take_element(pool, class, is_blank, fresh);
        }
        let (puddle, position) = pool.place(granules, |puddle, heap| {
            heap.reserve_object(puddle, granules, data_offset)
        })?;
        let place = Places::extent(puddle, position);
        self.note(place, is_blank);
        let start = write_object_header(place.puddle(), position, type_id, size, data_offset);
        fresh(start, 16);
        Ok(start + data_offset)
    }

    fn take_element(
        &mut self,
        pool: &impl Allocate,
        class: Class,
        is_blank: bool,
        mut fresh: impl FnMut(usize, usize),
    ) -> Result<usize> {
        let element = pool.reserve_element(&mut self.cache, class)?;
        // SAFETY: an element of it is reserved, so the slab stays.
        let slab = unsafe { element.slab.as_ref() };
        let (address, puddle) = (slab.element_address(element.index), element.puddle);
        let place = Places::element(puddle, element.slab, element.index);
        let is_known = slab.published.load(Ordering::Relaxed)
            || self
                .new_slabs
                .iter()
                .any(|known| std::ptr::eq(&**known, slab));
        if !is_known && let Some(shared) = slab.shared() {
            let bitmap = slab.media_word(0);
            let len = slab.geometry.bitmap_words as usize * 8;
            before_store(place.puddle(), bitmap, len, KEEP);
            // SAFETY: the bitmap of a slab that only this thread knows.
            unsafe { line::zero(std::ptr::with_exposed_provenance_mut(bitmap), len) };
            fresh(slab.address, SLAB_BITMAP_OFFSET as usize + len);
            note(&mut self.taken, 0, slab_extent(puddle, slab));
            self.new_slabs.push(shared);
        }
        before_store(place.puddle(), address, class.element_size as usize, KEEP);
        self.note(place, is_blank);
        Ok(address)
    }

    /// Takes again what the thread has freed, if it is a small object of this class: its address.
    pub(crate) fn take_again(
        &mut self,
        freed: &Freed,
        class: Class,
        is_blank: bool,
    ) -> Option<usize> {
        let places = freed.places;
        let slab = places.slab().filter(|slab| slab.class == class)?;
        if !freed.is_small() {
            return None;
        }
        let address =
            slab.element_address(64 * places.word + places.mask.trailing_zeros() as usize);
        places.cancel_free();
        before_store(
            places.puddle(),
            address,
            slab.class.element_size as usize,
            KEEP,
        );
        self.has_again = true;
        if is_blank {
            note(&mut self.blank_again, 0, places);
        }
        Some(address)
    }

    fn note(&mut self, place: Places, is_blank: bool) {
        match is_blank {
            true => note(&mut self.blank, 0, place),
            false => note(&mut self.taken, 0, place),
        }
    }

    /// The bits of what was taken, one for each word: what a record tells. Of what was taken again it tells only that
    /// which is to be of zeros.
    pub fn bits(&self) -> impl Iterator<Item = Bits> {
        let taken = self.taken.iter();
        let blank = self.blank.iter().chain(&self.blank_again);
        taken
            .map(|places| bits(places, BitsChange::Taken))
            .chain(blank.map(|places| bits(places, BitsChange::TakenBlank)))
    }

    /// How many words these are in.
    pub fn words(&self) -> usize {
        self.taken.len() + self.blank.len() + self.blank_again.len()
    }

    /// Whether something was taken that no durable record tells of.
    #[inline]
    pub fn is_any(&self) -> bool {
        self.words() > 0 || self.has_again
    }

    /// Whether something was taken again, and the last durable record says that it was freed.
    #[inline]
    pub fn has_again(&self) -> bool {
        self.has_again
    }

    /// A record is durable, or will be next, that does not say it any more.
    #[inline]
    pub fn note_told(&mut self) {
        self.has_again = false;
        self.blank_again.clear();
    }

    /// Sets the bits, in memory; each word is given to `wrote`, by its address. From now on nobody tells of them.
    pub fn set(&mut self, mut wrote: impl FnMut(usize)) {
        for places in self.taken.drain(..).chain(self.blank.drain(..)) {
            wrote(change(&places, BitsChange::Taken));
        }
        for slab in self.new_slabs.drain(..) {
            slab.published.store(true, Ordering::Relaxed);
            slab.has_records.store(true, Ordering::Relaxed);
        }
    }

    /// The thread takes nothing any more.
    pub(crate) fn end(mut self, pool: &impl Allocate) {
        self.cache.give_back(pool);
    }
}

/// What was freed and nobody can take yet: objects side by side, or the extent of a slab that has become empty.
#[derive(Clone, Debug)]
pub struct Freed {
    places: Places,
    /// The slab whose extent this is.
    slab: Option<Arc<Slab>>,
}

// SAFETY: it is looked at with the pool at hand whose places these are, and they are one thread's at a time.
unsafe impl Send for Freed {}

impl Freed {
    /// Frees the object at an address in this puddle of the pool. Nobody gets its place.
    ///
    /// # Errors
    /// `NotAllocated`, `RootFreed`; those of reading the puddle for the first time.
    pub(crate) fn object(
        pool: &impl Allocate,
        puddle: NonNull<Puddle>,
        address: usize,
    ) -> Result<Self> {
        let (places, _) = begin_free(pool, puddle, address)?;
        Ok(Self { places, slab: None })
    }

    /// Whether it is an object of a slab.
    pub fn is_small(&self) -> bool {
        // An object that was freed by itself has one bit; what recovery found may have more.
        self.slab.is_none() && self.places.slab().is_some() && self.places.mask.is_power_of_two()
    }

    /// What bits stand for of which a record tells that they are freed. Nothing where they are 0 already.
    ///
    /// # Errors
    /// Those of reading the puddle for the first time.
    pub(crate) fn recorded(
        pool: &impl Grow,
        puddle: NonNull<Puddle>,
        bits: Bits,
    ) -> Result<Option<Self>> {
        let live = live_places(pool, puddle, bits)?;
        Ok(live.map(|places| {
            places.begin_free();
            Self { places, slab: None }
        }))
    }

    /// The extents of slabs that are empty, as far as the pool has noted them: nobody takes an element of these any
    /// more.
    pub(crate) fn empty_slabs(pool: &impl Ground) -> Vec<Self> {
        let empty = pool.heap().take_empty_slabs().into_iter();
        let retired = empty.filter_map(|slab| {
            // It may have been used again, or retired with its puddle.
            let puddle = puddle_at(slab.address)?;
            slab.retire_unowned().then(|| Self {
                places: slab_extent(puddle, &slab),
                slab: Some(slab),
            })
        });
        retired.collect()
    }

    /// What a record tells of it.
    pub fn bits(&self) -> Bits {
        bits(&self.places, BitsChange::Freed)
    }

    /// Clears the bits, in memory: the address of their word.
    pub fn clear(&self) -> usize {
        change(&self.places, BitsChange::Freed)
    }

    /// Lets others have the places: that the bits are 0 is durable, and no record tells of them.
    pub(crate) fn give_back(pool: &impl Allocate, freed: Vec<Self>) {
        let mut places = Vec::with_capacity(freed.len());
        let mut puddles = Vec::new();
        for Freed {
            places: place,
            slab,
        } in freed
        {
            match slab {
                None => places.push(place),
                Some(slab) => {
                    if let Some(heap) = place.puddle().heap.get() {
                        heap.release_slab(place.puddle(), &slab);
                    }
                    puddles.push(place.puddle);
                }
            }
        }
        give_back(&places, |_| Some(pool));
        shrink(puddles.into_iter(), |_| Some(pool));
    }
}

/// The places that bits stand for of which a record tells, without those that are free.
fn live_places(pool: &impl Grow, puddle: NonNull<Puddle>, bits: Bits) -> Result<Option<Places>> {
    // SAFETY: puddles live while their store is open, and the caller keeps it open.
    let owner = unsafe { puddle.as_ref() };
    let heap = pool.heap_of(owner)?;
    let (first, words) = (
        owner.address + BITMAP_OFFSET as usize,
        bitmap_words(owner.size as u64) as usize,
    );
    let address = bits.address as usize;
    let word = |first: usize, words: usize| {
        let word = address.checked_sub(first)? / 8;
        (word < words).then_some(word)
    };
    let found = match word(first, words) {
        Some(word) => Some(Places::extents(puddle, word, bits.mask)),
        None => heap.slab_at(owner, address).and_then(|slab| {
            let words = slab.geometry.bitmap_words as usize;
            let word = word(slab.media_word(0), words)?;
            Some(Places::elements(
                puddle,
                NonNull::from(slab),
                word,
                bits.mask,
            ))
        }),
    };
    let live = found.map(|places| places.that_are(true));
    Ok(live.filter(|places| places.mask != 0))
}

/// The objects that bits stand for of which a record tells, by their addresses and sizes.
///
/// # Errors
/// Those of reading the puddle for the first time.
pub(crate) fn objects_of(
    pool: &impl Grow,
    puddle: NonNull<Puddle>,
    bits: Bits,
) -> Result<Vec<(usize, usize)>> {
    let Some(places) = live_places(pool, puddle, bits)? else {
        return Ok(Vec::new());
    };
    // SAFETY: puddles live while their store is open, and the caller keeps it open.
    let owner = unsafe { puddle.as_ref() };
    let heap = pool.heap_of(owner)?;
    let found = places.addresses().into_iter().filter_map(|address| {
        let object = heap.object_at(owner, address)?;
        Some((object.address, object.len))
    });
    Ok(found.collect())
}

fn bits(places: &Places, change: BitsChange) -> Bits {
    Bits {
        address: places.media_word() as u64,
        mask: places.mask,
        change,
    }
}

/// Changes the bits: the address of their word.
fn change(places: &Places, change: BitsChange) -> usize {
    let word = places.media_word();
    before_store(places.puddle(), word, 8, KEEP);
    let target = word as *mut u64;
    // SAFETY: a bitmap word in a mapped puddle, which all threads change by atomic operations.
    unsafe {
        match change {
            BitsChange::Taken | BitsChange::TakenBlank => line::fetch_or_u64(target, places.mask),
            BitsChange::Freed => line::fetch_and_u64(target, !places.mask),
        };
    }
    word
}
