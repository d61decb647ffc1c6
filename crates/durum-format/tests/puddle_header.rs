//! The puddle header: image, round trip, and what is refused.

mod common;

use common::{flips, hex, uuid};
use durum_format::puddle::{self, PuddleHeader, PuddleKind, encode, parse, parse_moved};
use durum_format::{Fault, FormatError, UNIT};
use proptest::prelude::*;

/// Put together by hand from docs/format/puddle.md.
const IMAGE: &str = "
    445552554d5055440100000001000000101112131415161718191a1b1c1d1e1f
    202122232425262728292a2b2c2d2e2f00000040002000000000400000000000
    0100000050906fa8000000000000000000000000000000000000000000000000
    0000000000000000000000000000000000000000000000000000000000000000";

fn header() -> PuddleHeader {
    PuddleHeader {
        kind: PuddleKind::Data,
        uuid: uuid(0x10),
        owner: uuid(0x20),
        address: 0x2000_4000_0000,
        size: 2 * UNIT,
        is_root: true,
    }
}

#[test]
fn the_image_of_version_1_is_read_and_written() {
    assert_eq!(encode(&header()).as_slice(), hex(IMAGE));
    assert_eq!(parse(&hex(IMAGE), 2 * UNIT).unwrap(), header());
}

#[test]
fn every_changed_byte_is_refused() {
    let mut bytes = encode(&header()).to_vec();
    bytes.resize(1024, 0);
    for (at, changed) in flips(&bytes) {
        assert!(parse(&changed, 2 * UNIT).is_err(), "byte {at}");
    }
}

/// Whoever moves a puddle may be stopped anywhere: each word is the old one or the new one. All else is as ever.
#[test]
fn a_header_that_moves_is_known_by_all_but_its_address() {
    let was = header();
    let now = PuddleHeader {
        address: 0x2000_8000_0000,
        ..was
    };
    let (old, new) = (encode(&was), encode(&now));
    for torn in 0..1_u32 << 2 {
        let mut bytes = old.to_vec();
        bytes.resize(1024, 0);
        // The words that differ.
        for (bit, word) in [48..56, 64..72].into_iter().enumerate() {
            if torn >> bit & 1 == 1 {
                bytes[word.clone()].copy_from_slice(&new[word]);
            }
        }
        assert_eq!(parse_moved(&bytes, 2 * UNIT, &now).unwrap(), now, "{torn}");
        for (at, changed) in flips(&bytes) {
            let is_free = (48..56).contains(&at) || (68..72).contains(&at);
            assert_eq!(
                parse_moved(&changed, 2 * UNIT, &now) == Ok(now),
                is_free,
                "byte {at}"
            );
        }
        assert!(parse_moved(&bytes, UNIT, &now).is_err());
        assert!(parse_moved(&bytes[..100], 2 * UNIT, &now).is_err());
    }
}

#[test]
fn a_foreign_a_newer_a_damaged_and_a_short_file_are_told_apart() {
    let good = encode(&header());
    let with = |at: usize, value: u8| {
        let mut bytes = good;
        bytes[at] = value;
        parse(&bytes, 2 * UNIT).unwrap_err()
    };
    assert_eq!(with(0, b'X').fault(), Fault::Foreign);
    let newer = with(8, 2);
    assert_eq!(newer.fault(), Fault::OtherVersion);
    assert!(
        newer
            .to_string()
            .starts_with("puddle header: version 2 at offset 8, but this build reads version 1")
    );
    assert_eq!(with(20, 0).fault(), Fault::Damaged);
    assert_eq!(
        with(100, 1),
        FormatError::Reserved {
            structure: "puddle header",
            offset: 100
        }
    );
    assert!(matches!(
        parse(&good[..127], 2 * UNIT),
        Err(FormatError::Truncated {
            needed: 128,
            found: 127,
            ..
        })
    ));
    assert!(matches!(
        parse(&good, UNIT),
        Err(FormatError::Truncated { found: UNIT, .. })
    ));
    assert!(matches!(
        parse(&good, 3 * UNIT),
        Err(FormatError::Field { field: "size", .. })
    ));
    assert!(matches!(parse(&[], 0), Err(FormatError::Truncated { .. })));
}

