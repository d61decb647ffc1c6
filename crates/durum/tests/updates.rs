//! Updates and reads of several threads on one pool: what is combined, what a failure takes back, who waits for whom.
// The tests follow pointers into pools that they have just opened; updates and reads keep the threads apart.
#![allow(clippy::undocumented_unsafe_blocks)]

mod support;

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Barrier, Mutex};
use std::thread::Scope;
use std::time::Duration;

use durum::{Concurrency, Error, Pool, Store, StoreOptions, Tx, thread_counters};
use durum_service::CheckOptions;
use support::{engine, pool_options};

struct Place {
    dir: tempfile::TempDir,
    store: Store,
    pool: Pool,
}

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

fn pool_with(options: durum::PoolOptions) -> Place {
    let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    let store = Store::create(dir.path().join("store"), StoreOptions::new()).unwrap();
    let pool = store.create_pool("shared", options).unwrap();
    Place { dir, store, pool }
}

fn pool() -> Place {
    pool_with(pool_options())
}

/// A pointer that closures take along.
struct Shared<T>(*mut T);
impl<T> Clone for Shared<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for Shared<T> {}
// What it points to is used in updates and reads only.
unsafe impl<T> Send for Shared<T> {}
unsafe impl<T> Sync for Shared<T> {}
impl<T> Shared<T> {
    fn at(self) -> *mut T {
        self.0
    }
}

unsafe fn change(tx: &Tx, target: *mut u64, value: u64) -> Result<(), Error> {
    unsafe {
        tx.add(target)?;
        target.write(value);
    }
    Ok(())
}

/// Runs `first` as the leader, and lets it go on when `others` threads have announced `other` (each with its number).
fn combined<R: Send>(
    pool: &Pool,
    others: usize,
    first: impl FnOnce(&Tx) -> Result<(), Error> + Send,
    other: impl Fn(usize, &Tx) -> Result<R, Error> + Sync,
) -> Vec<std::thread::Result<Result<R, Error>>> {
    let (leads, here) = (Barrier::new(others + 1), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..others)
            .map(|number| {
                let (leads, here, other) = (&leads, &here, &other);
                scope.spawn(move || {
                    leads.wait();
                    // One after the other, so that they are announced in this order.
                    std::thread::sleep(Duration::from_millis(20 * number as u64));
                    here.fetch_add(1, Ordering::SeqCst);
                    pool.update(|tx| other(number, tx))
                })
            })
            .collect();
        let led = pool.update(|tx| {
            leads.wait();
            while here.load(Ordering::SeqCst) < others {
                std::thread::yield_now();
            }
            std::thread::sleep(Duration::from_millis(50));
            first(tx)
        });
        assert!(
            matches!(led, Ok(()) | Err(Error::CombinedUpdates { .. })),
            "{led:?}"
        );
        threads.into_iter().map(|thread| thread.join()).collect()
    })
}

#[test]
fn every_update_of_many_threads_is_there() {
    let place = pool();
    let (pool, counter) = (&place.pool, Shared(place.pool.root::<u64>().unwrap()));
    const THREADS: u64 = 64;
    const ROUNDS: u64 = 200;
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(move || {
                let mut last = 0;
                for _ in 0..ROUNDS {
                    let now = pool
                        .update(|tx| unsafe {
                            change(tx, counter.at(), *counter.at() + 1)?;
                            Ok::<_, Error>(*counter.at())
                        })
                        .unwrap();
                    assert!(now > last, "a thread's updates come one after the other");
                    last = now;
                }
            });
        }
    });
    assert_eq!(
        pool.read(|| unsafe { *counter.at() }).unwrap(),
        THREADS * ROUNDS
    );
}

