//! What a log says of its records: from which stamp on home may miss some.

use crate::primitive::{AtomicU64, Ordering};

/// From which stamp on records of a log may be missing at home; 0: none is. Its log stores it.
#[derive(Debug)]
pub(crate) struct Missing(AtomicU64);

impl Missing {
    pub(crate) fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    pub(crate) fn from(&self) -> u64 {
        // ORDER (of threads): behind the stamp that was seen; and what was done for home is seen.
        self.0.load(Ordering::Acquire)
    }

    /// What comes before is home now; with 0 all that there is.
    pub(crate) fn begin_with(&self, stamp: u64) {
        // ORDER (of threads): behind what was done for home.
        self.0.store(stamp, Ordering::Release);
    }

    /// Whether some may be missing, for the log itself.
    #[inline(always)]
    pub(crate) fn is_said(&self) -> bool {
        self.0.load(Ordering::Relaxed) > 0
    }
}
