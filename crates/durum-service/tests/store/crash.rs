//! Power cuts at every event of what the service writes: creation, pools and puddles, removal, close, and
//! recovery, which is itself crashed again. What was acknowledged is there, what was removed is gone, nothing is
//! left over, readers never miss what a client holds.

use std::collections::BTreeSet;
use std::path::Path;

use durum_format::UNIT;
use durum_persist::Site;
use durum_persist::record::{EventKind, note};
use durum_persist::simulate::{
    CrashPoint, Failure, Plan, Report, Rules, explore, explore_with_recovery,
};
use durum_service::{
    CloneOptions, Embedded, Error, PuddleKind, PuddleOwner, ReadOnlyStore, Service, check,
    clone_store, repair,
};

use crate::recovery::{assert_recovered, interrupted};
use crate::support::{
    Space, create, create_options, large_type, node_type, open, open_options, place_object, put,
    recorder, root, scratch, spec, word,
};
use crate::unregistered::{explore_aside, explore_gone};

fn plan(rules: Rules, seed: u64) -> Plan {
    Plan {
        random_images: 2,
        single_units_max: 3,
        exhaustive_max: 8,
        nested_one_in: 40,
        nested_depth: 1,
        nested_points_max: Some(6),
        ..Plan::new(rules, seed)
    }
}

fn report(what: &str, result: Result<Report, Failure>) {
    match result {
        Ok(report) => {
            println!("{what}: {report:?}");
            assert!(report.images > 30, "{report:?}");
        }
        Err(failure) => panic!("{what}: {failure}"),
    }
}

fn text(error: Error) -> String {
    error.to_string()
}

/// The life of a store. Each acknowledged step is noted.
fn life(path: &Path) {
    let store = create(path);
    note("made", 1);
    let a = store.create_pool("a", &spec()).unwrap();
    note("pool a", 1);
    let extra = store
        .create_puddle(PuddleOwner::Pool(a.uuid), PuddleKind::Data, 2 * UNIT)
        .unwrap();
    note("puddles of a", 2);
    let node = node_type();
    store.register_type(node.id(), node.text()).unwrap();
    note("types", 1);
    let mut space = Space::new(&store);
    let log = space.log(&store, 0x77);
    note("log", 1);
    store.create_pool("b", &spec()).unwrap();
    note("pool b", 1);
    store.remove_puddle(extra.uuid).unwrap();
    note("puddles of a", 1);
    let b = store.pools().unwrap()[1].uuid;
    store.close_pool(b).unwrap();
    store.remove_pool("b").unwrap();
    note("pool b", 0);
    store.close().unwrap();
    note("closed", 1);
    drop((store, log));
}

/// Before recovery: readers see what was acknowledged, though it may be one step ahead.
fn readers_agree(path: &Path, point: &CrashPoint<'_>) -> Result<(), String> {
    if point.last_note("made").is_none() {
        return Ok(());
    }
    let reader = ReadOnlyStore::open(path).map_err(text)?;
    let names: BTreeSet<String> = reader.pools().into_iter().map(|pool| pool.name).collect();
    if point.last_note("pool a") == Some(1) && !names.contains("a") {
        return Err("readers do not see pool a".to_owned());
    }
    if point.last_note("pool b") == Some(0) && names.contains("b") {
        return Err("readers still see pool b".to_owned());
    }
    // Whatever the registry names can be read.
    for puddle in reader.puddles() {
        match reader.puddle(puddle.uuid) {
            Ok(_) => {}
            // A file goes after the registry has durably forgotten it.
            Err(error) => {
                return Err(format!(
                    "the registry names a puddle without a file: {error}"
                ));
            }
        }
    }
    let report = check(path, &Default::default()).map_err(text)?;
    match report.is_sound() {
        true => Ok(()),
        false => Err(format!("{:?}", report.findings)),
    }
}

