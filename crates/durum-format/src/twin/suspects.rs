//! The blocks of a Twin pool in which its copies may differ: `docs/format/twin.md`.

use std::ops::Range;

use crate::consts::{ADDRESS_END, HEADER_PER_UNIT, UNIT};
use crate::crc::crc32c;

/// Bytes of a block: what recovery copies at least.
pub const BLOCK_SIZE: u64 = 64 << 10;
/// Blocks that a word names, side by side.
pub const BLOCKS_PER_GROUP: u32 = 16;
/// Bytes of memory that a word is about: a puddle has whole groups.
pub const GROUP_SIZE: u64 = BLOCK_SIZE * BLOCKS_PER_GROUP as u64;
/// Words of the list.
pub const SUSPECT_WORDS: usize = 256;
/// Bytes of the list.
pub const SUSPECTS_SIZE: usize = 8 * SUSPECT_WORDS;

const GROUP_SHIFT: u32 = 37;
const BLOCKS_SHIFT: u32 = 21;

/// Where in the file of a root puddle of `size` bytes the list lies: at the end of the header's back copy.
pub const fn suspects_offset(size: u64) -> u64 {
    size + size / UNIT * HEADER_PER_UNIT - SUSPECTS_SIZE as u64
}

/// A word of the list: some of the blocks of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Suspect {
    group: u32,
    blocks: u16,
}

impl Suspect {
    /// Every block of the pool. Else nothing is in the first group: no puddle lies there.
    pub const EVERYTHING: Suspect = Suspect {
        group: 0,
        blocks: u16::MAX,
    };

    /// These blocks of the group with this number, which is the address of its first byte in [`GROUP_SIZE`].
    pub const fn new(group: u32, blocks: u16) -> Self {
        Suspect { group, blocks }
    }

    /// The word on the media. The upper 27 bits are the group, 16 the blocks, and the others tell a word that was
    /// written from one that was not.
    pub fn to_word(self) -> u64 {
        let named = u64::from(self.group) << GROUP_SHIFT | u64::from(self.blocks) << BLOCKS_SHIFT;
        let check = crc32c(&named.to_le_bytes()) & ((1 << BLOCKS_SHIFT) - 1);
        named | u64::from(check)
    }

    /// What a word of the list says; `None` for one that nobody has written.
    pub fn from_word(word: u64) -> Option<Suspect> {
        let suspect = Suspect {
            group: (word >> GROUP_SHIFT) as u32,
            blocks: (word >> BLOCKS_SHIFT) as u16,
        };
        let is_one = suspect.to_word() == word
            && suspect.blocks != 0
            && (suspect.group != 0 || suspect == Self::EVERYTHING);
        is_one.then_some(suspect)
    }

    /// The addresses of its blocks, neighbours as one range.
    pub fn ranges(self) -> impl Iterator<Item = Range<u64>> {
        let start = u64::from(self.group) * GROUP_SIZE;
        let mut rest = self.blocks;
        std::iter::from_fn(move || {
            if rest == 0 {
                return None;
            }
            let first = rest.trailing_zeros();
            let count = (rest >> first).trailing_ones();
            rest &= !(u16::MAX >> (u16::BITS - count) << first);
            let block = |index: u32| start + u64::from(index) * BLOCK_SIZE;
            Some(block(first)..block(first + count))
        })
    }
}

const _: () = assert!(ADDRESS_END / GROUP_SIZE <= 1 << (64 - GROUP_SHIFT));

/// Where the copies of a pool may differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Suspects {
    /// Anywhere.
    Everywhere,
    /// In these ranges of addresses.
    In(Vec<Range<u64>>),
}

