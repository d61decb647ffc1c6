//! Which bytes a transaction has announced.
//!
//! Small ranges are kept by cache line: a line and a mask of its bytes. So an `add` that was made before is noticed
//! whatever its shape, a fresh object counts as announced, and the commit visits each line once. Ranges of
//! [`LARGE`] bytes and more are kept as sorted, disjoint intervals. Words alone, which are what most transactions
//! change, are kept in an array, for engines that can do with them; with the first other range they go to their lines.

mod lines;
mod ranges;
#[cfg(test)]
mod tests;

use std::ops::Range;
use std::rc::Rc;

use crate::error::Result;
use crate::steps;
use crate::window::{AnnouncedWord, Window, Words};
use lines::{LINE, Lines, lines_of, mask_of};

pub(crate) use lines::{AnnouncedLine, runs};
pub(crate) use ranges::Ranges;

/// Ranges from this size on are kept as intervals; below, a handful of line entries is cheaper.
pub(crate) const LARGE: usize = 512;
/// Fresh objects from this size on may be worth a way of their own.
pub(crate) const FRESH_LARGE: usize = 1024;

/// A set of byte ranges.
#[derive(Debug)]
pub(crate) struct Announced {
    /// Where there are any, `lines` and `large` are empty.
    pub(crate) words: Words,
    lines: Lines,
    large: Ranges,
    /// Small fresh ranges, as long as there are few: nothing is kept of them, and whatever they hold is logged. Not in
    /// `lines`.
    objects: Vec<Range<usize>>,
    /// Bit n: that one has lines of its own, which no record is about.
    in_fresh_lines: SomeObjects,
    /// Fresh ranges that may be worth a way of their own, sorted; they lie in `large` too.
    fresh: Ranges,
    /// Ranges whose old contents nobody needs, as far as nothing is kept of them; they lie in `large` too.
    torn: Ranges,
    /// Small ranges that are logged whatever they hold, and are no objects of this transaction; they lie in `lines`
    /// too.
    contents: Vec<Range<usize>>,
    bytes: usize,
    /// One of `large`, or what it was before it became longer: the one that was asked about last.
    recent: Range<usize>,
    /// The ranges as they were inserted, while they are few and small.
    few: Vec<(usize, usize)>,
}

/// Some of the small fresh ranges that are kept apart from lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SomeObjects(u8);

impl SomeObjects {
    #[inline(always)]
    pub(crate) fn insert(&mut self, at: usize) {
        self.0 |= 1 << at;
    }

    #[inline(always)]
    fn has(self, at: usize) -> bool {
        self.0 >> at & 1 == 1
    }
}

/// `few` is kept up to this many bytes and ranges.
const FEW_BYTES: usize = 256;
const FEW_RANGES: usize = 16;
/// From so many lines on small ranges that are allocated are kept among the large ones, where neighbours become one: a
/// table of lines that has left the processor's cache takes several times as long.
const LINES_MANY: usize = 4096;
/// Small fresh ranges that are kept apart from lines: as many as are looked through in the time that a line takes.
const OBJECTS_MAX: usize = 6;
const _: () = assert!(
    OBJECTS_MAX <= u8::BITS as usize,
    "`SomeObjects` has a bit for each"
);

impl Default for Announced {
    fn default() -> Self {
        Self {
            words: Words::default(),
            lines: Lines::default(),
            large: Ranges::default(),
            objects: Vec::with_capacity(OBJECTS_MAX),
            in_fresh_lines: SomeObjects::default(),
            fresh: Ranges::default(),
            torn: Ranges::default(),
            contents: Vec::new(),
            recent: 0..0,
            bytes: 0,
            few: Vec::with_capacity(FEW_RANGES),
        }
    }
}

impl Announced {
    pub(crate) fn is_empty(&self) -> bool {
        self.words.is_empty()
            && self.lines.is_empty()
            && self.large.is_empty()
            && self.objects.is_empty()
    }

    /// Where the program's own code may put words.
    pub(crate) fn window(&self) -> &Rc<Window> {
        self.words.window()
    }

