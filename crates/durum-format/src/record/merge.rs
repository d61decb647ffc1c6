//! Many changes of the same lines, merged into one of each.

use std::collections::HashMap;

use rustc_hash::FxBuildHasher;

use super::entry::{Change, Operation};

const LINE: usize = 64;

/// What changes make of one line: `new = old & keep | value`.
#[derive(Clone, Copy, Debug)]
pub struct Line {
    /// Bits of each word that stay as they were.
    pub keep: [u64; 8],
    /// The other bits.
    pub value: [u64; 8],
}

impl Line {
    const UNCHANGED: Self = Self {
        keep: [!0; 8],
        value: [0; 8],
    };

    fn change(&mut self, index: usize, operation: Operation, word: u64) {
        let (keep, value) = (&mut self.keep[index], &mut self.value[index]);
        match operation {
            Operation::Store => (*keep, *value) = (0, word),
            Operation::SetBits => (*keep, *value) = (*keep & !word, *value | word),
            Operation::ClearBits => (*keep, *value) = (*keep & !word, *value & !word),
        }
    }

    fn store_bytes(&mut self, start: usize, data: &[u8]) {
        for (at, byte) in (start..).zip(data) {
            let shift = at % 8 * 8;
            let (keep, value) = (&mut self.keep[at / 8], &mut self.value[at / 8]);
            *keep &= !(0xff << shift);
            *value = *value & !(0xff << shift) | u64::from(*byte) << shift;
        }
    }

    /// Makes the changes to a line.
    pub fn patch(&self, line: &mut [u8; LINE]) {
        let (words, _) = line.as_chunks_mut::<8>();
        for ((word, keep), value) in words.iter_mut().zip(self.keep).zip(self.value) {
            *word = (u64::from_le_bytes(*word) & keep | value).to_le_bytes();
        }
    }
}

/// Merged changes, by the addresses of their lines.
#[derive(Debug, Default)]
pub struct Lines(HashMap<u64, Line, FxBuildHasher>);

impl Lines {
    fn at(&mut self, line: u64) -> &mut Line {
        self.0.entry(line).or_insert(Line::UNCHANGED)
    }

    /// Adds a change, behind all that were added before.
    pub fn apply(&mut self, change: &Change<'_>) {
        match *change {
            Change::Words {
                operation,
                line,
                mask,
                words,
            } => {
                let place = self.at(line);
                let selected = (0..8).filter(|bit| mask >> bit & 1 == 1);
                for (index, word) in selected.zip(words) {
                    place.change(index, operation, u64::from_le(*word));
                }
            }
            Change::Copy { target, data } => {
                let (mut target, mut data) = (target, data);
                while !data.is_empty() {
                    let start = target as usize % LINE;
                    let (part, rest) = data.split_at(data.len().min(LINE - start));
                    self.at(target - start as u64).store_bytes(start, part);
                    (target, data) = (target + part.len() as u64, rest);
                }
            }
            Change::Fresh { .. } => {}
        }
    }

    /// Whether nothing was added.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The lines, in order of address.
    pub fn into_sorted(self) -> Vec<(u64, Line)> {
        let mut lines: Vec<_> = self.0.into_iter().collect();
        lines.sort_unstable_by_key(|(address, _)| *address);
        lines
    }
}
