//! Home where puddles are mapped a second time, shared with their files: lines gather in a batch and are written back.

use durum_format::record::{Change, Entries, Operation, Words};
use durum_persist::{Site, line, record as recorder};

use super::super::pages::puddle::{note, note_range};
use super::super::wide::{Wide, Work};
use super::deferred_pages::DeferredPages;
use super::line_set::LineSet;
use crate::alloc::puddle_at;
use crate::before_images::before_change;
use crate::mapping::PAGE;

pub(crate) const HOME_WRITE: Site = Site("shadow.checkpoint: write back home lines");
/// A step that a crash test leaves out: the line is taken from where the program stores to, then.
const RECORDS_ONLY: Site = Site("shadow.checkpoint: take what goes home from records only");
/// Others, for a test of snapshots.
const KEEP_LINE: Site = Site("snapshot: keep a line that a record is about to change at home");
const KEEP_COPY: Site = Site("snapshot: keep what a copy is about to change at home");
/// Lines of a full batch: each may be a page of its own, which costs a recovery a page fault.
const LINES_MAX: usize = 2048;
/// From this many bytes on a copy goes home by non-temporal stores; where others commit it takes a fence of its own.
const STREAM_MIN: usize = 512;
const STREAM_AMONG_OTHERS_MIN: usize = 16 << 10;

/// What records of a log change, one behind the other.
#[derive(Clone, Copy, Debug)]
pub(super) struct Records<'r> {
    pub(super) entries: &'r [u64],
    /// Where they lie in the log, as far as they copy whole pages.
    pub(super) in_log: usize,
    /// No other thread commits.
    pub(super) is_alone: bool,
}

impl Records<'_> {
    /// Where these bytes of the entries lie in the log.
    fn place_of(&self, bytes: &[u8]) -> usize {
        self.in_log + (bytes.as_ptr().addr() - self.entries.as_ptr().addr())
    }
}

/// Every puddle is mapped a second time, shared with its file.
#[derive(Debug)]
pub(crate) struct Mapped {
    /// What to add to an address to get its home.
    offset: usize,
    batch: LineSet,
    /// The lines of the batch before; those before `next` are written back.
    writing: Vec<usize>,
    next: usize,
    /// What goes home as whole pages.
    waiting: DeferredPages,
    /// Bytes that wait fill a batch as others do, shifted to the right by this.
    waiting_shift: u32,
    /// A line fills it as so many bytes of records do.
    line_bytes: usize,
    /// Copies that went home by non-temporal stores.
    streamed: usize,
    /// A snapshot may show what home holds.
    is_shown: bool,
}

impl Mapped {
    /// A batch is full with `batch_max` bytes of records, `waiting_max` bytes that wait, or [`LINES_MAX`] lines.
    pub(crate) fn new(offset: usize, batch_max: usize, waiting_max: usize) -> Self {
        Self {
            offset,
            batch: LineSet::default(),
            writing: Vec::new(),
            next: 0,
            waiting: DeferredPages::default(),
            waiting_shift: (waiting_max / batch_max).max(1).ilog2(),
            line_bytes: batch_max / LINES_MAX,
            streamed: 0,
            is_shown: false,
        }
    }

    pub(super) fn set_shown(&mut self, is_shown: bool) {
        self.is_shown = is_shown;
    }

    pub(super) fn is_batch_empty(&self) -> bool {
        self.batch.is_empty() && self.waiting.is_batch_empty()
    }

    #[inline(always)]
    pub(super) fn fill(&self, logged: usize) -> usize {
        let waiting = self.waiting.logged();
        let logged = logged.saturating_sub(waiting) + (waiting >> self.waiting_shift);
        logged.max(self.batch.lines().len() * self.line_bytes)
    }

    pub(super) fn next_batch(&mut self) {
        self.writing.clear();
        self.next = 0;
        self.batch.drain_into(&mut self.writing);
        self.waiting.next_batch();
    }

    pub(super) fn streamed(&self) -> usize {
        self.streamed
    }

    /// Durable with the caller's fence.
    #[inline(always)]
    pub(super) fn write_waiting(&mut self) {
        if !self.waiting.is_empty() {
            self.write_all_waiting();
        }
    }

    #[cold]
    fn write_all_waiting(&mut self) {
        self.streamed += self.waiting.write_all(self.offset);
    }

    pub(super) fn note_all(&self) {
        let writing = self.writing[self.next..].iter();
        for number in writing.chain(self.batch.lines()) {
            note(number * line::LINE);
        }
    }

