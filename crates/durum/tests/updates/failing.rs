//! An update that fails takes back what is its own, and no more.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use durum::{Announce, Error, Pool, Tx};
use durum_service::CheckOptions;

use crate::support::pool_options;
use crate::{Place, Shared, change, combined, pool, pool_with};

/// Closes the store and counts its objects.
fn objects(place: Place) -> u64 {
    let Place { dir, store, pool } = place;
    drop(pool);
    // Not only dropped: a thread that has just ended may hold it a little longer.
    store.close().unwrap();
    let options = CheckOptions::default();
    let report = durum_service::check(&dir.path().join("store"), &options).unwrap();
    report.pools.iter().map(|pool| pool.objects).sum()
}

#[test]
fn an_update_that_fails_takes_back_only_its_own() {
    let place = pool();
    let (pool, words) = (&place.pool, Shared(place.pool.root::<[u64; 8]>().unwrap()));
    let word = move |at: usize| unsafe { words.at().cast::<u64>().add(at) };
    let results = combined(
        pool,
        4,
        |tx| unsafe {
            change(tx, word(0), 10)?;
            tx.set(word(1), 20)
        },
        |number, tx| unsafe {
            let seen = (*word(0), *word(1));
            match number {
                // Sees what the first has announced and what it has deferred, changes the same and fails.
                0 => {
                    change(tx, word(0), 11)?;
                    tx.set(word(1), 21)?;
                    tx.set(word(2), 31)?;
                    tx.alloc::<u64>()?.write(7);
                    Err(Error::NotAllocated {
                        address: (seen.0 * 100 + seen.1) as usize,
                    })
                }
                1 => {
                    change(tx, word(0), seen.0 + 1)?;
                    change(tx, word(3), seen.1)?;
                    Ok(())
                }
                2 => {
                    change(tx, word(3), 0)?;
                    panic!("number {number}")
                }
                // An inner transaction that fails takes the whole update along, whatever that says.
                _ => {
                    change(tx, word(4), 1)?;
                    let _ = pool.transaction(|tx| tx.abort::<()>());
                    Ok(())
                }
            }
        },
    );
    let [first, second, third, fourth] = <[_; 4]>::try_from(results).unwrap();
    assert!(matches!(
        first.unwrap(),
        Err(Error::NotAllocated { address: 1020 })
    ));
    second.unwrap().unwrap();
    let panic = third.unwrap_err();
    assert_eq!(panic.downcast_ref::<String>().unwrap(), "number 2");
    assert!(matches!(fourth.unwrap(), Err(Error::Aborted)));
    let found: [u64; 8] = pool.read(|| unsafe { *words.at() }).unwrap();
    assert_eq!(found, [11, 20, 0, 20, 0, 0, 0, 0]);
}

const SLOTS: usize = 24;

/// What the root of the model test holds.
#[repr(C)]
#[derive(Clone, Copy)]
struct World {
    words: [u64; 200],
    /// Objects: address and size, 0 where there is none.
    objects: [(u64, u64); SLOTS],
}

#[derive(Clone, PartialEq, Debug)]
struct Model {
    words: Vec<u64>,
    objects: Vec<Option<(usize, u8)>>,
}

fn random(state: &mut u64) -> usize {
    *state = state
        .wrapping_mul(6364136223846793005)
        .wrapping_add(1442695040888963407);
    (*state >> 33) as usize
}

