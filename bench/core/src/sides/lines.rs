//! The lines that a transaction wrote, each once.

use durum_persist::{Site, line};

const LINE_BITS: u32 = line::LINE.ilog2();
/// Up to here the lines are searched one by one.
const FEW: usize = 16;
/// Slots of the table at first: a power of two, as later.
const SLOTS: usize = 8192;
/// A slot holds an epoch above and a line number below these bits.
const NUMBER_BITS: u32 = 42;

/// What flush1 writes back.
const DATA: Site = Site("flush1 data");

/// A set of lines.
#[derive(Debug)]
pub struct Lines {
    numbers: Vec<usize>,
    /// Open addressing, used from the line after `FEW` on; slots of older epochs count as empty. More than twice as
    /// many as lines.
    slots: Vec<u64>,
    epoch: u64,
}

impl Default for Lines {
    fn default() -> Self {
        Lines {
            numbers: Vec::with_capacity(SLOTS / 2),
            slots: vec![0; SLOTS],
            epoch: 1,
        }
    }
}

impl Lines {
    /// Adds the lines that the range touches.
    #[inline]
    pub fn insert(&mut self, addr: *const u8, len: usize) {
        if len == 0 {
            return;
        }
        let (first, last) = (
            addr as usize >> LINE_BITS,
            (addr as usize + len - 1) >> LINE_BITS,
        );
        for number in first..=last {
            if self.numbers.len() <= FEW {
                if !self.numbers.contains(&number) {
                    self.numbers.push(number);
                    if self.numbers.len() == FEW + 1 {
                        self.begin_table();
                    }
                }
            } else if self.insert_slot(number) {
                self.numbers.push(number);
            }
        }
    }

    /// Writes every line back once, fences, and empties the set.
    #[inline]
    pub fn write_back(&mut self) {
        for number in &self.numbers {
            let addr = (number << LINE_BITS) as *const u8;
            // SAFETY: lines of objects in a mapped arena.
            unsafe { line::write_back(addr, line::LINE, DATA) };
        }
        // ORDER: the transaction is durable before the next one begins; that is all that flush1 promises.
        line::fence(DATA);
        self.numbers.clear();
    }

    #[cold]
    fn begin_table(&mut self) {
        self.epoch += 1;
        if self.epoch >> (u64::BITS - NUMBER_BITS) != 0 {
            self.slots.fill(0);
            self.epoch = 1;
        }
        for index in 0..self.numbers.len() {
            self.insert_slot(self.numbers[index]);
        }
    }

    /// Twice as many slots, with all lines.
    #[cold]
    fn grow_table(&mut self) {
        self.slots = vec![0; 2 * self.slots.len()];
        for index in 0..self.numbers.len() {
            self.insert_slot(self.numbers[index]);
        }
    }

    /// Whether the line is new.
    fn insert_slot(&mut self, number: usize) -> bool {
        if self.numbers.len() > self.slots.len() / 2 {
            self.grow_table();
        }
        let tag = self.epoch << NUMBER_BITS | number as u64;
        let mask = self.slots.len() - 1;
        let mut slot = number & mask;
        loop {
            if self.slots[slot] == tag {
                return false;
            }
            if self.slots[slot] >> NUMBER_BITS != self.epoch {
                self.slots[slot] = tag;
                return true;
            }
            slot = (slot + 1) & mask;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use durum_persist::count;

    #[test]
    fn each_line_is_written_back_once() {
        let memory = vec![0u8; 64 * (SLOTS + 1)];
        let base = memory
            .as_ptr()
            .wrapping_add(memory.as_ptr().align_offset(64));
        let mut lines = Lines::default();
        // Below, at and above the size where the table takes over; twice, so that epochs change.
        for count in [1, FEW - 1, FEW, FEW + 1, 500, 500, SLOTS, 2] {
            for _ in 0..3 {
                for number in 0..count {
                    lines.insert(base.wrapping_add(number * 64 + 8), 56);
                }
            }
            let before = count::thread_counters();
            lines.write_back();
            let cost = count::thread_counters() - before;
            assert_eq!((cost.write_backs, cost.fences), (count as u64, 1));
        }
    }

    #[test]
    fn a_range_over_a_line_boundary_is_two_lines() {
        let memory = [0u8; 256];
        let base = memory
            .as_ptr()
            .wrapping_add(memory.as_ptr().align_offset(64));
        let mut lines = Lines::default();
        lines.insert(base.wrapping_add(60), 8);
        lines.insert(base, 0);
        let before = count::thread_counters();
        lines.write_back();
        assert_eq!((count::thread_counters() - before).write_backs, 2);
    }
}
