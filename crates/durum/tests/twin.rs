//! Twin: what its transactions cost, that both copies are the same afterwards, and what a pool with two copies refuses.

#![allow(
    clippy::undocumented_unsafe_blocks,
    reason = "the root is live as long as its pool is open, and each test knows who changes it"
)]

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use durum::{
    Announce, Domain, Durability, Engine, Error, LrRef, Pool, PoolOptions, Store, StoreOptions,
    TwinMode, Tx, thread_counters,
};
use tempfile::TempDir;

mod support;

const SIZE: usize = 2 << 20;

#[repr(C)]
struct Root {
    words: [u64; 1024],
    list: *mut Node,
}
durum::describe!(Root as "root" { words, list });

#[repr(C)]
struct Node {
    value: u64,
    next: *mut Node,
}
durum::describe!(Node as "node" { value, next });

fn twin() -> PoolOptions {
    PoolOptions::new().engine(Engine::Twin)
}

fn store(options: StoreOptions) -> (TempDir, Store, Pool, *mut Root) {
    let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    let store = Store::create(dir.path().join("store"), options).unwrap();
    let pool = store.create_pool("pool", twin()).unwrap();
    let root = pool.root().unwrap();
    (dir, store, pool, root)
}

/// The files of the puddles of all pools; there is one pool.
fn files(dir: &Path) -> Vec<PathBuf> {
    let puddles = std::fs::read_dir(dir.join("store/puddles")).unwrap();
    puddles
        .map(|entry| entry.unwrap().path())
        .filter(|path| kind(path) == 5)
        .collect()
}

/// What the header says that a puddle holds.
fn kind(path: &Path) -> u8 {
    let mut kind = [0];
    File::open(path)
        .unwrap()
        .read_exact_at(&mut kind, 12)
        .unwrap();
    kind[0]
}

/// Whether the header says that it is the root puddle of its pool.
fn is_root(path: &Path) -> bool {
    let mut flags = [0];
    File::open(path)
        .unwrap()
        .read_exact_at(&mut flags, 64)
        .unwrap();
    flags[0] & 1 == 1
}

/// Both copies behind the first kilobyte of a puddle's file, without what only one of them has, seals and suspects.
fn copies(path: &Path) -> (Vec<u8>, Vec<u8>) {
    let bytes = std::fs::read(path).unwrap();
    let (main, back) = bytes.split_at(bytes.len() / 2);
    let header = main.len() / SIZE * 4096;
    let [main, back] = [main, back].map(|copy| {
        let mut copy = copy.to_vec();
        copy[header - 2048..header].fill(0);
        copy[1024..].to_vec()
    });
    (main, back)
}

fn push(pool: &Pool, root: *mut Root, value: u64) -> Result<(), Error> {
    pool.transaction(|tx| push_in(tx, root, value))
}

fn push_in(tx: &Tx, root: *mut Root, value: u64) -> Result<(), Error> {
    let node = tx.alloc::<Node>()?;
    // SAFETY: the root is live, and the tests' transactions come one after the other.
    unsafe {
        let next = (*root).list;
        *node = Node { value, next };
        tx.set(&raw mut (*root).list, node)
    }
}

fn listed(root: *mut Root) -> Vec<u64> {
    // SAFETY: as above.
    let first = unsafe { (*root).list };
    let nodes = std::iter::successors(unsafe { first.as_ref() }, |node| unsafe {
        node.next.as_ref()
    });
    nodes.map(|node| node.value).collect()
}

