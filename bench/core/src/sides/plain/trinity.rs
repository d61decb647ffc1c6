//! trinity: Trinity-VR of Ramalhete, Correia and Felber (PPoPP 2021), as this project understands it: a transaction
//! costs two fences, and there is no log.
//!
//! The program works in volatile memory. Three of its words share a line on the media, with their values before, and
//! the number of the transaction that has changed them. A commit writes the lines of the words that were stored,
//! fences, writes the number of the next transaction to a line of its own, and fences again. Recovery reads all of the
//! region, and takes the values before from lines with that number.
//!
//! The allocator is that of [`arena`](crate::sides::arena), and its heads and links are words as all others. Nothing
//! recovers it here but the test.

use std::path::Path;

use durum_persist::{Site, line};

use super::memory::Written;
use super::stored::Stored;
use crate::error::Result;
use crate::side::Role;
use crate::sides::arena::{ARENA_SIZE, Arena};

const TRIPLES: Site = Site("trinity words");
const NUMBER: Site = Site("trinity number");

/// Words of the program that share a line.
const WORDS: usize = 3;

/// What the media have of [`WORDS`] words. Stored to in the order `back`, `sequence`, `main`.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
struct Triple {
    main: [u64; WORDS],
    back: [u64; WORDS],
    sequence: u64,
}

/// The region, and what the running transaction has stored.
#[derive(Debug)]
pub struct Trinity {
    region: Arena,
    /// Where the program's words begin.
    base: usize,
    stored: Stored,
    /// The lines of this transaction, each once.
    triples: Vec<*mut Triple>,
    sequence: u64,
}

impl Written for Trinity {
    const NAME: &str = "trinity";
    const ROLE: Role = Role::Rival;
    const DOMAIN: &str = "dram";
    const DURABLE_ALLOCATOR: bool = true;

    fn new(arena: &Arena, dir: &Path) -> Result<Self> {
        // The first line has the number.
        let lines = (ARENA_SIZE / 8).div_ceil(WORDS) + 1;
        Ok(Trinity {
            region: Arena::with_size(&dir.join("trinity-region"), lines * line::LINE)?,
            base: arena.base().addr(),
            stored: Stored::default(),
            triples: Vec::new(),
            sequence: 1,
        })
    }

    #[inline]
    fn insert(&mut self, addr: *const u8, len: usize) {
        self.stored.insert(addr, len);
    }

    #[inline]
    fn commit(&mut self) {
        let mut stored = std::mem::take(&mut self.stored);
        stored.take_words(|word| self.store(word));
        self.stored = stored;
        if self.triples.is_empty() {
            return;
        }
        for triple in self.triples.drain(..) {
            // SAFETY: a line of the region.
            unsafe { line::write_back(triple.cast(), line::LINE, TRIPLES) };
        }
        // ORDER: the words are durable before they count.
        line::fence(TRIPLES);
        self.sequence += 1;
        let number: *mut u64 = self.region.base().cast();
        // SAFETY: the first line of the region.
        unsafe {
            number.write(self.sequence);
            line::write_back(number.cast(), 8, NUMBER);
        }
        // ORDER: the transaction is durable before the next one begins.
        line::fence(NUMBER);
    }
}

impl Trinity {
    /// Stores a word of the program to its line.
    #[inline]
    fn store(&mut self, word: usize) {
        let number = (word - self.base) / 8;
        let offset = (1 + number / WORDS) * line::LINE;
        let triple: *mut Triple = self.region.base().wrapping_add(offset).cast();
        // SAFETY: a word of the program, and its line. Volatile: in this order, which the processor keeps in a line.
        unsafe {
            let value = (word as *const u64).read();
            if (*triple).sequence != self.sequence {
                (&raw mut (*triple).back).write_volatile((*triple).main);
                (&raw mut (*triple).sequence).write_volatile(self.sequence);
                self.triples.push(triple);
            }
            (&raw mut (*triple).main[number % WORDS]).write_volatile(value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COUNT: usize = 20;

    fn recovered(triples: &[Triple], number: u64) -> Vec<u64> {
        let values = triples.iter().flat_map(|triple| match triple.sequence {
            sequence if sequence == number => triple.back,
            _ => triple.main,
        });
        values.collect()
    }

    #[test]
    fn a_transaction_counts_once_its_number_does() {
        let dir = tempfile::tempdir_in("/dev/shm").unwrap();
        let mut arena = Arena::create(&dir.path().join("program")).unwrap();
        let mut trinity = Trinity::new(&arena, dir.path()).unwrap();
        let words: *mut u64 = arena.take(8 * WORDS * COUNT).unwrap().cast();
        assert_eq!(words.addr(), trinity.base);
        let mut expected = vec![0; WORDS * COUNT];
        for round in 1..300u64 {
            let was = expected.clone();
            for at in 0..[1, 2, 7, 40][round as usize % 4] {
                let index = (round as usize * 7 + at * 5) % expected.len();
                // SAFETY: a word of the array.
                unsafe { words.add(index).write(round * 100 + at as u64) };
                expected[index] = round * 100 + at as u64;
                trinity.insert(words.wrapping_add(index).cast(), 8);
            }
            let cost = durum_persist::count::thread_counters();
            trinity.commit();
            let cost = durum_persist::count::thread_counters() - cost;
            assert_eq!(cost.fences, 2);
            // SAFETY: the lines behind that of the number.
            let triples = unsafe {
                let first: *const Triple = trinity.region.base().add(line::LINE).cast();
                std::slice::from_raw_parts(first, COUNT)
            };
            assert_eq!(recovered(triples, round + 1), expected);
            assert_eq!(recovered(triples, round), was);
        }
    }
}
