//! Measurements, with the release profile, on an otherwise idle machine.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Instant;

use durum::{Domain, Engine, Error, Pool, PoolOptions, PuddleMapping, Store, StoreOptions};

use crate::fixture::{ENGINES, PUDDLE, WAYS, copy, make_movable};

fn options(way: PuddleMapping) -> StoreOptions {
    StoreOptions::new().domain(Domain::Dram).mapping(way)
}

#[repr(C)]
struct Small {
    next: *mut Small,
}
durum::describe!(Small as "copies small" { next });

/// The shortest time of those that were measured, in microseconds: others had to wait for other programs.
fn shortest(times: Vec<f64>) -> f64 {
    times.into_iter().fold(f64::INFINITY, f64::min)
}

/// What it takes to open a pool that has moved, less what it takes to open it again.
#[test]
#[ignore = "a measurement: cargo test --release -p durum-tests --test on_demand measure_rewriting -- --ignored --nocapture"]
fn measure_rewriting() {
    for (pointers, rounds) in [(20_u64, 31), (2_000, 31), (2_000_000, 5)] {
        for engine in ENGINES {
            let dir = tempfile::tempdir_in("/dev/shm").unwrap();
            let paths = [dir.path().join("0"), dir.path().join("1")];
            let options = || options(PuddleMapping::Eager);
            let store = Store::create(&paths[0], options()).unwrap();
            let large = PoolOptions::new().engine(engine);
            let pool = store.create_pool("list", large).unwrap();
            let root = pool.root::<Small>().unwrap();
            for _ in 0..pointers.div_ceil(1000) {
                pool.transaction(|tx| unsafe {
                    for _ in 0..pointers.min(1000) {
                        let node = tx.alloc::<Small>()?;
                        tx.add(node)?;
                        (*node).next = (*root).next;
                        tx.add(root)?;
                        (*root).next = node;
                    }
                    Ok::<_, Error>(())
                })
                .unwrap();
            }
            drop(pool);
            store.close().unwrap();
            let mut times = [Vec::new(), Vec::new()];
            for _ in 0..rounds {
                copy(&paths[0], &paths[1]);
                let original = Store::open(&paths[0], options()).unwrap();
                for times in &mut times {
                    let store = Store::open(&paths[1], options()).unwrap();
                    let began = Instant::now();
                    let pool = store.open_pool("list", PoolOptions::new()).unwrap();
                    times.push(began.elapsed().as_secs_f64() * 1e6);
                    assert_eq!(length(&pool), pointers);
                    drop(pool);
                    store.close().unwrap();
                }
                original.close().unwrap();
                std::fs::remove_dir_all(&paths[1]).unwrap();
            }
            let [moved, again] = times.map(shortest);
            println!(
                "{pointers} pointers, {}: {:.0} us more than {again:.0}, {:.3} us each",
                engine.name(),
                moved - again,
                (moved - again) / pointers as f64
            );
        }
    }
}

fn length(pool: &Pool) -> u64 {
    let root = pool.root::<Small>().unwrap();
    let mut found = 0;
    unsafe {
        let mut node = (*root).next;
        while !node.is_null() {
            (found, node) = (found + 1, (*node).next);
        }
    }
    found
}

/// An object that leaves little room in a puddle of 2 MiB.
const BLOCK_WORDS: usize = (1_900_000 - 8) / 8;
/// Objects of 64 bytes that fill the rest.
const LEAVES: usize = 1_500;

#[repr(C)]
struct Block {
    next: *mut Block,
    filler: [u64; BLOCK_WORDS],
}
durum::describe!(Block as "measured block" { next, filler });

#[repr(C)]
struct Leaf {
    next: *mut Leaf,
    value: [u64; 7],
}
durum::describe!(Leaf as "measured leaf" { next, value });

#[repr(C)]
struct Both {
    blocks: *mut Block,
    leaves: *mut Leaf,
}
durum::describe!(Both as "measured both" { blocks, leaves });

/// Adds blocks, and leaves behind each of them.
fn grow(pool: &Pool, blocks: usize, leaves: usize) {
    let root = pool.root::<Both>().unwrap();
    for _ in 0..blocks {
        pool.transaction(|tx| unsafe {
            let block = tx.alloc::<Block>()?;
            tx.add(&raw const (*block).next)?;
            (*block).next = (*root).blocks;
            tx.add(root)?;
            (*root).blocks = block;
            for _ in 0..leaves {
                let leaf = tx.alloc::<Leaf>()?;
                tx.add(&raw const (*leaf).next)?;
                (*leaf).next = (*root).leaves;
                (*root).leaves = leaf;
            }
            Ok::<_, Error>(())
        })
        .unwrap();
    }
}

