//! Records of several logs, written as an engine writes them, torn as a crash tears them, and read back.

mod common;

use common::ring::{FIRST, Puddle, start};
use durum_format::crc::Crc;
use durum_format::puddle::heap_offset;
use durum_format::record::{
    Change, Damage, Entries, HEADER_WORDS, Operation, RING_HEAD_SIZE, RING_REACH_OFFSET,
    RecordHeader, Replay, ReplayError, Ring, RingSalt, push_copy, push_words, ring_reach, segments,
    watermark_offset, watermark_words,
};
use durum_format::{UNIT, Uuid};

const LINE: u64 = 0x2000_0000_2000;

/// A record that stores its stamp in a word; where the next one goes.
fn write(puddle: &mut Puddle, offset: u64, header: RecordHeader) -> u64 {
    let mut words = vec![0; HEADER_WORDS];
    push_words(&mut words, Operation::Store, LINE, 1, &[header.stamp; 8]);
    header.seal(&mut words, &RingSalt::new(puddle.header.uuid), offset);
    puddle.put(offset, &words);
    offset + 64
}

/// Nothing here went home with its record.
fn replay<'a>(rings: &[Ring<'a>]) -> Result<Replay<'a>, Damage> {
    let nobody_asks = |_, _, _: &mut Crc| Err("asked");
    durum_format::record::replay(rings, &[], nobody_asks).map_err(|error| match error {
        ReplayError::Damage(damage) => damage,
        error @ ReplayError::Contents { .. } => panic!("{error}"),
    })
}

fn read(puddles: &[Puddle]) -> Result<Vec<u64>, Damage> {
    let rings: Vec<Ring<'_>> = puddles.iter().map(Puddle::ring).collect();
    let found = replay(&rings)?;
    let stamps = found.records.iter().map(|record| {
        let change = Entries::new(record.body).next();
        let Some(Ok(Change::Words { words, .. })) = change else {
            panic!("{change:?}");
        };
        assert_eq!(words, &[record.header.stamp][..]);
        record.header.stamp
    });
    Ok(stamps.collect())
}

/// Two logs that take turns; where each record lies.
fn two_logs(count: u64) -> (Vec<Puddle>, Vec<(usize, u64)>) {
    let mut puddles = vec![Puddle::new(1), Puddle::new(2)];
    let mut at = [start(); 2];
    let mut places = Vec::new();
    for stamp in 1..=count {
        let log = (stamp % 2) as usize;
        places.push((log, at[log]));
        let header = RecordHeader {
            stamp,
            previous: stamp.saturating_sub(2),
            log: log as u32,
            ..FIRST
        };
        at[log] = write(&mut puddles[log], at[log], header);
    }
    (puddles, places)
}

#[test]
fn records_of_all_logs_come_in_the_order_of_their_stamps() {
    let (puddles, _) = two_logs(9);
    assert_eq!(read(&puddles).unwrap(), (1..=9).collect::<Vec<_>>());
    assert!(read(&[Puddle::new(1)]).unwrap().is_empty());
    assert!(read(&[]).unwrap().is_empty());
}

#[test]
fn the_last_record_of_each_log_may_be_torn() {
    let (mut puddles, places) = two_logs(9);
    let (log, offset) = places[7];
    puddles[log].put(offset + 40, &[7]);
    assert_eq!(read(&puddles).unwrap(), [1, 2, 3, 4, 5, 6, 7, 9]);
    let (log, offset) = places[8];
    puddles[log].put(offset, &[0]);
    assert_eq!(read(&puddles).unwrap(), [1, 2, 3, 4, 5, 6, 7]);
}