#[test]
fn two_fences_for_what_a_seal_can_name_and_four_for_any_more() {
    let (_dir, _store, pool, root) = store(StoreOptions::new());
    push(&pool, root, 0).unwrap();
    let cost = |body: &mut dyn FnMut(&Tx)| {
        let before = thread_counters();
        pool.transaction(|tx| {
            body(tx);
            Ok::<_, Error>(())
        })
        .unwrap();
        let cost = thread_counters() - before;
        (cost.fences, cost.write_backs + cost.streamed_lines)
    };
    let nodes = std::cell::RefCell::new(Vec::new());
    // SAFETY: the root is live, and nobody else is there.
    unsafe {
        assert_eq!(cost(&mut |_| ()), (0, 0));
        for lines in [1usize, 2, 30, 60, 128] {
            let change = &mut |tx: &Tx| {
                for line in 0..lines {
                    let word = &raw mut (*root).words[line * 8];
                    // Announced twice, and by parts: once for each copy all the same.
                    tx.add(word).unwrap();
                    tx.add(word).unwrap();
                    *word += 1;
                    tx.add(word.add(3)).unwrap();
                    *word.add(3) += 1;
                }
            };
            // The root is aligned to 16 bytes only, so that a word and the fourth after it may lie in two lines.
            let touched: std::collections::BTreeSet<usize> = (0..lines)
                .flat_map(|line| [line * 8, line * 8 + 3])
                .map(|word| (&raw const (*root).words[word]).addr() / 64)
                .collect();
            // A range for each word, eight bytes and sixteen for all.
            let ranges = 2 * lines as u64;
            let (fences, more) = match ranges <= 126 {
                true => (2, (16 + 8 * ranges).div_ceil(64) + 1),
                false => (3, 1),
            };
            let lines = 2 * touched.len() as u64;
            assert_eq!(cost(change), (fences, lines + more), "{ranges} ranges");
        }
        let mut both = |tx: &Tx| {
            for value in 0..100 {
                push_in(tx, root, value).unwrap();
                let node = tx.alloc_bytes(&pool, 0, 4000, 8).unwrap();
                node.write_bytes(1, 4000);
                nodes.borrow_mut().push(node);
            }
        };
        // One of them makes up for the next state, which the large transaction before could not leave.
        assert_eq!(cost(&mut both).0, 4, "allocations cost no fence");
        let mut one = |tx: &Tx| {
            push_in(tx, root, 1).unwrap();
            let node = tx.alloc_bytes(&pool, 0, 300_000, 8).unwrap();
            node.write_bytes(1, 300_000);
            nodes.borrow_mut().push(node);
        };
        assert_eq!(cost(&mut one).0, 3);
        assert_eq!(cost(&mut one).0, 2);
        assert_eq!(
            cost(&mut |tx| nodes
                .borrow_mut()
                .drain(..)
                .for_each(|node| tx.free(node).unwrap()))
            .0,
            2
        );
        assert_eq!(
            cost(&mut |tx| tx.set(&raw mut (*root).words[0], 7).unwrap()).0,
            2
        );
        let all = &raw const (*root).words;
        let (fences, write_backs) = cost(&mut |tx| {
            tx.add(all).unwrap();
            (*root).words[500] += 1;
        });
        // What was announced is written back in main, but only what differs is copied.
        assert_eq!((fences, write_backs), (2, 8192 / 64 + 1 + 1 + 2));
        let before = thread_counters();
        pool.persist(&raw const (*root).words[0], 8).unwrap();
        let cost = thread_counters() - before;
        assert_eq!(
            (cost.fences, cost.write_backs),
            (2, 3),
            "and the seal is forgotten"
        );
        let before = thread_counters();
        pool.persist(&raw const (*root).words[0], 8).unwrap();
        let cost = thread_counters() - before;
        assert_eq!((cost.fences, cost.write_backs), (1, 2));
    }
}

#[test]
fn an_aborted_transaction_costs_one_fence() {
    let (_dir, _store, pool, root) = store(StoreOptions::new());
    push(&pool, root, 0).unwrap();
    let before = thread_counters();
    let result = pool.transaction(|tx| unsafe {
        tx.add(&raw const (*root).words[0])?;
        (*root).words[0] = 1;
        tx.abort::<()>()
    });
    assert!(matches!(result, Err(Error::Aborted)));
    assert_eq!((thread_counters() - before).fences, 1);
    assert_eq!(unsafe { (*root).words[0] }, 0);
}

#[test]
fn two_syncs_on_a_file_system() {
    let (_dir, _store, pool, root) = store(StoreOptions::new().domain(Domain::File));
    push(&pool, root, 0).unwrap();
    for value in 1..4 {
        let before = thread_counters();
        push(&pool, root, value).unwrap();
        assert_eq!((thread_counters() - before).syncs, 2);
    }
    let before = thread_counters();
    let aborted = pool.transaction(|tx| {
        push_in(tx, root, 9)?;
        tx.abort::<()>()
    });
    assert!(aborted.is_err());
    assert_eq!((thread_counters() - before).syncs, 0, "nothing has leaked");
}

#[test]
fn both_copies_are_the_same_after_each_transaction() {
    for domain in [Domain::Dram, Domain::File] {
        let (dir, store, pool, root) = store(StoreOptions::new().domain(domain));
        let mut state = 7u64;
        let mut random = move |below: usize| {
            state = state
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            (state >> 33) as usize % below
        };
        // With their sizes.
        let mut blocks: Vec<(*mut u8, usize)> = Vec::new();
        let distance = store.info().space_size as usize;
        for round in 0..60 {
            let commits = random(4) > 0;
            let kept = blocks.clone();
            let result = pool.transaction(|tx| unsafe {
                for _ in 0..1 + random(6) {
                    match random(5) {
                        0 => {
                            let size = [24, 300, 5000][random(3)];
                            let block = tx.alloc_bytes(&pool, 0, size, 8)?;
                            block.write_bytes(round as u8, size);
                            blocks.push((block, size));
                        }
                        1 if !blocks.is_empty() => {
                            tx.free(blocks.swap_remove(random(blocks.len())).0)?
                        }
                        2 => {
                            let word = &raw mut (*root).words[random(1024)];
                            tx.set(word, random(100) as u64)?;
                        }
                        3 => {
                            let bytes = (&raw mut (*root).words[random(512)]).cast::<u8>();
                            let (at, len) = (random(64), 1 + random(1500));
                            if tx.add_bytes(bytes.add(at), len, Announce::Backup).is_ok() {
                                bytes.add(at).write_bytes(random(256) as u8, len);
                            }
                        }
                        _ => {
                            let word = &raw mut (*root).words[random(1024)];
                            if tx.add(word).is_ok() {
                                *word += 1;
                            }
                        }
                    }
                }
                if commits { Ok(()) } else { tx.abort() }
            });
            if !commits {
                assert!(matches!(result, Err(Error::Aborted)));
                blocks = kept;
                continue;
            }
            result.unwrap();
            for &(block, size) in &blocks {
                // SAFETY: a live block, and where its other copy is mapped.
                let [main, back] = [block, block.wrapping_add(distance)]
                    .map(|copy| unsafe { std::slice::from_raw_parts(copy, size) });
                assert!(main == back, "round {round}: {size} bytes at {block:?}");
            }
            for file in files(dir.path()) {
                // What a transaction that was aborted left in free places may differ.
                let (main, back) = copies(&file);
                let words = root.addr() % SIZE - 1024;
                let root = words..words + 8192 + 8;
                assert!(main[..3072] == back[..3072], "bitmaps");
                assert!(main[root.clone()] == back[root], "round {round}");
            }
        }
        drop((pool, store));
        let report = durum_service::check(&dir.path().join("store"), &Default::default()).unwrap();
        assert!(report.is_sound(), "{:?}", report.findings);
    }
}

