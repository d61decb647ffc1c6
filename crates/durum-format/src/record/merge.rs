//! Many changes of the same places, merged into one of each.

use std::collections::HashMap;

use rustc_hash::FxBuildHasher;

use super::entry::{Change, Operation};

/// What changes make of the 4 KiB at one address: `new = old & keep | value`, byte by byte.
#[derive(Clone, Debug)]
pub struct Page {
    /// Bits of each byte that stay as they were; `None`: of none.
    pub keep: Option<Box<[u8; Self::BYTES]>>,
    /// The other bits.
    pub value: Vec<u8>,
}

impl Page {
    /// Bytes of a page.
    pub const BYTES: usize = 4096;

    fn unchanged() -> Self {
        Self {
            keep: Some(Box::new([!0; Self::BYTES])),
            value: vec![0; Self::BYTES],
        }
    }

    fn store(&mut self, start: usize, data: &[u8]) {
        let range = start..start + data.len();
        if let Some(keep) = &mut self.keep {
            keep[range.clone()].fill(0);
        }
        self.value[range].copy_from_slice(data);
    }

    fn change(&mut self, start: usize, operation: Operation, word: u64) {
        let word = word.to_le_bytes();
        if operation == Operation::Store {
            return self.store(start, &word);
        }
        for (at, bits) in (start..).zip(word) {
            if let Some(keep) = &mut self.keep {
                keep[at] &= !bits;
            }
            match operation {
                Operation::ClearBits => self.value[at] &= !bits,
                Operation::SetBits | Operation::Store => self.value[at] |= bits,
            }
        }
    }
}

/// Merged changes, by the addresses of their pages.
#[derive(Debug, Default)]
pub struct Pages(HashMap<u64, Page, FxBuildHasher>);

impl Pages {
    /// The page that holds an address, and where in it.
    fn at(&mut self, address: u64) -> (&mut Page, usize) {
        let start = address as usize % Page::BYTES;
        let page = self
            .0
            .entry(address - start as u64)
            .or_insert_with(Page::unchanged);
        (page, start)
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
                let (page, start) = self.at(line);
                let selected = (0..8).filter(|bit| mask >> bit & 1 == 1);
                for (index, word) in selected.zip(words) {
                    page.change(start + 8 * index, operation, u64::from_le(*word));
                }
            }
            Change::Copy { target, data } => {
                let (mut target, mut data) = (target, data);
                while !data.is_empty() {
                    let start = target as usize % Page::BYTES;
                    let (part, rest) = data.split_at(data.len().min(Page::BYTES - start));
                    if part.len() == Page::BYTES {
                        let (keep, value) = (None, part.to_vec());
                        self.0.insert(target, Page { keep, value });
                    } else {
                        self.at(target).0.store(start, part);
                    }
                    (target, data) = (target + part.len() as u64, rest);
                }
            }
            // It is there.
            Change::Fresh { .. } => {}
        }
    }

    /// Whether nothing was added.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The pages with their addresses, in order.
    pub fn into_sorted(self) -> Vec<(u64, Page)> {
        let mut pages: Vec<_> = self.0.into_iter().collect();
        pages.sort_unstable_by_key(|(address, _)| *address);
        pages
    }
}
