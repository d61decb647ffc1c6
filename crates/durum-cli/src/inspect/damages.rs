//! Damages of a heap: there may be as many as the heap has room for.

use crate::output::count;

/// Damages that are told of at once.
const DAMAGES_MAX: usize = 100;

/// What is damaged, in words: of many the first ones, and how many there are.
#[derive(Default)]
pub(crate) struct Damages {
    told: Vec<String>,
    more: u64,
}

impl Damages {
    pub(crate) fn add(&mut self, text: String) {
        match self.told.len() < DAMAGES_MAX {
            true => self.told.push(text),
            false => self.more += 1,
        }
    }

    /// Adds those of another part.
    pub(crate) fn append(&mut self, others: Self) {
        others.told.into_iter().for_each(|text| self.add(text));
        self.more += others.more;
    }

    pub(crate) fn in_words(mut self) -> Vec<String> {
        if self.more > 0 {
            self.told
                .push(format!("and {} more", count(self.more, "damage")));
        }
        self.told
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_many_damages_the_first_ones_are_told_and_all_are_counted() {
        let some = |from: usize, count: usize| {
            let mut damages = Damages::default();
            (from..from + count).for_each(|at| damages.add(at.to_string()));
            damages
        };
        let mut all = some(0, 60);
        all.append(some(60, 1_000));
        all.append(some(2_000, 1));
        let told = all.in_words();
        assert_eq!(told.len(), DAMAGES_MAX + 1);
        assert_eq!(told[99], "99");
        assert_eq!(told[DAMAGES_MAX], "and 961 damages more");
        assert_eq!(some(0, DAMAGES_MAX).in_words().len(), DAMAGES_MAX);
    }
}
