//! A thread's log, as its owner writes it. The format is told in `docs/format/log.md`.
//!
//! At rest a log is armed: its range word admits undo entries of the current generation, and none exists. `retire`
//! moves to the next generation with one 8-byte store, which takes every entry of this one out of effect.

use std::sync::Arc;

use durum_format::log::{
    self, EntryFlags, EntryHeader, EntryKind, Order, RangeWord, SEQUENCE_REDO, SEQUENCE_SEAL,
    SEQUENCE_UNDO, Salt,
};
use durum_format::puddle::heap_offset;
use durum_format::{LINE, Uuid};
use durum_persist::{Site, count, line};

use crate::alloc::Puddle;
use crate::error::{Error, Result};
use crate::media::Barrier;
use crate::sites::sites;

mod segment;

use segment::{Segment, capacity};

sites! {
    /// A new log's header and first range word.
    CREATE_WRITE = "log.create: write back header and range word";
    /// A new log is whole before the log space names it.
    CREATE_FENCE = "log.create: fence";
    /// The data of large entries, past the cache.
    LARGE_WRITE = "log.append: write back large data";
    /// How far a puddle of the log is used, and that there is another, with the first entries that rely on it.
    REACH_WRITE = "log.reach: write back how far a puddle is used";
    /// What a full puddle of the log holds, and the entry that leads on.
    CHAIN_WRITE = "log.chain: write back a full puddle";
}

const LINE_SIZE: usize = LINE as usize;
/// From this many bytes on, data goes to the log by non-temporal stores: it is not read again, and a cached copy costs
/// three times as much (docs/internals/benchmarks.md). Only entries that start a line profit: undo entries do.
const STREAM_MIN: usize = 512;
/// Data of one entry; longer ranges are split.
pub(crate) const ENTRY_DATA_MAX: usize = 1 << 20;
/// A range is split at the end of a puddle too, if so many bytes of it fit there.
const PIECE_MIN: usize = 64 << 10;
/// Puddles that a log keeps for its next long transaction.
const KEPT_SEGMENTS: usize = 4;

/// When an entry is replayed: in which order, whether it was alone before its fence, and its sequence number.
pub(crate) type Replay = (Order, EntryFlags, u8);

const UNDO: Replay = (Order::Reverse, EntryFlags::FENCED, SEQUENCE_UNDO);
const REDO: Replay = (Order::Forward, EntryFlags::NONE, SEQUENCE_REDO);

/// Where a log that is full gets its next puddle from.
pub(crate) trait MoreLog {
    /// A log puddle with the header of a continuation of `log_id`, durable.
    fn continuation(&self, log_id: u64) -> Result<Arc<Puddle>>;

    /// Takes a continuation back that no durable entry leads to any more.
    fn give_back(&self, puddle: Arc<Puddle>);

    /// Whether others may need what a log could do without: on a full disk.
    fn lacks_spares(&self) -> bool;
}

/// The writing end of one log.
#[derive(Debug)]
pub(crate) struct LogWriter {
    log_id: u64,
    generation: u64,
    salt: Salt,
    /// The puddles of the log, the head first; those behind `current` are spare.
    segments: Vec<Segment>,
    current: usize,
    /// Where the next entry goes, how far its puddle may be used, and where it ends.
    cursor: usize,
    reach: usize,
    end: usize,
    /// From here to `cursor` nothing was written back.
    dirty_from: usize,
    /// Entries were written that no fence has made durable.
    pending: bool,
    /// A puddle's reach was changed, and is not known to be durable.
    is_raised: bool,
    entries: u32,
    /// Addresses of the undo entries of this generation.
    undo: Vec<usize>,
}

