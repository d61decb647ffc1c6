//! A thread's log of records.

mod parts;
mod stream;

use std::ops::Range;

use durum_format::record::{HEADER_WORDS, RecordHeader};
use durum_persist::{Site, count, line};

use super::direct::Direct;
use super::journal::Journal;
use super::segments::Segment;
use crate::error::{Result, Step};
use crate::fault::{Guard, guarded};
use crate::media::Barrier;
use crate::opened::StoreInner;
use crate::spare::Spare;

pub(super) use parts::pieces;

pub(super) const RECORD_WRITE: Site = Site("shadow.commit: write back the record");
pub(super) const COMMIT_FENCE: Site = Site("shadow.commit: fence after the record");

/// From this many bytes on a record goes to the log by non-temporal stores.
const STREAM_MIN: usize = 1024;
/// Records begin on lines.
const LINE: usize = line::LINE;

/// The writing end of one log.
#[derive(Debug)]
pub(crate) struct Writer {
    log: u32,
    /// The stamp of this log's last record.
    previous: u64,
    segment: Option<Segment>,
    /// Where the next record goes.
    cursor: usize,
    end: usize,
    /// Up to here the segment's records were weighed, and what they weigh.
    weighed: (usize, u64),
    /// The record in the making, its header first.
    pub(super) record: Vec<u64>,
    spare: Spare,
    /// Large ranges that go to the log from where they are, and before which of the record's words their entries
    /// belong.
    large: Vec<Range<usize>>,
    large_at: usize,
    /// What of them is on its way.
    buffer: Vec<u64>,
    /// Fresh ranges that go home with this commit instead of into its record, while that is put together.
    pub(super) direct: Vec<Direct>,
    /// Records that are not known to be durable: stamp and address.
    written: Vec<(u64, usize)>,
    /// From here to the cursor nothing was written to the file (`file` domain).
    dirty_from: usize,
    /// The last record is durable.
    fenced: bool,
    /// The watermark in the last record, and the last one that is known to be durable.
    watermark: u64,
    durable_watermark: u64,
}

impl Writer {
    pub(crate) fn new(journal: &Journal) -> Self {
        Self {
            log: journal.join(),
            previous: 0,
            segment: None,
            cursor: 0,
            end: 0,
            weighed: (0, 0),
            record: vec![0; HEADER_WORDS],
            spare: Spare::default(),
            large: Vec::new(),
            large_at: 0,
            buffer: Vec::new(),
            direct: Vec::new(),
            written: Vec::new(),
            dirty_from: 0,
            fenced: true,
            watermark: 0,
            durable_watermark: 0,
        }
    }

    /// Records that were written and are not known to be durable.
    pub(super) fn unpublished(&self) -> usize {
        self.written.len()
    }

