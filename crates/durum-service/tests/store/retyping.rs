//! Types of a pool that change: what old ids mean is durable before anything is stored that they did not mean, and
//! everybody who reads objects goes by it.

use std::path::Path;

use durum_format::types::{Descriptor, Meanings};
use durum_persist::record::note;
use durum_persist::simulate::{CrashPoint, Rules, explore_with_recovery};
use durum_service::{
    CloneOptions, Embedded, Error, Export, ExportOptions, ImportOptions, PoolGrant, ReadOnlyStore,
    Service, Severity, check, clone_store, export, find_garbage,
};

use crate::moving::{displace, version};
use crate::support::{
    create, heap, open, open_all, open_options, place_object, put, recorder, root, sampled,
    scratch, small_type, spec, word,
};

/// A state behind the root: empty or, in the later version, one that leads to another.
fn entry(cases: &str) -> Descriptor {
    let state = format!(
        "variants \"State\"(16,8,tag 0,8){{0:\"Empty\"{{}}{cases}2:\"Of\"{{8:\"entry\":*0;}}}}\n"
    );
    Descriptor::parse(&format!(
        "struct \"Entry\"(8,8){{0:\"first\":*1;}}\n{state}"
    ))
    .unwrap()
}

fn before() -> Descriptor {
    entry("")
}

fn after() -> Descriptor {
    entry("1:\"Next\"{8:\"state\":*1;}")
}

const STATE: u64 = 8;
const LAST: u64 = 12;

/// A pool of the old version: two states, of which the root leads to the first; both are empty.
fn old_pool(path: &Path) -> (Embedded, PoolGrant) {
    let store = create(path);
    let pool = store.create_pool("states", &spec()).unwrap();
    let ty = before();
    store.register_type(ty.id(), ty.text()).unwrap();
    let state = ty.target(1).unwrap();
    let root = root(&pool);
    place_object(root, LAST, state.id(), &[0; 16]);
    let first = place_object(root, STATE, state.id(), &[0; 16]);
    place_object(root, 0, ty.id(), &first.to_le_bytes());
    (store, pool)
}

/// The new version comes.
fn change(store: &Embedded, pool: &PoolGrant) -> Meanings {
    let ty = after();
    store.register_type(ty.id(), ty.text()).unwrap();
    store
        .change_types(pool.uuid, before().id(), ty.id())
        .unwrap()
}

/// What the new version stores: the first state leads to the last.
fn store_next(pool: &PoolGrant) {
    let root = root(pool);
    let at = |granule: u64| heap(root) + granule * 256 + 16;
    let last = root.address + at(LAST);
    put(
        root,
        at(STATE),
        &[1_u64.to_le_bytes(), last.to_le_bytes()].concat(),
    );
}

/// That the first state leads to the last, wherever the pool is.
fn leads(store: &Embedded, pool: PoolGrant) {
    let puddles = open_all(store, pool);
    let at = |granule: u64| heap(&puddles[0]) + granule * 256 + 16;
    assert_eq!(word(&puddles[0], at(STATE)), 1);
    assert_eq!(
        word(&puddles[0], at(STATE) + 8),
        puddles[0].address + at(LAST)
    );
}

/// How many objects nothing leads to.
fn leaks(path: &Path) -> u64 {
    let found = find_garbage(path, &Default::default()).unwrap();
    found.pools.iter().map(|pool| pool.objects).sum()
}

