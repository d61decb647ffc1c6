//! Bytes that went home with their record, before the one fence of both.
//!
//! A crash before that fence may leave the record whole and some of these bytes missing: then the record does not
//! count, as if it were torn itself. After the fence nothing is missing, but records behind it may have changed home
//! meanwhile, so that its bytes say nothing any more. Home is therefore asked only about records that nobody knows to
//! be durable. A record is known to be durable if
//!
//! - a later one of its log says so ([`RecordHeader::fenced`](super::RecordHeader::fenced)), or
//! - a later one of any log is about the same bytes: only who saw the transaction committed can know of them.
//!
//! Whatever changed these bytes at home is such a later record: home is changed by durable records alone, in the order
//! of stamps, and while the watermark is below this one's stamp they are all in the logs.

use std::collections::{BTreeMap, BTreeSet};

use super::damage::{Damage, ReplayError};
use super::entry::{Change, Entries};
use super::ring::Record;
use crate::Uuid;
use crate::crc::Crc;
use crate::home::Answer;

/// Up to which stamp the records of each log are known to be durable.
#[derive(Debug)]
pub(super) struct Durable(BTreeMap<u32, u64>);

impl Durable {
    /// What the headers of whole records say, whether they count or not.
    pub(super) fn of<'a, 'r: 'a>(records: impl Iterator<Item = &'a Record<'r>>) -> Self {
        let mut last = BTreeMap::new();
        for record in records.filter(|record| record.header.fenced) {
            let stamp: &mut u64 = last.entry(record.header.log).or_default();
            *stamp = record.header.previous.max(*stamp);
        }
        Self(last)
    }

    pub(super) fn contains(&self, record: &Record<'_>) -> bool {
        let last = self.0.get(&record.header.log);
        last.is_some_and(|last| record.header.stamp <= *last)
    }
}

/// The stamps of records with fresh bytes that a later record is about, too. Looks at all records once, however many of
/// them home would have to be asked about: those for which `is_asked` says so.
///
/// `records` stand in the order of their stamps.
pub(super) fn overwritten<'a, 'r: 'a>(
    records: impl Iterator<Item = &'a Record<'r>>,
    is_asked: impl Fn(&Record<'_>) -> bool,
) -> BTreeSet<u64> {
    // Fresh ranges that nothing later is about: where they end, and their stamp, by where they begin. They do not meet,
    // so each is left behind once.
    let mut fresh: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
    let mut overwritten = BTreeSet::new();
    for record in records {
        let is_asked = is_asked(record);
        if fresh.is_empty() && !is_asked {
            continue;
        }
        let mut own = BTreeMap::new();
        for change in changes(record) {
            let (start, len) = change.range();
            while let Some((at, stamp)) = last_that_meets(&fresh, start, start + len) {
                fresh.remove(&at);
                overwritten.insert(stamp);
            }
            let is_new = || last_that_meets(&own, start, start + len).is_none();
            if is_asked && matches!(change, Change::Fresh { .. }) && is_new() {
                own.insert(start, (start + len, record.header.stamp));
            }
        }
        fresh.extend(own);
    }
    overwritten
}

/// Start and stamp of the last of these ranges, which do not meet each other, that meets one from `start` to `end`.
fn last_that_meets(ranges: &BTreeMap<u64, (u64, u64)>, start: u64, end: u64) -> Option<(u64, u64)> {
    let (&at, &(other_end, stamp)) = ranges.range(..end).next_back()?;
    (other_end > start).then_some((at, stamp))
}

struct Range {
    start: u64,
    end: u64,
    checksum: u32,
}

/// The entries up to the first that cannot be read; recovery meets that where it replays the record.
fn changes<'a>(record: &Record<'a>) -> impl Iterator<Item = Change<'a>> + use<'a> {
    Entries::new(record.body).map_while(Result::ok)
}

/// Bytes that went home with a record and that no later one changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FreshRange {
    /// The address.
    pub target: u64,
    /// How many.
    pub len: u64,
    /// Their checksum.
    pub checksum: u32,
    /// The stamp of the record.
    pub stamp: u64,
    /// The puddle of the record.
    pub ring: Uuid,
}

