//! A set of small integers that finds its smallest member, or the last one up to a number, in a handful of steps.
//!
//! 64-way tree of bitmaps: a bit of level n+1 says that the word below it is not zero. A puddle of 1 GiB has 4 M
//! granules and needs four levels.

/// Integers below a fixed bound.
#[derive(Debug)]
pub(super) struct FreeSet {
    /// `levels[0]` holds the members; each further level summarises the one before.
    levels: Vec<Vec<u64>>,
    count: usize,
}

impl FreeSet {
    /// An empty set of integers below `bound`.
    pub(super) fn new(bound: usize) -> Self {
        let mut levels = Vec::new();
        let mut words = bound.div_ceil(64).max(1);
        loop {
            levels.push(vec![0; words]);
            if words == 1 {
                break;
            }
            words = words.div_ceil(64);
        }
        Self { levels, count: 0 }
    }

    pub(super) fn len(&self) -> usize {
        self.count
    }

    pub(super) fn contains(&self, member: usize) -> bool {
        self.levels[0]
            .get(member / 64)
            .is_some_and(|word| word & (1 << (member % 64)) != 0)
    }

    /// Adds a member that is not in the set.
    pub(super) fn insert(&mut self, member: usize) {
        debug_assert!(!self.contains(member));
        self.count += 1;
        let mut position = member;
        for level in &mut self.levels {
            let word = &mut level[position / 64];
            let was_empty = *word == 0;
            *word |= 1 << (position % 64);
            if !was_empty {
                break;
            }
            position /= 64;
        }
    }

    /// Removes a member; false if it was not there.
    pub(super) fn remove(&mut self, member: usize) -> bool {
        if !self.contains(member) {
            return false;
        }
        self.count -= 1;
        let mut position = member;
        for level in &mut self.levels {
            let word = &mut level[position / 64];
            *word &= !(1 << (position % 64));
            if *word != 0 {
                break;
            }
            position /= 64;
        }
        true
    }

    /// The smallest member.
    pub(super) fn first(&self) -> Option<usize> {
        if self.count == 0 {
            return None;
        }
        let mut position = 0;
        for level in self.levels.iter().rev() {
            position = position * 64 + level[position].trailing_zeros() as usize;
        }
        Some(position)
    }

    /// The largest member that is not above `bound`.
    pub(super) fn last_up_to(&self, bound: usize) -> Option<usize> {
        let mut position = bound;
        for (height, level) in self.levels.iter().enumerate() {
            // At the lowest level `bound` itself counts; further up its word was looked through already.
            let keep = match height {
                0 => !0 >> (63 - position % 64),
                _ => (1u64 << (position % 64)) - 1,
            };
            let word = level.get(position / 64).copied().unwrap_or(0) & keep;
            if word != 0 {
                let mut found = position / 64 * 64 + 63 - word.leading_zeros() as usize;
                for level in self.levels[..height].iter().rev() {
                    found = found * 64 + 63 - level[found].leading_zeros() as usize;
                }
                return Some(found);
            }
            position /= 64;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn behaves_like_a_sorted_set() {
        for bound in [1, 63, 64, 65, 4096, 4097, 300_000] {
            let mut set = FreeSet::new(bound);
            let mut model = BTreeSet::new();
            let mut state = 7u64;
            for _ in 0..4000 {
                state = state
                    .wrapping_mul(6364136223846793005)
                    .wrapping_add(1442695040888963407);
                let member = (state >> 33) as usize % bound;
                if model.insert(member) {
                    set.insert(member);
                } else {
                    model.remove(&member);
                    assert!(set.remove(member));
                    assert!(!set.remove(member));
                }
                assert_eq!(set.first(), model.first().copied());
                let upto = (state >> 13) as usize % bound;
                let last = model.range(..=upto).next_back().copied();
                assert_eq!(set.last_up_to(upto), last);
                assert_eq!(set.len(), model.len());
            }
        }
    }
}
