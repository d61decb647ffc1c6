//! redo1: the least that an engine with a log of new contents and one fence has to do.
//!
//! The program stores to memory of its own. A commit writes one record of the words that were stored, with a checksum,
//! to a log, past the cache; and fences, once. Then it stores the lines to their home places, which are written back
//! by later commits, each once for all that a batch of records changed. Nothing else: no allocator on the media, no old
//! contents to go back to, no locks, no watermark, one thread. Nobody reads the log. So no engine that works like this
//! can be faster by much, and what an engine takes more is what it does more.

use std::path::Path;

use durum_format::crc::Crc;
use durum_persist::{Site, line};

use super::memory::Written;
use crate::error::Result;
use crate::side::Role;
use crate::sides::arena::Arena;

const RECORD: Site = Site("redo1 record");
const HOME: Site = Site("redo1 home");

/// Small enough for the second-level cache.
const LOG_SIZE: usize = 1 << 20;
/// Bytes of records whose lines are written home together, each once.
const BATCH_BYTES: usize = 128 << 10;
/// Lines of a transaction, at most.
const LINES_MAX: usize = 4096;
/// Up to here they are searched one by one.
const FEW: usize = 16;
/// Length and checksum, and a number.
const HEADER_WORDS: usize = 2;
/// Of the largest transaction.
const RECORD_WORDS_MAX: usize = HEADER_WORDS + 9 * LINES_MAX;
/// Bytes that are summed up at once.
const CHECKED_AT_ONCE: usize = 120;
/// Places of the filter that keeps lines from being noted twice. Two that share a place may be.
const SEEN: usize = 4096;

/// A line of the program's memory, and which of its words were stored.
#[derive(Clone, Copy, Debug)]
struct Changed {
    number: usize,
    words: u8,
}

/// What the running transaction has stored, the log, and home.
#[derive(Debug)]
pub struct Redo {
    changed: Vec<Changed>,
    /// Open hash into `changed`, used from the line after `FEW` on: an epoch, and below it the place. Those of older
    /// epochs count as empty.
    index: Vec<u64>,
    epoch: u64,
    log: Arena,
    cursor: usize,
    /// The record in the making.
    record: Vec<u64>,
    number: u64,
    _home: Arena,
    /// What to add to an address of the program to get its home, which stays mapped.
    offset: usize,
    batch_bytes: usize,
    batch: Vec<usize>,
    seen: Box<[usize; SEEN]>,
    /// Lines of the batch before; those before `next` are written back.
    writing: Vec<usize>,
    next: usize,
}

impl Written for Redo {
    const NAME: &str = "redo1";
    const ROLE: Role = Role::Bound;
    const DOMAIN: &str = "dram";

    fn new(arena: &Arena, dir: &Path) -> Result<Self> {
        let home = Arena::create(&dir.join("redo1-home"))?;
        Ok(Redo {
            changed: Vec::with_capacity(LINES_MAX),
            index: vec![0; 2 * LINES_MAX],
            epoch: 0,
            log: Arena::create(&dir.join("redo1-log"))?,
            cursor: 0,
            record: vec![0; RECORD_WORDS_MAX],
            number: 0,
            offset: home.base().addr().wrapping_sub(arena.base().addr()),
            _home: home,
            batch_bytes: 0,
            batch: Vec::new(),
            seen: Box::new([0; SEEN]),
            writing: Vec::new(),
            next: 0,
        })
    }

    #[inline]
    fn insert(&mut self, addr: *const u8, len: usize) {
        if len == 0 {
            return;
        }
        let (first, last) = (addr.addr() / 8, (addr.addr() + len - 1) / 8);
        for number in first / 8..=last / 8 {
            let from = first.max(number * 8) - number * 8;
            let to = last.min(number * 8 + 7) - number * 8;
            let words = (0xff << from & 0xff >> (7 - to)) as u8;
            // Home may be far from the processor, and is to be stored to soon.
            line::prefetch_to_write((number * line::LINE).wrapping_add(self.offset));
            self.changed(number).words |= words;
        }
    }

    #[inline]
    fn commit(&mut self) {
        let bytes = self.write_record();
        // ORDER: the record is durable before the next transaction begins. If it is not whole after a crash, its
        // checksum is wrong.
        line::fence(RECORD);
        self.update_home(bytes);
        self.changed.clear();
    }
}

impl Redo {
    /// The entry of a line, made now if there is none.
    #[inline]
    fn changed(&mut self, number: usize) -> &mut Changed {
        let known = match self.changed.len() <= FEW {
            true => self.changed.iter().position(|line| line.number == number),
            false => self.find(number),
        };
        let at = known.unwrap_or_else(|| self.enter(number));
        &mut self.changed[at]
    }

    #[inline]
    fn enter(&mut self, number: usize) -> usize {
        let at = self.changed.len();
        self.changed.push(Changed { number, words: 0 });
        if at >= FEW {
            self.index_from(if at == FEW { 0 } else { at });
        }
        at
    }

