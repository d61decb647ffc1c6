//! What the engine keeps about a puddle.

use std::any::Any;
use std::ops::Range;
use std::ptr;
use std::sync::Arc;

use super::budget::{Budget, Copies};
use super::freed::FreedAt;
use super::journal::Journal;
use crate::mapping::{Kept, Mapping};

#[derive(Debug)]
pub(super) struct OfPuddle {
    /// When space was freed, where the program works in pages that are not the file's.
    pub(super) freed_at: FreedAt,
    /// Which pages are private.
    pub(super) copies: Copies,
    journal: Arc<Journal>,
}

impl OfPuddle {
    pub(super) fn new(journal: Arc<Journal>, address: usize, size: usize) -> Self {
        Self {
            freed_at: FreedAt::new(address, size),
            copies: Copies::new(journal.budget.clone(), size),
            journal,
        }
    }

    /// What is kept about a puddle of a Shadow pool.
    #[inline]
    pub(super) fn of(puddle: &Mapping) -> Option<&Self> {
        let kept = puddle.kept.as_deref()?;
        debug_assert!(
            (kept as &dyn Any).is::<Self>(),
            "a puddle of another engine"
        );
        // SAFETY: this engine is asked about the puddles of its own pools only.
        Some(unsafe { &*ptr::from_ref(kept).cast::<Self>() })
    }

    pub(super) fn budget(&self) -> &Budget {
        self.copies.budget()
    }
}

impl Kept for OfPuddle {
    fn note_freed(&self, range: Range<usize>) {
        if self.journal.group.is_none() {
            self.freed_at.note(range, self.journal.drawn());
        }
    }

    fn note_large_pages(&self) {
        self.copies.all_are_large();
    }

    fn private_pages_max(&self) -> usize {
        self.budget().room()
    }

    fn note_private_page(&self, offset: usize) {
        self.copies.note(offset);
    }

    fn note_unmapped(&self) {
        self.copies.forget_all();
    }
}
