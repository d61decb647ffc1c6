//! Which bytes a transaction has announced.
//!
//! Small ranges are kept by cache line: a line and a mask of its bytes. So an `add` that was made before is noticed
//! whatever its shape, a fresh object counts as announced, and the commit visits each line once. Ranges of
//! [`LARGE`] bytes and more are kept as sorted, disjoint intervals.

use std::mem::MaybeUninit;
use std::ops::Range;

use durum_persist::wide;

/// Ranges from this size on are kept as intervals; below, a handful of line entries is cheaper.
pub(crate) const LARGE: usize = 512;
/// Fresh objects from this size on may be worth a way of their own.
pub(crate) const FRESH_LARGE: usize = 1024;
const LINE: usize = 64;

#[derive(Clone, Copy, Debug)]
struct Line {
    /// Address divided by 64.
    number: usize,
    /// Bit n: byte n of the line is announced.
    mask: u64,
    /// Bit n: `old` holds what byte n was.
    saved: u64,
    old: [MaybeUninit<u64>; 8],
}

/// An entry of the index. One of an earlier epoch is free.
#[derive(Clone, Copy, Debug, Default)]
struct Place {
    /// The epoch, and below it the line's number.
    tag: u64,
    /// Where the line is in `lines`.
    at: u32,
}

/// Where the epoch lies in a tag.
const EPOCH_SHIFT: u32 = 48;
const EPOCH_MAX: u64 = u64::MAX >> EPOCH_SHIFT;
/// Entries of a new index. One that grew further than this many lines keep busy is given back.
const INDEX_MIN: usize = 128;
const INDEX_KEPT: usize = 1 << 16;

/// An announced line, for engines that keep old contents here.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AnnouncedLine<'a> {
    pub(crate) address: usize,
    /// Bit n: byte n is announced.
    pub(crate) mask: u64,
    /// Bit n: byte n of `old` is what it was before. The others of `old` are nothing.
    pub(crate) saved: u64,
    pub(crate) old: &'a [MaybeUninit<u64>; 8],
}

/// A set of byte ranges.
#[derive(Debug)]
pub(crate) struct Announced {
    lines: Vec<Line>,
    /// Open hash from line number to index in `lines`; a power of two in size, at most half full. Emptied by the next epoch.
    index: Vec<Place>,
    epoch: u64,
    large: Vec<Range<usize>>,
    /// Those of [`FRESH_LARGE`] bytes and more that are fresh, sorted; they lie in `large` too.
    fresh: Vec<Range<usize>>,
    bytes: usize,
    /// The ranges as they were inserted, while they are few and small.
    few: Vec<(usize, usize)>,
}

/// `few` is kept up to this many bytes and ranges.
const FEW_BYTES: usize = 256;
const FEW_RANGES: usize = 16;

impl Default for Announced {
    fn default() -> Self {
        let (lines, index) = Self::with_index(INDEX_MIN);
        Self {
            lines,
            index,
            epoch: 1,
            large: Vec::new(),
            fresh: Vec::new(),
            bytes: 0,
            few: Vec::with_capacity(FEW_RANGES),
        }
    }
}

/// The bytes of the line at `number` that `[start, end)` covers.
#[inline]
fn mask_of(number: usize, start: usize, end: usize) -> u64 {
    let first = start.saturating_sub(number * LINE).min(LINE);
    let last = (end - number * LINE).min(LINE);
    let ones = last - first;
    if ones == LINE {
        !0
    } else {
        ((1u64 << ones) - 1) << first
    }
}

/// Copies the bytes of the line at `address` that `mask` selects.
///
/// # Safety
/// These bytes are readable, and nobody changes them meanwhile.
#[inline]
unsafe fn save(old: &mut [MaybeUninit<u64>; 8], address: usize, mask: u64) {
    let (target, source) = (old.as_mut_ptr().cast::<u8>(), address as *const u8);
    if wide::is_there() {
        // SAFETY: as the caller promises; `old` has 64 bytes.
        return unsafe { wide::copy_bytes(target, source, mask) };
    }
    for (first, ones) in runs(mask) {
        // SAFETY: as the caller promises; `first + ones` is at most 64.
        unsafe {
            target
                .add(first)
                .copy_from_nonoverlapping(source.add(first), ones);
        }
    }
}

