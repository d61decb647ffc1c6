//! Records that are there only if bytes are home that went there with them, before the one fence of both.
//!
//! The crash before that fence may leave the record whole and these bytes torn. The one long after it finds bytes that
//! others have changed.

mod common;

use std::collections::{BTreeMap, BTreeSet};

use common::ring::{FIRST, Puddle, start};
use durum_format::crc::Crc;
use durum_format::home::{Answer, Verdict};
use durum_format::record::{
    Change, Damage, Entries, FreshRange, HEADER_WORDS, Record, RecordHeader, Replay, ReplayError,
    Ring, RingSalt, fresh_at_home, push_copy, push_fresh, replay, watermark_offset,
    watermark_words,
};
use durum_format::{DEFAULT_BASE, UNIT};

const SLOT: usize = 2048;
const SLOTS: usize = 12;

/// Home, and where it was asked about.
struct Home {
    bytes: Vec<u8>,
    asked: Vec<usize>,
    /// Slots of files that cannot be read, or that were given up.
    elsewhere: BTreeMap<usize, Answer>,
}

fn stamps(records: &[Record<'_>]) -> Vec<u64> {
    records.iter().map(|record| record.header.stamp).collect()
}

fn address(slot: usize) -> u64 {
    DEFAULT_BASE + (slot * SLOT) as u64
}

fn pattern(tag: u64) -> Vec<u8> {
    let byte = |at| (tag.wrapping_mul(0x9e37_79b9) >> (at % 23)) as u8 ^ at as u8;
    (0..SLOT as u64).map(byte).collect()
}

impl Home {
    fn new() -> Self {
        Self {
            bytes: vec![0; SLOT * SLOTS],
            asked: Vec::new(),
            elsewhere: BTreeMap::new(),
        }
    }

    fn slot(&mut self, slot: usize) -> &mut [u8] {
        &mut self.bytes[slot * SLOT..][..SLOT]
    }

    /// The stamps that are to be replayed.
    fn read(&mut self, puddles: &[Puddle]) -> Result<Vec<u64>, ReplayError<String>> {
        let rings: Vec<Ring<'_>> = puddles.iter().map(Puddle::ring).collect();
        Ok(stamps(&self.replay(&rings, &[])?.records))
    }

    fn replay<'a>(
        &mut self,
        rings: &[Ring<'a>],
        known: &[Verdict],
    ) -> Result<Replay<'a>, ReplayError<String>> {
        replay(rings, known, |target, len, crc: &mut Crc| {
            let at = (target - DEFAULT_BASE) as usize;
            self.asked.push(at / SLOT);
            if let Some(answer) = self.elsewhere.get(&(at / SLOT)) {
                return Ok(*answer);
            }
            let bytes = self.bytes.get(at..at + len as usize);
            crc.update(bytes.ok_or("nothing is there")?);
            Ok(Answer::Seen)
        })
    }
}

/// What a record holds: fresh slots and changes of others.
fn record(fresh: &[(usize, u64)], changes: &[(usize, u64)]) -> Vec<u64> {
    let mut words = vec![0; HEADER_WORDS];
    for (slot, tag) in fresh {
        push_fresh(&mut words, address(*slot), &pattern(*tag));
    }
    for (slot, tag) in changes {
        push_copy(&mut words, address(*slot), &pattern(*tag));
    }
    if words.len() == HEADER_WORDS {
        push_copy(&mut words, address(SLOTS), &[1]);
    }
    words
}

/// Where the next record goes.
fn put(puddle: &mut Puddle, offset: u64, header: RecordHeader, mut words: Vec<u64>) -> u64 {
    header.seal(&mut words, &RingSalt::new(puddle.header.uuid), offset);
    puddle.put(offset, &words);
    offset + (words.len() as u64 * 8).next_multiple_of(64)
}