/// Recovery: opening. A store that was not yet made can be made.
fn recover_life(path: &Path) -> Result<(), String> {
    match Embedded::open(path, open_options()) {
        Ok(_) => Ok(()),
        Err(Error::StoreMissing { .. }) => Ok(()),
        Err(error) => Err(error.to_string()),
    }
}

fn check_life(path: &Path, point: &CrashPoint<'_>) -> Result<(), String> {
    let noted = |name: &str| point.last_note(name);
    if noted("made").is_none() && !path.join("durum.store").exists() {
        drop(Embedded::create(path, &create_options()).map_err(text)?);
    }
    let store = Embedded::open(path, open_options()).map_err(text)?;
    if !store.recovery_report().quarantined.is_empty() {
        return Err("a crash was taken for damage".to_owned());
    }
    let pools = store.pools().map_err(text)?;
    let has = |name: &str| pools.iter().any(|pool| pool.name == name);
    if noted("pool a") == Some(1) && !has("a") {
        return Err("pool a was acknowledged and is gone".to_owned());
    }
    if noted("closed").is_some() && has("b") {
        return Err("pool b was removed and is there".to_owned());
    }
    if noted("types") == Some(1) && store.types().map_err(text)?.is_empty() {
        return Err("a type was acknowledged and is gone".to_owned());
    }
    let mut named = 0;
    for pool in &pools {
        let grant = store.open_pool(&pool.name).map_err(text)?;
        named += 1 + grant.others.len();
        if pool.name == "a" {
            let fewest = if noted("pool b").is_some() {
                1
            } else {
                noted("puddles of a").unwrap_or(1)
            };
            if (1 + grant.others.len() as u64) < fewest {
                return Err("a puddle of pool a is gone".to_owned());
            }
        }
    }
    let files = std::fs::read_dir(path.join("puddles")).map_err(|error| error.to_string())?;
    if files.count() != named {
        return Err("files are left over".to_owned());
    }
    store.close().map_err(text)?;
    drop(store);
    let report = check(path, &Default::default()).map_err(text)?;
    match report.findings.as_slice() {
        [] => Ok(()),
        findings => Err(format!("{findings:?}")),
    }
}

fn explore_life(rules: Rules, skip: Option<Site>, plan: &Plan) -> Result<Report, Failure> {
    let directory = scratch();
    let recorder = recorder(directory.path(), skip);
    life(&directory.path().join("store"));
    let trace = recorder.stop();
    assert_eq!(trace.bypassed(), [] as [&str; 0], "{rules:?}");
    // Readers come before recovery, so they are checked in a pass of their own.
    explore(&trace, plan, |image, point| {
        readers_agree(&image.join("store"), point)
    })?;
    explore_with_recovery(
        &trace,
        plan,
        |image| recover_life(&image.join("store")),
        |image, point| check_life(&image.join("store"), point),
    )
}

#[test]
fn the_life_of_a_store_survives_power_cuts_on_a_disk() {
    let plan = plan(Rules::Sectors, 11);
    report("life, sectors", explore_life(plan.rules, None, &plan));
}

#[test]
fn the_life_of_a_store_survives_power_cuts_on_persistent_memory() {
    let plan = plan(Rules::Lines, 12);
    report("life, lines", explore_life(plan.rules, None, &plan));
}

/// Commits that are folded into new snapshots, as one of a hundred is: here types are large, and two fill the room.
fn folds(path: &Path) {
    let store = create(path);
    note("types", 0);
    let pool = store.create_pool("b", &spec()).unwrap();
    store.close_pool(pool.uuid).unwrap();
    store.remove_pool("b").unwrap();
    for number in 1..=4 {
        let large = large_type(&format!("T{number}"));
        store.register_type(large.id(), large.text()).unwrap();
        note("types", number);
    }
    store.close().unwrap();
    note("closed", 1);
    drop(store);
}

