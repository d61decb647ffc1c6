//! Home places: a second mapping of each puddle, or its file.
//!
//! Changes gather in a batch; a batch that is full is written while the next one fills.

use durum_format::record::{Change, Entries, Operation};
use durum_persist::{Site, line, record};

use super::blocks::Files;
use super::lines::LineSet;
use super::puddle::OfPuddle;
use super::waiting::Waiting;
use crate::alloc::{Puddle, puddle_at};
use crate::error::Result;
use crate::fault::guarded;
use crate::mapping::{Mapping, PAGE};

pub(super) const HOME_WRITE: Site = Site("shadow.checkpoint: write back home lines");
/// A step that a crash test leaves out: the line is taken from where the program stores to, then.
const RECORDS_ONLY: Site = Site("shadow.checkpoint: take what goes home from records only");
pub(super) const DRAIN_FENCE: Site = Site("shadow.checkpoint: fence after home lines");

/// A batch ends also when its blocks take so many times the memory of the records that end one.
const HELD_FACTOR: usize = 8;
/// From this many bytes on a copy goes home by non-temporal stores.
pub(super) const STREAM_MIN: usize = 512;
/// The words of a page.
pub(super) type Page = [u64; PAGE / 8];

#[derive(Debug)]
pub(super) enum Home {
    Mapped(Mapped),
    Files(Files),
}

impl Home {
    /// Makes the changes of a record, and adds their lines to the batch.
    #[inline]
    pub(super) fn apply(&mut self, record: &[u64]) {
        match self {
            Self::Mapped(home) => home.apply(record),
            // Records were made in this process; they are checked where they are read after a crash.
            Self::Files(home) => Entries::new(record)
                .flatten()
                .for_each(|change| home.apply(&change)),
        }
    }

    /// The same by whole lines. Not where somebody records stores.
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    #[target_feature(enable = "avx512f,avx512bw,popcnt")]
    #[inline]
    pub(super) fn apply_wide(&mut self, record: &[u64]) {
        match self {
            Self::Mapped(home) => home.apply_wide(record),
            Self::Files(_) => self.apply(record),
        }
    }

    pub(super) fn is_batch_empty(&self) -> bool {
        match self {
            Self::Mapped(home) => home.batch.is_empty() && home.waiting.is_batch_empty(),
            Self::Files(home) => home.is_batch_empty(),
        }
    }

    /// How far the batch has come, of whose records there are so many bytes: it ends where that is the number of bytes
    /// that end one.
    #[inline]
    pub(super) fn fill(&self, logged: usize) -> usize {
        match self {
            Self::Mapped(home) => {
                let waiting = home.waiting.logged();
                logged.saturating_sub(waiting) + (waiting >> home.waiting_shift)
            }
            Self::Files(home) => logged.max(home.batch_bytes() / HELD_FACTOR),
        }
    }

    /// The batch is to be written from now on; the one before is written.
    pub(super) fn turn(&mut self) {
        match self {
            Self::Mapped(home) => {
                home.writing.clear();
                home.next = 0;
                home.batch.drain_into(&mut home.writing);
                home.waiting.turn();
            }
            Self::Files(home) => home.turn(),
        }
    }

    /// Whether every line of that batch is written.
    #[inline]
    pub(super) fn is_written(&self) -> bool {
        match self {
            Self::Mapped(home) => home.is_written(),
            Self::Files(home) => home.writing() == 0,
        }
    }

    /// Writes what is left of that batch.
    #[inline]
    pub(super) fn write(&mut self) -> Result<()> {
        match self {
            Self::Mapped(home) => {
                // ORDER: durable with the caller's fence, before their records count as home.
                home.write_back(usize::MAX);
                home.write_pages(usize::MAX);
                Ok(())
            }
            Self::Files(home) => home.write(),
        }
    }

