//! Where records lie in a puddle, and which whole ones a reader finds there.

use std::ops::Range;

use zerocopy::FromBytes;

use super::header::{HEADER_WORDS, RecordHeader, RingSalt};
use crate::error::FormatError;
use crate::puddle::{PuddleHeader, heap_offset, heap_size};
use crate::reach::Reach;

/// A puddle of records is used in segments of this many bytes. They end at multiples of it; the first one is shorter.
pub const SEGMENT_SIZE: u64 = 256 << 10;
/// Bytes before the first segment, from the start of the heap on: the watermark slots.
pub const RING_HEAD_SIZE: u64 = 4096;
/// Watermark slots of a puddle, one line apart, from the start of the heap on. They are written in turn.
pub const WATERMARK_SLOTS: usize = 2;
/// Where in a puddle's heap it stands how far its segments may be used, or were.
pub const RING_REACH_OFFSET: u64 = 128;
/// Records begin at multiples of this many bytes.
pub const RECORD_ALIGN: u64 = 64;

/// The segments of a puddle of `size` bytes, as offsets in the puddle.
pub fn segments(size: u64) -> impl Iterator<Item = Range<u64>> {
    let first = heap_offset(size) + RING_HEAD_SIZE;
    (first / SEGMENT_SIZE..size / SEGMENT_SIZE)
        .map(move |index| first.max(index * SEGMENT_SIZE)..(index + 1) * SEGMENT_SIZE)
}

/// Where watermark slot `slot` lies in a puddle of `size` bytes.
pub const fn watermark_offset(size: u64, slot: usize) -> u64 {
    heap_offset(size) + (slot % WATERMARK_SLOTS) as u64 * 64
}

/// How far a puddle of `size` bytes is used whose segments may be used up to offset `end` (0: nowhere).
pub const fn ring_reach(size: u64, end: u64) -> Reach {
    Reach {
        bytes: end.saturating_sub(heap_offset(size) + RING_HEAD_SIZE),
        is_chained: false,
    }
}

/// What a watermark slot at `offset` holds for a watermark.
pub fn watermark_words(watermark: u64, salt: &RingSalt, offset: u64) -> [u64; 2] {
    let checksum = salt.checksum(offset, &watermark.to_le_bytes());
    [watermark.to_le(), u64::from(checksum).to_le()]
}

/// A whole record.
#[derive(Clone, Copy, Debug)]
pub struct Record<'a> {
    /// Its header.
    pub header: RecordHeader,
    /// Its entries.
    pub body: &'a [u64],
    /// The puddle that it lies in.
    pub ring: &'a PuddleHeader,
    /// Where in that puddle.
    pub offset: u64,
}

/// A puddle of records, in memory.
#[derive(Clone, Debug)]
pub struct Ring<'a> {
    header: &'a PuddleHeader,
    heap: &'a [u64],
    salt: RingSalt,
    /// No record ends behind this offset in the puddle.
    reach: u64,
    /// None begins at this offset, or behind it.
    zero_from: u64,
}

impl<'a> Ring<'a> {
    /// The puddle with this header and this heap. `None` if the heap does not begin at a multiple of 8 in memory.
    pub fn of(header: &'a PuddleHeader, heap: &'a [u8]) -> Option<Self> {
        let whole = heap.len() / 8 * 8;
        let used = Self::length_in(heap, header.size).ok().flatten();
        let reach = used.map_or(header.size, |used| heap_offset(header.size) + used);
        Some(Self {
            header,
            heap: <[u64]>::ref_from_bytes(&heap[..whole]).ok()?,
            salt: RingSalt::new(header.uuid),
            reach,
            zero_from: reach,
        })
    }

    /// How many bytes from the beginning of a heap on tell all records. `head` is what is before the segments, of a
    /// puddle of `size` bytes. `None` where only all of them do.
    ///
    /// # Errors
    /// [`FormatError::Field`](crate::FormatError) for a reach that no writer makes.
    pub fn length_in(head: &[u8], size: u64) -> Result<Option<u64>, FormatError> {
        let word = head.get(RING_REACH_OFFSET as usize..).unwrap_or_default();
        let word = u64::from_le_bytes(word.first_chunk().copied().unwrap_or_default());
        let capacity = heap_size(size).saturating_sub(RING_HEAD_SIZE);
        let reach = Reach::from_u64(word, capacity, "puddle of records", RING_REACH_OFFSET)?;
        Ok(reach.map(|reach| RING_HEAD_SIZE + reach.bytes))
    }

