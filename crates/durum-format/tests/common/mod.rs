//! Shared by the tests: hex images, names, and a writer of logs.
#![allow(dead_code, reason = "each test file uses its own part of this")]

pub mod elf;
pub mod ring;
pub mod slots;

use durum_format::Uuid;
use durum_format::log::{
    self, EntryFlags, LOG_AREA_OFFSET, LogArea, LogHeader, Order, REACH_OFFSET, RangeWord, Salt,
};
use durum_format::reach::Reach;

/// The bytes that a hex text stands for; white space does not count.
pub fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text
        .bytes()
        .filter(|byte| !byte.is_ascii_whitespace())
        .collect();
    let value = |digit: u8| (digit as char).to_digit(16).unwrap() as u8;
    digits
        .chunks_exact(2)
        .map(|pair| value(pair[0]) << 4 | value(pair[1]))
        .collect()
}

/// The uuid with bytes that count up from `first`.
pub fn uuid(first: u8) -> Uuid {
    Uuid(std::array::from_fn(|index| first + index as u8))
}

/// All changes of a single bit and of a whole byte, with the offset of the byte.
pub fn flips(bytes: &[u8]) -> impl Iterator<Item = (usize, Vec<u8>)> + '_ {
    (0..bytes.len()).flat_map(move |at| {
        (0..8)
            .map(|bit| 1 << bit)
            .chain([0xff])
            .map(move |mask: u8| {
                let mut changed = bytes.to_vec();
                changed[at] ^= mask;
                (at, changed)
            })
    })
}

pub const LOG_ID: u64 = 0xa1a2_a3a4_a5a6_a7a8;

/// Writes logs as the commit path does, into plain memory.
#[derive(Clone)]
pub struct LogWriter {
    pub heap: Vec<u8>,
    pub generation: u64,
    pub at: usize,
    pub count: u32,
}

impl LogWriter {
    /// An armed log of generation 1 with room for `capacity` bytes of entries.
    pub fn new(capacity: usize) -> Self {
        let mut writer = Self {
            heap: empty_heap(capacity, false),
            generation: 0,
            at: 0,
            count: 0,
        };
        writer.next(RangeWord::undo(1));
        writer
    }

    /// As if the log had been used `generation - 1` times already, without entries.
    pub fn at_generation(capacity: usize, generation: u64) -> Self {
        let mut writer = Self::new(capacity);
        for generation in generation.saturating_sub(16).max(1)..=generation {
            writer.next(RangeWord::undo(generation));
        }
        writer
    }

    /// Writes a range word and begins at the start of the area.
    pub fn next(&mut self, word: RangeWord) {
        self.set_word(word);
        self.generation = word.generation;
        self.at = 0;
        self.count = 0;
    }

    /// Writes a range word into its slot.
    pub fn set_word(&mut self, word: RangeWord) {
        let offset = log::slot_offset(word.generation) as usize;
        self.heap[offset..offset + 8].copy_from_slice(&word.to_u64().to_le_bytes());
    }

    pub fn salt(&self) -> Salt {
        Salt::new(LOG_ID, self.generation)
    }

    fn put(
        &mut self,
        flags: EntryFlags,
        encode: impl FnOnce(&mut [u8], &Salt) -> Option<usize>,
    ) -> (usize, usize) {
        let salt = self.salt();
        let start = self.at;
        let area = &mut self.heap[LOG_AREA_OFFSET as usize..];
        let len = encode(&mut area[start..], &salt).expect("the area is large enough");
        self.at = log::next_entry_offset(start, len - 24, flags);
        self.count += 1;
        (start, start + len)
    }

    /// An undo entry with its fence. Gives where in the area it lies.
    pub fn undo(&mut self, target: u64, saved: &[u8]) -> (usize, usize) {
        self.copy(Order::Reverse, EntryFlags::FENCED, 1, target, saved)
    }

    /// A redo entry of the commit's batch.
    pub fn redo(&mut self, target: u64, data: &[u8]) -> (usize, usize) {
        self.copy(Order::Forward, EntryFlags::NONE, 3, target, data)
    }

    pub fn copy(
        &mut self,
        order: Order,
        flags: EntryFlags,
        sequence: u8,
        target: u64,
        data: &[u8],
    ) -> (usize, usize) {
        self.put(flags, |out, salt| {
            log::encode_copy(out, salt, order, flags, sequence, target, data)
        })
    }

    pub fn bits(&mut self, set: bool, target: u64, mask: u64) -> (usize, usize) {
        self.put(EntryFlags::NONE, |out, salt| {
            log::encode_bits(out, salt, set, EntryFlags::NONE, 3, target, mask)
        })
    }

    /// A seal over all entries so far and over ranges with these contents.
    pub fn seal(&mut self, flags: EntryFlags, ranges: &[(u64, &[u8])]) -> (usize, usize) {
        let mut crc = self.salt().crc();
        for (_, contents) in ranges {
            crc.update(contents);
        }
        let ranges: Vec<(u64, u64)> = ranges
            .iter()
            .map(|(target, data)| (*target, data.len() as u64))
            .collect();
        let count = self.count;
        self.put(flags, |out, salt| {
            log::encode_seal(out, salt, flags, count, &ranges, crc.value())
        })
    }

    /// A chain entry; what follows is to be written with `in_continuation`.
    pub fn chain(&mut self, address: u64) -> (usize, usize) {
        self.put(EntryFlags::NONE, |out, salt| {
            log::encode_chain(out, salt, address)
        })
    }

    /// A writer for the continuation of this log, with the same generation and count.
    pub fn continuation(&self, capacity: usize) -> Self {
        let heap = empty_heap(capacity, true);
        Self {
            heap,
            generation: self.generation,
            at: 0,
            count: self.count,
        }
    }

    /// Says how far the log was ever used.
    pub fn reach(&mut self, bytes: u64, is_chained: bool) {
        let word = Reach { bytes, is_chained }.to_u64().to_le_bytes();
        self.heap[REACH_OFFSET as usize..][..8].copy_from_slice(&word);
    }

    pub fn area(&self) -> LogArea<'_> {
        LogArea::parse(&self.heap).unwrap()
    }

    /// The entry area.
    pub fn entries(&mut self) -> &mut [u8] {
        &mut self.heap[LOG_AREA_OFFSET as usize..]
    }
}

pub fn empty_heap(capacity: usize, is_continuation: bool) -> Vec<u8> {
    let header = LogHeader {
        log_id: LOG_ID,
        capacity: capacity as u64,
        owner: uuid(0x20),
        is_continuation,
    };
    let mut heap = vec![0; LOG_AREA_OFFSET as usize + capacity];
    heap[..64].copy_from_slice(&header.encode());
    heap
}