impl LogWriter {
    /// Starts a log in a fresh, zero-filled puddle. Header and range word are durable on return.
    pub(crate) fn create(
        puddle: Arc<Puddle>,
        log_id: u64,
        client: Uuid,
        barrier: &mut Barrier,
    ) -> Result<Self> {
        segment::write_header(&puddle, log_id, client, false, barrier)?;
        let generation = log::GENERATION_FIRST;
        let end = puddle.address + puddle.size;
        let head = Segment::new(puddle);
        let cursor = head.area();
        let mut log = Self {
            log_id,
            generation,
            salt: Salt::new(log_id, generation),
            cursor,
            reach: head.reach(),
            end,
            dirty_from: cursor,
            pending: false,
            is_raised: false,
            segments: vec![head],
            current: 0,
            entries: 0,
            undo: Vec::new(),
        };
        log.write_word(RangeWord::undo(generation), barrier, CREATE_WRITE)?;
        // ORDER: header and word are durable before the log space names this log; else recovery finds a log without
        // a header and has to quarantine it.
        barrier.fence(log.private(), CREATE_FENCE)?;
        Ok(log)
    }

    /// Makes a fresh puddle the continuation of a log. Durable on return.
    pub(crate) fn create_continuation(
        puddle: &Puddle,
        log_id: u64,
        client: Uuid,
        barrier: &mut Barrier,
    ) -> Result<()> {
        segment::write_header(puddle, log_id, client, true, barrier)?;
        // ORDER: the header is durable before a chain entry leads here.
        barrier.fence(puddle.private, CREATE_FENCE)
    }

    pub(crate) fn log_id(&self) -> u64 {
        self.log_id
    }

    pub(crate) fn head(&self) -> &Arc<Puddle> {
        &self.segments[0].puddle
    }

    /// Whether stores to puddles of this store stay in the process until written back.
    pub(crate) fn private(&self) -> bool {
        self.segments[0].puddle.private
    }

    pub(crate) fn salt(&self) -> &Salt {
        &self.salt
    }

    /// Entries of this generation.
    pub(crate) fn entries(&self) -> u32 {
        self.entries
    }

    /// Whether any entry of this generation was written back.
    pub(crate) fn reached_media(&self) -> bool {
        self.entries > 0 && self.dirty_from > self.segments[0].area() || self.current > 0
    }

    pub(crate) fn has_undo(&self) -> bool {
        !self.undo.is_empty()
    }

    /// Appends undo entries with what `[target, target + len)` holds now. The caller makes them durable before it
    /// appends anything else.
    ///
    /// # Safety
    /// The range is readable, and nobody changes it meanwhile.
    #[inline]
    pub(crate) unsafe fn append_undo(
        &mut self,
        target: usize,
        len: usize,
        more: &dyn MoreLog,
        barrier: &mut Barrier,
    ) -> Result<()> {
        // SAFETY: as the caller promises.
        let data = unsafe { std::slice::from_raw_parts(target as *const u8, len) };
        let mut undo = std::mem::take(&mut self.undo);
        let result = self.append_copy(UNDO, target as u64, data, more, barrier, |at| undo.push(at));
        self.undo = undo;
        result
    }

    /// Appends redo entries that copy `data` to `target`.
    pub(crate) fn append_redo(
        &mut self,
        target: usize,
        data: &[u8],
        more: &dyn MoreLog,
        barrier: &mut Barrier,
    ) -> Result<()> {
        self.append_copy(REDO, target as u64, data, more, barrier, |_| ())
    }

    /// Appends entries that copy `data` to `target`, as many as it takes, and tells where each is; or none of them, if
    /// there is no room. Fenced is only an entry that is alone.
    #[inline]
    pub(crate) fn append_copy(
        &mut self,
        (order, flags, sequence): Replay,
        target: u64,
        data: &[u8],
        more: &dyn MoreLog,
        barrier: &mut Barrier,
        mut visit: impl FnMut(usize),
    ) -> Result<()> {
        if data.len() >= PIECE_MIN {
            self.secure(data.len(), more)?;
        }
        let mut at = 0;
        loop {
            let piece = self.begin_piece(data.len() - at, more, barrier)?;
            // Pieces of one range share a fence, and so does an entry in a new puddle with the one that leads there.
            let flags = match flags.is_fenced() && (piece < data.len() || self.pending) {
                true => EntryFlags::NONE,
                false => flags,
            };
            let (place, part) = (target + at as u64, &data[at..at + piece]);
            visit(self.put(EntryKind::Copy, order, flags, sequence, place, part));
            at += piece;
            if at == data.len() {
                return Ok(());
            }
        }
    }