    /// Makes durable what was written, where no commit's fence does that.
    pub(super) fn fence(&mut self) -> Result<()> {
        match self {
            Self::Mapped(_) => {
                // ORDER: home lines are durable before their records count as home.
                line::fence(DRAIN_FENCE);
                Ok(())
            }
            // ORDER: as above.
            Self::Files(home) => home.sync(),
        }
    }

    /// What went home by non-temporal stores so far, which no batch names.
    pub(super) fn streamed(&self) -> usize {
        match self {
            Self::Mapped(home) => home.streamed,
            Self::Files(_) => 0,
        }
    }

    /// Writes what waits, so that home holds everything that was applied.
    pub(super) fn write_waiting(&mut self) {
        if let Self::Mapped(home) = self {
            // ORDER: durable with the caller's fence.
            home.streamed += home.waiting.write_all(home.offset);
        }
    }

    /// What home holds of a page, given that everything committed is applied; put together in `buffer` where it is not
    /// in one piece.
    ///
    /// # Errors
    /// The page could not be read: the store is poisoned.
    pub(super) fn page<'b>(
        &self,
        puddle: &Puddle,
        address: usize,
        buffer: &'b mut Page,
    ) -> Result<&'b Page> {
        match self {
            // SAFETY: a page of the home mapping of a mapped puddle. Only the holder of the checkpoint's lock, who
            // borrows this, changes it.
            Self::Mapped(home) => Ok(unsafe { &*((address + home.offset) as *const Page) }),
            Self::Files(home) => {
                home.read_page(puddle, address, buffer)?;
                Ok(buffer)
            }
        }
    }

    /// Counts every page that was changed, also where that is not written back yet.
    pub(super) fn note_all(&self) {
        if let Self::Mapped(home) = self {
            let writing = home.writing[home.next..].iter();
            for number in writing.chain(home.batch.lines()) {
                note(number * line::LINE);
            }
        }
    }

    /// Pages whose home is not, or not durably, what was committed, in order. Where home is memory, that it is not
    /// durable does not matter: it is read from the place where it was written.
    pub(super) fn pending_pages(&self) -> Vec<usize> {
        match self {
            Self::Mapped(_) => Vec::new(),
            Self::Files(home) => home.pending_pages(),
        }
    }

    /// What the program would read if these pages were not private; put together in `buffer` where it is not in memory.
    ///
    /// # Errors
    /// As for [`Home::page`].
    pub(super) fn bytes<'b>(
        &self,
        puddle: &Puddle,
        range: std::ops::Range<usize>,
        buffer: &'b mut [u8],
    ) -> Result<&'b [u8]> {
        match self {
            // SAFETY: pages of the home mapping of a mapped puddle, as in `page`.
            Self::Mapped(home) => Ok(unsafe {
                std::slice::from_raw_parts((range.start + home.offset) as *const u8, range.len())
            }),
            Self::Files(_) => {
                let buffer = &mut buffer[..range.len()];
                guarded(|| puddle.read_file(buffer, (range.start - puddle.address) as u64))?;
                Ok(buffer)
            }
        }
    }

    /// Whether the fence of a commit makes durable what was written here.
    pub(super) fn is_mapped(&self) -> bool {
        matches!(self, Self::Mapped(_))
    }
}

/// Every puddle is mapped a second time, shared with its file.
#[derive(Debug)]
pub(super) struct Mapped {
    /// What to add to an address to get its home.
    offset: usize,
    batch: LineSet,
    /// The lines of the batch before; those before `next` are written back.
    writing: Vec<usize>,
    next: usize,
    /// What goes home as whole pages.
    waiting: Waiting,
    /// Bytes that wait fill a batch as others do, shifted to the right by this.
    waiting_shift: u32,
    /// Copies that went home by non-temporal stores.
    streamed: usize,
}

impl Mapped {
    /// Bytes that wait fill a batch as others do, shifted to the right by `waiting_shift`.
    pub(super) fn new(offset: usize, waiting_shift: u32) -> Self {
        Self {
            offset,
            batch: LineSet::default(),
            writing: Vec::new(),
            next: 0,
            waiting: Waiting::default(),
            waiting_shift,
            streamed: 0,
        }
    }

