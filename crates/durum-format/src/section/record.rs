//! Records: what a thread says of the section that it is in.

use std::borrow::Cow;
use std::ops::Range;

use zerocopy::little_endian::U64;
use zerocopy::{FromBytes, IntoBytes};

use super::damage::Damage;
use super::frame::{Frames, Stack};
use super::layout::{
    BITS_MAX, LIVE_INS_MAX, LOCKS_MAX, MORE_BITS, MORE_STACK, REDO_MAX, RecordHead, SEQUENCE_END,
    bank_of,
};
use super::words::{Bits, BitsChange, Code, Lock, MediaStack, Redo, StackTop};

const HEAD_WORDS: usize = size_of::<RecordHead>() / 8;
/// The word of the first lock.
const FIRST_LOCK: usize = 3;

/// A whole record of a thread in a section.
#[derive(Clone, Copy, Debug)]
pub struct Record<'a> {
    /// Its number: the first record of a slot is 1, each further one is one more.
    pub sequence: u64,
    /// Where the section goes on.
    pub code: Code,
    /// How the stack is used; nothing where it is not.
    pub stack: Option<StackTop>,
    parts: Parts<'a>,
    of_slot: Stack<'a>,
}

impl<'a> Record<'a> {
    /// The values that are alive where the section goes on.
    pub fn live_ins(&self) -> impl ExactSizeIterator<Item = u64> + 'a {
        self.parts.live_ins.iter().map(|word| word.get())
    }

    /// The locks that the section holds, each as often as it does.
    pub fn locks(&self) -> impl Iterator<Item = Lock> + 'a {
        let others = self.parts.other_locks.iter().map(|word| word.get());
        let all = std::iter::once(self.parts.first_lock).chain(others);
        all.filter_map(Lock::from_word)
    }

    /// The words that are written again before the section goes on.
    pub fn redo(&self) -> impl ExactSizeIterator<Item = Redo> + 'a {
        redo(self.parts.redo)
    }

    /// The bits of bitmaps of which the record tells.
    pub fn bits(&self) -> impl ExactSizeIterator<Item = Bits> + 'a {
        bits(self.parts.bits)
    }

    /// How the callers go on, from the innermost one outwards.
    pub fn frames(&self) -> Frames<'a> {
        self.of_slot.frames(self.stack.unwrap_or_default())
    }
}

/// A whole record of a thread in no section.
#[derive(Clone, Copy, Debug)]
pub struct Idle<'a> {
    /// Its number.
    pub sequence: u64,
    bits: &'a [[U64; 2]],
}

impl<'a> Idle<'a> {
    /// The bits of bitmaps that sections of the thread have freed.
    pub fn bits(&self) -> impl ExactSizeIterator<Item = Bits> + 'a {
        bits(self.bits)
    }
}

fn redo(words: &[[U64; 2]]) -> impl ExactSizeIterator<Item = Redo> + '_ {
    let words = words.iter().map(|words| words.map(|word| word.get()));
    words.map(Redo::from_words)
}

fn bits(words: &[[U64; 2]]) -> impl ExactSizeIterator<Item = Bits> + '_ {
    let words = words.iter().map(|words| words.map(|word| word.get()));
    words.map(Bits::from_words)
}

/// The parts of a record, in their order.
#[derive(Clone, Copy, Debug)]
struct Parts<'a> {
    first_lock: u64,
    live_ins: &'a [U64],
    other_locks: &'a [U64],
    stack: Option<&'a U64>,
    redo: &'a [[U64; 2]],
    bits: &'a [[U64; 2]],
}

impl RecordHead {
    fn has_stack(&self) -> bool {
        self.more & MORE_STACK != 0
    }

    fn bits(&self) -> usize {
        usize::from(self.more & MORE_BITS)
    }

    /// Locks behind the first one.
    fn other_locks(&self) -> usize {
        usize::from(self.locks).saturating_sub(1)
    }