    /// Makes the entries from `from` on known to the index; from 0 on, they are its first.
    #[cold]
    fn index_from(&mut self, from: usize) {
        assert!(
            self.changed.len() <= LINES_MAX,
            "a redo1 transaction writes at most {LINES_MAX} lines"
        );
        if from == 0 {
            self.epoch += 1;
        }
        for at in from..self.changed.len() {
            let mut slot = self.changed[at].number % self.index.len();
            while self.index[slot] >> 32 == self.epoch {
                slot = (slot + 1) % self.index.len();
            }
            self.index[slot] = self.epoch << 32 | at as u64;
        }
    }

    fn find(&self, number: usize) -> Option<usize> {
        let mut slot = number % self.index.len();
        while self.index[slot] >> 32 == self.epoch {
            let at = self.index[slot] as u32 as usize;
            if self.changed[at].number == number {
                return Some(at);
            }
            slot = (slot + 1) % self.index.len();
        }
        None
    }

    /// Writes the record and starts making it durable: its bytes.
    #[inline]
    fn write_record(&mut self) -> usize {
        let bound = 8 * (HEADER_WORDS + 9 * self.changed.len());
        if self.cursor + bound.next_multiple_of(line::LINE) > LOG_SIZE {
            self.cursor = 0;
        }
        let record = self.record.as_mut_ptr();
        let mut end = HEADER_WORDS;
        for line in &self.changed {
            let source = (line.number * line::LINE) as *const u64;
            // SAFETY: there is room for the largest record; the source is a line of the program's arena.
            unsafe {
                record
                    .add(end)
                    .write((line.number << 8 | usize::from(line.words)) as u64);
                end += 1;
                if line.words == 0xff {
                    record.add(end).copy_from_nonoverlapping(source, 8);
                    end += 8;
                    continue;
                }
                let mut rest = line.words;
                while rest != 0 {
                    let word = source.add(rest.trailing_zeros() as usize).read();
                    record.add(end).write(word);
                    end += 1;
                    rest &= rest - 1;
                }
            }
        }
        self.number += 1;
        // SAFETY: the words behind the first one, of which the header's second is written before it is read.
        let checked = unsafe {
            record.add(1).write(self.number);
            std::slice::from_raw_parts(record.add(1).cast::<u8>(), 8 * (end - 1))
        };
        let mut crc = Crc::new();
        // In pieces for which it needs no call.
        checked
            .chunks(CHECKED_AT_ONCE)
            .for_each(|piece| crc.update(piece));
        // SAFETY: the record's first word; then a place inside the log, whose arena is larger than the record of the
        // largest transaction, on a line boundary.
        unsafe {
            record.write((end as u64) << 32 | u64::from(crc.value()));
            let target = self.log.base().add(self.cursor).cast();
            line::stream_words(target, record, end, RECORD);
        }
        self.cursor += (8 * end).next_multiple_of(line::LINE);
        8 * end
    }

    /// Stores the lines to their home places, and writes some of the batch before back: durable with the next fence.
    #[inline]
    fn update_home(&mut self, bytes: usize) {
        for line in &self.changed {
            let source = (line.number * line::LINE) as *const u8;
            let home = source.wrapping_byte_add(self.offset).cast_mut();
            // SAFETY: a line of the program's arena and its home. All of it is committed: there is one thread.
            unsafe { home.copy_from_nonoverlapping(source, line::LINE) };
            let seen = &mut self.seen[line.number % SEEN];
            if *seen != line.number {
                *seen = line.number;
                self.batch.push(line.number);
            }
        }
        self.batch_bytes += bytes;
        let count = 1 + self.writing.len() * 2 * bytes / BATCH_BYTES;
        let end = (self.next + count).min(self.writing.len());
        // SAFETY: lines of the home arena.
        unsafe { line::write_back_lines(&self.writing[self.next..end], self.offset, HOME) };
        self.next = end;
        if self.batch_bytes >= BATCH_BYTES && end == self.writing.len() {
            self.writing.clear();
            std::mem::swap(&mut self.writing, &mut self.batch);
            (self.batch_bytes, self.next) = (0, 0);
            self.seen.fill(0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn home_becomes_what_the_program_stored_by_one_fence_each() {
        let dir = tempfile::tempdir_in("/dev/shm").unwrap();
        let mut arena = Arena::create(&dir.path().join("program")).unwrap();
        let mut redo = Redo::new(&arena, dir.path()).unwrap();
        let words: *mut u64 = arena.take(64 * 5000).unwrap().cast();
        for round in 0..2000usize {
            let before = durum_persist::count::thread_counters();
            for at in 0..[1, 5, 100][round % 3] {
                let index = (round * 97 + at * 13) % (8 * 5000);
                // SAFETY: inside the array.
                let word = unsafe { words.add(index) };
                // SAFETY: as above.
                unsafe { word.write((round * 1000 + at) as u64) };
                redo.insert(word.cast(), 8);
            }
            redo.commit();
            let cost = durum_persist::count::thread_counters() - before;
            assert_eq!(cost.fences, 1);
        }
        let len = 64 * 5000;
        // SAFETY: the array and its home.
        let (program, home) = unsafe {
            (
                std::slice::from_raw_parts(words.cast::<u8>(), len),
                std::slice::from_raw_parts(words.cast::<u8>().wrapping_byte_add(redo.offset), len),
            )
        };
        assert!(program == home);
    }
}