fn explore_folds(skip: Option<Site>, plan: &Plan) -> Result<Report, Failure> {
    let directory = scratch();
    let recorder = recorder(directory.path(), skip);
    folds(&directory.path().join("store"));
    let trace = recorder.stop();
    let seen = |reader: &ReadOnlyStore, point: &CrashPoint<'_>| {
        let types = reader.types().count() as u64;
        match point.last_note("types") {
            Some(noted) if types < noted || types > noted + 1 => {
                Err(format!("{types} types, {noted} were acknowledged"))
            }
            _ => Ok(()),
        }
    };
    explore(&trace, plan, |image, point| {
        let path = image.join("store");
        if point.last_note("types").is_none() {
            return Ok(());
        }
        seen(&ReadOnlyStore::open(&path).map_err(text)?, point)?;
        let report = check(&path, &Default::default()).map_err(text)?;
        let of_copy = |name: &std::ffi::OsStr| name == "registry.copy";
        let mut files = report.findings.iter().map(|finding| &finding.file);
        let is_behind = files.any(|file| file.file_name().is_some_and(of_copy));
        match report.is_sound() && !(is_behind && point.last_note("closed").is_some()) {
            true => Ok(()),
            false => Err(format!("{:?}", report.findings)),
        }
    })?;
    explore_with_recovery(
        &trace,
        plan,
        |image| recover_life(&image.join("store")),
        |image, point| {
            let path = image.join("store");
            if point.last_note("types").is_none() {
                return Ok(());
            }
            let store = Embedded::open(&path, open_options()).map_err(text)?;
            store.close().map_err(text)?;
            drop(store);
            seen(&ReadOnlyStore::open(&path).map_err(text)?, point)?;
            let report = check(&path, &Default::default()).map_err(text)?;
            match report.findings.as_slice() {
                [] => Ok(()),
                findings => Err(format!("{findings:?}")),
            }
        },
    )
}

#[test]
fn snapshots_that_take_the_place_of_others_survive_power_cuts() {
    for rules in [Rules::Sectors, Rules::Lines] {
        let mut plan = plan(rules, 15);
        // A snapshot is large, and so is each image.
        plan.points_max = match std::env::var_os("DURUM_CRASH_ALL") {
            Some(_) => None,
            None => Some(8),
        };
        report("folds", explore_folds(None, &plan));
    }
}

/// Recovers a store; where in the trace each file was synced for this reason, and where data was first written.
fn recovered(path: &Path, wanted: &'static str) -> (Vec<usize>, usize) {
    let recorder = recorder(path.parent().unwrap(), None);
    drop(open(path));
    let trace = recorder.stop();
    let events = trace.events();
    let synced = |wanted: &'static str| {
        events
            .iter()
            .enumerate()
            .filter_map(move |(at, event)| match event.kind {
                EventKind::Synced { file, site, .. } if site.0 == wanted => Some((at, file)),
                _ => None,
            })
    };
    let homes: BTreeSet<_> = synced("recovered data").map(|(_, file)| file).collect();
    assert!(!homes.is_empty());
    let first_write = events.iter().position(
        |event| matches!(event.kind, EventKind::Written { file, .. } if homes.contains(&file)),
    );
    let of_wanted = synced(wanted).map(|(at, _)| at).collect();
    (of_wanted, first_write.expect("data is written"))
}

#[test]
fn logs_are_durable_before_they_are_replayed() {
    let directory = scratch();
    let path = directory.path().join("store");
    interrupted(&path);
    let (logs, first_write) = recovered(&path, "logs that are replayed");
    assert!(*logs.last().expect("logs are synced") < first_write);
}

/// A client that was killed may have left a registry that no sync made durable: a power cut takes it back, and with it
/// whose the puddles are that recovery has written by then.
#[test]
fn the_registry_is_durable_before_data_is_recovered_as_it_says() {
    let directory = scratch();
    let path = directory.path().join("store");
    interrupted(&path);
    // The copy has what was durable in the registry. Without it nobody knows.
    std::fs::remove_file(path.join("registry.copy")).unwrap();
    let (commits, first_write) = recovered(&path, "registry commit");
    assert!(*commits.first().expect("the registry is synced") < first_write);
}

