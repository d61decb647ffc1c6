//! Elements of slabs. A thread takes them from slabs that it owns, then from slabs with room that nobody owns, then
//! from new slabs.

use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use durum_format::{GRANULE, extent};

use super::growth::Grow;
use super::headers::write_slab_header;
use super::heap::PuddleHeap;
use super::puddle::{Puddle, puddle_at};
use super::slab::{Class, Slab};
use crate::error::Result;

/// The slabs that one thread owns in one pool.
#[derive(Debug)]
pub(crate) struct ThreadCache {
    pub(crate) pool_key: u64,
    /// The most used ones move to the front.
    slabs: Vec<Owned>,
}

/// A slab, and what is asked about it each time.
#[derive(Debug)]
pub(crate) struct Owned {
    class: Class,
    puddle: NonNull<Puddle>,
    slab: Arc<Slab>,
}

impl ThreadCache {
    pub(crate) fn new(pool_key: u64) -> Self {
        Self {
            pool_key,
            slabs: Vec::new(),
        }
    }

    /// Returns every owned slab to the pool: the thread ends.
    pub(crate) fn give_back(&mut self, pool: &impl Allocate) {
        for owned in self.slabs.drain(..) {
            pool.disown(owned.slab);
        }
    }
}

/// An element that was reserved.
pub(crate) struct Element {
    pub(super) puddle: NonNull<Puddle>,
    pub(super) slab: NonNull<Slab>,
    pub(super) index: usize,
}

impl Owned {
    fn new(puddle: NonNull<Puddle>, slab: Arc<Slab>) -> Self {
        Self {
            class: slab.class,
            puddle,
            slab,
        }
    }

    /// The slab got its first busy element.
    #[cold]
    fn note_occupied(&self) {
        // SAFETY: puddles live while their store is open, and the pool is.
        if let Some(heap) = unsafe { self.puddle.as_ref() }.heap.get() {
            heap.slab_occupied(true);
        }
    }

    fn element(&self, index: usize) -> Element {
        Element {
            puddle: self.puddle,
            slab: NonNull::from(&*self.slab),
            index,
        }
    }
}

/// Allocation in a pool, for whatever is one.
pub(crate) trait Allocate: Grow {
    fn disown(&self, slab: Arc<Slab>) {
        if !slab.published.load(Ordering::Relaxed) {
            // Nobody else can know this slab.
            if slab.retire() {
                if let Some(puddle) = puddle_at(slab.address) {
                    // SAFETY: puddles live while their store is open, and the pool is.
                    let puddle = unsafe { puddle.as_ref() };
                    if let Some(heap) = puddle.heap.get() {
                        heap.release_slab(puddle, &slab);
                    }
                }
            } else {
                // Filled by the running transaction. Whether that commits or not, whoever gives an element back offers
                // the slab.
                slab.owned.store(false, Ordering::SeqCst);
            }
        } else if slab.disown() {
            self.heap().list(slab);
        }
    }

    /// After an element was released by a thread that does not own the slab: others may want it now.
    #[inline(always)]
    fn offer(&self, slab: &Slab, empty: bool) {
        if slab.wants_listing() {
            self.list_shared(slab);
        }
        if empty && !slab.owned.load(Ordering::SeqCst) {
            self.note_empty(slab);
        }
    }

    #[cold]
    fn list_shared(&self, slab: &Slab) {
        if let Some(slab) = slab.shared() {
            self.heap().list(slab);
        }
    }

    #[cold]
    fn note_empty(&self, slab: &Slab) {
        if let Some(slab) = slab.shared() {
            self.heap().note_empty(slab);
        }
    }

    /// Puts a slab back into use whose retirement was rolled back.
    fn revive_slab(&self, slab: Arc<Slab>) {
        slab.revive();
        self.offer(&slab, true);
    }

    /// Takes an element of a slab that the thread owns, and every commit knows. Mostly there is one with room; else
    /// nothing was done.
    #[inline(always)]
    fn element_at_hand(&self, cache: &mut ThreadCache, class: Class) -> Option<Element> {
        let at = cache.slabs.iter().position(|owned| owned.class == class)?;
        if !cache.slabs[at].slab.published.load(Ordering::Relaxed) {
            return None;
        }
        self.element_of(cache, at)
    }

