//! The fault model of a disk behind a page cache, rule by rule: each test lists exactly the states that a
//! crash may leave.

mod common;

use std::collections::BTreeSet;
use std::path::Path;

use common::*;
use durum_persist::file::MediaFile;
use durum_persist::record::Trace;
use durum_persist::simulate::Rules;
use durum_persist::{inject, line};

fn record_file(protocol: impl FnOnce(&MediaFile)) -> Trace {
    record_in(|dir| protocol(&MediaFile::open(dir, "data", true).unwrap()))
}

/// The values of the first bytes of the first sectors; fails if a sector has bytes of two versions.
fn sectors<const N: usize>(dir: &Path) -> [u8; N] {
    let bytes = std::fs::read(dir.join("data")).unwrap();
    let mut sectors = bytes.chunks(512);
    std::array::from_fn(|_| {
        let sector = sectors.next().unwrap();
        assert!(
            sector.iter().all(|byte| *byte == sector[0]),
            "a sector was torn: {sector:?}"
        );
        sector[0]
    })
}

#[test]
fn each_sector_is_old_or_new_and_never_torn() {
    let trace = record_file(|file| file.write_all_at(&[1; 1024], 0).unwrap());
    let states = states_at_end(&trace, Rules::Sectors, sectors::<3>);
    assert_eq!(
        states,
        BTreeSet::from([[0, 0, 0], [0, 1, 0], [1, 0, 0], [1, 1, 0]])
    );
}

#[test]
fn any_version_of_a_sector_may_be_left() {
    let trace = record_file(|file| {
        for value in 1..=3 {
            file.write_all_at(&[value; 512], 0).unwrap();
        }
    });
    assert_eq!(
        states_at_end(&trace, Rules::Sectors, sectors::<1>),
        BTreeSet::from([[0], [1], [2], [3]])
    );
}

#[test]
fn two_writes_to_one_sector_are_two_versions_of_it() {
    let trace = record_file(|file| {
        file.write_all_at(&1u64.to_ne_bytes(), 0).unwrap();
        file.write_all_at(&2u64.to_ne_bytes(), 8).unwrap();
    });
    // The second without the first is impossible: a sector is written as it is in the page cache.
    let states = states_at_end(&trace, Rules::Sectors, words([0, 1]));
    assert_eq!(states, BTreeSet::from([[0, 0], [1, 0], [1, 2]]));
}

#[test]
fn a_sync_leaves_only_the_new_version() {
    let trace = record_file(|file| {
        file.write_all_at(&[1; 1024], 0).unwrap();
        file.sync(DATA).unwrap();
        file.write_all_at(&[2; 512], 0).unwrap();
    });
    assert_eq!(
        states_at_end(&trace, Rules::Sectors, sectors::<2>),
        BTreeSet::from([[1, 1], [2, 1]])
    );
}

#[test]
fn a_sync_covers_only_its_own_file() {
    let trace = record_in(|dir| {
        let file = MediaFile::open(dir, "data", true).unwrap();
        let other = MediaFile::create_new(&dir.join("other")).unwrap();
        file.write_all_at(&[1; 512], 0).unwrap();
        other.sync(DATA).unwrap();
    });
    assert_eq!(
        states_at_end(&trace, Rules::Sectors, sectors::<1>),
        BTreeSet::from([[0], [1]])
    );
}

#[test]
fn a_sync_through_another_handle_covers_the_file() {
    let trace = record_in(|dir| {
        let file = MediaFile::open(dir, "data", true).unwrap();
        file.write_all_at(&[1; 512], 0).unwrap();
        MediaFile::open(dir, "data", false)
            .unwrap()
            .sync(DATA)
            .unwrap();
    });
    assert_eq!(
        states_at_end(&trace, Rules::Sectors, sectors::<1>),
        BTreeSet::from([[1]])
    );
}

#[test]
fn write_backs_and_fences_do_nothing_for_a_disk_and_a_sync_covers_stores_to_a_shared_mapping() {
    let fenced = record_mapped(|map| map.persist(0, 1, DATA));
    assert_eq!(
        states_at_end(&fenced, Rules::Sectors, words([0])),
        BTreeSet::from([[0], [1]])
    );
    let synced = record_mapped(|map| {
        map.store(0, 1);
        line::fence(DATA);
        map.file.sync(DATA).unwrap();
    });
    assert_eq!(
        states_at_end(&synced, Rules::Sectors, words([0])),
        BTreeSet::from([[1]])
    );
}