    fn counts(&self) -> [u8; 4] {
        [self.locks, self.live_ins, self.redo, self.more]
    }

    /// Words of the record, whatever the counts are.
    fn words(&self) -> usize {
        HEAD_WORDS
            + usize::from(self.live_ins)
            + self.other_locks()
            + usize::from(self.has_stack())
            + 2 * (usize::from(self.redo) + self.bits())
    }

    /// Splits what follows the head, of a record that has so many words.
    fn parts<'a>(&self, words: &'a [U64]) -> Option<Parts<'a>> {
        let (live_ins, words) = words.split_at_checked(usize::from(self.live_ins))?;
        let (other_locks, words) = words.split_at_checked(self.other_locks())?;
        let (stack, words) = words.split_at_checked(usize::from(self.has_stack()))?;
        let (redo, bits) = words
            .as_chunks()
            .0
            .split_at_checked(usize::from(self.redo))?;
        Some(Parts {
            first_lock: self.first_lock.get(),
            live_ins,
            other_locks,
            stack: stack.first(),
            redo,
            bits,
        })
    }
}

/// What lies in a bank.
pub(super) enum Found<'a> {
    /// Nothing was ever written there.
    Nothing,
    /// A record that is not whole.
    Torn,
    Idle(Idle<'a>),
    Section(Record<'a>),
}

/// A bank of a slot.
pub(super) struct Bank<'a> {
    pub(super) bank: usize,
    pub(super) words: &'a [U64],
    pub(super) stack: Stack<'a>,
    /// The addresses of the store.
    pub(super) store: Range<u64>,
}

