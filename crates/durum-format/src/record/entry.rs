//! What a record changes: words of lines, bits of words, ranges of bytes; and which bytes are home already.
//!
//! An entry begins with one word that names a line and, in its upper byte, which of the line's eight words it is about.
//! A change of eight bytes so takes 16, a whole line 72. All of it is written as words, because the commit path builds
//! records in registers.

use zerocopy::IntoBytes;

use crate::crc::crc32c;

/// Bytes of a line.
const LINE: u64 = 64;
const KIND_MASK: u64 = LINE - 1;
/// Where the mask of words lies in the first word of an entry.
const MASK_SHIFT: u32 = 56;
const ADDRESS_MASK: u64 = (1 << MASK_SHIFT) - LINE;
/// Where the length lies in the second word of a copy.
const LENGTH_SHIFT: u32 = 8;
/// Bytes that one copy may hold, and that one entry may call fresh.
pub const COPY_MAX: usize = 1 << 31;

const KIND_STORE: u64 = 1;
const KIND_SET: u64 = 2;
const KIND_CLEAR: u64 = 3;
const KIND_COPY: u64 = 4;
const KIND_FRESH: u64 = 5;

/// What happens to each of the words that an entry names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// The word becomes what the entry says.
    Store,
    /// The bits that the entry's word has become 1.
    SetBits,
    /// The bits that the entry's word has become 0.
    ClearBits,
}

impl Operation {
    /// What a word that was `old` becomes by an entry that holds `word`.
    #[inline]
    pub fn apply(self, old: u64, word: u64) -> u64 {
        match self {
            Self::Store => word,
            Self::SetBits => old | word,
            Self::ClearBits => old & !word,
        }
    }
}

/// One change, or the condition on one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change<'a> {
    /// Words of one line.
    Words {
        /// What happens to them.
        operation: Operation,
        /// The line's address, a multiple of 64.
        line: u64,
        /// Bit n: word n of the line is changed. Not 0.
        mask: u8,
        /// One word for each bit, the lowest first; as on the media, little-endian.
        words: &'a [u64],
    },
    /// A range of bytes.
    Copy {
        /// Where they go.
        target: u64,
        /// The bytes.
        data: &'a [u8],
    },
    /// A range of bytes that went home with the record: a condition on it, and nothing to replay. The record is there
    /// only if they are.
    Fresh {
        /// Where they are.
        target: u64,
        /// How many.
        len: u64,
        /// Their CRC-32C.
        checksum: u32,
    },
}

impl Change<'_> {
    /// The range that it is about: address and bytes.
    pub fn range(&self) -> (u64, u64) {
        match self {
            Self::Words { line, mask, .. } => {
                let first = u64::from(mask.trailing_zeros());
                let end = u64::from(8 - mask.leading_zeros());
                (line + 8 * first, 8 * (end - first))
            }
            Self::Copy { target, data } => (*target, data.len() as u64),
            Self::Fresh { target, len, .. } => (*target, *len),
        }
    }
}

/// An entry that no writer makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the entry at word {at} of its record is not one that a writer makes ({word:#018x})")]
pub struct EntryError {
    /// Where in the record's body it begins, in words.
    pub at: usize,
    /// Its first word.
    pub word: u64,
}

/// The words of the longest entry about one line.
pub const ENTRY_WORDS_MAX: usize = 9;

/// The first word of an entry about words of the line at `line`. The words that `mask` selects follow it, the lowest
/// first.
#[inline]
pub fn words_head(operation: Operation, line: u64, mask: u8) -> u64 {
    debug_assert!(mask != 0 && line & !ADDRESS_MASK == 0);
    let kind = match operation {
        Operation::Store => KIND_STORE,
        Operation::SetBits => KIND_SET,
        Operation::ClearBits => KIND_CLEAR,
    };
    (u64::from(mask) << MASK_SHIFT | line | kind).to_le()
}