    /// Sees to it that `len` bytes can be appended without another puddle.
    #[cold]
    fn secure(&mut self, len: usize, more: &dyn MoreLog) -> Result<()> {
        // What a puddle's end may leave unused, and the headers of the pieces in it.
        let lost = PIECE_MIN + 4 * (log::ENTRY_HEADER_SIZE + LINE_SIZE);
        let usable = |room: usize| room.saturating_sub(lost);
        let behind = self.segments[self.current + 1..].iter();
        let mut room: usize = usable(self.end - self.cursor)
            + behind
                .map(|segment| usable(capacity(&segment.puddle)))
                .sum::<usize>();
        while room < len {
            let puddle = more.continuation(self.log_id)?;
            room += usable(capacity(&puddle));
            self.segments.push(Segment::new(puddle));
        }
        Ok(())
    }

    /// How many of the next `len` bytes go into one entry; there is room for it.
    #[inline]
    fn begin_piece(
        &mut self,
        len: usize,
        more: &dyn MoreLog,
        barrier: &mut Barrier,
    ) -> Result<usize> {
        let mut piece = len.min(ENTRY_DATA_MAX);
        let room = (self.end - self.cursor).saturating_sub(log::ENTRY_HEADER_SIZE + LINE_SIZE) & !7;
        if piece > room && room >= PIECE_MIN {
            piece = room;
        }
        self.make_room(log::entry_size(piece), more, barrier)?;
        Ok(piece)
    }

    /// Appends a redo entry that sets or clears the bits of `mask` in the word at `target`.
    pub(crate) fn append_bits(
        &mut self,
        set: bool,
        target: usize,
        mask: u64,
        more: &dyn MoreLog,
        barrier: &mut Barrier,
    ) -> Result<()> {
        let kind = match set {
            true => EntryKind::SetBits,
            false => EntryKind::ClearBits,
        };
        let data = mask.to_le_bytes();
        self.make_room(log::entry_size(data.len()), more, barrier)?;
        let (order, flags, sequence) = REDO;
        self.put(kind, order, flags, sequence, target as u64, &data);
        Ok(())
    }

    /// Appends the seal over all entries of this generation and over the contents of `ranges`.
    pub(crate) fn append_seal(
        &mut self,
        fenced: bool,
        ranges: &[(usize, usize)],
        contents: u32,
        more: &dyn MoreLog,
        barrier: &mut Barrier,
    ) -> Result<()> {
        let mut data = [0u8; log::seal_size(SEAL_RANGES_MAX)];
        let size = log::seal_size(ranges.len());
        let Some(data) = data.get_mut(..size) else {
            return Err(Error::LogMisuse {
                reason: "a seal covers at most 16 ranges",
            });
        };
        // A chain entry would count too, so there must be room before the count is taken.
        self.make_room(log::entry_size(size), more, barrier)?;
        data[..4].copy_from_slice(&self.entries.to_le_bytes());
        data[4..8].copy_from_slice(&(ranges.len() as u32).to_le_bytes());
        for (place, (address, len)) in data[8..].chunks_exact_mut(16).zip(ranges) {
            place[..8].copy_from_slice(&(*address as u64).to_le_bytes());
            place[8..].copy_from_slice(&(*len as u64).to_le_bytes());
        }
        data[size - 8..size - 4].copy_from_slice(&contents.to_le_bytes());
        // Not if it is the first behind a chain entry: that one is not durable yet.
        let flags = match fenced && !self.pending {
            true => EntryFlags::FENCED,
            false => EntryFlags::NONE,
        };
        let (kind, order) = (EntryKind::Seal, Order::Forward);
        self.put(kind, order, flags, SEQUENCE_SEAL, 0, data);
        Ok(())
    }