    /// Says that only the first `bytes` bytes of the heap hold anything else than zeros: the rest is not looked at for
    /// records, though one that begins before may end there.
    pub fn used(mut self, bytes: u64) -> Self {
        self.zero_from = self.zero_from.min(heap_offset(self.header.size) + bytes);
        self
    }

    fn words(&self, range: Range<u64>) -> &'a [u64] {
        let start = heap_offset(self.header.size);
        let index = |offset: u64| ((offset - start) / 8).min(self.heap.len() as u64) as usize;
        &self.heap[index(range.start)..index(range.end)]
    }

    fn record_at(&self, offset: u64, end: u64) -> Option<Record<'a>> {
        let (header, body) = RecordHeader::parse(self.words(offset..end), &self.salt, offset)?;
        Some(Record {
            header,
            body,
            ring: self.header,
            offset,
        })
    }

    /// The largest watermark in the slots; 0 if none was written.
    pub fn watermark(&self) -> u64 {
        (0..WATERMARK_SLOTS)
            .filter_map(|slot| {
                let offset = watermark_offset(self.header.size, slot);
                let found = self.words(offset..offset + 16).first_chunk::<2>()?;
                let watermark = u64::from_le(found[0]);
                (watermark_words(watermark, &self.salt, offset) == *found).then_some(watermark)
            })
            .max()
            .unwrap_or(0)
    }

    /// Visits the records that the writer's order leads to: in each segment from its start on, up to what is no whole
    /// record. Gives the places where reading stopped before the end of a segment, or of what may be used of it.
    pub fn read(&self, mut visit: impl FnMut(Record<'a>)) -> Vec<Range<u64>> {
        let mut rests = Vec::new();
        let begun = |segment: &Range<u64>| segment.start < self.zero_from;
        for segment in segments(self.header.size).filter(begun) {
            let (mut offset, end) = (segment.start, segment.end.min(self.reach));
            while offset < self.zero_from
                && let Some(record) = self.record_at(offset, end)
            {
                offset += record_size(record.body);
                visit(record);
            }
            if offset < end {
                rests.push(offset..end);
            }
        }
        rests
    }

    /// Visits whole records with stamps above `watermark` that lie anywhere in `rest`, where the writer's order does
    /// not lead: behind one that was torn or damaged.
    pub fn search(&self, rest: Range<u64>, watermark: u64, mut visit: impl FnMut(Record<'a>)) {
        let mut offset = rest.start;
        while offset < rest.end.min(self.zero_from) {
            let words = self.words(offset..rest.end);
            if words.len() < HEADER_WORDS {
                return;
            }
            // Nearly every place fails here, before anything is summed up.
            let may_be = u64::from_le(words[1]) > watermark;
            match may_be.then(|| self.record_at(offset, rest.end)).flatten() {
                Some(record) => {
                    offset += record_size(record.body);
                    visit(record);
                }
                None => offset += RECORD_ALIGN,
            }
        }
    }
}

/// Bytes from the start of a record to where the next one may begin.
pub fn record_size(body: &[u64]) -> u64 {
    ((HEADER_WORDS + body.len()) as u64 * 8).next_multiple_of(RECORD_ALIGN)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::consts::UNIT;

    #[test]
    fn segments_cover_what_lies_behind_the_slots() {
        for units in 1..5 {
            let size = units * UNIT;
            let all: Vec<_> = segments(size).collect();
            assert_eq!(all[0].start, heap_offset(size) + RING_HEAD_SIZE);
            assert_eq!(all.last().unwrap().end, size);
            for pair in all.windows(2) {
                assert_eq!(pair[0].end, pair[1].start);
                assert!(pair[1].start.is_multiple_of(SEGMENT_SIZE));
            }
            assert_eq!(all.len() as u64, size / SEGMENT_SIZE);
        }
    }
}
