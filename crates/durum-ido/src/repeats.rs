//! What a region stores, as long as the next record has room for it.
//!
//! A record that tells of all that was stored before it needs no fence between: whoever finds it stores that again.

use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};

use durum_format::section::{REDO_MAX, RecordWriter, Redo};
use durum_persist::record;

use crate::sites::TELL_STORED;

const WORD: usize = 8;
/// A count of words where there is no room for what was stored.
const TOO_MUCH: usize = REDO_MAX + 1;

/// Words, and which bytes of them were stored.
#[derive(Debug, Default)]
pub(crate) struct Repeats {
    words: [(usize, u8); REDO_MAX],
    count: usize,
}

impl Repeats {
    /// `size` bytes at `start` were stored.
    #[inline]
    pub(crate) fn add(&mut self, start: usize, size: usize) {
        let mut at = start;
        while at < start + size && self.count != TOO_MUCH {
            let word = at & !(WORD - 1);
            let end = (word + WORD).min(start + size);
            // Bits below the end of what is stored, without those below its begin.
            let bytes = (u8::MAX >> (word + WORD - end)) & (u8::MAX << (at - word));
            self.add_bytes(word, bytes);
            at = end;
        }
    }

    #[inline]
    fn add_bytes(&mut self, word: usize, bytes: u8) {
        let known = self.words.iter_mut().take(self.count);
        if let Some((_, known)) = known.rev().find(|(known, _)| *known == word) {
            *known |= bytes;
        } else {
            if let Some(free) = self.words.get_mut(self.count) {
                *free = (word, bytes);
            }
            self.count += 1;
        }
    }

    /// Something was stored that no record can tell of.
    #[inline]
    pub(crate) fn give_up(&mut self) {
        self.count = TOO_MUCH;
    }

    /// Whether a record can tell of all of it.
    #[inline]
    pub(crate) fn is_all(&self) -> bool {
        self.count != TOO_MUCH
    }

    /// Nothing was stored since.
    #[inline]
    pub(crate) fn clear(&mut self) {
        self.count = 0;
    }

    /// Adds all of it to a record.
    ///
    /// # Safety
    /// What was added is mapped.
    #[inline]
    pub(crate) unsafe fn tell<'a>(&self, mut record: RecordWriter<'a>) -> RecordWriter<'a> {
        if record::leaves_out(TELL_STORED) {
            return record;
        }
        for (word, bytes) in self.words.iter().take(self.count) {
            // SAFETY: mapped, as the caller promises, and aligned. Atomic, as others may store the bytes beside.
            let place = unsafe { AtomicU64::from_ptr(ptr::with_exposed_provenance_mut(*word)) };
            record = record.redo(Redo {
                address: *word as u64,
                bytes: *bytes,
                value: u64::from_le(place.load(Ordering::Relaxed)),
            });
        }
        record
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(stores: &[(usize, usize)]) -> Vec<(usize, u8)> {
        let mut repeats = Repeats::default();
        stores
            .iter()
            .for_each(|(start, size)| repeats.add(*start, *size));
        assert!(repeats.is_all());
        repeats.words[..repeats.count].to_vec()
    }

    #[test]
    fn each_word_is_known_once_with_all_its_bytes() {
        assert_eq!(of(&[(64, 8)]), [(64, 0xff)]);
        assert_eq!(of(&[(65, 1), (70, 2), (65, 1)]), [(64, 0b1100_0010)]);
        assert_eq!(of(&[(63, 10)]), [(56, 0x80), (64, 0xff), (72, 1)]);
        assert_eq!(of(&[(16, 0)]), []);
    }

    #[test]
    fn more_than_there_is_room_for_is_too_much() {
        let mut repeats = Repeats::default();
        repeats.add(0, 8 * REDO_MAX);
        assert!(repeats.is_all());
        repeats.add(8, 8);
        assert!(repeats.is_all());
        repeats.add(8 * REDO_MAX, 1);
        assert!(!repeats.is_all());
        repeats.clear();
        repeats.add(1, 8 * REDO_MAX);
        assert!(!repeats.is_all());
        repeats.clear();
        repeats.give_up();
        repeats.add(0, 8);
        assert!(!repeats.is_all());
    }
}