    #[inline]
    fn make_room(&mut self, size: usize, more: &dyn MoreLog, barrier: &mut Barrier) -> Result<()> {
        // A chain entry always fits behind what is written.
        if self.cursor + size + LINE_SIZE <= self.reach {
            Ok(())
        } else {
            self.reach_further(size, more, barrier)
        }
    }

    /// Makes room further on in this puddle, or in another.
    #[cold]
    fn reach_further(
        &mut self,
        size: usize,
        more: &dyn MoreLog,
        barrier: &mut Barrier,
    ) -> Result<()> {
        if self.cursor + size + LINE_SIZE > self.end {
            self.chain(more, barrier)?;
        }
        let needed = self.cursor + size + LINE_SIZE;
        if needed > self.reach {
            let segment = &mut self.segments[self.current];
            segment.raise(needed);
            self.reach = segment.reach();
            self.is_raised = true;
        }
        Ok(())
    }

    #[inline]
    fn put(
        &mut self,
        kind: EntryKind,
        order: Order,
        flags: EntryFlags,
        sequence: u8,
        target: u64,
        data: &[u8],
    ) -> usize {
        let words = EntryHeader::words(&self.salt, kind, order, flags, sequence, target, data);
        let at = self.cursor;
        let body = at + log::ENTRY_HEADER_SIZE;
        let padded = log::padded(data.len());
        let mut streamed = false;
        // SAFETY: header, data and padding fit between `cursor` and `end`, inside the mapped puddle that this thread
        // owns.
        unsafe {
            line::copy(at as *mut u8, words.as_ptr().cast(), log::ENTRY_HEADER_SIZE);
            if padded > data.len() {
                // First the padding, then the data over it: both are short.
                line::store_u64((body + padded - 8) as *mut u64, 0);
            }
            if data.len() >= STREAM_MIN && !self.private() {
                // The line that the header ends in goes back with the ragged start of the data.
                line::copy_streaming(body as *mut u8, data.as_ptr(), data.len(), LARGE_WRITE);
                streamed = true;
            } else {
                line::copy(body as *mut u8, data.as_ptr(), data.len());
            }
        }
        count::add_bytes_logged(log::entry_size(data.len()) as u64);
        self.cursor = body + padded;
        if flags.is_fenced() {
            self.cursor = self.cursor.next_multiple_of(LINE_SIZE);
        }
        if streamed && self.dirty_from == at && at.is_multiple_of(LINE_SIZE) {
            // Nothing is left to write back: the stream took whole lines, and both ragged ends.
            self.dirty_from = self.cursor;
        }
        self.entries += 1;
        self.pending = true;
        at
    }

    /// Goes on in another puddle.
    fn chain(&mut self, more: &dyn MoreLog, barrier: &mut Barrier) -> Result<()> {
        if self.current + 1 == self.segments.len() {
            let puddle = more.continuation(self.log_id)?;
            self.segments.push(Segment::new(puddle));
        }
        self.segments[self.current].note_chained();
        self.is_raised = true;
        let next = self.segments[self.current + 1].puddle.address;
        // Not fenced: the fence that makes the entries behind it durable takes it along. They do not claim that it was
        // durable before.
        let (kind, order) = (EntryKind::Chain, Order::Forward);
        self.put(kind, order, EntryFlags::NONE, 0, next as u64, &[]);
        // ORDER: durable with the next fence, before anything relies on the entries of this puddle or of those behind
        // it.
        self.write_back(barrier, CHAIN_WRITE)?;
        self.current += 1;
        self.move_to(self.current);
        Ok(())
    }

    fn move_to(&mut self, segment: usize) {
        self.current = segment;
        let segment = &self.segments[segment];
        self.cursor = segment.area();
        self.reach = segment.reach();
        self.dirty_from = self.cursor;
        self.end = segment.puddle.address + segment.puddle.size;
    }

