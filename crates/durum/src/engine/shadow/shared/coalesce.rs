//! Entries that are put behind others: one that only repeats an earlier one for the same place replaces it.
//!
//! A counter that a thousand transactions change waits once. An entry may be replaced where nothing behind it speaks of
//! the same lines; then the order of the two does not matter to anybody.

use std::ops::Range;

use durum_format::record::{Change, Entries, Operation};
use durum_persist::line::LINE;

/// Slots of the table; half of them are used at most.
const SLOTS: usize = 1 << 12;
/// Entries about more lines than this are not looked for.
const LINES_MAX: usize = 4;

#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    line: usize,
    epoch: u32,
    /// Where in the record the last entry about the line begins.
    at: u32,
}

/// By line, the last entry about it. What it has forgotten is never replaced.
#[derive(Debug, Default)]
pub(crate) struct LastEntries {
    /// Open hash, made when it is first needed. A slot of another epoch is free.
    table: Vec<Slot>,
    used: usize,
    epoch: u32,
}

impl LastEntries {
    /// Forgets everything.
    pub(crate) fn clear(&mut self) {
        self.used = 0;
        match self.epoch.checked_add(1) {
            Some(epoch) => self.epoch = epoch,
            None => {
                self.table.fill(Slot::default());
                self.epoch = 1;
            }
        }
    }

    /// Puts the entries of `body` behind those of `record`.
    pub(crate) fn append(&mut self, record: &mut Vec<u64>, body: &[u64]) {
        if self.table.is_empty() {
            self.table = vec![Slot::default(); SLOTS];
            self.clear();
        }
        let mut entries = Entries::new(body);
        let mut start = 0;
        while let Some(Ok(change)) = entries.next() {
            let entry = &body[start..entries.position()];
            start = entries.position();
            let lines = lines_of(&change);
            if lines.len() > LINES_MAX || self.used + LINES_MAX > SLOTS / 2 {
                self.clear();
            }
            if !self.replace(record, &change, entry, lines.clone()) {
                self.enter(lines, record.len());
                record.extend_from_slice(entry);
            }
        }
        debug_assert_eq!(start, body.len(), "entries of this process");
    }

    /// Replaces the last entry about the same lines, if this one makes it needless.
    fn replace(
        &self,
        record: &mut [u64],
        change: &Change<'_>,
        entry: &[u64],
        lines: Range<usize>,
    ) -> bool {
        let Some(at) = self.find(lines.start) else {
            return false;
        };
        if lines.skip(1).any(|line| self.find(line) != Some(at)) {
            return false;
        }
        let Some(Ok(last)) = Entries::new(&record[at..]).next() else {
            return false;
        };
        match (last, *change) {
            (
                Change::Words {
                    operation: Operation::Store,
                    line: last_line,
                    mask: last_mask,
                    ..
                },
                Change::Words {
                    operation: Operation::Store,
                    line,
                    mask,
                    words,
                },
            ) if last_line == line && last_mask & mask == mask => {
                let indices = (0..8).filter(|bit| mask >> bit & 1 == 1);
                for (bit, word) in indices.zip(words) {
                    let before = last_mask & ((1u8 << bit) - 1);
                    record[at + 1 + before.count_ones() as usize] = *word;
                }
                true
            }
            (
                Change::Copy {
                    target: last_target,
                    data: last_data,
                },
                Change::Copy { target, data },
            ) if last_target == target && last_data.len() == data.len() => {
                record[at..at + entry.len()].copy_from_slice(entry);
                true
            }
            _ => false,
        }
    }

    fn enter(&mut self, lines: Range<usize>, at: usize) {
        // More lines than are looked for: everything was forgotten just now, and this entry is never found.
        if lines.len() > LINES_MAX {
            return;
        }
        for line in lines {
            let slot = self.slot_of(line);
            self.used += usize::from(self.table[slot].epoch != self.epoch);
            self.table[slot] = Slot {
                line,
                epoch: self.epoch,
                at: at as u32,
            };
        }
    }

    fn find(&self, line: usize) -> Option<usize> {
        let slot = self.table[self.slot_of(line)];
        (slot.epoch == self.epoch).then_some(slot.at as usize)
    }