    /// Lines of the batch that is being written.
    #[inline]
    pub(crate) fn writing(&self) -> usize {
        self.writing.len()
    }

    /// And its pages.
    #[inline]
    pub(crate) fn leaving(&self) -> usize {
        self.waiting.leaving()
    }

    #[inline]
    pub(crate) fn is_written(&self) -> bool {
        self.next == self.writing.len() && self.waiting.is_written()
    }

    /// Writes `pages` more pages of the batch that is being written.
    pub(crate) fn write_pages(&mut self, pages: usize) {
        // ORDER: durable with the next fence of this thread, before these records count as home.
        self.streamed += self.waiting.write(pages, self.offset);
    }

    /// Writes back the lines of the batch that is being written, so many of them or all; how many more these are.
    #[inline]
    pub(crate) fn write_back_up_to(&mut self, count: usize) -> usize {
        let end = count.clamp(self.next, self.writing.len());
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
        let count = numbers.len();
        self.next = end;
        count
    }

    /// Writes back once more the last lines that were, so many of them.
    pub(crate) fn write_back_again(&self, count: usize) {
        let numbers = &self.writing[self.next - count..self.next];
        // ORDER: durable with the next fence of this thread, before these records count as home.
        // SAFETY: as above.
        unsafe { line::write_back_lines(numbers, self.offset, HOME_WRITE) };
    }

    /// Makes the changes of records, and adds their lines to the batch.
    #[inline(always)]
    pub(super) fn apply(&mut self, records: Records<'_>) {
        self.apply_by(records, OneByOne(self.offset));
    }

    /// The same by whole lines. Not where somebody records stores.
    #[inline(always)]
    pub(super) fn apply_wide(&mut self, records: Records<'_>, wide: Wide) {
        // By reference: see `RecordHeader::seal` for what a copy of what was just put together costs.
        wide.run(ApplyWide(self, &records));
    }

    #[inline(always)]
    fn apply_by(&mut self, records: Records<'_>, stores: impl Stores) {
        let mut entries = Entries::new(records.entries);
        loop {
            // Words are at hand as they are to be in memory.
            let is_plain = cfg!(target_endian = "little");
            if is_plain && self.waiting.is_empty() && !self.is_shown {
                entries = self.apply_known(entries, records.is_alone, stores);
            }
            if entries.is_at_end() {
                return;
            }
            if is_plain && let Some(words) = entries.next_words() {
                self.before_change(words.line as usize);
                change_line(&words, self.offset, records.is_alone, stores);
                self.batch.insert(words.line as usize / line::LINE);
                continue;
            }
            if let Some((target, bytes)) = entries.next_part() {
                self.before_change(target as usize);
                // SAFETY: bytes of a changed line in the home mapping, as in `change_line`.
                unsafe { stores.part((target as usize + self.offset) as *mut u8, bytes) };
                self.batch.insert(target as usize / line::LINE);
                continue;
            }
            // Home since before the fence of the record.
            if !entries.skip_fresh() {
                entries = self.change_next(entries, &records);
            }
        }
    }

