//! Which objects of a migration have pointers to them counted: those that hold counts, which most do not.

use std::path::Path;

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::old::Old;
use crate::dump::rows::Rows;
use crate::error::Result;
use crate::roles::Role;

/// Objects from here to the next turn are all counted, or none is.
#[derive(Clone, Copy, Debug, Default, FromBytes, Immutable, IntoBytes, KnownLayout)]
#[repr(C)]
struct Turn {
    /// The number of the first object.
    first: u64,
    /// How many counted ones there are before.
    before: u64,
}

/// The numbers of counted objects among themselves.
#[derive(Default)]
pub(super) struct Counting {
    /// The first begins counted ones, the second others, and so on.
    turns: Rows<Turn>,
    counted: u64,
}

impl Counting {
    /// Finds them; what is known of them is kept in the directory, or in memory.
    ///
    /// # Errors
    /// `StorageFull`, `Io`.
    pub(super) fn of(old: &Old<'_>, scratch: Option<&Path>) -> Result<Counting> {
        let has_counts = |tag: u32| {
            let new = old.conversion(tag).map(|it| Role::of(it.new_type()));
            let was = old.types.get(tag as usize).map(|ty| ty.role);
            [new, was].contains(&Some(Role::Counted)) || old.kinds(tag).is_some()
        };
        let kept = |tag| (has_counts(tag), tag);
        let mut counting = Counting {
            turns: match scratch {
                Some(directory) => Rows::in_file(directory)?,
                None => Rows::default(),
            },
            counted: 0,
        };
        let (mut is_counted, mut known) = (false, kept(0));
        for (first, count, tag) in old.numbers.groups() {
            if known.1 != tag {
                known = kept(tag);
            }
            if known.0 != is_counted {
                is_counted = known.0;
                let before = counting.counted;
                counting.turns.push(&Turn { first, before })?;
            }
            counting.counted += if is_counted { count } else { 0 };
        }
        Ok(counting)
    }

    /// How many there are.
    pub(super) fn len(&self) -> u64 {
        self.counted
    }

    /// Bytes that are taken.
    pub(super) fn bytes(&self) -> u64 {
        self.turns.bytes()
    }

    /// The number of an object among those that are counted.
    pub(super) fn number(&self, index: u64) -> Option<u64> {
        let (turn, is_counted) = self.turn(|turn| turn.first <= index)?;
        is_counted.then_some(turn.before + (index - turn.first))
    }

    /// How many counted ones are before an object.
    pub(super) fn before(&self, index: u64) -> u64 {
        match self.turn(|turn| turn.first <= index) {
            Some((turn, true)) => turn.before + (index - turn.first),
            Some((turn, false)) => turn.before,
            None => 0,
        }
    }

    /// The object that has this number.
    pub(super) fn index(&self, number: u64) -> Option<u64> {
        // Where others begin there are as many before as where the next counted ones do.
        let (turn, is_counted) = self.turn(|turn| turn.before <= number)?;
        is_counted.then_some(turn.first + (number - turn.before))
    }

    /// The last turn of which this holds, and whether it begins counted objects. It holds of all before it.
    fn turn(&self, holds: impl Fn(&Turn) -> bool) -> Option<(Turn, bool)> {
        let (mut low, mut high) = (0, self.turns.len());
        while low < high {
            let middle = low.midpoint(high);
            match holds(self.turns.get(middle)?) {
                true => low = middle + 1,
                false => high = middle,
            }
        }
        let at = low.checked_sub(1)?;
        Some((*self.turns.get(at)?, at % 2 == 0))
    }
}

#[cfg(test)]
impl Counting {
    /// Of groups of so many objects: the first is counted, the second not, and so on.
    pub(super) fn of_groups(groups: &[u64]) -> Counting {
        let (mut counting, mut first) = (Counting::default(), 0);
        for (at, count) in groups.iter().enumerate() {
            let before = counting.counted;
            counting.turns.push(&Turn { first, before }).unwrap();
            counting.counted += if at % 2 == 0 { *count } else { 0 };
            first += count;
        }
        counting
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counted_objects_have_numbers_among_themselves() {
        for groups in [&[][..], &[5], &[0, 3, 4], &[2, 1, 1, 7, 3, 2], &[0, 0, 1]] {
            let counting = Counting::of_groups(groups);
            let (mut index, mut number) = (0, 0);
            for (at, count) in groups.iter().enumerate() {
                for _ in 0..*count {
                    let is_counted = at % 2 == 0;
                    assert_eq!(counting.number(index), is_counted.then_some(number));
                    assert_eq!(counting.before(index), number, "{groups:?} {index}");
                    if is_counted {
                        assert_eq!(counting.index(number), Some(index), "{groups:?}");
                        number += 1;
                    }
                    index += 1;
                }
            }
            assert_eq!(counting.len(), number);
            assert_eq!(counting.before(index), number);
        }
    }
}
