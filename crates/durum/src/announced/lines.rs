//! The table of lines: which bytes of which lines are announced, and what they were.

use std::mem::MaybeUninit;
use std::ops::Range;

use durum_persist::{line, wide};

pub(super) const LINE: usize = 64;

/// Its old contents lie in one line, too, so that they are saved and read at once.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
struct Line {
    old: [MaybeUninit<u64>; 8],
    /// Address divided by 64.
    number: usize,
    /// Bit n: byte n of the line is announced.
    mask: u64,
    /// Bit n: `old` holds what byte n was.
    saved: u64,
}

/// An entry of the index: the epoch, and below it where the line is in `lines`. One of an earlier epoch is free.
type Place = u64;

/// Where the epoch lies in an entry.
const EPOCH_SHIFT: u32 = 32;
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

impl AnnouncedLine<'_> {
    /// Brings back what was kept, in a line of a mapped puddle that this thread has announced.
    pub(crate) fn restore(&self) {
        for (first, ones) in runs(self.saved) {
            let old = self.old.as_ptr().cast::<u8>();
            // SAFETY: bytes that this transaction announced, in a mapped puddle; `old` has 64 bytes.
            unsafe { line::copy((self.address + first) as *mut u8, old.add(first), ones) };
        }
    }
}

/// Lines by number (address divided by 64), each once, in the order in which they came.
#[derive(Debug)]
pub(super) struct Lines {
    lines: Vec<Line>,
    /// Open hash from line number to index in `lines`; a power of two in size, at most half full. Emptied by the next
    /// epoch.
    index: Vec<Place>,
    epoch: u64,
}

impl Default for Lines {
    fn default() -> Self {
        let (lines, index) = Self::with_index(INDEX_MIN);
        Self {
            lines,
            index,
            epoch: 1,
        }
    }
}