#[test]
fn combined_updates_share_the_fences_of_one() {
    for others in [1, 3, 7, 15] {
        let place = pool();
        let (pool, words) = (&place.pool, Shared(place.pool.root::<[u64; 32]>().unwrap()));
        let word = move |at: usize| unsafe { words.at().cast::<u64>().add(at) };
        let one = |tx: &Tx, at: usize| unsafe { change(tx, word(at), 1) };
        pool.update(|tx| one(tx, 31)).unwrap();
        let before = thread_counters();
        pool.update(|tx| one(tx, 30)).unwrap();
        let alone = (thread_counters() - before).fences;
        let before = thread_counters();
        let results = combined(
            pool,
            others,
            |tx| one(tx, 0),
            |number, tx| one(tx, number + 1),
        );
        assert!(results.into_iter().all(|result| result.unwrap().is_ok()));
        // This thread has led and run all of them.
        let together = (thread_counters() - before).fences;
        let number = others as u64 + 1;
        println!(
            "{}: {number} combined: {together} fences, {:.2} for each; alone {alone}",
            engine().name(),
            together as f64 / number as f64
        );
        if engine() == durum::Engine::Hybrid {
            // One for each range that it has to log before it changes.
            assert!(together < number + alone, "{together}");
        } else {
            assert_eq!(together, alone);
        }
        for at in 0..=others {
            assert_eq!(unsafe { *word(at) }, 1);
        }
    }
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
fn readers_see_no_half_of_an_update() {
    let place = pool();
    let (pool, pair) = (&place.pool, Shared(place.pool.root::<[u64; 2]>().unwrap()));
    let word = move |at: usize| unsafe { pair.at().cast::<u64>().add(at) };
    let (done, reads) = (AtomicU64::new(0), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while done.load(Ordering::Relaxed) < 2 {
                    let (first, second) = pool
                        .read(|| unsafe { (word(0).read_volatile(), word(1).read_volatile()) })
                        .unwrap();
                    reads.fetch_add(1, Ordering::Relaxed);
                    assert_eq!(first, second);
                }
            });
        }
        for _ in 0..2 {
            scope.spawn(|| {
                // On a busy machine readers may begin late.
                let is_over = |round| round >= 400 && reads.load(Ordering::Relaxed) > 0;
                for round in (0..).take_while(|round| !is_over(*round)) {
                    let result = pool.update(|tx| unsafe {
                        let next = *word(0) + 1;
                        change(tx, word(0), next)?;
                        std::thread::yield_now();
                        if round % 3 == 0 {
                            return Err(Error::Aborted);
                        }
                        change(tx, word(1), next)
                    });
                    assert_eq!(result.is_err(), round % 3 == 0);
                }
                done.fetch_add(1, Ordering::Relaxed);
            });
        }
    });
}

#[test]
fn a_reader_gets_in_between_updates_that_never_end() {
    let place = pool();
    let (pool, word) = (&place.pool, Shared(place.pool.root::<u64>().unwrap()));
    let stop = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while stop.load(Ordering::Relaxed) == 0 {
                    pool.update(|tx| unsafe { change(tx, word.at(), *word.at() + 1) })
                        .unwrap();
                }
            });
        }
        for _ in 0..200 {
            pool.read(|| unsafe { *word.at() }).unwrap();
        }
        stop.store(1, Ordering::Relaxed);
    });
}

/// So much that a round has room for one such update only.
const ROUND_FULL: usize = 64 << 10;

/// An update that fills its round.
fn fill_round(tx: &Tx, words: Shared<[u64; ROUND_FULL / 8]>) -> Result<(), Error> {
    unsafe {
        tx.add(words.at())?;
        *words.at().cast::<u64>() += 1;
    }
    Ok(())
}

/// Threads that come one after the other, each with an update.
struct Coming<'p> {
    pool: &'p Pool,
    words: Shared<[u64; ROUND_FULL / 8]>,
    here: AtomicUsize,
    order: Mutex<Vec<usize>>,
}

