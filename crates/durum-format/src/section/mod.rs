//! Records of sections, for code that completes what a crash interrupted: `docs/format/section.md`.
//!
//! Reading order: [`layout`] (slots, banks, what limits a record), [`words`] (what the words of a record mean),
//! [`head`] (what a puddle says of its slots), [`record`] (what a thread says of its section), [`frame`] (how its
//! callers go on), [`slot`] (which of two records counts), [`puddle`] (all slots), [`mod@write`] (how a thread writes
//! them).

mod damage;
pub mod frame;
pub mod head;
pub mod layout;
pub mod puddle;
pub mod record;
pub mod slot;
pub mod words;
pub mod write;

pub use damage::{Damage, Flaw};
pub use frame::{Frame, Frames};
pub use head::{HEAD_SIZE, Head};
pub use layout::{
    BANK_SIZE, BANK_WORDS, BANKS, BITS_MAX, FRAME_WORDS_MAX, LIVE_INS_MAX, LOCKS_MAX,
    RECORD_WORDS_MAX, REDO_MAX, SEQUENCE_END, SLOTS_OFFSET, STACK_SIZE_DEFAULT, STACK_SIZE_MAX,
    SlotSalt, bank_of, slot_size, slots_max,
};
pub use puddle::Sections;
pub use record::{Idle, Record};
pub use slot::{Slot, State};
pub use words::{Bits, BitsChange, Code, FrameLink, Lock, LockKind, Redo, StackTop};
pub use write::{FRAME_HEAD_WORDS, FrameWriter, RECORD_HEAD_WORDS, RecordWriter, Written};
