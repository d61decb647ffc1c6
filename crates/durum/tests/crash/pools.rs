//! One transaction over two pools of a store: both change or none does.
//!
//! The crashes: between the writes to one pool's files and to the other's, on one log that names both.

use std::path::Path;
use std::thread;

use crate::support::{engine, pool_options};
use durum::{Domain, Error, Pool, Store, StoreOptions};
use durum_persist::record::{Recorder, RecorderOptions, note};
use durum_persist::simulate::{CrashPoint, Plan, Rules, explore_with_recovery};

use crate::harness::{Arena, check_structures, recover, seed};

type Values = [u64; 16];

/// The ends of both pools' roots take part, by `add` and by `set`.
fn change(first: &Pool, second: &Pool, value: u64) -> Result<(), Error> {
    let roots = [first.root::<Values>()?, second.root::<Values>()?];
    first.transaction(|tx| {
        for root in roots {
            unsafe {
                tx.add(&raw const (*root)[0])?;
                (*root)[0] = value;
                // Every second one mixes `add` and `set`.
                match value % 2 {
                    0 => tx.set(&raw mut (*root)[15], value)?,
                    _ => {
                        tx.add(&raw const (*root)[15])?;
                        (*root)[15] = value;
                    }
                }
            }
        }
        if value == 3 { tx.abort() } else { Ok(()) }
    })
}

/// What the pools hold after so many changes; the third is aborted.
fn after(changes: u64) -> u64 {
    if changes == 3 { 2 } else { changes }
}

fn judge(path: &Path, options: &StoreOptions, point: &CrashPoint<'_>) -> Result<(), String> {
    let text = |error: Error| error.to_string();
    let store = Store::open(path, options.clone()).map_err(text)?;
    let mut found = Vec::new();
    for name in ["first", "second"] {
        let pool = store.open_pool(name, pool_options()).map_err(text)?;
        let root = pool.root::<Values>().map_err(text)?;
        found.extend(unsafe { [(*root)[0], (*root)[15]] });
    }
    drop(store);
    let done = point.last_note("changes").unwrap_or(0);
    if found.iter().any(|value| *value != found[0])
        || ![after(done), after(done + 1)].contains(&found[0])
    {
        return Err(format!("after {done} changes the pools hold {found:?}"));
    }
    check_structures(path).map(|_| ())
}

fn survives(domain: Domain, rules: Rules) {
    if engine() == durum::Engine::Twin {
        return; // One pool is what its transactions have.
    }
    let arena = Arena::take();
    let dir = tempfile::tempdir_in("/dev/shm").expect("a scratch directory");
    let path = dir.path().join("store");
    let options = StoreOptions::new()
        .domain(domain)
        .base(arena.base)
        .checkpoint_thread(false);
    let store = Store::create(&path, options.clone()).expect("a store is made");
    let pools = ["first", "second"].map(|name| {
        let pool = store
            .create_pool(name, pool_options())
            .expect("a pool is made");
        pool.root::<Values>().expect("a root is made");
        pool
    });
    let recorder = Recorder::start(&path, RecorderOptions::default());
    for value in 1..=5 {
        let changed = change(&pools[0], &pools[1], value);
        assert_eq!(changed.is_ok(), value != 3, "{changed:?}");
        note("changes", value);
    }
    let trace = recorder.stop();
    drop(pools);
    drop(store);
    let mut plan = Plan::new(rules, seed(0x2));
    plan.keep_failed = std::env::var_os("DURUM_CRASH_KEEP").is_some();
    plan.single_units_max = 4;
    plan.nested_points_max = Some(10);
    let report = explore_with_recovery(
        &trace,
        &plan,
        |image| recover(image, domain),
        |image, point| {
            thread::scope(|scope| {
                let judged = scope.spawn(|| judge(image, &options, point));
                judged
                    .join()
                    .unwrap_or_else(|_| Err("the client panicked".into()))
            })
        },
    );
    match report {
        Ok(report) => println!("two pools, {rules:?}: seed {}, {report:?}", plan.seed),
        Err(failure) => panic!("two pools, {rules:?}: {failure}"),
    }
}

#[test]
fn two_pools_change_together_on_mapped_memory() {
    survives(Domain::Dax, Rules::Lines);
}

#[test]
fn two_pools_change_together_on_a_file_system() {
    survives(Domain::File, Rules::Sectors);
}