impl Coming<'_> {
    const FIRST: usize = 15;
    const ALL: usize = 30;

    fn come<'s>(&'s self, scope: &'s Scope<'s, '_>, numbers: Range<usize>) {
        for number in numbers {
            scope.spawn(move || {
                self.here.fetch_add(1, Ordering::SeqCst);
                let updated = self.pool.update(|tx| {
                    self.order.lock().unwrap().push(number);
                    // Those who come later, while another one leads.
                    if number == Self::FIRST / 3 {
                        self.come(scope, Self::FIRST..Self::ALL);
                    }
                    fill_round(tx, self.words)
                });
                updated.unwrap();
            });
            while self.here.load(Ordering::SeqCst) <= number {
                std::thread::yield_now();
            }
            // Until it is announced.
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

#[test]
fn updates_run_in_the_order_of_their_coming_whoever_leads() {
    let place = pool();
    let coming = Coming {
        pool: &place.pool,
        words: Shared(place.pool.root().unwrap()),
        here: AtomicUsize::new(0),
        order: Mutex::new(Vec::new()),
    };
    std::thread::scope(|scope| {
        let coming = &coming;
        place
            .pool
            .update(|tx| {
                coming.come(scope, 0..Coming::FIRST);
                fill_round(tx, coming.words)
            })
            .unwrap();
    });
    let order = coming.order.into_inner().unwrap();
    assert_eq!(order, (0..Coming::ALL).collect::<Vec<_>>());
}

#[test]
fn who_leads_returns_though_others_never_stop() {
    let place = pool();
    let (pool, words) = (&place.pool, Shared(place.pool.root().unwrap()));
    // Two threads, each of which has announced its next update before the other one's has run. If leading had no end
    // they would stop first.
    const ROUNDS_MAX: usize = 150;
    let (is_announced, rounds) = (
        [(); 2].map(|()| AtomicBool::new(false)),
        AtomicUsize::new(0),
    );
    let has_returned = AtomicUsize::new(usize::MAX);
    let is_over = || {
        rounds.load(Ordering::SeqCst) >= ROUNDS_MAX
            || has_returned.load(Ordering::SeqCst) != usize::MAX
    };
    let wait_for = |number: usize| {
        let announced: &AtomicBool = &is_announced[number];
        while !announced.load(Ordering::SeqCst) && !is_over() {
            std::thread::yield_now();
        }
        // It is about to be.
        std::thread::sleep(Duration::from_millis(2));
    };
    std::thread::scope(|scope| {
        pool.update(|tx| {
            for number in 0..2 {
                let (is_announced, rounds) = (&is_announced, &rounds);
                let (is_over, wait_for) = (&is_over, &wait_for);
                scope.spawn(move || {
                    while !is_over() {
                        is_announced[number].store(true, Ordering::SeqCst);
                        let updated = pool.update(|tx| {
                            is_announced[number].store(false, Ordering::SeqCst);
                            wait_for(1 - number);
                            rounds.fetch_add(1, Ordering::SeqCst);
                            fill_round(tx, words)
                        });
                        updated.unwrap();
                    }
                });
            }
            wait_for(0);
            wait_for(1);
            fill_round(tx, words)
        })
        .unwrap();
        has_returned.store(rounds.load(Ordering::SeqCst), Ordering::SeqCst);
    });
    let rounds = has_returned.into_inner();
    assert!(rounds < ROUNDS_MAX / 2, "{rounds} rounds for others");
}

#[test]
fn what_would_wait_for_itself_is_an_error() {
    let place = pool();
    let (pool, word) = (&place.pool, place.pool.root::<u64>().unwrap());
    let shared = Shared(word);
    let nothing = |_: &Tx| Ok::<(), Error>(());
    let found = pool.read(|| pool.update(nothing)).unwrap();
    assert!(matches!(found, Err(Error::UpdateInRead { .. })));
    let found = pool.transaction(|_| Ok::<_, Error>((pool.update(nothing), pool.read(|| ()))));
    let (update, read) = found.unwrap();
    assert!(matches!(update, Err(Error::InsideTransaction { .. })));
    assert!(matches!(read, Err(Error::InsideTransaction { .. })));
    // Within: parts of the update.
    pool.update(|tx| unsafe {
        change(tx, shared.at(), 1)?;
        pool.update(|tx| change(tx, shared.at(), 2))?;
        assert_eq!(pool.read(|| *shared.at())?, 2);
        pool.read(|| pool.read(|| ()))?
    })
    .unwrap();
    let failed = pool.update(|_| {
        let inner = pool.update(|tx| unsafe {
            change(tx, shared.at(), 3)?;
            Err::<(), _>(Error::Aborted)
        });
        assert!(inner.is_err());
        Ok::<_, Error>(())
    });
    assert!(matches!(failed, Err(Error::Aborted)));
    assert_eq!(unsafe { *word }, 2);
}

#[test]
fn an_open_update_keeps_the_others_out() {
    let place = pool();
    let (pool, word) = (&place.pool, Shared(place.pool.root::<u64>().unwrap()));
    let open = unsafe { pool.begin_update() }.unwrap();
    std::thread::scope(|scope| {
        let others: Vec<_> = (0..6)
            .map(|number| {
                scope.spawn(move || match number % 3 {
                    0 => pool.read(|| unsafe { *word.at() }).unwrap(),
                    1 => pool
                        .update(|tx| unsafe {
                            change(tx, word.at(), *word.at() + 1)?;
                            Ok::<_, Error>(*word.at())
                        })
                        .unwrap(),
                    _ => unsafe {
                        let update = pool.begin_update().unwrap();
                        change(&update, word.at(), *word.at() + 1).unwrap();
                        let value = *word.at();
                        update.commit().unwrap();
                        value
                    },
                })
            })
            .collect();
        std::thread::sleep(Duration::from_millis(50));
        unsafe { change(&open, word.at(), 100).unwrap() };
        let level = unsafe { pool.begin_update() }.unwrap();
        level.commit().unwrap();
        open.commit().unwrap();
        for other in others {
            assert!(other.join().unwrap() >= 100);
        }
    });
    let dropped = unsafe { pool.begin_update() }.unwrap();
    unsafe { change(&dropped, word.at(), 7).unwrap() };
    drop(dropped);
    assert_eq!(pool.read(|| unsafe { *word.at() }).unwrap(), 104);
}

#[test]
fn one_thread_may_do_without() {
    let place = pool_with(pool_options().concurrency(Concurrency::SingleThreaded));
    let (pool, word) = (&place.pool, Shared(place.pool.root::<u64>().unwrap()));
    pool.update(|tx| unsafe { change(tx, word.at(), 1) })
        .unwrap();
    // Nobody to wait for: it is a part of any transaction.
    pool.transaction(|_| pool.update(|tx| unsafe { change(tx, word.at(), 2) }))
        .unwrap();
    assert_eq!(pool.read(|| unsafe { *word.at() }).unwrap(), 2);
    let update = unsafe { pool.begin_update() }.unwrap();
    unsafe { change(&update, word.at(), 3).unwrap() };
    drop(update);
    assert_eq!(unsafe { *word.at() }, 2);
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