/// The runs of ones in a mask, of a line's bytes or of pages: where each begins, and how long it is.
#[inline]
pub(crate) fn runs(mask: u64) -> impl Iterator<Item = (usize, usize)> {
    let mut rest = mask;
    std::iter::from_fn(move || {
        if rest == 0 {
            return None;
        }
        let first = rest.trailing_zeros() as usize;
        let ones = (rest >> first).trailing_ones() as usize;
        rest = match first + ones {
            LINE => 0,
            end => rest & (!0 << end),
        };
        Some((first, ones))
    })
}

#[inline]
fn lines_of(start: usize, end: usize) -> Range<usize> {
    start / LINE..end.div_ceil(LINE)
}

impl Announced {
    fn with_index(places: usize) -> (Vec<Line>, Vec<Place>) {
        debug_assert!(places.is_power_of_two());
        // Half of the places are ever used.
        (
            Vec::with_capacity(places / 2),
            vec![Place::default(); places],
        )
    }

    /// What the entry of a line begins with, if it is of this epoch.
    #[inline(always)]
    fn tag(&self, number: usize) -> u64 {
        self.epoch << EPOCH_SHIFT | number as u64
    }

    /// Where the line is in `lines`, or else the free entry of the index that is to name it.
    #[inline(always)]
    fn find(&self, number: usize) -> Result<usize, usize> {
        let (tag, last) = (self.tag(number), self.index.len() - 1);
        // Fibonacci hashing: the upper bits of the product are the well mixed ones.
        let mut slot = (number.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) & last;
        loop {
            // SAFETY: the length is a power of two, so `last` is its mask.
            let place = unsafe { self.index.get_unchecked(slot) };
            if place.tag == tag {
                return Ok(place.at as usize);
            }
            if (place.tag ^ tag) >> EPOCH_SHIFT != 0 {
                return Err(slot);
            }
            slot = (slot + 1) & last;
        }
    }

    /// The line, entered with nothing announced if it was not there.
    #[inline(always)]
    fn line(&mut self, number: usize) -> &mut Line {
        let at = match self.find(number) {
            Ok(at) => at,
            Err(_) if self.is_growing() => self.grow_and_enter(number),
            Err(slot) => self.enter(number, slot, 0),
        };
        debug_assert!(at < self.lines.len());
        // SAFETY: entries of this epoch name lines that are there.
        unsafe { self.lines.get_unchecked_mut(at) }
    }

    /// Enters a line whose bytes of `mask` are announced, and about to be saved. Not where the index has to grow.
    #[inline(always)]
    fn enter(&mut self, number: usize, slot: usize, mask: u64) -> usize {
        let (tag, at) = (self.tag(number), self.lines.len());
        debug_assert!(at < self.lines.capacity());
        // SAFETY: less than half of the index is in use, and there is room for as many lines; `find` gives slots of the index.
        unsafe {
            let line = self.lines.as_mut_ptr().add(at);
            (&raw mut (*line).number).write(number);
            (&raw mut (*line).mask).write(mask);
            (&raw mut (*line).saved).write(mask);
            self.lines.set_len(at + 1);
            *self.index.get_unchecked_mut(slot) = Place { tag, at: at as u32 };
        }
        at
    }

    /// Whether the index has to grow before another line is entered.
    #[inline(always)]
    fn is_growing(&self) -> bool {
        self.lines.len() * 2 >= self.index.len()
    }

    #[cold]
    fn grow_and_enter(&mut self, number: usize) -> usize {
        self.grow();
        match self.find(number) {
            Ok(at) => at,
            Err(slot) => self.enter(number, slot, 0),
        }
    }

    fn grow(&mut self) {
        let (mut lines, index) = Self::with_index(self.index.len() * 2);
        lines.append(&mut self.lines);
        (self.lines, self.index) = (lines, index);
        for at in 0..self.lines.len() {
            let number = self.lines[at].number;
            if let Err(slot) = self.find(number) {
                let (tag, at) = (self.tag(number), at as u32);
                self.index[slot] = Place { tag, at };
            }
        }
    }

