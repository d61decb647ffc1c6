//! What a check finds: damaged heaps, pointers to nowhere, leaks, files that belong to nobody.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use durum_format::UNIT;
use durum_format::puddle::BITMAP_OFFSET;
use durum_service::{
    CheckOptions, CheckReport, Embedded, Error, FileProblem, Leak, Leaks, PoolGrant, Progress,
    PuddleKind, PuddleOwner, ReadOnlyStore, Readable, Service, Severity, Stage, check,
};

use crate::support::{
    create, heap, node, node_type, place_object, put, root, scratch, snapshot, spec, word,
};

/// A list of three nodes over two puddles: root -> second -> third.
struct List {
    store: Embedded,
    pool: PoolGrant,
    more: durum_service::PuddleGrant,
    third: u64,
}

fn list(path: &Path) -> List {
    let store = create(path);
    let pool = store.create_pool("list", &spec()).unwrap();
    let node_type = node_type();
    store
        .register_type(node_type.id(), node_type.text())
        .unwrap();
    let more = store
        .create_puddle(PuddleOwner::Pool(pool.uuid), PuddleKind::Data, UNIT)
        .unwrap();
    let third = place_object(&more, 8, node_type.id(), &node(3, 0));
    let second = place_object(&more, 4, node_type.id(), &node(2, third));
    place_object(root(&pool), 0, node_type.id(), &node(1, second));
    List {
        store,
        pool,
        more,
        third,
    }
}

fn checked(path: &Path) -> CheckReport {
    let before = snapshot(path);
    let told = Arc::new(Mutex::new(Vec::new()));
    let add = told.clone();
    let options = CheckOptions {
        leaks: Some(Arc::new(move |leak: &Leak| add.lock().unwrap().push(*leak))),
        ..CheckOptions::default()
    };
    let report = check(path, &options).unwrap();
    assert_eq!(snapshot(path), before, "a check writes nothing");
    // Leaks that are sure were told one by one, and no others.
    let told = told.lock().unwrap();
    let sum = (
        told.len() as u64,
        told.iter().map(|leak| leak.size).sum::<u64>(),
    );
    let judged = report.pools.iter().filter_map(|pool| match pool.leaks {
        Leaks::Judged { objects, bytes } => Some((objects, bytes)),
        Leaks::Unjudged { .. } => None,
    });
    let judged = judged.fold((0, 0), |sum, (objects, bytes)| {
        (sum.0 + objects, sum.1 + bytes)
    });
    assert_eq!(sum, judged);
    report
}

fn findings(report: &CheckReport, severity: Severity) -> Vec<String> {
    let findings = report.findings.iter();
    findings
        .filter(|finding| finding.severity == severity)
        .map(ToString::to_string)
        .collect()
}

#[test]
fn a_sound_store_has_no_findings() {
    let directory = scratch();
    let path = directory.path().join("store");
    let list = list(&path);
    list.store.close().unwrap();
    let report = checked(&path);
    assert!(report.findings.is_empty(), "{:?}", report.findings);
    let pool = &report.pools[0];
    assert_eq!((pool.objects, pool.bytes, pool.puddles), (3, 48, 2));
    assert!(pool.has_root);
    assert_eq!(
        pool.leaks,
        Leaks::Judged {
            objects: 0,
            bytes: 0
        }
    );
}

#[test]
fn objects_that_nothing_leads_to_are_leaks() {
    let directory = scratch();
    let path = directory.path().join("store");
    let list = list(&path);
    // Two that lead to each other and to the list.
    let id = node_type().id();
    let at = list.more.address + heap(&list.more);
    let first = place_object(&list.more, 16, id, &node(4, at + 17 * 256 + 16));
    place_object(&list.more, 17, id, &node(5, first));
    drop(list);
    let report = checked(&path);
    assert!(report.is_sound());
    assert_eq!(findings(&report, Severity::Leak).len(), 2);
    assert_eq!(
        report.pools[0].leaks,
        Leaks::Judged {
            objects: 2,
            bytes: 32
        }
    );
}

