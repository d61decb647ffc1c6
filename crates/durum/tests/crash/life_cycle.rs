//! Stores and pools come, are closed, opened again, and go: through the client, from an empty directory on.
//!
//! The crashes: while the store is made (it is there as a whole or can be made anew), between the file, the
//! registration and the grant of a pool, while logs are made and named, while a store is closed, and while a pool is
//! removed.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::thread;

use crate::support::pool_options;
use durum::StoreError as ServiceError;
use durum::{Domain, Error, Pool, Store, StoreOptions};
use durum_persist::Site;
use durum_persist::record::{Recorder, RecorderOptions, Trace, note};
use durum_persist::simulate::{CrashPoint, Failure, Plan, Report, Rules, explore_with_recovery};

use crate::harness::{Arena, Medium, check_structures, recover, seed};

type Values = [u64; 16];

const CREATED: u64 = 1;
const POOL_MADE: u64 = 2;
const ROOT_MADE: u64 = 3;
const CHANGED: u64 = 4;
const CLOSED: u64 = 5;
const OPEN_AGAIN: u64 = 6;
const CHANGED_AGAIN: u64 = 7;
const SECOND_MADE: u64 = 8;
const SECOND_REMOVED: u64 = 9;
const CLOSED_AGAIN: u64 = 10;

fn change(pool: &Pool, value: u64) -> Result<(), Error> {
    let root = pool.root::<Values>()?;
    pool.transaction(|tx| unsafe {
        tx.add(&raw const (*root)[0])?;
        (*root)[0] = value;
        tx.set(&raw mut (*root)[9], value + 1)
    })
}

/// One life of a store. The notes say what has returned.
fn live(path: &Path, options: &StoreOptions) -> Result<(), Error> {
    let reached = |stage| note("stage", stage);
    let store = Store::create(path, options.clone())?;
    reached(CREATED);
    let pool = store.create_pool("first", pool_options())?;
    reached(POOL_MADE);
    pool.root::<Values>()?;
    reached(ROOT_MADE);
    change(&pool, 41)?;
    reached(CHANGED);
    drop(pool);
    drop(store);
    reached(CLOSED);
    let store = Store::open(path, options.clone())?;
    assert!(store.recovery().is_some_and(|report| report.was_clean));
    let pool = store.open_pool("first", pool_options())?;
    reached(OPEN_AGAIN);
    change(&pool, 51)?;
    reached(CHANGED_AGAIN);
    let second = store.create_pool("second", pool_options())?;
    change(&second, 61)?;
    reached(SECOND_MADE);
    drop(second);
    store.remove_pool("second")?;
    reached(SECOND_REMOVED);
    drop(pool);
    drop(store);
    reached(CLOSED_AGAIN);
    Ok(())
}

fn domain(medium: Medium) -> (Domain, Rules) {
    match medium {
        Medium::Lines => (Domain::Dax, Rules::Lines),
        Medium::Sectors => (Domain::File, Rules::Sectors),
    }
}

fn record(arena: &Arena, medium: Medium, skip: Option<Site>) -> Trace {
    let options = StoreOptions::new()
        .domain(domain(medium).0)
        .base(arena.base)
        .checkpoint_thread(false);
    let dir = tempfile::tempdir_in("/dev/shm").expect("a scratch directory");
    let path = dir.path().join("store");
    let recorder = Recorder::start(
        dir.path(),
        RecorderOptions {
            skip,
            ..RecorderOptions::default()
        },
    );
    live(&path, &options).expect("nothing goes wrong");
    recorder.stop()
}

fn explore(trace: &Trace, plan: &Plan, medium: Medium, base: u64) -> Result<Report, Failure> {
    let domain = domain(medium).0;
    explore_with_recovery(
        trace,
        plan,
        |image| match image.join("store/durum.store").exists() {
            true => recover(&image.join("store"), domain),
            false => Ok(()),
        },
        |image, point| {
            let options = StoreOptions::new().domain(domain).base(base);
            let path = image.join("store");
            thread::scope(|scope| {
                let judged = scope.spawn(|| judge(&path, &options, point));
                judged
                    .join()
                    .unwrap_or_else(|_| Err("the client panicked".into()))
            })
        },
    )
}

/// What a pool's root holds; `None` where there is no root yet.
fn value_of(pool: &Pool) -> Result<Option<(u64, u64)>, Error> {
    if pool.root_type()?.is_none() {
        return Ok(None);
    }
    let root = pool.root::<Values>()?;
    Ok(Some(unsafe { ((*root)[0], (*root)[9]) }))
}

