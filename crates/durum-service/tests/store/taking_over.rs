//! Sections that a client has left are completed by another one, or given up. Each step is crashed.

use std::path::Path;

use durum_persist::Site;
use durum_persist::record::note;
use durum_persist::simulate::{CrashPoint, Failure, Plan, Report, Rules, explore_with_recovery};
use durum_service::{Embedded, Error, Host, ReadOnlyStore, Service, check};

use crate::sections::{
    DONE, Left, OLD, PLACE, TORN, files, host_lists_nothing, left, names, record, sections_of,
};
use crate::support::{Space, open, open_options, put, recorder, root, scratch, spec, word};

/// Does what a program would do that completes the sections: changes the pool, and says that it is done.
fn complete(store: &Embedded, left: &Left) {
    let taken = store.take_over(left.client).unwrap();
    let pools: Vec<&str> = taken.pools.iter().map(|pool| pool.name.as_str()).collect();
    assert_eq!(pools, ["a", "b"]);
    assert_eq!(taken.pools[0].root.address + PLACE, left.word);
    assert_eq!(word(&taken.pools[0].root, PLACE), OLD);
    note("taken over", 1);
    put(&taken.pools[0].root, PLACE, &DONE.to_le_bytes());
    note("changed", 1);
    record(&taken.puddles[0], left.client, 2, 2, false);
    note("completed", 1);
    store.sections_done(left.client).unwrap();
    note("done", 1);
}

#[test]
fn who_takes_over_completes_the_sections_and_keeps_the_pools() {
    let directory = scratch();
    let path = directory.path().join("store");
    let left = left(&path, true);
    let host = Host::open(&path, open_options()).unwrap();
    let [one, other] = [(); 2].map(|()| host.client().unwrap());
    assert!(matches!(
        one.take_over(one.id()),
        Err(Error::PuddleRefused { .. })
    ));
    assert!(matches!(
        one.sections_done(left.client),
        Err(Error::PuddleRefused { .. })
    ));
    let taken = one.take_over(left.client).unwrap();
    // Nobody else may, and nobody decides otherwise meanwhile.
    assert!(matches!(
        other.take_over(left.client),
        Err(Error::PoolBusy { .. })
    ));
    assert!(matches!(
        one.take_over(left.client),
        Err(Error::PoolOpen { .. })
    ));
    assert!(matches!(
        other.abandon_sections("a"),
        Err(Error::PoolBusy { .. })
    ));
    assert!(matches!(
        other.open_pool("a"),
        Err(Error::PoolInterrupted { .. })
    ));
    assert!(matches!(
        other.sections_done(left.client),
        Err(Error::PuddleRefused { .. })
    ));
    assert!(matches!(
        host.recover_client(left.client),
        Err(Error::PoolBusy { .. })
    ));
    let early = one.sections_done(left.client).unwrap_err();
    assert!(
        matches!(early, Error::PoolInterrupted { sections: 1, .. }),
        "{early}"
    );
    record(&taken.puddles[0], left.client, 2, 2, false);
    // Who decides about another pool recovers all that are gone, but not what is being completed.
    let third = host.client().unwrap();
    third.create_pool("d", &spec()).unwrap();
    record(&sections_of(&third), third.id(), 0, 1, true);
    let gone = third.id();
    drop(third);
    host.recover_client(gone).unwrap();
    assert_eq!(files(&path), 6);
    assert_eq!(other.abandon_sections("d").unwrap(), [""; 0]);
    assert_eq!(other.interrupted().unwrap().len(), 1);
    other.remove_pool("d").unwrap();
    assert_eq!(files(&path), 4);
    one.sections_done(left.client).unwrap();
    assert_eq!(files(&path), 3);
    assert!(host_lists_nothing(&other));
    assert!(matches!(other.open_pool("a"), Err(Error::PoolBusy { .. })));
    for pool in &taken.pools {
        one.close_pool(pool.uuid).unwrap();
    }
    assert_eq!(names(&other), ["a", "b", "c"]);
    one.close().unwrap();
    other.close().unwrap();
    host.close().unwrap();
    assert!(ReadOnlyStore::open(&path).unwrap().is_clean());
}

#[test]
fn who_takes_over_and_ends_leaves_all_to_the_next_one() {
    for is_killed in [false, true] {
        let directory = scratch();
        let path = directory.path().join("store");
        let left = left(&path, true);
        let store = open(&path);
        let taken = store.take_over(left.client).unwrap();
        // A transaction of its own is under way: it is undone, what was done besides stays.
        let mut log = Space::new(&store).log(&store, 0xf2);
        log.undo(taken.pools[1].root.address + PLACE, &OLD.to_le_bytes());
        put(&taken.pools[1].root, PLACE, &TORN.to_le_bytes());
        put(&taken.pools[0].root, PLACE, &DONE.to_le_bytes());
        if !is_killed {
            put(&taken.pools[1].root, PLACE, &OLD.to_le_bytes());
            store.close().unwrap();
        }
        drop((store, taken, log));
        let store = open(&path);
        assert_eq!(names(&store), ["c"]);
        let taken = store.take_over(left.client).unwrap();
        assert_eq!(word(&taken.pools[1].root, PLACE), OLD);
        assert_eq!(
            word(&taken.pools[0].root, PLACE),
            DONE,
            "the log of before is not replayed again"
        );
        record(&taken.puddles[0], left.client, 2, 2, false);
        store.sections_done(left.client).unwrap();
        store.close().unwrap();
        drop(store);
        assert_eq!(names(&open(&path)), ["a", "b", "c"]);
    }
}

