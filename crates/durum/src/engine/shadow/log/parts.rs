//! Records in several parts: of transactions that do not fit where the cursor is, and of large ranges, which go to the
//! log from where they are.

use std::ops::Range;
use std::sync::Mutex;

use durum_format::record::{Entries, HEADER_WORDS, RecordHeader};
use durum_persist::line::LINE;

use super::entries::{pieces, push_range};
use super::recovery_cost;
use super::segments::{Segment, Segments};
use super::stamps::Stamps;
use super::stream::Stream;
use super::writer::{Writer, write_record};
use crate::contention;
use crate::error::{Error, Result, Step};
use crate::fault::Guard;
use crate::mapping::PAGE;
use crate::media::Barrier;

/// The most that one transaction may log, in bytes.
const TRANSACTION_MAX: u64 = 3 << 30;
/// The end of a segment is left unused if less than this fits.
const PART_MIN: usize = 1024;
/// From this many bytes on a range goes to the log from where it is: putting it into the record first would take as
/// long as writing it.
const LARGE_MIN: usize = 32 << 10;
/// Words of an entry that copies, before what it copies.
const COPY_HEAD_WORDS: usize = 2;

/// What a part holds, in order. No addresses: lists that are freed leave them all over memory, where who looks for
/// pointers would find them.
#[derive(Clone, Debug)]
enum Content {
    /// Words of the record in the making, whole entries.
    Entries(Range<usize>),
    /// These bytes of the large range with this number, in pieces.
    Copies(usize, Range<usize>),
}

impl Content {
    fn is_empty(&self) -> bool {
        let (Self::Entries(range) | Self::Copies(_, range)) = self;
        range.is_empty()
    }
}

/// A part of a record.
#[derive(Debug)]
struct Part {
    /// `None`: what is left of the segment that the writer has.
    segment: Option<Segment>,
    contents: Vec<Content>,
    /// Words of its entries, and how many more there may be.
    words: usize,
    room: usize,
}

impl Part {
    fn new(segment: Option<Segment>, bytes: usize) -> Self {
        Self {
            segment,
            contents: Vec::new(),
            words: 0,
            room: bytes / 8 - HEADER_WORDS,
        }
    }

    fn push(&mut self, content: Content, words: usize) {
        self.words += words;
        self.room -= words;
        self.contents.push(content);
    }
}

impl Writer {
    /// Puts a range that the transaction has written into the record, or leaves it where it is until the record is
    /// written: if `may_stay`, and it is large.
    pub(crate) fn push_range(&mut self, range: Range<usize>, may_stay: bool) {
        if !may_stay || range.len() < LARGE_MIN {
            return push_range(&mut self.record, range);
        }
        let _guard = Guard::new();
        for page in (range.start & !(PAGE - 1)..range.end).step_by(PAGE) {
            // A page that cannot be read is found before the commit, and not in the middle of it.
            // SAFETY: announced ranges lie in mapped puddles.
            unsafe { (page.max(range.start) as *const u8).read_volatile() };
        }
        if self.large.is_empty() {
            self.large_at = self.record.len();
        }
        self.large.push(range);
    }

    /// Puts into the record what was left where it is.
    pub(crate) fn gather(&mut self) {
        if self.large.is_empty() {
            return;
        }
        let behind = self.record.split_off(self.large_at);
        for range in std::mem::take(&mut self.large) {
            push_range(&mut self.record, range);
        }
        self.record.extend(behind);
    }

    /// For a record that does not fit where the cursor is, or is not all in one piece.
    #[cold]
    pub(crate) fn put_in_parts(
        &mut self,
        stamps: &Stamps,
        segments: &Mutex<Segments>,
        mut take_segment: impl FnMut(usize) -> Result<Segment>,
        draw: impl FnOnce(u64) -> u64,
        barrier: &mut Barrier,
    ) -> Step {
        let bytes = self.bytes() as u64;
        if bytes > TRANSACTION_MAX {
            let max = TRANSACTION_MAX;
            return Err(Error::TransactionTooLarge { bytes, max }.into());
        }
        // With what large ranges and further headers add.
        let room = self.bytes() + self.bytes() / 16 + PART_MIN;
        let limit = self.end;
        if let Some(segment) = self.segment.as_mut().filter(|segment| segment.has_more()) {
            contention::lock(segments).raise(segment, self.cursor, room)?;
            self.end = segment.limit;
        }
        // All room is had before the first stamp is drawn: what is drawn must be published.
        let mut parts = Vec::new();
        if let Err(error) = self.plan(|| take_segment(room), &mut parts) {
            for segment in parts.into_iter().filter_map(|part: Part| part.segment) {
                contention::lock(segments).put(0, 0, segment);
            }
            // No record needs the larger reach, so nobody makes it durable: another thread may write the next one.
            if let Some(segment) = &mut self.segment {
                (segment.limit, self.end) = (limit, limit);
            }
            return Err(error);
        }
        let count = parts.len();
        let first = draw(count as u64);
        for (index, mut part) in parts.into_iter().enumerate() {
            if let Some(segment) = part.segment.take() {
                self.write_out(barrier)?;
                self.exchange_segment(segments, Some(segment));
            }
            let header = RecordHeader {
                part: index as u32,
                more: index + 1 < count,
                ..self.header(stamps, first + index as u64)
            };
            self.put_part(&header, &part, barrier)?;
        }
        Ok(())
    }

