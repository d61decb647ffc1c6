//! Snapshots of pools whose threads go on: what is exported is what was there after some commit of each thread, and no
//! other's later one without it.

#![allow(
    clippy::undocumented_unsafe_blocks,
    reason = "tests use pools as programs do: their objects are live, and theirs alone"
)]

mod calls;
mod crashes;
mod hooks;
mod measures;
#[path = "../crash/harness/random.rs"]
#[allow(dead_code, reason = "no test needs all of it")]
mod random;
#[path = "../support/mod.rs"]
mod support;
mod workers;

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::thread;
use std::time::Duration;

use durum::{
    Domain, Engine, ImportOptions, Pool, PoolOptions, SnapshotOptions, Store, StoreOptions,
    TwinMode,
};
use random::Random;
use workers::{Model, Root, THREADS, Worker};

/// Each engine on mapped memory and on files.
const EVERYWHERE: [(Engine, TwinMode, Domain); 7] = [
    (Engine::Shadow, TwinMode::Log, Domain::Dram),
    (Engine::Shadow, TwinMode::Log, Domain::File),
    (Engine::Hybrid, TwinMode::Log, Domain::Dram),
    (Engine::Hybrid, TwinMode::Log, Domain::File),
    (Engine::Twin, TwinMode::Log, Domain::Dram),
    (Engine::Twin, TwinMode::LeftRight, Domain::Dram),
    (Engine::Twin, TwinMode::Log, Domain::File),
];

/// Some tests have the process leave out a step.
static STEPS: RwLock<()> = RwLock::new(());

fn beside_others() -> RwLockReadGuard<'static, ()> {
    STEPS
        .read()
        .unwrap_or_else(|poisoned| poisoned.into_inner())
}

fn alone() -> RwLockWriteGuard<'static, ()> {
    STEPS
        .write()
        .unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// What a snapshot's export holds has to be what some transactions have made, in an order that they allow.
struct Verifier {
    models: Vec<Model>,
    store: Store,
}

impl Verifier {
    fn new(dir: &Path, seed: u64, domain: Domain) -> Self {
        let options = StoreOptions::new()
            .domain(domain)
            .untyped_hold_no_pointers(true);
        Self {
            models: (0..THREADS)
                .map(|thread| Model::new(seed, thread))
                .collect(),
            store: Store::create(dir.join("verified"), options).unwrap(),
        }
    }

    /// `before` is what each thread had committed when the snapshot was begun, `after` when it was over.
    fn check(&mut self, export: &Path, before: &[u64], after: &[u64]) {
        let options = ImportOptions {
            untyped_hold_no_pointers: true,
            ..ImportOptions::default()
        };
        let report = self.store.import(export, &options).unwrap();
        let name = &report.pools[0];
        let pool = self.store.open_pool(name, PoolOptions::new()).unwrap();
        let root = unsafe { &*pool.root::<Root>().unwrap() };
        for thread in 0..THREADS {
            let shown = root.counts[thread];
            // A commit may have been through before its thread said so.
            let range = before[thread]..=after[thread] + 1;
            assert!(range.contains(&shown), "{shown} of {range:?}");
            for (other, seen) in root.seen[thread].iter().enumerate() {
                assert!(*seen <= root.counts[other], "{thread} came after {other}");
            }
            self.models[thread].advance_to(shown);
            self.models[thread].is_in(root);
        }
        drop(pool);
        self.store.remove_pool(name).unwrap();
    }
}

fn snapshots(engine: Engine, mode: TwinMode, domain: Domain, seed: u64, rounds: u32) {
    let _beside = beside_others();
    let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    let options = StoreOptions::new().domain(domain);
    let store = Store::create(dir.path().join("store"), options).unwrap();
    let options = PoolOptions::new()
        .engine(engine)
        .twin_mode(mode)
        .growth_max(2 << 20)
        .spare_max(0);
    let pool = store.create_pool("pool", options).unwrap();
    pool.root::<Root>().unwrap();
    let workers: Vec<Worker> = (0..THREADS)
        .map(|thread| Worker::new(seed, thread))
        .collect();
    let mut verifier = Verifier::new(dir.path(), seed, domain);
    let is_over = AtomicBool::new(false);
    let mut random = Random::new(seed);
    thread::scope(|scope| {
        let work = |worker: &Worker| {
            // Should it panic, the others end, too.
            let _over = Over(&is_over);
            while !is_over.load(Ordering::Relaxed) {
                worker.step(&pool, &workers);
            }
        };
        let threads = workers
            .iter()
            .map(|worker| scope.spawn(move || work(worker)));
        let threads: Vec<_> = threads.collect();
        {
            let _over = Over(&is_over);
            for round in 0..rounds {
                thread::sleep(Duration::from_micros(random.below(3000) as u64));
                let export = dir.path().join("export");
                let before: Vec<u64> = workers.iter().map(Worker::committed).collect();
                pool.snapshot(&export, &SnapshotOptions::new()).unwrap();
                let after: Vec<u64> = workers.iter().map(Worker::committed).collect();
                println!("{} {domain:?} {seed} {round}", engine.name());
                verifier.check(&export, &before, &after);
            }
        }
        // What they keep of the store is gone when they are joined.
        threads
            .into_iter()
            .for_each(|thread| thread.join().unwrap());
    });
    drop((pool, store));
    assert!(
        durum_service::check(&dir.path().join("store"), &Default::default())
            .unwrap()
            .is_sound()
    );
}

struct Over<'o>(&'o AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn a_snapshot_is_what_was_committed_at_one_moment() {
    for (engine, mode, domain) in EVERYWHERE {
        snapshots(engine, mode, domain, 1, 5);
    }
}

#[test]
#[ignore = "long: 1,000 runs on each engine"]
fn a_thousand_snapshots() {
    for (engine, mode, domain) in EVERYWHERE {
        for seed in 2..52 {
            snapshots(engine, mode, domain, seed, 20);
        }
    }
}

/// Of a pool that nobody changes.
fn is_same_as(pool: &Pool, other: &Pool) {
    let [one, two] = [pool, other].map(|pool| unsafe { &*pool.root::<Root>().unwrap() });
    assert_eq!((one.counts, one.seen), (two.counts, two.seen));
}