    /// Starts making the entries of this puddle durable that were written so far.
    #[inline]
    fn write_back(&mut self, barrier: &mut Barrier, site: Site) -> Result<()> {
        if self.cursor > self.dirty_from {
            let segment = &self.segments[self.current];
            // The next entry may begin in the last line; it is written back again with that one.
            barrier.write_back(
                &segment.puddle,
                self.dirty_from,
                self.cursor.min(self.end) - self.dirty_from,
                site,
            )?;
            self.dirty_from = self.cursor;
        }
        Ok(())
    }

    /// Makes the entries written so far durable: one fence. The caller says what waits for it.
    #[inline]
    pub(crate) fn make_durable(
        &mut self,
        barrier: &mut Barrier,
        write: Site,
        fence: Site,
    ) -> Result<()> {
        self.write_back(barrier, write)?;
        if self.is_raised {
            self.write_raised(barrier)?;
        }
        // ORDER: the entries are durable on return, and what recovery reads to find them.
        barrier.fence(self.private(), fence)?;
        self.pending = false;
        Ok(())
    }

    /// Here, and not where it was raised: then another thread may have had the log, and its fences are its own.
    #[cold]
    fn write_raised(&mut self, barrier: &mut Barrier) -> Result<()> {
        for segment in &mut self.segments {
            segment.write_raised(barrier)?;
        }
        self.is_raised = false;
        Ok(())
    }

    /// Takes every entry of this generation out of effect and arms the next. Durable after the next fence.
    pub(crate) fn retire(&mut self, barrier: &mut Barrier, site: Site) -> Result<()> {
        self.generation += 1;
        self.salt = Salt::new(self.log_id, self.generation);
        self.reset();
        self.write_word(RangeWord::undo(self.generation), barrier, site)
    }

    /// Forgets entries that never reached the media.
    pub(crate) fn reset(&mut self) {
        self.move_to(0);
        self.entries = 0;
        self.pending = false;
        self.undo.clear();
    }

    /// Gives puddles back that only an unusually long transaction needed. To be called after the fence behind `retire`.
    #[inline]
    pub(crate) fn trim(&mut self, more: &dyn MoreLog) {
        let kept = match self.segments.len() > 1 && more.lacks_spares() {
            true => 1,
            false => KEPT_SEGMENTS,
        };
        while self.segments.len() > kept {
            if let Some(segment) = self.segments.pop() {
                more.give_back(segment.puddle);
            }
        }
    }

    /// Moves the log between stages within this generation, for the low-level interface.
    pub(crate) fn write_range(
        &mut self,
        lo: u8,
        hi: u8,
        barrier: &mut Barrier,
        site: Site,
    ) -> Result<()> {
        let generation = self.generation;
        self.write_word(RangeWord { generation, lo, hi }, barrier, site)
    }

    fn write_word(&mut self, word: RangeWord, barrier: &mut Barrier, site: Site) -> Result<()> {
        let head = self.head();
        let address = head.address
            + (heap_offset(head.size as u64) + log::slot_offset(word.generation)) as usize;
        // SAFETY: a range slot of the mapped puddle that this thread owns.
        unsafe { line::store_u64(address as *mut u64, word.to_u64()) };
        barrier.write_back(head, address, 8, site)
    }

    /// Visits the undo entries, last written first: target and the bytes to put back.
    pub(crate) fn undo_in_reverse(&self, mut visit: impl FnMut(usize, &[u8])) {
        for &at in self.undo.iter().rev() {
            // SAFETY: the entry was written by `put` at this address in a puddle that is still mapped.
            let header =
                EntryHeader::from_bytes(unsafe { &*(at as *const [u8; log::ENTRY_HEADER_SIZE]) });
            // SAFETY: its data follows it.
            let data = unsafe {
                let start = (at + log::ENTRY_HEADER_SIZE) as *const u8;
                std::slice::from_raw_parts(start, header.size as usize)
            };
            visit(header.target as usize, data);
        }
    }
}

/// The most ranges that a seal covers.
pub(crate) const SEAL_RANGES_MAX: usize = 16;
