//! What a crash may leave, what is damage, and what can be made of damaged files.

use std::time::{Duration, Instant};

use durum_format::registry::{Change, Room, encode_changes, parse, salvage};
use durum_format::{DEFAULT_BASE, Fault};

use crate::common::{flips, uuid};
use crate::{after, file, state, steps};

#[test]
fn no_changed_byte_gives_another_state() {
    let steps = steps();
    let (bytes, ends) = file(&steps, 3);
    let last = ends[ends.len() - 2];
    for (at, changed) in flips(&bytes[..ends[ends.len() - 1]]) {
        let mut whole = bytes.clone();
        whole[..changed.len()].copy_from_slice(&changed);
        match parse(&whole) {
            // Of the last record nobody knows whether it was ever whole: there the copy tells.
            Ok(parsed) => {
                assert!(at >= last, "byte {at}");
                assert!(parsed.is_torn && parsed.end == last as u64, "byte {at}");
                assert_eq!(parsed.state, after(&steps, steps.len() - 1));
            }
            Err(error) => {
                assert!(at < last, "byte {at}: {error}");
                if at >= ends[0] {
                    let start = ends.iter().rev().find(|end| **end <= at).unwrap();
                    let text = error.to_string();
                    assert!(text.contains(&format!("offset {start} ")), "{at}: {text}");
                }
            }
        }
    }
}

#[test]
fn every_other_length_is_refused() {
    let (bytes, ends) = file(&steps(), 3);
    let lengths = (0..ends[ends.len() - 1]).chain([bytes.len() / 2, bytes.len() - 1]);
    for length in lengths {
        let error = parse(&bytes[..length]).unwrap_err();
        assert_eq!(error.fault(), Fault::Damaged, "{length}: {error}");
    }
    for more in [1, 4096, 1 << 20] {
        let mut longer = bytes.clone();
        longer.resize(bytes.len() + more, 0);
        assert!(parse(&longer).is_err(), "{more} more");
    }
}

#[test]
fn a_record_that_a_crash_tore_is_no_commit() {
    let steps = steps();
    let (bytes, ends) = file(&steps, 3);
    let (start, end) = (ends[ends.len() - 2], ends[ends.len() - 1]);
    let before = after(&steps, steps.len() - 1);
    // Any set of its sectors, here of 64 bytes, may be the old ones.
    let sectors: Vec<usize> = (start / 64..=(end - 1) / 64).collect();
    for set in 0..1_u32 << sectors.len().min(12) {
        let mut torn = bytes.clone();
        for (index, sector) in sectors.iter().enumerate() {
            if set & 1 << index == 0 {
                let from = (sector * 64).max(start);
                torn[from..(sector * 64 + 64).min(end)].fill(0);
            }
        }
        let parsed = parse(&torn).unwrap();
        if torn == bytes {
            assert_eq!(parsed.state, state());
        } else {
            assert_eq!(parsed.state, before, "{set:b}");
            assert_eq!(parsed.end, start as u64);
            let is_clear = torn[start..].iter().all(|byte| *byte == 0);
            assert_eq!(parsed.is_torn, !is_clear, "{set:b}");
        }
    }
}

#[test]
fn a_record_that_is_not_the_next_one_is_damage() {
    let (bytes, ends) = file(&steps(), 3);
    for sequence in [0, 3, 5, u64::MAX] {
        let mut other = bytes.clone();
        let record = encode_changes(uuid(0x10), sequence, &[Change::Cursor(DEFAULT_BASE)]);
        let at = ends[0];
        other[at..ends[ends.len() - 1]].fill(0);
        other[at..at + record.len()].copy_from_slice(&record);
        let error = parse(&other).unwrap_err();
        assert_eq!(error.offset(), Some(at as u64), "{error}");
    }
    // Nor is one of another store a record.
    let mut other = bytes;
    let record = encode_changes(uuid(0x11), 4, &[Change::Cursor(DEFAULT_BASE)]);
    other[ends[0]..ends[ends.len() - 1]].fill(0);
    other[ends[0]..ends[0] + record.len()].copy_from_slice(&record);
    assert!(parse(&other).unwrap().is_torn);
}

