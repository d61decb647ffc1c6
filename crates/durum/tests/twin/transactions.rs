//! Both copies are the same after each transaction, and a transaction has one pool of this engine.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use durum::{
    Announce, Domain, Durability, Engine, Error, PoolOptions, Store, StoreOptions, TwinMode,
    thread_counters,
};

use crate::{Root, files, is_root, listed, push, store, twin};

const SIZE: usize = 2 << 20;

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