    /// Whether the engine looks at [`Announced::words`], or has all in lines. Then the window takes words of these
    /// addresses, at once if it `may_be_open`.
    #[inline(always)]
    pub(crate) fn want_words(
        &mut self,
        are_wanted: bool,
        within: &Range<usize>,
        may_be_open: bool,
    ) {
        self.words.want(are_wanted, within, may_be_open);
    }

    /// The window takes no words until [`Announced::want_words`].
    pub(crate) fn close_window(&mut self) {
        self.words.close_window();
    }

    /// The words that were announced while nothing else was but objects, in the order in which they came. A word may be
    /// there twice, and then was changed in between; and it may lie in an object.
    #[inline(always)]
    pub(crate) fn words(&self) -> &[AnnouncedWord] {
        self.words.get()
    }

    /// Moves [`Announced::words`] to the lines: for who asks about bytes.
    #[inline(always)]
    pub(crate) fn settle(&mut self) {
        if self.words.is_open() {
            self.close_words();
        }
    }

    #[inline(never)]
    fn close_words(&mut self) {
        // What comes first is the older one.
        for word in self.words.close() {
            self.lines.insert_old(word.address(), word.old());
        }
        self.words.forget();
    }

    /// Bytes inserted so far; a byte that lies in several ranges counts for each.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Every range that was inserted, if they are few: at most 16 ranges and 256 bytes in sum.
    pub(crate) fn few(&self) -> Option<&[(usize, usize)]> {
        let complete = self.few.iter().map(|(_, len)| len).sum::<usize>() == self.bytes;
        complete.then_some(&self.few)
    }

    /// Whether every byte of `[start, start + len)` is announced.
    #[inline]
    pub(crate) fn covers(&self, start: usize, len: usize) -> bool {
        let (end, number) = (start + len, start / LINE);
        if self.is_in_object(start, len) {
            return true;
        }
        if self.large.is_empty() && self.objects.is_empty() && end <= (number + 1) * LINE {
            let wanted = mask_of(number, start, end);
            return self.lines.mask(number) & wanted == wanted;
        }
        if self.large_covers(start, end) {
            return true;
        }
        lines_of(start, end).all(|number| {
            let wanted = mask_of(number, start, end);
            (self.lines.mask(number) | self.mask_in_objects(number)) & wanted == wanted
                || self.large_covers(start.max(number * LINE), end.min((number + 1) * LINE))
        })
    }

    /// Whether any byte of `[start, start + len)` is announced.
    pub(crate) fn overlaps(&self, start: usize, len: usize) -> bool {
        let end = start + len;
        let mut large = self.large.ending_behind(start);
        if large.next().is_some_and(|range| range.start < end) {
            return true;
        }
        let mut objects = self.objects.iter();
        if objects.any(|range| range.start < end && start < range.end) {
            return true;
        }
        if lines_of(start, end).len() <= self.lines.len() {
            lines_of(start, end)
                .any(|number| self.lines.mask(number) & mask_of(number, start, end) != 0)
        } else {
            self.lines.iter().any(|line| {
                let number = line.address / LINE;
                lines_of(start, end).contains(&number)
                    && line.mask & mask_of(number, start, end) != 0
            })
        }
    }

    fn mask_in_objects(&self, number: usize) -> u64 {
        let touches =
            |range: &&Range<usize>| range.start < (number + 1) * LINE && number * LINE < range.end;
        mask_of_all(self.objects.iter().filter(touches), number)
    }

    fn large_covers(&self, start: usize, end: usize) -> bool {
        let mut large = self.large.ending_behind(end - 1);
        large.next().is_some_and(|range| range.start <= start)
    }

    /// Adds `[start, start + len)`.
    #[inline]
    pub(crate) fn insert(&mut self, start: usize, len: usize) {
        self.settle();
        self.bytes += len;
        if self.bytes <= FEW_BYTES && self.few.len() < FEW_RANGES {
            self.few.push((start, len));
        }
        steps::add(1);
        if len >= LARGE {
            self.large.merge(start..start + len);
            return;
        }
        self.lines.insert(start, len);
    }

