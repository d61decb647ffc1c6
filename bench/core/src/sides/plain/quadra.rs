//! quadra: Quadra-VR of Ramalhete, Correia and Felber (PPoPP 2021), as this project understands it: a transaction costs
//! one fence, and there is no log.
//!
//! The program works in volatile memory. Each of its words has four on the media, in one half of a line: a number, the
//! value before, the value now, and the number again. A commit writes those of each word that was stored, in this
//! order, and fences once. The last one says how many there are. A line keeps the order in which it was stored to, so
//! recovery knows by the two numbers which words are whole; it reads all of the region, and if words of the last
//! transaction are missing, it takes those before. The price: every word of the program is four, and lines that the
//! program stored to side by side are written back four times as often.
//!
//! It is the record to beat where little changes. The allocator is that of [`arena`](crate::sides::arena), and its
//! heads and links are words as all others. Nothing recovers it here but the test.

use std::path::Path;

use durum_persist::{Site, line};

use super::memory::Written;
use super::stored::Stored;
use crate::error::Result;
use crate::side::Role;
use crate::sides::arena::{ARENA_SIZE, Arena};

const QUADS: Site = Site("quadra words");

/// Bytes of the region for a byte of the program.
const WIDTH: usize = size_of::<Quad>() / 8;
/// Above them the last word of a transaction says how many it has.
const SEQUENCE_BITS: u32 = 40;

/// What the media have of a word. Stored to in the order `back`, `begun`, `main`, `ended`.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(32))]
struct Quad {
    begun: u64,
    back: u64,
    main: u64,
    ended: u64,
}

/// The region, and what the running transaction has stored.
#[derive(Debug)]
pub struct Quadra {
    region: Arena,
    /// Where the program's words begin.
    base: usize,
    stored: Stored,
    /// The quads of this transaction, each once.
    quads: Vec<*mut Quad>,
    sequence: u64,
}

impl Written for Quadra {
    const NAME: &str = "quadra";
    const ROLE: Role = Role::Rival;
    const DOMAIN: &str = "dram";
    const DURABLE_ALLOCATOR: bool = true;

    fn new(arena: &Arena, dir: &Path) -> Result<Self> {
        Ok(Quadra {
            region: Arena::with_size(&dir.join("quadra-region"), WIDTH * ARENA_SIZE)?,
            base: arena.base().addr(),
            stored: Stored::default(),
            quads: Vec::new(),
            sequence: 0,
        })
    }

    #[inline]
    fn insert(&mut self, addr: *const u8, len: usize) {
        self.stored.insert(addr, len);
    }

    #[inline]
    fn commit(&mut self) {
        self.sequence += 1;
        let mut stored = std::mem::take(&mut self.stored);
        stored.take_words(|word| self.store(word));
        self.stored = stored;
        let Some(&last) = self.quads.last() else {
            return;
        };
        let count = self.quads.len() as u64;
        assert!(count < 1 << (64 - SEQUENCE_BITS));
        // SAFETY: a quad of the region.
        unsafe { (&raw mut (*last).ended).write(count << SEQUENCE_BITS | self.sequence) };
        let mut before = 0;
        for quad in self.quads.drain(..) {
            let number = quad.addr() / line::LINE;
            if number != before {
                // SAFETY: a line of the region.
                unsafe { line::write_back(quad.cast(), size_of::<Quad>(), QUADS) };
            }
            before = number;
        }
        // ORDER: the words are durable before the next transaction begins. After a crash that comes earlier some are
        // not whole, and those before count.
        line::fence(QUADS);
    }
}

impl Quadra {
    /// Stores a word of the program to its quad.
    #[inline]
    fn store(&mut self, word: usize) {
        let offset = WIDTH * (word - self.base);
        let quad: *mut Quad = self.region.base().wrapping_add(offset).cast();
        // SAFETY: a word of the program, and its quad. Volatile: in this order, which the processor keeps in a line.
        unsafe {
            let value = (word as *const u64).read();
            if (*quad).begun != self.sequence {
                (&raw mut (*quad).back).write_volatile((*quad).main);
                (&raw mut (*quad).begun).write_volatile(self.sequence);
                self.quads.push(quad);
            }
            (&raw mut (*quad).main).write_volatile(value);
            (&raw mut (*quad).ended).write_volatile(self.sequence);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What recovery makes of the first quads.
    fn recovered(quads: &[Quad]) -> Vec<u64> {
        let sequence_of = |quad: &Quad| quad.ended & ((1 << SEQUENCE_BITS) - 1);
        let last = quads.iter().map(|quad| quad.begun).max().unwrap();
        let of_last = quads.iter().filter(|quad| quad.begun == last);
        let whole = of_last.filter(|quad| sequence_of(quad) == last);
        let found = whole.clone().count() as u64;
        let is_whole = whole
            .clone()
            .any(|quad| quad.ended >> SEQUENCE_BITS == found);
        let value = |quad: &Quad| match quad.begun == last && !is_whole {
            true => quad.back,
            false => quad.main,
        };
        quads.iter().map(value).collect()
    }

    #[test]
    fn a_transaction_is_there_with_all_of_its_lines_or_not_at_all() {
        const COUNT: usize = 64;
        let dir = tempfile::tempdir_in("/dev/shm").unwrap();
        let mut arena = Arena::create(&dir.path().join("program")).unwrap();
        let mut quadra = Quadra::new(&arena, dir.path()).unwrap();
        let words: *mut u64 = arena.take(8 * COUNT).unwrap().cast();
        let offset = WIDTH * (words.addr() - quadra.base);
        // SAFETY: the quads of the words.
        let image = |quadra: &Quadra| unsafe {
            let first: *const Quad = quadra.region.base().add(offset).cast();
            std::slice::from_raw_parts(first, COUNT).to_vec()
        };
        let mut expected = vec![0; COUNT];
        for round in 1..300u64 {
            let (before, was) = (image(&quadra), expected.clone());
            for at in 0..[1, 2, 7, 40][round as usize % 4] {
                let index = (round as usize * 7 + at * 5) % COUNT;
                // SAFETY: a word of the array.
                unsafe { words.add(index).write(round * 100 + at as u64) };
                expected[index] = round * 100 + at as u64;
                quadra.insert(words.wrapping_add(index).cast(), 8);
            }
            let cost = durum_persist::count::thread_counters();
            quadra.commit();
            let cost = durum_persist::count::thread_counters() - cost;
            assert_eq!(cost.fences, 1);
            let after = image(&quadra);
            assert_eq!(recovered(&after), expected);
            // Each line that has changed is the one that a crash has kept from the media.
            for pair in (0..COUNT).step_by(2) {
                let mut torn = after.clone();
                torn[pair..pair + 2].copy_from_slice(&before[pair..pair + 2]);
                let is_lost = after[pair..pair + 2].iter().any(|quad| quad.begun == round);
                assert_eq!(recovered(&torn), if is_lost { &*was } else { &*expected });
            }
        }
    }
}