/// What the first word of an entry that stores the word at `target`, a multiple of 8, has of that word alone. Those of
/// several words of a line, one with the other, make the first word of an entry that stores all of these.
#[inline(always)]
pub fn store_head(target: u64) -> u64 {
    debug_assert!(target & (!ADDRESS_MASK ^ KIND_MASK) == 0);
    let bit = 1_u64.wrapping_shl(MASK_SHIFT | (target / 8) as u32);
    (bit | target & ADDRESS_MASK | KIND_STORE).to_le()
}

/// How many words an entry with the first word `head` has before the one with this [`store_head`].
#[inline]
pub fn words_before(head: u64, of_word: u64) -> usize {
    let (mask, bit) = (
        u64::from_le(head) >> MASK_SHIFT,
        u64::from_le(of_word) >> MASK_SHIFT,
    );
    (mask & (bit - 1)).count_ones() as usize
}

/// Appends an entry about words of the line at `line`: those of `words` that `mask` selects.
#[inline]
pub fn push_words(out: &mut Vec<u64>, operation: Operation, line: u64, mask: u8, words: &[u64; 8]) {
    out.reserve(ENTRY_WORDS_MAX);
    out.push(words_head(operation, line, mask));
    let mut rest = mask;
    while rest != 0 {
        out.push(words[rest.trailing_zeros() as usize].to_le());
        rest &= rest - 1;
    }
}

/// Appends an entry about the word at `target`, a multiple of 8.
#[inline]
pub fn push_word(out: &mut Vec<u64>, operation: Operation, target: u64, word: u64) {
    let (line, index) = (target & !(LINE - 1), target / 8 % 8);
    out.extend_from_slice(&[words_head(operation, line, 1 << index), word.to_le()]);
}

/// The first two words of an entry about `len` bytes at `target`.
#[inline]
fn range_head(kind: u64, target: u64, len: usize) -> [u64; 2] {
    let second = target & KIND_MASK | (len as u64) << LENGTH_SHIFT;
    [(target & ADDRESS_MASK | kind).to_le(), second.to_le()]
}

/// The words of an entry that copies a part of a word.
pub const PART_WORDS: usize = 3;

/// The first two words of an entry that copies `len` bytes, fewer than 8, to `target`. The third one holds them in its
/// lowest bytes.
#[inline]
pub fn part_head(target: u64, len: usize) -> [u64; 2] {
    debug_assert!(len > 0 && len < 8);
    range_head(KIND_COPY, target, len)
}

/// Appends an entry that copies the lowest `len` bytes of `part`, fewer than 8, to `target`.
#[inline]
pub fn push_part(out: &mut Vec<u64>, target: u64, len: usize, part: u64) {
    let [first, second] = part_head(target, len);
    out.extend_from_slice(&[first, second, part.to_le()]);
}

/// The first two words of an entry that copies `len` bytes to `target`, at most [`COPY_MAX`]. They follow, in words of
/// which the last is filled up with zeros ([`push_bytes`]).
#[inline]
pub fn copy_head(target: u64, len: usize) -> [u64; 2] {
    debug_assert!(len <= COPY_MAX);
    range_head(KIND_COPY, target, len)
}

/// Appends bytes as words, of which the last is filled up with zeros.
pub fn push_bytes(out: &mut Vec<u64>, data: &[u8]) {
    let (words, rest) = data.as_chunks::<8>();
    out.extend(words.iter().map(|word| u64::from_ne_bytes(*word)));
    if !rest.is_empty() {
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        out.push(u64::from_ne_bytes(last));
    }
}

/// Appends entries that copy `data` to `target`.
pub fn push_copy(out: &mut Vec<u64>, target: u64, data: &[u8]) {
    for (index, data) in data.chunks(COPY_MAX).enumerate() {
        let target = target + (index * COPY_MAX) as u64;
        out.extend_from_slice(&copy_head(target, data.len()));
        push_bytes(out, data);
    }
}

