//! Log headers, range words and entries: images, round trips, and what is refused.

mod common;

use std::convert::Infallible;

use common::{LOG_ID, LogWriter, empty_heap, flips, hex, uuid};
use durum_format::log::{
    self, Damage, EntryFlags, EntryHeader, EntryKind, LOG_AREA_OFFSET, LogArea, LogHeader, Order,
    ParsedLog, REACH_OFFSET, RangeWord, Salt, SealContents, current_range, entry_checksum,
};
use durum_format::puddle::{PuddleHeader, PuddleKind, heap_size};
use durum_format::reach::Reach;
use durum_format::{Fault, UNIT};
use proptest::prelude::*;

const GENERATION: u64 = 0x1_0000_0007;

/// Put together by hand from docs/format/log.md.
const HEADER: &str = "
    445552554d4c4f470100000000000000a8a7a6a5a4a3a2a100e81f0000000000
    202122232425262728292a2b2c2d2e2f000000000000000000000000202c579d";
const COPY: &str = "40100040002000000500000001010102070000006a8b75cc68656c6c6f000000";
const SET_BITS: &str = "000400400020000008000000030002000700000088e93b49f000000000000000";
const CLEAR_BITS: &str = "00040040002000000800000003000300070000006b8c29020f00000000000000";
const SEAL: &str = "
    0000000000000000300000000000040007000000fac5bbce0300000002000000
    0020004000200000080000000000000000300040002000000300000000000000
    2f001e9a00000000";
const CHAIN: &str = "0000204000200000000000000000050007000000b72ba5f1";

fn read(writer: &LogWriter) -> Result<ParsedLog<'_>, Damage> {
    log::parse(writer.area(), |_| -> Result<LogArea<'_>, Infallible> {
        panic!("the log has no chain")
    })
    .map_err(|error| match error {
        log::ParseError::Damage(damage) => damage,
        log::ParseError::Chain { .. } => unreachable!(),
    })
}

#[test]
fn the_images_of_version_1_are_written() {
    let header = LogHeader::new(LOG_ID, uuid(0x20), UNIT, false);
    assert_eq!(header.encode().as_slice(), hex(HEADER));
    assert_eq!(
        RangeWord::undo(7).to_u64().to_le_bytes().as_slice(),
        hex("0200070000000000")
    );
    let (bytes, is_chained) = (0x1000, true);
    let reach = Reach { bytes, is_chained };
    assert_eq!(
        reach.to_u64().to_le_bytes().as_slice(),
        hex("810000007effffff")
    );
    let salt = Salt::new(LOG_ID, GENERATION);
    let mut out = [0xee; 128];
    let check = |written: Option<usize>, out: &[u8], image: &str| {
        assert_eq!(&out[..written.unwrap()], hex(image));
    };
    let len = log::encode_copy(
        &mut out,
        &salt,
        Order::Reverse,
        EntryFlags::FENCED,
        1,
        0x2000_4000_1040,
        b"hello",
    );
    check(len, &out, COPY);
    let len = log::encode_bits(
        &mut out,
        &salt,
        true,
        EntryFlags::NONE,
        3,
        0x2000_4000_0400,
        0xf0,
    );
    check(len, &out, SET_BITS);
    let len = log::encode_bits(
        &mut out,
        &salt,
        false,
        EntryFlags::NONE,
        3,
        0x2000_4000_0400,
        0x0f,
    );
    check(len, &out, CLEAR_BITS);
    let mut contents = salt.crc();
    contents.update(b"fresh!!!");
    contents.update(b"abc");
    let ranges = [(0x2000_4000_2000, 8), (0x2000_4000_3000, 3)];
    let len = log::encode_seal(
        &mut out,
        &salt,
        EntryFlags::NONE,
        3,
        &ranges,
        contents.value(),
    );
    check(len, &out, SEAL);
    let len = log::encode_chain(&mut out, &salt, 0x2000_4020_0000);
    check(len, &out, CHAIN);
}