#[test]
fn a_record_is_not_there_where_its_bytes_are_not() {
    let mut puddle = [Puddle::new(1)];
    let at = put(&mut puddle[0], start(), FIRST, record(&[], &[]));
    let second = RecordHeader {
        stamp: 2,
        previous: 1,
        ..FIRST
    };
    put(
        &mut puddle[0],
        at,
        second,
        record(&[(0, 5), (3, 6)], &[(1, 7)]),
    );
    let mut home = Home::new();
    assert_eq!(home.read(&puddle).unwrap(), [1]);
    home.slot(0).copy_from_slice(&pattern(5));
    home.slot(3).copy_from_slice(&pattern(6));
    assert_eq!(home.read(&puddle).unwrap(), [1, 2]);
    for at in [0, 8, SLOT - 1] {
        home.slot(3)[at] ^= 1;
        assert_eq!(home.read(&puddle).unwrap(), [1], "byte {at}");
        home.slot(3)[at] ^= 1;
    }
}

#[test]
fn what_is_known_to_be_durable_does_not_depend_on_home_any_more() {
    let begin = || {
        let mut puddles = [Puddle::new(1), Puddle::new(2)];
        let at = put(&mut puddles[0], start(), FIRST, record(&[(0, 5)], &[]));
        (puddles, at)
    };
    let later = |stamp, previous, log, fenced| RecordHeader {
        stamp,
        previous,
        log,
        fenced,
        ..FIRST
    };
    let mut home = Home::new();
    // The log goes on, and says that the fence was passed.
    let (mut puddles, at) = begin();
    put(
        &mut puddles[0],
        at,
        later(2, 1, 0, true),
        record(&[], &[(1, 1)]),
    );
    assert_eq!(home.read(&puddles).unwrap(), [1, 2]);
    // Or says nothing of it: both are dropped.
    let (mut puddles, at) = begin();
    put(
        &mut puddles[0],
        at,
        later(2, 1, 0, false),
        record(&[], &[(1, 1)]),
    );
    assert_eq!(home.read(&puddles).unwrap(), [0; 0]);
    // Further back in the log.
    let (mut puddles, at) = begin();
    let at = put(
        &mut puddles[0],
        at,
        later(2, 1, 0, false),
        record(&[], &[(1, 1)]),
    );
    put(
        &mut puddles[0],
        at,
        later(3, 2, 0, true),
        record(&[], &[(1, 1)]),
    );
    assert_eq!(home.read(&puddles).unwrap(), [1, 2, 3]);
    // Another log has changed a byte of it; of its neighbour.
    for (byte, expected) in [(SLOT - 1, vec![1, 2]), (SLOT, vec![2])] {
        let (mut puddles, _) = begin();
        let mut words = record(&[], &[]);
        push_copy(&mut words, DEFAULT_BASE + byte as u64, &[9]);
        put(&mut puddles[1], start(), later(2, 0, 1, true), words);
        assert_eq!(home.read(&puddles).unwrap(), expected, "byte {byte}");
    }
    // The watermark covers it.
    let (mut puddles, _) = begin();
    let offset = watermark_offset(UNIT, 0);
    let salt = RingSalt::new(puddles[0].header.uuid);
    puddles[0].put(offset, &watermark_words(1, &salt, offset));
    home.asked.clear();
    assert_eq!(home.read(&puddles).unwrap(), [0; 0]);
    assert_eq!(home.asked, [0; 0], "nobody reads what does not matter");
}

#[test]
fn all_parts_of_a_transaction_depend_on_the_bytes_of_each() {
    for fresh_in in 0..3 {
        let mut puddle = [Puddle::new(1)];
        let mut at = start();
        for part in 0..3u64 {
            let header = RecordHeader {
                stamp: 1 + part,
                previous: part,
                part: part as u32,
                more: part < 2,
                fenced: part == 0,
                ..FIRST
            };
            let fresh: &[_] = if part == fresh_in { &[(2, 8)] } else { &[] };
            at = put(
                &mut puddle[0],
                at,
                header,
                record(fresh, &[(4 + part as usize, 1)]),
            );
        }
        let mut home = Home::new();
        assert_eq!(home.read(&puddle).unwrap(), [0; 0]);
        home.slot(2).copy_from_slice(&pattern(8));
        assert_eq!(home.read(&puddle).unwrap(), [1, 2, 3]);
    }
}