#[test]
fn transactions_of_a_pool_come_one_after_the_other() {
    let (_dir, _store, pool, root) = store(StoreOptions::new());
    let is_inside = AtomicBool::new(false);
    let (sender, receiver) = mpsc::channel();
    thread::scope(|scope| {
        let (pool, is_inside, root) = (&pool, &is_inside, root as usize);
        let count = move || {
            let root = root as *mut Root;
            pool.transaction(|tx| unsafe {
                assert!(!is_inside.swap(true, Ordering::SeqCst), "one at a time");
                // No lock: the turn is one.
                tx.add(&raw const (*root).words[0])?;
                (*root).words[0] += 1;
                is_inside.store(false, Ordering::SeqCst);
                Ok::<_, Error>(())
            })
            .unwrap();
        };
        pool.transaction(|_| {
            let done = sender.clone();
            scope.spawn(move || {
                count();
                done.send(()).unwrap();
            });
            let early = receiver.recv_timeout(Duration::from_millis(50));
            assert!(early.is_err(), "the other one waits for its turn");
            Ok::<_, Error>(())
        })
        .unwrap();
        receiver.recv().unwrap();
        for _ in 0..4 {
            scope.spawn(move || (0..500).for_each(|_| count()));
        }
    });
    assert_eq!(unsafe { (*root).words[0] }, 2001);
}

#[test]
fn a_transaction_has_one_pool_of_this_engine_and_no_other() {
    let (_dir, store, pool, root) = store(StoreOptions::new());
    let other = store.create_pool("other", twin()).unwrap();
    let shadow = store
        .create_pool("shadow", PoolOptions::new().engine(Engine::Shadow))
        .unwrap();
    let in_other = other.root::<Root>().unwrap();
    let in_shadow = shadow.root::<Root>().unwrap();
    let refused = |result: Result<(), Error>, pools: [&str; 2]| {
        let error = result.unwrap_err();
        assert!(matches!(error, Error::MixedEngines { .. }), "{error}");
        let text = error.to_string();
        assert!(pools.iter().all(|pool| text.contains(pool)), "{text}");
    };
    // SAFETY: the roots are live, and nobody else is there.
    unsafe {
        refused(pool.transaction(|tx| tx.add(in_other)), ["pool", "other"]);
        refused(
            pool.transaction(|tx| {
                tx.add(&raw const (*root).words[0])?;
                tx.add(in_shadow)
            }),
            ["pool", "shadow"],
        );
        refused(
            pool.transaction(|tx| {
                tx.add(in_shadow)?;
                tx.add(root)
            }),
            ["shadow", "pool"],
        );
        // Begun on one pool, it may use another one alone.
        shadow
            .transaction(|tx| {
                tx.add(&raw const (*in_other).words[0])?;
                (*in_other).words[0] = 5;
                Ok::<_, Error>(())
            })
            .unwrap();
        other
            .transaction_with(Durability::Buffered, |tx| {
                tx.set(&raw mut (*in_other).words[1], 6)
            })
            .unwrap();
        assert_eq!((&(*in_other).words)[..2], [5, 6]);
    }
}

