//! Where the objects of a migration go. Most lie one behind the other, so what is kept are runs of them, and not each.

use std::cell::Cell;
use std::path::Path;

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::dump::rows::Rows;
use crate::error::Result;

/// A place in a puddle, a multiple of 8 bytes behind its beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) puddle: u32,
    pub(super) offset: u64,
}

const PUDDLE_SHIFT: u32 = 40;

impl Place {
    fn word(self) -> u64 {
        u64::from(self.puddle) << PUDDLE_SHIFT | self.offset >> 3
    }

    fn of_word(word: u64) -> Place {
        Place {
            puddle: (word >> PUDDLE_SHIFT) as u32,
            offset: (word & ((1 << PUDDLE_SHIFT) - 1)) << 3,
        }
    }
}

/// Objects of which each lies as far behind the one before as the second behind the first.
#[derive(Clone, Copy, Default, FromBytes, Immutable, IntoBytes, KnownLayout)]
#[repr(C)]
struct Run {
    /// The number of the first.
    first: u64,
    /// Where it goes, in a word.
    word: u64,
    /// From one to the next.
    stride: u64,
}

impl Run {
    fn word_of(&self, index: u64) -> u64 {
        let behind = index.wrapping_sub(self.first);
        self.word.wrapping_add(behind.wrapping_mul(self.stride))
    }
}

/// Runs of objects, by their numbers.
#[derive(Default)]
pub(super) struct Runs {
    /// All but the last one.
    ended: Rows<Run>,
    last: Run,
    /// How many objects the last one has.
    count: u64,
    /// One that was found, and the first object behind it: most pointers lead to what lies near.
    found: Cell<(Run, u64)>,
}

impl Runs {
    /// None yet, in a file without a name in this directory.
    ///
    /// # Errors
    /// `Io`.
    pub(super) fn in_file(directory: &Path) -> Result<Runs> {
        Ok(Runs {
            ended: Rows::in_file(directory)?,
            ..Runs::default()
        })
    }

    /// Notes where an object goes. Those with larger numbers come later.
    ///
    /// # Errors
    /// `StorageFull`, `Io`.
    pub(super) fn put(&mut self, index: u64, place: Place) -> Result<()> {
        let word = place.word();
        let is_next = self.count > 0 && index == self.last.first + self.count;
        if is_next && self.count == 1 {
            self.last.stride = word.wrapping_sub(self.last.word);
        }
        if is_next && self.last.word_of(index) == word {
            self.count += 1;
            return Ok(());
        }
        if self.count > 0 {
            self.ended.push(&self.last)?;
        }
        self.last = Run {
            first: index,
            word,
            stride: 0,
        };
        self.count = 1;
        Ok(())
    }

    /// Where an object goes.
    pub(super) fn place(&self, index: u64) -> Place {
        let (found, end) = self.found.get();
        let is_found = found.first <= index && index < end;
        let run = match is_found {
            true => Some(found),
            false => self.run(index),
        };
        Place::of_word(run.map_or(0, |run| run.word_of(index)))
    }

    fn run(&self, index: u64) -> Option<Run> {
        if index >= self.last.first {
            return Some(self.last);
        }
        // The first one behind the object.
        let (mut low, mut high) = (0, self.ended.len());
        while low < high {
            let middle = low.midpoint(high);
            match self.ended.get(middle)?.first <= index {
                true => low = middle + 1,
                false => high = middle,
            }
        }
        let run = *self.ended.get(low.checked_sub(1)?)?;
        let end = self
            .ended
            .get(low)
            .map_or(self.last.first, |next| next.first);
        self.found.set((run, end));
        Some(run)
    }

    /// Bytes that are taken.
    pub(super) fn bytes(&self) -> u64 {
        self.ended.bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs of seven objects each, which begin anywhere; a puddle has fifty objects.
    fn places(count: u64) -> Vec<Place> {
        let (mut at, mut all) = (0, Vec::new());
        for number in 0..count {
            let (run, element) = (number / 7, number % 7);
            at += match element {
                0 => 4096 + 8 * (run % 5),
                _ => 24,
            };
            all.push(Place {
                puddle: (number / 50) as u32,
                offset: at & ((1 << 30) - 1),
            });
        }
        all
    }

    #[test]
    fn objects_go_where_was_said() {
        let directory = tempfile::tempdir().unwrap();
        for mut runs in [Runs::default(), Runs::in_file(directory.path()).unwrap()] {
            let all = places(2_000);
            for (index, place) in (0..).zip(&all) {
                runs.put(index, *place).unwrap();
                assert_eq!(runs.place(index), *place, "{index}");
            }
            for (index, place) in (0..).zip(&all) {
                assert_eq!(runs.place(index), *place, "{index}");
            }
        }
    }

    /// One that has no place is left out, and the next ones are no run with those before.
    #[test]
    fn numbers_may_be_left_out() {
        let place = |number: u64| Place {
            puddle: 3,
            offset: 64 + 16 * number,
        };
        let mut runs = Runs::default();
        let numbers = [0, 1, 2, 5, 6, 9, 11, 12];
        for (at, index) in (0..).zip(numbers) {
            runs.put(index, place(at)).unwrap();
        }
        for (at, index) in (0..).zip(numbers) {
            assert_eq!(runs.place(index), place(at), "{index}");
        }
    }

    #[test]
    fn what_lies_in_rows_takes_little() {
        let mut runs = Runs::default();
        // Slabs of 100 objects of 24 bytes.
        for index in 0..1_000_000_u64 {
            let (slab, element) = (index / 100, index % 100);
            let place = Place {
                puddle: (slab >> 10) as u32,
                offset: (slab % 1024) * 2560 + 160 + element * 24,
            };
            runs.put(index, place).unwrap();
        }
        assert_eq!(runs.ended.len(), 9_999);
        assert!(runs.bytes() <= 256 << 10);
    }
}
