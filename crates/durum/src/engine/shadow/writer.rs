//! A thread's log of records.

use std::ops::Range;

use durum_format::record::{Entries, HEADER_WORDS, RecordHeader};
use durum_persist::{Site, count, line};

use super::direct;
use super::journal::{Journal, TRANSACTION_MAX};
use super::segments::Segment;
use crate::error::{Error, Result};
use crate::fault::guarded;
use crate::media::Barrier;
use crate::store::StoreInner;

pub(super) const RECORD_WRITE: Site = Site("shadow.commit: write back the record");
pub(super) const COMMIT_FENCE: Site = Site("shadow.commit: fence after the record");

/// From this many bytes on a record goes to the log by non-temporal stores.
const STREAM_MIN: usize = 1024;
/// Records begin on lines.
const LINE: usize = line::LINE;
/// The end of a segment is left unused if less than this fits.
const PART_MIN: usize = 1024;

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
    /// The record in the making, its header first.
    pub(super) record: Vec<u64>,
    /// Fresh ranges that go home with this commit instead of into its record.
    pub(super) direct: Vec<Range<usize>>,
    /// The records of this commit: stamp and address.
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
    pub(super) fn new(journal: &Journal) -> Self {
        Self {
            log: journal.join(),
            previous: 0,
            segment: None,
            cursor: 0,
            end: 0,
            record: vec![0; HEADER_WORDS],
            direct: Vec::new(),
            written: Vec::new(),
            dirty_from: 0,
            fenced: true,
            watermark: 0,
            durable_watermark: 0,
        }
    }

    /// Whether nothing has been put into the record.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.record.len() == HEADER_WORDS
    }

    pub(super) fn clear(&mut self) {
        self.direct.clear();
        self.record.truncate(HEADER_WORDS);
        self.record.resize(HEADER_WORDS, 0);
    }

    /// The thread ends: its segment goes to others.
    pub(crate) fn give_back(mut self, journal: &Journal) {
        if let Some(segment) = self.segment.take() {
            journal.put_segment(self.previous, segment);
        }
        journal.leave();
    }

    /// Makes the record durable. After an error nothing was written, or the store is poisoned.
    #[inline]
    pub(super) fn commit(
        &mut self,
        journal: &Journal,
        store: &StoreInner,
        barrier: &mut Barrier,
    ) -> Result<()> {
        let bytes = self.record.len() * 8;
        let fits = self.cursor + bytes <= self.end;
        if !fits {
            // Waits for home updates where the log is full, so before the lock below.
            self.put_in_parts(journal, store, barrier)?;
        }
        // Stamp and lock come before any write-back: an atomic read-modify-write waits for those under way as a fence does.
        let stamp = if fits { journal.draw(1)? } else { 0 };
        let mut checkpoint = journal.try_checkpoint();
        if let Some(checkpoint) = &mut checkpoint {
            // ORDER: durable with the commit's fence, before their records count as home.
            checkpoint.write_back(bytes)?;
        }
        // ORDER: durable with the record, by the commit's fence.
        direct::write(&self.direct, journal);
        if fits {
            self.put(journal, stamp, 0, false, None, barrier)?;
        }
        if let Some(checkpoint) = &mut checkpoint {
            // While the media take what was written back, which the fence waits for.
            checkpoint.advance(journal, bytes);
        }
        // ORDER: the record is durable before the commit returns. One fence is enough: a record that is not whole does not count.
        barrier.fence(false, COMMIT_FENCE)?;
        if let Some(mut checkpoint) = checkpoint {
            checkpoint.fenced(journal);
        }
        self.publish(journal);
        Ok(())
    }

    /// Writes the record to the log. After an error nothing was written, or the store is poisoned.
    #[inline]
    pub(super) fn append(
        &mut self,
        journal: &Journal,
        store: &StoreInner,
        barrier: &mut Barrier,
    ) -> Result<()> {
        if self.cursor + self.record.len() * 8 <= self.end {
            let stamp = journal.draw(1)?;
            self.put(journal, stamp, 0, false, None, barrier)?;
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
    #[inline]
    pub(super) fn publish(&mut self, journal: &Journal) {
        self.fenced = true;
        for (stamp, address) in &self.written {
            journal.publish(*stamp, *address);
        }
        self.written.clear();
        if self.watermark > self.durable_watermark {
            self.durable_watermark = self.watermark;
            journal.watermark_is_durable(self.watermark);
        }
    }

    /// Writes a record with these entries (all that are in the making, if `None`) where the cursor is.
    #[inline]
    fn put(
        &mut self,
        journal: &Journal,
        stamp: u64,
        part: u32,
        more: bool,
        entries: Option<Range<usize>>,
        barrier: &mut Barrier,
    ) -> Result<()> {
        let Some(segment) = &self.segment else {
            return Ok(());
        };
        let watermark = journal.home();
        let header = RecordHeader {
            stamp,
            watermark,
            previous: self.previous,
            log: self.log,
            part,
            more,
            fenced: self.fenced,
        };
        let mut piece = Vec::new();
        let record = match entries {
            None => &mut self.record,
            Some(range) => {
                piece.resize(HEADER_WORDS, 0);
                piece.extend_from_slice(&self.record[range]);
                &mut piece
            }
        };
        let offset = (self.cursor - segment.puddle.address) as u64;
        header.seal(record, &segment.salt, offset);
        let (target, size) = (self.cursor as *mut u8, record.len() * 8);
        // ORDER: durable with the commit's fence.
        // SAFETY: the caller has seen to it that the record fits; only this thread writes this segment.
        guarded(|| unsafe {
            if segment.puddle.private {
                // Written to the file with the others of its group.
                line::copy(target, record.as_ptr().cast(), size);
                return Ok(());
            }
            if size >= STREAM_MIN {
                line::copy_streaming(target, record.as_ptr().cast(), size);
                return Ok(());
            }
            line::copy(target, record.as_ptr().cast(), size);
            // ORDER: as said above.
            barrier.write_back(&segment.puddle, target as usize, size, RECORD_WRITE)
        })?;
        self.fenced = false;
        count::add_bytes_logged(size as u64);
        self.written.push((stamp, self.cursor));
        self.cursor += size.next_multiple_of(LINE);
        self.previous = stamp;
        self.watermark = watermark;
        Ok(())
    }

    /// For a record that does not fit where the cursor is.
    #[cold]
    fn put_in_parts(
        &mut self,
        journal: &Journal,
        store: &StoreInner,
        barrier: &mut Barrier,
    ) -> Result<()> {
        let bytes = self.record.len() as u64 * 8;
        if bytes > TRANSACTION_MAX {
            let max = TRANSACTION_MAX;
            return Err(Error::TransactionTooLarge { bytes, max });
        }
        let rest = self.end - self.cursor;
        let mut cuts = Vec::new();
        let mut segments = Vec::new();
        let mut start = HEADER_WORDS;
        if rest >= PART_MIN {
            let end = self.cut(start, rest / 8 - HEADER_WORDS);
            if end > start {
                cuts.push(start..end);
                start = end;
            }
        }
        let uses_rest = !cuts.is_empty();
        // All room is had before the first stamp is drawn: what is drawn must be published.
        while start < self.record.len() {
            let segment = match journal.take_segment(store) {
                Ok(segment) => segment,
                Err(error) => {
                    for segment in segments {
                        journal.put_segment(0, segment);
                    }
                    return Err(error);
                }
            };
            let end = self.cut(start, (segment.end - segment.start) / 8 - HEADER_WORDS);
            segments.push(segment);
            cuts.push(start..end);
            start = end;
        }
        let count = cuts.len();
        let first = journal.draw(count as u64)?;
        let mut segments = segments.into_iter();
        for (part, entries) in cuts.into_iter().enumerate() {
            if (part > 0 || !uses_rest)
                && let Some(segment) = segments.next()
            {
                self.write_out(barrier)?;
                (self.cursor, self.end) = (segment.start, segment.end);
                self.dirty_from = self.cursor;
                if let Some(full) = self.segment.replace(segment) {
                    journal.put_segment(self.previous, full);
                }
            }
            let more = part + 1 < count;
            self.put(
                journal,
                first + part as u64,
                part as u32,
                more,
                Some(entries),
                barrier,
            )?;
        }
        Ok(())
    }

    /// Where the entries end that begin at `start` and take at most `words`.
    fn cut(&self, start: usize, words: usize) -> usize {
        let body = &self.record[start..];
        if body.len() <= words {
            return self.record.len();
        }
        let mut entries = Entries::new(body);
        let mut end = 0;
        while entries.next().is_some() && entries.position() <= words {
            end = entries.position();
        }
        start + end
    }
}
