//! A set of cache lines, filled line by line and emptied at once.

/// Where the epoch lies in an entry of the table; below it the line's number.
const EPOCH_SHIFT: u32 = 48;
const EPOCH_END: u64 = 1 << (64 - EPOCH_SHIFT);

/// Lines by number (address divided by 64), each once, in the order in which they came.
#[derive(Debug)]
pub(crate) struct LineSet {
    lines: Vec<usize>,
    /// Open hash; a power of two in size, at most half full. An entry of another epoch is free.
    table: Vec<u64>,
    epoch: u64,
}

impl Default for LineSet {
    fn default() -> Self {
        Self {
            lines: Vec::new(),
            table: vec![0; 1 << 10],
            epoch: 1,
        }
    }
}

impl LineSet {
    #[inline(always)]
    pub(crate) fn insert(&mut self, number: usize) {
        let tagged = self.look().epoch | number as u64;
        let slot = first_slot(number, self.table.len() - 1);
        // SAFETY: the length is a power of two, so the last slot is its mask.
        let found = unsafe { self.table.get_unchecked_mut(slot) };
        if *found == tagged {
            return;
        }
        if is_of_another_epoch(*found, tagged) {
            *found = tagged;
            self.add(number);
        } else {
            self.insert_further(number);
        }
    }

    /// For who asks about many lines, one after the other.
    #[inline(always)]
    pub(crate) fn look(&self) -> Look<'_> {
        Look {
            table: &self.table,
            epoch: self.epoch << EPOCH_SHIFT,
        }
    }

    /// Adds a line that may be there, but not where it is looked for first: there is another one.
    #[inline(never)]
    fn insert_further(&mut self, number: usize) {
        let (tagged, last) = (self.look().epoch | number as u64, self.table.len() - 1);
        let mut further = further_slots(number, last);
        loop {
            let found = &mut self.table[further()];
            if *found == tagged {
                return;
            }
            if is_of_another_epoch(*found, tagged) {
                *found = tagged;
                break;
            }
        }
        self.add(number);
    }

    /// The line was put into the table.
    #[inline(always)]
    fn add(&mut self, number: usize) {
        self.lines.push(number);
        if self.lines.len() * 2 > self.table.len() {
            self.grow();
        }
    }

    #[cold]
    fn grow(&mut self) {
        self.table = vec![0; self.table.len() * 2];
        for number in std::mem::take(&mut self.lines) {
            self.insert(number);
        }
    }

    pub(crate) fn lines(&self) -> &[usize] {
        &self.lines
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// Moves the lines into `to`, which is empty, and empties the set.
    pub(crate) fn drain_into(&mut self, to: &mut Vec<usize>) {
        std::mem::swap(&mut self.lines, to);
        self.epoch += 1;
        if self.epoch == EPOCH_END {
            self.epoch = 1;
            self.table.fill(0);
        }
    }
}

/// Whether an entry of the table is free.
#[inline(always)]
fn is_of_another_epoch(found: u64, tagged: u64) -> bool {
    (found ^ tagged) >> EPOCH_SHIFT != 0
}

/// The slot of a table, whose last one is `last`, where a line is looked for first. Neighbours have neighbouring slots:
/// those of an array meet neither each other nor many lines of the cache.
#[inline(always)]
fn first_slot(number: usize, last: usize) -> usize {
    // Objects whose size is a power of two take each their turn of the slots. Hot lines of several puddles, which
    // mostly lie at their starts, are apart, but not so far that an array over two units would meet itself.
    let (turn, unit) = (number >> 12, number >> 15);
    (number + turn + unit * 1657) & last
}

/// Where it is looked for next, one after the other, if another line is there. Not side by side: there the lines of an
/// array may lie, hundreds of them.
#[inline(always)]
fn further_slots(number: usize, last: usize) -> impl FnMut() -> usize {
    // Fibonacci hashing: the upper bits of the product are the well mixed ones.
    let mixed = number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    // An odd step comes by all slots, and one from a quarter to three quarters of the table does not stay in an array.
    let (mut slot, step) = (mixed >> 32, ((mixed >> 48 & last >> 1) + (last >> 2)) | 1);
    move || {
        slot = slot.wrapping_add(step) & last;
        slot
    }
}

/// What a set holds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Look<'s> {
    table: &'s [u64],
    epoch: u64,
}

impl Look<'_> {
    /// Whether a line is there, where it is looked for first.
    #[inline(always)]
    pub(crate) fn has(&self, number: usize) -> bool {
        let slot = first_slot(number, self.table.len() - 1);
        // SAFETY: the length is a power of two, so the last slot is its mask.
        unsafe { *self.table.get_unchecked(slot) == self.epoch | number as u64 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn holds_each_line_once_through_many_epochs() {
        let mut set = LineSet::default();
        let mut out = Vec::new();
        let mut state = 1u64;
        for round in 0..70_000u64 {
            let mut model = BTreeSet::new();
            let count = if round % 7_000 == 0 { 5_000 } else { 3 };
            for _ in 0..count {
                state = state
                    .wrapping_mul(6364136223846793005)
                    .wrapping_add(1442695040888963407);
                let line = 0x80_0000_0000 + (state >> 51) as usize;
                set.insert(line);
                model.insert(line);
            }
            assert!(!set.is_empty());
            out.clear();
            set.drain_into(&mut out);
            out.sort_unstable();
            assert!(out.iter().eq(&model), "round {round}");
        }
        assert!(set.is_empty());
    }

    /// How many lines of a batch, each `stride` behind the one before, are found where they are looked for first.
    fn found_first(starts: &[usize], stride: usize) -> usize {
        let mut set = LineSet::default();
        for start in starts {
            for at in 0..2048 / starts.len() {
                set.insert(start + at * stride);
            }
        }
        let look = set.look();
        set.lines()
            .iter()
            .filter(|number| look.has(**number))
            .count()
    }

    #[test]
    fn lines_of_arrays_and_of_objects_that_lie_apart_are_found_at_first() {
        let base = 0x80_0000_0000;
        for start in (0..1 << 16).step_by(700) {
            assert_eq!(found_first(&[base + start], 1), 2048);
        }
        for stride in [2, 4, 8, 16, 32] {
            let found = found_first(&[base], stride);
            assert!(found >= 1000, "{found} of lines {stride} apart");
        }
        // An array, and lines elsewhere whose turn comes in the midst of it.
        let mut set = LineSet::default();
        (0..1500).for_each(|at| set.insert(base + at));
        let steps = |set: &LineSet, number: usize| {
            let (tagged, last) = (set.look().epoch | number as u64, set.table.len() - 1);
            let mut further = further_slots(number, last);
            let found = |_: &usize| set.table[further()] == tagged;
            (1..).find(found).unwrap_or_default()
        };
        let strangers = (0..500).map(|at| base + (1 << 20) + 3 * at);
        let mut most = 0;
        for number in strangers {
            set.insert(number);
            if !set.look().has(number) {
                most = most.max(steps(&set, number));
            }
        }
        assert!((1..40).contains(&most), "{most} slots were looked at");
        let puddles: Vec<usize> = (0..32).map(|number| base + (number << 15)).collect();
        assert!(found_first(&puddles, 1) >= 1400);
    }
}
