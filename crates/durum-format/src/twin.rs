//! What the root puddle of a Twin pool says about the pool's two copies: `docs/format/twin.md`.

mod decision;
mod suspects;

pub use decision::{Copy, Whole, whole_copy};
pub use suspects::{
    BLOCK_SIZE, BLOCKS_PER_GROUP, GROUP_SIZE, SUSPECT_WORDS, SUSPECTS_SIZE, Suspect, Suspects,
    parse_suspects, suspects_offset,
};

use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::consts::{ADDRESS_END, HEADER_PER_UNIT, UNIT};
use crate::crc::Crc;

/// Where the root puddle has the pool's [`State`]: the only word of the first kilobyte that changes.
pub const STATE_OFFSET: u64 = 960;
/// Bytes of a place for a seal. There are two, at the end of the root puddle's header.
pub const SEAL_SIZE: usize = 1024;
/// Ranges that a seal can name.
pub const SEAL_RANGES_MAX: usize = (SEAL_SIZE - SEAL_HEAD) / 8;
/// The longest range of a seal, in bytes.
pub const SEAL_RANGE_MAX: usize = 0xffff;

const SEAL_HEAD: usize = size_of::<Head>();
const STAGE_BITS: u32 = 2;
/// In place of a stage: stage, settled and generation stand so many bits further up, and there is a list of
/// [`Suspects`].
const LISTED: u64 = 3;
const FLAG_SETTLED: u64 = 1 << STAGE_BITS;
const GENERATION_SHIFT: u32 = 3;

/// How far a transaction of a Twin pool has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum Stage {
    // Never renumber: the numbers are on the media.
    /// Both copies are whole.
    Idle = 0,
    /// A transaction may be changing main.
    Changing = 1,
    /// Main is whole, and is being copied to back.
    Copying = 2,
}

/// The state word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct State {
    /// The number of the transaction that it is about.
    pub generation: u64,
    /// How far that has come.
    pub stage: Stage,
    /// The back copy was whole when this was written. Otherwise that has to be found out from the seal of the
    /// transaction before.
    pub is_settled: bool,
    /// The copies differ in blocks of the list of [`Suspects`] only, or where the last seal says. An idle pool has no
    /// use for it: its word is as builds wrote it that know no list.
    pub is_listed: bool,
}

impl State {
    /// The word on the media.
    pub fn to_word(self) -> u64 {
        let settled = if self.is_settled { FLAG_SETTLED } else { 0 };
        let word = self.generation << GENERATION_SHIFT | settled | self.stage as u64;
        match self.is_listed && self.stage != Stage::Idle {
            true => word << STAGE_BITS | LISTED,
            false => word,
        }
    }

    /// The state of a word on the media; `None` for one that nobody has written.
    pub fn from_word(word: u64) -> Option<State> {
        let is_listed = word & LISTED == LISTED;
        let word = word >> if is_listed { STAGE_BITS } else { 0 };
        let stage = match word & ((1 << STAGE_BITS) - 1) {
            0 if !is_listed => Stage::Idle,
            1 => Stage::Changing,
            2 => Stage::Copying,
            _ => return None,
        };
        Some(State {
            generation: word >> GENERATION_SHIFT,
            stage,
            is_settled: word & FLAG_SETTLED != 0,
            is_listed,
        })
    }
}

/// Where in a root puddle of `size` bytes the seal of a generation lies: the one before has another place.
pub const fn seal_offset(size: u64, generation: u64) -> u64 {
    size / UNIT * HEADER_PER_UNIT - (1 + generation % 2) * SEAL_SIZE as u64
}

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct Head {
    generation: U64,
    count: U32,
    checksum: U32,
}

const _: () = assert!(size_of::<Head>() == 16);

/// A range of bytes of a seal: the address in the upper 48 bits, the length below.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SealRange(u64);

impl SealRange {
    /// The range, if it fits: at most [`SEAL_RANGE_MAX`] bytes.
    pub fn new(address: u64, length: usize) -> Option<Self> {
        (address < ADDRESS_END && (1..=SEAL_RANGE_MAX).contains(&length))
            .then_some(Self(address << 16 | length as u64))
    }

    /// Its first address.
    pub fn address(self) -> u64 {
        self.0 >> 16
    }

    /// Its length in bytes.
    pub fn length(self) -> usize {
        (self.0 & 0xffff) as usize
    }
}

/// What a transaction has changed: if a copy holds these bytes, it is as this transaction left it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seal {
    /// The transaction's number.
    pub generation: u64,
    /// The ranges that it announced.
    pub ranges: Vec<SealRange>,
    checksum: u32,
}

/// The checksum of a seal before the bytes of its ranges.
fn begin(generation: u64, ranges: &[SealRange]) -> Crc {
    let mut crc = Crc::new();
    crc.update(&generation.to_le_bytes());
    for range in ranges {
        crc.update(&range.0.to_le_bytes());
    }
    crc
}