/// Does some of everything, in the pool and in the model.
unsafe fn do_some(
    tx: &Tx,
    pool: &Pool,
    world: *mut World,
    model: &mut Model,
    state: &mut u64,
    volatile: *mut u64,
) -> Result<(), Error> {
    let mut deferred = [false; 200];
    unsafe {
        for _ in 0..1 + random(state) % 12 {
            let value = random(state) as u64;
            match random(state) % 6 {
                0 | 1 => {
                    let from = random(state) % 200;
                    let len = (1 + random(state) % 90).min(200 - from);
                    if deferred[from..from + len].contains(&true) {
                        continue;
                    }
                    let target = (&raw mut (*world).words).cast::<u64>().add(from);
                    tx.add_bytes(target.cast(), len * 8, durum::Announce::Backup)?;
                    for at in 0..len {
                        target.add(at).write(value + at as u64);
                        model.words[from + at] = value + at as u64;
                    }
                }
                2 => {
                    let at = random(state) % 200;
                    let target = (&raw mut (*world).words).cast::<u64>().add(at);
                    tx.set(target, value)?;
                    model.words[at] = value;
                    deferred[at] = true;
                }
                3 => {
                    tx.volatile(volatile);
                    volatile.write(value);
                }
                _ => {
                    let slot = random(state) % SLOTS;
                    let entry = (&raw mut (*world).objects).cast::<(u64, u64)>().add(slot);
                    tx.add(entry)?;
                    match model.objects[slot] {
                        Some((size, byte)) => {
                            let bytes = std::slice::from_raw_parts((*entry).0 as *const u8, size);
                            assert!(bytes.iter().all(|found| *found == byte));
                            tx.free((*entry).0 as *mut u8)?;
                            entry.write((0, 0));
                            model.objects[slot] = None;
                        }
                        None => {
                            // Small ones lie in slabs, large ones in extents, some of them not in the log.
                            let size = [8, 8, 100, 256, 1000, 5000, 40_000][random(state) % 7];
                            let object = tx.alloc_bytes(pool, 0, size, 8)?;
                            object.write_bytes(value as u8, size);
                            entry.write((object as u64, size as u64));
                            model.objects[slot] = Some((size, value as u8));
                        }
                    }
                }
            }
        }
    }
    Ok(())
}

#[test]
fn any_mix_of_changes_is_taken_back_alone() {
    let seed = std::process::id() as u64;
    println!("seed {seed}");
    let place = pool();
    let pool = &place.pool;
    let world = Shared(
        pool.root_bytes(0, size_of::<World>(), align_of::<World>())
            .unwrap()
            .cast::<World>(),
    );
    let model = Mutex::new(Model {
        words: vec![0; 200],
        objects: vec![None; SLOTS],
    });
    let volatile = Box::into_raw(Box::new(0u64));
    let shared = Shared(volatile);
    let (failed, kept) = (AtomicU64::new(0), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for thread in 0..8u64 {
            let (model, failed, kept) = (&model, &failed, &kept);
            scope.spawn(move || {
                let mut state = seed * 8 + thread;
                for _ in 0..300 {
                    let fate = random(&mut state) % 3;
                    let mut own = state;
                    let update = || {
                        pool.update(|tx| unsafe {
                            // Updates come one after the other, in the order in which they are here.
                            let mut guard = model.lock().unwrap_or_else(|error| error.into_inner());
                            let found = *world.at();
                            assert_eq!(found.words.to_vec(), guard.words);
                            let mut changed = guard.clone();
                            do_some(tx, pool, world.at(), &mut changed, &mut own, shared.at())?;
                            match fate {
                                0 => Err(Error::Aborted),
                                1 if random(&mut own).is_multiple_of(2) => panic!("of the test"),
                                _ => {
                                    *guard = changed;
                                    Ok(())
                                }
                            }
                        })
                    };
                    let counter = match catch_unwind(AssertUnwindSafe(update)) {
                        Ok(Ok(())) => kept,
                        Ok(Err(Error::Aborted)) => failed,
                        Ok(Err(error)) => panic!("{error}"),
                        Err(panic) if panic.downcast_ref::<&str>() == Some(&"of the test") => {
                            failed
                        }
                        Err(panic) => std::panic::resume_unwind(panic),
                    };
                    counter.fetch_add(1, Ordering::Relaxed);
                    random(&mut state);
                }
            });
        }
    });
    let (failed, kept) = (failed.into_inner(), kept.into_inner());
    assert!(failed > 100 && kept > 100, "{failed} {kept}");
    let model = model
        .into_inner()
        .unwrap_or_else(|error| error.into_inner());
    let live = model.objects.iter().flatten().count() as u64;
    assert_eq!(objects(place), live + 1, "the model's, and the root");
    drop(unsafe { Box::from_raw(volatile) });
}

