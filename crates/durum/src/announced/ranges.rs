//! Disjoint ranges in order of address: a handful mostly, and millions where a transaction touches as many large
//! objects.
//!
//! They lie in chunks, so that one that comes between others moves few of them. Mostly the next one begins where the
//! last one ended, or behind all others; the first is found without a search.

use std::ops::Range;

use crate::steps;

/// A chunk is divided when it has so many.
const CHUNK_MAX: usize = if cfg!(test) { 8 } else { 256 };
/// So many are kept for the next transaction.
const KEPT: usize = 256;

/// Where a range is: its chunk, and its place there.
#[derive(Clone, Copy, Debug, Default)]
struct At {
    chunk: usize,
    place: usize,
}

#[derive(Debug, Default)]
pub(crate) struct Ranges {
    /// None is empty, but the first one where there are no ranges: its memory is for those of the next transaction.
    chunks: Vec<Vec<Range<usize>>>,
    /// Of all of them together.
    bytes: usize,
    /// The range that was inserted last, or any other, or nothing.
    last: At,
}

impl Ranges {
    pub(crate) fn is_empty(&self) -> bool {
        self.chunks.first().is_none_or(Vec::is_empty)
    }

    /// The bytes of all of them.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// All of them, in order of address.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Range<usize>> + Clone {
        self.chunks.iter().flatten()
    }

    /// Those that end behind an address, in order.
    pub(crate) fn ending_behind(&self, address: usize) -> impl Iterator<Item = &Range<usize>> {
        let At { chunk, place } = self.find(|range| range.end <= address);
        let chunks = self.chunks.get(chunk..).unwrap_or_default();
        let first = chunks.first().map_or(&[][..], |first| &first[place..]);
        first.iter().chain(chunks.iter().skip(1).flatten())
    }

    /// The parts of a range that are in none of them, in order.
    pub(crate) fn gaps_in(&self, range: Range<usize>) -> impl Iterator<Item = Range<usize>> {
        let mut inside = self.ending_behind(range.start);
        let mut from = range.start;
        std::iter::from_fn(move || {
            while from < range.end {
                let next = inside.next().filter(|next| next.start < range.end);
                let next = next.cloned().unwrap_or(range.end..range.end);
                let gap = from..next.start;
                from = next.end;
                if !gap.is_empty() {
                    return Some(gap);
                }
            }
            None
        })
    }

    /// The first one of which `is_before` is not true, which is true of those before it; or the end of the last chunk
    /// but for an empty set.
    fn find(&self, is_before: impl Fn(&Range<usize>) -> bool) -> At {
        let chunk = self
            .chunks
            .partition_point(|chunk| chunk.last().is_some_and(&is_before));
        let place = self
            .chunks
            .get(chunk)
            .map_or(0, |chunk| chunk.partition_point(&is_before));
        At { chunk, place }
    }

    fn get(&self, at: At) -> Option<&Range<usize>> {
        self.chunks.get(at.chunk)?.get(at.place)
    }

    /// The one behind it.
    fn next(&self, at: At) -> Option<&Range<usize>> {
        let behind = At {
            place: at.place + 1,
            ..at
        };
        let first = || self.chunks.get(at.chunk + 1)?.first();
        self.get(behind).or_else(first)
    }

    /// Adds a range. All that overlap it or touch it become one.
    pub(crate) fn merge(&mut self, range: Range<usize>) {
        if self.lengthen(&range) {
            return;
        }
        let at = self.find(|other| other.end < range.start);
        let Some(first) = self.get(at).filter(|first| first.start <= range.end) else {
            return self.insert_at(at, range);
        };
        let start = first.start.min(range.start);
        let mut end = first.end.max(range.end);
        // Of those that become one the first stays.
        while let Some(next) = self.next(at).filter(|next| next.start <= end) {
            end = end.max(next.end);
            self.remove_behind(at);
        }
        let first = std::mem::replace(&mut self.chunks[at.chunk][at.place], start..end);
        self.bytes += end - start - first.len();
        self.last = at;
    }

    /// Adds a range that overlaps no other, and stays apart from those that it touches.
    pub(crate) fn insert(&mut self, range: Range<usize>) {
        let at = self.find(|other| other.start < range.start);
        self.insert_at(at, range);
    }

    /// Adds a range that overlaps no other. One that ends where it begins becomes longer.
    pub(crate) fn append(&mut self, range: Range<usize>) {
        if self.lengthen(&range) {
            return;
        }
        let at = self.find(|other| other.end < range.start);
        match self
            .chunks
            .get_mut(at.chunk)
            .and_then(|chunk| chunk.get_mut(at.place))
        {
            Some(before) if before.end == range.start => {
                before.end = range.end;
                self.bytes += range.len();
                self.last = at;
            }
            _ => self.insert_at(at, range),
        }
    }

    /// Whether the range begins where the last one ends, and reaches no other one: then that one is longer now.
    #[inline]
    fn lengthen(&mut self, range: &Range<usize>) -> bool {
        let ends_here = self
            .get(self.last)
            .is_some_and(|last| last.end == range.start);
        if !ends_here
            || self
                .next(self.last)
                .is_some_and(|next| next.start <= range.end)
        {
            return false;
        }
        steps::add(1);
        self.chunks[self.last.chunk][self.last.place].end = range.end;
        self.bytes += range.len();
        true
    }

    fn insert_at(&mut self, mut at: At, range: Range<usize>) {
        if at.chunk == self.chunks.len() {
            // Behind all others.
            match self.chunks.len().checked_sub(1) {
                Some(chunk) if self.chunks[chunk].len() < CHUNK_MAX => {
                    let place = self.chunks[chunk].len();
                    at = At { chunk, place };
                }
                _ => {
                    self.chunks.push(Vec::new());
                    at.place = 0;
                }
            }
        } else if self.chunks[at.chunk].len() >= CHUNK_MAX {
            let behind = self.chunks[at.chunk].split_off(CHUNK_MAX / 2);
            // One in so many insertions moves the chunks' heads.
            steps::add((self.chunks.len() - at.chunk) / CHUNK_MAX);
            self.chunks.insert(at.chunk + 1, behind);
            if at.place > CHUNK_MAX / 2 {
                at.chunk += 1;
                at.place -= CHUNK_MAX / 2;
            }
        }
        let chunk = &mut self.chunks[at.chunk];
        steps::add(1 + (chunk.len() - at.place) / CHUNK_MAX);
        self.bytes += range.len();
        chunk.insert(at.place, range);
        self.last = at;
    }

    /// Takes the range behind another one out.
    fn remove_behind(&mut self, at: At) {
        steps::add(1);
        if at.place + 1 < self.chunks[at.chunk].len() {
            self.bytes -= self.chunks[at.chunk].remove(at.place + 1).len();
            return;
        }
        let next = &mut self.chunks[at.chunk + 1];
        self.bytes -= next.remove(0).len();
        if next.is_empty() {
            self.chunks.remove(at.chunk + 1);
        }
    }

    #[inline(always)]
    pub(crate) fn clear(&mut self) {
        if self.is_empty() {
            return;
        }
        if self.chunks.len() > 1 {
            self.forget_chunks();
        }
        self.chunks[0].clear();
        self.bytes = 0;
        self.last = At::default();
    }

    /// Gives back all chunks but the first one.
    #[cold]
    fn forget_chunks(&mut self) {
        self.chunks.truncate(1);
        self.chunks.shrink_to(KEPT);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One flag for each address.
    fn flags(ranges: &Ranges) -> Vec<bool> {
        let mut flags = vec![false; 4096];
        let mut end = 0;
        for range in ranges.iter() {
            assert!(
                range.start >= end && !range.is_empty(),
                "in order, and apart"
            );
            end = range.end;
            flags[range.clone()].fill(true);
        }
        assert_eq!(ranges.bytes(), flags.iter().filter(|flag| **flag).count());
        assert!(ranges.is_empty() || ranges.chunks.iter().all(|chunk| !chunk.is_empty()));
        flags
    }

    fn random() -> impl FnMut(usize) -> usize {
        let mut state = 11u64;
        move |below| {
            state = state
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            (state >> 33) as usize % below
        }
    }

    #[test]
    fn behave_like_a_set_of_addresses() {
        let mut random = random();
        let mut ranges = Ranges::default();
        for round in 0..60 {
            ranges.clear();
            assert!(ranges.is_empty());
            let mut model = vec![false; 4096];
            for _ in 0..random(400) {
                let start = random(4000);
                let len = 1 + random(if round % 2 == 0 { 8 } else { 90 });
                model[start..start + len].fill(true);
                ranges.merge(start..start + len);
                let behind = random(4096);
                let mut found = ranges.ending_behind(behind);
                let expected = ranges.iter().filter(|range| range.end > behind);
                assert!(expected.eq(found.by_ref()));
                let (from, until) = (behind.min(start), behind.max(start));
                let gaps: Vec<usize> = ranges.gaps_in(from..until).flatten().collect();
                let expected: Vec<usize> = (from..until).filter(|at| !model[*at]).collect();
                assert_eq!(gaps, expected);
            }
            assert_eq!(flags(&ranges), model);
            let touching = ranges.iter().zip(ranges.iter().skip(1));
            assert!(
                touching
                    .into_iter()
                    .all(|(one, other)| one.end < other.start)
            );
        }
    }

    #[test]
    fn those_that_stay_apart_do() {
        let mut random = random();
        let mut starts: Vec<usize> = (0..400).collect();
        for at in 0..starts.len() {
            let other = random(starts.len());
            starts.swap(at, other);
        }
        let mut ranges = Ranges::default();
        starts
            .iter()
            .for_each(|start| ranges.insert(start * 10..start * 10 + 10));
        let expected: Vec<_> = (0..400).map(|start| start * 10..start * 10 + 10).collect();
        assert!(ranges.iter().eq(&expected));
        // In rows of ten, each of which becomes one.
        ranges.clear();
        for row in [3, 1, 2] {
            (0..10).for_each(|at| {
                let start = row * 1000 + at * 10;
                ranges.append(start..start + 10);
            });
        }
        assert!(ranges.iter().eq(&[1000..1100, 2000..2100, 3000..3100]));
    }
}
