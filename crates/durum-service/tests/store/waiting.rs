//! A pool whose file is gone waits with what was decided about its transactions; the others go on. Each step is
//! crashed.

use std::path::{Path, PathBuf};

use durum_persist::Site;
use durum_persist::file::{self, MediaFile};
use durum_persist::record::note;
use durum_persist::simulate::{CrashPoint, Plan, Report, Rules, explore_with_recovery};
use durum_service::{Embedded, Error, ReadOnlyStore, Service, check};

use crate::support::{
    Space, create, heap, open, open_options, put, recorder, root, scratch, snapshot, spec, word,
};

const PLACE: u64 = 0x10000;
const FRESH: u64 = 0x20000;
const OLD: u64 = 1;
const NEW: u64 = 2;
const WORKED: u64 = 3;
const BACK: Site = Site("the file that is put back");

/// Where the range lies that the seal is about.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Seal {
    /// In pool `a`, so that the transaction can be decided without `b`.
    InFirst,
    /// In pool `b`.
    InSecond,
}

/// A store in which a transaction over the pools `a` and `b` has just committed, and nothing of it is home but what its
/// seal is about; one over `c` was under way. The file of `b` is gone; its path and bytes are returned.
fn without_b(path: &Path, seal: Seal) -> (PathBuf, Vec<u8>) {
    let store = create(path);
    let [a, b, c] = ["a", "b", "c"].map(|name| store.create_pool(name, &spec()).unwrap());
    let mut space = Space::new(&store);
    let mut both = space.log(&store, 0xf1);
    for pool in [&a, &b] {
        put(root(pool), PLACE, &OLD.to_le_bytes());
        both.undo(root(pool).address + PLACE, &OLD.to_le_bytes());
    }
    for pool in [&a, &b] {
        both.redo(root(pool).address + PLACE, &NEW.to_le_bytes());
    }
    let sealed = match seal {
        Seal::InFirst => &a,
        Seal::InSecond => &b,
    };
    put(root(sealed), FRESH, &[7; 64]);
    both.seal(&[(root(sealed).address + FRESH, &[7; 64])]);
    let mut other = space.log(&store, 0xf2);
    other.undo(root(&c).address + PLACE, &OLD.to_le_bytes());
    put(root(&c), PLACE, &NEW.to_le_bytes());
    let file = path.join("puddles").join(root(&b).uuid.to_string());
    drop((store, a, b, c));
    let bytes = std::fs::read(&file).unwrap();
    std::fs::remove_file(&file).unwrap();
    (file, bytes)
}

fn value(store: &Embedded, pool: &str) -> Result<u64, Error> {
    let grant = store.open_pool(pool)?;
    let value = word(root(&grant), PLACE);
    store.close_pool(grant.uuid)?;
    Ok(value)
}

fn refused(store: &Embedded) -> Vec<String> {
    let refused = store.refused_pools().unwrap();
    refused.into_iter().map(|pool| pool.name).collect()
}

#[test]
fn what_was_decided_stands_when_the_file_is_back() {
    let directory = scratch();
    let path = directory.path().join("store");
    let (file, bytes) = without_b(&path, Seal::InFirst);
    let store = open(&path);
    assert_eq!(refused(&store), ["b"]);
    let pool = &store.refused_pools().unwrap()[0];
    assert_eq!((pool.transactions, pool.undecided, pool.bytes), (1, 0, 8));
    assert_eq!(pool.file, file);
    assert_eq!(value(&store, "a").unwrap(), NEW);
    assert_eq!(value(&store, "c").unwrap(), OLD);
    // The seal would not hold any more, and what it was about is somebody else's.
    let a = store.open_pool("a").unwrap();
    put(root(&a), FRESH, &[8; 64]);
    put(root(&a), PLACE, &WORKED.to_le_bytes());
    store.close_pool(a.uuid).unwrap();
    store.close().unwrap();
    drop(store);

    let reader = ReadOnlyStore::open(&path).unwrap();
    assert_eq!(reader.pending().refused.len(), 1);
    for pool in reader.pools() {
        let read = reader.puddle(pool.root_puddle);
        assert_eq!(read.is_err(), pool.name == "b", "{}", pool.name);
    }
    drop(reader);

    // Nothing can be done, so nothing is written.
    let before = snapshot(&path);
    let store = open(&path);
    assert_eq!(refused(&store), ["b"]);
    drop(store);
    assert!(snapshot(&path) == before);

    std::fs::write(&file, &bytes).unwrap();
    // Nobody has opened it since: what is kept is not applied yet.
    let report = check(&path, &Default::default()).unwrap();
    assert!(!report.is_sound());
    assert!(report.pending.refused.is_empty());
    assert!(report.kept.iter().eq(["b"]), "{:?}", report.kept);
    let told = "1 transaction (8 bytes) is kept for it; open the store";
    let mut findings = report.findings.iter();
    assert!(
        findings.any(|finding| finding.text.contains(told)),
        "{report:?}"
    );
    let store = open(&path);
    assert!(refused(&store).is_empty());
    assert_eq!(value(&store, "b").unwrap(), NEW);
    assert_eq!(
        value(&store, "a").unwrap(),
        WORKED,
        "its part is not replayed twice"
    );
    store.close().unwrap();
    drop(store);
    assert!(open(&path).recovery_report().was_clean);
    assert!(check(&path, &Default::default()).unwrap().is_sound());
}