#[test]
fn a_puddle_born_in_a_transaction_that_is_rolled_back_is_returned() {
    let (dir, _store, pool, root) = store(StoreOptions::new());
    let options = twin().spare_max(0);
    drop(pool);
    let pool = _store.open_pool("pool", options).unwrap();
    push(&pool, root, 1).unwrap();
    let puddles = files(dir.path()).len();
    let result = pool.transaction(|tx| {
        for _ in 0..8 {
            tx.alloc_bytes(&pool, 0, 1_200_000, 8)?;
        }
        assert!(files(dir.path()).len() > puddles);
        tx.abort::<()>()
    });
    assert!(matches!(result, Err(Error::Aborted)));
    assert_eq!(files(dir.path()).len(), puddles);
    // And in one that a crash has cut off.
    drop((pool, _store));
    assert_killed(
        support::start("grows_until_it_is_killed", dir.path())
            .wait()
            .unwrap(),
    );
    let grown = files(dir.path()).len();
    assert!(grown > puddles);
    let store = Store::open(dir.path().join("store"), StoreOptions::new()).unwrap();
    assert_eq!(store.recovery().unwrap().rolled_back, 1);
    drop(store.open_pool("pool", twin()).unwrap());
    assert_eq!(files(dir.path()).len(), puddles);
    let pool = store.open_pool("pool", twin()).unwrap();
    assert_eq!(listed(pool.root().unwrap()), [1]);
}

#[track_caller]
fn assert_killed(status: ExitStatus) {
    use std::os::unix::process::ExitStatusExt;
    assert_eq!(status.signal(), Some(9), "{status}");
}

#[test]
#[ignore = "the other process of the test above"]
fn grows_until_it_is_killed() {
    let Some(dir) = support::directory() else {
        return;
    };
    let store = Store::open(dir.join("store"), StoreOptions::new()).unwrap();
    let pool = store.open_pool("pool", twin()).unwrap();
    let root: *mut Root = pool.root().unwrap();
    let _ = pool.transaction(|tx| {
        push_in(tx, root, 2)?;
        // SAFETY: the root is live, and nobody else is there.
        unsafe {
            tx.add(&raw const (*root).words)?;
            (*root).words.fill(9);
        }
        for _ in 0..8 {
            tx.alloc_bytes(&pool, 0, 1_200_000, 8)?;
        }
        rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL)
            .unwrap();
        Ok::<_, Error>(())
    });
}

#[test]
fn a_state_that_is_none_or_seals_that_fit_no_copy_are_refused_and_nothing_is_written() {
    use durum_format::twin::{SEAL_SIZE, STATE_OFFSET, Stage, State, seal_offset};
    let (dir, store, pool, root) = store(StoreOptions::new());
    push(&pool, root, 1).unwrap();
    drop((pool, store));
    assert_killed(
        support::start("grows_until_it_is_killed", dir.path())
            .wait()
            .unwrap(),
    );
    let path = files(dir.path()).into_iter().find(|path| is_root(path));
    let path = path.expect("the root puddle");
    let file = File::options().read(true).write(true).open(&path).unwrap();
    let mut word = [0; 8];
    file.read_exact_at(&mut word, STATE_OFFSET).unwrap();
    let state = State::from_word(u64::from_le_bytes(word)).unwrap();
    assert!(state.stage == Stage::Changing && state.is_listed);
    let contents = || -> Vec<_> {
        let all = files(dir.path());
        all.iter()
            .map(|path| std::fs::read(path).unwrap())
            .collect()
    };
    let assert_refused = |problem: &str| {
        let before = contents();
        let store = Store::open(dir.path().join("store"), StoreOptions::new()).unwrap();
        let text = store.open_pool("pool", twin()).unwrap_err().to_string();
        assert!(
            text.contains(problem) && text.contains("restore a copy"),
            "{text}"
        );
        drop(store);
        assert!(before == contents());
    };
    for damaged in [state.to_word() | 3 << 2, 3, u64::MAX] {
        file.write_all_at(&damaged.to_le_bytes(), STATE_OFFSET)
            .unwrap();
        assert_refused("has no stage");
    }
    // As after a transaction of the same process: which copy is whole only its seal tells.
    let unsettled = State {
        is_settled: false,
        ..state
    };
    file.write_all_at(&unsettled.to_word().to_le_bytes(), STATE_OFFSET)
        .unwrap();
    let size = file.metadata().unwrap().len() / 2;
    let places = [0, 1].map(|before| seal_offset(size, state.generation - before));
    let seals = places.map(|offset| {
        let mut seal = vec![0; SEAL_SIZE];
        file.read_exact_at(&mut seal, offset).unwrap();
        seal
    });
    for damage in [0, 0xff] {
        for offset in places {
            file.write_all_at(&[damage; SEAL_SIZE], offset).unwrap();
        }
        assert_refused("it fits neither copy");
    }
    for (seal, offset) in seals.iter().zip(places) {
        file.write_all_at(seal, offset).unwrap();
    }
    file.write_all_at(&word, STATE_OFFSET).unwrap();
    let store = Store::open(dir.path().join("store"), StoreOptions::new()).unwrap();
    let pool = store.open_pool("pool", twin()).unwrap();
    let root: *mut Root = pool.root().unwrap();
    assert_eq!(listed(root), [1]);
    assert!(unsafe { (*root).words.iter().all(|word| *word == 0) });
}

