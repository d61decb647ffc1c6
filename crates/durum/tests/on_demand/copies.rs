//! Copies of one store, with the same names and the same addresses, open in one process (Puddles, EuroSys'24, §4.2).

use std::path::{Path, PathBuf};

use durum::{Domain, Engine, Error, Pool, PuddleMapping, Store, StoreError, StoreOptions};

use crate::fixture::{IN_MEMORY, WAYS, copy, everywhere, make, pool_options, try_open};

/// An object so large that a puddle of 2 MiB holds three.
const FILLER: usize = 75_000;

#[repr(C)]
struct Node {
    value: u64,
    next: *mut Node,
    filler: [u64; FILLER],
}
durum::describe!(Node as "copies node" { value, next, filler });

#[repr(C)]
struct List {
    first: *mut Node,
    last: *mut Node,
}
durum::describe!(List as "copies list" { first, last });

fn options(domain: Domain, way: PuddleMapping) -> StoreOptions {
    StoreOptions::new().domain(domain).mapping(way)
}

/// Appends nodes with these values, one in each transaction.
fn append(pool: &Pool, values: std::ops::Range<u64>) {
    let list = pool.root::<List>().unwrap();
    for value in values {
        pool.transaction(|tx| unsafe {
            let node = tx.alloc::<Node>()?;
            tx.add(&raw const (*node).value)?;
            (*node).value = value;
            tx.add(&raw const (*node).next)?;
            (*node).next = std::ptr::null_mut();
            tx.add(list)?;
            let place = match (*list).last.is_null() {
                true => &raw mut (*list).first,
                false => &raw mut (*(*list).last).next,
            };
            tx.add(place)?;
            *place = node;
            (*list).last = node;
            Ok::<_, Error>(())
        })
        .unwrap();
    }
}

fn values(pool: &Pool) -> Vec<u64> {
    let list = pool.root::<List>().unwrap();
    let mut values = Vec::new();
    unsafe {
        let mut node = (*list).first;
        while !node.is_null() {
            values.push((*node).value);
            node = (*node).next;
        }
    }
    values
}

const NODES: u64 = 8;

/// Makes a store with a list, and copies of it.
fn make_copies(dir: &Path, engine: Engine, domain: Domain, copies: usize) -> Vec<PathBuf> {
    let first = dir.join("0");
    let store = Store::create(&first, options(domain, PuddleMapping::Eager)).unwrap();
    let pool = store.create_pool("list", pool_options(engine)).unwrap();
    append(&pool, 0..NODES);
    drop(pool);
    store.close().unwrap();
    let mut paths = vec![first];
    for number in 1..=copies {
        let path = dir.join(number.to_string());
        copy(&paths[0], &path);
        paths.push(path);
    }
    paths
}

fn open(path: &Path, domain: Domain, way: PuddleMapping) -> (Store, Pool) {
    let store = Store::open(path, options(domain, way)).unwrap();
    let pool = store.open_pool("list", Default::default()).unwrap();
    (store, pool)
}

#[test]
fn copies_of_a_store_are_open_side_by_side() {
    everywhere(|dir, engine, domain| {
        let paths = make_copies(dir, engine, domain, 2);
        // Twice: they were moved the first time. And the original comes last then.
        for round in 0..2 {
            let order: Vec<usize> = match round {
                0 => (0..3).collect(),
                _ => (0..3).rev().collect(),
            };
            let opened: Vec<(usize, (Store, Pool))> = order
                .into_iter()
                .map(|which| (which, open(&paths[which], domain, WAYS[which])))
                .collect();
            for (which, (_, pool)) in &opened {
                let base = 100 * *which as u64;
                let mut expected: Vec<u64> = (0..NODES).collect();
                if round == 1 {
                    expected.extend(base..base + 4);
                }
                assert_eq!(values(pool), expected, "{which}, round {round}");
                append(pool, base..base + 4);
                expected.extend(base..base + 4);
                assert_eq!(values(pool), expected);
            }
            for (_, (store, pool)) in opened {
                drop(pool);
                store.close().unwrap();
            }
        }
        for path in &paths {
            let report = durum_service::check(path, &Default::default()).unwrap();
            assert_eq!(report.findings, [], "{}", path.display());
        }
    });
}

