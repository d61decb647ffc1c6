//! Which records count after a crash, and in which order.

use std::collections::{BTreeMap, BTreeSet};

use super::damage::{Damage, ReplayError};
use super::fresh::{Durable, HomeSays, is_home, overwritten};
use super::ring::{Record, Ring};
use crate::Uuid;
use crate::crc::Crc;
use crate::home::{Answer, Verdict};

/// What recovery has to replay.
#[derive(Clone, Debug, Default)]
pub struct Replay<'a> {
    /// Records up to this stamp are home.
    pub watermark: u64,
    /// The records of committed transactions above the watermark, in the order in which they are to be applied.
    pub records: Vec<Record<'a>>,
    /// How many transactions they make up.
    pub transactions: u64,
    /// The records of transactions that may have committed: what would tell cannot be read now. They, and what stands
    /// behind them in their logs without a proof of its own.
    pub undecided: Vec<Record<'a>>,
    /// What home was asked about now, and what it said. Once a part of the records is home it cannot be asked again.
    pub verdicts: Vec<Verdict>,
}

/// Reads all puddles of records of one client.
///
/// A record counts if its checksum fits, its stamp lies above the watermark, all parts of its transaction count, the
/// record before it in its log counts or is home, and what went home with it is there. One whose predecessor is missing
/// was never acknowledged, unless it says that the predecessor was durable: then that one is lost.
///
/// `contents` appends the bytes of home at an address to a checksum, so many of them. It is asked about the last
/// transaction of each log only, and not about those that `known` has a verdict on.
///
/// # Errors
/// Damage: the logs are to be quarantined. What `contents` says.
pub fn replay<'a, E>(
    rings: &[Ring<'a>],
    known: &[Verdict],
    contents: impl FnMut(u64, u64, &mut Crc) -> Result<Answer, E>,
) -> Result<Replay<'a>, ReplayError<E>> {
    let mut found = Vec::new();
    let mut rests = Vec::new();
    let mut watermark = 0;
    for ring in rings {
        watermark = watermark.max(ring.watermark());
        let stops = ring.read(|record| found.push(record));
        rests.extend(stops.into_iter().map(|rest| (ring, rest)));
    }
    // What a whole record says of the watermark was so when it was written, also where the record itself does not
    // count.
    let newest = |found: &[Record<'_>]| found.iter().map(|record| record.header.watermark).max();
    watermark = watermark.max(newest(&found).unwrap_or(0));
    for (ring, rest) in rests {
        ring.search(rest, watermark, |record| found.push(record));
    }
    watermark = watermark.max(newest(&found).unwrap_or(0));
    let mut live = BTreeMap::new();
    for record in found {
        let stamp = record.header.stamp;
        if stamp <= watermark {
            continue;
        }
        if let Some(other) = live.insert(stamp, record) {
            return Err(ReplayError::Damage(Damage::Twice {
                stamp,
                first: other.ring.uuid,
                second: record.ring.uuid,
            }));
        }
    }
    choose(watermark, &live, known, contents)
}

/// Leaves out what was never acknowledged.
fn choose<'a, E>(
    watermark: u64,
    live: &BTreeMap<u64, Record<'a>>,
    known: &[Verdict],
    mut contents: impl FnMut(u64, u64, &mut Crc) -> Result<Answer, E>,
) -> Result<Replay<'a>, ReplayError<E>> {
    let durable = Durable::of(live.values());
    let known: BTreeMap<(Uuid, u64), bool> = known
        .iter()
        .map(|known| ((known.puddle, known.stamp), known.counts))
        .collect();
    let verdict_on = |record: &Record<'_>| known.get(&(record.ring.uuid, record.header.stamp));
    let overwritten = overwritten(live.values(), |record| !durable.contains(record));
    let mut replay = Replay {
        watermark,
        ..Replay::default()
    };
    let mut counted = BTreeSet::new();
    let mut undecided = BTreeSet::new();
    let mut group: Vec<Record<'a>> = Vec::new();
    for record in live.values() {
        let header = &record.header;
        let is_next = |last: &Record<'_>| {
            last.header.stamp + 1 == header.stamp
                && last.header.part + 1 == header.part
                && last.header.more
        };
        let goes_on = group.last().is_some_and(is_next);
        if !goes_on {
            group.clear();
        }
        let begins = header.part == 0 || header.stamp - 1 == watermark;
        let has_previous = header.previous <= watermark
            || counted.contains(&header.previous)
            || undecided.contains(&header.previous);
        if !goes_on && !has_previous {
            if header.fenced {
                return Err(ReplayError::Damage(Damage::Lost {
                    stamp: header.stamp,
                    log: header.log,
                    ring: record.ring.uuid,
                    offset: record.offset,
                    missing: header.previous,
                }));
            }
            continue;
        }
        if goes_on || begins {
            group.push(*record);
        }
        if header.more || group.is_empty() {
            continue;
        }
        let verdict = verdict_on(record);
        let home = match (durable.contains(record), verdict) {
            (true, _) => HomeSays::Unasked,
            (false, Some(counts)) => HomeSays::Holds(*counts),
            (false, None) => is_home(&group, &overwritten, &mut contents)?,
        };
        // Behind one that may not have been acknowledged, nor may this one have been.
        let follows = group
            .iter()
            .any(|part| undecided.contains(&part.header.previous));
        if let HomeSays::Holds(counts) = home
            && verdict.is_none()
            && !(counts && follows)
        {
            replay.verdicts.push(Verdict {
                puddle: record.ring.uuid,
                stamp: header.stamp,
                counts,
            });
        }
        let stamps = group.iter().map(|part| part.header.stamp);
        match home {
            HomeSays::Holds(false) => group.clear(),
            HomeSays::Waits => {
                undecided.extend(stamps);
                replay.undecided.append(&mut group);
            }
            _ if follows => {
                undecided.extend(stamps);
                replay.undecided.append(&mut group);
            }
            _ => {
                counted.extend(stamps);
                replay.records.append(&mut group);
                replay.transactions += 1;
            }
        }
    }
    Ok(replay)
}