/// Appends entries that say that home holds `data` at `target`.
pub fn push_fresh(out: &mut Vec<u64>, target: u64, data: &[u8]) {
    for (index, data) in data.chunks(COPY_MAX).enumerate() {
        let target = target + (index * COPY_MAX) as u64;
        push_fresh_sum(out, target, data.len(), crc32c(data));
    }
}

/// Appends an entry that says that home holds `len` bytes with this CRC-32C at `target`; at most [`COPY_MAX`].
#[inline]
pub fn push_fresh_sum(out: &mut Vec<u64>, target: u64, len: usize, sum: u32) {
    debug_assert!(len <= COPY_MAX);
    let [first, second] = range_head(KIND_FRESH, target, len);
    out.extend_from_slice(&[first, second, u64::from(sum).to_le()]);
}

/// An entry about words of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Words<'a> {
    /// What happens to them.
    pub operation: Operation,
    /// The line's address, a multiple of 64.
    pub line: u64,
    /// Bit n: word n of the line is changed. Not 0.
    pub mask: u8,
    /// One word for each bit, the lowest first; as on the media, little-endian. What follows them in the body is there,
    /// too.
    pub behind: &'a [u64],
}

impl Words<'_> {
    /// If it is one: which of the line, and the entry's word for it.
    #[inline(always)]
    pub fn one(&self) -> Option<(usize, u64)> {
        let word = *self.behind.first()?;
        let is_one = self.mask & self.mask.wrapping_sub(1) == 0;
        is_one.then(|| (self.mask.trailing_zeros() as usize, u64::from_le(word)))
    }
}

/// The entries of a record's body.
#[derive(Clone, Debug)]
pub struct Entries<'a> {
    rest: &'a [u64],
    /// The words of all.
    len: usize,
}

impl<'a> Entries<'a> {
    /// The entries in `body`.
    #[inline]
    pub fn new(body: &'a [u64]) -> Self {
        let len = body.len();
        Self { rest: body, len }
    }

    /// Whether no entry is left.
    #[inline(always)]
    pub fn is_at_end(&self) -> bool {
        self.rest.is_empty()
    }

    /// Where in the body the next entry begins, in words.
    pub fn position(&self) -> usize {
        self.len - self.rest.len()
    }

    /// The next entry, if it stores one word: its address, and the word. Otherwise nothing moves.
    #[inline(always)]
    pub fn next_word(&mut self) -> Option<(u64, u64)> {
        let ([first, word], rest) = self.rest.split_first_chunk()?;
        let first = u64::from_le(*first);
        let mask = first >> MASK_SHIFT;
        if first & KIND_MASK != KIND_STORE || !mask.is_power_of_two() {
            return None;
        }
        self.rest = rest;
        let target = (first & ADDRESS_MASK) + 8 * u64::from(mask.trailing_zeros());
        Some((target, u64::from_le(*word)))
    }