    /// Whether nothing has been put into the record.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.record.len() == HEADER_WORDS && self.large.is_empty()
    }

    #[inline(always)]
    pub(super) fn clear(&mut self) {
        let is_plain = self.large.is_empty()
            && self.record.len() >= HEADER_WORDS
            && Spare::is_small(self.record.capacity() * 8);
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
            self.record = Vec::new();
        }
        // A leader of a group may have left an empty one.
        self.record.truncate(HEADER_WORDS);
        if self.record.len() < HEADER_WORDS {
            self.record.resize(HEADER_WORDS, 0);
        }
    }

    /// The thread ends: its segment goes to others.
    pub(crate) fn give_back(mut self, journal: &Journal) {
        self.exchange_segment(journal, None);
        journal.leave();
    }

    /// Gives back the segment that it has, and goes on in another one.
    fn exchange_segment(&mut self, journal: &Journal, next: Option<Segment>) {
        let weight = self.weight();
        (self.cursor, self.end) = next
            .as_ref()
            .map_or((0, 0), |segment| (segment.start, segment.end));
        self.dirty_from = self.cursor;
        self.weighed = (self.cursor, 0);
        if let Some(segment) = std::mem::replace(&mut self.segment, next) {
            journal.put_segment(self.previous, weight, segment);
        }
    }

    /// What the records in its segment weigh: those of small transactions their bytes.
    fn weight(&self) -> u64 {
        let (weighed_to, weight) = self.weighed;
        weight + (self.cursor - weighed_to) as u64
    }

    /// Whether the record fits where the cursor is, as a whole.
    #[inline]
    fn fits(&self) -> bool {
        self.cursor + self.record.len() * 8 <= self.end && self.large.is_empty()
    }

    /// Makes the record durable. After an error nothing was written, or the store is poisoned.
    #[inline(always)]
    pub(super) fn commit(
        &mut self,
        journal: &Journal,
        store: &StoreInner,
        barrier: &mut Barrier,
    ) -> Step {
        let fits = self.fits();
        let bytes = self.bytes();
        if !fits {
            // Waits for home updates where the log is full, so before the lock below.
            self.put_in_parts(journal, store, barrier)?;
        }
        // Stamp and lock come before any write-back: an atomic read-modify-write waits for those under way as a fence
        // does.
        let (stamp, mut checkpoint) = match fits {
            true => journal.draw_and_take()?,
            false => (0, journal.take_checkpoint()),
        };
        let step = checkpoint
            .as_mut()
            .and_then(|checkpoint| checkpoint.is_due_after(bytes));
        if let (Some(checkpoint), Some(bytes)) = (&mut checkpoint, step) {
            // ORDER: durable with the commit's fence, before their records count as home.
            checkpoint.write_back(bytes);
        }
        let address = self.cursor;
        if fits {
            self.put(journal, stamp, barrier)?;
        }
        if let (Some(checkpoint), Some(bytes)) = (&mut checkpoint, step) {
            // While the media take what was written back, which the fence waits for.
            checkpoint.advance(journal, bytes);
        }
        // ORDER: the record is durable before the commit returns. One fence is enough: a record that is not whole does
        // not count.
        barrier.fence(false, COMMIT_FENCE)?;
        if let (Some(checkpoint), Some(_)) = (&mut checkpoint, step) {
            checkpoint.fenced(journal);
        }
        drop(checkpoint);
        if fits {
            journal.publish(stamp, address);
        }
        self.publish(journal);
        if !fits {
            // The transaction is durable whatever comes of this. An error has poisoned the store, and is told to the
            // next who uses it.
            let _ = journal.keep_recovery_short();
        }
        Ok(())
    }

    /// Writes the record to the log. After an error nothing was written, or the store is poisoned.
    #[inline]
    pub(super) fn append(
        &mut self,
        journal: &Journal,
        store: &StoreInner,
        barrier: &mut Barrier,
    ) -> Step {
        let _guard = Guard::new();
        if self.fits() {
            let stamp = journal.draw(1)?;
            let address = self.cursor;
            self.put(journal, stamp, barrier)?;
            self.written.push((stamp, address));
        } else {
            self.put_in_parts(journal, store, barrier)?;
        }
        self.clear();
        Ok(())
    }

    /// On the `file` domain: writes to the file what was appended since the last time.
    pub(super) fn write_out(&mut self, barrier: &mut Barrier) -> Result<()> {
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
    pub(super) fn publish(&mut self, journal: &Journal) {
        self.fenced = true;
        if !self.written.is_empty() {
            for (stamp, address) in self.written.drain(..) {
                journal.publish(stamp, address);
            }
        }
        if self.watermark > self.durable_watermark {
            self.durable_watermark = self.watermark;
            journal.watermark_is_durable(self.watermark);
        }
    }

    /// Writes the record where the cursor is, as a whole.
    #[inline(always)]
    fn put(&mut self, journal: &Journal, stamp: u64, barrier: &mut Barrier) -> Step {
        let header = self.header(journal, stamp);
        if let Some(segment) = &self.segment {
            write_record(segment, self.cursor, &header, &mut self.record, barrier)?;
        }
        self.move_on(&header, self.record.len() * 8);
        Ok(())
    }

    /// The header of the next record, if that is a whole one.
    #[inline(always)]
    fn header(&self, journal: &Journal, stamp: u64) -> RecordHeader {
        RecordHeader {
            stamp,
            watermark: journal.home(),
            previous: self.previous,
            log: self.log,
            part: 0,
            more: false,
            fenced: self.fenced,
        }
    }

    /// A record of `size` bytes was written.
    #[inline(always)]
    fn move_on(&mut self, header: &RecordHeader, size: usize) {
        self.fenced = false;
        count::add_bytes_logged(size as u64);
        self.cursor += size.next_multiple_of(LINE);
        self.previous = header.stamp;
        self.watermark = header.watermark;
    }
}

/// Writes a record to `address` in a segment, and starts making it durable. Called within a
/// [`Guard`](crate::fault::Guard).
#[inline(always)]
fn write_record(
    segment: &Segment,
    address: usize,
    header: &RecordHeader,
    record: &mut [u64],
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
    if size >= STREAM_MIN {
        // ORDER: durable with the commit's fence.
        // SAFETY: as above.
        unsafe { line::copy_streaming(target, source.cast(), size, RECORD_WRITE) };
        return Ok(());
    }
    // SAFETY: as above.
    unsafe { line::copy_words(target.cast(), source, size / 8) };
    // ORDER: durable with the commit's fence.
    barrier.write_back(&segment.puddle, address, size, RECORD_WRITE)?;
    Ok(())
}