#[test]
fn the_images_of_version_1_are_read() {
    assert_eq!(
        LogHeader::parse(&hex(HEADER), UNIT - 4096).unwrap(),
        LogHeader::new(LOG_ID, uuid(0x20), UNIT, false)
    );
    let mut writer = LogWriter::at_generation(4096, GENERATION);
    let images = [COPY, SET_BITS, CLEAR_BITS, SEAL].map(hex);
    // The copy is fenced, so the next entry begins at the next line.
    for (at, image) in [0, 64, 96, 128].into_iter().zip(&images) {
        writer.entries()[at..at + image.len()].copy_from_slice(image);
    }
    let log = read(&writer).unwrap();
    let found: Vec<_> = log
        .entries
        .iter()
        .map(|entry| (entry.kind, entry.sequence, entry.offset))
        .collect();
    assert_eq!(
        found,
        [
            (EntryKind::Copy, 1, 0),
            (EntryKind::SetBits, 3, 64),
            (EntryKind::ClearBits, 3, 96),
            (EntryKind::Seal, 0, 128)
        ]
    );
    let [copy, set, ..] = log.entries[..] else {
        panic!()
    };
    assert_eq!(
        (copy.target, copy.data, copy.order),
        (0x2000_4000_1040, b"hello".as_slice(), Order::Reverse)
    );
    assert!(copy.flags.is_fenced() && copy.area == 0);
    assert_eq!((set.target, set.mask()), (0x2000_4000_0400, Some(0xf0)));
    let seal = log.seal.unwrap();
    assert_eq!(
        seal.ranges().collect::<Vec<_>>(),
        [(0x2000_4000_2000, 8), (0x2000_4000_3000, 3)]
    );
    assert_eq!(log.end, (0, 200));
}

#[test]
fn every_changed_byte_of_the_header_is_refused() {
    for (at, changed) in flips(&hex(HEADER)) {
        assert!(
            LogHeader::parse(&changed, UNIT - 4096).is_err(),
            "byte {at}"
        );
    }
    let mut newer = hex(HEADER);
    newer[8] = 9;
    assert_eq!(
        LogHeader::parse(&newer, UNIT - 4096).unwrap_err().fault(),
        Fault::OtherVersion
    );
    assert!(LogHeader::parse(&hex(HEADER), UNIT).is_err());
    assert!(LogHeader::parse(&hex(HEADER)[..63], 63).is_err());
    assert!(LogHeader::parse(&[], 0).is_err());
}

/// Between header and entries lie the range slots. A word can carry no checksum, as it must be written by one store.
/// What the slots together do not show are three changes: of the range in the current word, of the current word's
/// generation to the one that its slot held before, and of the oldest word's generation to the one that its slot holds
/// next. See docs/format/log.md.
#[test]
fn every_changed_byte_before_the_entries_is_refused_but_for_three_changes_of_range_words() {
    let mut writer = LogWriter::at_generation(256, 21);
    writer.reach(256, false);
    let current = log::slot_offset(21) as usize;
    let whole = writer.heap.clone();
    writer.undo(0x2000_4000_1000, &[1; 8]);
    for (at, changed) in flips(&whole[..2048]) {
        let mut heap = whole.clone();
        heap[..2048].copy_from_slice(&changed);
        let Ok(area) = LogArea::parse(&heap) else {
            continue;
        };
        let Ok(range) = current_range(area.slots()) else {
            continue;
        };
        if at == current + 2 {
            assert_eq!(
                range.generation, 20,
                "as if the word of generation 21 had not been written"
            );
            // The first entry of generation 21 gives it away.
            writer.heap[..2048].copy_from_slice(&changed);
            assert_eq!(read(&writer).unwrap_err(), Damage::LostWord { current: 20 });
            continue;
        }
        if at == log::slot_offset(6) as usize + 2 {
            assert_eq!(
                range.generation, 22,
                "as if the word of generation 22 had been written"
            );
            continue;
        }
        assert_eq!(range.generation, 21, "byte {at}");
        let is_range = at >= 64 && (at - 64) % 64 < 2;
        assert!(is_range, "byte {at} changed and nobody saw");
        assert!(
            range == RangeWord::undo(21) || at - current < 2,
            "byte {at} is not in the current word"
        );
    }
}

