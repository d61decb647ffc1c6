//! Which addresses of the puddle space are taken, and where the next puddle goes.
//!
//! A new store draws a random start, so that two stores rarely meet in one process, and not where one process made
//! both, or made one after it had opened the other. From there puddles are placed upward: the first free run after the
//! last placement, wrapping around at the end of the space, so that an address is reused as late as possible. A puddle
//! never straddles the end.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

use durum_format::UNIT;

use crate::registry::contents::AddressRange;

/// A process gives no two new stores the same bytes of this many, while there are others.
pub(crate) const START_ALIGNMENT: u64 = 1 << 30;
/// A new store starts in the first half of those, at a random multiple of the unit: stores of two processes that drew
/// the same still rarely meet.
const STARTS_APIECE: u64 = START_ALIGNMENT / UNIT / 2;

/// The taken ranges of one store's space.
#[derive(Clone, Debug)]
pub(crate) struct Space {
    base: u64,
    size: u64,
    /// Where the search for the next puddle begins, as an offset from the base.
    cursor: u64,
    /// Offset from the base to length, both in bytes. Ranges do not overlap.
    taken: BTreeMap<u64, u64>,
}

/// A range that cannot be entered: it lies outside of the space or overlaps another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Conflict;

impl Space {
    /// An empty space whose first puddle goes to `start` (an address in it).
    pub(crate) fn new(base: u64, size: u64, start: u64) -> Space {
        let cursor = start.wrapping_sub(base);
        Space {
            base,
            size,
            cursor: if cursor < size { cursor } else { 0 },
            taken: BTreeMap::new(),
        }
    }

    /// The address at which the next search begins.
    pub(crate) fn cursor(&self) -> u64 {
        self.base + self.cursor
    }

    /// Where the next search finds room, unless what is behind it is too small.
    pub(crate) fn next_free(&self) -> u64 {
        let mut at = self.cursor;
        while let Some((&start, &length)) = self.taken.range(..=at).next_back()
            && at - start < length
        {
            at = start + length;
        }
        self.base + at
    }

    /// Enters a range that is already in use.
    pub(crate) fn insert(&mut self, address: u64, length: u64) -> Result<(), Conflict> {
        let start = address.checked_sub(self.base).ok_or(Conflict)?;
        let end = start.checked_add(length).ok_or(Conflict)?;
        if length == 0 || end > self.size {
            return Err(Conflict);
        }
        // Only the last range that starts before our end can reach into us.
        if let Some((&other, &other_length)) = self.taken.range(..end).next_back()
            && other + other_length > start
        {
            return Err(Conflict);
        }
        self.taken.insert(start, length);
        Ok(())
    }

    /// Takes `length` bytes: the first free run after the last placement, out of `elsewhere`'s way. `None` if no run is
    /// long enough.
    pub(crate) fn place(&mut self, length: u64, elsewhere: &Elsewhere) -> Option<u64> {
        if length == 0 || length > self.size {
            return None;
        }
        let start = self
            .first_fit(self.cursor, self.size, length, elsewhere)
            // The runs before the cursor, and the one that spans it: a run may begin before the cursor and
            // reach beyond it.
            .or_else(|| self.first_fit(0, self.size, length, elsewhere))?;
        self.taken.insert(start, length);
        self.cursor = if start + length < self.size {
            start + length
        } else {
            0
        };
        Some(self.base + start)
    }

    /// Gives a range back.
    pub(crate) fn remove(&mut self, address: u64) {
        if let Some(start) = address.checked_sub(self.base) {
            self.taken.remove(&start);
        }
    }

    /// The same, from here on placed from another address on.
    pub(crate) fn beginning_at(mut self, cursor: u64) -> Space {
        self.cursor = cursor - self.base;
        self
    }

    /// Takes a placement back: the next search begins where this one did, unless there was another one since.
    pub(crate) fn take_back(&mut self, address: u64, length: u64, cursor: u64) {
        self.remove(address);
        let behind = address - self.base + length;
        if self.cursor == behind || (self.cursor == 0 && behind == self.size) {
            self.cursor = cursor - self.base;
        }
    }

    /// This process opens the store: no store that it makes later starts among its puddles, or where the next one goes.
    pub(crate) fn open_here(&self) -> OpenHere {
        let next = (self.cursor, 1);
        let taken = self.taken.iter().map(|(&start, &length)| (start, length));
        let starts = taken.chain([next]).flat_map(|(start, length)| {
            let first = start - start % START_ALIGNMENT;
            (first..start + length).step_by(START_ALIGNMENT as usize)
        });
        let starts: BTreeSet<u64> = starts.map(|start| self.base + start).collect();
        let mut known = starts_of_process();
        for &start in &starts {
            *known.entry(start).or_default() += 1;
        }
        OpenHere { starts }
    }