/// Four records in two logs, each there or not, fenced or not, below the watermark or above, in every combination:
/// 20,480.
#[test]
fn every_small_set_of_records_is_read_as_the_rule_says() {
    const RECORDS: usize = 4;
    let bit = |mask: usize, record: usize| mask >> record & 1 == 1;
    let mut puddles = vec![Puddle::new(1), Puddle::new(2)];
    let salt = RingSalt::new(puddles[0].header.uuid);
    let slot = watermark_offset(UNIT, 0);
    let mut damaged = 0;
    for logs in 0..1 << RECORDS {
        // The record before in the same log; the stamps are 1 to 4.
        let previous: [usize; RECORDS] = std::array::from_fn(|record| {
            let before = (0..record)
                .rev()
                .find(|before| bit(logs, *before) == bit(logs, record));
            before.map_or(0, |before| before + 1)
        });
        for (there, fenced) in
            (0..1 << RECORDS).flat_map(|there| (0..1 << RECORDS).map(move |fenced| (there, fenced)))
        {
            for watermark in 0..=RECORDS {
                let mut at = [start(); 2];
                for (record, previous) in previous.iter().enumerate() {
                    let log = usize::from(bit(logs, record));
                    let header = RecordHeader {
                        stamp: record as u64 + 1,
                        previous: *previous as u64,
                        log: log as u32,
                        fenced: bit(fenced, record),
                        ..FIRST
                    };
                    let offset = at[log];
                    at[log] = write(&mut puddles[log], offset, header);
                    if !bit(there, record) {
                        puddles[log].put(offset + 40, &[99]);
                    }
                }
                for (log, end) in at.iter().enumerate() {
                    // What another case has left.
                    puddles[log].put(*end, &[0; 8 * RECORDS]);
                }
                puddles[0].put(slot, &watermark_words(watermark as u64, &salt, slot));

                // Durable without being home: all of the log up to it is there. Who was fenced saw that of the one
                // before.
                let is_home = |stamp: usize| stamp <= watermark;
                let chain = |stamp: usize| {
                    let all = std::iter::successors(Some(stamp), |stamp| {
                        previous.get(stamp.checked_sub(1)?).copied()
                    });
                    all.take_while(|stamp| !is_home(*stamp))
                };
                let counts = |stamp: usize| chain(stamp).all(|stamp| bit(there, stamp - 1));
                let live = || (1..=RECORDS).filter(|stamp| !is_home(*stamp));
                let is_damaged = live()
                    .any(|stamp| bit(there, stamp - 1) && bit(fenced, stamp - 1) && !counts(stamp));
                let case = format!("{logs:b} {there:b} {fenced:b} {watermark}");
                match read(&puddles) {
                    Ok(found) => {
                        assert!(!is_damaged, "{case}");
                        let expected = live().filter(|stamp| counts(*stamp));
                        assert!(
                            found.into_iter().eq(expected.map(|stamp| stamp as u64)),
                            "{case}"
                        );
                    }
                    Err(error) => {
                        assert!(is_damaged, "{case}: {error}");
                        damaged += 1;
                    }
                }
            }
        }
    }
    assert!(damaged > 1000);
}

#[test]
fn a_durable_record_that_is_gone_is_damage() {
    for gone in 0..7 {
        let (mut puddles, places) = two_logs(9);
        let (log, offset) = places[gone];
        puddles[log].put(offset + 40, &[99]);
        let Err(Damage::Lost { stamp, missing, .. }) = read(&puddles) else {
            panic!("record {} was lost and nobody noticed", gone + 1);
        };
        assert_eq!((missing, stamp), (gone as u64 + 1, gone as u64 + 3));
    }
}

#[test]
fn what_the_watermark_covers_is_neither_replayed_nor_missed() {
    // In a record, and in a slot.
    for in_slot in [false, true] {
        let (mut puddles, places) = two_logs(9);
        if in_slot {
            let salt = RingSalt::new(puddles[1].header.uuid);
            for (slot, watermark) in [(0, 4), (1, 6)] {
                let offset = watermark_offset(UNIT, slot);
                puddles[1].put(offset, &watermark_words(watermark, &salt, offset));
            }
        } else {
            let (log, offset) = places[8];
            let header = RecordHeader {
                stamp: 9,
                watermark: 6,
                previous: 7,
                log: log as u32,
                ..FIRST
            };
            write(&mut puddles[log], offset, header);
        }
        // Overwritten by whatever came later.
        for (log, offset) in [places[1], places[2]] {
            puddles[log].put(offset, &[!0; 8]);
        }
        assert_eq!(read(&puddles).unwrap(), [7, 8, 9]);
        // A slot that is torn does not count, the other one does.
        if in_slot {
            let offset = watermark_offset(UNIT, 1);
            puddles[1].put(offset, &[8]);
            assert_eq!(read(&puddles).unwrap(), [5, 6, 7, 8, 9]);
        }
    }
}

#[test]
fn a_transaction_of_several_parts_counts_whole_or_not_at_all() {
    let build = |torn: Option<usize>, last: bool| {
        let mut puddle = Puddle::new(1);
        let mut at = write(&mut puddle, start(), FIRST);
        for part in 0..4u64 {
            let header = RecordHeader {
                stamp: 2 + part,
                previous: 1 + part,
                part: part as u32,
                more: part < 3,
                fenced: part == 0,
                ..FIRST
            };
            let next = write(&mut puddle, at, header);
            if torn == Some(part as usize) {
                puddle.put(at + 32, &[0, 0]);
            }
            at = next;
        }
        if last {
            let header = RecordHeader {
                stamp: 6,
                previous: 5,
                ..FIRST
            };
            write(&mut puddle, at, header);
        }
        read(&[puddle])
    };
    assert_eq!(build(None, false).unwrap(), [1, 2, 3, 4, 5]);
    assert_eq!(build(None, true).unwrap(), [1, 2, 3, 4, 5, 6]);
    for torn in 0..4 {
        assert_eq!(build(Some(torn), false).unwrap(), [1]);
        assert!(matches!(
            build(Some(torn), true),
            Err(Damage::Lost { stamp: 6, .. })
        ));
    }
}

#[test]
fn records_that_share_a_sync_end_at_the_first_that_is_torn() {
    for torn in 0..4 {
        let mut puddle = Puddle::new(1);
        let mut at = start();
        for stamp in 1..=4 {
            let header = RecordHeader {
                stamp,
                previous: stamp - 1,
                fenced: stamp == 1,
                ..FIRST
            };
            let next = write(&mut puddle, at, header);
            if torn + 1 == stamp {
                puddle.put(at + 32, &[0]);
            }
            at = next;
        }
        assert_eq!(read(&[puddle]).unwrap(), (1..=torn).collect::<Vec<_>>());
    }
}

