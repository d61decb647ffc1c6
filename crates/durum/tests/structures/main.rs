//! The structures of the Romulus paper (§6.2) on the untyped interface, in updates and reads: against a model, with
//! threads, and crashed at every event.
//!
//! The crashes: within updates of linked nodes, of a table that moves to twice its size, of rotations in a tree, and of
//! plain stores. After each the structure has to hold what its acknowledged steps make it, or one step more, with its
//! invariants whole and no object lost.
// The structures follow pointers into a pool that nobody changes outside of an update.
#![allow(
    clippy::undocumented_unsafe_blocks,
    clippy::missing_safety_doc,
    clippy::field_reassign_with_default
)]

#[path = "../support/mod.rs"]
mod support;

mod list;
mod map;
mod swaps;
mod tree;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::thread;

use durum::{Described, Domain, Error, Pool, Store, StoreOptions, Tx};
use durum_persist::record::{Recorder, RecorderOptions, note};
use durum_persist::simulate::{CrashPoint, Plan, Rules, explore_with_recovery};
use durum_service::{self as service, CheckOptions, Embedded, Leaks, OpenOptions};

use support::pool_options;

/// Keys and values.
pub type Contents = BTreeMap<u64, u64>;

/// A structure that is the root of a pool, zeroed at first. Changed in an update of that pool, and read in a read or an
/// update.
pub trait Structure: Described + Sized {
    /// Puts it into order when it is new.
    unsafe fn make(this: *mut Self, tx: &Tx) -> Result<(), Error>;
    /// Inserts or overwrites. Whether the key is new.
    unsafe fn put(this: *mut Self, tx: &Tx, key: u64, value: u64) -> Result<bool, Error>;
    /// Whether the key was there.
    unsafe fn remove(this: *mut Self, tx: &Tx, key: u64) -> Result<bool, Error>;
    /// What it holds. An error says which invariant is broken.
    unsafe fn read(this: *const Self) -> Result<Contents, String>;
}

/// Announces a place, and stores there.
pub unsafe fn store<T>(tx: &Tx, place: *mut T, value: T) -> Result<(), Error> {
    unsafe {
        tx.add(place)?;
        place.write(value);
    }
    Ok(())
}

struct Shared<S>(*mut S);
// Used in updates and reads only.
unsafe impl<S> Send for Shared<S> {}
unsafe impl<S> Sync for Shared<S> {}
impl<S> Shared<S> {
    fn at(&self) -> *mut S {
        self.0
    }
}

fn open<S: Structure>(pool: &Pool) -> Shared<S> {
    let is_new = pool.root_type().unwrap().is_none();
    let shared = Shared(pool.root::<S>().unwrap());
    if is_new {
        pool.update(|tx| unsafe { S::make(shared.at(), tx) })
            .unwrap();
    }
    shared
}

