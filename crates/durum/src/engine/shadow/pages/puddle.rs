//! What the engine keeps about a puddle.

use std::any::Any;
use std::fmt::Debug;
use std::ops::Range;
use std::ptr;
use std::sync::Arc;

use super::budget::{Budget, PrivatePages};
use super::chunk_stamps::ChunkStamps;
use crate::alloc::{Puddle, puddle_at};
use crate::mapping::{Kept, LARGE_PAGE, Mapping, PAGE};

/// Who gives stamps, and knows the last one.
pub(crate) trait LastStamp: Debug + Send + Sync {
    fn last_stamp(&self) -> u64;
}

#[derive(Debug)]
pub(crate) struct OfPuddle {
    /// When space was freed, where the program works in pages that are not the file's.
    pub(crate) freed_at: ChunkStamps,
    /// When a range was logged as a whole, which may reach beyond its object, over places that nobody has.
    pub(crate) logged_at: ChunkStamps,
    /// Which pages are private.
    pub(crate) private: PrivatePages,
    /// `None`: nobody asks when space was freed.
    stamps: Option<Arc<dyn LastStamp>>,
}

impl OfPuddle {
    pub(crate) fn new(
        stamps: Option<Arc<dyn LastStamp>>,
        budget: Arc<Budget>,
        address: usize,
        size: usize,
    ) -> Self {
        Self {
            freed_at: ChunkStamps::new(address, size),
            logged_at: ChunkStamps::new(address, size),
            private: PrivatePages::new(budget, address, size),
            stamps,
        }
    }

    /// What is kept about a puddle of a Shadow pool.
    #[inline]
    pub(crate) fn of(puddle: &Mapping) -> Option<&Self> {
        let kept = puddle.kept.as_deref()?;
        debug_assert!(
            (kept as &dyn Any).is::<Self>(),
            "a puddle of another engine"
        );
        // SAFETY: this engine is asked about the puddles of its own pools only.
        Some(unsafe { &*ptr::from_ref(kept).cast::<Self>() })
    }

    pub(crate) fn budget(&self) -> &Budget {
        self.private.budget()
    }
}

impl Kept for OfPuddle {
    fn note_freed(&self, range: Range<usize>) {
        if let Some(stamps) = &self.stamps {
            self.freed_at.note(range, stamps.last_stamp());
        }
    }

    fn note_large_pages(&self) {
        self.private.all_are_large();
    }

    fn leave_home_pages(&self, range: Range<usize>) -> usize {
        self.budget().leave_home_pages(range)
    }

    fn private_pages_max(&self) -> usize {
        self.budget().room()
    }

    fn note_private_page(&self, offset: usize) {
        self.private.note(offset);
    }

    fn note_unmapped(&self) {
        self.private.forget_all();
    }
}

/// Whether this address of a puddle lies in a large page.
pub(crate) fn is_large(puddle: &Puddle, address: usize) -> bool {
    let unit = (address - puddle.address) / LARGE_PAGE;
    OfPuddle::of(puddle).is_some_and(|kept| kept.private.is_large(unit))
}

/// The pages of this range of a program have private contents.
pub(crate) fn note_range(range: std::ops::Range<usize>) {
    (range.start & !(PAGE - 1)..range.end)
        .step_by(PAGE)
        .for_each(note);
}

/// The page at this address of a program has private contents.
#[inline]
pub(crate) fn note(address: usize) {
    if let Some(puddle) = puddle_at(address) {
        // SAFETY: puddles live while their store is open.
        note_in(unsafe { puddle.as_ref() }, address);
    }
}

/// The same, where the puddle is known.
#[inline]
pub(crate) fn note_in(puddle: &Mapping, address: usize) {
    if let Some(kept) = OfPuddle::of(puddle) {
        kept.private.note(address - puddle.address);
    }
}