    /// Takes an element of this slab of the thread's, if it has room.
    #[inline(always)]
    fn element_of(&self, cache: &mut ThreadCache, at: usize) -> Option<Element> {
        let owned = &cache.slabs[at];
        let alone = self.try_alone();
        let reserved = owned.slab.reserve(alone.is_some());
        drop(alone);
        let (index, first) = reserved?;
        if first {
            owned.note_occupied();
        }
        let element = owned.element(index);
        if at > 0 {
            cache.slabs.swap(at, at / 2);
        }
        Some(element)
    }

    /// Reserves an element for an object of this class.
    fn reserve_element(&self, cache: &mut ThreadCache, class: Class) -> Result<Element> {
        if let Some(at) = cache.slabs.iter().position(|owned| owned.class == class) {
            if let Some(element) = self.element_of(cache, at) {
                return Ok(element);
            }
            let owned = cache.slabs.swap_remove(at);
            self.disown(owned.slab);
        }
        let (owned, index) = match self.listed_element(class) {
            Some(found) => found,
            None => {
                self.load_one_more()?;
                match self.listed_element(class) {
                    Some(found) => found,
                    None => self.new_slab(class)?,
                }
            }
        };
        let element = owned.element(index);
        cache.slabs.push(owned);
        Ok(element)
    }

    /// An element of a slab that has room and had no owner; its owner is the caller now.
    fn listed_element(&self, class: Class) -> Option<(Owned, usize)> {
        loop {
            let slab = self.heap().take_listed(class)?;
            // One whose puddle is gone is retired.
            let Some(puddle) = puddle_at(slab.address) else {
                continue;
            };
            slab.owned.store(true, Ordering::SeqCst);
            slab.listed.store(false, Ordering::SeqCst);
            if let Some((index, first)) = slab.reserve(false) {
                let owned = Owned::new(puddle, slab);
                if first {
                    owned.note_occupied();
                }
                return Some((owned, index));
            }
            // Filled or retired since it was listed.
            if slab.disown() {
                self.heap().list(slab);
            }
        }
    }

    /// Loads one more puddle that was not looked at yet: it may hold slabs with room of this class.
    fn load_one_more(&self) -> Result<()> {
        let is_unloaded = |puddle: &&Arc<Puddle>| puddle.heap.get().is_none();
        let unloaded = self.heap().puddles().iter().find(is_unloaded).cloned();
        if let Some(puddle) = unloaded {
            self.heap_of(&puddle)?;
        }
        Ok(())
    }

    fn new_slab(&self, class: Class) -> Result<(Owned, usize)> {
        let geometry = extent::slab_geometry(class.element_size);
        let granules = (geometry.extent_size / GRANULE) as usize;
        let take = |puddle: &Puddle, heap: &PuddleHeap| heap.reserve_slab(puddle, class);
        let (puddle, (slab, index)) = match self.place_here(granules, take)?.1 {
            Some(placed) => placed,
            None => {
                // Before it grows the pool uses what little room its slabs have.
                self.list_any_room(class);
                match self.listed_element(class) {
                    Some(found) => return Ok(found),
                    None => self.place(granules, take)?,
                }
            }
        };
        // SAFETY: puddles live while their store is open, and the pool is.
        write_slab_header(unsafe { puddle.as_ref() }, &slab);
        Ok((Owned::new(puddle, slab), index))
    }

    /// Offers every slab of a class that has any room.
    #[cold]
    fn list_any_room(&self, class: Class) {
        let mut found = Vec::new();
        let puddles = self.heap().puddles();
        for heap in puddles.iter().filter_map(|puddle| puddle.heap.get()) {
            heap.slabs_of(class, |slab| {
                if slab.wants_listing_with_any_room() {
                    found.push(slab.clone());
                }
            });
        }
        drop(puddles);
        found.into_iter().for_each(|slab| self.heap().list(slab));
    }
}

impl<P: Grow> Allocate for P {}