/// Has pages of zeros take no memory.
fn dig_holes(store: &Path) {
    const PIECE: usize = 64 << 10;
    for entry in std::fs::read_dir(store.join("puddles")).unwrap() {
        let path = entry.unwrap().path();
        let file = File::options().read(true).write(true).open(path).unwrap();
        let mut bytes = vec![0; PIECE];
        for start in (0..file.metadata().unwrap().len()).step_by(PIECE) {
            file.read_exact_at(&mut bytes, start).unwrap();
            if bytes.iter().all(|byte| *byte == 0) {
                let flags = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
                let (start, length) = (start as i64, PIECE as i64);
                // SAFETY: a call that touches no memory of the process.
                let dug = unsafe { libc::fallocate(file.as_raw_fd(), flags, start, length) };
                assert_eq!(dug, 0);
            }
        }
    }
}

/// What it takes to open the second of two copies of a store of 10 GiB while the first one is open, and to touch its
/// first puddles: in puddles as pools grow by, and in such of 2 MiB.
#[test]
#[ignore = "a measurement: cargo test --release -p durum-tests --test on_demand measure_copies -- --ignored --nocapture"]
fn measure_copies_of_10_gib() {
    const PUDDLES: usize = (10 << 30) / PUDDLE;
    let growths = [PoolOptions::new().growth_max, PUDDLE as u64];
    for (leaves, growth) in [0, LEAVES]
        .into_iter()
        .flat_map(|leaves| growths.map(|growth| (leaves, growth)))
    {
        for engine in ENGINES {
            let dir = tempfile::tempdir_in("/dev/shm").unwrap();
            let paths = [dir.path().join("0"), dir.path().join("1")];
            drop(Store::create(&paths[0], options(PuddleMapping::Signal)).unwrap());
            let pool_options = || PoolOptions::new().engine(engine).growth_max(growth);
            let copies = if engine == Engine::Twin { 2 } else { 1 };
            // A part at a time: the files are as long as they say until holes are dug.
            for _ in 0..8 {
                let store = Store::open(&paths[0], options(PuddleMapping::Signal)).unwrap();
                let pool = store.open_or_create_pool("pool", pool_options()).unwrap();
                grow(&pool, PUDDLES / copies / 8, leaves);
                drop(pool);
                store.close().unwrap();
                dig_holes(&paths[0]);
            }
            for way in WAYS {
                copy(&paths[0], &paths[1]);
                let open = |path: &Path| {
                    let began = Instant::now();
                    let store = Store::open(path, options(way)).unwrap();
                    let opened = began.elapsed();
                    let pool = store.open_pool("pool", PoolOptions::new()).unwrap();
                    (
                        opened.as_secs_f64() * 1e3,
                        began.elapsed().as_secs_f64() * 1e3,
                        store,
                        pool,
                    )
                };
                let (store_first, first, _store, _pool) = open(&paths[0]);
                let (store_second, second, store, pool) = open(&paths[1]);
                let began = Instant::now();
                let root = pool.root::<Both>().unwrap();
                let mut blocks = 0;
                unsafe {
                    let mut block = (*root).blocks;
                    while !block.is_null() && blocks < 100 {
                        (blocks, block) = (blocks + 1, (*block).next);
                    }
                }
                println!(
                    "{} blocks, {leaves} leaves each, puddles of {} MiB, {}, {way:?}: first {store_first:.1} + {:.1} ms, second \
                     {store_second:.1} + {:.1} ms, {blocks} blocks touched in {:.1} ms",
                    PUDDLES / copies,
                    growth >> 20,
                    engine.name(),
                    first - store_first,
                    second - store_second,
                    began.elapsed().as_secs_f64() * 1e3,
                );
                drop(pool);
                store.close().unwrap();
                std::fs::remove_dir_all(&paths[1]).unwrap();
            }
        }
    }
}

/// What each further puddle of an import costs that takes files over.
#[test]
#[ignore = "a measurement: cargo test --release -p durum-tests --test on_demand measure_imports -- --ignored --nocapture"]
fn measure_imports() {
    const MANY: usize = 257;
    let mut best = [f64::MAX; 2];
    for _ in 0..5 {
        for (blocks, best) in [1, MANY].into_iter().zip(&mut best) {
            let dir = tempfile::tempdir_in("/dev/shm").unwrap();
            make_movable(dir.path(), Engine::Shadow, Domain::Dram, blocks);
            let open = || Store::open(dir.path().join("store"), StoreOptions::new()).unwrap();
            let store = open();
            let place = dir.path().join("export");
            store
                .export_pool("pool", &place, &Default::default())
                .unwrap();
            store.remove_pool("pool").unwrap();
            store.close().unwrap();
            let store = open();
            let began = Instant::now();
            store.import(&place, &Default::default()).unwrap();
            *best = best.min(began.elapsed().as_secs_f64());
            store.close().unwrap();
        }
    }
    let further = (best[1] - best[0]) / (MANY - 1) as f64;
    println!(
        "an import of one puddle: {:.2} ms; each further one: {:.1} us",
        best[0] * 1e3,
        further * 1e6
    );
}