#[test]
fn what_cannot_be_decided_makes_all_its_pools_wait() {
    let directory = scratch();
    let path = directory.path().join("store");
    let (file, bytes) = without_b(&path, Seal::InSecond);
    let name = file.file_name().unwrap().to_str().unwrap().to_owned();
    for _ in 0..2 {
        let store = open(&path);
        assert_eq!(refused(&store), ["a", "b"]);
        let error = store.open_pool("a").unwrap_err().to_string();
        assert!(
            error.contains("cannot be said") && error.contains(&name),
            "{error}"
        );
        assert!(error.contains("--give-up b`"), "{error}");
        let waits_for = store.refused_pools().unwrap();
        let waits_for = waits_for.iter().map(|pool| pool.waits_for.as_slice());
        assert_eq!(
            waits_for.collect::<Vec<_>>(),
            [&["b".to_owned()] as &[_], &[]]
        );
        // What it waits for can still be decided for it.
        let error = store.give_up("a").unwrap_err();
        assert!(
            matches!(&error, Error::PoolWaits { others, .. } if others == &["b"]),
            "{error}"
        );
        assert_eq!(refused(&store), ["a", "b"]);
        assert_eq!(value(&store, "c").unwrap(), OLD);
        store.close().unwrap();
    }
    std::fs::write(&file, &bytes).unwrap();
    let store = open(&path);
    assert!(refused(&store).is_empty());
    assert_eq!(value(&store, "a").unwrap(), NEW);
    assert_eq!(value(&store, "b").unwrap(), NEW);
}

#[test]
fn what_only_a_given_up_file_could_tell_is_undone() {
    let directory = scratch();
    let path = directory.path().join("store");
    let (file, bytes) = without_b(&path, Seal::InSecond);
    let store = open(&path);
    let undecided = &store.refused_pools().unwrap()[1];
    assert_eq!((undecided.name.as_str(), undecided.undecided), ("b", 1));
    store.give_up("b").unwrap();
    assert!(refused(&store).is_empty());
    assert_eq!(value(&store, "a").unwrap(), OLD);
    assert!(matches!(store.give_up("a"), Err(Error::NothingKept { .. })));
    store.close().unwrap();
    drop(store);
    std::fs::write(&file, &bytes).unwrap();
    let store = open(&path);
    assert!(store.recovery_report().was_clean);
    assert_eq!(value(&store, "b").unwrap(), OLD, "as the crash left it");
}

/// Addresses of a pool that waits are nobody else's.
#[test]
fn addresses_of_a_pool_that_waits_stay_taken() {
    let directory = scratch();
    let path = directory.path().join("store");
    without_b(&path, Seal::InFirst);
    let store = open(&path);
    let reader = ReadOnlyStore::open(&path).unwrap();
    let taken: Vec<u64> = reader
        .puddles()
        .iter()
        .map(|puddle| puddle.address)
        .collect();
    for number in 0..8 {
        let pool = store
            .create_pool(&format!("more {number}"), &spec())
            .unwrap();
        assert!(!taken.contains(&root(&pool).address));
    }
}

fn plan(rules: Rules) -> Plan {
    Plan {
        random_images: 2,
        single_units_max: 3,
        exhaustive_max: 6,
        nested_one_in: 30,
        nested_depth: 1,
        nested_points_max: Some(5),
        ..Plan::new(rules, 77)
    }
}