#[test]
fn everybody_goes_by_what_old_ids_mean() {
    let directory = scratch();
    let path = directory.path().join("store");
    let (store, pool) = old_pool(&path);
    assert_eq!(store.meanings(pool.uuid).unwrap(), Meanings::NONE);
    let ids = change(&store, &pool);
    let old_state = before().target(1).unwrap().id();
    assert_eq!(ids.of(before().id()), after().id());
    assert_eq!(ids.of(old_state), after().target(1).unwrap().id());
    // Asked again, as a client does whose answer was lost.
    assert_eq!(change(&store, &pool), ids);
    store_next(&pool);
    store.close_pool(pool.uuid).unwrap();
    store.close().unwrap();
    drop(store);
    assert_eq!(version(&path), 4, "no older build reads it");
    assert_eq!(check(&path, &Default::default()).unwrap().findings, []);
    assert_eq!(leaks(&path), 0);

    let copy = directory.path().join("copy");
    let options = CloneOptions {
        start: Some(open(&path).info().base + (1 << 39)),
        ..CloneOptions::default()
    };
    clone_store(&path, &copy, &options).unwrap();
    let place = directory.path().join("export");
    export(&path, "states", &place, &ExportOptions::default()).unwrap();
    let other = directory.path().join("other");
    // Where the pool was, something else is.
    old_pool(&other).0.close().unwrap();
    let import = ImportOptions {
        name: Some("came".into()),
        ..ImportOptions::default()
    };
    let imported = open(&other);
    imported
        .import(&Export::open(&place).unwrap(), &import)
        .unwrap();
    for (store, name) in [
        (open(&copy), "states"),
        (imported, "came"),
        (open(&path), "states"),
    ] {
        if name == "states" {
            displace(&store).unwrap();
        }
        let pool = store.open_pool(name).unwrap();
        assert_eq!(store.meanings(pool.uuid).unwrap(), ids);
        leads(&store, pool);
        let path = store.info().path;
        store.close().unwrap();
        drop(store);
        // Nothing leads to the last state of the pool that was there before.
        let leaks = usize::from(name == "came");
        let findings = check(&path, &Default::default()).unwrap().findings;
        assert_eq!(findings.len(), leaks, "{findings:?}");
    }
}

/// What puddles of a changed pool hold is understood where they join one that was changed in the same way.
#[test]
fn puddles_join_a_pool_that_understands_them() {
    let directory = scratch();
    let [path, other] = ["store", "other"].map(|name| directory.path().join(name));
    let (store, pool) = old_pool(&path);
    change(&store, &pool);
    store_next(&pool);
    store.close().unwrap();
    drop(store);
    let place = directory.path().join("export");
    export(&path, "states", &place, &ExportOptions::default()).unwrap();
    let (store, pool) = old_pool(&other);
    let options = ImportOptions {
        into: Some("states".into()),
        ..ImportOptions::default()
    };
    store.close_pool(pool.uuid).unwrap();
    let join = || store.import(&Export::open(&place).unwrap(), &options);
    let error = join().unwrap_err().to_string();
    assert!(
        error.contains("open the pool with the newer version before"),
        "{error}"
    );
    change(&store, &store.open_pool("states").unwrap());
    store.close_pool(pool.uuid).unwrap();
    join().unwrap();
    // What has come is rewritten.
    store.finish_moving().unwrap();
    store.close().unwrap();
    drop(store);
    let report = check(&other, &Default::default()).unwrap();
    assert!(report.is_sound(), "{:?}", report.findings);
}

#[test]
fn what_does_not_follow_is_refused() {
    let directory = scratch();
    let path = directory.path().join("store");
    let (store, pool) = old_pool(&path);
    let (old, new) = (before(), after());
    let refused = |result: Result<Meanings, Error>| match result {
        Err(Error::TypeRefused { reason, .. }) => reason,
        other => panic!("{other:?}"),
    };
    let change_to = |id| store.change_types(pool.uuid, old.id(), id);
    assert!(refused(change_to(new.id())).contains("not registered"));
    let other = small_type("Other");
    store.register_type(other.id(), other.text()).unwrap();
    assert!(refused(change_to(other.id())).contains("Entry, now Other"));
    assert_eq!(store.meanings(pool.uuid).unwrap(), Meanings::NONE);
    change(&store, &pool);
    // The program before is refused from then on, whatever it says that it found.
    for found in [&old, &new] {
        let reason = refused(store.change_types(pool.uuid, found.id(), old.id()));
        assert!(reason.contains("no case 1 any more"), "{reason}");
    }
    // Who only reads changes nothing, and who has not opened it is told nothing.
    store.close_pool(pool.uuid).unwrap();
    let pool = store.read_pool("states").unwrap().uuid;
    assert!(!store.meanings(pool).unwrap().is_empty());
    let not_open = |result| matches!(result, Err(Error::PoolNotOpen { .. }));
    assert!(not_open(store.change_types(pool, old.id(), new.id())));
    store.close_pool(pool).unwrap();
    assert!(not_open(store.meanings(pool)));
}