    /// The next entry, if it is about words of a line. Otherwise nothing moves, and [`Entries::next`] tells what it is.
    #[inline(always)]
    pub fn next_words(&mut self) -> Option<Words<'a>> {
        let (first, behind) = self.rest.split_first()?;
        let first = u64::from_le(*first);
        let (line, mask) = (first & ADDRESS_MASK, (first >> MASK_SHIFT) as u8);
        let operation = match first & KIND_MASK {
            KIND_STORE => Operation::Store,
            KIND_SET => Operation::SetBits,
            KIND_CLEAR => Operation::ClearBits,
            _ => return None,
        };
        // Mostly one word: to count bits takes a while where there is no instruction for it.
        let count = match mask & mask.wrapping_sub(1) {
            _ if mask == 0 => return None,
            0 => 1,
            _ => mask.count_ones() as usize,
        };
        self.rest = behind.get(count..)?;
        Some(Words {
            operation,
            line,
            mask,
            behind,
        })
    }

    /// Goes on behind the next entry, if that says what is home already. Whether it does.
    #[inline(always)]
    pub fn skip_fresh(&mut self) -> bool {
        match self.rest {
            [first, _, _, rest @ ..] if u64::from_le(*first) & KIND_MASK == KIND_FRESH => {
                self.rest = rest;
                true
            }
            _ => false,
        }
    }

    /// The next entry, if it copies fewer than 8 bytes of one line: where they go, and the bytes. Otherwise nothing
    /// moves, and [`Entries::next`] tells what it is.
    #[inline(always)]
    pub fn next_part(&mut self) -> Option<(u64, &'a [u8])> {
        let [first, second, bytes] = self.rest.first_chunk()?;
        let (first, second) = (u64::from_le(*first), u64::from_le(*second));
        let (offset, len) = (second & 0xff, (second >> LENGTH_SHIFT) as usize);
        let is_copy = first & (KIND_MASK | !ADDRESS_MASK) == KIND_COPY;
        if !is_copy || len == 0 || len >= 8 || offset + len as u64 > LINE {
            return None;
        }
        self.rest = &self.rest[PART_WORDS..];
        Some(((first & ADDRESS_MASK) + offset, &bytes.as_bytes()[..len]))
    }

    #[inline]
    fn parse(&self) -> Option<(Change<'a>, usize)> {
        let rest = self.rest;
        let first = u64::from_le(*rest.first()?);
        let (line, mask) = (first & ADDRESS_MASK, (first >> MASK_SHIFT) as u8);
        let operation = match first & KIND_MASK {
            KIND_STORE => Operation::Store,
            KIND_SET => Operation::SetBits,
            KIND_CLEAR => Operation::ClearBits,
            kind @ (KIND_COPY | KIND_FRESH) if mask == 0 => {
                let second = u64::from_le(*rest.get(1)?);
                let (offset, len) = (second & 0xff, (second >> LENGTH_SHIFT) as usize);
                if offset >= LINE || len == 0 || len > COPY_MAX {
                    return None;
                }
                let target = line + offset;
                if kind == KIND_FRESH {
                    let checksum = u32::try_from(u64::from_le(*rest.get(2)?)).ok()?;
                    let len = len as u64;
                    return Some((
                        Change::Fresh {
                            target,
                            len,
                            checksum,
                        },
                        3,
                    ));
                }
                let words = len.div_ceil(8);
                let data = rest.get(2..2 + words)?.as_bytes().get(..len)?;
                return Some((Change::Copy { target, data }, 2 + words));
            }
            _ => return None,
        };
        let count = mask.count_ones() as usize;
        let words = rest.get(1..1 + count).filter(|words| !words.is_empty())?;
        Some((
            Change::Words {
                operation,
                line,
                mask,
                words,
            },
            1 + count,
        ))
    }
}