/// The bytes of the line at `number` that `[start, end)` covers.
#[inline]
pub(super) fn mask_of(number: usize, start: usize, end: usize) -> u64 {
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

/// The lines that `[start, end)` touches.
#[inline]
pub(super) fn lines_of(start: usize, end: usize) -> Range<usize> {
    start / LINE..end.div_ceil(LINE)
}

impl Lines {
    /// The lines, in the order in which they came.
    #[inline]
    pub(super) fn iter(&self) -> impl ExactSizeIterator<Item = AnnouncedLine<'_>> {
        self.lines.iter().map(|line| AnnouncedLine {
            address: line.number * LINE,
            mask: line.mask,
            saved: line.saved,
            old: &line.old,
        })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.lines.len()
    }

    /// The bytes of a line that are announced.
    #[inline]
    pub(super) fn mask(&self, number: usize) -> u64 {
        self.find(number).map_or(0, |at| self.lines[at].mask)
    }

    /// The bytes of a line that are announced and were not kept.
    pub(super) fn not_saved(&self, number: usize) -> u64 {
        self.find(number).map_or(0, |at| {
            let line = &self.lines[at];
            line.mask & !line.saved
        })
    }

    /// Adds `[start, start + len)`.
    #[inline]
    pub(super) fn insert(&mut self, start: usize, len: usize) {
        for number in lines_of(start, start + len) {
            self.line(number).mask |= mask_of(number, start, start + len);
        }
    }

    /// Adds `[start, start + len)`, and keeps what its bytes hold now, except for bytes that were announced before.
    ///
    /// # Safety
    /// The range is not empty, it is readable, and nobody changes it meanwhile.
    #[inline(always)]
    pub(super) unsafe fn insert_saving(&mut self, start: usize, len: usize) {
        let offset = start % LINE;
        if offset + len > LINE {
            // SAFETY: the same contract.
            return unsafe { self.insert_saving_except(start, len, |_| 0) };
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

    /// The same for the word at `start`, a multiple of 8, which holds `old`; where that takes few steps and no call.
    /// Whether it was done.
    #[inline(always)]
    pub(super) fn insert_word(&mut self, start: usize, old: u64) -> bool {
        debug_assert!(start.is_multiple_of(8));
        if self.is_growing() {
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

    /// The same, whatever it takes; of a word that was announced before nothing is kept.
    pub(super) fn insert_old(&mut self, start: usize, old: u64) {
        let mask = 0xff << (start % LINE);
        let line = self.line(start / LINE);
        if line.mask & mask == 0 {
            line.mask |= mask;
            line.saved |= mask;
            line.old[start % LINE / 8].write(old);
        }
    }

    /// As [`Lines::insert_saving`], without the bytes of each line that `except` tells.
    ///
    /// # Safety
    /// As for [`Lines::insert_saving`].
    #[inline(never)]
    pub(super) unsafe fn insert_saving_except(
        &mut self,
        start: usize,
        len: usize,
        except: impl Fn(usize) -> u64,
    ) {
        for number in lines_of(start, start + len) {
            let mask = mask_of(number, start, start + len) & !except(number);
            if mask == 0 {
                // In a fresh object: nothing is kept of it.
                continue;
            }
            let line = self.line(number);
            let fresh = mask & !line.mask;
            line.mask |= mask;
            line.saved |= fresh;
            // SAFETY: bytes of the range of the contract.
            unsafe { save(&mut line.old, number * LINE, fresh) };
        }
    }

    /// As [`Lines::insert_saving`]; where that takes few steps and no call. Whether it was done. `save` copies the
    /// bytes of a line that a mask selects: it gets the target, the line, and the mask.
    #[inline(always)]
    pub(super) fn insert_few(
        &mut self,
        start: usize,
        len: usize,
        save: impl Fn(*mut u8, *const u8, u64),
    ) -> bool {
        let end = start + len - 1;
        let (first, last) = (start / LINE, end / LINE);
        if (self.lines.len() + last - first) * 2 >= self.index.len() {
            return false;
        }
        let mut mask = !0 << (start % LINE);
        for number in first..=last {
            if number == last {
                mask &= !0 >> (LINE - 1 - end % LINE);
            }
            let (at, fresh) = match self.find(number) {
                Ok(at) => {
                    // SAFETY: entries of this epoch name lines that are there.
                    let line = unsafe { self.lines.get_unchecked_mut(at) };
                    let fresh = mask & !line.mask;
                    line.mask |= mask;
                    line.saved |= fresh;
                    (at, fresh)
                }
                Err(slot) => (self.enter(number, slot, mask), mask),
            };
            // SAFETY: the line is there.
            let old = unsafe { &mut self.lines.get_unchecked_mut(at).old };
            save(old.as_mut_ptr().cast(), (number * LINE) as *const u8, fresh);
            mask = !0;
        }
        true
    }

    /// Forgets everything.
    #[inline]
    pub(super) fn clear(&mut self) {
        if self.epoch == EPOCH_MAX || self.index.len() > INDEX_KEPT {
            self.forget_epochs();
        }
        self.epoch += 1;
        self.lines.clear();
    }

    #[cold]
    fn forget_epochs(&mut self) {
        if self.index.len() > INDEX_KEPT {
            (self.lines, self.index) = Self::with_index(INDEX_MIN);
        } else if self.epoch == EPOCH_MAX {
            self.index.fill(0);
        } else {
            return;
        }
        self.epoch = 0;
    }

    fn with_index(places: usize) -> (Vec<Line>, Vec<Place>) {
        debug_assert!(places.is_power_of_two());
        // Half of the places are ever used.
        (Vec::with_capacity(places / 2), vec![0; places])
    }

    /// The entry of the line that is at `at` in `lines`.
    #[inline(always)]
    fn place(&self, at: usize) -> Place {
        self.epoch << EPOCH_SHIFT | at as u64
    }

    /// Where the line is in `lines`, or else the free entry of the index that is to name it.
    #[inline(always)]
    fn find(&self, number: usize) -> Result<usize, usize> {
        let last = self.index.len() - 1;
        // Fibonacci hashing: the upper bits of the product are the well mixed ones.
        let mut slot = (number.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) & last;
        loop {
            // SAFETY: the length is a power of two, so `last` is its mask.
            let place = unsafe { *self.index.get_unchecked(slot) };
            if place >> EPOCH_SHIFT != self.epoch {
                return Err(slot);
            }
            let at = place as u32 as usize;
            // SAFETY: entries of this epoch name lines that are there.
            if unsafe { self.lines.get_unchecked(at) }.number == number {
                return Ok(at);
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
        let at = self.lines.len();
        let place = self.place(at);
        debug_assert!(at < self.lines.capacity());
        // SAFETY: less than half of the index is in use, and there is room for as many lines; `find` gives slots of the
        // index.
        unsafe {
            let line = self.lines.as_mut_ptr().add(at);
            (&raw mut (*line).number).write(number);
            (&raw mut (*line).mask).write(mask);
            (&raw mut (*line).saved).write(mask);
            self.lines.set_len(at + 1);
            *self.index.get_unchecked_mut(slot) = place;
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
                self.index[slot] = self.place(at);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_of_ones_are_found() {
        let found = |bits| runs(bits).collect::<Vec<_>>();
        assert_eq!(found(0), []);
        assert_eq!(found(u64::MAX), [(0, 64)]);
        assert_eq!(found(0b1011_0001), [(0, 1), (4, 2), (7, 1)]);
        assert_eq!(found(1 << 63 | 1), [(0, 1), (63, 1)]);
    }
}