    /// Lines of the batch that is being written.
    #[inline]
    pub(super) fn writing(&self) -> usize {
        self.writing.len()
    }

    /// And its pages.
    #[inline]
    pub(super) fn leaving(&self) -> usize {
        self.waiting.leaving()
    }

    #[inline]
    pub(super) fn is_written(&self) -> bool {
        self.next == self.writing.len() && self.waiting.is_written()
    }

    /// Writes `pages` more pages of the batch that is being written.
    pub(super) fn write_pages(&mut self, pages: usize) {
        // ORDER: durable with the next fence of this thread, before these records count as home.
        self.streamed += self.waiting.write(pages, self.offset);
    }

    /// Writes back `lines` more lines of the batch that is being written.
    #[inline]
    pub(super) fn write_back(&mut self, lines: usize) {
        let end = self.next.saturating_add(lines).min(self.writing.len());
        let numbers = &self.writing[self.next..end];
        let mut page = usize::MAX;
        for address in numbers.iter().map(|number| number * line::LINE) {
            // Lines of a page mostly come together.
            if address / PAGE != page {
                page = address / PAGE;
                note(address);
            }
        }
        // ORDER: durable with the next fence of this thread, before these records count as home.
        // SAFETY: lines that `apply` has stored to; their puddles stay mapped until all their records are home.
        unsafe { line::write_back_lines(numbers, self.offset, HOME_WRITE) };
        self.next = end;
    }

    fn apply(&mut self, record: &[u64]) {
        let offset = self.offset;
        // SAFETY: words and bytes of a line that a transaction changed, in the home mapping of its puddle, which stays
        // until all its records are home. Only the holder of the checkpoint's lock writes there.
        self.apply_by(
            record,
            |home, mask, words| unsafe {
                match record::leaves_out(RECORDS_ONLY) {
                    true => line::copy(home.cast(), home.cast::<u8>().sub(offset), line::LINE),
                    false => line::store_words(home, mask, words),
                }
            },
            |home, bytes| unsafe { line::copy(home, bytes.as_ptr(), bytes.len()) },
        );
    }

    /// The same by whole lines. Not where somebody records stores.
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    #[target_feature(enable = "avx512f,avx512bw,popcnt")]
    #[inline]
    fn apply_wide(&mut self, record: &[u64]) {
        // SAFETY: as in `apply`; aligned words are stored at once.
        self.apply_by(
            record,
            |home, mask, words| unsafe {
                match words.first_chunk() {
                    Some(words) => durum_persist::wide::spread_words(home, words, mask),
                    // Behind the record lies the next one, which was stored and written back just now: a load that
                    // reaches there would wait until the media have it.
                    None => line::store_words(home, mask, words),
                }
            },
            |home, bytes| unsafe {
                durum_persist::wide::copy_bytes(home, bytes.as_ptr(), (1 << bytes.len()) - 1);
            },
        );
    }

    #[inline(always)]
    fn apply_by(
        &mut self,
        record: &[u64],
        store: impl Fn(*mut u64, u8, &[u64]),
        store_part: impl Fn(*mut u8, &[u8]),
    ) {
        let mut entries = Entries::new(record);
        loop {
            if cfg!(target_endian = "little")
                && let Some((address, mask, words)) = entries.next_store()
            {
                self.before_change(address as usize);
                store((address as usize + self.offset) as *mut u64, mask, words);
                self.batch.insert(address as usize / line::LINE);
                continue;
            }
            if let Some((operation, address, bits)) = entries.next_bits() {
                self.before_change(address as usize);
                let home = (address as usize + self.offset) as *mut u64;
                // SAFETY: as in `apply`.
                unsafe { line::store_u64(home, operation.apply(home.read(), bits)) };
                self.batch.insert(address as usize / line::LINE);
                continue;
            }
            if let Some((target, bytes)) = entries.next_part() {
                self.before_change(target as usize);
                store_part((target as usize + self.offset) as *mut u8, bytes);
                self.batch.insert(target as usize / line::LINE);
                continue;
            }
            match entries.next() {
                Some(Ok(change)) => self.change(&change),
                // Records were made in this process; they are checked where they are read after a crash.
                Some(Err(_)) => {}
                None => return,
            }
        }
    }