#[test]
fn a_continuation_has_no_range_words_and_is_no_beginning() {
    let heap = empty_heap(256, true);
    let area = LogArea::parse(&heap).unwrap();
    assert!(area.header().is_continuation);
    let refused = log::parse(area, |_| -> Result<LogArea<'_>, Infallible> {
        unreachable!()
    })
    .unwrap_err();
    assert_eq!(refused, log::ParseError::Damage(Damage::NotAHead));
    let mut with_word = heap.clone();
    with_word[64] = 2;
    assert!(LogArea::parse(&with_word).is_err());
}

#[test]
fn a_log_of_another_client_is_refused() {
    let puddle = PuddleHeader {
        kind: PuddleKind::Log,
        uuid: uuid(1),
        owner: uuid(0x20),
        address: UNIT,
        size: UNIT,
        is_root: false,
    };
    let mut heap = vec![0; heap_size(UNIT) as usize];
    heap[..64].copy_from_slice(&LogHeader::new(LOG_ID, uuid(0x20), UNIT, false).encode());
    assert!(LogArea::of(&puddle, &heap).is_ok());
    assert!(
        LogArea::of(
            &PuddleHeader {
                owner: uuid(3),
                ..puddle
            },
            &heap
        )
        .is_err()
    );
    assert!(
        LogArea::of(
            &PuddleHeader {
                kind: PuddleKind::Data,
                ..puddle
            },
            &heap
        )
        .is_err()
    );
    assert!(LogArea::parse(&heap[..heap.len() - 1]).is_err());
    // Of one that says how far it was used, so much will do.
    let (bytes, is_chained) = (256, false);
    let word = Reach { bytes, is_chained }.to_u64().to_le_bytes();
    heap[REACH_OFFSET as usize..][..8].copy_from_slice(&word);
    let used = LOG_AREA_OFFSET as usize + 256;
    assert!(LogArea::of(&puddle, &heap[..used]).is_ok());
    assert!(LogArea::of(&puddle, &heap[..used - 1]).is_err());
}

#[test]
fn words_of_a_used_log_follow_each_other() {
    let slots_until = |generation: u64| {
        let mut slots = [0; 16];
        for generation in generation.saturating_sub(15).max(1)..=generation {
            slots[generation as usize % 16] = RangeWord::undo(generation).to_u64();
        }
        slots
    };
    assert_eq!(current_range(&[0; 16]).unwrap(), RangeWord::NEVER);
    for generation in (1..40).chain([1000, (1 << 48) - 1]) {
        let slots = slots_until(generation);
        assert_eq!(current_range(&slots).unwrap(), RangeWord::undo(generation));
        for slot in 0..16 {
            let mut lost = slots;
            lost[slot] = 0;
            let newest_of_a_young_log = generation <= 16 && slot as u64 == generation % 16;
            let never_written = slots[slot] == 0;
            assert_eq!(
                current_range(&lost).is_ok(),
                never_written || newest_of_a_young_log,
                "{generation} {slot}"
            );
            let mut other = slots;
            other[slot] = RangeWord::undo(generation + 1).to_u64();
            let is_next = (generation + 1) % 16 == slot as u64 && generation + 1 < 1 << 48;
            assert_eq!(
                current_range(&other).is_ok(),
                is_next,
                "{generation} {slot}"
            );
        }
    }
    let mut backwards = slots_until(20);
    backwards[4] = RangeWord {
        generation: 20,
        lo: 3,
        hi: 2,
    }
    .to_u64();
    assert!(current_range(&backwards).is_err());
    let mut zero_generation = slots_until(3);
    zero_generation[9] = 2;
    assert!(matches!(
        current_range(&zero_generation),
        Err(Damage::RangeSlot {
            slot: 9,
            found: 2,
            ..
        })
    ));
}

