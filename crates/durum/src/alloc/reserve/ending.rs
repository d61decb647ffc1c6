//! What was allocated and freed, when its transaction has ended.
//!
//! It ends in two steps, because some of its locks are let go of between them (`Tx::tell_before_reuse`): from then on
//! others may free what it has allocated, and what it wanted to free.
//!
//! ```text
//! first    as others find it: slabs are known, what was freed and rolled back is live again    publish, withdraw_frees
//! locks    let go of: words of locks in places that were freed are used no more
//! then     places that became free may be taken again                                          committed, aborted
//! ```

use std::ops::Deref;
use std::ptr::NonNull;
use std::sync::atomic::Ordering;

use super::{Allocation, AllocationMark};
use crate::alloc::ground::Ground;
use crate::alloc::growth::Grow;
use crate::alloc::heap::PuddleHeap;
use crate::alloc::places::Places;
use crate::alloc::pool::Allocate;
use crate::alloc::puddle::Puddle;
use crate::alloc::slab::Slab;
use crate::steps;

/// So many words of extents are given back while others wait for their puddle.
const EXTENT_WORDS_MAX: usize = 64;

impl Allocation {
    /// The transaction is durable, and others are about to know: they may free what it has allocated.
    #[inline(always)]
    pub(crate) fn publish(&mut self) {
        // Mostly there are none, and to drain a list takes longer than to see that it is empty.
        if !self.new_slabs.is_empty() {
            self.publish_slabs();
        }
        match self.cancelled {
            true => self.keep_cancelled(),
            false => self.reserved.clear(),
        }
        if !self.roots.is_empty() {
            self.publish_roots();
        }
    }

    #[inline(never)]
    fn publish_roots(&mut self) {
        for puddle in self.roots.drain(..) {
            // SAFETY: puddles live while their store is open, and a transaction keeps its store open.
            if let Some(heap) = unsafe { puddle.as_ref() }.heap.get() {
                heap.publish_root();
            }
        }
    }

    /// It is [published](Allocation::publish): what it freed may be reserved again.
    #[inline(always)]
    pub(crate) fn committed<P: Deref<Target: Allocate>>(
        &mut self,
        pool_of: impl Fn(u64) -> Option<P>,
    ) {
        if self.cancelled || !self.retired.is_empty() {
            self.give_more_back(&pool_of);
        }
        if !self.freed.is_empty() {
            give_back(&self.freed, &pool_of);
            self.freed.clear();
        }
        self.before_part = AllocationMark::default();
    }

    /// What was allocated and freed in the same transaction, and the extents of slabs that were empty.
    #[inline(never)]
    fn give_more_back<P: Deref<Target: Allocate>>(&mut self, pool_of: impl Fn(u64) -> Option<P>) {
        give_back(&self.reserved, &pool_of);
        self.reserved.clear();
        self.cancelled = false;
        self.release_retired(&pool_of);
    }

    #[inline(never)]
    fn publish_slabs(&mut self) {
        for new in self.new_slabs.drain(..) {
            steps::add(1);
            // SAFETY: the slab is owned by this thread, so it stays.
            let slab = unsafe { new.slab.as_ref() };
            slab.published.store(new.is_published, Ordering::Relaxed);
            slab.has_records.store(true, Ordering::Relaxed);
        }
    }

    /// Of what was reserved keeps only what was freed in the same transaction, which nobody else knows of. What others
    /// free from now on looks the same, and is theirs to give back.
    #[cold]
    fn keep_cancelled(&mut self) {
        self.reserved.retain_mut(|places| {
            *places = places.that_are(false);
            places.mask != 0
        });
        for places in &self.reserved {
            if places.have_new_root() {
                self.roots.retain(|puddle| *puddle != places.puddle);
            }
        }
        self.cancelled_since.clear();
    }

    /// The extents of retired slabs may be reserved again.
    fn release_retired<P: Deref<Target: Allocate>>(&mut self, pool_of: impl Fn(u64) -> Option<P>) {
        for (puddle, slab) in &self.retired {
            // SAFETY: puddles live while their store is open.
            let puddle = unsafe { puddle.as_ref() };
            if let Some(heap) = puddle.heap.get() {
                heap.release_slab(puddle, slab);
            }
        }
        shrink(self.retired.iter().map(|(puddle, _)| *puddle), pool_of);
        self.retired.clear();
    }

    /// The transaction is rolled back, and others are about to know: they may free what it wanted to free.
    pub(crate) fn withdraw_frees(&mut self) {
        steps::add(self.freed.len());
        self.freed.drain(..).for_each(|places| places.cancel_free());
    }