#[test]
fn a_clone_has_both_copies() {
    let (dir, store, pool, root) = store(StoreOptions::new());
    (0..100).for_each(|value| push(&pool, root, value).unwrap());
    drop((pool, store));
    let clone = dir.path().join("clone");
    durum_service::clone_store(&dir.path().join("store"), &clone, &Default::default()).unwrap();
    for entry in std::fs::read_dir(clone.join("puddles")).unwrap() {
        let (main, back) = copies(&entry.unwrap().path());
        assert!(main == back);
    }
    let store = Store::open(&clone, StoreOptions::new()).unwrap();
    let pool = store.open_pool("pool", twin()).unwrap();
    let root: *mut Root = pool.root().unwrap();
    assert_eq!(listed(root).len(), 100);
    push(&pool, root, 100).unwrap();
}

#[test]
fn readers_finish_while_a_writer_is_stopped_in_the_middle() {
    for domain in [Domain::Dram, Domain::File] {
        let (_dir, store, pool, root) = store(StoreOptions::new().domain(domain));
        drop(pool);
        let pool = store
            .open_pool("pool", twin().twin_mode(TwinMode::LeftRight))
            .unwrap();
        let root_address = root.expose_provenance();
        let seen = |pool: &Pool| {
            let root = std::ptr::with_exposed_provenance::<Root>(root_address);
            // SAFETY: the root is live.
            pool.read_copy(|view| unsafe { view.get(root).unwrap().words[..3].to_vec() })
                .unwrap()
        };
        let change = |value: u64, middle: &mut dyn FnMut()| {
            pool.transaction(|tx| unsafe {
                let root = std::ptr::with_exposed_provenance_mut::<Root>(root_address);
                for word in 0..3 {
                    tx.add(&raw const (*root).words[word])?;
                    (*root).words[word] = value;
                    middle();
                }
                Ok::<_, Error>(())
            })
            .unwrap();
        };
        change(1, &mut || ());
        assert_eq!(seen(&pool), [1; 3], "durable, so it is seen");
        let mut times = 0;
        change(2, &mut || {
            // The writer stands still until these readers have come and gone.
            thread::scope(|scope| {
                for _ in 0..3 {
                    scope.spawn(|| assert_eq!(seen(&pool), [1; 3]));
                }
            });
            times += 1;
        });
        assert_eq!((times, seen(&pool)), (3, vec![2; 3]));
        // What is rolled back was never seen.
        let result = pool.transaction(|tx| unsafe {
            tx.add(&raw const (*root).words[0])?;
            (*root).words[0] = 77;
            tx.abort::<()>()
        });
        assert!(result.is_err());
        assert_eq!(seen(&pool), [2; 3]);
    }
}

#[test]
fn readers_see_each_transaction_whole_and_time_does_not_go_back() {
    let (_dir, store, pool, root) = store(StoreOptions::new());
    drop(pool);
    let pool = store
        .open_pool("pool", twin().twin_mode(TwinMode::LeftRight))
        .unwrap();
    let (pool, root) = (&pool, root.expose_provenance());
    const LAST: u64 = 3000;
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(move || {
                let root = std::ptr::with_exposed_provenance::<Root>(root);
                let mut last = 0;
                for round in 0.. {
                    let panics = round % 7 == 3;
                    let read = std::panic::catch_unwind(AssertUnwindSafe(|| {
                        pool.read_copy(|view| unsafe {
                            let seen = view.get(root).unwrap();
                            let first = seen.words[0];
                            assert!(seen.words.iter().step_by(100).all(|word| *word == first));
                            let node = view.get(seen.list.cast_const());
                            assert_eq!(node.map_or(0, |node| node.value), first);
                            if panics {
                                // A reader that panics holds nobody up.
                                std::panic::resume_unwind(Box::new("as told"));
                            }
                            first
                        })
                    }));
                    match read {
                        Ok(seen) => {
                            let seen = seen.unwrap();
                            assert!(seen >= last);
                            last = seen;
                        }
                        Err(panic) if panics && panic.is::<&str>() => {}
                        Err(panic) => std::panic::resume_unwind(panic),
                    }
                    if last == LAST {
                        break;
                    }
                }
            });
        }
        let root = std::ptr::with_exposed_provenance_mut::<Root>(root);
        for value in 1..=LAST {
            pool.transaction(|tx| unsafe {
                for word in (0..1024).step_by(100) {
                    tx.add(&raw const (*root).words[word])?;
                    (*root).words[word] = value;
                }
                let old = (*root).list;
                push_in(tx, root, value)?;
                if !old.is_null() {
                    tx.free(old)?;
                }
                Ok::<_, Error>(())
            })
            .unwrap();
        }
    });
}