#[test]
fn what_cannot_be_read_or_is_said_twice_is_told() {
    let mut puddle = [Puddle::new(1)];
    put(&mut puddle[0], start(), FIRST, record(&[(SLOTS, 1)], &[]));
    let error = Home::new().read(&puddle).unwrap_err();
    assert!(
        matches!(&error, ReplayError::Contents { stamp: 1, reason, .. } if reason == "nothing is there")
    );
    for words in [
        record(&[(0, 1), (0, 1)], &[]),
        record(&[(0, 1), (1, 1)], &[(1, 2)]),
    ] {
        let mut puddle = [Puddle::new(1)];
        put(&mut puddle[0], start(), FIRST, words);
        let mut home = Home::new();
        home.slot(0).copy_from_slice(&pattern(1));
        home.slot(1).copy_from_slice(&pattern(1));
        let error = home.read(&puddle).unwrap_err();
        let damage = matches!(error, ReplayError::Damage(Damage::NotFresh { .. }));
        assert!(damage, "{error}");
    }
}

struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (self.0 >> 33) as usize % limit
    }
}

/// A transaction whose record is written, by stamp of its first part.
#[derive(Clone)]
struct Transaction {
    stamps: Vec<u64>,
    places: Vec<u64>,
    bodies: Vec<Vec<u64>>,
    fresh: Vec<(usize, u64)>,
    changes: Vec<(usize, u64)>,
}

#[derive(Default)]
struct Log {
    at: u64,
    previous: u64,
    under_way: Option<Transaction>,
}