#[test]
fn the_same_stamp_twice_is_damage() {
    let (mut puddles, _) = two_logs(4);
    write(
        &mut puddles[0],
        start() + 4096,
        RecordHeader { stamp: 3, ..FIRST },
    );
    assert!(matches!(
        read(&puddles),
        Err(Damage::Twice { stamp: 3, .. })
    ));
}

/// Up to the very end of a segment, and in the next one.
#[test]
fn records_of_any_size_come_back() {
    let salt = RingSalt::new(Uuid([1; 16]));
    for words in [1, 8, 60, 100, 1_000, 30_000] {
        let mut puddle = Puddle::new(1);
        let all: Vec<_> = segments(UNIT).collect();
        let mut stamps = 0;
        for segment in &all[..3] {
            let mut at = segment.start;
            while at + (HEADER_WORDS + 2 + words) as u64 * 8 <= segment.end {
                stamps += 1;
                let mut record = vec![0; HEADER_WORDS];
                let data: Vec<u8> = (0..words * 8).map(|byte| (byte ^ stamps) as u8).collect();
                push_copy(&mut record, LINE, &data);
                let header = RecordHeader {
                    stamp: stamps as u64,
                    previous: stamps as u64 - 1,
                    ..FIRST
                };
                header.seal(&mut record, &salt, at);
                puddle.put(at, &record);
                at += (record.len() as u64 * 8).next_multiple_of(64);
            }
        }
        let ring = [puddle.ring()];
        let found = replay(&ring).unwrap();
        assert_eq!(found.records.len(), stamps, "{words} words");
    }
}

#[test]
fn no_record_is_read_behind_the_reach_of_a_puddle() {
    let mut puddle = Puddle::new(1);
    let second = segments(UNIT).nth(1).unwrap();
    write(&mut puddle, start(), FIRST);
    let stamp = 2;
    write(&mut puddle, second.start, RecordHeader { stamp, ..FIRST });
    let mut sizes = Vec::new();
    (puddle.ring())
        .read(|record| sizes.push(HEADER_WORDS as u64 * 8 + size_of_val(record.body) as u64));
    let size = sizes[0].next_multiple_of(64);
    let stamp = 3;
    write(
        &mut puddle,
        second.start + size,
        RecordHeader { stamp, ..FIRST },
    );
    let mut read_with = |word: u64| {
        puddle.put(heap_offset(UNIT) + RING_REACH_OFFSET, &[word.to_le()]);
        let ring = puddle.ring();
        let mut stamps = Vec::new();
        ring.read(|record| stamps.push(record.header.stamp));
        stamps
    };
    assert_eq!(read_with(0), [1, 2, 3], "nothing is said");
    let up_to = |end| ring_reach(UNIT, end).to_u64();
    assert_eq!(read_with(up_to(second.end)), [1, 2, 3]);
    assert_eq!(read_with(up_to(second.start + 2 * size)), [1, 2, 3]);
    // It ends between the two, and in the last one.
    assert_eq!(read_with(up_to(second.start + size)), [1, 2]);
    if size > 64 {
        assert_eq!(read_with(up_to(second.start + 2 * size - 64)), [1, 2]);
    }
    assert_eq!(read_with(up_to(second.start)), [1]);
    assert_eq!(read_with(up_to(0)), [0; 0]);
}

#[test]
fn the_reach_of_a_puddle_says_how_much_to_read() {
    let mut head = vec![0; RING_HEAD_SIZE as usize];
    assert_eq!(Ring::length_in(&head, UNIT), Ok(None), "nothing is said");
    let mut length = |word: u64| {
        head[RING_REACH_OFFSET as usize..][..8].copy_from_slice(&word.to_le_bytes());
        Ring::length_in(&head, UNIT)
    };
    let all = UNIT - heap_offset(UNIT);
    assert_eq!(
        length(ring_reach(UNIT, 0).to_u64()),
        Ok(Some(RING_HEAD_SIZE))
    );
    assert_eq!(length(ring_reach(UNIT, UNIT).to_u64()), Ok(Some(all)));
    assert!(length(ring_reach(UNIT, UNIT + 64).to_u64()).is_err());
    assert!(length(1).is_err());
}

/// A file with holes has zeros where nothing was written; a record may end in some.
#[test]
fn a_record_that_ends_in_zeros_is_whole() {
    let mut puddle = Puddle::new(1);
    let mut record = vec![0; HEADER_WORDS];
    push_copy(&mut record, LINE, &[0; 10_000]);
    FIRST.seal(&mut record, &RingSalt::new(Uuid([1; 16])), start());
    puddle.put(start(), &record);
    let used = start() - heap_offset(UNIT) + 4096;
    assert_eq!(
        replay(&[puddle.ring().used(used)]).unwrap().records.len(),
        1
    );
    let nothing = puddle.ring().used(4096);
    assert!(replay(&[nothing]).unwrap().records.is_empty());
}
