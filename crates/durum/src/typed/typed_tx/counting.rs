//! References to counted objects that come and go in a transaction.

use super::TypedTx;
use crate::typed::count_word::Held;
use crate::typed::counts::committed_strong;
use crate::typed::drop_glue::DropGlue;

impl TypedTx {
    /// References have come or gone.
    #[inline]
    pub(in crate::typed) fn count(
        &self,
        address: usize,
        glue: &'static DropGlue,
        is_shared: bool,
        strong: i64,
        weak: i64,
    ) {
        self.note_counted();
        let mut counts = self.counts.borrow_mut();
        let at = counts.entry(address, glue, is_shared);
        counts.change(at, strong, weak);
    }

    /// An object was allocated, with one reference.
    pub(in crate::typed) fn count_fresh(
        &self,
        address: usize,
        glue: &'static DropGlue,
        is_shared: bool,
    ) {
        self.note_counted();
        let mut counts = self.counts.borrow_mut();
        // What the transaction has freed is not allocated again before it has ended.
        debug_assert_eq!(counts.find(address), None);
        let at = counts.new_entry(address, glue, is_shared);
        counts.entries[at].is_fresh = true;
        counts.change(at, 1, 0);
    }

    /// The strong references to an object, with those of this transaction.
    ///
    /// # Safety
    /// The caller has a reference to it, or a pin.
    pub(in crate::typed) unsafe fn strong_count(&self, address: usize) -> u64 {
        let mut counts = self.counts.borrow_mut();
        let own = match counts.find(address) {
            Some(at) => counts.entries[at].strong,
            None => 0,
        };
        // SAFETY: a reference or a pin keeps the object.
        unsafe { committed_strong(address) }.wrapping_add_signed(own)
    }

    /// What of an object's word is this transaction's.
    pub(in crate::typed) fn held(&self, address: usize) -> Held {
        let mut counts = self.counts.borrow_mut();
        match counts.find(address) {
            Some(at) => counts.entries[at].held,
            None => Held::default(),
        }
    }

    /// This transaction has pinned an object.
    pub(in crate::typed) fn note_pinned(&self, address: usize, glue: &'static DropGlue) {
        self.note_counted();
        let mut counts = self.counts.borrow_mut();
        let at = counts.entry(address, glue, true);
        counts.entries[at].held.note_pinned();
    }
}