#[test]
fn a_copy_is_read_where_there_are_two_and_not_changed_by_who_reads() {
    let (_dir, store, pool, root) = store(StoreOptions::new());
    let shadow = store
        .create_pool("shadow", PoolOptions::new().engine(Engine::Shadow))
        .unwrap();
    for pool in [&pool, &shadow] {
        let error = pool.read_copy(|_| ()).unwrap_err();
        assert!(matches!(error, Error::NoCopies { .. }), "{error}");
    }
    drop(pool);
    let pool = store
        .open_pool("pool", twin().twin_mode(TwinMode::LeftRight))
        .unwrap();
    // Also what changes nothing: it would wait for its turn, which somebody may have who waits for this reader.
    let inside = pool
        .read_copy(|_| {
            // SAFETY: nobody changes the root meanwhile.
            let persisted = unsafe { pool.persist(root, size_of::<Root>()) };
            [
                push(&pool, root, 1),
                pool.transaction(|_| Ok::<_, Error>(())),
                persisted,
            ]
        })
        .unwrap();
    for refused in inside {
        assert!(
            matches!(refused, Err(Error::ReadsCopy { .. })),
            "{refused:?}"
        );
    }
    assert_eq!(listed(root), [0_u64; 0]);
    push(&pool, root, 2).unwrap();
    assert_eq!(listed(root), [2]);
    // Pointers of the copy are no pointers into the pool.
    let copy = pool
        .read_copy(|view| unsafe { std::ptr::from_ref(view.get(root).unwrap()) })
        .unwrap();
    assert_eq!(copy.addr(), root.addr(), "main, as of the last commit");
    pool.transaction(|tx| unsafe {
        tx.add(root)?;
        // Main is about to change, so that readers are sent to the other one.
        let address = root.expose_provenance();
        let copy = thread::scope(|scope| {
            let reader = scope.spawn(|| {
                let root = std::ptr::with_exposed_provenance::<Root>(address);
                pool.read_copy(|view| std::ptr::from_ref(view.get(root).unwrap()).addr())
                    .unwrap()
            });
            reader.join().unwrap()
        });
        assert_ne!(copy, address);
        let result = tx.add(std::ptr::with_exposed_provenance::<Root>(copy));
        assert!(matches!(result, Err(Error::NotInPool { .. })), "{result:?}");
        Ok::<_, Error>(())
    })
    .unwrap();
}

#[test]
fn a_read_in_a_read_shows_the_same_and_one_in_a_transaction_its_changes() {
    let (_dir, store, pool, root) = store(StoreOptions::new());
    drop(pool);
    let pool = store
        .open_pool("pool", twin().twin_mode(TwinMode::LeftRight))
        .unwrap();
    let change = |value: u64, middle: &dyn Fn()| {
        pool.transaction(|tx| unsafe {
            tx.add(&raw const (*root).words[0])?;
            (*root).words[0] = value;
            middle();
            Ok::<_, Error>(())
        })
        .unwrap();
    };
    // SAFETY: the root is live.
    let seen = |view: &durum::View<'_>| unsafe { view.get(root).unwrap().words[0] };
    change(1, &|| ());
    change(2, &|| {
        let (first, nested) = pool
            .read_copy(|view| (seen(view), pool.read_copy(seen).unwrap()))
            .unwrap();
        assert_eq!((first, nested), (2, 2), "what this thread has stored");
        // It is part of the transaction, which may go on.
        let inside = pool.read_copy(|_| pool.transaction(|_| Ok::<_, Error>(())));
        inside.unwrap().unwrap();
    });
    let [changes, come, go] = [(); 3].map(|()| std::sync::Barrier::new(2));
    let (pool, address) = (&pool, root.expose_provenance());
    thread::scope(|scope| {
        let (changes, come, go) = (&changes, &come, &go);
        let reader = scope.spawn(move || {
            let root = std::ptr::with_exposed_provenance::<Root>(address);
            // SAFETY: the root is live.
            let seen = |view: &durum::View<'_>| unsafe { view.get(root).unwrap().words[0] };
            changes.wait();
            pool.read_copy(|view| {
                come.wait();
                go.wait();
                // Whoever comes now is sent to main, where there is something newer by the time of the look below.
                (seen(view), pool.read_copy(seen).unwrap(), view.distance())
            })
            .unwrap()
        });
        pool.transaction(|tx| unsafe {
            tx.add(&raw const (*root).words[0])?;
            (*root).words[0] = 3;
            // From now on readers are sent to back.
            changes.wait();
            come.wait();
            Ok::<_, Error>(scope.spawn(move || {
                let root = std::ptr::with_exposed_provenance::<Root>(address);
                let seen = |view: &durum::View<'_>| view.get(root).unwrap().words[0];
                while pool.read_copy(seen).unwrap() != 3 {}
                go.wait();
            }))
        })
        .unwrap();
        let (first, nested, distance) = reader.join().unwrap();
        assert_eq!((first, nested), (2, 2));
        assert_ne!(distance, 0);
    });
}

/// A chain whose links readers follow in the copy that they see.
#[repr(C)]
struct Link {
    value: u64,
    next: LrRef<Link>,
}
durum::describe!(Link as "link" { value, next });

#[repr(C)]
struct Chain {
    first: LrRef<Link>,
    last: LrRef<Link>,
    /// In the object, as are its own pointers.
    inner: Link,
}
durum::describe!(Chain as "chain" { first, last, inner });

