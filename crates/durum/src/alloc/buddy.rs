//! The buddy level: runs of granules inside one puddle, in volatile memory.
//!
//! Blocks of 2^k granules lie at multiples of their size, so a block of 16 granules starts on a 4 KiB boundary. A
//! request takes the smallest block that holds it and gives the tail back at once, so that no extent wastes more than
//! one granule; a freed run joins its free buddies. Always the lowest block is taken: what lives long gathers at the
//! front, and puddles at the back empty themselves.
//!
//! Tails alone would be of little use to requests of the same size (an object of 4 KiB takes 17 granules, and leaves 15
//! of a block of 32). So a run may also begin where the last one ended, and reach from a tail into the next block:
//! objects of one size lie side by side. Of the block that a run was cut from the rest is kept aside, so that the next
//! run of that size is cut from it in a few steps; whatever else happens puts it back first.
//!
//! Positions count granules from the start of the *puddle*, header included, because puddles are 2 MiB aligned and
//! natural alignment follows from that.

use std::ops::Range;

use super::free_set::FreeSet;

/// Which runs of granules of one puddle are free.
#[derive(Debug)]
pub(super) struct Buddy {
    /// `free[k]` holds `position >> k` of each free block of `1 << k` granules.
    free: Vec<FreeSet>,
    /// Those of `rest` included.
    free_granules: usize,
    /// What is left of the block that the last run was taken from, in no set: it begins where that run ended.
    rest: Range<usize>,
    /// Requests of this order and above have no better place than `rest`, as far as it reaches.
    rest_order: usize,
}

impl Buddy {
    /// A puddle of `granules` granules in all, nothing of it free yet.
    pub(super) fn new(granules: usize) -> Self {
        let orders = granules.max(1).ilog2() as usize + 1;
        Self {
            free: (0..orders)
                .map(|order| FreeSet::new((granules >> order) + 1))
                .collect(),
            free_granules: 0,
            rest: 0..0,
            rest_order: 0,
        }
    }

    /// Granules that are free, in blocks of any size.
    pub(super) fn free_granules(&self) -> usize {
        self.free_granules
    }

    /// The number of free blocks by size: `histogram()[k]` blocks of `1 << k` granules.
    pub(super) fn histogram(&mut self) -> Vec<usize> {
        self.put_rest_back();
        self.free.iter().map(FreeSet::len).collect()
    }

    /// Takes `granules` granules, starting at a multiple of `align_granules` (a power of two).
    pub(super) fn take(&mut self, granules: usize, align_granules: usize) -> Option<usize> {
        debug_assert!(granules > 0 && align_granules.is_power_of_two());
        let wanted = granules.next_power_of_two().max(align_granules).ilog2() as usize;
        let behind_last = self.rest.start;
        let may_follow = !granules.is_power_of_two() && behind_last.is_multiple_of(align_granules);
        if may_follow && wanted >= self.rest_order && self.rest.len() >= granules {
            self.rest.start += granules;
            self.free_granules -= granules;
            return Some(behind_last);
        }
        self.put_rest_back();
        let found =
            (wanted..self.free.len()).find_map(|order| Some((order, self.free[order].first()?)));
        self.rest_order = wanted;
        if may_follow
            && found.is_none_or(|(order, block)| behind_last < block << order)
            && self.cut(behind_last, granules)
        {
            return Some(behind_last);
        }
        let (order, block) = found?;
        let position = block << order;
        self.cut(position, granules).then_some(position)
    }

    /// Takes exactly the run `position .. position + granules`, which has to be free.
    pub(super) fn take_at(&mut self, position: usize, granules: usize) -> bool {
        self.put_rest_back();
        let is_free = self.cut(position, granules);
        self.put_rest_back();
        is_free
    }

    /// Gives the run `position .. position + granules` back.
    pub(super) fn release(&mut self, position: usize, granules: usize) {
        self.put_rest_back();
        self.free_granules += granules;
        self.insert(position..position + granules);
    }

    /// Takes a run out of the free blocks that it lies in. The rest of the last one is kept aside.
    fn cut(&mut self, position: usize, granules: usize) -> bool {
        let mut cursor = position;
        let end = position + granules;
        while cursor < end {
            let Some(order) =
                (0..self.free.len()).find(|&order| self.free[order].contains(cursor >> order))
            else {
                self.insert(position..cursor);
                return false;
            };
            let start = (cursor >> order) << order;
            self.free[order].remove(cursor >> order);
            self.insert(start..cursor);
            cursor = start + (1 << order);
        }
        self.rest = end..cursor;
        self.free_granules -= granules;
        true
    }