    #[inline(never)]
    fn change(&mut self, change: &Change<'_>) {
        match *change {
            Change::Words {
                operation,
                line: address,
                mask,
                words,
            } => {
                self.before_change(address as usize);
                let home = (address as usize + self.offset) as *mut u64;
                // SAFETY: as for the words in `apply`.
                unsafe { change_words(home, operation, mask, words) };
                self.batch.insert(address as usize / line::LINE);
            }
            Change::Copy { target, data } => self.copy(target as usize, data),
            // Home since before the fence of the record.
            Change::Fresh { .. } => {}
        }
    }

    /// A line is about to be changed, which may lie in a page that waits.
    #[inline(always)]
    fn before_change(&mut self, address: usize) {
        if !self.waiting.is_empty() {
            self.streamed += self.waiting.before_change(address / PAGE, self.offset);
        }
    }

    /// Pages that are copied as a whole wait, the rest goes home now.
    fn copy(&mut self, target: usize, data: &[u8]) {
        let end = target + data.len();
        let (first, last) = (target.next_multiple_of(PAGE), end & !(PAGE - 1));
        if first >= last {
            return self.copy_now(target, data);
        }
        let (before, rest) = data.split_at(first - target);
        let (pages, behind) = rest.split_at(last - first);
        self.copy_now(target, before);
        for (page, bytes) in (first / PAGE..).zip(pages.chunks_exact(PAGE)) {
            self.waiting.insert(page, bytes);
        }
        self.copy_now(last, behind);
    }

    /// A copy that fills no page.
    fn copy_now(&mut self, target: usize, data: &[u8]) {
        if data.is_empty() {
            return;
        }
        self.before_change(target);
        self.before_change(target + data.len() - 1);
        let home = (target + self.offset) as *mut u8;
        if data.len() >= STREAM_MIN {
            note_range(target..target + data.len());
            self.streamed += 1;
            // ORDER: durable with the next fence of this thread, before these records count as home.
            // SAFETY: as for the words in `apply`; the record does not overlap data.
            return unsafe { line::copy_streaming(home, data.as_ptr(), data.len(), HOME_WRITE) };
        }
        // SAFETY: as above.
        unsafe { line::copy(home, data.as_ptr(), data.len()) };
        for number in target / line::LINE..(target + data.len()).div_ceil(line::LINE) {
            self.batch.insert(number);
        }
    }
}

/// The pages of this range of a program have private contents.
pub(super) fn note_range(range: std::ops::Range<usize>) {
    (range.start & !(PAGE - 1)..range.end)
        .step_by(PAGE)
        .for_each(note);
}

/// The page at this address of a program has private contents.
#[inline]
pub(super) fn note(address: usize) {
    if let Some(puddle) = puddle_at(address) {
        // SAFETY: puddles live while their store is open.
        note_in(unsafe { puddle.as_ref() }, address);
    }
}

/// The same, where the puddle is known.
#[inline]
pub(super) fn note_in(puddle: &Mapping, address: usize) {
    if let Some(kept) = OfPuddle::of(puddle) {
        kept.copies.note(address - puddle.address);
    }
}

/// Changes words of the line at `home` as an entry says that is not a plain store.
///
/// # Safety
/// As for [`line::store_words`]; nobody else writes there.
unsafe fn change_words(home: *mut u64, operation: Operation, mut mask: u8, words: &[u64]) {
    for word in words {
        let word = u64::from_le(*word);
        // SAFETY: as the caller promises.
        unsafe {
            let place = home.add(mask.trailing_zeros() as usize);
            line::store_u64(place, operation.apply(place.read(), word));
        }
        mask &= mask - 1;
    }
}
