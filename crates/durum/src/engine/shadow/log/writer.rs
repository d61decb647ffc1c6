//! A thread's log of records.

use std::ops::Range;
use std::sync::{Arc, Mutex};

use durum_format::record::{Entries, HEADER_WORDS, RecordHeader};
use durum_persist::{count, line};

use super::super::shared::lanes::Lane;
use super::entries::new_record;
use super::owners::Claimed;
use super::segments::{RECORD_WRITE, Segment, Segments};
use super::stamps::Stamps;
use crate::contention;
use crate::error::{Result, Step};
use crate::fault::guarded;
use crate::media::Barrier;
use crate::spare::{ALWAYS, Spare};
use crate::window::AnnouncedWord;

/// From this many bytes on a record goes past the cache also where that keeps it from being left in flight.
pub(crate) const STREAM_MIN: usize = 1024;
/// Owners are asked about the lines of so many bytes at most.
const CLAIMED_MAX: usize = 256 << 10;
/// Records begin on lines.
const LINE: usize = line::LINE;

/// A log: where its records are written, and what of them is not home.
#[derive(Debug)]
pub(crate) struct Log {
    pub(crate) writer: Writer,
    pub(crate) lane: Arc<Lane>,
}

/// The writing end of one log.
#[derive(Debug)]
pub(crate) struct Writer {
    log: u32,
    /// The stamp of this log's last record.
    previous: u64,
    pub(super) segment: Option<Segment>,
    /// Where the next record goes.
    pub(crate) cursor: usize,
    /// Up to where it may be written now: the segment's limit.
    pub(super) end: usize,
    /// Up to here the [recovery cost](super::recovery_cost) of the segment's records is known, and how much it is.
    pub(super) costed: (usize, u64),
    /// The record in the making, its header first.
    pub(crate) record: Vec<u64>,
    spare: Spare,
    /// Large ranges that go to the log from where they are, and before which of the record's words their entries
    /// belong.
    pub(super) large: Vec<Range<usize>>,
    pub(super) large_at: usize,
    /// What of them is on its way.
    pub(super) buffer: Vec<u64>,
    /// Records that are not known to be durable: stamp and address.
    pub(super) written: Vec<(u64, usize)>,
    /// From here to the cursor nothing was written to the file (`file` domain).
    dirty_from: usize,
    /// Words of the record up to the end of the entries of announced words.
    pub(crate) words_end: usize,
    /// What the next stamp has to be like, as [`Lane::claim`] has found out.
    pub(crate) claimed: Claimed,
    /// The last record is durable.
    fenced: bool,
    /// The watermark in the last record, and the last one that is known to be durable.
    watermark: u64,
    durable_watermark: u64,
}

impl Writer {
    pub(crate) fn new(log: u32) -> Self {
        Self {
            log,
            previous: 0,
            segment: None,
            cursor: 0,
            end: 0,
            costed: (0, 0),
            record: new_record(),
            spare: Spare::default(),
            large: Vec::new(),
            large_at: 0,
            buffer: Vec::new(),
            written: Vec::new(),
            dirty_from: 0,
            words_end: HEADER_WORDS,
            claimed: Claimed::default(),
            fenced: true,
            watermark: 0,
            durable_watermark: 0,
        }
    }

    /// A record was written, and is not known to be durable.
    pub(crate) fn wrote(&mut self, stamp: u64, address: usize) {
        self.written.push((stamp, address));
    }