#[test]
fn a_newer_registry_is_refused_by_its_version_and_a_foreign_one_as_such() {
    for parsed in [
        parse(b"durum registry 6 whatever follows\n").map(|_| ()),
        Room::of(b"durum registry 6 whatever follows\n").map(|_| ()),
    ] {
        let newer = parsed.unwrap_err();
        assert_eq!(newer.fault(), Fault::OtherVersion, "{newer}");
    }
    assert_eq!(parse(b"{}").unwrap_err().fault(), Fault::Foreign);
    assert_eq!(parse(b"durum reg").unwrap_err().fault(), Fault::Damaged);
    let long = format!("durum registry 1 {} 0x00000000\n", 1_u64 << 40);
    let error = Room::of(long.as_bytes()).unwrap_err();
    assert!(
        error.to_string().contains("no snapshot has more"),
        "{error}"
    );
}

#[test]
fn one_lost_sector_or_file_costs_nothing() {
    let steps = steps();
    let (bytes, ends) = file(&steps, 3);
    // The copy may have been folded at another time.
    for (copy, _) in [file(&steps, 3), file(&steps, 0), file(&steps, 5)] {
        for start in (0..ends[ends.len() - 1]).step_by(64) {
            let mut damaged = bytes.clone();
            damaged[start..start + 64].fill(0);
            for files in [[&damaged, &copy], [&copy, &damaged]] {
                let files = files.map(Vec::as_slice);
                assert_eq!(salvage(None, &files), Some(state()), "at {start}");
            }
        }
        assert_eq!(salvage(Some(uuid(0x10)), &[&[], &copy]), Some(state()));
    }
    assert_eq!(salvage(Some(uuid(0x11)), &[&bytes]), None);
    assert_eq!(salvage(None, &[b"durum registry", b""]), None);
}

/// Whoever writes beginnings of records over each other makes a reader sum up each of them: time in the square of the
/// file's length, which was hours. A reader gives up after a few lengths.
#[test]
fn beginnings_of_records_over_each_other_are_damage_and_not_looked_at_for_ever() {
    let steps = steps();
    let (whole, ends) = file(&steps, 3);
    let beginnings =
        |length: usize, count: usize| format!("change 1 {length} 0x00000000\n").repeat(count);
    let mut hostile = whole.clone();
    let text = beginnings(20_000, 1000);
    hostile[ends[0]..ends[0] + text.len()].copy_from_slice(text.as_bytes());
    let error = parse(&hostile).unwrap_err();
    assert_eq!(error.fault(), Fault::Damaged);
    assert!(error.to_string().contains("over each other"), "{error}");
    // One such beginning may be what a crash left.
    hostile[ends[0]..].fill(0);
    let text = beginnings(20_000, 1);
    hostile[ends[0]..ends[0] + text.len()].copy_from_slice(text.as_bytes());
    assert!(parse(&hostile).unwrap().is_torn);

    let text = beginnings(4_000_000, 300_000);
    let began = Instant::now();
    for files in [[text.as_bytes(), &whole], [&whole, text.as_bytes()]] {
        assert_eq!(salvage(None, &files), Some(state()));
    }
    assert!(began.elapsed() < Duration::from_secs(60));
}

#[test]
fn two_histories_are_not_mixed() {
    let steps = steps();
    let (first, _) = file(&steps, 3);
    let mut other = steps.clone();
    other[4] = vec![Change::Cursor(DEFAULT_BASE)];
    let (mut second, _) = file(&other, 3);
    second[0] = b'x';
    // Both have a fifth commit, and they are not the same.
    let salvaged = salvage(None, &[&first, &second]).unwrap();
    assert_eq!(salvaged, after(&steps, 4));
}