#[test]
fn volatile_memory_gets_back_what_it_held_before_the_part() {
    let place = pool();
    let volatile = Shared(Box::into_raw(Box::new(1u64)));
    let results = combined(
        &place.pool,
        2,
        |tx| unsafe {
            change(tx, place.pool.root::<u64>()?, 1)?;
            tx.volatile(volatile.at());
            volatile.at().write(2);
            Ok(())
        },
        |number, tx| unsafe {
            assert_eq!(*volatile.at(), 2);
            tx.volatile(volatile.at());
            volatile.at().write(3);
            match number {
                0 => tx.abort(),
                _ => Err::<(), _>(Error::Aborted),
            }
        },
    );
    assert!(results.into_iter().all(|result| result.unwrap().is_err()));
    assert_eq!(unsafe { *Box::from_raw(volatile.at()) }, 2);
}

#[test]
fn a_root_that_a_failed_update_made_can_be_made_by_the_next() {
    let place = pool();
    let pool = &place.pool;
    let other = AtomicU64::new(0);
    let results = combined(
        pool,
        2,
        |tx| {
            tx.alloc::<u64>()?;
            Ok(())
        },
        |number, _| {
            let root = pool.root::<u64>()?;
            unsafe { assert_eq!(*root, 0) };
            unsafe { root.write(5 + number as u64) };
            other.store(root as u64, Ordering::Relaxed);
            match number {
                0 => Err(Error::Aborted),
                _ => Ok(()),
            }
        },
    );
    let [first, second] = <[_; 2]>::try_from(results).unwrap();
    assert!(first.unwrap().is_err());
    second.unwrap().unwrap();
    let root = pool.root::<u64>().unwrap();
    assert_eq!((root as u64, unsafe { *root }), (other.into_inner(), 6));
}

#[test]
fn a_commit_that_fails_is_told_to_all_who_were_in_it() {
    let place = pool_with(pool_options().check_stores(true));
    let (pool, words) = (&place.pool, Shared(place.pool.root::<[u64; 8]>().unwrap()));
    let word = move |at: usize| unsafe { words.at().cast::<u64>().add(at) };
    let results = combined(
        pool,
        3,
        |_| Ok(()),
        |number, tx| unsafe {
            change(tx, word(number), 1)?;
            if number == 1 {
                // Not announced: the checker refuses the commit.
                word(7).write(1);
            }
            Ok(())
        },
    );
    for result in results {
        let error = result.unwrap().unwrap_err();
        assert!(matches!(error, Error::CombinedUpdates { .. }), "{error}");
        assert!(error.to_string().contains("not announced"), "{error}");
    }
    assert_eq!(unsafe { *word(0) }, 0);
}

/// On Shadow large clobbered ranges go home past the log, where a crash may tear them. Not what a part has clobbered
/// that was taken back: another part needs what it held.
#[test]
fn what_a_failed_update_clobbered_is_logged_for_the_next_one() {
    const RANGE: usize = 8 << 10;
    let place = pool();
    if place.pool.engine() != durum::Engine::Shadow {
        return;
    }
    let (pool, bytes) = (
        &place.pool,
        Shared(place.pool.root::<[u8; 512 << 10]>().unwrap()),
    );
    let range = move || unsafe { bytes.at().cast::<u8>().add(RANGE) };
    // Nothing that is logged is not home then.
    unsafe { pool.persist(bytes.at().cast::<u8>(), 512 << 10).unwrap() };
    let before = durum::thread_counters();
    let results = combined(
        pool,
        2,
        |tx| unsafe { change(tx, bytes.at().cast(), 1) },
        |number, tx| unsafe {
            let (announce, result) = match number {
                0 => (Announce::Clobber, Err(Error::Aborted)),
                _ => (Announce::Backup, Ok(())),
            };
            tx.add_bytes(range(), RANGE, announce)?;
            range().write_bytes(1 + number as u8, RANGE);
            result
        },
    );
    let [failed, kept] = <[_; 2]>::try_from(results).unwrap();
    assert!(failed.unwrap().is_err());
    kept.unwrap().unwrap();
    let logged = (durum::thread_counters() - before).bytes_logged;
    assert!(logged >= RANGE as u64, "{logged}");
}
