//! The counts at the end of a transaction: what was put off is dropped, and the sums are applied.

use std::mem::offset_of;
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};

use super::TypedTx;
use crate::error::Result;
use crate::typed::count_word::CountWord;
use crate::typed::counts::{ObjectState, Tally, tally};

impl TypedTx {
    /// Drops what was put off, and applies the sums. The transaction has the objects locked until its end.
    ///
    /// # Errors
    /// Those of an allocation, where a drop is deferred.
    pub(super) fn settle_counts(&self) -> Result<()> {
        self.run_queued_drops();
        let has_deferred = self.open().deferred_drops.len() > 0;
        if self.counts.borrow().entries.is_empty() && !has_deferred {
            return Ok(());
        }
        {
            let mut counts = self.counts.borrow_mut();
            if counts.has_shared {
                counts.lock_pending(&self.binding().words);
            }
        }
        if has_deferred {
            self.drop_deferred();
        }
        loop {
            // What is dropped with an object adds to both lists.
            let next = self.counts.borrow_mut().pending.pop();
            match next {
                Some(at) => self.apply_counts(at as usize)?,
                None if self.has_queued_drops() => self.run_queued_drops(),
                None => return Ok(()),
            }
        }
    }

    /// Applies what was added to the counts of an object. Its value is dropped with the last reference.
    fn apply_counts(&self, at: usize) -> Result<()> {
        let mut guard = self.counts.borrow_mut();
        let entry = &mut guard.entries[at];
        let (strong, weak) = (entry.strong, entry.weak);
        (entry.strong, entry.weak, entry.is_pending) = (0, 0, false);
        if strong == 0 && weak == 0 && (!entry.is_fresh || entry.state != ObjectState::Kept) {
            return Ok(());
        }
        let (address, glue, is_fresh) = (entry.address, entry.glue, entry.is_fresh);
        // SAFETY: an object of the open pool.
        let word = unsafe { self.binding().words.at::<CountWord>(address) };
        if entry.is_shared && !entry.held.is_locked() {
            if !word.try_lock() {
                // The reference was dropped with what held it, and another transaction is about to commit a change of
                // the counts. Waiting for it could be waiting in a circle.
                debug_assert!(strong <= 0 && weak <= 0);
                drop(guard);
                return self.defer_drops(address, glue, -strong, -weak);
            }
            entry.held.note_locked();
        }
        // SAFETY: the counts are at the start of the object, and this thread is alone with them: they are locked, or
        // the object is not shared.
        let old = unsafe { tally(address).read() };
        let mut new = Tally {
            strong: old.strong.wrapping_add_signed(strong),
            weak: old.weak.wrapping_add_signed(weak),
        };
        let was_alive = (old.strong > 0 || entry.is_fresh) && entry.state == ObjectState::Kept;
        let is_pinned = entry.is_shared && word.is_pinned_by_others(entry.held);
        let mut dies = new.strong == 0 && was_alive;
        // Pinned, the last references stay until a later transaction.
        let (mut keeps_strong, mut keeps_weak) = (0, 0);
        if is_pinned && dies {
            (dies, new.strong, keeps_strong) = (false, 1, 1);
        } else if is_pinned && new.strong == 0 && new.weak == 0 {
            (new.weak, keeps_weak) = (1, 1);
        }
        if dies {
            entry.state = ObjectState::Dropped;
        }
        let is_free = new.strong == 0 && new.weak == 0;
        if is_free {
            entry.state = ObjectState::Freed { word: word.take() };
        }
        drop(guard);
        if dies {
            // SAFETY: no reference is left, and nobody can get one.
            unsafe { (glue.drop_value)(address) };
        }
        if is_free {
            self.close_ranges(address + glue.value.0, glue.value.1);
            self.free(address);
            return Ok(());
        }
        if new != old {
            // Mostly one of the two changes, and the other is not logged.
            for (offset, old, new) in [
                (offset_of!(Tally, strong), old.strong, new.strong),
                (offset_of!(Tally, weak), old.weak, new.weak),
            ] {
                if new == old {
                    continue;
                }
                if !is_fresh {
                    self.announce(address + offset, size_of::<u64>());
                }
                let count = ptr::with_exposed_provenance_mut::<u64>(address + offset);
                // SAFETY: this thread is alone in changing the counts. Others may look at the counts meanwhile, and
                // look again when they see that they are locked.
                unsafe { AtomicU64::from_ptr(count) }.store(new, Ordering::Release);
            }
        }
        if dies {
            // Weak references remain. What the value pointed to is gone.
            let (offset, len) = glue.value;
            self.announce(address + offset, len);
            // SAFETY: the value was dropped, and the memory is the object's.
            unsafe {
                ptr::with_exposed_provenance_mut::<u8>(address + offset).write_bytes(0, len);
            }
        }
        if keeps_strong + keeps_weak > 0 {
            return self.defer_drops(address, glue, keeps_strong, keeps_weak);
        }
        Ok(())
    }
}