    /// Makes what was kept aside free blocks again. Where it begins is not forgotten.
    fn put_rest_back(&mut self) {
        let rest = self.rest.start..self.rest.start;
        let rest = std::mem::replace(&mut self.rest, rest);
        self.insert(rest);
    }

    /// Enters free blocks.
    fn insert(&mut self, range: Range<usize>) {
        let Range { mut start, end } = range;
        while start < end {
            let order = (start.trailing_zeros() as usize).min((end - start).ilog2() as usize);
            self.release_block(start >> order, order);
            start += 1 << order;
        }
    }

    fn release_block(&mut self, mut block: usize, mut order: usize) {
        while order + 1 < self.free.len() && self.free[order].remove(block ^ 1) {
            block >>= 1;
            order += 1;
        }
        self.free[order].insert(block);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A run-by-run model: one flag a granule.
    struct Model(Vec<bool>);

    impl Model {
        fn take(&mut self, start: usize, granules: usize) {
            assert!(
                self.0[start..start + granules].iter().all(|free| *free),
                "run is free"
            );
            self.0[start..start + granules].fill(false);
        }
        fn release(&mut self, start: usize, granules: usize) {
            self.0[start..start + granules].fill(true);
        }
    }

    #[test]
    fn runs_never_overlap_and_everything_comes_back() {
        let granules = 8192;
        let mut buddy = Buddy::new(granules);
        buddy.release(16, granules - 16);
        let fresh = buddy.histogram();
        let mut model = Model(vec![true; granules]);
        model.take(0, 16);
        let mut live: Vec<(usize, usize)> = Vec::new();
        let mut state = 1u64;
        let mut random = move |below: usize| {
            state = state
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            (state >> 33) as usize % below
        };
        for _ in 0..20_000 {
            if random(5) < 3 {
                let order = random(9);
                let want = 1 + random(1 << order);
                let align = 1 << random(5);
                if let Some(start) = buddy.take(want, align) {
                    assert_eq!(start % align, 0);
                    model.take(start, want);
                    live.push((start, want));
                }
            } else if !live.is_empty() {
                let (start, length) = live.swap_remove(random(live.len()));
                buddy.release(start, length);
                model.release(start, length);
            }
            assert_eq!(
                buddy.free_granules(),
                model.0.iter().filter(|free| **free).count()
            );
        }
        for (start, length) in live {
            buddy.release(start, length);
        }
        assert_eq!(buddy.histogram(), fresh, "free buddies join again");
    }

    #[test]
    fn a_run_can_be_taken_at_its_place() {
        let mut buddy = Buddy::new(8192);
        buddy.release(16, 8176);
        assert!(buddy.take_at(100, 300));
        assert!(!buddy.take_at(399, 2));
        assert!(buddy.take_at(400, 1));
        assert_eq!(buddy.free_granules(), 8176 - 301);
        buddy.release(100, 301);
        assert_eq!(buddy.free_granules(), 8176);
        assert!(!buddy.take_at(0, 1), "the header is never free");
    }

    #[test]
    fn runs_of_one_size_lie_side_by_side() {
        let mut buddy = Buddy::new(8192);
        buddy.release(16, 8176);
        let runs: Vec<usize> = std::iter::from_fn(|| buddy.take(17, 1)).collect();
        // All but a remainder is used, where each would have left 15 of 32.
        assert!(runs.len() * 17 > 8176 - 512, "{} runs", runs.len());
        for run in &runs {
            buddy.release(*run, 17);
        }
        assert_eq!(buddy.free_granules(), 8176);
        assert_eq!(buddy.take(17, 1), Some(32), "again from the front");
    }

    #[test]
    fn churn_leaves_bounded_fragmentation() {
        // Half the space stays live while sizes change: a request of a sixteenth of the puddle must still fit.
        let mut buddy = Buddy::new(8192);
        buddy.release(16, 8176);
        let mut live = std::collections::VecDeque::new();
        let mut held = 0;
        for round in 0..50_000usize {
            let want = 1 + (round * 7919) % 33;
            while held + want > 4096 {
                let (start, length): (usize, usize) = live.pop_front().expect("something is live");
                buddy.release(start, length);
                held -= length;
            }
            let start = buddy.take(want, 1).expect("half of the space is free");
            live.push_back((start, want));
            held += want;
        }
        assert!(buddy.take(512, 1).is_some());
    }
}