/// The values along the chain, as of one commit.
fn values(pool: &Pool, chain: *const Chain) -> durum::Result<Vec<u64>> {
    pool.read_copy(|view| {
        let mut values = Vec::new();
        // SAFETY: the root is live, and so is what a link leads to as long as the view shows it.
        unsafe {
            let mut next = view.get(chain).map_or(LrRef::null(), |chain| chain.first);
            while let Some(link) = next.get(view) {
                values.push(link.value);
                next = link.next;
            }
        }
        values
    })
}

#[test]
fn the_page_about_threads_shows_this_code() {
    let (page, tests) = (
        include_str!("../../../docs/how-to/concurrency.md"),
        include_str!("twin.rs"),
    );
    let blocks: Vec<&str> = (page.split("```rust\n").skip(1))
        .map(|rest| rest.split("```").next().unwrap())
        .collect();
    assert_eq!(blocks.len(), 2);
    for block in blocks {
        assert!(
            tests.contains(block),
            "no test has this code any more:\n{block}"
        );
    }
}

#[test]
fn references_are_followed_in_the_copy_that_is_seen() {
    let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    let store = Store::create(dir.path().join("store"), StoreOptions::new()).unwrap();
    let options = twin().twin_mode(TwinMode::LeftRight);
    let pool = store.create_pool("pool", options).unwrap();
    let chain: *mut Chain = pool.root().unwrap();
    let address = chain.expose_provenance();
    // The values along the chain, what the inner one leads to, and how far from the objects it was read.
    let seen = |pool: &Pool| {
        let chain = std::ptr::with_exposed_provenance::<Chain>(address);
        pool.read_copy(|view| unsafe {
            let seen = view.get(chain).unwrap();
            assert_eq!(LrRef::<Link>::null().get(view).map(|link| link.value), None);
            let mut values = Vec::new();
            let mut next = seen.first;
            while let Some(link) = next.get(view) {
                assert_eq!(
                    std::ptr::from_ref(link).addr(),
                    next.object().addr() + view.distance()
                );
                values.push(link.value);
                // The reference is the object's own in whatever copy it stands: it can be compared, and kept.
                if link.next == LrRef::null() {
                    assert_eq!(next, seen.last);
                }
                next = link.next;
            }
            let inner = seen.inner.next.get(view);
            let inner = inner.and_then(|link| link.next.get(view));
            (values, inner.map(|link| link.value), view.distance())
        })
        .unwrap()
    };
    let append = |tx: &Tx, value: u64| unsafe {
        let link = LrRef::new(tx.alloc::<Link>()?);
        link.object().write(Link {
            value,
            next: LrRef::null(),
        });
        tx.add(chain)?;
        match (*chain).last == LrRef::null() {
            true => (*chain).first = link,
            false => {
                let last = (*chain).last.object();
                tx.add(&raw const (*last).next)?;
                (*last).next = link;
            }
        }
        (*chain).last = link;
        Ok::<_, Error>(link)
    };
    assert_eq!(seen(&pool), (vec![], None, 0));
    let first = pool.transaction(|tx| append(tx, 1)).unwrap();
    for round in 2..6 {
        pool.transaction(|tx| unsafe {
            append(tx, round)?;
            tx.add(&raw const (*chain).inner)?;
            (*chain).inner.next = first;
            tx.add(&raw const (*first.object()).value)?;
            (*first.object()).value = 10 * round;
            // This thread sees what it has changed; others what is committed, in the other copy.
            let mut changed: Vec<u64> = (1..=round).collect();
            let mut committed: Vec<u64> = (1..round).collect();
            changed[0] = 10 * round;
            if round > 2 {
                committed[0] = 10 * (round - 1);
            }
            assert_eq!(seen(&pool), (changed, Some(2), 0));
            let pool = &pool;
            let elsewhere = thread::scope(|scope| {
                let reader = scope.spawn(move || {
                    // One inside of another one shows the same.
                    let nested = pool.read_copy(|_| seen(pool)).unwrap();
                    assert_eq!(nested, seen(pool));
                    nested
                });
                reader.join().unwrap()
            });
            assert_eq!(elsewhere.0, committed);
            assert_eq!(elsewhere.1, (round > 2).then_some(2));
            assert_ne!(elsewhere.2, 0);
            Ok::<_, Error>(())
        })
        .unwrap();
        let now = values(&pool, chain).unwrap();
        assert_eq!((now.len() as u64, now[0]), (round, 10 * round));
    }
    // What a view gives is a reference as any other, for who changes the object later.
    let last = pool
        .read_copy(|view| unsafe { view.get(chain).unwrap().last })
        .unwrap();
    assert_eq!(unsafe { (*last.object()).value }, 5);
    assert!(format!("{last:?}").starts_with("0x"));
}