    /// Makes the changes of entries that are about words of a line each, up to one that is not, or whose line is new:
    /// those that are left. Pages do not wait, and nothing is shown.
    #[inline(always)]
    fn apply_known<'e>(
        &self,
        mut entries: Entries<'e>,
        is_alone: bool,
        stores: impl Stores,
    ) -> Entries<'e> {
        let (look, offset) = (self.batch.look(), self.offset);
        loop {
            let before = entries.clone();
            // Mostly one word is stored.
            match entries.next_word() {
                Some((target, word)) if look.has(target as usize / line::LINE) => {
                    // SAFETY: a word of the home mapping, as in `change_line`.
                    unsafe { stores.word((target as usize + offset) as *mut u64, word) };
                    continue;
                }
                Some(_) => return before,
                None => {}
            }
            match entries.next_words() {
                Some(words) if look.has(words.line as usize / line::LINE) => {
                    change_line(&words, offset, is_alone, stores);
                }
                _ => return before,
            }
        }
    }

    /// Makes the change of the next entry; those that follow. They come and go as values: what is stored on the way
    /// would be loaded again for each entry.
    #[inline(never)]
    fn change_next<'e>(&mut self, mut entries: Entries<'e>, records: &Records<'_>) -> Entries<'e> {
        // Records were made in this process; they are checked where they are read after a crash.
        if let Some(Ok(change)) = entries.next() {
            self.change(&change, records);
        }
        entries
    }

    fn change(&mut self, change: &Change<'_>, records: &Records<'_>) {
        match *change {
            Change::Words {
                operation,
                line: address,
                mask,
                words,
            } => {
                self.before_change(address as usize);
                let home = (address as usize + self.offset) as *mut u64;
                // SAFETY: words of the home mapping. Of what they hold others change other bits.
                unsafe { change_words(home, operation, mask, words, records.is_alone) };
                self.batch.insert(address as usize / line::LINE);
            }
            Change::Copy { target, data } => self.copy(target as usize, data, records),
            // Home since before the fence of the record.
            Change::Fresh { .. } => {}
        }
    }

    /// A line is about to be changed.
    #[inline(always)]
    fn before_change(&mut self, address: usize) {
        self.before_change_of_page(address);
        if self.is_shown {
            keep(address, 1, KEEP_LINE);
        }
    }

    /// Something is about to be changed, which may lie in a page that waits.
    #[inline(always)]
    fn before_change_of_page(&mut self, address: usize) {
        if !self.waiting.is_empty() {
            self.streamed += self.waiting.before_change(address / PAGE, self.offset);
        }
    }

    /// Pages that are copied as a whole wait, where nobody else commits; the rest goes home now.
    fn copy(&mut self, target: usize, data: &[u8], records: &Records<'_>) {
        let end = target + data.len();
        let (first, last) = (target.next_multiple_of(PAGE), end & !(PAGE - 1));
        if first >= last || !records.is_alone {
            return self.copy_now(target, data, records.is_alone);
        }
        let (before, rest) = data.split_at(first - target);
        let (pages, behind) = rest.split_at(last - first);
        self.copy_now(target, before, true);
        for (page, bytes) in (first / PAGE..).zip(pages.chunks_exact(PAGE)) {
            self.waiting.insert(page, records.place_of(bytes));
        }
        self.copy_now(last, behind, true);
    }

    /// A copy of which nothing waits.
    fn copy_now(&mut self, target: usize, data: &[u8], is_alone: bool) {
        if data.is_empty() {
            return;
        }
        for page in target / PAGE..=(target + data.len() - 1) / PAGE {
            self.before_change_of_page(page * PAGE);
        }
        if self.is_shown {
            keep(target, data.len(), KEEP_COPY);
        }
        let home = (target + self.offset) as *mut u8;
        let stream_min = match is_alone {
            true => STREAM_MIN,
            false => STREAM_AMONG_OTHERS_MIN,
        };
        if data.len() >= stream_min {
            note_range(target..target + data.len());
            self.streamed += 1;
            // ORDER: durable with the next fence of this thread, before these records count as home.
            // SAFETY: bytes of the home mapping that nobody else writes. The record lies elsewhere.
            return unsafe { line::copy_streaming(home, data.as_ptr(), data.len(), HOME_WRITE) };
        }
        // SAFETY: bytes of the home mapping that nobody else writes. The record lies elsewhere.
        unsafe { line::copy(home, data.as_ptr(), data.len()) };
        for number in target / line::LINE..(target + data.len()).div_ceil(line::LINE) {
            self.batch.insert(number);
        }
    }
}

/// How home is stored to.
///
/// What is stored to are words or bytes of a line that a transaction changed, in the home mapping of its puddle, which
/// stays until all its records are home. Nobody else writes these: who does has the locks of the transaction that
/// changed them last. Aligned words are stored at once.
trait Stores: Copy {
    unsafe fn word(self, home: *mut u64, word: u64);
    /// The words that the mask selects of the line at `home`.
    unsafe fn words(self, home: *mut u64, mask: u8, words: &[u64]);
    /// Fewer than 64 bytes.
    unsafe fn part(self, home: *mut u8, bytes: &[u8]);
}

/// By plain stores, with what to add to an address to get its home.
#[derive(Clone, Copy)]
struct OneByOne(usize);

impl Stores for OneByOne {
    unsafe fn word(self, home: *mut u64, word: u64) {
        // SAFETY: as the trait says.
        unsafe {
            match recorder::leaves_out(RECORDS_ONLY) {
                true => {
                    let home = home.cast::<u8>().map_addr(|home| home & !(line::LINE - 1));
                    line::copy(home, home.sub(self.0), line::LINE);
                }
                false => line::store_u64(home, word),
            }
        }
    }