/// At each stage it ends where the caller wants no more of it, and leaves the store to others.
#[test]
fn a_check_that_nobody_wants_ends() {
    let directory = scratch();
    let path = directory.path().join("store");
    list(&path).store.close().unwrap();
    let mut stages = Vec::new();
    // Of leaks it is told at the first object, and in front of the search for cycles and behind it.
    let moments = [
        (Stage::Check, 1),
        (Stage::Pointers, 1),
        (Stage::Leaks, 1),
        (Stage::Leaks, 2),
        (Stage::Leaks, 3),
    ];
    for (wanted, times) in moments {
        let stop = Arc::new(AtomicBool::new(false));
        let told = Arc::new(Mutex::new(Vec::new()));
        let (to_stop, to_tell) = (stop.clone(), told.clone());
        let progress = move |progress: Progress| {
            let mut told = to_tell.lock().unwrap();
            told.push(progress.stage);
            let is_enough = told.iter().filter(|stage| **stage == wanted).count() == times;
            to_stop.store(is_enough, Ordering::Relaxed);
        };
        let options = CheckOptions {
            progress: Some(Arc::new(progress)),
            stop: Some(stop),
            ..CheckOptions::default()
        };
        let error = check(&path, &options).unwrap_err();
        assert!(matches!(error, Error::Stopped { .. }), "{error}");
        let told = told.lock().unwrap();
        assert_eq!(told.last(), Some(&wanted), "nothing was done behind it");
        assert_eq!(told.iter().filter(|stage| **stage == wanted).count(), times);
        stages.push(told.len());
        Embedded::open(&path, Default::default())
            .unwrap()
            .close()
            .unwrap();
    }
    assert!(stages.is_sorted(), "{stages:?}");
}

/// Of a pool with two puddles one is gone: what the other one has is counted, and not as all there is.
#[test]
fn a_pool_of_which_a_puddle_is_gone_is_readable_in_part() {
    let directory = scratch();
    let path = directory.path().join("store");
    let list = list(&path);
    let file = path.join("puddles").join(list.more.uuid.to_string());
    list.store.close().unwrap();
    assert_eq!(checked(&path).pools[0].readable, Readable::Whole);
    assert_eq!(
        ReadOnlyStore::open(&path).unwrap().lost_files().unwrap(),
        []
    );
    std::fs::remove_file(&file).unwrap();
    let report = checked(&path);
    let pool = &report.pools[0];
    assert_eq!((pool.readable, pool.objects), (Readable::Partly, 1));
    assert!(report.damaged.contains("list") && !report.can_repair);
    let lost = ReadOnlyStore::open(&path).unwrap().lost_files().unwrap();
    assert_eq!(lost.len(), 1);
    assert_eq!((lost[0].pool.as_str(), &lost[0].file), ("list", &file));
    assert_eq!(lost[0].problem, FileProblem::Missing);
}

#[test]
fn leaks_that_are_not_told_one_by_one_are_counted() {
    let directory = scratch();
    let path = directory.path().join("store");
    let list = list(&path);
    for slot in 16..16 + 130 {
        place_object(&list.more, slot, node_type().id(), &node(4, 0));
    }
    drop(list);
    let report = checked(&path);
    let leaks = findings(&report, Severity::Leak);
    assert_eq!(leaks.len(), 101);
    let last = leaks.last().unwrap();
    assert!(
        last.contains("30 more objects of 480 bytes together"),
        "{last}"
    );
    assert_eq!(
        report.pools[0].leaks,
        Leaks::Judged {
            objects: 130,
            bytes: 2080
        }
    );
}

#[test]
fn leaks_are_not_judged_where_the_root_leads_to_bytes_without_a_type() {
    let directory = scratch();
    let path = directory.path().join("store");
    let list = list(&path);
    place_object(&list.more, 16, 0, &[7; 40]);
    // Nothing leads to the bytes: they are a leak themselves.
    let report = checked_after(&path, list);
    assert_eq!(
        report.pools[0].leaks,
        Leaks::Judged {
            objects: 1,
            bytes: 40
        }
    );

    let path = directory.path().join("second");
    let list = self::list(&path);
    let bytes = place_object(&list.more, 16, 0, &[7; 40]);
    place_object(&list.more, 17, 0, &[7; 40]);
    put(
        &list.more,
        list.third - list.more.address + 8,
        &bytes.to_le_bytes(),
    );
    let report = checked_after(&path, list);
    assert!(report.is_sound());
    match &report.pools[0].leaks {
        Leaks::Unjudged {
            reason, objects, ..
        } => {
            assert!(reason.contains("without a type"), "{reason}");
            assert!(*objects > 0);
        }
        other => panic!("{other:?}"),
    }
}

fn checked_after(path: &Path, list: List) -> CheckReport {
    drop(list);
    checked(path)
}