/// A change anywhere in an entry makes it, and so the rest of the log, unreadable. Where another durable entry follows
/// that is damage; where it was the last one it cannot be told from a tear.
#[test]
fn every_changed_byte_of_an_entry_is_seen() {
    let mut writer = LogWriter::new(1024);
    let first = writer.undo(0x2000_4000_1000, &[7; 13]);
    let second = writer.undo(0x2000_4000_2000, &[8; 40]);
    let whole = writer.clone();
    for (at, changed) in flips(&whole.clone().entries()[..second.1]) {
        let mut writer = whole.clone();
        writer.entries()[..second.1].copy_from_slice(&changed);
        let padding = (first.0 + 24 + 13..second.0).contains(&at);
        match read(&writer) {
            Ok(log) if padding => {
                assert_eq!(log.entries.len(), 2, "byte {at}: nobody reads padding")
            }
            Ok(log) => {
                assert!(
                    at >= second.0,
                    "byte {at} of the first entry changed and nobody saw"
                );
                assert_eq!(log.entries.len(), 1, "byte {at}");
            }
            Err(damage) => {
                assert!(at < second.0 && !padding);
                assert_eq!(
                    damage,
                    Damage::LostEntry {
                        area: 0,
                        stop: 0,
                        found: second.0
                    }
                );
            }
        }
    }
}