fn mixed(step: u64) -> u64 {
    let mixed = (step + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed ^ mixed >> 31
}

/// Step number `step`: a key among `keys`, and whether to put it.
fn action(step: u64, keys: u64) -> (u64, bool) {
    let mixed = mixed(step);
    (mixed % keys, (mixed >> 40) % 5 < 3)
}

fn do_step<S: Structure>(this: *mut S, tx: &Tx, step: u64, keys: u64) -> Result<bool, Error> {
    let (key, is_put) = action(step, keys);
    unsafe {
        match is_put {
            true => S::put(this, tx, key, step),
            false => S::remove(this, tx, key),
        }
    }
}

fn model_step(model: &mut Contents, step: u64, keys: u64) -> bool {
    let (key, is_put) = action(step, keys);
    match is_put {
        true => model.insert(key, step).is_none(),
        false => model.remove(&key).is_some(),
    }
}

/// Steps, some of which are taken back, against a model.
fn behaves_like_a_map<S: Structure>(keys: u64, steps: u64) {
    let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    let store = Store::create(dir.path().join("store"), StoreOptions::new()).unwrap();
    let pool = store.create_pool("structure", pool_options()).unwrap();
    let root = open::<S>(&pool);
    let mut model = Contents::new();
    for step in 0..steps {
        if step % 7 == 3 {
            let failed = pool.update(|tx| {
                for more in 0..4 {
                    do_step(root.at(), tx, 1000 * step + more, keys)?;
                }
                Err::<(), _>(Error::Aborted)
            });
            assert!(failed.is_err());
        }
        let changed = pool
            .update(|tx| do_step(root.at(), tx, step, keys))
            .unwrap();
        assert_eq!(changed, model_step(&mut model, step, keys), "step {step}");
        if step % 50 == 0 || step + 1 == steps {
            let found = pool
                .read(|| unsafe { S::read(root.at()) })
                .unwrap()
                .unwrap();
            assert_eq!(found, model, "step {step}");
        }
    }
}

/// Threads with keys of their own, whose updates are combined.
fn is_shared_by_threads<S: Structure>() {
    const THREADS: u64 = 4;
    let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    let store = Store::create(dir.path().join("store"), StoreOptions::new()).unwrap();
    let pool = store.create_pool("structure", pool_options()).unwrap();
    let root = open::<S>(&pool);
    let models: Vec<Contents> = thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|thread| {
                let (pool, root) = (&pool, &root);
                scope.spawn(move || {
                    let mut model = Contents::new();
                    for step in 0..400 {
                        let (key, is_put) = action(step * THREADS + thread, 30);
                        let key = key * THREADS + thread;
                        let changed = pool.update(|tx| unsafe {
                            let changed = match is_put {
                                true => S::put(root.at(), tx, key, step)?,
                                false => S::remove(root.at(), tx, key)?,
                            };
                            match step % 5 {
                                0 => Err(Error::Aborted),
                                _ => Ok(changed),
                            }
                        });
                        match (changed, is_put) {
                            (Err(_), _) => assert_eq!(step % 5, 0),
                            (Ok(changed), true) => {
                                assert_eq!(changed, model.insert(key, step).is_none());
                            }
                            (Ok(changed), false) => {
                                assert_eq!(changed, model.remove(&key).is_some());
                            }
                        }
                    }
                    model
                })
            })
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect()
    });
    let wanted: Contents = models.into_iter().flatten().collect();
    let found = pool
        .read(|| unsafe { S::read(root.at()) })
        .unwrap()
        .unwrap();
    assert_eq!(found, wanted);
}

fn judge<S: Structure>(
    image: &Path,
    options: &StoreOptions,
    point: &CrashPoint<'_>,
    keys: u64,
) -> Result<(), String> {
    let text = |error: Error| error.to_string();
    let store = Store::open(image, options.clone()).map_err(text)?;
    let pool = store.open_pool("structure", pool_options()).map_err(text)?;
    let root = pool.root::<S>().map_err(text)?;
    let found = unsafe { S::read(root) }?;
    drop((pool, store));
    let done = point.last_note("steps").unwrap_or(0);
    let mut wanted = Contents::new();
    for step in 0..done {
        model_step(&mut wanted, step, keys);
    }
    if found != wanted {
        model_step(&mut wanted, done, keys);
        if found != wanted {
            return Err(format!(
                "after {done} steps it holds {found:?}, not {wanted:?}"
            ));
        }
    }
    let report =
        service::check(image, &CheckOptions::default()).map_err(|error| error.to_string())?;
    for pool in &report.pools {
        match &pool.leaks {
            Leaks::Judged { objects: 0, .. } => {}
            leaks => return Err(format!("{leaks:?}")),
        }
    }
    Ok(())
}