/// Crashes everywhere in `work`, recovers, puts the file back where it is not yet, and checks.
fn explore(
    seal: Seal,
    rules: Rules,
    prepare: impl FnOnce(&Path),
    work: impl FnOnce(&Path, &Path, &[u8]),
    check: impl Fn(&Path, &CrashPoint<'_>) -> Result<(), String>,
) {
    let directory = scratch();
    let path = directory.path().join("store");
    let (file, bytes) = without_b(&path, seal);
    prepare(&path);
    let recorder = recorder(directory.path(), None);
    work(&path, &file, &bytes);
    let trace = recorder.stop();
    assert_eq!(trace.bypassed(), [] as [&str; 0]);
    let name = file.file_name().unwrap().to_owned();
    let recover = |image: &Path| match Embedded::open(&image.join("store"), open_options()) {
        Ok(store) => match store.recovery_report().quarantined.is_empty() {
            true => Ok(()),
            false => Err("a crash was taken for damage".to_owned()),
        },
        Err(error) => Err(error.to_string()),
    };
    let explored = explore_with_recovery(&trace, &plan(rules), recover, |image, point| {
        let path = image.join("store");
        std::fs::write(path.join("puddles").join(&name), &bytes)
            .map_err(|error| error.to_string())?;
        check(&path, point)
    });
    match explored {
        Ok(report @ Report { images, .. }) => assert!(images > 40, "{report:?}"),
        Err(failure) => panic!("{failure}"),
    }
}

fn text(error: Error) -> String {
    error.to_string()
}

#[test]
fn waiting_survives_power_cuts_at_each_step() {
    for rules in [Rules::Sectors, Rules::Lines] {
        explore(
            Seal::InFirst,
            rules,
            |_| (),
            |path, file, bytes| {
                let store = open(path);
                let a = store.open_pool("a").unwrap();
                put(root(&a), FRESH, &[8; 64]);
                put(root(&a), PLACE, &WORKED.to_le_bytes());
                note("worked", 1);
                store.close().unwrap();
                drop(store);
                let back = MediaFile::create_new(file).unwrap();
                back.write_all_at(bytes, 0).unwrap();
                back.sync(BACK).unwrap();
                file::sync_dir(file.parent().unwrap(), BACK).unwrap();
                drop(back);
                note("back", 1);
                let store = open(path);
                note("whole", 1);
                store.close().unwrap();
            },
            |path, point| {
                if point.last_note("whole").is_some() {
                    // The file was put back by the work itself, and this one is the file of then again.
                    return Ok(());
                }
                let store = Embedded::open(path, open_options()).map_err(text)?;
                if !store.refused_pools().map_err(text)?.is_empty() {
                    return Err("a pool waits for a file that is there".to_owned());
                }
                let (a, b) = (
                    value(&store, "a").map_err(text)?,
                    value(&store, "b").map_err(text)?,
                );
                let c = value(&store, "c").map_err(text)?;
                let is_right = match point.last_note("worked") {
                    Some(_) => a == WORKED,
                    None => a == NEW || a == WORKED,
                };
                // Where recovery of `b` was retired before the crash its file was durable; the one put here is as old
                // as the crash.
                let is_retired = store.recovery_report().was_clean;
                match is_right && c == OLD && (b == NEW || is_retired) {
                    true => Ok(()),
                    false => Err(format!("a {a}, b {b}, c {c}")),
                }
            },
        );
    }
}

#[test]
fn giving_up_survives_power_cuts_at_each_step() {
    for (seal, expected) in [(Seal::InFirst, NEW), (Seal::InSecond, OLD)] {
        explore(
            seal,
            Rules::Sectors,
            |_| (),
            |path, _, _| {
                let store = open(path);
                store.give_up("b").unwrap();
                note("given up", 1);
                store.close().unwrap();
            },
            |path, point| {
                let store = Embedded::open(path, open_options()).map_err(text)?;
                if !store.refused_pools().map_err(text)?.is_empty() {
                    return Err("a pool waits for a file that is there".to_owned());
                }
                let (a, b) = (
                    value(&store, "a").map_err(text)?,
                    value(&store, "b").map_err(text)?,
                );
                let is_right = match point.last_note("given up") {
                    Some(_) => a == expected && b == OLD,
                    // Or the file was back before: then the transaction is whole.
                    None => (a == expected && b == OLD) || (a == NEW && b == NEW),
                };
                match is_right {
                    true => Ok(()),
                    false => Err(format!("a {a}, b {b}")),
                }
            },
        );
    }
}

/// A store with a damaged log of pool `a` in quarantine; the log's file there, and the byte that was damaged.
fn quarantined(path: &Path) -> PathBuf {
    let store = create(path);
    let [a, b] = ["a", "b"].map(|name| store.create_pool(name, &spec()).unwrap());
    let mut space = Space::new(&store);
    let mut log = space.log(&store, 0xf1);
    for pool in [&a, &b] {
        log.undo(root(pool).address + PLACE, &OLD.to_le_bytes());
        put(root(pool), PLACE, &NEW.to_le_bytes());
    }
    let part = &log.parts[0];
    put(
        part,
        heap(part) + 16,
        &[word(part, heap(part) + 16) as u8 ^ 0xff],
    );
    let uuid = part.uuid.to_string();
    drop((store, a, b));
    let store = open(path);
    assert_eq!(store.recovery_report().quarantined.len(), 1);
    store.close().unwrap();
    path.join("quarantine").join(uuid)
}

/// Flips the damaged byte back.
fn cure(log: &Path) {
    let mut bytes = std::fs::read(log).unwrap();
    let at = (durum_format::puddle::heap_offset(durum_format::UNIT) + 16) as usize;
    bytes[at] ^= 0xff;
    std::fs::write(log, bytes).unwrap();
}

#[test]
fn a_quarantined_log_whose_cause_is_cured_is_replayed() {
    let directory = scratch();
    let path = directory.path().join("store");
    let log = quarantined(&path);
    let store = open(&path);
    // Not cured: it comes back to where it was.
    let report = store.retry_quarantined("a").unwrap();
    assert_eq!(report.quarantined.len(), 1);
    assert!(log.is_file());
    assert!(store.open_pool("a").is_err());
    assert!(!check_closed(&path, store).is_sound());

    cure(&log);
    let store = open(&path);
    let report = store.retry_quarantined("a").unwrap();
    assert!(report.quarantined.is_empty(), "{report:?}");
    assert_eq!(report.rolled_back, 1);
    assert_eq!(value(&store, "a").unwrap(), OLD);
    assert_eq!(value(&store, "b").unwrap(), OLD);
    assert!(matches!(
        store.retry_quarantined("a"),
        Err(Error::NothingKept { .. })
    ));
    assert!(check_closed(&path, store).is_sound());
    assert!(open(&path).recovery_report().was_clean);
}

fn check_closed(path: &Path, store: Embedded) -> durum_service::CheckReport {
    store.close().unwrap();
    drop(store);
    check(path, &Default::default()).unwrap()
}

#[test]
fn a_pool_that_was_accepted_is_not_written_by_a_retry() {
    let directory = scratch();
    let path = directory.path().join("store");
    let log = quarantined(&path);
    let store = open(&path);
    store.accept_quarantined("a").unwrap();
    let a = store.open_pool("a").unwrap();
    put(root(&a), PLACE, &WORKED.to_le_bytes());
    store.close_pool(a.uuid).unwrap();
    cure(&log);
    store.retry_quarantined("b").unwrap();
    assert_eq!(value(&store, "a").unwrap(), WORKED);
    assert_eq!(value(&store, "b").unwrap(), OLD);
}

#[test]
fn trying_again_survives_power_cuts_at_each_step() {
    let directory = scratch();
    let path = directory.path().join("store");
    let log = quarantined(&path);
    cure(&log);
    let recorder = recorder(directory.path(), None);
    let store = open(&path);
    store.retry_quarantined("a").unwrap();
    note("replayed", 1);
    store.close().unwrap();
    drop(store);
    let trace = recorder.stop();
    let explored = explore_with_recovery(
        &trace,
        &plan(Rules::Sectors),
        |image| {
            let opened = Embedded::open(&image.join("store"), open_options());
            opened.map(drop).map_err(text)
        },
        |image, point| {
            let store = Embedded::open(&image.join("store"), open_options()).map_err(text)?;
            let waits = matches!(store.open_pool("a"), Err(Error::PoolQuarantined { .. }));
            if waits {
                if point.last_note("replayed").is_some() {
                    return Err("it is in quarantine again".to_owned());
                }
                store.retry_quarantined("a").map_err(text)?;
            }
            let values = ["a", "b"].map(|pool| value(&store, pool));
            match values {
                [Ok(OLD), Ok(OLD)] => Ok(()),
                [Err(Error::PoolOpen { .. }), _] => Ok(()),
                values => Err(format!("{values:?}")),
            }
        },
    );
    match explored {
        Ok(report) => assert!(report.images > 20, "{report:?}"),
        Err(failure) => panic!("{failure}"),
    }
}