fn explore_recovery(skip: Option<Site>, plan: &Plan) -> Result<Report, Failure> {
    let directory = scratch();
    let path = directory.path().join("store");
    interrupted(&path);
    let recorder = recorder(directory.path(), skip);
    let store = open(&path);
    note("recovered", 1);
    store.close().unwrap();
    drop(store);
    let trace = recorder.stop();
    assert_eq!(trace.bypassed(), [] as [&str; 0]);
    explore(&trace, plan, |image, _| {
        // A reader sees the recovered words whether the logs are still there or not.
        let reader = ReadOnlyStore::open(&image.join("store")).map_err(text)?;
        let root = reader.pools()[0].root_puddle;
        let bytes = reader.puddle_bytes(root).map_err(text)?;
        assert_recovered(|offset| {
            let at = offset as usize;
            u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap())
        })
    })?;
    explore_with_recovery(
        &trace,
        plan,
        |image| {
            Embedded::open(&image.join("store"), open_options())
                .map(drop)
                .map_err(text)
        },
        |image, point| {
            let path = image.join("store");
            let store = Embedded::open(&path, open_options()).map_err(text)?;
            let pool = store.open_pool("words").map_err(text)?;
            assert_recovered(|offset| word(root(&pool), offset))?;
            let files =
                std::fs::read_dir(path.join("puddles")).map_err(|error| error.to_string())?;
            if files.count() != 1 {
                return Err("logs are left over".to_owned());
            }
            let _ = point;
            Ok(())
        },
    )
}

#[test]
fn recovery_survives_power_cuts_again_and_again() {
    for rules in [Rules::Sectors, Rules::Lines] {
        let plan = Plan {
            nested_depth: 2,
            ..plan(rules, 21)
        };
        report("recovery", explore_recovery(None, &plan));
    }
}

fn explore_quarantine(skip: Option<Site>, plan: &Plan) -> Result<Report, Failure> {
    let directory = scratch();
    let path = directory.path().join("store");
    let store = create(&path);
    let pool = store.create_pool("a", &spec()).unwrap();
    let log = Space::new(&store).log(&store, 5);
    let part = &log.parts[0];
    put(part, crate::support::heap(part) + 16, &[0xff]);
    let uuid = part.uuid.to_string();
    drop((store, pool));
    let recorder = recorder(directory.path(), skip);
    let store = open(&path);
    store.accept_quarantined("a").unwrap();
    note("accepted", 1);
    store.close().unwrap();
    drop(store);
    let trace = recorder.stop();
    explore_with_recovery(
        &trace,
        plan,
        |image| {
            Embedded::open(&image.join("store"), open_options())
                .map(drop)
                .map_err(text)
        },
        |image, point| {
            let path = image.join("store");
            if !path.join("quarantine").join(&uuid).is_file() {
                return Err("the quarantined log is gone".to_owned());
            }
            let store = Embedded::open(&path, open_options()).map_err(text)?;
            match (store.open_pool("a"), point.last_note("accepted")) {
                (Ok(_) | Err(Error::PoolQuarantined { .. }), None) | (Ok(_), Some(_)) => Ok(()),
                (Err(error), _) => Err(error.to_string()),
            }
        },
    )
}

#[test]
fn a_quarantined_log_is_never_lost() {
    let plan = plan(Rules::Sectors, 31);
    report("quarantine", explore_quarantine(None, &plan));
}

