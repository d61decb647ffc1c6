//! What a savepoint keeps: the beginning of a part of a transaction that can be taken back alone.

use crate::alloc::AllocationMark;
use crate::announced::Announced;
use crate::fault::guarded;
use crate::saved::{Saved, SavedMark};

/// What a part of a transaction has announced since it began, and what that held then.
#[derive(Debug, Default)]
pub(crate) struct Savepoint {
    pub(crate) known: Announced,
    pub(crate) old: Saved,
    pub(crate) volatile: SavedMark,
    pub(crate) allocation: AllocationMark,
}

impl Savepoint {
    /// Keeps what `[address, address + len)` held when the part began.
    ///
    /// # Safety
    /// The range lies in a mapped puddle, and nobody changes it meanwhile.
    pub(crate) unsafe fn save(&mut self, address: usize, len: usize) {
        if self.known.covers(address, len) {
            return;
        }
        let Self { known, old, .. } = self;
        known.for_each_gap(address, len, |gap| {
            // SAFETY: as the caller promises.
            guarded(|| unsafe { old.save(gap.start, gap.len()) });
        });
        known.insert(address, len);
    }

    pub(crate) fn clear(&mut self) {
        self.known.clear();
        self.old.clear();
    }
}