impl<'a> Iterator for Entries<'a> {
    type Item = Result<Change<'a>, EntryError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let word = u64::from_le(*self.rest.first()?);
        match self.parse() {
            Some((change, words)) => {
                self.rest = &self.rest[words..];
                Some(Ok(change))
            }
            None => {
                let at = Entries::position(self);
                self.rest = &[];
                Some(Err(EntryError { at, word }))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE_AT: u64 = 0x2000_0012_3440;

    #[test]
    fn what_is_home_already_is_skipped() {
        let mut out = Vec::new();
        push_fresh(&mut out, LINE_AT + 5, &[1; 30]);
        push_word(&mut out, Operation::Store, LINE_AT + 8, 7);
        let mut entries = Entries::new(&out);
        assert_eq!(entries.next_words(), None);
        assert!(entries.skip_fresh());
        assert!(!entries.skip_fresh());
        assert_eq!(
            entries.next_words().and_then(|words| words.one()),
            Some((1, 7))
        );
        assert!(entries.is_at_end());
        assert!(!entries.skip_fresh());
    }

    #[test]
    fn every_mask_comes_back_as_it_went() {
        let words = [10, 11, 12, 13, 14, 15, 16, u64::MAX];
        for mask in 1..=255u8 {
            for operation in [Operation::Store, Operation::SetBits, Operation::ClearBits] {
                let mut out = vec![7];
                push_words(&mut out, operation, LINE_AT, mask, &words);
                push_words(&mut out, operation, LINE_AT + 64, 1, &words);
                let expected: Vec<u64> = (0..8)
                    .filter(|bit| mask >> bit & 1 == 1)
                    .map(|bit| words[bit])
                    .collect();
                let mut entries = Entries::new(&out[1..]);
                let same = entries.clone().next_words().expect("is about words");
                assert_eq!(
                    (same.operation, same.line, same.mask),
                    (operation, LINE_AT, mask)
                );
                assert_eq!(same.behind[..expected.len()], expected);
                let one =
                    (expected.len() == 1).then(|| (mask.trailing_zeros() as usize, expected[0]));
                assert_eq!(same.one(), one);
                assert_eq!(
                    entries.next(),
                    Some(Ok(Change::Words {
                        operation,
                        line: LINE_AT,
                        mask,
                        words: &expected
                    }))
                );
                assert!(matches!(
                    entries.next(),
                    Some(Ok(Change::Words { mask: 1, .. }))
                ));
                assert_eq!(entries.next(), None);
            }
        }
    }

    #[test]
    fn copies_of_any_length_and_place_come_back() {
        let data: Vec<u8> = (0..200).collect();
        for len in 1..data.len() {
            let mut out = Vec::new();
            let target = LINE_AT + len as u64 % 64;
            push_copy(&mut out, target, &data[..len]);
            let found: Vec<_> = Entries::new(&out).collect();
            let data = &data[..len];
            assert_eq!(found, [Ok(Change::Copy { target, data })]);
        }
    }

    #[test]
    fn what_is_fresh_comes_back() {
        let data: Vec<u8> = (0..2000u32).map(|byte| (byte * 7) as u8).collect();
        let mut out = Vec::new();
        for len in [1, 63, 64, 1024, 2000] {
            push_fresh(&mut out, LINE_AT + len as u64, &data[..len]);
        }
        let found: Vec<_> = Entries::new(&out).map(Result::unwrap).collect();
        let expected = [1, 63, 64, 1024, 2000].map(|len| Change::Fresh {
            target: LINE_AT + len as u64,
            len: len as u64,
            checksum: crc32c(&data[..len]),
        });
        assert_eq!(found, expected);
        assert_eq!(found[4].range(), (LINE_AT + 2000, 2000));
    }

    #[test]
    fn what_no_writer_makes_is_refused() {
        let mut whole = Vec::new();
        push_words(&mut whole, Operation::Store, LINE_AT, 0x81, &[1; 8]);
        push_copy(&mut whole, LINE_AT + 3, &[1; 20]);
        push_fresh(&mut whole, LINE_AT + 3, &[1; 2000]);
        let bad = |change: &dyn Fn(&mut Vec<u64>)| {
            let mut words = whole.clone();
            change(&mut words);
            assert!(
                Entries::new(&words).any(|entry| entry.is_err()),
                "{words:x?}"
            );
        };
        bad(&|words| words[0] &= (1 << 56) - 1); // no word named
        bad(&|words| words[0] &= !KIND_MASK);
        bad(&|words| words[0] |= 32);
        bad(&|words| words[3] |= 1 << 60); // a copy with a mask
        bad(&|words| words[4] |= 64); // an offset outside of its line
        bad(&|words| words[4] += 5 << LENGTH_SHIFT); // longer than the record
        bad(&|words| words[4] = 3); // no bytes
        bad(&|words| words[8] |= 1 << 60); // as a copy above
        bad(&|words| words[9] |= 64);
        bad(&|words| words[9] = 3);
        bad(&|words| words[9] = ((COPY_MAX as u64) + 1) << LENGTH_SHIFT);
        bad(&|words| words[10] |= 1 << 32); // more than a checksum
        bad(&|words| words.truncate(10));
        bad(&|words| words.truncate(9));
        bad(&|words| words.truncate(6));
        bad(&|words| words.truncate(4));
        bad(&|words| words.truncate(2));
    }
}