    unsafe fn words(self, home: *mut u64, mask: u8, words: &[u64]) {
        // SAFETY: as the trait says.
        unsafe {
            match recorder::leaves_out(RECORDS_ONLY) {
                true => line::copy(home.cast(), home.cast::<u8>().sub(self.0), line::LINE),
                false => line::store_words(home, mask, words),
            }
        }
    }

    unsafe fn part(self, home: *mut u8, bytes: &[u8]) {
        // SAFETY: as the trait says.
        unsafe { line::copy(home, bytes.as_ptr(), bytes.len()) };
    }
}

// Inlined always: else they are compiled for any processor (`Work`).
impl Stores for Wide {
    #[inline(always)]
    unsafe fn word(self, home: *mut u64, word: u64) {
        // SAFETY: as the trait says.
        unsafe { self.store_word(home, word) };
    }

    #[inline(always)]
    unsafe fn words(self, home: *mut u64, mask: u8, words: &[u64]) {
        // SAFETY: as the trait says.
        unsafe { self.store_words(home, mask, words) };
    }

    #[inline(always)]
    unsafe fn part(self, home: *mut u8, bytes: &[u8]) {
        // SAFETY: as the trait says.
        unsafe { self.store_part(home, bytes) };
    }
}

/// What [`Mapped::apply_wide`] does.
struct ApplyWide<'m, 'r>(&'m mut Mapped, &'r Records<'r>);

impl Work for ApplyWide<'_, '_> {
    type Result = ();

    #[inline(always)]
    fn work(self, wide: Wide) {
        self.0.apply_by(*self.1, wide);
    }
}

/// Changes words of a line, whose home lies `offset` behind it.
#[inline(always)]
fn change_line(words: &Words<'_>, offset: usize, is_alone: bool, stores: impl Stores) {
    let home = (words.line as usize + offset) as *mut u64;
    // SAFETY: words of the home mapping, as `Stores` says. Of what they hold others change other bits.
    unsafe {
        match (words.one(), words.operation) {
            (Some((at, word)), Operation::Store) => stores.word(home.add(at), word),
            (Some((at, bits)), operation) => change_bits(home.add(at), operation, bits, is_alone),
            (None, Operation::Store) => stores.words(home, words.mask, words.behind),
            (None, operation) => {
                let bits = &words.behind[..words.mask.count_ones() as usize];
                change_words(home, operation, words.mask, bits, is_alone);
            }
        }
    }
}

/// Home of this range is about to change.
#[cold]
#[inline(never)]
fn keep(address: usize, len: usize, site: Site) {
    if let Some(puddle) = puddle_at(address) {
        // SAFETY: puddles live while their store is open.
        before_change(unsafe { puddle.as_ref() }, address, len, site);
    }
}

/// Changes words of the line at `home` as an entry says that is not a plain store.
///
/// # Safety
/// As for [`line::store_words`]; nobody else changes these bits.
unsafe fn change_words(
    home: *mut u64,
    operation: Operation,
    mut mask: u8,
    words: &[u64],
    is_alone: bool,
) {
    for word in words {
        // SAFETY: as the caller promises.
        unsafe {
            let place = home.add(mask.trailing_zeros() as usize);
            change_bits(place, operation, u64::from_le(*word), is_alone);
        }
        mask &= mask - 1;
    }
}

/// Changes bits of a word at `home`, or all of it.
///
/// # Safety
/// An aligned word that is mapped. Nobody else changes these bits; nor others of the word, if `is_alone`.
#[inline(always)]
unsafe fn change_bits(home: *mut u64, operation: Operation, bits: u64, is_alone: bool) {
    // SAFETY: as the caller promises.
    unsafe {
        match operation {
            _ if is_alone => line::store_u64(home, operation.apply(home.read(), bits)),
            Operation::Store => line::store_u64(home, bits),
            Operation::SetBits => _ = line::fetch_or_u64(home, bits),
            Operation::ClearBits => _ = line::fetch_and_u64(home, !bits),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_is_full_with_its_lines_or_its_bytes() {
        const BYTES: usize = 4 << 20;
        let mut home = Mapped::new(0, BYTES, 16 << 20);
        for number in 0..LINES_MAX {
            assert!(home.fill(number * 64) < BYTES, "{number} lines");
            home.batch.insert(number);
            home.batch.insert(0);
        }
        assert_eq!(home.fill(LINES_MAX * 64), BYTES);
        home.next_batch();
        assert_eq!(home.fill(64), 64);
        assert_eq!(home.writing(), LINES_MAX);
        assert_eq!(home.fill(BYTES), BYTES);
    }
}
