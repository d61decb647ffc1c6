//! Logs: `docs/format/log.md`.
//!
//! Reading order: [`range`] (the word that commits), [`header`], [`entry`] (what the commit path writes), [`mod@parse`]
//! (what recovery reads), [`mod@plan`] (what recovery does).

mod damage;
pub mod entry;
pub mod header;
pub mod parse;
pub mod plan;
pub mod range;

pub use damage::{Damage, ParseError};
pub use entry::{
    CHECKED_HEADER_SIZE, ENTRY_HEADER_SIZE, EntryFlags, EntryHeader, EntryKind, Order,
    SEAL_RANGES_LIMIT, SEQUENCE_REDO, SEQUENCE_SEAL, SEQUENCE_UNDO, Salt, SealContents,
    encode_bits, encode_chain, encode_copy, encode_seal, entry_checksum, entry_size,
    next_entry_offset, padded, seal_size,
};
pub use header::{LogArea, LogHeader};
pub use parse::{Entry, ParsedLog, parse};
pub use plan::{Plan, PlanError, Write, plan, sealed};
pub use range::{RangeWord, current_range, slot_offset};

/// Bytes of the log header at the start of the puddle's heap.
pub const LOG_HEADER_SIZE: usize = 64;
/// Range slots of a log.
pub const RANGE_SLOTS: usize = 16;
/// Where in the puddle's heap the first range slot lies; they are one line apart.
pub const RANGE_SLOTS_OFFSET: u64 = 64;
/// Where in the puddle's heap it stands how far the log was ever used.
pub const REACH_OFFSET: u64 = 1088;
/// Where in the puddle's heap the entries begin.
pub const LOG_AREA_OFFSET: u64 = 2048;
/// Generations stay below this.
pub const GENERATION_END: u64 = 1 << 48;
/// The generation of the first range word of a log.
pub const GENERATION_FIRST: u64 = 1;
/// The most puddles that one log may chain.
pub const CHAIN_MAX: usize = 4096;
