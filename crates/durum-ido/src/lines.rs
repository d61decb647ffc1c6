//! The lines that a section has written since its last record.
//!
//! A small table, no memory is taken. A line that finds no place has another one written back for it at once: that is
//! never wrong, as a line is announced behind each store to it.

use durum_persist::{Site, line};

use crate::repeats::Repeats;
use crate::sites::LINES_WRITE;

const LINE: usize = line::LINE;
/// Places of the table.
const PLACES: usize = 64;
/// A line has so many places to be in, from that of its hash on.
const WAYS: usize = 4;
/// What has more lines than this is written back at once.
const RANGE_MAX: usize = 16;

/// Lines by their numbers (address divided by 64), each once.
#[derive(Debug)]
pub(crate) struct Lines {
    places: [usize; PLACES],
    /// Bit n: place n holds a line.
    used: u64,
    /// Something was written back that no fence has completed.
    is_pending: bool,
    /// What the next record can tell of.
    repeats: Repeats,
}

impl Default for Lines {
    fn default() -> Self {
        Self {
            places: [0; PLACES],
            used: 0,
            is_pending: false,
            repeats: Repeats::default(),
        }
    }
}

impl Lines {
    /// Adds what `size` bytes at `start` lie in, which the next record is not to tell of.
    ///
    /// # Safety
    /// They are mapped, and stay so until they are written back.
    #[inline]
    pub(crate) unsafe fn add(&mut self, start: usize, size: usize) {
        if size > 0 {
            self.repeats.give_up();
            // SAFETY: as the caller promises.
            unsafe { self.add_lines(start, size) };
        }
    }

    /// Adds what `size` bytes at `start` lie in, which a store of the section has written.
    ///
    /// # Safety
    /// As for [`Lines::add`].
    #[inline]
    pub(crate) unsafe fn add_store(&mut self, start: usize, size: usize) {
        if size > 0 {
            self.repeats.add(start, size);
            // SAFETY: as the caller promises.
            unsafe { self.add_lines(start, size) };
        }
    }

    /// Of what was written since the last fence, what the next record can tell of. `None` where that is not all.
    #[inline]
    pub(crate) fn repeats(&self) -> Option<&Repeats> {
        self.repeats.is_all().then_some(&self.repeats)
    }

    #[inline]
    unsafe fn add_lines(&mut self, start: usize, size: usize) {
        let (first, last) = (start / LINE, (start + size - 1) / LINE);
        if last - first >= RANGE_MAX {
            // SAFETY: mapped, as the caller promises.
            // ORDER: none yet; durable with the fence that `drain` asks for, before the next record.
            return unsafe { self.write_back(start, size, LINES_WRITE) };
        }
        for number in first..=last {
            // SAFETY: the same.
            unsafe { self.insert(number) };
        }
    }

    /// # Safety
    /// As for [`Lines::add`].
    #[inline]
    unsafe fn insert(&mut self, number: usize) {
        // Fibonacci hashing: the upper bits of the product are the well mixed ones.
        let hash = number.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
        let mut free = None;
        for way in 0..WAYS {
            let place = (hash + way) % PLACES;
            if self.used >> place & 1 == 0 {
                free = free.or(Some(place));
            } else if self.places[place] == number {
                return;
            }
        }
        let place = free.unwrap_or_else(|| {
            let place = hash % PLACES;
            let start = self.places[place] * LINE;
            // SAFETY: was added, and is mapped yet.
            // ORDER: none yet; as in `add`.
            unsafe { self.write_back(start, LINE, LINES_WRITE) };
            place
        });
        self.places[place] = number;
        self.used |= 1 << place;
    }

    /// Writes back a range that is not in the table. The next fence is waited for.
    ///
    /// # Safety
    /// It is mapped.
    pub(crate) unsafe fn write_back(&mut self, start: usize, size: usize, site: Site) {
        // SAFETY: mapped, as the caller promises.
        unsafe { line::write_back(std::ptr::with_exposed_provenance(start), size, site) };
        self.is_pending |= size > 0;
    }

    /// Writes back all lines and forgets them. Whether a fence has anything to complete.
    #[inline]
    pub(crate) fn drain(&mut self) -> bool {
        self.repeats.clear();
        let mut used = std::mem::take(&mut self.used);
        while used != 0 {
            let place = used.trailing_zeros() as usize;
            used &= used - 1;
            let start = self.places[place] * LINE;
            // SAFETY: was added, and is mapped yet.
            // ORDER: durable with the caller's fence, before the next record; else a crash finds that record and not
            // what the region before it has stored.
            unsafe { self.write_back(start, LINE, LINES_WRITE) };
        }
        std::mem::take(&mut self.is_pending)
    }
}

#[cfg(test)]
mod tests {
    use durum_persist::count;

    use super::*;

    fn written(lines: &mut Lines, ranges: &[(usize, usize)]) -> u64 {
        let before = count::thread_counters();
        for (start, size) in ranges {
            // SAFETY: memory of the test.
            unsafe { lines.add(*start, *size) };
        }
        assert_eq!(lines.drain(), !ranges.is_empty());
        (count::thread_counters() - before).write_backs
    }

    #[test]
    fn each_line_is_written_back_once_and_the_table_is_empty_then() {
        let memory = vec![0u8; 1 << 20];
        let base = memory.as_ptr().expose_provenance().next_multiple_of(LINE);
        let mut lines = Lines::default();
        assert_eq!(
            written(&mut lines, &[(base, 8), (base + 8, 8), (base + 63, 1)]),
            1
        );
        assert_eq!(written(&mut lines, &[(base + 60, 8), (base + 64, 64)]), 2);
        assert_eq!(written(&mut lines, &[]), 0);
        // As one range.
        assert_eq!(written(&mut lines, &[(base, 64 * 100)]), 100);
    }

    #[test]
    fn no_line_is_lost_where_there_are_more_than_places() {
        let memory = vec![0u8; 1 << 20];
        let base = memory.as_ptr().expose_provenance().next_multiple_of(LINE);
        let ranges: Vec<_> = (0..1000).map(|at| (base + at * LINE * 7, 8)).collect();
        assert_eq!(written(&mut Lines::default(), &ranges), 1000);
    }
}