/// The bytes that home must hold before and after `records`, which count and stand in the order of their stamps, are
/// replayed: what else lies there is not the home that they were written for.
pub fn fresh_at_home(records: &[Record<'_>]) -> Vec<FreshRange> {
    let mut changed = Ranges::default();
    let mut found = Vec::new();
    for record in records.iter().rev() {
        let mut own = Vec::new();
        for change in changes(record) {
            let (target, len) = change.range();
            if let Change::Fresh { checksum, .. } = change
                && !changed.touches(target, len)
            {
                found.push(FreshRange {
                    target,
                    len,
                    checksum,
                    stamp: record.header.stamp,
                    ring: record.ring.uuid,
                });
            }
            own.push((target, len));
        }
        for (target, len) in own {
            changed.insert(target, len);
        }
    }
    found
}

/// Ranges of addresses, by their start; they do not meet.
#[derive(Default)]
struct Ranges(BTreeMap<u64, u64>);

impl Ranges {
    fn touches(&self, start: u64, len: u64) -> bool {
        let before = self.0.range(..start + len).next_back();
        before.is_some_and(|(_, end)| *end > start)
    }

    fn insert(&mut self, mut start: u64, len: u64) {
        let mut end = start + len;
        while let Some((&other, &other_end)) = self.0.range(..=end).next_back()
            && other_end >= start
        {
            self.0.remove(&other);
            start = start.min(other);
            end = end.max(other_end);
        }
        self.0.insert(start, end);
    }
}

/// What home says of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HomeSays {
    /// Nothing had to be asked: nothing went home with it, or a later record shows that it did.
    Unasked,
    /// All of it is there, or some is not.
    Holds(bool),
    /// Some of it cannot be read now, and what can be read is there.
    Waits,
}

/// Whether home holds all that the parts of a transaction say, which is not known to be durable by its log.
/// `overwritten` are the records whose fresh bytes [later ones are about](overwritten()); `contents` appends a range of
/// home to a checksum.
pub(super) fn is_home<E>(
    parts: &[Record<'_>],
    overwritten: &BTreeSet<u64>,
    contents: &mut impl FnMut(u64, u64, &mut Crc) -> Result<Answer, E>,
) -> Result<HomeSays, ReplayError<E>> {
    let fresh = |change| match change {
        Change::Fresh {
            target: start,
            len,
            checksum,
        } => Some(Range {
            start,
            end: start + len,
            checksum,
        }),
        _ => None,
    };
    let mut ranges: Vec<Range> = parts.iter().flat_map(changes).filter_map(fresh).collect();
    if ranges.is_empty() {
        return Ok(HomeSays::Unasked);
    }
    ranges.sort_unstable_by_key(|range| range.start);
    let twice = ranges.windows(2).find(|pair| pair[0].end > pair[1].start);
    let is_touched = |change: &Change<'_>| {
        let (target, len) = change.range();
        let at = ranges.partition_point(|range| range.end <= target);
        let range = ranges.get(at);
        range.is_some_and(|range| range.start < target + len)
    };
    for part in parts {
        let own = changes(part)
            .find(|change| !matches!(change, Change::Fresh { .. }) && is_touched(change))
            .map(|change| change.range().0)
            .or(twice.map(|pair| pair[1].start));
        if let Some(target) = own {
            return Err(ReplayError::Damage(Damage::NotFresh {
                stamp: part.header.stamp,
                ring: part.ring.uuid,
                offset: part.offset,
                target,
            }));
        }
    }
    let mut stamps = parts.iter().map(|part| part.header.stamp);
    if stamps.any(|stamp| overwritten.contains(&stamp)) {
        return Ok(HomeSays::Unasked);
    }
    let mut waits = false;
    for range in &ranges {
        let (target, len) = (range.start, range.end - range.start);
        let mut crc = Crc::new();
        let answer = contents(target, len, &mut crc).map_err(|reason| ReplayError::Contents {
            stamp: parts[0].header.stamp,
            ring: parts[0].ring.uuid,
            target,
            len,
            reason,
        })?;
        match answer {
            Answer::Seen if crc.value() != range.checksum => return Ok(HomeSays::Holds(false)),
            Answer::Seen | Answer::GivenUp => {}
            Answer::Waits => waits = true,
        }
    }
    Ok(match waits {
        true => HomeSays::Waits,
        false => HomeSays::Holds(true),
    })
}