impl<'a> Bank<'a> {
    /// Reads the record. Frames are not looked at.
    ///
    /// # Errors
    /// A record whose checksum fits, and which nobody writes.
    pub(super) fn read(&self) -> Result<Found<'a>, Damage> {
        let Ok((head, _)) = RecordHead::ref_from_prefix(self.words.as_bytes()) else {
            return Ok(Found::Torn);
        };
        let sequence = head.sequence.get();
        if sequence == 0 {
            let is_unused = self.words.iter().all(|word| word.get() == 0);
            return Ok(if is_unused {
                Found::Nothing
            } else {
                Found::Torn
            });
        }
        let Some(words) = self.words.get(..head.words()) else {
            return Ok(Found::Torn);
        };
        if self.stack.salt.checksum(words.as_bytes()) != head.checksum.get() {
            return Ok(Found::Torn);
        }
        let Some(parts) = words.get(HEAD_WORDS..).and_then(|words| head.parts(words)) else {
            return Ok(Found::Torn);
        };
        self.check_head(head)?;
        let Some(code) = Code::from_word(head.code.get()) else {
            self.check_bits(HEAD_WORDS, parts.bits, &[BitsChange::Freed])?;
            let bits = parts.bits;
            return Ok(Found::Idle(Idle { sequence, bits }));
        };
        self.check_locks(head.locks, &parts)?;
        let mut at = HEAD_WORDS + parts.live_ins.len() + parts.other_locks.len();
        let stack = parts.stack.map(|word| self.check_stack(at, word));
        at += usize::from(parts.stack.is_some());
        for redo in redo(parts.redo) {
            self.check_address("address of a word to write again", at, redo.address)?;
            if redo.bytes == 0 {
                let expected = "at least one byte of it";
                return Err(self.wrong("bytes to write again", at, redo.address, expected));
            }
            at += 2;
        }
        let any = [BitsChange::Taken, BitsChange::TakenBlank, BitsChange::Freed];
        self.check_bits(at, parts.bits, &any)?;
        Ok(Found::Section(Record {
            sequence,
            code,
            stack: stack.transpose()?,
            parts,
            of_slot: self.stack,
        }))
    }

    fn wrong(
        &self,
        field: &'static str,
        word: usize,
        found: u64,
        expected: impl Into<Cow<'static, str>>,
    ) -> Damage {
        Damage::Record {
            slot: self.stack.slot,
            bank: self.bank,
            field,
            word,
            found,
            expected: expected.into(),
        }
    }

    fn check_head(&self, head: &RecordHead) -> Result<(), Damage> {
        let (sequence, first_lock) = (head.sequence.get(), head.first_lock.get());
        if sequence >= SEQUENCE_END {
            return Err(self.wrong("sequence number", 1, sequence, "less than 2^63"));
        }
        if bank_of(sequence) != self.bank {
            return Err(Damage::OtherBank {
                slot: self.stack.slot,
                bank: self.bank,
                sequence,
            });
        }
        let counts = head.counts();
        let found = u64::from(u32::from_le_bytes(counts));
        if usize::from(head.locks) > LOCKS_MAX
            || usize::from(head.live_ins) > LIVE_INS_MAX
            || usize::from(head.redo) > REDO_MAX
            || head.bits() > BITS_MAX
            || head.more & !(MORE_BITS | MORE_STACK) != 0
        {
            let expected = format!(
                "up to {LOCKS_MAX} locks, {LIVE_INS_MAX} live-ins, {REDO_MAX} words to write again and {BITS_MAX} \
                 words of bitmaps"
            );
            return Err(self.wrong("counts", 0, found, expected));
        }
        if head.code.get() == 0 && (counts[..3] != [0; 3] || head.has_stack()) {
            let expected = "0 but for words of bitmaps, as the thread is in no section";
            return Err(self.wrong("counts", 0, found, expected));
        }
        if head.locks == 0 && first_lock != 0 {
            return Err(self.wrong(
                "first lock",
                FIRST_LOCK,
                first_lock,
                "0, as there is no lock",
            ));
        }
        Ok(())
    }

    fn check_address(&self, field: &'static str, word: usize, address: u64) -> Result<(), Damage> {
        let is_inside = self.store.contains(&address) && self.store.end - address >= 8;
        match is_inside && address.is_multiple_of(8) {
            true => Ok(()),
            false => {
                let expected = "a multiple of 8 in the store's range";
                Err(self.wrong(field, word, address, expected))
            }
        }
    }

    /// Bits, from this word of the record on, of which these changes are told.
    fn check_bits(
        &self,
        at: usize,
        words: &[[U64; 2]],
        changes: &[BitsChange],
    ) -> Result<(), Damage> {
        for (index, bits) in bits(words).enumerate() {
            let (field, word) = ("address of a word of a bitmap", at + 2 * index);
            self.check_address(field, word, bits.address)?;
            if !changes.contains(&bits.change) {
                let expected = "bits that are freed, as the thread is in no section";
                return Err(self.wrong(field, word, bits.address, expected));
            }
        }
        Ok(())
    }

    fn check_locks(&self, count: u8, parts: &Parts<'a>) -> Result<(), Damage> {
        let first = (FIRST_LOCK, parts.first_lock);
        let others = (HEAD_WORDS + parts.live_ins.len()..).zip(parts.other_locks);
        let others = others.map(|(at, word)| (at, word.get()));
        let locks = std::iter::once(first)
            .chain(others)
            .take(usize::from(count));
        for (at, word) in locks {
            if Lock::from_word(word).is_none() {
                let expected = "the address of a lock, or the hash of its name";
                return Err(self.wrong("lock", at, word, expected));
            }
        }
        Ok(())
    }

    fn check_stack(&self, at: usize, word: &U64) -> Result<StackTop, Damage> {
        let found = word.get();
        let media: MediaStack = zerocopy::transmute!(*word);
        let top = StackTop::from_media(media).ok_or("no checksum of no frame");
        let top = top.and_then(|top| self.stack.check(top).map(|()| top));
        top.map_err(|expected| self.wrong("stack", at, found, expected))
    }
}