/// What a program in C has not kept zero would be the first value of a field that comes.
#[test]
fn reserved_bytes_that_are_not_zero_are_told() {
    let directory = scratch();
    let path = directory.path().join("store");
    let store = create(&path);
    let pool = store.create_pool("rows", &spec()).unwrap();
    let text = "struct \"Row\"(16,8){0:\"n\":u64;8:\"later\":reserved(8,1);}\n";
    let ty = Descriptor::parse(text).unwrap();
    store.register_type(ty.id(), text).unwrap();
    let rows = place_object(
        root(&pool),
        0,
        ty.id(),
        &[7_u64, 0, 7, 0].map(u64::to_le_bytes).concat(),
    );
    let findings = |expected: usize| {
        let findings = check(&path, &Default::default()).unwrap().findings;
        assert_eq!(findings.len(), expected, "{findings:?}");
        findings
    };
    store.close_pool(pool.uuid).unwrap();
    store.close().unwrap();
    drop(store);
    findings(0);
    let store = open(&path);
    let pool = store.open_pool("rows").unwrap();
    put(root(&pool), rows - root(&pool).address + 31, &[1]);
    store.close_pool(pool.uuid).unwrap();
    store.close().unwrap();
    drop(store);
    let found = findings(1);
    assert_eq!(found[0].severity, Severity::Note);
    assert!(
        found[0]
            .text
            .contains("1 object(s) of type Row have reserved bytes")
    );
}

/// Without that, the object that holds the new case would be damaged: this is what the crash test below has to see.
#[test]
fn a_new_case_that_was_not_announced_is_damage() {
    let directory = scratch();
    let path = directory.path().join("store");
    let (store, pool) = old_pool(&path);
    store_next(&pool);
    store.close().unwrap();
    drop(store);
    let report = check(&path, &Default::default()).unwrap();
    assert!(report.findings[0].text.contains("does not fit its type"));
}

/// The step of a new version, with its first store behind it, or, as it must not be, before it.
fn explore_change(is_late: bool) -> Result<(), String> {
    let directory = scratch();
    let path = directory.path().join("store");
    let (store, pool) = old_pool(&path);
    store.close_pool(pool.uuid).unwrap();
    store.close().unwrap();
    drop(store);
    let recorder = recorder(directory.path(), None);
    let store = open(&path);
    let pool = store.open_pool("states").unwrap();
    if is_late {
        store_next(&pool);
    }
    let ids = change(&store, &pool);
    note("changed", 1);
    if !is_late {
        store_next(&pool);
    }
    store.close_pool(pool.uuid).unwrap();
    store.close().unwrap();
    drop(store);
    let trace = recorder.stop();
    let recover = |image: &Path| match Embedded::open(&image.join("store"), open_options()) {
        Ok(_) => Ok(()),
        Err(error) => Err(error.to_string()),
    };
    let judge = |image: &Path, point: &CrashPoint<'_>| -> Result<(), String> {
        let path = image.join("store");
        let text = |error: Error| error.to_string();
        let reader = ReadOnlyStore::open(&path).map_err(text)?;
        let pools = reader.pools();
        let found = reader.meanings_of(pools[0].uuid);
        if !(found.is_empty() && point.last_note("changed").is_none() || *found == ids) {
            return Err(format!("neither old nor new: {found:?}"));
        }
        let report = check(&path, &Default::default()).map_err(text)?;
        match report.is_sound() {
            true => Ok(()),
            false => Err(format!("{:?}", report.findings)),
        }
    };
    let plan = sampled(31);
    assert_eq!(plan.rules, Rules::Sectors);
    match explore_with_recovery(&trace, &plan, recover, judge) {
        Ok(report) => {
            assert!(report.images > 30, "{report:?}");
            Ok(())
        }
        Err(failure) => Err(failure.to_string()),
    }
}

#[test]
fn killed_at_any_point_of_the_change_types_are_old_or_new() {
    explore_change(false).unwrap();
}

/// The canary: what old ids mean is recorded behind the first store.
#[test]
fn a_change_that_is_recorded_late_is_noticed() {
    let failure = explore_change(true).unwrap_err();
    assert!(failure.contains("does not fit its type"), "{failure}");
}