    /// The line's slot, or the free one where it would be.
    fn slot_of(&self, line: usize) -> usize {
        // Fibonacci hashing: the upper bits of the product are the well mixed ones.
        let hash = (line as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
        let mut slot = hash as usize % SLOTS;
        while self.table[slot].epoch == self.epoch && self.table[slot].line != line {
            slot = (slot + 1) % SLOTS;
        }
        slot
    }
}

/// The lines that an entry is about.
fn lines_of(change: &Change<'_>) -> Range<usize> {
    let (first, len) = change.range();
    let first = first as usize;
    first / LINE..(first + len as usize).div_ceil(LINE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use durum_format::record::{push_copy, push_words};

    const BASE: usize = 0x2000_0000_0000;
    const BYTES: usize = 64 * LINE;

    fn apply(record: &[u64], memory: &mut [u8]) {
        for change in Entries::new(record) {
            match change.unwrap() {
                Change::Words {
                    operation,
                    line,
                    mask,
                    words,
                } => {
                    let indices = (0..8).filter(|bit| mask >> bit & 1 == 1);
                    for (index, word) in indices.zip(words) {
                        let at = line as usize - BASE + 8 * index;
                        let place = memory[at..].first_chunk_mut().unwrap();
                        let (old, new) = (u64::from_le_bytes(*place), u64::from_le(*word));
                        *place = operation.apply(old, new).to_le_bytes();
                    }
                }
                Change::Copy { target, data } => {
                    let at = target as usize - BASE;
                    memory[at..at + data.len()].copy_from_slice(data);
                }
                Change::Fresh { .. } => unreachable!("nothing in the queue goes home before it"),
            }
        }
    }

    /// Any entries, in any order: what is replaced leaves the same memory as what is not.
    #[test]
    fn a_shorter_record_does_the_same() {
        let mut state = 1u64;
        let mut random = |below: usize| {
            state = state
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            (state >> 33) as usize % below
        };
        let (mut all_words, mut kept_words) = (0, 0);
        for round in 0..300 {
            let (mut last_entries, mut all, mut kept) =
                (LastEntries::default(), Vec::new(), Vec::new());
            // Few lines, so that entries meet; at times more than the table may hold.
            let lines = [2, 8, 64][round % 3];
            for _ in 0..1 + random(200) {
                let mut body = Vec::new();
                for _ in 0..1 + random(4) {
                    let line = (BASE + random(lines) * LINE) as u64;
                    let masks = [1, 0x80, 0xff, 0x0c, 1 + random(255) as u8];
                    let words = std::array::from_fn(|_| random(1 << 30) as u64);
                    let operations = [Operation::Store, Operation::SetBits, Operation::ClearBits];
                    match random(6) {
                        0 => {
                            let len = [8, 24, 100, 700][random(4)].min(lines * LINE);
                            let target = BASE + random((lines * LINE - len) / 8 + 1) * 8;
                            push_copy(&mut body, target as u64, &vec![random(256) as u8; len]);
                        }
                        1 => {
                            let operation = operations[random(3)];
                            push_words(&mut body, operation, line, masks[random(5)], &words);
                        }
                        _ => {
                            push_words(&mut body, Operation::Store, line, masks[random(5)], &words);
                        }
                    }
                }
                last_entries.append(&mut kept, &body);
                all.extend_from_slice(&body);
            }
            let (mut wanted, mut found) = ([0u8; BYTES], [0u8; BYTES]);
            apply(&all, &mut wanted);
            apply(&kept, &mut found);
            assert_eq!(wanted, found, "round {round}");
            all_words += all.len();
            kept_words += kept.len();
        }
        assert!(kept_words < all_words, "{kept_words} of {all_words}");
    }

    #[test]
    fn what_a_thousand_commits_change_waits_once() {
        let (mut last_entries, mut kept) = (LastEntries::default(), Vec::new());
        for value in 0..1000u64 {
            let mut body = Vec::new();
            push_words(&mut body, Operation::Store, BASE as u64, 4, &[value; 8]);
            push_copy(
                &mut body,
                (BASE + 100) as u64,
                &value.to_le_bytes().repeat(3),
            );
            last_entries.append(&mut kept, &body);
        }
        assert_eq!(kept.len(), 2 + 5);
        // More lines than the table holds are forgotten, and change nothing.
        for number in 0..2 * SLOTS as u64 {
            let mut body = Vec::new();
            push_words(
                &mut body,
                Operation::Store,
                BASE as u64 + number * 64,
                1,
                &[number; 8],
            );
            last_entries.append(&mut kept, &body);
        }
        assert_eq!(kept.len(), 7 + 4 * SLOTS);
    }
}