/// A copy whose objects nobody knows is told apart from one that is damaged, and opens by itself.
#[test]
fn a_copy_of_unknown_objects_needs_a_promise() {
    let dir = tempfile::tempdir_in(IN_MEMORY).unwrap();
    let (one, other) = (dir.path().join("one"), dir.path().join("other"));
    std::fs::create_dir(&one).unwrap();
    make(&one, Engine::Hybrid, Domain::Dram, 4);
    copy(&one, &other);
    for first in WAYS {
        for second in WAYS {
            let opened = try_open(&one, Domain::Dram, first, Default::default()).unwrap();
            let refused = try_open(&other, Domain::Dram, second, Default::default());
            let Err(Error::Store(StoreError::Unmovable { pool, .. })) = refused else {
                panic!("{first:?} {second:?}: both are open");
            };
            assert_eq!(pool.as_deref(), Some("pool"));
            for block in 0..4 {
                assert_eq!(opened.load(block, 0), block as u64);
            }
            opened.close();
            // Nothing has happened to it.
            let opened = try_open(&other, Domain::Dram, second, Default::default());
            opened.unwrap().close();
        }
    }
    let opened = try_open(&one, Domain::Dram, PuddleMapping::Eager, Default::default()).unwrap();
    let promised = options(Domain::Dram, PuddleMapping::Signal).untyped_hold_no_pointers(true);
    let store = Store::open(other.join("store"), promised).unwrap();
    let pool = store.open_pool("pool", Default::default()).unwrap();
    let root = pool.root::<crate::fixture::Root>().unwrap();
    for block in 0..4 {
        let moved = unsafe { (*root).blocks[block] };
        assert_eq!(unsafe { moved.cast::<u64>().read() }, block as u64);
        assert_eq!(opened.load(block, 0), block as u64);
    }
}

/// Neither store is in the other's way when both grow, also where one would go on where the other one is.
#[test]
fn copies_grow_beside_each_other() {
    let dir = tempfile::tempdir_in(IN_MEMORY).unwrap();
    let first = dir.path().join("0");
    let store = Store::create(&first, options(Domain::Dram, PuddleMapping::Eager)).unwrap();
    store.close().unwrap();
    // Empty ones: both go on at the same address.
    let paths = [first, dir.path().join("1")];
    copy(&paths[0], &paths[1]);
    let stores = paths
        .each_ref()
        .map(|path| Store::open(path, options(Domain::Dram, PuddleMapping::Eager)).unwrap());
    let pools = stores.each_ref().map(|store| {
        let pool = store.create_pool("list", pool_options(Engine::Hybrid));
        pool.unwrap()
    });
    std::thread::scope(|scope| {
        for (pool, base) in pools.iter().zip([0, 1000]) {
            scope.spawn(move || append(pool, base..base + 30));
        }
    });
    assert_eq!(values(&pools[0]), (0..30).collect::<Vec<_>>());
    assert_eq!(values(&pools[1]), (1000..1030).collect::<Vec<_>>());
}

/// A store that is opened while another one has a pool there makes way; one whose own pools are open does not.
#[test]
fn what_is_open_is_not_moved() {
    let dir = tempfile::tempdir_in(IN_MEMORY).unwrap();
    let paths = make_copies(dir.path(), Engine::Shadow, Domain::Dram, 1);
    let (store, pool) = open(&paths[0], Domain::Dram, PuddleMapping::Eager);
    let root = pool.root::<List>().unwrap().addr();
    let second = Store::open(&paths[1], options(Domain::Dram, PuddleMapping::Eager)).unwrap();
    let moved = second.open_pool("list", Default::default()).unwrap();
    assert_ne!(moved.root::<List>().unwrap().addr(), root);
    assert_eq!(pool.root::<List>().unwrap().addr(), root);
    assert_eq!(
        (values(&pool), values(&moved)),
        ((0..NODES).collect(), (0..NODES).collect())
    );
    drop((pool, moved));
    second.close().unwrap();
    store.close().unwrap();
}