    /// Its frees are [withdrawn](Allocation::withdraw_frees): everything is as before it.
    pub(crate) fn aborted<P: Deref<Target: Allocate>>(
        &mut self,
        pool_of: impl Fn(u64) -> Option<P>,
    ) {
        self.new_slabs.clear();
        self.roots.clear();
        for (puddle, slab) in self.retired.drain(..) {
            // SAFETY: puddles live while their store is open.
            let key = unsafe { puddle.as_ref() }.pool_key;
            if let Some(pool) = pool_of(key) {
                pool.revive_slab(slab);
            }
        }
        give_back(&self.reserved, &pool_of);
        self.reserved.clear();
        self.cancelled = false;
        self.cancelled_since.clear();
        self.before_part = AllocationMark::default();
    }
}

/// Lets pools give puddles back that are unused now: each pool once, after everything of the transaction is out of
/// them.
#[inline(never)]
pub(in crate::alloc) fn shrink<P: Deref<Target: Allocate>>(
    puddles: impl Iterator<Item = NonNull<Puddle>>,
    pool_of: impl Fn(u64) -> Option<P>,
) {
    let mut seen: Option<NonNull<Puddle>> = None;
    let mut shrunk: Vec<u64> = Vec::new();
    for pointer in puddles {
        steps::add(1);
        if seen.replace(pointer) == Some(pointer) {
            continue;
        }
        // SAFETY: puddles live while their store is open, and a transaction keeps its store open.
        let puddle = unsafe { pointer.as_ref() };
        let is_unused = puddle.heap.get().is_some_and(PuddleHeap::is_unused);
        if is_unused
            && !shrunk.contains(&puddle.pool_key)
            && let Some(pool) = pool_of(puddle.pool_key)
        {
            shrunk.push(puddle.pool_key);
            pool.shrink();
        }
    }
}

/// Makes places reservable again; pools give back what is unused then.
#[inline(always)]
pub(in crate::alloc) fn give_back<P: Deref<Target: Allocate>>(
    all: &[Places],
    pool_of: impl Fn(u64) -> Option<P>,
) {
    let mut rest = all;
    // A puddle becomes unused by its last extent, or by a slab that becomes empty.
    let mut may_be_unused = false;
    while let Some((first, behind)) = rest.split_first() {
        match first.slab() {
            Some(slab) => {
                may_be_unused |= give_elements_back(first, slab, &pool_of);
                rest = behind;
            }
            None => {
                may_be_unused = true;
                rest = give_first_extents_back(first, rest);
            }
        }
    }
    if may_be_unused {
        shrink(all.iter().map(|places| places.puddle), &pool_of);
    }
}

/// Extents of a puddle, the first of `all`; the others.
#[inline(never)]
fn give_first_extents_back<'p>(first: &Places, all: &'p [Places]) -> &'p [Places] {
    let is_here = |places: &&Places| places.slab().is_none() && places.puddle == first.puddle;
    let here = all.iter().take(EXTENT_WORDS_MAX).take_while(is_here);
    let (extents, behind) = all.split_at(here.count());
    give_extents_back(first.puddle(), extents);
    behind
}

/// Elements of one slab; whether that is empty now.
#[inline(always)]
fn give_elements_back<P: Deref<Target: Allocate>>(
    places: &Places,
    slab: &Slab,
    pool_of: impl Fn(u64) -> Option<P>,
) -> bool {
    steps::add(1);
    let puddle = places.puddle();
    let pool = pool_of(puddle.pool_key);
    let alone = pool.as_ref().and_then(|pool| pool.try_alone());
    // From then on others may take the slab out of use; the handle keeps it. Nobody does where there is nobody else.
    let kept = match &alone {
        Some(_) => None,
        None => slab.shared(),
    };
    let is_empty = slab.release(places.word, places.mask, alone.is_some());
    if is_empty && let Some(heap) = puddle.heap.get() {
        heap.slab_occupied(false);
    }
    if let Some(pool) = &pool {
        pool.offer(slab, is_empty);
    }
    drop((kept, alone));
    is_empty
}

/// Extents of one puddle.
fn give_extents_back(puddle: &Puddle, extents: &[Places]) {
    let Some(heap) = puddle.heap.get() else {
        return;
    };
    if extents.iter().any(Places::have_new_root) {
        // First nothing else may be placed there, then the place is free.
        heap.cancel_root();
    }
    heap.release_objects(puddle, extents.iter().flat_map(Places::positions));
}
