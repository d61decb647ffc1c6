//! Many changes of the same places, merged into one of each.

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

    /// Adds a change inside of the page to what was there before.
    fn merge(page: &mut Option<Self>, change: Change<'_>) {
        match change {
            Change::Words {
                operation,
                line,
                mask,
                words,
            } => {
                let page = page.get_or_insert_with(Self::unchanged);
                let start = line as usize % Self::BYTES;
                let selected = (0..8).filter(|bit| mask >> bit & 1 == 1);
                for (index, word) in selected.zip(words) {
                    page.change(start + 8 * index, operation, u64::from_le(*word));
                }
            }
            Change::Copy { data, .. } if data.len() == Self::BYTES => {
                let (keep, value) = (None, data.to_vec());
                *page = Some(Self { keep, value });
            }
            Change::Copy { target, data } => {
                let page = page.get_or_insert_with(Self::unchanged);
                page.store(target as usize % Self::BYTES, data);
            }
            Change::Fresh { .. } => {}
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
            self.value[at] = operation.apply(self.value[at].into(), bits.into()) as u8;
        }
    }
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

    /// What the changes make of each page, in the order of the pages' addresses.
    pub fn merged(mut self) -> impl Iterator<Item = (u64, Page)> {
        // Stable: later changes of a page stay behind earlier ones.
        self.pieces.sort_by_key(|(page, _)| *page);
        let mut pieces = self.pieces.into_iter().peekable();
        std::iter::from_fn(move || {
            let (address, _) = pieces.peek()?;
            let address = *address;
            let mut page = None;
            while let Some((_, change)) = pieces.next_if(|(page, _)| *page == address) {
                Page::merge(&mut page, change);
            }
            page.map(|page| (address, page))
        })
    }
}

fn page_of(address: u64) -> u64 {
    address - address % Page::BYTES as u64
}