#[test]
fn the_basic_mode_copies_all_that_is_in_use() {
    let (dir, store, pool, root) = store(StoreOptions::new());
    push(&pool, root, 1).unwrap();
    drop(pool);
    let pool = store
        .open_pool("pool", twin().twin_mode(TwinMode::Basic))
        .unwrap();
    let before = thread_counters();
    pool.transaction(|tx| unsafe {
        tx.add(&raw const (*root).words[0])?;
        (*root).words[0] = 1;
        // A bug elsewhere; here it shows that no log says what is copied.
        (*root).words[900] = 2;
        Ok::<_, Error>(())
    })
    .unwrap();
    let cost = thread_counters() - before;
    // The seal goes past the cache.
    let lines = cost.write_backs + cost.streamed_lines;
    assert_eq!((cost.fences, lines), (3, 1 + 2 + 3));
    for file in files(dir.path()) {
        let (main, back) = copies(&file);
        assert!(main == back);
    }
}

/// Recovery compares the copies of a pool that says it is being changed; those of an idle one count as the same.
#[test]
fn the_first_persist_says_that_main_is_being_changed() {
    use durum_format::twin::{Stage, State};

    let (dir, store, pool, root) = store(StoreOptions::new());
    pool.transaction(|tx| unsafe { tx.set(&raw mut (*root).words[0], 1) })
        .unwrap();
    drop((pool, store));
    let store = Store::open(dir.path().join("store"), StoreOptions::new()).unwrap();
    let pool = store.open_pool("pool", twin()).unwrap();
    let stage = || {
        let files = files(dir.path());
        let file = files.iter().find(|file| is_root(file)).unwrap();
        let mut word = [0; 8];
        let state = durum_format::twin::STATE_OFFSET;
        File::open(file)
            .unwrap()
            .read_exact_at(&mut word, state)
            .unwrap();
        State::from_word(u64::from_le_bytes(word)).unwrap().stage
    };
    assert_eq!(stage(), Stage::Idle);
    // SAFETY: the root is live, and nobody else is there.
    unsafe {
        (*root).words[5] = 5;
        pool.persist(&raw const (*root).words[5], 8).unwrap();
    }
    assert_eq!(stage(), Stage::Changing);
}

/// What one mode's transactions leave for the seal to be about: a line that was stored to before without an
/// announcement, and an object that is gone.
fn leaves_what_is_not_in_use(pool: &Pool, root: *mut Root) {
    // SAFETY: the root is live, and nobody else is there.
    unsafe {
        (*root).words[0] = 7;
        pool.transaction(|tx| {
            tx.add(&raw const (*root).words[0])?;
            tx.add(&raw const (*root).words[1000])?;
            (*root).words[1000] = 1;
            let object = tx.alloc_bytes(pool, 0, 400, 8)?;
            object.write_bytes(1, 400);
            tx.free(object)
        })
        .unwrap();
        (*root).words[0] = 8;
        let _ = pool.transaction(|tx| {
            tx.add(&raw const (*root).words[500])?;
            (*root).words[500] = 99;
            let object = tx.alloc_bytes(pool, 0, 400, 8)?;
            object.write_bytes(2, 400);
            rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL)
                .unwrap();
            Ok::<_, Error>(())
        });
    }
}

#[test]
#[ignore = "the other process of the test below"]
fn is_killed_after_a_seal_of_what_is_not_in_use() {
    let Some(dir) = support::directory() else {
        return;
    };
    let store = Store::open(dir.join("store"), StoreOptions::new()).unwrap();
    let mode = match dir.join("basic").exists() {
        true => TwinMode::Basic,
        false => TwinMode::Log,
    };
    let pool = store.open_pool("pool", twin().twin_mode(mode)).unwrap();
    leaves_what_is_not_in_use(&pool, pool.root().unwrap());
}

#[test]
fn back_gets_all_that_a_seal_is_about() {
    for is_basic in [false, true] {
        let (dir, store, pool, root) = store(StoreOptions::new());
        drop((pool, store));
        if is_basic {
            File::create(dir.path().join("basic")).unwrap();
        }
        assert_killed(
            support::start("is_killed_after_a_seal_of_what_is_not_in_use", dir.path())
                .wait()
                .unwrap(),
        );
        let store = Store::open(dir.path().join("store"), StoreOptions::new()).unwrap();
        let pool = store.open_pool("pool", twin()).unwrap();
        assert_eq!(root, pool.root().unwrap());
        // SAFETY: the root is live, and nobody else is there.
        let words = unsafe { (*root).words };
        assert_eq!((words[1000], words[500]), (1, 0), "basic: {is_basic}");
    }
}

#[test]
fn an_update_inside_a_read_of_a_copy_is_an_error() {
    let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    let store = Store::create(dir.path().join("store"), StoreOptions::new()).unwrap();
    let options = twin().twin_mode(TwinMode::LeftRight);
    let pool = store.create_pool("pool", options).unwrap();
    let found = pool.read_copy(|_| (pool.update(|_| Ok::<(), Error>(())), pool.read(|| ())));
    let (update, read) = found.unwrap();
    assert!(matches!(update, Err(Error::ReadsCopy { .. })));
    assert!(matches!(read, Err(Error::ReadsCopy { .. })));
    pool.update(|_| Ok::<(), Error>(())).unwrap();
}
