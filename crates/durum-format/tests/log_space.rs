//! The log space: image, appends that a crash tears, and what is refused.

mod common;

use common::{LOG_ID, flips, hex, uuid};
use durum_format::log_space::{self, LogSpace, LogSpaceEntry, Slot, encode_header, parse_entry};
use durum_format::puddle::{PuddleHeader, PuddleKind};
use durum_format::{Fault, UNIT};

/// Put together by hand from docs/format/log-space.md: a header and one entry.
const IMAGE: &str = "
    445552554d4c53500100000000000000202122232425262728292a2b2c2d2e2f
    000000000000000000000000000000000000000000000000000000005f643dd9
    010000007c36b485a8a7a6a5a4a3a2a1303132333435363738393a3b3c3d3e3f
    0000204000200000000000000000000000000000000000000000000000000000";

fn entry() -> LogSpaceEntry {
    LogSpaceEntry {
        log_id: LOG_ID,
        puddle: uuid(0x30),
        address: 0x2000_4020_0000,
    }
}

#[test]
fn the_image_of_version_1_is_read_and_written() {
    let mut bytes = encode_header(uuid(0x20)).to_vec();
    bytes.extend(entry().encode());
    assert_eq!(bytes, hex(IMAGE));
    let space = LogSpace::parse(&bytes).unwrap();
    assert_eq!(space.client(), uuid(0x20));
    assert_eq!(space.entries(), [(0, entry())]);
    assert!(space.unfinished().is_empty());
}

#[test]
fn every_changed_byte_of_the_header_is_refused() {
    for (at, changed) in flips(&encode_header(uuid(0x20))) {
        assert!(LogSpace::parse(&changed).is_err(), "byte {at}");
    }
    assert_eq!(
        LogSpace::parse(&hex(IMAGE)[..63]).unwrap_err().fault(),
        Fault::Damaged
    );
    let mut newer = hex(IMAGE);
    newer[8] = 2;
    assert_eq!(
        LogSpace::parse(&newer).unwrap_err().fault(),
        Fault::OtherVersion
    );
}

/// Every changed byte of an entry is seen. One change reads as a free entry: that of the state to 0, which is what
/// freeing writes; the log's puddle is then one that no entry names, which the service looks for.
#[test]
fn every_changed_byte_of_an_entry_is_seen() {
    for (at, changed) in flips(&entry().encode()) {
        let line: &[u8; 64] = changed.as_slice().try_into().unwrap();
        match parse_entry(line, 0) {
            Ok(Slot::Active(_)) => panic!("byte {at} changed and nobody saw"),
            Ok(Slot::Free) => assert!(at == 0 && changed[0] == 0),
            Ok(Slot::Unfinished) | Err(_) => {}
        }
    }
}

/// The crash: the line of an entry reaches the media in part, at 8 bytes.
#[test]
fn a_torn_append_is_free_or_unfinished_and_never_a_log() {
    let whole = entry().encode();
    for old in [
        [0; 64],
        LogSpaceEntry {
            log_id: 3,
            ..entry()
        }
        .encode(),
    ] {
        // An old entry was freed before it is written over.
        let mut old = old;
        old[..8].fill(0);
        for words in 0..1u32 << 8 {
            let mut line = old;
            for word in (0..8).filter(|word| words >> word & 1 == 1) {
                line[word * 8..word * 8 + 8].copy_from_slice(&whole[word * 8..word * 8 + 8]);
            }
            match parse_entry(&line, 0).unwrap() {
                Slot::Active(found) => assert!(line == whole && found == entry()),
                Slot::Free => assert_eq!(words & 1, 0),
                Slot::Unfinished => assert_eq!(words & 1, 1),
            }
        }
    }
}

#[test]
fn unfinished_and_free_entries_do_not_hide_others() {
    let mut bytes = encode_header(uuid(0x20)).to_vec();
    let second = LogSpaceEntry {
        log_id: 2,
        ..entry()
    };
    bytes.extend([0; 64]);
    bytes.extend(entry().encode());
    bytes.resize(3 * 64, 0);
    bytes.extend(second.encode());
    bytes[3 * 64 + 20] ^= 1;
    bytes.extend(second.encode());
    let space = LogSpace::parse(&bytes).unwrap();
    assert_eq!(space.entries(), [(1, entry()), (3, second)]);
    assert_eq!(space.unfinished(), [2]);
    // Freed, or its state was damaged: whoever finds a log in use that nothing names will know.
    bytes[2 * 64..][..8].fill(0);
    let space = LogSpace::parse(&bytes).unwrap();
    assert_eq!(space.entries(), [(3, second)]);
    assert_eq!(space.unfinished(), [1, 2]);
    assert_eq!(log_space::entry_offset(3), 4 * 64);
    assert_eq!(log_space::capacity(bytes.len() as u64), 4);
}

#[test]
fn a_log_space_of_another_client_is_refused() {
    let mut puddle = PuddleHeader {
        kind: PuddleKind::LogSpace,
        uuid: uuid(1),
        owner: uuid(0x20),
        address: UNIT,
        size: UNIT,
        is_root: false,
    };
    assert!(LogSpace::of(&puddle, &hex(IMAGE)).is_ok());
    puddle.owner = uuid(0x21);
    assert!(
        LogSpace::of(&puddle, &hex(IMAGE))
            .unwrap_err()
            .to_string()
            .contains("client")
    );
    puddle.kind = PuddleKind::Log;
    assert!(
        LogSpace::of(&puddle, &hex(IMAGE))
            .unwrap_err()
            .to_string()
            .contains("kind")
    );
}

#[test]
fn an_entry_with_an_impossible_address_is_refused_although_its_checksum_is_right() {
    for entry in [
        LogSpaceEntry {
            address: 0,
            ..entry()
        },
        LogSpaceEntry {
            address: 4096,
            ..entry()
        },
        LogSpaceEntry {
            address: 1 << 47,
            ..entry()
        },
        LogSpaceEntry {
            puddle: durum_format::Uuid::NIL,
            ..entry()
        },
    ] {
        assert!(parse_entry(&entry.encode(), 0).is_err(), "{entry:?}");
    }
}
