//! What is wrong with the records of a slot that no crash explains.

use std::borrow::Cow;
use std::fmt;

/// Why a record does not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flaw {
    /// Nothing was written there.
    Missing,
    /// The record's checksum does not fit.
    Record,
    /// The frame that begins at this word of the stack, on which the record relies, is another one, or is not whole.
    Frame(u16),
}

impl fmt::Display for Flaw {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => write!(out, "was never written"),
            Self::Record => write!(out, "is not whole"),
            Self::Frame(index) => {
                write!(
                    out,
                    "relies on the frame at word {index} of the stack, which is not there"
                )
            }
        }
    }
}

/// What no crash leaves behind: nobody knows where the thread of this slot was.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Damage {
    /// No record counts, and something was recorded.
    #[error("slot {slot}: the record in bank 0 {}, and the one in bank 1 {}", .flaws[0], .flaws[1])]
    NoRecord {
        /// The slot.
        slot: u32,
        /// What is wrong with the records of banks 0 and 1.
        flaws: [Flaw; 2],
    },
    /// A record lies in the bank of the ones before and behind it.
    #[error("slot {slot}: record {sequence} lies in bank {bank}, and belongs into the other one")]
    OtherBank {
        /// The slot.
        slot: u32,
        /// The bank that it lies in.
        bank: usize,
        /// Its number.
        sequence: u64,
    },
    /// Of two whole records neither follows on the other.
    #[error("slot {slot}: the records {} and {} do not follow on each other", .sequences[0], .sequences[1])]
    Apart {
        /// The slot.
        slot: u32,
        /// The numbers of the records in banks 0 and 1.
        sequences: [u64; 2],
    },
    /// A record with a checksum that fits, and with a value that no writer gives it.
    #[error(
        "slot {slot}: {field} in word {word} of bank {bank} is {found:#x}, expected {expected}"
    )]
    Record {
        /// The slot.
        slot: u32,
        /// The bank.
        bank: usize,
        /// Which field.
        field: &'static str,
        /// Which word of the bank.
        word: usize,
        /// The value found.
        found: u64,
        /// What would have been accepted.
        expected: Cow<'static, str>,
    },
    /// A frame with a checksum that fits, and with a value that no writer gives it.
    #[error("slot {slot}: {field} in word {word} of the stack is {found:#x}, expected {expected}")]
    Frame {
        /// The slot.
        slot: u32,
        /// Which field.
        field: &'static str,
        /// Which word of the stack.
        word: usize,
        /// The value found.
        found: u64,
        /// What would have been accepted.
        expected: Cow<'static, str>,
    },
}

impl Damage {
    /// The slot.
    pub fn slot(&self) -> u32 {
        match self {
            Self::NoRecord { slot, .. }
            | Self::OtherBank { slot, .. }
            | Self::Apart { slot, .. }
            | Self::Record { slot, .. }
            | Self::Frame { slot, .. } => *slot,
        }
    }
}