fn judge(path: &Path, options: &StoreOptions, point: &CrashPoint<'_>) -> Result<(), String> {
    let stage = point.last_note("stage").unwrap_or(0);
    let text = |error: Error| error.to_string();
    let store = match Store::open(path, options.clone()) {
        Err(Error::Store(ServiceError::StoreMissing { .. })) if stage < CREATED => {
            live(path, options).map_err(|error| format!("cannot be made anew: {error}"))?;
            return check_structures(path).map(|_| ());
        }
        other => other.map_err(text)?,
    };
    let names: BTreeSet<String> = store
        .pools()
        .map_err(text)?
        .into_iter()
        .map(|pool| pool.name)
        .collect();
    expect(&names, "first", stage >= POOL_MADE, stage >= CREATED)?;
    let second = (CHANGED_AGAIN..SECOND_REMOVED).contains(&stage);
    expect(&names, "second", false, second)?;
    if names.contains("first") {
        let pool = store.open_pool("first", pool_options()).map_err(text)?;
        let found = value_of(&pool).map_err(text)?;
        let allowed: &[Option<(u64, u64)>] = match stage {
            ..POOL_MADE => &[None],
            POOL_MADE => &[None, Some((0, 0))],
            ROOT_MADE => &[Some((0, 0)), Some((41, 42))],
            ..OPEN_AGAIN => &[Some((41, 42))],
            OPEN_AGAIN => &[Some((41, 42)), Some((51, 52))],
            _ => &[Some((51, 52))],
        };
        if !allowed.contains(&found) {
            return Err(format!("after stage {stage} the root holds {found:?}"));
        }
        change(&pool, 71).map_err(text)?;
    }
    if names.contains("second") {
        let pool = store.open_pool("second", pool_options()).map_err(text)?;
        let found = value_of(&pool).map_err(text)?;
        let done = stage == SECOND_MADE;
        if !matches!(found, Some((61, 62))) && (done || !matches!(found, None | Some((0, 0)))) {
            return Err(format!(
                "after stage {stage} the second root holds {found:?}"
            ));
        }
    }
    let third = store.create_pool("third", pool_options()).map_err(text)?;
    change(&third, 81).map_err(text)?;
    drop(third);
    store.remove_pool("third").map_err(text)?;
    let puddles: u64 = store
        .pools()
        .map_err(text)?
        .iter()
        .map(|pool| pool.puddles)
        .sum();
    drop(store);
    // Logs went with the client, orphans at the opening, the third pool's puddle with the pool.
    let files = fs::read_dir(path.join("puddles"))
        .map_err(|error| error.to_string())?
        .count() as u64;
    if files != puddles {
        return Err(format!("{files} puddle files for {puddles} puddles"));
    }
    check_structures(path).map(|_| ())
}

fn expect(names: &BTreeSet<String>, name: &str, must: bool, may: bool) -> Result<(), String> {
    match names.contains(name) {
        false if must => Err(format!("pool {name} is gone")),
        true if !may => Err(format!("pool {name} is there")),
        _ => Ok(()),
    }
}

fn plan(medium: Medium) -> Plan {
    let mut plan = Plan::new(domain(medium).1, seed(0x11fe));
    plan.keep_failed = std::env::var_os("DURUM_CRASH_KEEP").is_some();
    plan.points_max = Some(60);
    plan.random_images = 1;
    plan.single_units_max = 3;
    plan.nested_one_in = 50;
    plan.nested_points_max = Some(8);
    plan
}

fn survives(medium: Medium, plan: &Plan) {
    let arena = Arena::take();
    let trace = record(&arena, medium, None);
    match explore(&trace, plan, medium, arena.base) {
        Ok(report) => println!(
            "life cycle, {medium:?}: seed {}, {} events, {report:?}",
            plan.seed,
            trace.events().len()
        ),
        Err(failure) => panic!("life cycle, {medium:?}: {failure}"),
    }
}

#[test]
fn a_store_lives_through_crashes_on_mapped_memory() {
    survives(Medium::Lines, &plan(Medium::Lines));
}

#[test]
fn a_store_lives_through_crashes_on_a_file_system() {
    survives(Medium::Sectors, &plan(Medium::Sectors));
}

#[test]
#[ignore = "a campaign of some minutes: every crash point of a store's life"]
fn campaign_of_lives() {
    for medium in [Medium::Lines, Medium::Sectors] {
        let mut plan = plan(medium);
        plan.points_max = None;
        plan.random_images = 4;
        plan.single_units_max = 8;
        plan.nested_one_in = 20;
        survives(medium, &plan);
    }
}

/// For canaries: the trace of a life without a site, and what crashes say about it.
pub fn without(medium: Medium, skip: Option<Site>) -> (Trace, Result<Report, Failure>) {
    let arena = Arena::take();
    let trace = record(&arena, medium, skip);
    let mut plan = plan(medium);
    plan.keep_failed = false;
    plan.nested_one_in = 0;
    plan.points_max = None;
    let explored = match skip {
        Some(_) => explore(&trace, &plan, medium, arena.base),
        None => Ok(Report::default()),
    };
    (trace, explored)
}