fn explore_clone(skip: Option<Site>, plan: &Plan) -> Result<Report, Failure> {
    let directory = scratch();
    let path = directory.path().join("store");
    let node = node_type();
    let store = create(&path);
    let pool = store.create_pool("a", &spec()).unwrap();
    store.register_type(node.id(), node.text()).unwrap();
    let bytes = crate::support::node(1, root(&pool).address + 4096 + 16);
    assert_eq!(
        place_object(root(&pool), 0, node.id(), &bytes),
        root(&pool).address + 4096 + 16
    );
    store.close().unwrap();
    drop(store);
    let recorder = recorder(directory.path(), skip);
    clone_store(
        &path,
        &directory.path().join("copy"),
        &CloneOptions::default(),
    )
    .unwrap();
    note("cloned", 1);
    let trace = recorder.stop();
    explore(&trace, plan, |image, point| {
        let source = check(&image.join("store"), &Default::default()).map_err(text)?;
        let copy = image.join("copy");
        if !copy.exists() {
            return match point.last_note("cloned") {
                None => Ok(()),
                Some(_) => Err("the clone is gone".to_owned()),
            };
        }
        let report = check(&copy, &Default::default()).map_err(text)?;
        let whole = report.is_sound() && report.pools.len() == 1 && report.pools[0].objects == 1;
        match source.is_sound() && whole {
            true => Ok(()),
            false => Err(format!("{report:?}")),
        }
    })
}

#[test]
fn a_clone_appears_whole_or_not_at_all() {
    let plan = plan(Rules::Sectors, 41);
    report("clone", explore_clone(None, &plan));
}

fn explore_repair(skip: Option<Site>, plan: &Plan) -> Result<Report, Failure> {
    let directory = scratch();
    let path = directory.path().join("store");
    create(&path).create_pool("a", &spec()).unwrap();
    open(&path).close().unwrap();
    let registry = path.join("registry");
    let mut bytes = std::fs::read(&registry).unwrap();
    bytes[..9].fill(0);
    std::fs::write(&registry, bytes).unwrap();
    std::fs::write(path.join("durum.store"), "").unwrap();
    let recorder = recorder(directory.path(), skip);
    repair(&path).unwrap();
    note("repaired", 1);
    let trace = recorder.stop();
    explore(&trace, plan, |image, point| {
        let path = image.join("store");
        if point.last_note("repaired").is_none() {
            repair(&path).map_err(text)?;
        }
        if std::fs::read(path.join("registry.damaged")).is_ok_and(|kept| !kept.ends_with(&[0; 512]))
        {
            return Err("the damaged registry was not kept as it was".to_owned());
        }
        let store = Embedded::open(&path, open_options()).map_err(text)?;
        store.open_pool("a").map(drop).map_err(text)
    })
}

#[test]
fn a_repair_can_be_interrupted_and_begun_anew() {
    let plan = Plan {
        random_images: 8,
        ..plan(Rules::Sectors, 61)
    };
    report("repair", explore_repair(None, &plan));
}

/// Beside the others. `make test` leaves them to ci/campaigns.sh.
mod canaries {
    use super::*;

    /// Each sync of the service, left out: the exploration that must notice.
    #[test]
    fn every_sync_is_missed_when_it_is_left_out() {
        type Explore = fn(Option<Site>, &Plan) -> Result<Report, Failure>;
        let life: Explore = |skip, plan| explore_life(plan.rules, skip, plan);
        let sites: [(&str, Explore); 19] = [
            ("new puddle", life),
            ("new puddle's name", life),
            ("registry commit", life),
            ("registry snapshot", explore_folds),
            ("registry's name", explore_folds),
            ("copy's snapshot", explore_folds),
            ("copy's name", explore_folds),
            ("registry's copy", explore_folds),
            ("store identity", life),
            ("store identity's name", life),
            ("new store's mark", life),
            ("new store's name", life),
            ("recovered data", explore_recovery),
            ("quarantined log", explore_quarantine),
            ("new puddle's name", explore_gone),
            ("cloned puddle", explore_clone),
            ("clone's place", explore_clone),
            ("rebuilt registry", explore_repair),
            ("puddles moved aside", explore_aside),
        ];
        let quick = Plan {
            nested_one_in: 0,
            ..plan(Rules::Sectors, 51)
        };
        let unnoticed: Vec<&str> = sites
            .iter()
            .filter(|(site, explore)| explore(Some(Site(site)), &quick).is_ok())
            .map(|(site, _)| *site)
            .collect();
        assert_eq!(unnoticed, [] as [&str; 0]);
    }
}
