//! What is wrong with a log that no crash explains.

use super::CHAIN_MAX;
use crate::Uuid;

/// Something that no crash leaves behind: the log is not to be replayed, nor dropped.
///
/// Offsets are bytes from the start of the entry area of the puddle with the given index in the chain (0: the first).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Damage {
    /// A range slot holds a word that does not belong there.
    #[error(
        "log: range slot {slot} holds {found:#018x}, a word of generation {expected_generation} belongs there: a range \
         word was lost or changed"
    )]
    RangeSlot {
        /// Which of the 16 slots.
        slot: usize,
        /// The word found.
        found: u64,
        /// The generation that belongs there; 0 for a slot not yet used.
        expected_generation: u64,
    },
    /// The log holds an entry of a generation whose range word it does not have.
    #[error(
        "log: its range word is of generation {current}, but it holds an entry of the next one: the newest range word \
         was lost"
    )]
    LostWord {
        /// The generation of the newest word found.
        current: u64,
    },
    /// A durable entry lies behind the place where the log ends.
    #[error(
        "log: entries end at offset {stop:#x} of puddle {area}, but a durable one lies at {found:#x}: entries between \
         were damaged"
    )]
    LostEntry {
        /// Which puddle of the chain.
        area: usize,
        /// Where reading stopped.
        stop: usize,
        /// Where the later entry lies.
        found: usize,
    },
    /// More places than any writer leaves look like the head of an entry.
    #[error(
        "log: behind the last entry at offset {stop:#x} of puddle {area} lie more fragments than a crash leaves"
    )]
    Fragments {
        /// Which puddle of the chain.
        area: usize,
        /// Where reading stopped.
        stop: usize,
    },
    /// An entry whose checksum is right says something impossible.
    #[error(
        "log: the entry at offset {offset:#x} of puddle {area} has {field} {found:#x}, which no writer gives it"
    )]
    EntryField {
        /// Which puddle of the chain.
        area: usize,
        /// Where the entry begins.
        offset: usize,
        /// Which field.
        field: &'static str,
        /// Its value.
        found: u64,
    },
    /// A seal counts other entries than there are.
    #[error("log: the seal closes over {found} entries, but {expected} lie before it")]
    SealCount {
        /// Entries there are.
        expected: usize,
        /// Entries the seal counts.
        found: u32,
    },
    /// A puddle in the chain that does not belong to this log.
    #[error(
        "log: the puddle at {address:#x} does not continue this log (log id {found:#x} of client {owner})"
    )]
    ForeignChain {
        /// Its address.
        address: u64,
        /// The log id in it.
        found: u64,
        /// The client it belongs to.
        owner: Uuid,
    },
    /// A chain that comes back to a puddle, or does not end.
    #[error(
        "log: the chain comes to the puddle at {address:#x} again, or has more than {CHAIN_MAX} puddles"
    )]
    ChainLoop {
        /// The address of that puddle.
        address: u64,
    },
    /// The head of a log was expected, and this is a continuation.
    #[error("log: the puddle continues a log and cannot be its beginning")]
    NotAHead,
}

/// Why a log could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseError<E> {
    /// The log is damaged.
    #[error(transparent)]
    Damage(#[from] Damage),
    /// The next puddle of the chain could not be had.
    #[error("log: the puddle at {address:#x} that continues it: {source}")]
    Chain {
        /// Its address.
        address: u64,
        /// Why.
        source: E,
    },
}