/// Reads the list. `None` if it has a word that nobody has written: then nothing is known.
pub fn parse_suspects(list: &[u8]) -> Option<Suspects> {
    let words = list.as_chunks::<8>().0.get(..SUSPECT_WORDS)?;
    let mut ranges = Vec::new();
    let mut is_everywhere = false;
    for word in words.iter().map(|word| u64::from_le_bytes(*word)) {
        if word != 0 {
            let suspect = Suspect::from_word(word)?;
            is_everywhere |= suspect == Suspect::EVERYTHING;
            ranges.extend(suspect.ranges());
        }
    }
    Some(match is_everywhere {
        true => Suspects::Everywhere,
        false => Suspects::In(ranges),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::puddle::{BITMAP_OFFSET, IMMUTABLE_SIZE, bitmap_words, header_size};

    #[test]
    fn the_list_lies_behind_the_back_copy_of_the_bitmap() {
        for units in [1, 2, 7, 128] {
            let size = units * UNIT;
            let offset = suspects_offset(size);
            assert!(offset >= size + BITMAP_OFFSET + 8 * bitmap_words(size));
            assert!(offset >= size + IMMUTABLE_SIZE && offset.is_multiple_of(64));
            assert_eq!(offset + SUSPECTS_SIZE as u64, size + header_size(size));
        }
    }

    #[test]
    fn words_are_read_as_they_were_written_and_no_changed_bit_is_missed() {
        for group in [2, 3, 0x123_4567, (1 << 27) - 1] {
            for blocks in [1, 0x8000, 0x00f0, u16::MAX] {
                let suspect = Suspect::new(group, blocks);
                let word = suspect.to_word();
                assert_eq!(Suspect::from_word(word), Some(suspect));
                for bit in 0..64 {
                    assert_eq!(Suspect::from_word(word ^ 1 << bit), None, "bit {bit}");
                }
            }
        }
        for none in [
            0,
            1,
            u64::MAX,
            Suspect::new(5, 0).to_word(),
            Suspect::new(0, 1).to_word(),
        ] {
            assert_eq!(Suspect::from_word(none), None, "{none:#x}");
        }
        let everything = Suspect::EVERYTHING;
        assert_eq!(Suspect::from_word(everything.to_word()), Some(everything));
    }

    #[test]
    fn blocks_side_by_side_are_one_range() {
        let start = 7 * GROUP_SIZE;
        let ranges = |blocks| Suspect::new(7, blocks).ranges().collect::<Vec<_>>();
        for (blocks, size) in [(1, BLOCK_SIZE), (u16::MAX, GROUP_SIZE)] {
            let one = start..start + size;
            assert_eq!(ranges(blocks), vec![one]);
        }
        let end = start + GROUP_SIZE;
        assert_eq!(
            ranges(0xc006),
            [
                start + BLOCK_SIZE..start + 3 * BLOCK_SIZE,
                end - 2 * BLOCK_SIZE..end
            ]
        );
    }

    #[test]
    fn a_list_is_read_word_by_word_and_is_nothing_with_one_that_is_damaged() {
        let mut list = [0; SUSPECTS_SIZE];
        assert_eq!(parse_suspects(&list), Some(Suspects::In(Vec::new())));
        let put = |list: &mut [u8], at: usize, word: u64| {
            list[8 * at..8 * at + 8].copy_from_slice(&word.to_le_bytes());
        };
        put(&mut list, 0, Suspect::new(9, 1).to_word());
        put(&mut list, 255, Suspect::new(2, 2).to_word());
        let of = |group: u64, block: u64| {
            let start = group * GROUP_SIZE + block * BLOCK_SIZE;
            start..start + BLOCK_SIZE
        };
        let found = vec![of(9, 0), of(2, 1)];
        assert_eq!(parse_suspects(&list), Some(Suspects::In(found)));
        put(&mut list, 17, Suspect::EVERYTHING.to_word());
        assert_eq!(parse_suspects(&list), Some(Suspects::Everywhere));
        put(&mut list, 18, 1);
        assert_eq!(parse_suspects(&list), None);
        assert_eq!(parse_suspects(&list[..SUSPECTS_SIZE - 8]), None, "short");
    }
}