#[test]
fn headers_that_no_puddle_can_have_are_refused_although_their_checksums_are_right() {
    let impossible = [
        PuddleHeader {
            uuid: durum_format::Uuid::NIL,
            ..header()
        },
        PuddleHeader {
            owner: durum_format::Uuid::NIL,
            ..header()
        },
        PuddleHeader {
            address: 0,
            ..header()
        },
        PuddleHeader {
            address: 0x2000_4000_1000,
            ..header()
        },
        PuddleHeader {
            address: 1 << 47,
            ..header()
        },
        PuddleHeader {
            size: 0,
            ..header()
        },
        PuddleHeader {
            size: UNIT + 4096,
            ..header()
        },
        PuddleHeader {
            size: 1 << 47,
            ..header()
        },
        PuddleHeader {
            size: u64::MAX - UNIT + 1,
            ..header()
        },
        PuddleHeader {
            kind: PuddleKind::Log,
            ..header()
        },
    ];
    for header in impossible {
        assert!(
            matches!(
                parse(&encode(&header), header.size),
                Err(FormatError::Field { .. })
            ),
            "{header:?}"
        );
    }
}

#[test]
fn the_parts_of_a_puddle_add_up() {
    for units in [1, 2, 3, 512, 1 << 19] {
        let size = units * UNIT;
        assert_eq!(puddle::heap_offset(size) + puddle::heap_size(size), size);
        assert_eq!(puddle::granules(size), units * 8176);
        assert!(
            puddle::BITMAP_OFFSET + puddle::bitmap_words(size) * 8 <= puddle::header_size(size)
        );
        assert_eq!(puddle::size_for_heap(puddle::heap_size(size)), Some(size));
        assert_eq!(
            puddle::size_for_heap(puddle::heap_size(size) + 1),
            Some(size + UNIT)
        );
    }
    assert_eq!(puddle::size_for_heap(0), Some(UNIT));
    assert_eq!(puddle::size_for_heap(u64::MAX), None);
}

#[test]
fn log_entries_may_write_everything_but_the_immutable_part() {
    let header = header();
    let start = header.address + 1024;
    assert!(header.admits(start, 2 * UNIT - 1024));
    assert!(!header.admits(start - 1, 8));
    assert!(!header.admits(start, 2 * UNIT - 1023));
    assert!(!header.admits(u64::MAX - 3, 8));
}

proptest! {
    #[test]
    fn what_is_written_is_read(
        random in any::<[u8; 16]>(), kind in 0..6usize, unit in 1..1u64 << 20, units in 1..1u64 << 20, root: bool,
    ) {
        let kinds = [
            PuddleKind::Data,
            PuddleKind::Log,
            PuddleKind::LogSpace,
            PuddleKind::Records,
            PuddleKind::Sections,
            PuddleKind::Code,
        ];
        let kind = kinds[kind];
        let header = PuddleHeader {
            kind,
            uuid: durum_format::Uuid::from_random(random),
            owner: uuid(1),
            address: unit * UNIT,
            size: units * UNIT,
            is_root: root && kind == PuddleKind::Data,
        };
        prop_assert_eq!(parse(&encode(&header), header.size).unwrap(), header);
    }
}

#[test]
fn a_twin_puddle_has_two_copies_and_its_root_a_state() {
    let header = PuddleHeader {
        kind: PuddleKind::Twin,
        ..header()
    };
    assert_eq!(header.file_size(), 4 * UNIT);
    let mut bytes = encode(&header).to_vec();
    bytes.resize(1024, 0);
    for state in [0, 1, 2, 0xff] {
        // Which states there are is recovery's affair.
        bytes[960] = state;
        assert_eq!(parse(&bytes, 4 * UNIT).unwrap(), header);
    }
    for at in [959, 968] {
        let mut changed = bytes.clone();
        changed[at] = 1;
        let error = parse(&changed, 4 * UNIT).unwrap_err();
        assert!(matches!(error, FormatError::Reserved { offset, .. } if offset == at as u64));
    }
    let other = encode(&PuddleHeader {
        is_root: false,
        ..header
    });
    bytes[..other.len()].copy_from_slice(&other);
    assert!(
        parse(&bytes, 4 * UNIT).is_err(),
        "only the root has a state"
    );
    bytes[960] = 0;
    parse(&bytes, 4 * UNIT).unwrap();
    assert!(matches!(
        parse(&bytes, 2 * UNIT),
        Err(FormatError::Truncated { found, .. }) if found == 2 * UNIT
    ));
}