#[test]
fn entries_that_no_writer_makes_are_damage_although_their_checksums_are_right() {
    let header = |target: u64, sequence: u8, order: u8, kind: u8, flags: u8, data: &[u8]| {
        let mut bytes = target.to_le_bytes().to_vec();
        bytes.extend((data.len() as u32).to_le_bytes());
        bytes.extend([sequence, order, kind, flags]);
        bytes.extend(1u32.to_le_bytes());
        let checksum = entry_checksum(LOG_ID, 1, bytes.as_slice().try_into().unwrap(), data);
        bytes.extend(checksum.to_le_bytes());
        bytes.extend(data);
        bytes
    };
    let field = |bytes: Vec<u8>| {
        let mut writer = LogWriter::new(1024);
        writer.entries()[..bytes.len()].copy_from_slice(&bytes);
        match read(&writer) {
            Err(Damage::EntryField {
                field,
                offset: 0,
                area: 0,
                ..
            }) => field,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(field(header(8, 1, 0, 0, 0, &[0; 8])), "kind");
    assert_eq!(field(header(8, 1, 0, 6, 0, &[0; 8])), "kind");
    assert_eq!(field(header(8, 1, 0, 1, 4, &[0; 8])), "flags");
    assert_eq!(field(header(8, 1, 2, 1, 0, &[0; 8])), "order");
    assert_eq!(field(header(u64::MAX, 1, 0, 1, 0, &[0; 8])), "target");
    assert_eq!(field(header(12, 3, 0, 2, 0, &[0; 8])), "target");
    assert_eq!(field(header(8, 3, 0, 2, 0, &[0; 7])), "size");
    assert_eq!(field(header(8, 3, 0, 3, 0, &[0; 16])), "size");
    assert_eq!(field(header(8, 0, 0, 5, 2, &[])), "flags");
    assert_eq!(field(header(8, 0, 0, 5, 1, &[])), "flags");
    assert_eq!(field(header(8, 1, 0, 5, 0, &[])), "sequence");
    assert_eq!(field(header(8, 0, 0, 5, 0, &[1])), "size");
    assert_eq!(field(header(8, 0, 0, 4, 0, &[0; 16])), "target");
    assert_eq!(field(header(0, 0, 0, 4, 0, &[0; 12])), "range count");
    assert_eq!(
        field(header(
            0,
            0,
            0,
            4,
            0,
            &[[0, 0, 0, 0, 1, 0, 0, 0], [0; 8]].concat()
        )),
        "range count"
    );
    assert_eq!(
        field(header(
            0,
            0,
            0,
            4,
            0,
            &[[0; 8], [0, 0, 0, 0, 0, 0, 0, 1]].concat()
        )),
        "range count"
    );
    assert_eq!(field(header(0, 2, 0, 4, 0, &[0; 16])), "sequence");

    let mut counts = LogWriter::new(1024);
    counts.redo(8, &[1; 8]);
    counts.count = 5;
    counts.seal(EntryFlags::NONE, &[]);
    assert_eq!(
        read(&counts).unwrap_err(),
        Damage::SealCount {
            expected: 1,
            found: 5
        }
    );
}

/// What a reader of home has to do is bounded by the log: by its bytes, and by the number of ranges.
#[test]
fn a_seal_over_more_than_the_log_has_room_for_is_damage() {
    let many = |count: usize| vec![(8, [1].as_slice()); count];
    let [fits, too_long] = [1024, 1025].map(|length| vec![1; length]);
    for (capacity, ranges, field) in [
        (1024, vec![(8, fits.as_slice())], None),
        (
            1024,
            vec![(8, too_long.as_slice())],
            Some("bytes in its ranges"),
        ),
        (32 << 10, many(log::SEAL_RANGES_LIMIT), None),
        (
            32 << 10,
            many(log::SEAL_RANGES_LIMIT + 1),
            Some("range count"),
        ),
    ] {
        let mut writer = LogWriter::new(capacity);
        writer.seal(EntryFlags::NONE, &ranges);
        let found = match read(&writer) {
            Ok(_) => None,
            Err(Damage::EntryField { field, .. }) => Some(field),
            Err(other) => panic!("{other}"),
        };
        assert_eq!(found, field, "{} ranges", ranges.len());
    }
}

#[test]
fn nothing_is_written_where_it_does_not_fit() {
    let salt = Salt::new(1, 1);
    let mut short = [0xee; 31];
    assert_eq!(
        log::encode_copy(
            &mut short,
            &salt,
            Order::Forward,
            EntryFlags::NONE,
            3,
            8,
            &[1; 8]
        ),
        None
    );
    assert_eq!(
        log::encode_seal(&mut short, &salt, EntryFlags::NONE, 0, &[], 0),
        None
    );
    assert_eq!(log::encode_chain(&mut short[..23], &salt, 8), None);
    assert_eq!(short, [0xee; 31]);
}

#[test]
fn an_entry_behind_a_fenced_one_begins_at_a_line() {
    assert_eq!(log::next_entry_offset(0, 8, EntryFlags::NONE), 32);
    assert_eq!(log::next_entry_offset(32, 1, EntryFlags::NONE), 64);
    assert_eq!(log::next_entry_offset(0, 8, EntryFlags::FENCED), 64);
    assert_eq!(log::next_entry_offset(0, 40, EntryFlags::FENCED), 64);
    assert_eq!(log::next_entry_offset(0, 41, EntryFlags::FENCED), 128);
}

proptest! {
    /// The three ways to compute a checksum and to write a header give the same.
    #[test]
    fn words_bytes_and_definition_agree(
        log_id: u64, generation in 0..1u64 << 48, target: u64, sequence: u8, flags in 0..4u8,
        data in prop::collection::vec(any::<u8>(), 0..300),
    ) {
        let salt = Salt::new(log_id, generation);
        let flags = EntryFlags::from_bits(flags).unwrap();
        let mut out = vec![0; 400];
        let len = log::encode_copy(&mut out, &salt, Order::Reverse, flags, sequence, target, &data).unwrap();
        prop_assert_eq!(len, log::entry_size(data.len()));
        let words = EntryHeader::words(&salt, EntryKind::Copy, Order::Reverse, flags, sequence, target, &data);
        let bytes: Vec<u8> = words.into_iter().flat_map(u64::to_le_bytes).collect();
        prop_assert_eq!(&bytes, &out[..24]);
        prop_assert_eq!(&data, &out[24..24 + data.len()]);
        prop_assert!(out[24 + data.len()..].iter().all(|byte| *byte == 0));
        let header = EntryHeader::from_bytes(bytes.as_slice().try_into().unwrap());
        prop_assert_eq!(header.checksum, entry_checksum(log_id, generation, bytes[..20].try_into().unwrap(), &data));
        prop_assert_eq!((header.target, header.size as usize, header.sequence), (target, data.len(), sequence));
        prop_assert_eq!((header.order, header.kind, header.flags), (1, 1, flags.bits()));
    }

    #[test]
    fn seals_are_read_as_written(ranges in prop::collection::vec(any::<(u64, u64)>(), 0..40), count: u32, contents: u32) {
        let mut out = vec![0; 1024];
        let len = log::encode_seal(&mut out, &Salt::new(1, 2), EntryFlags::NONE, count, &ranges, contents).unwrap();
        prop_assert_eq!(len, log::entry_size(log::seal_size(ranges.len())));
        let seal = SealContents::parse(&out[24..len]).unwrap();
        prop_assert_eq!((seal.count, seal.contents), (count, contents));
        prop_assert_eq!(seal.ranges().collect::<Vec<_>>(), ranges);
    }
}
