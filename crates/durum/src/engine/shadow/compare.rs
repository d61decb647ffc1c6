//! What a transaction has changed of the lines that it announced, as entries of a record.
//!
//! Words that are as they were are left out, so announcing a whole structure costs no more log than announcing its
//! fields that change. Of words that are announced in part only the announced bytes are taken: the others may be
//! another thread's.

use std::mem::MaybeUninit;

use durum_format::record::{Operation, push_part, push_words};

use crate::announced::{Announced, AnnouncedLine, SomeObjects, runs};

/// Appends what differs from what it was. What has no old contents counts as changed. Of fresh objects those are left
/// out that are `home`.
///
/// The caller announced these lines, so nobody else changes these bytes.
pub(super) fn push_lines(record: &mut Vec<u64>, announced: &Announced, home: SomeObjects) {
    for line in announced.lines() {
        push_line(record, &line);
    }
    for (address, mask) in announced.object_lines(home) {
        push_line(record, &fresh_line(address, mask));
    }
}

/// What a line of a fresh object is: nothing of it was kept.
#[inline(always)]
pub(super) fn fresh_line(address: usize, mask: u64) -> AnnouncedLine<'static> {
    static NOTHING: [MaybeUninit<u64>; 8] = [MaybeUninit::uninit(); 8];
    AnnouncedLine {
        address,
        mask,
        saved: 0,
        old: &NOTHING,
    }
}

#[inline]
fn push_line(record: &mut Vec<u64>, line: &AnnouncedLine<'_>) {
    let whole = whole_words(line.mask);
    let known = whole & whole_words(line.saved);
    let mut selected = whole;
    let mut now = [0; 8];
    let mut rest = whole;
    while rest != 0 {
        let index = rest.trailing_zeros() as usize;
        let bit = rest & rest.wrapping_neg();
        rest ^= bit;
        // SAFETY: a word of a line in a mapped puddle, announced by this thread. What is known was saved.
        unsafe {
            now[index] = ((line.address + 8 * index) as *const u64).read();
            if known & bit != 0 && now[index] == line.old[index].assume_init() {
                selected ^= bit;
            }
        }
    }
    if selected != 0 {
        let address = line.address as u64;
        push_words(record, Operation::Store, address, selected, &now);
    }
    push_parts(record, line, line.mask & !spread(whole));
}

/// Appends the bytes that `mask` selects, of words that are announced in part.
#[inline]
pub(super) fn push_parts(record: &mut Vec<u64>, line: &AnnouncedLine<'_>, mask: u64) {
    for (from, len) in runs(mask) {
        let mut first = from;
        // No entry of more than one word, so that its bytes fit a register.
        while first < from + len {
            let ones = (8 - first % 8).min(from + len - first);
            let of_part = (!0 >> (64 - ones)) << first;
            // SAFETY: announced bytes of one word, fewer than eight; those of `old` were saved where it is read.
            unsafe {
                let now = bytes_of_word((line.address as *const u8).add(first), ones);
                let is_known = line.saved & of_part == of_part;
                if !is_known
                    || now != bytes_of_word(line.old.as_ptr().cast::<u8>().add(first), ones)
                {
                    push_part(record, (line.address + first) as u64, ones, now);
                }
            }
            first += ones;
        }
    }
}

/// The `len` bytes at `source`, at least 1 and at most 7, the lowest first. Two loads that overlap, instead of a call.
///
/// # Safety
/// They are readable.
#[inline(always)]
unsafe fn bytes_of_word(source: *const u8, len: usize) -> u64 {
    // SAFETY: as the caller promises.
    unsafe {
        let four =
            |at: usize| u64::from(u32::from_le(source.add(at).cast::<u32>().read_unaligned()));
        let two =
            |at: usize| u64::from(u16::from_le(source.add(at).cast::<u16>().read_unaligned()));
        match len {
            4.. => four(0) | four(len - 4) << (8 * (len - 4)),
            2.. => two(0) | two(len - 2) << (8 * (len - 2)),
            _ => u64::from(source.read()),
        }
    }
}

/// Bit n: all eight bytes of word n are in the mask.
#[inline]
pub(super) fn whole_words(mask: u64) -> u8 {
    let mut all = mask & mask >> 4 & 0x0f0f_0f0f_0f0f_0f0f;
    all &= all >> 2;
    all &= all >> 1;
    // Bit 0 of each byte is left; the product gathers them in the upper byte.
    ((all & 0x0101_0101_0101_0101).wrapping_mul(0x0102_0408_1020_4080) >> 56) as u8
}

/// The bytes of the words that `words` selects.
#[inline]
pub(super) fn spread(words: u8) -> u64 {
    // Bit n goes to bit 8n: copies of all bits seven apart, of which each byte keeps one; then each of these bits fills
    // its byte.
    let apart = u64::from(words & 0x7f).wrapping_mul(0x0002_0408_1020_4081) & 0x0101_0101_0101_0101;
    (apart | u64::from(words >> 7) << 56).wrapping_mul(0xff)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_their_bytes() {
        for words in 0..=255 {
            let expected = (0..8)
                .filter(|bit| words >> bit & 1 == 1)
                .fold(0, |mask, bit| mask | 0xff << (8 * bit));
            assert_eq!(spread(words), expected);
            assert_eq!(whole_words(expected), words);
            for bit in 0..64 {
                assert_eq!(
                    whole_words(expected & !(1 << bit)),
                    words & !(1 << (bit / 8))
                );
            }
        }
    }
}
