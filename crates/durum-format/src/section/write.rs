//! How a thread writes its records and frames: word by word into their place, without allocating.
//!
//! Until its last word is there, what is being written has a checksum that does not fit. Nothing of this makes anything
//! durable.

use super::layout::{
    BANK_WORDS, BITS_MAX, FrameHead, LIVE_INS_MAX, LOCKS_MAX, MORE_STACK, REDO_MAX, RecordHead,
    SEQUENCE_END, SlotSalt,
};
use super::words::{Bits, BitsChange, Code, Lock, Redo, StackTop};

/// Words of a record in front of its live-ins.
pub const RECORD_HEAD_WORDS: usize = size_of::<RecordHead>() / 8;
/// Words of a frame in front of its live-ins.
pub const FRAME_HEAD_WORDS: usize = size_of::<FrameHead>() / 8;

/// The parts of a record behind its head, in their order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Part {
    LiveIns,
    Locks,
    Stack,
    Redo,
    Bits,
}

/// Words behind each other in a place that may be too small.
#[derive(Debug)]
struct Words<'a> {
    place: &'a mut [u64],
    used: usize,
}

impl Words<'_> {
    #[inline]
    fn push(&mut self, words: &[u64]) -> bool {
        let place = self.place.get_mut(self.used..);
        let Some(place) = place.and_then(|place| place.get_mut(..words.len())) else {
            return false;
        };
        for (place, word) in place.iter_mut().zip(words) {
            *place = word.to_le();
        }
        self.used += words.len();
        true
    }

    /// Takes in words that lie there already.
    #[inline]
    fn skip(&mut self, count: usize) -> bool {
        self.used += count;
        self.used <= self.place.len()
    }

    /// Writes the head, with the checksum of all. Gives the bytes and the checksum.
    #[inline]
    fn seal<const HEAD: usize>(self, mut head: [u64; HEAD], salt: &SlotSalt) -> Option<Written> {
        let words = self.place.get_mut(..self.used)?;
        let (place, rest) = words.split_first_chunk_mut::<HEAD>()?;
        let checksum = salt.checksum_of(&head, rest);
        *head.first_mut()? |= u64::from(checksum).to_le();
        *place = head;
        Some(Written {
            bytes: self.used * 8,
            checksum,
        })
    }
}

/// What was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Written {
    /// How many bytes from the beginning of the place on have to be written back.
    pub bytes: usize,
    /// The checksum: of a frame, what names it needs it.
    pub checksum: u32,
}

/// Writes the record of a thread into its bank.
///
/// The parts come in the order of the methods. Where there is too much of one, or one comes too late, nothing is
/// written any more, and [`finish`](Self::finish) says so.
#[derive(Debug)]
#[must_use = "a record without its checksum is none"]
pub struct RecordWriter<'a> {
    words: Words<'a>,
    sequence: u64,
    /// `None`: it is in no section.
    code: Option<Code>,
    first_lock: u64,
    counts: Counts,
    /// What was written last.
    part: Part,
    is_refused: bool,
}

#[derive(Debug, Default)]
struct Counts {
    locks: usize,
    live_ins: usize,
    redo: usize,
    bits: usize,
    has_stack: bool,
}

impl<'a> RecordWriter<'a> {
    /// Begins the record with this number, of a thread in a section, in the bank that it [belongs to](super::bank_of).
    /// The record before lies in the other one, and is durable.
    #[inline]
    pub fn new(bank: &'a mut [u64; BANK_WORDS], sequence: u64, code: Code) -> Self {
        Self::begin(bank, sequence, Some(code))
    }

    /// The same for a thread in no section: nothing follows but bits that are freed.
    #[inline]
    pub fn idle(bank: &'a mut [u64; BANK_WORDS], sequence: u64) -> Self {
        Self::begin(bank, sequence, None)
    }

    #[inline]
    fn begin(bank: &'a mut [u64; BANK_WORDS], sequence: u64, code: Option<Code>) -> Self {
        Self {
            words: Words {
                place: bank,
                used: RECORD_HEAD_WORDS,
            },
            sequence,
            code,
            first_lock: 0,
            counts: Counts::default(),
            part: Part::LiveIns,
            is_refused: false,
        }
    }

    /// Values that are alive where the section goes on.
    #[inline]
    pub fn live_ins(mut self, values: &[u64]) -> Self {
        self.counts.live_ins += values.len();
        let is_room = self.counts.live_ins <= LIVE_INS_MAX;
        self.push(Part::LiveIns, is_room, values)
    }

    /// As many values that lie in their places already, as little-endian words: from word 4 of the bank on.
    #[inline]
    pub fn live_ins_in_place(mut self, count: usize) -> Self {
        self.counts.live_ins += count;
        let is_room = self.counts.live_ins <= LIVE_INS_MAX;
        self = self.push(Part::LiveIns, is_room, &[]);
        self.is_refused |= !self.words.skip(count);
        self
    }

