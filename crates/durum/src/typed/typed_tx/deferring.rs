//! What a transaction does with the pool's deferred drops. It has the list from the first change to its end.

use std::ptr;

use super::TypedTx;
use crate::described::Described;
use crate::error::Result;
use crate::typed::count_word::CountWord;
use crate::typed::deferred_drops::{DeferredDrop, first_link, next_link, read_link};
use crate::typed::drop_glue::DropGlue;
use crate::typed::waiting::Pause;

/// One transaction makes up to so many deferred drops.
const SOME: usize = 64;

impl TypedTx {
    /// Defers the drop of references to an object.
    pub(super) fn defer_drops(
        &self,
        object: usize,
        glue: &DropGlue,
        strong: i64,
        weak: i64,
    ) -> Result<()> {
        self.hold_deferred();
        let (pool, head) = (&self.open().pool, first_link(self.open().root));
        let deferred_type = pool.ensure_described(DeferredDrop::description())?;
        let type_id = (glue.describe)().id();
        let references = (0..strong).map(|_| 0).chain((0..weak).map(|_| 1));
        for is_weak in references {
            let (size, align) = (size_of::<DeferredDrop>(), align_of::<DeferredDrop>());
            let made = self.core().alloc_bytes(pool, deferred_type, size, align)?;
            let deferred = DeferredDrop {
                // SAFETY: this thread holds the list.
                next: unsafe { read_link(head) },
                object,
                type_id,
                is_weak,
            };
            // SAFETY: just allocated.
            unsafe { made.cast::<DeferredDrop>().write(deferred) };
            self.set_link(head, made.expose_provenance());
            self.note_deferred(1);
        }
        Ok(())
    }

    /// Drops what earlier transactions have deferred, as part of this one, which is about to commit: as far as nobody
    /// hinders that any more.
    pub(super) fn drop_deferred(&self) {
        if self.deferred_change.get().is_none() && !self.try_hold_deferred() {
            return;
        }
        let mut link = first_link(self.open().root);
        let mut left = SOME;
        while left > 0 {
            // SAFETY: this thread holds the list.
            let at = unsafe { read_link(link) };
            if at == 0 {
                return;
            }
            // SAFETY: a member of the list, which this thread holds.
            let deferred = unsafe { ptr::with_exposed_provenance::<DeferredDrop>(at).read() };
            let type_id = self.open().pool.inner.meaning(deferred.type_id);
            let glue = (self.known_glue.borrow_mut()).find(self.binding(), type_id);
            // SAFETY: the reference keeps the object in the pool.
            let word = unsafe { self.binding().words.at::<CountWord>(deferred.object) };
            // What this transaction has pinned or locked itself hinders nobody.
            let own = self.held(deferred.object);
            match glue {
                Some(glue) if !word.is_held_by_others(own) => {
                    self.set_link(link, deferred.next);
                    self.free(at);
                    self.note_deferred(-1);
                    let (strong, weak) = match deferred.is_weak {
                        0 => (-1, 0),
                        _ => (0, -1),
                    };
                    self.count(deferred.object, glue, true, strong, weak);
                }
                _ => link = next_link(at),
            }
            // Drops may wait for a type that the program never uses. They do not count, or no others would be made.
            left -= usize::from(glue.is_some());
        }
    }

    /// Waits for the list. Whoever has it is about to end its transaction, and waits for nobody.
    fn hold_deferred(&self) {
        if self.deferred_change.get().is_none() {
            let mut pause = Pause::default();
            while !self.try_hold_deferred() {
                pause.wait();
            }
        }
    }

    fn try_hold_deferred(&self) -> bool {
        let is_held = self.open().deferred_drops.try_hold();
        if is_held {
            self.note_counted();
            self.deferred_change.set(Some(0));
        }
        is_held
    }

    fn note_deferred(&self, change: isize) {
        let before = self.deferred_change.get().unwrap_or(0);
        self.deferred_change.set(Some(before + change));
    }

    fn set_link(&self, link: usize, target: usize) {
        self.announce(link, size_of::<usize>());
        // SAFETY: a link of the list, which this thread holds; announced.
        unsafe { ptr::with_exposed_provenance_mut::<usize>(link).write(target) };
    }
}