#[test]
fn a_pointer_to_no_object_is_damage() {
    let directory = scratch();
    for (index, wrong) in [0x5000_u64, 4 << 30].into_iter().enumerate() {
        let path = directory.path().join(index.to_string());
        let list = list(&path);
        let target = list.more.address + wrong;
        put(
            &list.more,
            list.third - list.more.address + 8,
            &target.to_le_bytes(),
        );
        let file = list.more.uuid.to_string();
        let report = checked_after(&path, list);
        let found = findings(&report, Severity::Damage);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(
            found[0].contains(&file) && found[0].contains(&format!("{target:#x}")),
            "{found:?}"
        );
        assert!(found[0].contains("Node"), "{found:?}");
    }
    // An address of the program that stored it is something else in the next run.
    let path = directory.path().join("outside");
    let list = list(&path);
    put(
        &list.more,
        list.third - list.more.address + 8,
        &0x7fff_0000_1000_u64.to_le_bytes(),
    );
    let report = checked_after(&path, list);
    let found = findings(&report, Severity::Damage);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(
        found[0].contains("leads to 0x7fff00001000, out of the store"),
        "{found:?}"
    );
}

#[test]
fn damage_of_the_heap_is_found_with_its_offset() {
    let directory = scratch();
    let path = directory.path().join("store");
    let list = list(&path);
    // A bit where no extent begins.
    let bitmap = word(&list.more, BITMAP_OFFSET) | 1 << 30;
    put(&list.more, BITMAP_OFFSET, &bitmap.to_le_bytes());
    let report = checked_after(&path, list);
    let found = findings(&report, Severity::Damage);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(
        found[0].contains(&format!("{:#x}", 4096 + 30 * 256)),
        "{found:?}"
    );
    assert!(!report.is_sound());
}

#[test]
fn types_that_are_not_registered_are_told() {
    let directory = scratch();
    let path = directory.path().join("store");
    let list = list(&path);
    for granule in [16, 17] {
        place_object(&list.more, granule, 0xabcd, &[7; 24]);
    }
    let report = checked_after(&path, list);
    assert!(report.is_sound());
    let notes = findings(&report, Severity::Note);
    assert_eq!(notes.len(), 1, "{notes:?}");
    assert!(
        notes[0].contains("2 object") && notes[0].contains("abcd"),
        "{notes:?}"
    );
}

#[test]
fn files_that_nothing_names_are_told_apart() {
    let directory = scratch();
    let path = directory.path().join("store");
    let list = list(&path);
    list.store.close().unwrap();
    drop(list);
    for name in [
        "letter",
        "registry.new",
        "puddles/letter",
        "puddles/01234567-89ab-4def-8123-456789abcdef",
        "quarantine/old",
    ] {
        std::fs::write(path.join(name), "x").unwrap();
    }
    let report = checked(&path);
    assert!(report.is_sound());
    let notes = findings(&report, Severity::Note);
    assert_eq!(notes.len(), 5, "{notes:?}");
    assert_eq!(
        notes.iter().filter(|note| note.contains("orphan")).count(),
        1
    );
}

#[test]
fn damaged_records_are_findings_and_the_rest_is_still_checked() {
    let directory = scratch();
    let path = directory.path().join("store");
    let list = list(&path);
    list.store.close().unwrap();
    drop(list);
    let kept = snapshot(&path);
    for name in ["registry", "registry.copy"] {
        std::fs::write(path.join(name), "x").unwrap();
        let report = checked(&path);
        let found = findings(&report, Severity::Damage);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].contains(name), "{found:?}");
        assert_eq!(report.pools[0].objects, 3, "{name}");
        std::fs::write(path.join(name), &kept[Path::new(name)]).unwrap();
    }
    let puddle = path.join("puddles");
    let file = std::fs::read_dir(&puddle).unwrap().next().unwrap().unwrap();
    std::fs::write(file.path(), "x").unwrap();
    let report = checked(&path);
    assert!(!report.is_sound());
    assert!(report.pools[0].objects < 3);
}

#[test]
fn a_list_in_a_pool_that_was_given_back_is_still_checked() {
    let directory = scratch();
    let path = directory.path().join("store");
    let list = list(&path);
    list.store.close_pool(list.pool.uuid).unwrap();
    let report = checked_after(&path, list);
    assert_eq!(report.pools[0].objects, 3);
}
