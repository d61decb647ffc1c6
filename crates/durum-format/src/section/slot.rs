//! A slot: which of its two records counts.

use std::ops::Range;

use zerocopy::FromBytes;
use zerocopy::little_endian::U64;

use super::damage::{Damage, Flaw};
use super::frame::Stack;
use super::layout::{BANK_WORDS, BANKS, SlotSalt};
use super::record::{Bank, Found, Idle, Record};

/// Where the thread of a slot is.
#[derive(Clone, Copy, Debug)]
pub enum State<'a> {
    /// No thread has recorded anything.
    Unused,
    /// In no section, as the record says.
    Idle(Idle<'a>),
    /// In a section, which goes on as the record says.
    InSection(Record<'a>),
}

impl State<'_> {
    /// The number of the record that counts; 0 if there is none. The next one has one more.
    pub fn sequence(&self) -> u64 {
        match self {
            Self::Unused => 0,
            Self::Idle(idle) => idle.sequence,
            Self::InSection(record) => record.sequence,
        }
    }
}

/// A record that is whole, or why it does not count.
type Whole<'a> = Result<State<'a>, Flaw>;

/// What one thread has recorded.
#[derive(Clone, Debug)]
pub struct Slot<'a> {
    banks: [&'a [U64]; BANKS],
    stack: Stack<'a>,
    store: Range<u64>,
}

impl<'a> Slot<'a> {
    /// The slot that these bytes are: two banks and a stack. `None` if there are fewer.
    pub fn of(number: u32, salt: SlotSalt, bytes: &'a [u8], store: Range<u64>) -> Option<Self> {
        let whole = bytes.get(..bytes.len() / 8 * 8)?;
        let words = <[U64]>::ref_from_bytes(whole).ok()?;
        let (first, words) = words.split_at_checked(BANK_WORDS)?;
        let (second, words) = words.split_at_checked(BANK_WORDS)?;
        let stack = Stack {
            slot: number,
            salt,
            words,
        };
        Some(Self {
            banks: [first, second],
            stack,
            store,
        })
    }

    /// Its number.
    pub fn number(&self) -> u32 {
        self.stack.slot
    }

    /// Where its thread is: the record with the higher number counts, of those that are whole with their frames.
    ///
    /// # Errors
    /// What no crash leaves behind.
    pub fn current(&self) -> Result<State<'a>, Damage> {
        let (even, odd) = (self.read(0)?, self.read(1)?);
        if let (Ok(even), Ok(odd)) = (&even, &odd)
            && even.sequence().abs_diff(odd.sequence()) != 1
        {
            return Err(Damage::Apart {
                slot: self.number(),
                sequences: [even.sequence(), odd.sequence()],
            });
        }
        let sequence = |found: &Whole<'a>| found.as_ref().map_or(0, State::sequence);
        let is_even_newer = sequence(&even) > sequence(&odd);
        let (newer, older) = match is_even_newer {
            true => (even, odd),
            false => (odd, even),
        };
        let newer = match with_frames(newer)? {
            Ok(state) => return Ok(state),
            Err(flaw) => flaw,
        };
        let older = match with_frames(older)? {
            Ok(state) => return Ok(state),
            Err(flaw) => flaw,
        };
        let flaws = match is_even_newer {
            true => [newer, older],
            false => [older, newer],
        };
        match flaws {
            // The first record of all goes to bank 1; bank 0 is not written before that one is durable.
            [Flaw::Missing, _] => Ok(State::Unused),
            _ => Err(Damage::NoRecord {
                slot: self.number(),
                flaws,
            }),
        }
    }

    fn read(&self, bank: usize) -> Result<Whole<'a>, Damage> {
        let words = self.banks.get(bank).copied().unwrap_or_default();
        let (stack, store) = (self.stack, self.store.clone());
        let found = Bank {
            bank,
            words,
            stack,
            store,
        }
        .read()?;
        Ok(match found {
            Found::Nothing => Err(Flaw::Missing),
            Found::Torn => Err(Flaw::Record),
            Found::Idle(idle) => Ok(State::Idle(idle)),
            Found::Section(record) => Ok(State::InSection(record)),
        })
    }
}

/// A record whose frames are not there is as torn as one that is not there itself: one fence makes both durable.
fn with_frames(found: Whole<'_>) -> Result<Whole<'_>, Damage> {
    match found {
        Ok(State::InSection(record)) => Ok(record.frames().check()?.and(found)),
        found => Ok(found),
    }
}