#[test]
fn a_length_is_uncertain_until_the_sync() {
    let len = |dir: &Path| std::fs::metadata(dir.join("data")).unwrap().len();
    let grown = record_file(|file| file.set_len(10_000).unwrap());
    assert_eq!(
        states_at_end(&grown, Rules::Sectors, len),
        BTreeSet::from([8192, 10_000])
    );
    let written = record_file(|file| file.write_all_at(&[1; 8], 9000).unwrap());
    assert_eq!(
        states_at_end(&written, Rules::Sectors, len),
        BTreeSet::from([8192, 9008])
    );
    let allocated = record_file(|file| file.allocate(12_288, DATA).unwrap());
    assert_eq!(
        states_at_end(&allocated, Rules::Sectors, len),
        BTreeSet::from([8192, 12_288])
    );
    let synced = record_file(|file| {
        file.allocate(12_288, DATA).unwrap();
        file.sync(DATA).unwrap();
    });
    assert_eq!(
        states_at_end(&synced, Rules::Sectors, len),
        BTreeSet::from([12_288])
    );
}

#[test]
fn what_is_cut_off_reads_as_zeros_when_the_file_grows_again() {
    let trace = record_file(|file| {
        file.write_all_at(&[1; 512], 0).unwrap();
        file.sync(DATA).unwrap();
        file.set_len(0).unwrap();
        file.set_len(512).unwrap();
    });
    let whole = |dir: &Path| {
        let bytes = std::fs::read(dir.join("data")).unwrap();
        (bytes.len(), bytes.first().copied())
    };
    let states = states_at_end(&trace, Rules::Sectors, whole);
    // Old and new content under any of the lengths.
    let expected = [
        (0, None),
        (512, Some(0)),
        (512, Some(1)),
        (8192, Some(0)),
        (8192, Some(1)),
    ];
    assert_eq!(states, BTreeSet::from(expected));
}

#[test]
fn after_a_failed_sync_a_later_one_does_not_cover_what_was_dirty() {
    let fail_once = |dir: &Path, file: &MediaFile| {
        let _fault = inject::fail_after(inject::Operation::Sync, 0, dir);
        assert!(file.sync(DATA).is_err());
    };
    let trace = record_in(|dir| {
        let file = MediaFile::open(dir, "data", true).unwrap();
        file.write_all_at(&[1; 512], 0).unwrap();
        fail_once(dir, &file);
        file.write_all_at(&[2; 512], 512).unwrap();
        file.sync(DATA).unwrap();
    });
    assert_eq!(
        states_at_end(&trace, Rules::Sectors, sectors::<2>),
        BTreeSet::from([[0, 2], [1, 2]])
    );
    let rewritten = record_in(|dir| {
        let file = MediaFile::open(dir, "data", true).unwrap();
        file.write_all_at(&[1; 512], 0).unwrap();
        fail_once(dir, &file);
        file.write_all_at(&[1; 512], 0).unwrap();
        file.sync(DATA).unwrap();
    });
    assert_eq!(
        states_at_end(&rewritten, Rules::Sectors, sectors::<1>),
        BTreeSet::from([[1]])
    );
}

#[test]
fn a_length_that_was_pending_at_a_failed_sync_stays_uncertain() {
    let fail_and_sync = |change_again: bool| {
        record_in(|dir| {
            let file = MediaFile::open(dir, "data", true).unwrap();
            file.set_len(10_000).unwrap();
            let fault = inject::fail_after(inject::Operation::Sync, 0, dir);
            assert!(file.sync(DATA).is_err());
            drop(fault);
            if change_again {
                file.set_len(11_000).unwrap();
            }
            file.sync(DATA).unwrap();
        })
    };
    let len = |dir: &Path| std::fs::metadata(dir.join("data")).unwrap().len();
    let states = |trace| states_at_end(&trace, Rules::Sectors, len);
    assert_eq!(states(fail_and_sync(false)), BTreeSet::from([8192, 10_000]));
    assert_eq!(states(fail_and_sync(true)), BTreeSet::from([11_000]));
}

#[test]
fn nothing_lies_past_the_end_of_a_file() {
    let trace = record_file(|file| {
        file.write_all_at(&[1; 8192], 0).unwrap();
        file.sync(DATA).unwrap();
        file.set_len(100).unwrap();
    });
    let past_end = |dir: &Path| {
        let path = dir.join("data");
        let len = std::fs::metadata(&path).unwrap().len();
        std::fs::File::options()
            .write(true)
            .open(&path)
            .unwrap()
            .set_len(20_000)
            .unwrap();
        let bytes = std::fs::read(&path).unwrap();
        assert!(
            bytes[len as usize..].iter().all(|byte| *byte == 0),
            "length {len}"
        );
        len
    };
    assert_eq!(
        states_at_end(&trace, Rules::Sectors, past_end),
        BTreeSet::from([100, 8192])
    );
}