    #[inline]
    fn mask(&self, number: usize) -> u64 {
        self.find(number).map_or(0, |at| self.lines[at].mask)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.lines.is_empty() && self.large.is_empty()
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
        if self.large.is_empty() && end <= (number + 1) * LINE {
            let wanted = mask_of(number, start, end);
            return self.mask(number) & wanted == wanted;
        }
        if self.large_covers(start, end) {
            return true;
        }
        lines_of(start, end).all(|number| {
            let wanted = mask_of(number, start, end);
            self.mask(number) & wanted == wanted
                || self.large_covers(start.max(number * LINE), end.min((number + 1) * LINE))
        })
    }

    /// Whether any byte of `[start, start + len)` is announced.
    pub(crate) fn overlaps(&self, start: usize, len: usize) -> bool {
        let end = start + len;
        let at = self.large.partition_point(|range| range.end <= start);
        if self.large.get(at).is_some_and(|range| range.start < end) {
            return true;
        }
        if lines_of(start, end).len() <= self.lines.len() {
            lines_of(start, end).any(|number| self.mask(number) & mask_of(number, start, end) != 0)
        } else {
            self.lines.iter().any(|line| {
                lines_of(start, end).contains(&line.number)
                    && line.mask & mask_of(line.number, start, end) != 0
            })
        }
    }

    fn large_covers(&self, start: usize, end: usize) -> bool {
        let at = self.large.partition_point(|range| range.end < end);
        self.large
            .get(at)
            .is_some_and(|range| range.start <= start && end <= range.end)
    }

    /// Adds `[start, start + len)`.
    #[inline]
    pub(crate) fn insert(&mut self, start: usize, len: usize) {
        self.bytes += len;
        if self.bytes <= FEW_BYTES && self.few.len() < FEW_RANGES {
            self.few.push((start, len));
        }
        if len >= LARGE {
            self.insert_large(start..start + len);
            return;
        }
        for number in lines_of(start, start + len) {
            self.line(number).mask |= mask_of(number, start, start + len);
        }
    }

    /// Adds a range that was just allocated.
    pub(crate) fn insert_fresh(&mut self, start: usize, len: usize) {
        self.insert(start, len);
        if len >= FRESH_LARGE {
            let at = self.fresh.partition_point(|other| other.start < start);
            self.fresh.insert(at, start..start + len);
        }
    }

    /// Large ranges that were allocated, in order of address.
    pub(crate) fn fresh(&self) -> &[Range<usize>] {
        &self.fresh
    }

    /// Adds `[start, start + len)`, which is shorter than [`LARGE`], and keeps what its bytes hold now, except for bytes that were
    /// announced before. [`Announced::bytes`] and [`Announced::few`] do not know of it.
    ///
    /// # Safety
    /// The range is readable, and nobody changes it meanwhile.
    #[inline(always)]
    pub(crate) unsafe fn insert_saving(&mut self, start: usize, len: usize) {
        debug_assert!(len > 0 && len < LARGE);
        let offset = start % LINE;
        if offset + len > LINE || !self.large.is_empty() {
            // SAFETY: the same contract.
            return unsafe { self.insert_saving_lines(start, len) };
        }
        let mask = (!0 >> (LINE - len)) << offset;
        let line = self.line(start / LINE);
        let fresh = mask & !line.mask;
        if fresh == 0 {
            return;
        }
        line.mask |= mask;
        line.saved |= fresh;
        // SAFETY: the bytes of `fresh` lie in the range of the contract; a whole word is one of the eight.
        unsafe {
            if len == 8 && fresh == mask && offset.is_multiple_of(8) {
                line.old[offset / 8].write((start as *const u64).read());
            } else {
                save(&mut line.old, start - offset, fresh);
            }
        }
    }

    /// The same for the word at `start`, a multiple of 8, which holds `old`; where that takes few steps and no call. Whether it was done.
    #[inline(always)]
    pub(crate) fn insert_word(&mut self, start: usize, old: u64) -> bool {
        debug_assert!(start.is_multiple_of(8));
        if !self.large.is_empty() || self.is_growing() {
            return false;
        }
        let mask = 0xff << (start % LINE);
        let at = match self.find(start / LINE) {
            Ok(at) => {
                // SAFETY: entries of this epoch name lines that are there.
                let line = unsafe { self.lines.get_unchecked_mut(at) };
                match line.mask & mask {
                    0 => {}
                    known => return known == mask,
                }
                line.mask |= mask;
                line.saved |= mask;
                at
            }
            Err(slot) => self.enter(start / LINE, slot, mask),
        };
        // SAFETY: the line is there.
        unsafe { self.lines.get_unchecked_mut(at).old[start % LINE / 8].write(old) };
        true
    }

