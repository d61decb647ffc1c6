//! A puddle of redo records, written as an engine writes it.

use durum_format::puddle::{PuddleHeader, PuddleKind, heap_offset};
use durum_format::record::{RecordHeader, Ring, segments};
use durum_format::{UNIT, Uuid};

/// A puddle of records, as its writers see it.
pub struct Puddle {
    pub header: PuddleHeader,
    heap: Vec<u64>,
}

impl Puddle {
    pub fn new(number: u8) -> Self {
        let header = PuddleHeader {
            kind: PuddleKind::Records,
            uuid: Uuid([number; 16]),
            owner: Uuid([9; 16]),
            address: u64::from(number) * UNIT,
            size: UNIT,
            is_root: false,
        };
        Self {
            header,
            heap: vec![0; ((UNIT - heap_offset(UNIT)) / 8) as usize],
        }
    }

    pub fn put(&mut self, offset: u64, words: &[u64]) {
        let at = ((offset - heap_offset(UNIT)) / 8) as usize;
        self.heap[at..at + words.len()].copy_from_slice(words);
    }

    pub fn ring(&self) -> Ring<'_> {
        Ring::of(&self.header, zerocopy::IntoBytes::as_bytes(&self.heap[..])).unwrap()
    }
}

pub const FIRST: RecordHeader = RecordHeader {
    stamp: 1,
    watermark: 0,
    previous: 0,
    log: 0,
    part: 0,
    more: false,
    fenced: true,
};

/// Where the first record of a puddle lies.
pub fn start() -> u64 {
    segments(UNIT).next().unwrap().start
}
