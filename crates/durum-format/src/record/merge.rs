//! Many changes of the same places, merged into one of each.

use std::ops::Range;

use super::entry::{Change, Operation};
use crate::LINE;

/// What changes make of the 4 KiB at one address: `new = old & keep | value`, byte by byte.
///
/// Few of the lines of a page are changed where changes are scattered, so only those are looked at.
#[derive(Clone, Debug)]
pub struct Page {
    /// The lines that changes are about, bit n for line n. Elsewhere nothing is changed, whatever stands in `value`.
    lines: u64,
    /// Bits of each byte that stay as they were.
    keep: [u8; Self::BYTES],
    /// The other bits.
    value: [u8; Self::BYTES],
}

/// A part of what changes make of a page. No bit is in two of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part<'p> {
    /// Bytes become others.
    Bytes {
        /// Where in the page.
        at: usize,
        /// What they become.
        bytes: &'p [u8],
    },
    /// Bits of a little-endian word change.
    Bits {
        /// Where in the page, a multiple of 8.
        at: usize,
        /// Those that become 1.
        set: u64,
        /// Those that become 0.
        clear: u64,
    },
}

impl Page {
    /// Bytes of a page.
    pub const BYTES: usize = 4096;
    const LINES: usize = Self::BYTES / LINE as usize;

    fn unchanged() -> Box<Self> {
        Box::new(Self {
            lines: 0,
            keep: [!0; Self::BYTES],
            value: [0; Self::BYTES],
        })
    }

    /// Makes it unchanged.
    fn reset(&mut self) {
        for line in lines(self.lines) {
            self.keep[line].fill(!0);
        }
        self.lines = 0;
    }

    /// Adds a change inside of the page to what was there before.
    fn merge(&mut self, change: &Change<'_>) {
        match *change {
            Change::Words {
                operation,
                line,
                mask,
                words,
            } => {
                let start = line as usize % Self::BYTES;
                let selected = (0..8).filter(|bit| mask >> bit & 1 == 1);
                for (index, word) in selected.zip(words) {
                    self.change(start + 8 * index, operation, u64::from_le(*word));
                }
            }
            Change::Copy { target, data } => self.store(target as usize % Self::BYTES, data),
            Change::Fresh { .. } => {}
        }
    }

    fn touch(&mut self, range: &Range<usize>) {
        let (first, last) = (range.start / LINE as usize, (range.end - 1) / LINE as usize);
        self.lines |= !0 >> (Self::LINES - 1 - last) & !0 << first;
    }

    fn store(&mut self, start: usize, data: &[u8]) {
        let range = start..start + data.len();
        self.touch(&range);
        self.keep[range.clone()].fill(0);
        self.value[range].copy_from_slice(data);
    }

    fn change(&mut self, start: usize, operation: Operation, word: u64) {
        let word = word.to_le_bytes();
        if operation == Operation::Store {
            return self.store(start, &word);
        }
        self.touch(&(start..start + 8));
        for (at, bits) in (start..).zip(word) {
            self.keep[at] &= !bits;
            self.value[at] = operation.apply(self.value[at].into(), bits.into()) as u8;
        }
    }

    /// Visits what is changed.
    pub fn parts<'p>(&'p self, mut visit: impl FnMut(Part<'p>)) {
        let mut run = 0..0;
        for line in lines(self.lines) {
            for at in line.step_by(8) {
                let kept = self.word(&self.keep, at);
                if kept == 0 {
                    // The quick way for nearly all words.
                    self.extend(&mut run, at..at + 8, &mut visit);
                } else if kept != !0 {
                    self.mixed_word(at, &mut run, &mut visit);
                }
            }
        }
        self.visit_run(&run, &mut visit);
    }

    fn word(&self, bytes: &[u8; Self::BYTES], at: usize) -> u64 {
        u64::from_le_bytes(std::array::from_fn(|byte| bytes[at + byte]))
    }

    /// More bytes become others: they lengthen the run of such, or that is over and they begin the next one.
    fn extend<'p>(
        &'p self,
        run: &mut Range<usize>,
        more: Range<usize>,
        visit: &mut impl FnMut(Part<'p>),
    ) {
        if run.end == more.start {
            run.end = more.end;
        } else {
            self.visit_run(run, visit);
            *run = more;
        }
    }

    fn visit_run<'p>(&'p self, run: &Range<usize>, visit: &mut impl FnMut(Part<'p>)) {
        let (at, bytes) = (run.start, &self.value[run.clone()]);
        if !bytes.is_empty() {
            visit(Part::Bytes { at, bytes });
        }
    }

    /// A word of which a part stays: bytes, or bits.
    fn mixed_word<'p>(
        &'p self,
        at: usize,
        run: &mut Range<usize>,
        visit: &mut impl FnMut(Part<'p>),
    ) {
        let mut changed = 0;
        for byte in 0..8 {
            match self.keep[at + byte] {
                0 => self.extend(run, at + byte..at + byte + 1, visit),
                keep => changed |= u64::from(!keep) << (8 * byte),
            }
        }
        if changed != 0 {
            let value = self.word(&self.value, at);
            let (set, clear) = (value & changed, !value & changed);
            visit(Part::Bits { at, set, clear });
        }
    }
}

/// Where the lines lie that a mask has.
fn lines(mut mask: u64) -> impl Iterator<Item = Range<usize>> {
    std::iter::from_fn(move || {
        let line = (mask != 0).then(|| mask.trailing_zeros() as usize)?;
        mask &= mask - 1;
        Some(line * LINE as usize..(line + 1) * LINE as usize)
    })
}

const _: () = assert!(
    size_of::<(u64, Change<'_>)>() <= 56,
    "an entry of one word takes 16 bytes in the log"
);

/// Changes, gathered by page: a few times the memory that they take in the log, however far they are scattered.
#[derive(Debug, Default)]
pub struct Pages<'a> {
    /// The address of a page, and a change inside it.
    pieces: Vec<(u64, Change<'a>)>,
}

impl<'a> Pages<'a> {
    /// Adds a change, behind all that were added before.
    pub fn apply(&mut self, change: Change<'a>) {
        match change {
            Change::Words { line, .. } => self.pieces.push((page_of(line), change)),
            Change::Copy { target, data } => {
                let (mut target, mut data) = (target, data);
                while !data.is_empty() {
                    let rest_of_page = page_of(target) + Page::BYTES as u64 - target;
                    let (part, rest) = data.split_at(data.len().min(rest_of_page as usize));
                    let piece = Change::Copy { target, data: part };
                    self.pieces.push((page_of(target), piece));
                    (target, data) = (target + part.len() as u64, rest);
                }
            }
            // It is there.
            Change::Fresh { .. } => {}
        }
    }

    /// Visits what the changes make of each page, in the order of the pages' addresses, up to the first error.
    ///
    /// # Errors
    /// Of `visit`.
    pub fn merged<E>(
        mut self,
        mut visit: impl FnMut(u64, &Page) -> Result<(), E>,
    ) -> Result<(), E> {
        // Stable: later changes of a page stay behind earlier ones.
        self.pieces.sort_by_key(|(page, _)| *page);
        let mut page = Page::unchanged();
        for pieces in self.pieces.chunk_by(|(one, _), (next, _)| one == next) {
            for (_, change) in pieces {
                page.merge(change);
            }
            visit(pieces[0].0, &page)?;
            page.reset();
        }
        Ok(())
    }
}

fn page_of(address: u64) -> u64 {
    address - address % Page::BYTES as u64
}