    /// The first free run of `length` bytes in `from..to`, as an offset.
    fn first_fit(&self, from: u64, to: u64, length: u64, elsewhere: &Elsewhere) -> Option<u64> {
        let mut at = from;
        if let Some((&other, &other_length)) = self.taken.range(..from).next_back() {
            at = at.max(other + other_length);
        }
        let taken = self.taken.range(from..to);
        for (other, other_length) in taken.map(|(at, length)| (*at, *length)).chain([(to, 0)]) {
            at = elsewhere.next_free(self.base + at, length) - self.base;
            if other.checked_sub(at).is_some_and(|gap| gap >= length) {
                return Some(at);
            }
            at = at.max(other + other_length);
        }
        None
    }
}

/// Addresses that a client's process uses for something else, in order and apart.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Elsewhere(Vec<Range<u64>>);

impl Elsewhere {
    pub(crate) const NOTHING: Elsewhere = Elsewhere(Vec::new());

    /// Those of some ranges, which may meet.
    pub(crate) fn of(ranges: &[AddressRange]) -> Elsewhere {
        let end = |range: &AddressRange| range.address.saturating_add(range.size);
        let ranges = ranges.iter().map(|range| range.address..end(range));
        let mut ranges: Vec<Range<u64>> = ranges.filter(|range| !range.is_empty()).collect();
        ranges.sort_unstable_by_key(|range| range.start);
        ranges.dedup_by(|next, last| {
            let meets = next.start <= last.end;
            if meets {
                last.end = last.end.max(next.end);
            }
            meets
        });
        Elsewhere(ranges)
    }

    /// The same, and some ranges more.
    pub(crate) fn with(self, more: impl IntoIterator<Item = AddressRange>) -> Elsewhere {
        let ranges = self.0.into_iter().map(|range| AddressRange {
            address: range.start,
            size: range.end - range.start,
        });
        Elsewhere::of(&ranges.chain(more).collect::<Vec<_>>())
    }

    /// The one of the ranges that any of `length` bytes from `address` on is in.
    fn met(&self, address: u64, length: u64) -> Option<&Range<u64>> {
        let behind = self.0.partition_point(|range| range.end <= address);
        let range = self.0.get(behind)?;
        (range.start < address.saturating_add(length)).then_some(range)
    }

    /// Whether any of `length` bytes from `address` on is in use.
    pub(crate) fn meets(&self, address: u64, length: u64) -> bool {
        self.met(address, length).is_some()
    }

    /// The first address from this one on where `length` bytes are not in use; the last one there is, where none are. A
    /// client says what it likes.
    fn next_free(&self, address: u64, length: u64) -> u64 {
        let mut at = address;
        while let Some(range) = self.met(at, length) {
            at = range.end.checked_next_multiple_of(UNIT).unwrap_or(u64::MAX);
        }
        at
    }
}

/// Where a store of this process lies that is open; when this is dropped, it is not any more.
#[derive(Debug)]
pub(crate) struct OpenHere {
    starts: BTreeSet<u64>,
}

impl Drop for OpenHere {
    fn drop(&mut self) {
        let mut known = starts_of_process();
        for start in &self.starts {
            if let Some(open) = known.get_mut(start) {
                *open -= 1;
            }
        }
    }
}

/// The starts at which this process has made a store, or opened one; and how many of those have puddles there that are
/// open now.
fn starts_of_process() -> MutexGuard<'static, BTreeMap<u64, usize>> {
    static STARTS: Mutex<BTreeMap<u64, usize>> = Mutex::new(BTreeMap::new());
    STARTS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Draws the start of a new store from 64 random bits: one at which this process has neither made nor opened a store,
