//! A record on its way to the log, piece by piece.
//!
//! What a large transaction has written goes from where it is through a buffer that stays in the processor's nearest
//! caches, is summed there, and leaves for the log in whole lines. The first one has the header with the sum, and goes
//! last.

use std::ops::Range;

use durum_format::record::{HEADER_WORDS, Seal, copy_head, push_bytes};
use durum_persist::line;

use super::segments::RECORD_WRITE;

const LINE_WORDS: usize = line::LINE / 8;
/// So much goes through the buffer at once that its stores are still on their way while the next is read: a processor
/// holds some 70.
const PIECE_WORDS: usize = 1 << 8;

/// A record that is being written.
pub(crate) struct Stream<'b> {
    seal: Seal,
    /// Words that are not written yet, the place of the header before the first of them.
    buffer: &'b mut Vec<u64>,
    /// Words of the buffer that the header's sum has seen.
    summed: usize,
    /// The first line, once others are written.
    first: Option<[u64; LINE_WORDS]>,
    start: usize,
    /// Where the buffer goes.
    at: usize,
}

impl<'b> Stream<'b> {
    /// Begins a record at the address `start`, which is that of a line. Nobody else writes there, as far as its entries
    /// go.
    pub(crate) fn begin(seal: Seal, start: usize, buffer: &'b mut Vec<u64>) -> Self {
        debug_assert!(start.is_multiple_of(line::LINE));
        buffer.clear();
        buffer.resize(HEADER_WORDS, 0);
        Self {
            seal,
            buffer,
            summed: HEADER_WORDS,
            first: None,
            start,
            at: start,
        }
    }

    /// Appends entries.
    pub(crate) fn push(&mut self, entries: &[u64]) {
        for piece in entries.chunks(PIECE_WORDS) {
            self.buffer.extend_from_slice(piece);
            self.write_lines();
        }
    }

    /// Appends an entry that copies what this memory holds to where it is.
    ///
    /// # Safety
    /// It is mapped.
    pub(crate) unsafe fn push_memory(&mut self, range: &Range<usize>) {
        // SAFETY: as the caller promises. Should somebody change words that the transaction did not announce for him
        // alone, then the buffer holds the one or the other.
        let bytes = unsafe { std::slice::from_raw_parts(range.start as *const u8, range.len()) };
        self.buffer
            .extend_from_slice(&copy_head(range.start as u64, bytes.len()));
        for bytes in bytes.chunks(8 * PIECE_WORDS) {
            push_bytes(self.buffer, bytes);
            self.write_lines();
        }
    }

    /// Writes the whole lines of the buffer, but not the first one.
    fn write_lines(&mut self) {
        self.sum();
        let count = self.buffer.len() & !(LINE_WORDS - 1);
        let lines = &self.buffer[..count];
        let skipped = match (self.first, lines.first_chunk()) {
            (None, Some(first)) => {
                self.first = Some(*first);
                LINE_WORDS
            }
            _ => 0,
        };
        write(self.at + 8 * skipped, &lines[skipped..]);
        self.at += 8 * count;
        self.buffer.drain(..count);
        self.summed = self.buffer.len();
    }

    fn sum(&mut self) {
        self.seal.update(&self.buffer[self.summed..]);
        self.summed = self.buffer.len();
    }

    /// Writes the rest, and the header. The record is durable after this thread's next fence.
    pub(crate) fn finish(self) {
        let header = self.seal.finish();
        match self.first {
            Some(mut first) => {
                write(self.at, self.buffer);
                first[..HEADER_WORDS].copy_from_slice(&header);
                write(self.start, &first);
            }
            // Less than a line.
            None => {
                self.buffer[..HEADER_WORDS].copy_from_slice(&header);
                write(self.start, self.buffer);
            }
        }
    }
}

fn write(target: usize, words: &[u64]) {
    if words.is_empty() {
        return;
    }
    let target = std::ptr::with_exposed_provenance_mut(target);
    // ORDER: durable with the commit's fence.
    // SAFETY: a part of the record's place, which only this thread writes.
    unsafe { line::copy_streaming(target, words.as_ptr().cast(), 8 * words.len(), RECORD_WRITE) };
}

#[cfg(test)]
mod tests {
    use durum_format::Uuid;
    use durum_format::record::{
        Change, Entries, Operation, RecordHeader, RingSalt, push_copy, push_word,
    };

    use super::*;

    const HEADER: RecordHeader = RecordHeader {
        stamp: 7,
        watermark: 3,
        previous: 5,
        log: 1,
        part: 0,
        more: true,
        fenced: true,
    };

    /// Records of less than a line, of whole lines, and of pieces that end anywhere.
    #[test]
    fn what_arrives_is_the_record() {
        let memory: Vec<u8> = (0..50_000).map(|index| index as u8 ^ 0x5a).collect();
        let salt = RingSalt::new(Uuid([9; 16]));
        let (mut log, mut buffer) = (vec![0u64; 8_000], Vec::new());
        let start = log.as_mut_ptr().expose_provenance();
        let skipped = (start.next_multiple_of(line::LINE) - start) / 8;
        for (words, lengths) in [
            (0, &[8][..]),
            (0, &[3]),
            (1, &[30]),
            (2, &[16]),
            (0, &[4096, 16_384, 1]),
            (5, &[2040, 2048, 2056, 7, 40_000]),
            (3_000, &[]),
        ] {
            let mut entries = Vec::new();
            for word in 0..words {
                push_word(&mut entries, Operation::Store, 8 * word, word);
            }
            let before = entries.len();
            for len in lengths {
                let target = memory.as_ptr().expose_provenance();
                push_copy(&mut entries, target as u64, &memory[..*len]);
            }
            let seal = HEADER.begin_seal(entries.len() as u32 * 8, &salt, 640);
            let mut stream = Stream::begin(seal, start + 8 * skipped, &mut buffer);
            stream.push(&entries[..before]);
            for len in lengths {
                let target = memory.as_ptr().expose_provenance();
                // SAFETY: the vector's.
                unsafe { stream.push_memory(&(target..target + len)) };
            }
            stream.finish();
            line::fence(durum_persist::Site("test"));
            let (header, found) = RecordHeader::parse(&log[skipped..], &salt, 640)
                .unwrap_or_else(|| panic!("{words} words, {lengths:?}"));
            assert_eq!((header, found), (HEADER, &entries[..]));
            let copies = Entries::new(found).flatten();
            let copies = copies.filter(|change| matches!(change, Change::Copy { .. }));
            assert_eq!(copies.count(), lengths.len());
            log.fill(0);
        }
    }
}