/// Three writers, home updates and a watermark as an engine makes them, up to a crash; `seed` decides everything.
fn a_life_and_its_crash(seed: u64) {
    let mut random = Random(seed);
    let mut puddles: Vec<Puddle> = (1..4).map(Puddle::new).collect();
    let mut logs: Vec<Log> = (0..3).map(|_| Log::default()).collect();
    for log in &mut logs {
        log.at = start();
    }
    let mut home = Home::new();
    let (mut drawn, mut applied, mut watermark, mut slots_written) = (0, 0, 0, 0);
    let mut durable: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
    // What each slot holds for those who work with it, and the last stamp about it.
    let mut memory: BTreeMap<usize, u64> = BTreeMap::new();
    let mut last = [0; SLOTS];
    for tag in 1..random.below(40) as u64 {
        match random.below(4) {
            0 if random.below(3) == 0 => {
                watermark = applied;
                let offset = watermark_offset(UNIT, slots_written);
                let salt = RingSalt::new(puddles[0].header.uuid);
                puddles[0].put(offset, &watermark_words(watermark, &salt, offset));
                slots_written += 1;
            }
            0 => {
                while let Some(body) = durable.get(&(applied + 1))
                    && random.below(4) > 0
                {
                    applied += 1;
                    apply(body, &mut home);
                }
            }
            _ => {
                let number = random.below(3);
                let log = &mut logs[number];
                if let Some(done) = log.under_way.take() {
                    durable.extend(done.stamps.iter().copied().zip(done.bodies));
                    memory.extend(done.fresh);
                    memory.extend(done.changes);
                    continue;
                }
                let under_way: BTreeSet<usize> = logs
                    .iter()
                    .filter_map(|log| log.under_way.as_ref())
                    .flat_map(|other| other.fresh.iter().chain(&other.changes))
                    .map(|(slot, _)| *slot)
                    .collect();
                let (mut fresh, mut changes) = (Vec::new(), Vec::new());
                for slot in (0..SLOTS).filter(|slot| !under_way.contains(slot)) {
                    match random.below(4) {
                        // Freed and taken again, or never used.
                        0 if last[slot] <= watermark => fresh.push((slot, tag)),
                        1 if memory.contains_key(&slot) => changes.push((slot, tag)),
                        _ => {}
                    }
                }
                let parts = 1 + random.below(3);
                let log = &mut logs[number];
                let mut one = Transaction {
                    stamps: Vec::new(),
                    places: Vec::new(),
                    bodies: Vec::new(),
                    fresh,
                    changes,
                };
                for part in 0..parts {
                    let of_part = |all: &[(usize, u64)]| -> Vec<(usize, u64)> {
                        all.iter().skip(part).step_by(parts).copied().collect()
                    };
                    let words = record(&of_part(&one.fresh), &of_part(&one.changes));
                    drawn += 1;
                    let header = RecordHeader {
                        stamp: drawn,
                        watermark,
                        previous: log.previous,
                        log: number as u32,
                        part: part as u32,
                        more: part + 1 < parts,
                        fenced: part == 0,
                    };
                    one.stamps.push(drawn);
                    one.places.push(log.at);
                    one.bodies.push(words[HEADER_WORDS..].to_vec());
                    log.previous = drawn;
                    log.at = put(&mut puddles[number], log.at, header, words);
                }
                for (slot, _) in one.fresh.iter().chain(&one.changes) {
                    last[*slot] = drawn;
                }
                for (slot, tag) in &one.fresh {
                    home.slot(*slot).copy_from_slice(&pattern(*tag));
                    memory.remove(slot);
                }
                log.under_way = Some(one);
            }
        }
    }
    // The crash: of what was not fenced any part may be missing.
    let mut expected: BTreeSet<u64> = durable.keys().copied().collect();
    for (log, puddle) in logs.iter().zip(&mut puddles) {
        let Some(one) = &log.under_way else { continue };
        let mut whole = true;
        if random.below(3) == 0 {
            let place = one.places[random.below(one.places.len())];
            puddle.put(place + 8 * random.below(5) as u64, &[0x5555 << 40]);
            whole = false;
        }
        for (slot, tag) in &one.fresh {
            if random.below(6) == 0 {
                home.slot(*slot)[random.below(SLOT)] ^= 1;
                whole = false;
                memory.remove(slot);
            } else {
                memory.insert(*slot, *tag);
            }
        }
        if whole {
            expected.extend(&one.stamps);
            memory.extend(one.changes.iter().copied());
            for (stamp, body) in one.stamps.iter().zip(&one.bodies) {
                durable.insert(*stamp, body.clone());
            }
        } else {
            for (slot, _) in &one.fresh {
                memory.remove(slot);
            }
        }
    }
    expected.retain(|stamp| *stamp > watermark);
    let found = home.read(&puddles).unwrap();
    assert!(
        found.iter().eq(&expected),
        "seed {seed}: {found:?}, not {expected:?}"
    );
    for stamp in found {
        apply(&durable[&stamp], &mut home);
    }
    for (slot, tag) in memory {
        assert!(
            home.slot(slot) == pattern(tag),
            "seed {seed}: slot {slot} is not what {tag} left"
        );
    }
}

fn apply(body: &[u64], home: &mut Home) {
    for change in Entries::new(body) {
        if let Change::Copy { target, data } = change.unwrap()
            && target < address(SLOTS)
        {
            let at = (target - DEFAULT_BASE) as usize;
            home.bytes[at..at + data.len()].copy_from_slice(data);
        }
    }
}

#[test]
fn whatever_crashes_the_committed_ones_are_found_and_what_they_left() {
    for seed in 0..4000 {
        a_life_and_its_crash(seed);
    }
}

