//! How much memory a buffer keeps for the next transaction.

/// So many bytes stay in any case.
pub(crate) const ALWAYS: usize = 1 << 20;
/// More than these go back in any case.
const MOST: usize = 64 << 20;
/// After so many transactions that need a quarter at most, what large ones have needed goes back.
const SMALL_ONES: u32 = 64;

/// Tells a buffer of a thread whether to keep its memory. Making it again for each large transaction costs more than
/// the rest of the transaction, as each page of it is a page fault; one that is large for once should leave nothing
/// behind.
#[derive(Debug, Default)]
pub(crate) struct Spare {
    /// Transactions to come before the memory goes back; 0 if the last large one was long ago.
    patience: u32,
}

impl Spare {
    /// Whether `capacity` bytes are few enough not to ask further.
    #[inline(always)]
    pub(crate) fn is_small(capacity: usize) -> bool {
        capacity <= ALWAYS
    }

    /// Whether to keep `capacity` bytes, of which the transaction has used `used`.
    pub(crate) fn keeps(&mut self, used: usize, capacity: usize) -> bool {
        if Self::is_small(capacity) {
            return true;
        }
        let had_one = self.patience > 0;
        self.patience = match used > capacity / 4 {
            true => SMALL_ONES,
            false => self.patience.saturating_sub(1),
        };
        had_one && self.patience > 0 && capacity <= MOST
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_that_is_large_once_goes_back() {
        let mut spare = Spare::default();
        assert!(spare.keeps(100, ALWAYS));
        assert!(!spare.keeps(2 * ALWAYS, 3 * ALWAYS));
        // A second one soon afterwards shows that it is needed.
        assert!(spare.keeps(2 * ALWAYS, 3 * ALWAYS));
        for _ in 1..SMALL_ONES {
            assert!(spare.keeps(100, 3 * ALWAYS));
        }
        assert!(!spare.keeps(100, 3 * ALWAYS));
        assert!(!spare.keeps(2 * ALWAYS, 3 * ALWAYS), "long ago");
        assert!(!spare.keeps(MOST, MOST + 1));
    }
}
