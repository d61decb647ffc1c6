//! Slots of a puddle of sections, written as a thread writes them.

use std::ops::Range;

use durum_format::section::{
    BANK_WORDS, Code, Damage, FrameLink, FrameWriter, Head, Record, RecordWriter, Slot, SlotSalt,
    StackTop, State, Written, bank_of,
};
use durum_format::{DEFAULT_BASE, SPACE_SIZE};

pub const STORE: Range<u64> = DEFAULT_BASE..DEFAULT_BASE + SPACE_SIZE;
pub const SALT: u64 = 0xa1a2_a3a4_a5a6_a7a8;
/// The slot's number.
pub const SLOT: u32 = 1;
/// Words of the slot's stack.
pub const STACK_WORDS: usize = 32;

pub fn head() -> Head {
    Head {
        client: super::uuid(0x20),
        salt: SALT,
        slots: 2,
        stack_size: STACK_WORDS as u32 * 8,
    }
}

pub fn salt() -> SlotSalt {
    head().slot_salt(SLOT)
}

pub fn code(region: u16) -> Code {
    Code::new(0xaaaa_bbbb_cccc, region).unwrap()
}

/// A slot in memory.
#[derive(Clone, PartialEq, Eq)]
pub struct Image {
    pub banks: [[u64; BANK_WORDS]; 2],
    pub stack: Vec<u64>,
}

impl Default for Image {
    fn default() -> Self {
        Self {
            banks: [[0; BANK_WORDS]; 2],
            stack: vec![0; STACK_WORDS],
        }
    }
}

impl Image {
    /// Writes a record of a section. What follows the head is up to `parts`.
    pub fn record(
        &mut self,
        sequence: u64,
        parts: impl FnOnce(RecordWriter<'_>) -> RecordWriter<'_>,
    ) -> Written {
        let bank = &mut self.banks[bank_of(sequence)];
        let writer = RecordWriter::new(bank, sequence, code(sequence as u16));
        parts(writer).finish(&salt()).unwrap()
    }

    /// Writes a record of a section with a live-in.
    pub fn section(&mut self, sequence: u64) {
        self.record(sequence, |writer| writer.live_ins(&[sequence]));
    }

    /// Writes a record of no section.
    pub fn idle(&mut self, sequence: u64) {
        let bank = &mut self.banks[bank_of(sequence)];
        RecordWriter::idle(bank, sequence).finish(&salt()).unwrap();
    }

    /// Writes a frame to word `index` of the stack.
    pub fn frame(&mut self, index: u16, stack: StackTop, live_ins: &[u64]) -> FrameLink {
        let place = &mut self.stack[usize::from(index)..];
        let writer = FrameWriter::new(place, code(index), stack).live_ins(live_ins);
        let checksum = writer.finish(&salt()).unwrap().checksum;
        FrameLink { index, checksum }
    }

    /// Puts the checksum of a record right whose words were changed.
    pub fn seal_record(&mut self, bank: usize, words: usize) {
        seal(&mut self.banks[bank][..words]);
    }

    /// Its words, one behind the other.
    pub fn words(&self) -> Vec<u64> {
        [&self.banks[0][..], &self.banks[1], &self.stack].concat()
    }

    pub fn bytes(&self) -> Vec<u8> {
        bytes(&self.words())
    }
}

/// Puts the checksum of a record or a frame right.
pub fn seal(words: &mut [u64]) {
    let checksum = salt().checksum(&bytes(words));
    words[0] = words[0] >> 32 << 32 | u64::from(checksum);
}

pub fn bytes(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// The slot of these bytes.
pub fn slot(bytes: &[u8]) -> Slot<'_> {
    Slot::of(SLOT, salt(), bytes, STORE).unwrap()
}

/// The record of a slot that is in a section.
pub fn in_section<'a>(state: Result<State<'a>, Damage>) -> Record<'a> {
    match state {
        Ok(State::InSection(record)) => record,
        other => panic!("{other:?}"),
    }
}