    /// A lock that the section holds, once for each time that it has taken it.
    #[inline]
    pub fn lock(mut self, lock: Lock) -> Self {
        self.counts.locks += 1;
        let is_room = self.counts.locks <= LOCKS_MAX;
        if self.counts.locks > 1 {
            return self.push(Part::Locks, is_room, &[lock.to_word()]);
        }
        self.first_lock = lock.to_word();
        self.push(Part::Locks, is_room, &[])
    }

    /// How the stack is used.
    #[inline]
    pub fn stack(mut self, top: StackTop) -> Self {
        let is_first = !std::mem::replace(&mut self.counts.has_stack, true);
        let word = top.to_media().map(|media| zerocopy::transmute!(media));
        let word = word.map(u64::from_le);
        let is_room = is_first && word.is_some();
        self.push(Part::Stack, is_room, &[word.unwrap_or_default()])
    }

    /// A word that is written again before the section goes on.
    #[inline]
    pub fn redo(mut self, redo: Redo) -> Self {
        self.counts.redo += 1;
        let words = redo.to_words();
        let is_room = self.counts.redo <= REDO_MAX && words.is_some();
        self.push(Part::Redo, is_room, &words.unwrap_or_default())
    }

    /// Bits of a bitmap of which nothing else tells.
    #[inline]
    pub fn bits(mut self, bits: Bits) -> Self {
        self.counts.bits += 1;
        let words = bits.to_words();
        let may_be = self.code.is_some() || bits.change == BitsChange::Freed;
        let is_room = self.counts.bits <= BITS_MAX && may_be && words.is_some();
        self.push(Part::Bits, is_room, &words.unwrap_or_default())
    }

    #[inline]
    fn push(mut self, part: Part, is_room: bool, words: &[u64]) -> Self {
        let belongs = part >= self.part && (self.code.is_some() || part == Part::Bits);
        let is_written = is_room && belongs && !self.is_refused;
        self.is_refused = !(is_written && self.words.push(words));
        self.part = part;
        self
    }

    /// Writes the head, with which the record is whole. `None` where it had too much of anything, or in another order:
    /// the bank then holds no record.
    #[inline]
    pub fn finish(self, salt: &SlotSalt) -> Option<Written> {
        let Counts {
            locks,
            live_ins,
            redo,
            bits,
            has_stack,
        } = self.counts;
        if self.is_refused || !is_number(self.sequence) {
            return None;
        }
        let more = bits as u8 | if has_stack { MORE_STACK } else { 0 };
        let head = RecordHead {
            checksum: 0.into(),
            locks: locks as u8,
            live_ins: live_ins as u8,
            redo: redo as u8,
            more,
            sequence: self.sequence.into(),
            code: self.code.map_or(0, Code::to_word).into(),
            first_lock: self.first_lock.into(),
        };
        self.words
            .seal::<RECORD_HEAD_WORDS>(zerocopy::transmute!(head), salt)
    }
}

const fn is_number(sequence: u64) -> bool {
    sequence != 0 && sequence < SEQUENCE_END
}

/// Writes a frame to where it is to lie in the stack.
#[derive(Debug)]
#[must_use = "a frame without its checksum is none"]
pub struct FrameWriter<'a> {
    words: Words<'a>,
    code: Code,
    stack: StackTop,
    live_ins: usize,
    is_refused: bool,
}

impl<'a> FrameWriter<'a> {
    /// Begins the frame of a function that goes on at `code` with this stack, at the beginning of `place`.
    #[inline]
    pub fn new(place: &'a mut [u64], code: Code, stack: StackTop) -> Self {
        Self {
            words: Words {
                place,
                used: FRAME_HEAD_WORDS,
            },
            code,
            stack,
            live_ins: 0,
            is_refused: false,
        }
    }

    /// Values that are alive where the function goes on.
    #[inline]
    pub fn live_ins(mut self, values: &[u64]) -> Self {
        self.live_ins += values.len();
        let is_written = !self.is_refused && self.live_ins <= LIVE_INS_MAX;
        self.is_refused = !(is_written && self.words.push(values));
        self
    }

    /// As many values that lie in their places already, as little-endian words: from word 3 of the frame on.
    #[inline]
    pub fn live_ins_in_place(mut self, count: usize) -> Self {
        self.live_ins += count;
        let is_room = !self.is_refused && self.live_ins <= LIVE_INS_MAX;
        self.is_refused = !(is_room && self.words.skip(count));
        self
    }

    /// Writes the head, with which the frame is whole. `None` where it had too many values or too little room.
    #[inline]
    pub fn finish(self, salt: &SlotSalt) -> Option<Written> {
        if self.is_refused {
            return None;
        }
        let head = FrameHead {
            checksum: 0.into(),
            live_ins: self.live_ins as u8,
            zero: [0; 3],
            stack: self.stack.to_media()?,
            code: self.code.to_word().into(),
        };
        self.words
            .seal::<FRAME_HEAD_WORDS>(zerocopy::transmute!(head), salt)
    }
}