    /// # Safety
    /// As for [`Announced::insert_saving`].
    #[inline(never)]
    unsafe fn insert_saving_lines(&mut self, start: usize, len: usize) {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        if wide::is_there() {
            // SAFETY: the same contract; the processor has what the function needs.
            return unsafe { self.insert_saving_lines_wide(start, len) };
        }
        // SAFETY: `save` gets bytes of the range of the contract.
        self.insert_saving_lines_by(start, len, |old, address, mask| unsafe {
            save(old, address, mask);
        });
    }

    /// # Safety
    /// As for [`Announced::insert_saving`].
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    #[target_feature(enable = "avx512f,avx512bw")]
    unsafe fn insert_saving_lines_wide(&mut self, start: usize, len: usize) {
        // SAFETY: as above; `old` has 64 bytes.
        self.insert_saving_lines_by(start, len, |old, address, mask| unsafe {
            wide::copy_bytes(old.as_mut_ptr().cast(), address as *const u8, mask);
        });
    }

    #[inline(always)]
    fn insert_saving_lines_by(
        &mut self,
        start: usize,
        len: usize,
        save: impl Fn(&mut [MaybeUninit<u64>; 8], usize, u64),
    ) {
        for number in lines_of(start, start + len) {
            let mut mask = mask_of(number, start, start + len);
            if !self.large.is_empty() {
                mask &= !self.large_mask(number);
            }
            let line = self.line(number);
            let fresh = mask & !line.mask;
            line.mask |= mask;
            line.saved |= fresh;
            save(&mut line.old, number * LINE, fresh);
        }
    }

