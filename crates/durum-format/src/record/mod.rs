//! Redo records: `docs/format/record.md`.
//!
//! Reading order: [`entry`] (what a record changes), [`header`] (what makes it whole), [`ring`] (where records lie and
//! what a reader finds), [`mod@replay`] (which of them count, and in which order), [`fresh`] (what may be missing at
//! home), [`merge`] (what they come to).

mod damage;
pub mod entry;
pub mod fresh;
pub mod header;
pub mod merge;
pub mod replay;
pub mod ring;

pub use damage::{Damage, ReplayError};
pub use entry::{
    COPY_MAX, Change, ENTRY_WORDS_MAX, Entries, EntryError, Operation, PART_WORDS, Words,
    copy_head, part_head, push_bytes, push_copy, push_fresh, push_fresh_sum, push_part, push_word,
    push_words, store_head, words_before, words_head,
};
pub use fresh::{FreshRange, fresh_at_home};
pub use header::{HEADER_WORDS, RECORD_HEADER_SIZE, RecordHeader, RingSalt, Seal};
pub use merge::{Page, Pages, Part};
pub use replay::{Replay, replay};
pub use ring::{
    RING_HEAD_SIZE, RING_REACH_OFFSET, Record, Ring, SEGMENT_SIZE, WATERMARK_SLOTS, ring_reach,
    segments, watermark_offset, watermark_words,
};
