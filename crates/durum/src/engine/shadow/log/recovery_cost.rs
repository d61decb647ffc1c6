//! How long a recovery takes for what a log holds, told as bytes of log.
//!
//! A megabyte that is logged of a few places is read and written in 1.5 ms. But 16 bytes of log may be about a word in
//! a page of its own, and that page costs a write of its own: 0.6 to 1.2 us on mapped memory, as long as three quarters
//! of a kilobyte of log. So each entry of a large transaction costs that much more, and what is not home is bounded by
//! its cost. Small ones cost what they have: commits bring them home at the pace at which they come, so that never
//! more than a few segments of them are left.

use durum_format::record::Entries;

/// Bytes of log that take as long to recover as one more page to write.
const PLACE: u64 = 768;

/// The cost of entries.
pub(crate) fn of(entries: &[u64]) -> u64 {
    entries.len() as u64 * 8 + Entries::new(entries).count() as u64 * PLACE
}

/// The cost of an entry that copies `len` bytes.
pub(crate) fn of_copy(len: usize) -> u64 {
    len as u64 + PLACE
}

#[cfg(test)]
mod tests {
    use super::*;
    use durum_format::record::{Operation, push_copy, push_word};

    #[test]
    fn words_apart_cost_more_than_one_change_of_as_many_bytes() {
        let mut words = Vec::new();
        for page in 1..=100 {
            push_word(&mut words, Operation::Store, page << 12, 7);
        }
        let mut large = Vec::new();
        push_copy(&mut large, 1 << 20, &[7; 100 * 16 - 16]);
        assert_eq!(large.len(), words.len());
        assert!(of(&large) < of(&words) / 20, "{}", of(&large));
    }
}