/// Three transactions: one of two slots, one behind it in its log that says nothing of a fence, and one of another log.
fn waiting() -> [Puddle; 2] {
    let mut puddles = [Puddle::new(1), Puddle::new(2)];
    let fresh = record(&[(0, 5), (3, 6)], &[(1, 7)]);
    let at = put(&mut puddles[0], start(), FIRST, fresh);
    let behind = RecordHeader {
        stamp: 2,
        previous: 1,
        fenced: false,
        ..FIRST
    };
    put(&mut puddles[0], at, behind, record(&[], &[(1, 8)]));
    let other = RecordHeader {
        stamp: 3,
        previous: 0,
        log: 1,
        ..FIRST
    };
    let words = record(&[(5, 9)], &[(6, 9)]);
    put(&mut puddles[1], start(), other, words);
    puddles
}

#[test]
fn what_depends_on_bytes_that_cannot_be_read_waits_with_all_that_stands_behind_it() {
    let puddles = waiting();
    let rings: Vec<Ring<'_>> = puddles.iter().map(Puddle::ring).collect();
    let mut home = Home::new();
    home.slot(0).copy_from_slice(&pattern(5));
    home.slot(3).copy_from_slice(&pattern(6));
    home.slot(5).copy_from_slice(&pattern(9));
    home.elsewhere.insert(3, Answer::Waits);
    let found = home.replay(&rings, &[]).unwrap();
    assert_eq!(stamps(&found.records), [3]);
    assert_eq!(stamps(&found.undecided), [1, 2]);
    let other = Verdict {
        puddle: puddles[1].header.uuid,
        stamp: 3,
        counts: true,
    };
    assert_eq!(found.verdicts, [other]);

    // Where what can be read is not there, nothing waits: it was never acknowledged.
    home.slot(0)[7] ^= 1;
    let found = home.replay(&rings, &[]).unwrap();
    assert_eq!(stamps(&found.records), [3]);
    assert!(found.undecided.is_empty());
    home.slot(0)[7] ^= 1;

    // The verdict of then stands, whatever home says now.
    home.slot(5).fill(0);
    let found = home.replay(&rings, &[other]).unwrap();
    assert_eq!(stamps(&found.records), [3]);
    assert!(found.verdicts.is_empty(), "nobody was asked");
    home.elsewhere.clear();
    let found = home.replay(&rings, &[other]).unwrap();
    assert_eq!(stamps(&found.records), [1, 2, 3]);
    let first = Verdict {
        puddle: puddles[0].header.uuid,
        stamp: 1,
        counts: false,
    };
    let found = home.replay(&rings, &[other, first]).unwrap();
    assert_eq!(stamps(&found.records), [3]);

    // What was given up does not speak against the rest.
    home.elsewhere.insert(3, Answer::GivenUp);
    let found = home.replay(&rings, &[other]).unwrap();
    assert_eq!(stamps(&found.records), [1, 2, 3]);
}

#[test]
fn what_no_later_record_changes_shows_whether_home_is_that_of_then() {
    let mut puddle = [Puddle::new(1)];
    let fresh = record(&[(0, 5), (3, 6), (8, 1)], &[(1, 7)]);
    let at = put(&mut puddle[0], start(), FIRST, fresh);
    let second = RecordHeader {
        stamp: 2,
        previous: 1,
        fenced: true,
        ..FIRST
    };
    let mut words = record(&[(8, 2)], &[(1, 8)]);
    push_copy(&mut words, address(3) + 7, &[1]);
    put(&mut puddle[0], at, second, words);
    let mut home = Home::new();
    home.slot(8).copy_from_slice(&pattern(2));
    let rings: Vec<Ring<'_>> = puddle.iter().map(Puddle::ring).collect();
    let found = home.replay(&rings, &[]).unwrap();
    assert_eq!(stamps(&found.records), [1, 2]);
    let ranges = fresh_at_home(&found.records);
    let slots: Vec<(u64, u64)> = ranges
        .iter()
        .map(|range: &FreshRange| (range.target, range.stamp))
        .collect();
    assert_eq!(slots, [(address(8), 2), (address(0), 1)]);
    assert_eq!(ranges[1].len, SLOT as u64);
}