    /// Adds a small range that was just allocated, for engines that look at [`Announced::objects`]. `in_fresh_lines`:
    /// it has lines of its own, which no record is about.
    #[inline(always)]
    pub(crate) fn insert_object(&mut self, start: usize, len: usize, in_fresh_lines: bool) {
        if len >= LARGE || self.objects.len() == OBJECTS_MAX {
            return self.insert(start, len);
        }
        steps::add(1);
        self.bytes += len;
        if in_fresh_lines && len.is_multiple_of(8) {
            self.in_fresh_lines.insert(self.objects.len());
        }
        self.objects.push(start..start + len);
    }

    /// Whether small ranges that are allocated now would be kept by line.
    #[inline]
    pub(crate) fn has_many_objects(&self) -> bool {
        self.objects.len() == OBJECTS_MAX
    }

    /// Adds a range that was just allocated, where others of this transaction lie on both sides: with those it becomes
    /// a large one.
    pub(crate) fn insert_neighbour(&mut self, start: usize, len: usize) {
        self.insert_beside(start, len);
        self.fresh.append(start..start + len);
    }

    /// Whether this is a large transaction, which is to add small ranges by [`Announced::insert_beside`].
    #[inline]
    pub(crate) fn has_many_lines(&self) -> bool {
        self.lines.len() >= LINES_MANY
    }

    /// Adds a small range that was just allocated to the large ones.
    pub(crate) fn insert_beside(&mut self, start: usize, len: usize) {
        self.settle();
        self.bytes += len;
        self.large.merge(start..start + len);
    }

    /// The lines of small ranges that were allocated and are not among [`Announced::lines`], and which bytes of them
    /// they take.
    pub(crate) fn object_lines(&self, but: SomeObjects) -> impl Iterator<Item = (usize, u64)> {
        self.objects(but).flat_map(lines_of_object)
    }

    /// Those ranges, but for some.
    #[inline(always)]
    pub(crate) fn objects(&self, but: SomeObjects) -> impl Iterator<Item = &Range<usize>> {
        let objects = self.objects.iter().enumerate();
        objects.filter_map(move |(at, object)| (!but.has(at)).then_some(object))
    }

    /// Of those the ones that have lines of their own, which no record is about, as far as nothing was announced there:
    /// which it is, and the range.
    #[inline(always)]
    pub(crate) fn objects_in_fresh_lines(&self) -> impl Iterator<Item = (usize, &Range<usize>)> {
        let objects = self.objects.iter().enumerate();
        objects.filter(|(at, object)| self.in_fresh_lines.has(*at) && !self.is_announced_in(object))
    }

    /// Whether there may be any.
    #[inline(always)]
    pub(crate) fn has_objects_in_fresh_lines(&self) -> bool {
        self.in_fresh_lines != SomeObjects::default()
    }

    /// Whether the lines of an object are among those of small ranges, or may be among large ones.
    #[inline(always)]
    fn is_announced_in(&self, object: &Range<usize>) -> bool {
        let mut lines = lines_of(object.start, object.end);
        !self.large.is_empty()
            || !self.lines.is_empty() && lines.any(|number| self.lines.mask(number) != 0)
    }

    /// Whether there are any, or any of [`Announced::lines`].
    #[inline(always)]
    pub(crate) fn has_lines(&self) -> bool {
        self.has_objects() || !self.lines.is_empty()
    }

    /// Whether there are any.
    #[inline(always)]
    pub(crate) fn has_objects(&self) -> bool {
        !self.objects.is_empty()
    }

    /// Whether a range lies in one of [`Announced::objects`].
    #[inline(always)]
    pub(crate) fn is_in_object(&self, start: usize, len: usize) -> bool {
        let mut objects = self.objects.iter();
        objects.any(|range| range.start <= start && start + len <= range.end)
    }

    /// Adds a range that was just allocated.
    pub(crate) fn insert_fresh(&mut self, start: usize, len: usize) {
        self.insert(start, len);
        if len >= FRESH_LARGE {
            self.fresh.insert(start..start + len);
        }
    }

    /// Adds a range of at least [`LARGE`] bytes, none of them announced, whose old contents nobody needs: after an
    /// abort or a crash it holds anything.
    pub(crate) fn insert_torn(&mut self, start: usize, len: usize) {
        self.insert(start, len);
        self.torn.insert(start..start + len);
    }