    /// Distributes the record among parts, and takes the segments for them. After an error, too, they are in `parts`.
    fn plan(
        &self,
        mut take_segment: impl FnMut() -> Result<Segment>,
        parts: &mut Vec<Part>,
    ) -> Step {
        let rest = self.end - self.cursor;
        if rest >= PART_MIN {
            parts.push(Part::new(None, rest));
        }
        for content in self.contents() {
            let mut content = Some(content);
            while let Some(more) = content.take() {
                content = match parts.last_mut() {
                    Some(part) => self.fill(part, more),
                    None => Some(more),
                };
                if content.is_some() {
                    let segment = take_segment()?;
                    let bytes = segment.limit - segment.start;
                    parts.push(Part::new(Some(segment), bytes));
                }
            }
        }
        // What was left of the writer's segment may be too little for what comes first.
        parts.retain(|part| part.words > 0);
        Ok(())
    }

    /// All of the record, in order.
    fn contents(&self) -> Vec<Content> {
        let at = match self.large.is_empty() {
            true => self.record.len(),
            false => self.large_at,
        };
        let large = self.large.iter().map(Range::len).enumerate();
        std::iter::once(Content::Entries(HEADER_WORDS..at))
            .chain(large.map(|(number, len)| Content::Copies(number, 0..len)))
            .chain([Content::Entries(at..self.record.len())])
            .filter(|content| !content.is_empty())
            .collect()
    }

    /// Puts as much into a part as it has room for; the rest.
    fn fill(&self, part: &mut Part, content: Content) -> Option<Content> {
        match content {
            Content::Copies(number, range) => {
                let (mut words, mut end) = (0, range.start);
                for piece in pieces_of(&self.large[number], &range) {
                    let more = COPY_HEAD_WORDS + piece.len().div_ceil(8);
                    if words + more > part.room {
                        break;
                    }
                    words += more;
                    end += piece.len();
                }
                if end > range.start {
                    part.push(Content::Copies(number, range.start..end), words);
                }
                (end < range.end).then_some(Content::Copies(number, end..range.end))
            }
            Content::Entries(range) => {
                let end = self.cut(range.clone(), part.room);
                if end > range.start {
                    part.push(Content::Entries(range.start..end), end - range.start);
                }
                (end < range.end).then_some(Content::Entries(end..range.end))
            }
        }
    }

    /// Where the entries end that take at most `words`, of those in this range of the record.
    fn cut(&self, range: Range<usize>, words: usize) -> usize {
        if range.len() <= words {
            return range.end;
        }
        let mut entries = Entries::new(&self.record[range.clone()]);
        let mut end = 0;
        while entries.next().is_some() && entries.position() <= words {
            end = entries.position();
        }
        range.start + end
    }

    /// Writes a part of the record where the cursor is.
    fn put_part(&mut self, header: &RecordHeader, part: &Part, barrier: &mut Barrier) -> Step {
        let _guard = Guard::new();
        let cost = self.recovery_cost() + self.cost_of(part);
        let size = (HEADER_WORDS + part.words) * 8;
        if let Some(segment) = &self.segment {
            if let [Content::Entries(entries)] = &part.contents[..] {
                // The header takes the place of what the part before ends with, which is in the log by now.
                let record = &mut self.record[entries.start - HEADER_WORDS..entries.end];
                write_record(segment, self.cursor, header, record, false, barrier)?;
            } else {
                let offset = (self.cursor - segment.puddle.address) as u64;
                let seal = header.begin_seal(part.words as u32 * 8, &segment.salt, offset);
                let mut stream = Stream::begin(seal, self.cursor, &mut self.buffer);
                for content in &part.contents {
                    match content {
                        Content::Entries(range) => stream.push(&self.record[range.clone()]),
                        Content::Copies(number, range) => {
                            for piece in pieces_of(&self.large[*number], range) {
                                // SAFETY: a range that the transaction has announced.
                                unsafe { stream.push_memory(&piece) };
                            }
                        }
                    }
                }
                stream.finish();
            }
        }
        self.written.push((header.stamp, self.cursor));
        self.move_on(header, size);
        debug_assert!(self.cursor <= self.end.next_multiple_of(LINE));
        self.costed = (self.cursor, cost);
        Ok(())
    }

    fn cost_of(&self, part: &Part) -> u64 {
        let cost = |content: &Content| match content {
            Content::Entries(range) => recovery_cost::of(&self.record[range.clone()]),
            Content::Copies(number, range) => {
                let pieces = pieces_of(&self.large[*number], range);
                pieces
                    .map(|piece| recovery_cost::of_copy(piece.len()))
                    .sum()
            }
        };
        part.contents.iter().map(cost).sum()
    }
}

/// Some bytes of a large range, in pieces.
fn pieces_of(large: &Range<usize>, bytes: &Range<usize>) -> impl Iterator<Item = Range<usize>> {
    pieces(large.start + bytes.start..large.start + bytes.end)
}