    /// Whether nothing has been put into the record.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.record.len() == HEADER_WORDS && self.large.is_empty()
    }

    /// Whether all that it is about are announced words.
    #[inline(always)]
    pub(crate) fn has_words_only(&self) -> bool {
        self.record.len() == self.words_end && self.large.is_empty()
    }

    /// What the record is about from this word on.
    #[inline(always)]
    fn ranges(&self, from: usize) -> impl Iterator<Item = Range<usize>> {
        let changes = Entries::new(&self.record[from..]).flatten();
        let ranges = changes.map(|change| {
            let (start, len) = change.range();
            start as usize..(start + len) as usize
        });
        ranges.chain(self.large.iter().cloned())
    }

    /// Whether it is about more lines, beside those of these words, than are worth to be looked at.
    pub(crate) fn has_many_lines(&self, words: &[AnnouncedWord]) -> bool {
        if !words.is_empty() && self.has_words_only() {
            return false;
        }
        let mut bytes = 0;
        let ranges = self.ranges(HEADER_WORDS);
        let mut sums = ranges.map(|range| {
            bytes += range.len();
            bytes
        });
        sums.any(|bytes| bytes > CLAIMED_MAX)
    }

    /// The lines that the record is about, by their addresses. With `but_words` those of the entries of announced words
    /// are left out.
    #[inline(always)]
    pub(crate) fn lines(&self, but_words: bool) -> impl Iterator<Item = usize> {
        let from = match but_words {
            true => self.words_end,
            false => HEADER_WORDS,
        };
        self.ranges(from)
            .flat_map(|range| (range.start & !(LINE - 1)..range.end).step_by(LINE))
    }

    /// The size of the record, about.
    #[inline]
    pub(crate) fn bytes(&self) -> usize {
        let large = self.large.iter().map(Range::len);
        self.record.len() * 8 + large.sum::<usize>()
    }

    #[inline(always)]
    pub(crate) fn clear(&mut self) {
        let is_plain = self.large.is_empty()
            && self.record.len() >= HEADER_WORDS
            && self.record.capacity() * 8 <= ALWAYS;
        match is_plain {
            true => self.record.truncate(HEADER_WORDS),
            false => self.clear_more(),
        }
    }

    #[cold]
    fn clear_more(&mut self) {
        self.large.clear();
        let (used, capacity) = (self.record.len() * 8, self.record.capacity() * 8);
        if !self.spare.keeps(used, capacity) {
            self.record = new_record();
        }
        // A leader of a group may have left an empty one.
        self.record.truncate(HEADER_WORDS);
        if self.record.len() < HEADER_WORDS {
            self.record.resize(HEADER_WORDS, 0);
        }
    }

    /// Gives back the segment that it has, and goes on in another one.
    pub(crate) fn exchange_segment(&mut self, segments: &Mutex<Segments>, next: Option<Segment>) {
        let (cost, written_up_to) = (self.recovery_cost(), self.cursor);
        (self.cursor, self.end) = next
            .as_ref()
            .map_or((0, 0), |segment| (segment.start, segment.limit));
        self.dirty_from = self.cursor;
        self.costed = (self.cursor, 0);
        if let Some(mut segment) = std::mem::replace(&mut self.segment, next) {
            segment.written_up_to(written_up_to);
            contention::lock(segments).put(self.previous, cost, segment);
        }
    }

    /// That of the records in its segment: of small transactions their bytes.
    pub(super) fn recovery_cost(&self) -> u64 {
        let (known_to, cost) = self.costed;
        cost + (self.cursor - known_to) as u64
    }

    /// Whether the record fits where the cursor is, as a whole.
    #[inline]
    pub(crate) fn fits(&self) -> bool {
        self.cursor + self.record.len() * 8 <= self.end && self.large.is_empty()
    }

    /// On the `file` domain: writes to the file what was appended since the last time.
    pub(crate) fn write_out(&mut self, barrier: &mut Barrier) -> Result<()> {
        let Some(segment) = self
            .segment
            .as_ref()
            .filter(|segment| segment.puddle.private)
        else {
            return Ok(());
        };
        let (from, len) = (self.dirty_from, self.cursor - self.dirty_from);
        self.dirty_from = self.cursor;
        if len == 0 {
            return Ok(());
        }
        // ORDER: durable with the sync of its group.
        guarded(|| barrier.write_back(&segment.puddle, from, len, RECORD_WRITE))
    }

    /// What was appended is durable.
    #[inline(always)]
    pub(crate) fn fenced(&mut self, stamps: &Stamps) {
        self.fenced = true;
        if self.watermark > self.durable_watermark {
            self.durable_watermark = self.watermark;
            stamps.watermark_is_durable(self.watermark);
        }
    }

    /// The records that were written and are known to be durable now.
    pub(crate) fn take_written(&mut self) -> impl Iterator<Item = (u64, usize)> {
        self.written.drain(..)
    }

    /// Writes the record where the cursor is, as a whole; if `by_line`, so that other threads can write it back, too.
    #[inline(always)]
    pub(crate) fn put(
        &mut self,
        stamps: &Stamps,
        stamp: u64,
        by_line: bool,
        barrier: &mut Barrier,
    ) -> Step {
        let header = self.header(stamps, stamp);
        if let Some(segment) = &self.segment {
            let (address, record) = (self.cursor, &mut self.record);
            write_record(segment, address, &header, record, by_line, barrier)?;
        }
        self.move_on(&header, self.record.len() * 8);
        Ok(())
    }

    /// The header of the next record, if that is a whole one.
    #[inline(always)]
    pub(super) fn header(&self, stamps: &Stamps, stamp: u64) -> RecordHeader {
        RecordHeader {
            stamp,
            watermark: stamps.home(),
            previous: self.previous,
            log: self.log,
            part: 0,
            more: false,
            fenced: self.fenced,
        }
    }

    /// A record of `size` bytes was written.
    #[inline(always)]
    pub(super) fn move_on(&mut self, header: &RecordHeader, size: usize) {
        self.fenced = false;
        count::add_bytes_logged(size as u64);
        self.cursor += size.next_multiple_of(LINE);
        self.previous = header.stamp;
        self.watermark = header.watermark;
    }
}

/// Writes a record to `address` in a segment, and starts making it durable: past the cache, from where only a fence of
/// this thread makes it durable, or `by_line`. Called within a [`Guard`](crate::fault::Guard).
#[inline(always)]
pub(super) fn write_record(
    segment: &Segment,
    address: usize,
    header: &RecordHeader,
    record: &mut [u64],
    by_line: bool,
    barrier: &mut Barrier,
) -> Step {
    let offset = (address - segment.puddle.address) as u64;
    header.seal(record, &segment.salt, offset);
    let (target, source, size) = (address as *mut u8, record.as_ptr(), record.len() * 8);
    if segment.puddle.private {
        // Written to the file with the others of its group.
        // SAFETY: the caller has seen to it that the record fits; only this thread writes this segment.
        unsafe { line::copy(target, source.cast(), size) };
        return Ok(());
    }
    if !by_line {
        // ORDER: durable with the commit's fence.
        // SAFETY: as above. Records begin on lines, and a segment ends with one.
        unsafe { line::stream_words(target.cast(), source, size / 8, RECORD_WRITE) };
        return Ok(());
    }
    // SAFETY: as above.
    unsafe { line::copy_words(target.cast(), source, size / 8) };
    // ORDER: durable with the commit's fence.
    barrier.write_back(&segment.puddle, address, size, RECORD_WRITE)?;
    Ok(())
}