    /// The bytes of a line that large ranges cover.
    fn large_mask(&self, number: usize) -> u64 {
        let (start, end) = (number * LINE, (number + 1) * LINE);
        let from = self.large.partition_point(|range| range.end <= start);
        let touching = self.large[from..]
            .iter()
            .take_while(|range| range.start < end);
        touching.fold(0, |mask, range| {
            mask | mask_of(number, range.start.max(start), range.end.min(end))
        })
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
            let announced = self.mask(number) | self.large_mask(number);
            for (first, ones) in runs(mask_of(number, start, end) & !announced) {
                let from = number * LINE + first;
                visit(from..from + ones);
            }
        }
    }

    /// The bytes of a line that are announced and were not kept: a commit cannot tell whether they have changed.
    pub(crate) fn not_saved(&self, number: usize) -> u64 {
        let small = self.find(number).map_or(0, |at| {
            let line = &self.lines[at];
            line.mask & !line.saved
        });
        match self.large.is_empty() {
            true => small,
            false => small | self.large_mask(number),
        }
    }

    /// Visits the lines of small ranges, in the order in which they came.
    #[inline]
    pub(crate) fn lines(&self) -> impl ExactSizeIterator<Item = AnnouncedLine<'_>> {
        self.lines.iter().map(|line| AnnouncedLine {
            address: line.number * LINE,
            mask: line.mask,
            saved: line.saved,
            old: &line.old,
        })
    }

    /// The large ranges, in order of address.
    pub(crate) fn large(&self) -> &[Range<usize>] {
        &self.large
    }

    fn insert_large(&mut self, mut range: Range<usize>) {
        // Every interval that touches the new one is merged into it.
        let from = self.large.partition_point(|other| other.end < range.start);
        let to = self.large.partition_point(|other| other.start <= range.end);
        if from < to {
            range.start = range.start.min(self.large[from].start);
            range.end = range.end.max(self.large[to - 1].end);
        }
        if from == self.large.len() {
            self.large.push(range);
        } else {
            self.large.splice(from..to, [range]);
        }
    }

    /// Visits ranges that hold together every announced byte and no byte twice. With `whole_lines` a range may reach to the
    /// ends of its lines, so that no line is visited twice either.
    pub(crate) fn for_each(&self, whole_lines: bool, mut visit: impl FnMut(usize, usize)) {
        for range in &self.large {
            visit(range.start, range.end - range.start);
        }
        for line in &self.lines {
            let start = line.number * LINE;
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

    /// Whether the line that starts at `start` is written back with a large range.
    fn touches_large(&self, start: usize) -> bool {
        let at = self.large.partition_point(|range| range.end <= start);
        self.large
            .get(at)
            .is_some_and(|range| range.start < start + LINE)
    }

    /// Forgets everything.
    #[inline]
    pub(crate) fn clear(&mut self) {
        if self.epoch == EPOCH_MAX || self.index.len() > INDEX_KEPT {
            self.forget_epochs();
        }
        self.epoch += 1;
        self.lines.clear();
        // Only `insert` enters anything there.
        if self.bytes > 0 {
            self.bytes = 0;
            self.large.clear();
            self.fresh.clear();
            self.few.clear();
        }
    }

    #[cold]
    fn forget_epochs(&mut self) {
        if self.index.len() > INDEX_KEPT {
            (self.lines, self.index) = Self::with_index(INDEX_MIN);
        } else if self.epoch == EPOCH_MAX {
            self.index.fill(Place::default());
        } else {
            return;
        }
        self.epoch = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn behaves_like_a_set_of_bytes() {
        let base = 0x2000_0000_0000usize;
        let mut state = 3u64;
        let mut random = move |below: usize| {
            state = state
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            (state >> 33) as usize % below
        };
        let mut announced = Announced::default();
        for _ in 0..200 {
            announced.clear();
            assert!(announced.is_empty());
            let mut model = vec![false; 8192];
            for _ in 0..1 + random(60) {
                let len = if random(4) == 0 {
                    1 + random(1500)
                } else {
                    1 + random(100)
                };
                let start = random(model.len() - len);
                let wanted = &mut model[start..start + len];
                assert_eq!(
                    announced.overlaps(base + start, len),
                    wanted.iter().any(|byte| *byte)
                );
                let covered = wanted.iter().all(|byte| *byte);
                // `covers` may miss a range that only several intervals cover together; it never claims too much.
                assert!(!announced.covers(base + start, len) || covered);
                wanted.fill(true);
                announced.insert(base + start, len);
                assert!(
                    announced.covers(base + start, len),
                    "what was just added is covered"
                );
            }
            let mut seen = vec![0u32; model.len() / LINE];
            announced.for_each(true, |start, len| {
                for number in lines_of(start - base, start - base + len) {
                    seen[number] += 1;
                }
            });
            for (number, count) in seen.iter().enumerate() {
                let wanted = model[number * LINE..(number + 1) * LINE]
                    .iter()
                    .any(|byte| *byte);
                assert_eq!(*count > 0, wanted);
            }
            let mut bytes = vec![false; model.len()];
            announced.for_each(false, |start, len| {
                bytes[start - base..start - base + len].fill(true)
            });
            assert_eq!(bytes, model, "exactly the announced bytes");
            announced.for_each_gap(base, model.len(), |gap| {
                let gap = &mut bytes[gap.start - base..gap.end - base];
                assert!(
                    !gap.contains(&true),
                    "gaps hold nothing announced, and nothing twice"
                );
                gap.fill(true);
            });
            assert!(bytes.iter().all(|seen| *seen), "the others are gaps");
        }
    }

    #[test]
    fn runs_of_ones_are_found() {
        let found = |bits| runs(bits).collect::<Vec<_>>();
        assert_eq!(found(0), []);
        assert_eq!(found(u64::MAX), [(0, 64)]);
        assert_eq!(found(0b1011_0001), [(0, 1), (4, 2), (7, 1)]);
        assert_eq!(found(1 << 63 | 1), [(0, 1), (63, 1)]);
    }

    #[test]
    fn a_repeated_small_range_is_covered_exactly() {
        let mut announced = Announced::default();
        announced.insert(0x1003, 10);
        assert!(announced.covers(0x1003, 10));
        assert!(announced.covers(0x1005, 3));
        assert!(!announced.covers(0x1002, 3));
        assert!(!announced.covers(0x100c, 2));
        announced.insert(0x100d, 100);
        assert!(announced.covers(0x1003, 110));
    }

    #[test]
    fn two_large_ranges_that_share_a_line_write_it_back_twice_at_most_once_each() {
        let mut announced = Announced::default();
        announced.insert(0x1000, 600);
        announced.insert(0x1000 + 600, 600);
        let mut visits = 0;
        announced.for_each(true, |_, _| visits += 1);
        assert_eq!(visits, 1, "touching intervals merge");
    }
}