/// while there are any; then one at which none is open.
///
/// A program that makes several stores can so have them open all at once, beside those that it found. Until what comes
/// with the start is dropped, no other new store gets it.
pub(crate) fn random_start(base: u64, size: u64, random: u64) -> (u64, OpenHere) {
    let steps = (size / START_ALIGNMENT).max(1);
    let start = |step: u64| base + (random.wrapping_add(step) % steps) * START_ALIGNMENT;
    let mut known = starts_of_process();
    let is_new = |start: &u64| !known.contains_key(start);
    let is_free = |start: &u64| known.get(start).is_none_or(|open| *open == 0);
    let find = |is_it: &dyn Fn(&u64) -> bool| (0..steps).map(start).find(is_it);
    let chosen = find(&is_new).or_else(|| find(&is_free));
    let chosen = chosen.unwrap_or_else(|| start(0));
    *known.entry(chosen).or_default() += 1;
    let starts = BTreeSet::from([chosen]);
    let further = match steps {
        1 => 0,
        _ => (random >> 32) % STARTS_APIECE * UNIT,
    };
    (chosen + further, OpenHere { starts })
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: u64 = 0x2000_0000_0000;

    #[test]
    fn placement_goes_upward_wraps_around_and_reuses_freed_ranges_last() {
        let mut space = Space::new(BASE, 8 * UNIT, BASE + 5 * UNIT);
        assert_eq!(
            space.place(UNIT, &Elsewhere::NOTHING),
            Some(BASE + 5 * UNIT)
        );
        assert_eq!(
            space.place(UNIT, &Elsewhere::NOTHING),
            Some(BASE + 6 * UNIT)
        );
        // One unit is left above: two units wrap around and never straddle the end.
        assert_eq!(space.place(2 * UNIT, &Elsewhere::NOTHING), Some(BASE));
        assert_eq!(
            space.place(2 * UNIT, &Elsewhere::NOTHING),
            Some(BASE + 2 * UNIT)
        );
        space.remove(BASE + 5 * UNIT);
        // The run at 4..6 is free now, and comes first after the last placement.
        assert_eq!(
            space.place(2 * UNIT, &Elsewhere::NOTHING),
            Some(BASE + 4 * UNIT)
        );
        assert_eq!(
            space.place(UNIT, &Elsewhere::NOTHING),
            Some(BASE + 7 * UNIT)
        );
        assert_eq!(space.place(UNIT, &Elsewhere::NOTHING), None);
        space.remove(BASE + 2 * UNIT);
        assert_eq!(space.place(3 * UNIT, &Elsewhere::NOTHING), None);
        assert_eq!(
            space.place(2 * UNIT, &Elsewhere::NOTHING),
            Some(BASE + 2 * UNIT)
        );
    }

    #[test]
    fn a_run_that_spans_the_cursor_is_found() {
        let mut space = Space::new(BASE, 4 * UNIT, BASE + 2 * UNIT);
        assert_eq!(space.place(4 * UNIT, &Elsewhere::NOTHING), Some(BASE));
        space.remove(BASE);
        assert_eq!(space.place(UNIT, &Elsewhere::NOTHING), Some(BASE));
        assert_eq!(
            space.place(3 * UNIT, &Elsewhere::NOTHING),
            Some(BASE + UNIT)
        );
    }

    #[test]
    fn ranges_that_overlap_or_leave_the_space_are_refused() {
        let mut space = Space::new(BASE, 8 * UNIT, BASE);
        space.insert(BASE + 2 * UNIT, 2 * UNIT).unwrap();
        for (address, length) in [
            (BASE + 3 * UNIT, UNIT),
            (BASE + UNIT, 2 * UNIT),
            (BASE, 8 * UNIT),
            (BASE + 2 * UNIT, 2 * UNIT),
            (BASE + 7 * UNIT, 2 * UNIT),
            (BASE - UNIT, UNIT),
            (BASE, 0),
            (BASE + UNIT, u64::MAX),
        ] {
            assert_eq!(space.insert(address, length), Err(Conflict), "{address:#x}");
        }
        space.insert(BASE, 2 * UNIT).unwrap();
        space.insert(BASE + 4 * UNIT, UNIT).unwrap();
    }

    #[test]
    fn placement_equals_a_plain_model_of_units() {
        // A model: an array of units. Random placements and removals, seeded.
        let units = 40;
        let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
        let mut random = move || {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            seed
        };
        let mut space = Space::new(BASE, units * UNIT, BASE + 11 * UNIT);
        let mut model = vec![false; units as usize];
        let mut held: Vec<(u64, u64)> = Vec::new();
        for _ in 0..5000 {
            if random() % 2 == 0 {
                let length = 1 + random() % 5;
                let placed = space.place(length * UNIT, &Elsewhere::NOTHING);
                let fits = model
                    .windows(length as usize)
                    .any(|run| run.iter().all(|taken| !taken));
                assert_eq!(placed.is_some(), fits);
                if let Some(address) = placed {
                    let first = ((address - BASE) / UNIT) as usize;
                    for unit in &mut model[first..first + length as usize] {
                        assert!(!*unit);
                        *unit = true;
                    }
                    held.push((address, length));
                }
            } else if !held.is_empty() {
                let (address, length) = held.swap_remove(random() as usize % held.len());
                space.remove(address);
                let first = ((address - BASE) / UNIT) as usize;
                model[first..first + length as usize].fill(false);
            }
        }
    }

    #[test]
    fn what_is_used_elsewhere_is_passed_over() {
        let range = |unit: u64, units: u64| AddressRange {
            address: BASE + unit * UNIT,
            size: units * UNIT,
        };
        // In any order, over each other, and outside of the space.
        let used = [
            range(6, 2),
            range(2, 1),
            range(3, 1),
            range(7, 4),
            range(90, 3),
        ];
        let elsewhere = Elsewhere::of(&used);
        assert_eq!(elsewhere.0.len(), 3);
        for unit in 0..100 {
            let is_used =
                (2..4).contains(&unit) || (6..11).contains(&unit) || (90..93).contains(&unit);
            assert_eq!(elsewhere.meets(BASE + unit * UNIT, UNIT), is_used, "{unit}");
        }
        let mut space = Space::new(BASE, 16 * UNIT, BASE + UNIT);
        space.insert(BASE + 12 * UNIT, UNIT).unwrap();
        let placed = [1, 2, 2, 1, 3, 1].map(|units| space.place(units * UNIT, &elsewhere));
        let at = |unit: u64| Some(BASE + unit * UNIT);
        assert_eq!(placed, [at(1), at(4), at(13), at(15), None, at(0)]);
        assert_eq!(space.place(UNIT, &elsewhere), at(11));
        assert_eq!(space.place(UNIT, &elsewhere), None);
        assert_eq!(space.place(UNIT, &Elsewhere::NOTHING), at(2));
    }

    #[test]
    fn whatever_a_client_says_ends_the_search() {
        let range = |address, size| AddressRange { address, size };
        for (used, expected) in [
            (range(0, u64::MAX), None),
            (range(BASE + 1, u64::MAX), None),
            (range(u64::MAX, u64::MAX), Some(BASE)),
            (range(BASE, 0), Some(BASE)),
            (range(BASE + 3, 5), Some(BASE + UNIT)),
        ] {
            let mut space = Space::new(BASE, 4 * UNIT, BASE);
            assert_eq!(space.place(UNIT, &Elsewhere::of(&[used])), expected);
        }
    }

    #[test]
    fn random_starts_are_inside_and_far_from_each_other_while_there_is_room() {
        let base = 0x6000_0000_0000;
        let starts: BTreeSet<u64> = [0, 1, 1023, 1024, u64::MAX]
            .into_iter()
            .chain(std::iter::repeat_n(7, 1019))
            .map(|random| random_start(base, 1 << 40, random).0)
            .collect();
        assert_eq!(starts.len(), 1024);
        let granules = starts.iter().map(|start| start / START_ALIGNMENT);
        assert_eq!(granules.collect::<BTreeSet<_>>().len(), 1024);
        for start in starts {
            assert_eq!(start % UNIT, 0);
            assert!(start % START_ALIGNMENT < START_ALIGNMENT / 2);
            assert!((base..base + (1 << 40)).contains(&start));
        }
        let far = random_start(base, 1 << 40, 7 + (300 << 32)).0;
        assert_eq!(far, base + 7 * START_ALIGNMENT + 44 * UNIT);
        assert_eq!(random_start(BASE, UNIT, 77 + (77 << 32)).0, BASE);
    }

    #[test]
    fn a_new_store_starts_where_no_opened_one_has_puddles() {
        let base = 0x5000_0000_0000;
        let start = |number: u64| base + number * START_ALIGNMENT;
        let mut opened = Space::new(base, 8 * START_ALIGNMENT, start(6) + UNIT);
        opened.insert(start(1) - UNIT, 2 * UNIT).unwrap();
        opened.insert(start(3), 2 * START_ALIGNMENT).unwrap();
        let here = opened.open_here();
        let draw = |random| random_start(base, 8 * START_ALIGNMENT, random).0;
        assert_eq!([0, 0, 0].map(draw), [2, 5, 7].map(start));
        // All were used. Where none is open there is room again.
        assert_eq!([0, 3, 6].map(draw), [2, 5, 7].map(start));
        drop(here);
        assert_eq!([0, 3, 6].map(draw), [0, 3, 6].map(start));
        // Two that are being made at the same time.
        let (first, being_made) = random_start(base, 8 * START_ALIGNMENT, 3);
        assert_eq!([first, draw(3)], [3, 4].map(start));
        drop(being_made);
        assert_eq!(draw(3), start(3));
    }
}
