//! Open ranges of persistent memory that a transaction may change through `&mut`.
//!
//! Handles can be moved in and out of such memory unseen. So when it is first written to, the handles in it are counted
//! as the transaction's own, and when the transaction ends, those that are in it then are given back: what remains are
//! handles in volatile hands. Open ranges never overlap: one inside another says nothing new.

use std::collections::BTreeMap;

/// Memory whose handles count as volatile for now.
#[derive(Clone, Copy, Debug)]
pub(super) struct OpenRange {
    pub(super) start: usize,
    pub(super) end: usize,
    /// Counts the handles in the values between two addresses.
    pub(super) owners: unsafe fn(usize, usize) -> i64,
}

impl OpenRange {
    fn owners(&self) -> i64 {
        // SAFETY: the range was opened for values of this type, which are there until it is closed.
        unsafe { (self.owners)(self.start, self.end) }
    }

    fn holds(&self, other: &OpenRange) -> bool {
        self.start <= other.start && other.end <= self.end
    }
}

/// Up to so many ranges are kept in a row. To find one takes a few steps there, and to insert one moves those behind
/// it.
const FEW: usize = 128;

/// The open ranges of a transaction.
#[derive(Debug, Default)]
pub(super) struct OpenRanges {
    /// By start.
    few: Vec<OpenRange>,
    /// All of them by start, when there are more than a few.
    many: BTreeMap<usize, OpenRange>,
}

impl OpenRanges {
    /// Opens a range, unless it lies inside another one: then `None`. By how much the balance changes, without the
    /// handles that are in it now: these the caller counts, who knows their type.
    ///
    /// # Safety
    /// From `range.start` to `range.end` lie values of which `range.owners` counts the handles, until the range is
    /// closed.
    #[inline]
    pub(super) unsafe fn open(&mut self, range: OpenRange) -> Option<i64> {
        // Mostly there are one or two others, elsewhere.
        if self.many.is_empty() && self.few.len() < FEW {
            let at = self.place_of(range.start);
            let is_behind = at == 0 || self.few[at - 1].end <= range.start;
            let is_before = self.few.get(at).is_none_or(|next| range.end <= next.start);
            if is_behind && is_before {
                self.few.insert(at, range);
                return Some(0);
            }
        }
        self.open_among(range)
    }

    /// How many of the few begin before an address.
    #[inline]
    fn place_of(&self, start: usize) -> usize {
        self.few.partition_point(|open| open.start < start)
    }

    #[inline(never)]
    fn open_among(&mut self, range: OpenRange) -> Option<i64> {
        let before = match self.many.is_empty() {
            true => self.few[..self.place_of(range.start + 1)].last(),
            false => self
                .many
                .range(..=range.start)
                .next_back()
                .map(|(_, open)| open),
        };
        if before.is_some_and(|open| open.holds(&range)) {
            return None;
        }
        let change = self.close(range.start, range.end).unwrap_or(0);
        if self.many.is_empty() && self.few.len() < FEW {
            self.few.insert(self.place_of(range.start), range);
        } else {
            let few = self.few.drain(..).map(|open| (open.start, open));
            self.many.extend(few);
            self.many.insert(range.start, range);
        }
        Some(change)
    }

    /// Closes the ranges in `[start, end)`, if there are any. By how much the balance changes.
    #[inline]
    pub(super) fn close(&mut self, start: usize, end: usize) -> Option<i64> {
        // Only ranges that begin in there may go. One that ends behind it stays.
        let next = self.few.get(self.place_of(start));
        match self.many.is_empty() && next.is_none_or(|next| end <= next.start) {
            true => None,
            false => self.close_some(start, end),
        }
    }

    #[inline(never)]
    fn close_some(&mut self, start: usize, end: usize) -> Option<i64> {
        let (mut change, before) = (0, self.few.len() + self.many.len());
        self.few.retain(|open| {
            let goes = start <= open.start && open.end <= end;
            if goes {
                change -= open.owners();
            }
            !goes
        });
        let goes = |(_, open): &(&usize, &OpenRange)| open.end <= end;
        while let Some((&at, open)) = self.many.range(start..end).find(goes) {
            change -= open.owners();
            self.many.remove(&at);
        }
        (self.few.len() + self.many.len() < before).then_some(change)
    }

    /// Closes all. By how much the balance changes.
    #[inline]
    pub(super) fn close_all(&mut self) -> i64 {
        let mut change = 0;
        for open in &self.few {
            change -= open.owners();
        }
        self.few.clear();
        // To clear a map takes longer than to see that it is empty.
        if !self.many.is_empty() {
            change += self.close_many();
        }
        change
    }

    #[inline(never)]
    fn close_many(&mut self) -> i64 {
        let change = self.many.values().map(|open| -open.owners()).sum();
        self.many.clear();
        change
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A handle in each byte: nothing is read there.
    fn range(start: usize, len: usize) -> OpenRange {
        unsafe fn owners(start: usize, end: usize) -> i64 {
            (end - start) as i64
        }
        OpenRange {
            start,
            end: start + len,
            owners,
        }
    }

    /// Opens and closes at random, whole objects and parts of them, a few or many. What is larger than what is closed
    /// stays, wherever it is kept.
    #[test]
    fn what_is_opened_is_closed_and_nothing_is_counted_twice() {
        let mut seed = 1u64;
        let mut below = |bound: usize| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (seed >> 33) as usize % bound
        };
        for round in 0..300 {
            let (mut open_ranges, mut known) =
                (OpenRanges::default(), Vec::<(usize, usize)>::new());
            let (mut balance, room) = (0, [20, 200, 5000][round % 3]);
            for _ in 0..room / 2 {
                let len = [1, 4, 16][below(3)];
                let start = below(room) / len * len;
                let end = start + len;
                let is_in = |&(from, to): &(usize, usize)| start <= from && to <= end;
                if below(4) == 0 {
                    let closed = open_ranges.close(start, end);
                    let gone: usize = known
                        .iter()
                        .filter(|it| is_in(it))
                        .map(|it| it.1 - it.0)
                        .sum();
                    assert_eq!(closed, (gone > 0).then_some(-(gone as i64)));
                    balance += closed.unwrap_or(0);
                    known.retain(|it| !is_in(it));
                    continue;
                }
                // SAFETY: the ranges read no memory.
                let opened = unsafe { open_ranges.open(range(start, len)) };
                let is_inside = known.iter().any(|&(from, to)| from <= start && end <= to);
                assert_eq!(opened.is_none(), is_inside);
                if let Some(change) = opened {
                    balance += change + len as i64;
                    known.retain(|it| !is_in(it));
                    known.push((start, end));
                }
                let all: usize = known.iter().map(|(from, to)| to - from).sum();
                assert_eq!(balance, all as i64);
            }
            assert_eq!(balance + open_ranges.close_all(), 0);
        }
    }
}