impl Seal {
    /// The first bytes of a seal's place, of a transaction whose ranges hold what `contents` appends to the checksum,
    /// in their order.
    pub fn encode(
        generation: u64,
        ranges: &[SealRange],
        contents: impl FnOnce(&mut Crc),
        place: &mut [u8; SEAL_SIZE],
    ) -> usize {
        debug_assert!(ranges.len() <= SEAL_RANGES_MAX);
        let mut crc = begin(generation, ranges);
        contents(&mut crc);
        let head = Head {
            generation: generation.into(),
            count: (ranges.len() as u32).into(),
            checksum: crc.value().into(),
        };
        place[..SEAL_HEAD].copy_from_slice(head.as_bytes());
        let words = place[SEAL_HEAD..].as_chunks_mut::<8>().0;
        for (word, range) in words.iter_mut().zip(ranges) {
            *word = range.0.to_le_bytes();
        }
        SEAL_HEAD + 8 * ranges.len()
    }

    /// The seal in a place, if it can be one of this generation. Whether it is one shows its [checksum](Seal::matches).
    pub fn parse(place: &[u8], generation: u64) -> Option<Seal> {
        let (head, rest) = Head::ref_from_prefix(place).ok()?;
        let count = head.count.get() as usize;
        if head.generation.get() != generation || count > SEAL_RANGES_MAX {
            return None;
        }
        let words = rest.as_chunks::<8>().0.get(..count)?;
        let ranges: Vec<SealRange> = words
            .iter()
            .map(|word| u64::from_le_bytes(*word))
            .map(|word| SealRange::new(word >> 16, (word & 0xffff) as usize))
            .collect::<Option<_>>()?;
        Some(Seal {
            generation,
            ranges,
            checksum: head.checksum.get(),
        })
    }

    /// Whether the bytes that `contents` appends, those of the ranges in their order, are what the transaction left.
    ///
    /// # Errors
    /// What `contents` returns.
    pub fn matches<E>(&self, contents: impl FnOnce(&mut Crc) -> Result<(), E>) -> Result<bool, E> {
        let mut crc = begin(self.generation, &self.ranges);
        contents(&mut crc)?;
        Ok(crc.value() == self.checksum)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::puddle::{BITMAP_OFFSET, bitmap_words};

    #[test]
    fn states_are_read_as_they_were_written() {
        for stage in [Stage::Idle, Stage::Changing, Stage::Copying] {
            for (generation, is_settled) in [(0, false), (1, true), (u64::MAX >> 5, false)] {
                for is_listed in [false, true] {
                    let state = State {
                        generation,
                        stage,
                        is_settled,
                        is_listed: is_listed && stage != Stage::Idle,
                    };
                    assert_eq!(State::from_word(state.to_word()), Some(state));
                    // A build that knows no list finds no stage where there is one.
                    assert_eq!(state.to_word() & 3 == 3, state.is_listed);
                }
            }
        }
        for none in [3, 3 | 3 << 2, 7 << 4 | 3] {
            assert_eq!(State::from_word(none), None, "{none:#x}");
        }
        assert_eq!(State::from_word(0).unwrap().stage, Stage::Idle);
    }

    #[test]
    fn seals_lie_behind_the_bitmap_and_do_not_meet() {
        for units in [1, 2, 7, 128] {
            let size = units * UNIT;
            let (even, odd) = (seal_offset(size, 8), seal_offset(size, 9));
            assert!(BITMAP_OFFSET + 8 * bitmap_words(size) <= odd.min(even));
            assert_eq!(even.abs_diff(odd), SEAL_SIZE as u64);
            assert_eq!(even.max(odd) + SEAL_SIZE as u64, units * HEADER_PER_UNIT);
        }
    }

    #[test]
    fn a_changed_seal_or_changed_contents_do_not_match() {
        let bytes = *b"what a transaction has left";
        let ranges = [
            SealRange::new(0x2000_0000_1000, 8).unwrap(),
            SealRange::new(0x2000_0000_2003, 5).unwrap(),
        ];
        let contents = |bytes: &[u8], crc: &mut Crc| {
            crc.update(&bytes[..8]);
            crc.update(&bytes[8..13]);
        };
        let mut place = [0xaa; SEAL_SIZE];
        let used = Seal::encode(5, &ranges, |crc| contents(&bytes, crc), &mut place);
        assert_eq!(used, 32);
        let matches = |place: &[u8], bytes: &[u8]| {
            let seal = Seal::parse(place, 5)?;
            let read = |crc: &mut Crc| {
                contents(bytes, crc);
                Ok::<_, ()>(())
            };
            (seal.matches(read) == Ok(true)).then_some(seal)
        };
        assert_eq!(matches(&place, &bytes).unwrap().ranges, ranges);
        assert_eq!(Seal::parse(&place, 6), None);
        for at in 0..used {
            for bit in 0..8 {
                let mut changed = place;
                changed[at] ^= 1 << bit;
                assert_eq!(matches(&changed, &bytes), None, "byte {at}, bit {bit}");
            }
        }
        for at in 0..13 {
            let mut changed = bytes;
            changed[at] ^= 1;
            assert_eq!(matches(&place, &changed), None);
        }
    }

    #[test]
    fn what_fits_no_seal_is_refused() {
        assert_eq!(SealRange::new(ADDRESS_END, 1), None);
        assert_eq!(SealRange::new(4096, 0), None);
        assert_eq!(SealRange::new(4096, SEAL_RANGE_MAX + 1), None);
        let longest = SealRange::new(ADDRESS_END - 1, SEAL_RANGE_MAX).unwrap();
        assert_eq!(longest.address(), ADDRESS_END - 1);
        assert_eq!(longest.length(), SEAL_RANGE_MAX);
    }
}