    /// Adds a range that is to be durable as it is, whatever of it has changed.
    pub(crate) fn insert_contents(&mut self, start: usize, len: usize) {
        self.insert(start, len);
        if len < LARGE {
            self.contents.push(start..start + len);
        }
    }

    /// Ranges that are logged as a whole, and may reach beyond an object: those that were allocated do not.
    pub(crate) fn logged_whole(&self) -> impl Iterator<Item = Range<usize>> {
        let large = self.large.iter().cloned();
        let large = large.flat_map(|range| self.fresh.gaps_in(range));
        large.chain(self.contents.iter().cloned())
    }

    /// Whether there are any.
    #[inline(always)]
    pub(crate) fn has_logged_whole(&self) -> bool {
        !self.large.is_empty() || !self.contents.is_empty()
    }

    /// Those ranges, in order of address.
    pub(crate) fn torn(&self) -> &Ranges {
        &self.torn
    }

    /// Ranges that were allocated, in order of address: large ones, and neighbours ([`Announced::insert_neighbour`]),
    /// which are large together or not.
    pub(crate) fn fresh(&self) -> &Ranges {
        &self.fresh
    }

    /// Adds `[start, start + len)`, which is shorter than [`LARGE`], and keeps what its bytes hold now, except for
    /// bytes that were announced before. [`Announced::bytes`] and [`Announced::few`] do not know of it.
    ///
    /// # Safety
    /// The range is readable, and nobody changes it meanwhile.
    #[inline(always)]
    pub(crate) unsafe fn insert_saving(&mut self, start: usize, len: usize) {
        debug_assert!(len > 0 && len < LARGE);
        if self.words.is_open() {
            if len == 8 && start.is_multiple_of(8) {
                // SAFETY: readable, as the caller promises.
                let old = unsafe { (start as *const u64).read() };
                if self.words.insert(start, old) {
                    return;
                }
            }
            self.close_words();
        }
        // SAFETY: readable and unchanged, as the caller promises.
        unsafe {
            if self.large.is_empty() {
                self.lines.insert_saving(start, len);
            } else if !self.is_in_large(start, len) {
                let large = &self.large;
                self.lines
                    .insert_saving_except(start, len, |number| mask_in(large, number));
            }
        }
    }

    /// The same for the word at `start`, a multiple of 8, which holds `old`; where that takes few steps and no call.
    /// Whether it was done.
    #[inline(always)]
    pub(crate) fn insert_word(&mut self, start: usize, old: u64) -> bool {
        if self.words.is_open() {
            return self.words.insert(start, old);
        }
        match self.large.is_empty() {
            true => self.lines.insert_word(start, old),
            false => self.is_in_recent(start, 8),
        }
    }

    /// Whether a range lies in the large one that was asked about last.
    #[inline(always)]
    fn is_in_recent(&self, start: usize, len: usize) -> bool {
        self.recent.start <= start && start + len <= self.recent.end
    }

    /// Whether a range lies in a large one, which is remembered: mostly the next question is about that again.
    fn is_in_large(&mut self, start: usize, len: usize) -> bool {
        if self.is_in_recent(start, len) {
            return true;
        }
        let found = self.large.ending_behind(start).next();
        let found = found.filter(|range| range.start <= start && start + len <= range.end);
        self.recent = found.cloned().unwrap_or_default();
        !self.recent.is_empty()
    }

    /// Visits the runs of `[start, start + len)` in which no byte is announced.
    pub(crate) fn for_each_gap(
        &self,
        start: usize,
        len: usize,
        mut visit: impl FnMut(Range<usize>),
    ) {
        let end = start + len;
        if self.is_empty() || !self.overlaps(start, len) {
            return visit(start..end);
        }
        for number in lines_of(start, end) {
            let apart = mask_in(&self.large, number) | self.mask_in_objects(number);
            let announced = self.lines.mask(number) | apart;
            for (first, ones) in runs(mask_of(number, start, end) & !announced) {
                let from = number * LINE + first;
                visit(from..from + ones);
            }
        }
    }

    /// The bytes of a line that are announced and were not kept: a commit cannot tell whether they have changed.
    pub(crate) fn not_saved(&self, number: usize) -> u64 {
        let small = self.lines.not_saved(number);
        let apart = mask_in(&self.large, number) | self.mask_in_objects(number);
        small | apart
    }