/// Crashes steps at every event.
fn survives_crashes<S: Structure>(keys: u64, steps: u64) {
    // There is one recorder, and one range of addresses for the images.
    static ALONE: Mutex<()> = Mutex::new(());
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    let path = dir.path().join("store");
    let options = StoreOptions::new()
        .domain(Domain::Dax)
        .base(0x2c00_0000_0000)
        .checkpoint_thread(false);
    let store = Store::create(&path, options.clone()).unwrap();
    let pool = store.create_pool("structure", pool_options()).unwrap();
    let root = open::<S>(&pool);
    let recorder = Recorder::start(&path, RecorderOptions::default());
    for step in 0..steps {
        pool.update(|tx| do_step(root.at(), tx, step, keys))
            .unwrap();
        note("steps", step + 1);
    }
    let trace = recorder.stop();
    drop((pool, store));
    let mut plan = Plan::new(Rules::Lines, 17);
    plan.single_units_max = 3;
    plan.random_images = 2;
    plan.nested_points_max = Some(3);
    let report = explore_with_recovery(
        &trace,
        &plan,
        |image| {
            let mut options = OpenOptions::default();
            options.domain = Some(Domain::Dax);
            let store = Embedded::open(image, options).map_err(|error| error.to_string())?;
            match store.recovery_report().quarantined.first() {
                Some(note) => Err(format!("a log was quarantined: {}", note.reason)),
                None => Ok(()),
            }
        },
        |image, point| {
            // A thread of its own forgets the store that it has opened.
            thread::scope(|scope| {
                let judged = scope.spawn(|| judge::<S>(image, &options, point, keys));
                judged
                    .join()
                    .unwrap_or_else(|_| Err("the client panicked".into()))
            })
        },
    );
    match report {
        Ok(report) => println!("{report:?}"),
        Err(failure) => panic!("{failure}"),
    }
}

/// The tests of a structure.
macro_rules! structure {
    ($module:ident, $type:ty, $keys:literal) => {
        mod $module {
            #[test]
            fn behaves_like_a_map() {
                crate::behaves_like_a_map::<$type>(20, 1000);
                crate::behaves_like_a_map::<$type>(300, 2000);
            }

            #[test]
            fn is_shared_by_threads() {
                crate::is_shared_by_threads::<$type>();
            }

            #[test]
            fn survives_crashes() {
                crate::survives_crashes::<$type>($keys, 24);
            }
        }
    };
}

structure!(list_set, crate::list::List, 8);
structure!(resizable_map, crate::map::Resizable, 12);
structure!(fixed_map, crate::map::Fixed, 12);
structure!(red_black_tree, crate::tree::Tree, 12);

/// Updates of nothing but stores: both of a pair are swapped, or none, and nothing is lost.
#[test]
fn swaps_lose_nothing() {
    let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    let store = Store::create(dir.path().join("store"), StoreOptions::new()).unwrap();
    let pool = store.create_pool("swaps", pool_options()).unwrap();
    let array = Shared(pool.root::<swaps::Array>().unwrap());
    pool.update(|tx| unsafe { swaps::fill(array.at(), tx) })
        .unwrap();
    let before = durum::thread_counters();
    for round in 0..500u64 {
        let pairs = 1 + round as usize % 64;
        let result = pool.update(|tx| unsafe {
            for pair in 0..pairs as u64 {
                let (left, right) = (
                    mixed(round * 64 + pair),
                    mixed(round * 64 + pair + 1_000_000),
                );
                swaps::swap(array.at(), tx, left as usize, right as usize)?;
            }
            match round % 9 {
                0 => Err(Error::Aborted),
                _ => Ok(()),
            }
        });
        assert_eq!(result.is_err(), round % 9 == 0);
    }
    let cost = durum::thread_counters() - before;
    assert_eq!(cost.commits, 444);
    let mut found = pool.read(|| unsafe { (*array.at()).elements }).unwrap();
    found.sort_unstable();
    assert!(
        found
            .iter()
            .enumerate()
            .all(|(at, element)| at as u64 == *element)
    );
}
