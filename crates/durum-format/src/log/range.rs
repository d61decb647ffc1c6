//! The range word: one atomic store that retires a transaction's entries and arms the next generation.

use super::damage::Damage;
use super::{GENERATION_END, GENERATION_FIRST, RANGE_SLOTS, RANGE_SLOTS_OFFSET};
use crate::consts::LINE;

/// A sequence range with the generation it belongs to.
///
/// ```
/// use durum_format::log::RangeWord;
/// let armed = RangeWord::undo(7);
/// assert!(armed.admits(1) && !armed.admits(3));
/// assert_eq!(RangeWord::from_u64(armed.to_u64()), armed);
/// assert_eq!(armed.slot(), 7);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct RangeWord {
    /// Counts the uses of the log; below 2^48.
    pub generation: u64,
    /// Sequence numbers above this are admitted ...
    pub lo: u8,
    /// ... that are below this.
    pub hi: u8,
}

impl RangeWord {
    /// What a log holds before its first word: generation 0, which has no entries.
    pub const NEVER: Self = Self::new(0, 0, 0);

    const fn new(generation: u64, lo: u8, hi: u8) -> Self {
        Self { generation, lo, hi }
    }

    /// The range (0,2): undo entries count. This is how a log rests.
    pub const fn undo(generation: u64) -> Self {
        Self::new(generation, 0, 2)
    }

    /// The range (2,4): redo entries count.
    pub const fn redo(generation: u64) -> Self {
        Self::new(generation, 2, 4)
    }

    /// The range (4,4): nothing counts.
    pub const fn none(generation: u64) -> Self {
        Self::new(generation, 4, 4)
    }

    /// The word as stored. Generations are cut to 48 bits.
    pub const fn to_u64(self) -> u64 {
        self.generation << 16 | (self.lo as u64) << 8 | self.hi as u64
    }

    /// The word out of what is stored.
    pub const fn from_u64(word: u64) -> Self {
        Self::new(word >> 16, (word >> 8) as u8, word as u8)
    }

    /// Whether entries with this sequence number count.
    pub const fn admits(&self, sequence: u8) -> bool {
        self.lo < sequence && sequence < self.hi
    }

    /// Which slot the word belongs in.
    pub const fn slot(&self) -> usize {
        (self.generation % RANGE_SLOTS as u64) as usize
    }
}

/// Where in the log puddle's heap the word of this generation lies.
pub const fn slot_offset(generation: u64) -> u64 {
    RANGE_SLOTS_OFFSET + generation % RANGE_SLOTS as u64 * LINE
}

/// The word with the largest generation. Generations count up by one from [`GENERATION_FIRST`], and a word is durable
/// before its successor is written, so the 16 slots always hold the last 16 words: any other content is damage. This
/// is what finds a word that was lost or whose generation changed.
///
/// # Errors
/// [`Damage::RangeSlot`] names the slot.
pub fn current_range(slots: &[u64; RANGE_SLOTS]) -> Result<RangeWord, Damage> {
    let current = slots
        .iter()
        .map(|&word| RangeWord::from_u64(word))
        .max_by_key(|word| word.generation);
    let Some(current) = current else {
        return Ok(RangeWord::NEVER);
    };
    for (slot, &found) in slots.iter().enumerate() {
        let word = RangeWord::from_u64(found);
        let behind = (current.generation + RANGE_SLOTS as u64 - slot as u64) % RANGE_SLOTS as u64;
        // Zero where the log is younger than its slots are many.
        let expected = match current.generation.checked_sub(behind) {
            Some(generation) if generation >= GENERATION_FIRST => generation,
            _ => 0,
        };
        let empty_but_not_zero = expected == 0 && found != 0;
        if word.generation != expected || word.lo > word.hi || empty_but_not_zero {
            return Err(Damage::RangeSlot {
                slot,
                found,
                expected_generation: expected,
            });
        }
    }
    debug_assert!(current.generation < GENERATION_END);
    Ok(current)
}