    /// As [`Announced::insert_saving`]; where that takes few steps and no call. Whether it was done. `save` copies the
    /// bytes of a line that a mask selects: it gets the target, the line, and the mask.
    #[inline(always)]
    pub(crate) fn insert_few(
        &mut self,
        start: usize,
        len: usize,
        save: impl Fn(*mut u8, *const u8, u64),
    ) -> bool {
        if self.words.is_open() {
            if !self.words.is_empty() {
                return false;
            }
            self.words.close();
        }
        match self.large.is_empty() {
            true => self.lines.insert_few(start, len, save),
            false => self.is_in_recent(start, len),
        }
    }

    /// Visits the lines of small ranges, in the order in which they came.
    #[inline]
    pub(crate) fn lines(&self) -> impl ExactSizeIterator<Item = AnnouncedLine<'_>> {
        self.lines.iter()
    }

    /// The large ranges, in order of address.
    pub(crate) fn large(&self) -> &Ranges {
        &self.large
    }

    /// For engines without [`Announced::insert_object`]: visits ranges that hold together every announced byte and no
    /// byte twice. With `whole_lines` a range may reach to the ends of its lines, so that no line is visited twice
    /// either.
    pub(crate) fn for_each(&self, whole_lines: bool, mut visit: impl FnMut(usize, usize)) {
        debug_assert!(self.objects.is_empty());
        for range in self.large.iter() {
            visit(range.start, range.end - range.start);
        }
        for line in self.lines.iter() {
            let start = line.address;
            if !self.large.is_empty() && whole_lines && self.touches_large(start) {
                continue;
            }
            if whole_lines {
                visit(start, LINE);
                continue;
            }
            for (first, ones) in runs(line.mask) {
                visit(start + first, ones);
            }
        }
    }

    /// The same, until a visit fails.
    pub(crate) fn try_for_each(
        &self,
        whole_lines: bool,
        mut visit: impl FnMut(usize, usize) -> Result<()>,
    ) -> Result<()> {
        let mut result = Ok(());
        self.for_each(whole_lines, |start, len| {
            if result.is_ok() {
                result = visit(start, len);
            }
        });
        result
    }

    /// Whether the line that starts at `start` is written back with a large range.
    pub(crate) fn touches_large(&self, start: usize) -> bool {
        let mut large = self.large.ending_behind(start);
        large.next().is_some_and(|range| range.start < start + LINE)
    }

    /// Forgets everything.
    #[inline]
    pub(crate) fn clear(&mut self) {
        self.words.clear();
        if !self.lines.is_empty() {
            self.lines.clear();
        }
        // Only `insert` enters anything there.
        if self.bytes > 0 {
            self.bytes = 0;
            self.objects.clear();
            self.in_fresh_lines = SomeObjects::default();
            self.contents.clear();
            self.few.clear();
            if !self.large.is_empty() {
                self.clear_large();
            }
        }
    }

    #[inline(never)]
    fn clear_large(&mut self) {
        self.large.clear();
        self.fresh.clear();
        self.torn.clear();
        self.recent = 0..0;
    }
}

/// The lines that a range touches, and which bytes of them.
pub(crate) fn lines_of_object(range: &Range<usize>) -> impl Iterator<Item = (usize, u64)> {
    lines_of(range.start, range.end).map(|number| {
        let start = range.start.max(number * LINE);
        (number * LINE, mask_of(number, start, range.end))
    })
}

/// The bytes of a line that these large ranges cover.
fn mask_in(large: &Ranges, number: usize) -> u64 {
    let (start, end) = (number * LINE, (number + 1) * LINE);
    let touching = large
        .ending_behind(start)
        .take_while(|range| range.start < end);
    mask_of_all(touching, number)
}

/// The bytes of a line that these ranges cover, all of which touch it.
fn mask_of_all<'r>(touching: impl Iterator<Item = &'r Range<usize>>, number: usize) -> u64 {
    let (start, end) = (number * LINE, (number + 1) * LINE);
    touching.fold(0, |mask, range| {
        mask | mask_of(number, range.start.max(start), range.end.min(end))
    })
}