fn text(error: Error) -> String {
    error.to_string()
}

fn plan(seed: u64) -> Plan {
    Plan {
        random_images: 2,
        single_units_max: 3,
        nested_one_in: 40,
        nested_depth: 1,
        nested_points_max: Some(4),
        ..Plan::new(Rules::Sectors, seed)
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

/// Recovers a store with a section under way, takes the section over, completes it, all of it recorded.
fn explore_completion(skip: Option<Site>) -> Result<Report, Failure> {
    let directory = scratch();
    let path = directory.path().join("store");
    let left = left(&path, true);
    let recorder = recorder(directory.path(), skip);
    let store = open(&path);
    note("recovered", 1);
    complete(&store, &left);
    store.close().unwrap();
    drop(store);
    let trace = recorder.stop();
    assert_eq!(trace.bypassed(), [] as [&str; 0]);
    let recover = |image: &Path| {
        Embedded::open(&image.join("store"), open_options())
            .map(drop)
            .map_err(text)
    };
    explore_with_recovery(&trace, &plan(77), recover, |image, point| {
        completed(&image.join("store"), point, &left)
    })
}

fn completed(path: &Path, point: &CrashPoint<'_>, left: &Left) -> Result<(), String> {
    let noted = |name: &str| point.last_note(name).is_some();
    let store = Embedded::open(path, open_options()).map_err(text)?;
    drop(store.open_pool("c").map_err(text)?);
    match store.open_pool("a") {
        Ok(grant) => {
            // Nobody gets the pool before the section has ended.
            match word(root(&grant), PLACE) {
                DONE => Ok(()),
                value => Err(format!("the section was dropped: {value}")),
            }
        }
        Err(Error::PoolInterrupted { .. }) if !noted("done") => {
            let taken = store.take_over(left.client).map_err(text)?;
            let value = word(&taken.pools[0].root, PLACE);
            let is_right = match noted("changed") {
                true => value == DONE,
                false => value == OLD || (noted("taken over") && value == DONE),
            };
            if !is_right {
                return Err(format!(
                    "the log was replayed over it, or not at all: {value}"
                ));
            }
            put(&taken.pools[0].root, PLACE, &DONE.to_le_bytes());
            record(&taken.puddles[0], left.client, 2, 2, false);
            store.sections_done(left.client).map_err(text)?;
            store.close().map_err(text)?;
            drop(store);
            match check(path, &Default::default()).map_err(text)? {
                report if report.findings.is_empty() => Ok(()),
                report => Err(format!("{:?}", report.findings)),
            }
        }
        Err(error) => Err(error.to_string()),
    }
}

#[test]
fn completion_survives_power_cuts_again_and_again() {
    report("completion", explore_completion(None));
}

/// Each sync on which completion relies, left out: the exploration must notice.
#[test]
fn a_sync_that_completion_needs_is_missed() {
    for site in ["registry commit", "recovered data"] {
        assert!(explore_completion(Some(Site(site))).is_err(), "{site}");
    }
}

#[test]
fn abandoning_survives_power_cuts() {
    let directory = scratch();
    let path = directory.path().join("store");
    left(&path, true);
    let recorder = recorder(directory.path(), None);
    let store = open(&path);
    store.abandon_sections("a").unwrap();
    note("a", 1);
    store.abandon_sections("b").unwrap();
    note("b", 1);
    store.close().unwrap();
    drop(store);
    let trace = recorder.stop();
    let recover = |image: &Path| {
        Embedded::open(&image.join("store"), open_options())
            .map(drop)
            .map_err(text)
    };
    let explored = explore_with_recovery(&trace, &plan(78), recover, |image, point| {
        let store = Embedded::open(&image.join("store"), open_options()).map_err(text)?;
        for name in ["a", "b"] {
            match store.open_pool(name) {
                Ok(grant) if name == "a" && word(root(&grant), PLACE) != OLD => {
                    return Err("its log was not replayed".to_owned());
                }
                Ok(_) => {}
                Err(Error::PoolInterrupted { .. }) if point.last_note(name).is_none() => {}
                Err(error) => return Err(error.to_string()),
            }
        }
        Ok(())
    });
    report("abandoning", explored);
}
