//! Objects that a transaction took or gave back, by the words of the bitmaps on the media that say so.

use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

use durum_format::GRANULE;
use durum_format::puddle::{BITMAP_OFFSET, header_size};

use super::bits::BitChange;
use super::objects::ObjectExtent;
use super::puddle::Puddle;
use super::slab::Slab;
use crate::steps;

const GRANULE_SIZE: usize = GRANULE as usize;
/// A bitmap word is looked for among so many that were noted last: objects of as many sizes may come in turn.
const RECENT: usize = 4;

/// Objects whose bits lie in one word: elements of a slab, or extents that start in 64 granules of a puddle. Neighbours
/// are mostly taken together and given back together, and what is done for them all is done once.
#[derive(Clone, Copy, Debug)]
pub(super) struct Places {
    pub(super) puddle: NonNull<Puddle>,
    /// `None`: they are extents.
    slab: Option<NonNull<Slab>>,
    /// Which word of the bitmap of the slab, or of the puddle.
    pub(super) word: usize,
    /// Their bits.
    pub(super) mask: u64,
}

/// The position of a puddle's first granule that is not in its header.
fn first_position(puddle: &Puddle) -> usize {
    header_size(puddle.size as u64) as usize / GRANULE_SIZE
}

impl Places {
    /// An element of a slab.
    pub(super) fn element(puddle: NonNull<Puddle>, slab: NonNull<Slab>, index: usize) -> Self {
        Self::elements(puddle, slab, index / 64, 1 << (index % 64))
    }

    /// Elements of a slab whose bits lie in this word of its bitmap.
    pub(super) fn elements(
        puddle: NonNull<Puddle>,
        slab: NonNull<Slab>,
        word: usize,
        mask: u64,
    ) -> Self {
        Self {
            puddle,
            slab: Some(slab),
            word,
            mask,
        }
    }

    /// The extent that starts at `position`.
    pub(super) fn extent(puddle: NonNull<Puddle>, position: usize) -> Self {
        // SAFETY: puddles live while their store is open, and a transaction keeps its store open.
        let granule = position - first_position(unsafe { puddle.as_ref() });
        Self::extents(puddle, granule / 64, 1 << (granule % 64))
    }

    /// Extents whose bits lie in this word of the puddle's bitmap.
    pub(super) fn extents(puddle: NonNull<Puddle>, word: usize, mask: u64) -> Self {
        Self {
            puddle,
            slab: None,
            word,
            mask,
        }
    }

    pub(super) fn puddle(&self) -> &Puddle {
        // SAFETY: puddles live while their store is open, and a transaction keeps its store open.
        unsafe { self.puddle.as_ref() }
    }

    /// The slab that they are elements of.
    pub(super) fn slab(&self) -> Option<&Slab> {
        // SAFETY: an element of it is reserved, or not free again, so the slab stays.
        self.slab.map(|slab| unsafe { slab.as_ref() })
    }

    /// The position that the word's first bit stands for, if it is one of extents.
    fn first_position(&self) -> usize {
        first_position(self.puddle()) + 64 * self.word
    }

    /// The positions of extents.
    pub(super) fn positions(&self) -> impl Iterator<Item = usize> {
        let (first, mut rest) = (self.first_position(), self.mask);
        std::iter::from_fn(move || {
            let bit = (rest != 0).then(|| rest.trailing_zeros() as usize)?;
            rest &= rest - 1;
            Some(first + bit)
        })
    }

    /// Where the objects begin.
    pub(super) fn addresses(&self) -> Vec<usize> {
        match self.slab() {
            Some(slab) => (0..64)
                .filter(|bit| self.mask >> bit & 1 != 0)
                .map(|bit| slab.element_address(64 * self.word + bit))
                .collect(),
            None => {
                let base = self.puddle().address;
                self.fold_objects(Vec::new(), |mut found, position, object| {
                    found.push(base + position * GRANULE_SIZE + object.data_offset());
                    found
                })
            }
        }
    }

    /// The address of the word on the media.
    #[inline(always)]
    pub(super) fn media_word(&self) -> usize {
        match self.slab() {
            Some(slab) => slab.media_word(self.word),
            None => self.puddle().address + BITMAP_OFFSET as usize + 8 * self.word,
        }
    }

    /// Whether a commit has set any of their bits.
    #[inline(always)]
    pub(super) fn is_set_on_media(&self) -> bool {
        // SAFETY: a bitmap word inside the mapped puddle. Other threads, if there are any, change other bits of it
        // atomically.
        let bits = unsafe { AtomicU64::from_ptr(self.media_word() as *mut u64) };
        bits.load(Ordering::Relaxed) & self.mask != 0
    }

    /// The change that allocates them, or frees them.
    #[inline(always)]
    pub(super) fn change(&self, set: bool) -> BitChange {
        BitChange {
            puddle: self.puddle,
            word: self.media_word(),
            mask: self.mask,
            set,
        }
    }

    /// Those of them that are not about to be freed, or the others.
    pub(super) fn that_are(&self, live: bool) -> Self {
        let live_mask = match self.slab() {
            Some(slab) => slab.live(self.word, self.mask),
            None => {
                let first = self.first_position();
                self.fold_objects(0, |mask, position, object| {
                    mask | u64::from(object.live) << (position - first)
                })
            }
        };
        let mask = match live {
            true => live_mask,
            false => self.mask & !live_mask,
        };
        Self { mask, ..*self }
    }

    /// They are to be freed.
    pub(super) fn begin_free(&self) {
        match self.slab() {
            Some(slab) => slab.begin_free_all(self.word, self.mask),
            None => self.fold_objects((), |(), _, object| object.live = false),
        }
    }

    /// Those that were to be freed stay.
    pub(super) fn cancel_free(&self) {
        match self.slab() {
            Some(slab) => slab.cancel_free(self.word, self.mask),
            None => self.fold_objects((), |(), _, object| object.live = true),
        }
    }

    /// Goes over the extents, which others keep away from meanwhile.
    fn fold_objects<R>(&self, first: R, each: impl FnMut(R, usize, &mut ObjectExtent) -> R) -> R {
        match self.puddle().heap.get() {
            Some(heap) => heap.fold_objects(self.positions(), first, each),
            None => first,
        }
    }

    /// Whether the root is among them, which their transaction is making.
    pub(super) fn have_new_root(&self) -> bool {
        // It has the first granule, and nothing else ever has it in the root's puddle.
        let is_first = self.slab.is_none() && self.word == 0 && self.mask & 1 != 0;
        is_first
            && self
                .puddle()
                .heap
                .get()
                .is_some_and(|heap| heap.root_is_pending())
    }
}

/// Notes an object behind the first `kept` entries, which stay as they are.
#[inline(always)]
pub(super) fn note(noted: &mut Vec<Places>, kept: usize, place: Places) {
    steps::add(1);
    match noted.len() == kept {
        true => noted.push(place),
        false => note_beside(noted, kept, place),
    }
}

#[inline(never)]
fn note_beside(noted: &mut Vec<Places>, kept: usize, place: Places) {
    let from = noted.len().saturating_sub(RECENT).max(kept);
    let is_beside = |other: &&mut Places| {
        other.word == place.word && other.slab == place.slab && other.puddle == place.puddle
    };
    match noted[from..].iter_mut().rev().find(is_beside) {
        Some(other) => other.mask |= place.mask,
        None => noted.push(place),
    }
}
