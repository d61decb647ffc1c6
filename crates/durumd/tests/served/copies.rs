//! A store that is served is a copy of one that the program has, or the other way round.

use std::path::Path;
use std::process::Command;

use durum::{Engine, Pool, PoolOptions, Store, StoreError, StoreOptions};

use crate::support::{Served, until};

#[repr(C)]
struct Node {
    value: u64,
    next: *mut Node,
}
durum::describe!(Node as "served copies node" { value, next });

pub fn fill(pool: &Pool) {
    let root = pool.root::<Node>().unwrap();
    // SAFETY: what is allocated is written before it is published; this test alone uses the pool.
    pool.transaction(|tx| unsafe {
        let next = tx.alloc::<Node>()?;
        tx.add(next)?;
        next.write(Node {
            value: 7,
            next: root,
        });
        tx.add(root)?;
        (*root).next = next;
        Ok::<_, durum::Error>(())
    })
    .unwrap();
}

/// The value behind the root, which points back to it.
pub fn value(pool: &Pool) -> u64 {
    let root = pool.root::<Node>().unwrap();
    // SAFETY: `fill` wrote both nodes, and nothing changes them.
    unsafe {
        assert_eq!((*(*root).next).next, root);
        (*(*root).next).value
    }
}

fn copy(from: &Path, to: &Path) {
    let copied = Command::new("cp").arg("-r").args([from, to]).status();
    assert!(copied.unwrap().success());
}

fn open(path: &Path) -> (Store, Pool) {
    try_open(path).unwrap()
}

fn try_open(path: &Path) -> Result<(Store, Pool), durum::Error> {
    let store = Store::open(path, StoreOptions::new())?;
    let pool = store.open_pool("pool", PoolOptions::new())?;
    Ok((store, pool))
}

/// A store that somebody serves, and a copy of it.
fn served_and_copy() -> (tempfile::TempDir, Served) {
    served_and_copy_of("shadow")
}

fn served_and_copy_of(engine: &str) -> (tempfile::TempDir, Served) {
    let directory = tempfile::tempdir_in("/dev/shm").unwrap();
    let mut served = Served::start();
    let store = Store::open(served.address(), StoreOptions::new()).unwrap();
    let engine = Engine::from_name(engine).unwrap();
    let options = PoolOptions::new().engine(engine);
    let pool = store.create_pool("pool", options).unwrap();
    fill(&pool);
    drop(pool);
    store.close().unwrap();
    served.end();
    copy(&served.store(), &directory.path().join("copy"));
    served.start_again();
    (directory, served)
}

#[test]
fn a_served_store_makes_way_for_a_copy_that_was_there_first() {
    let (directory, served) = served_and_copy();
    let (own, here) = open(&directory.path().join("copy"));
    let (store, there) = open(Path::new(&served.address()));
    assert_eq!((value(&here), value(&there)), (7, 7));
    assert_ne!(here.root::<Node>().unwrap(), there.root::<Node>().unwrap());
    drop((here, there));
    own.close().unwrap();
    store.close().unwrap();
}

#[test]
fn a_store_of_the_program_makes_way_for_one_that_is_served() {
    let (directory, served) = served_and_copy();
    let (store, there) = open(Path::new(&served.address()));
    let (own, here) = open(&directory.path().join("copy"));
    assert_eq!((value(&here), value(&there)), (7, 7));
    drop((here, there));
    own.close().unwrap();
    store.close().unwrap();
}

/// What others have open does not move, and whoever is refused is told by whom.
#[test]
fn a_served_store_that_others_use_stays_where_it_is() {
    let (directory, served) = served_and_copy();
    let mut other = served.client("client");
    other.expect("here");
    assert_eq!(other.ask("open held"), "0 0");
    let (_own, _here) = open(&directory.path().join("copy"));
    let store = Store::open(served.address(), StoreOptions::new()).unwrap();
    let refused = store.open_pool("pool", PoolOptions::new()).map(drop);
    let Err(durum::Error::Store(error)) = refused else {
        panic!("{refused:?}");
    };
    assert!(
        error.to_string().contains("a program has it open"),
        "{error}"
    );
    assert!(!matches!(error, StoreError::AddressConflict { .. }));
    // As soon as it is closed, it goes.
    drop(other);
    let opened = (0..100).find_map(|_| {
        std::thread::sleep(std::time::Duration::from_millis(50));
        store.open_pool("pool", PoolOptions::new()).ok()
    });
    assert_eq!(value(&opened.unwrap()), 7);
}

/// The service is killed before a step of its own while it moves a store beside a copy, and started again at once.
/// Gives the number of steps, if there are not so many.
fn dies_while_it_moves(engine: &str, number: u64) -> Option<u64> {
    let (directory, mut served) = served_and_copy_of(engine);
    let (own, here) = open(&directory.path().join("copy"));
    let address = served.address();
    let mut opened = None;
    let steps = served.killed_before(number, || {
        // Who has no store open yet is told that the service is not there.
        until("it opens", || {
            opened = try_open(Path::new(&address)).ok();
            opened.is_some()
        });
    });
    let (store, there) = opened.unwrap();
    assert_eq!((value(&here), value(&there)), (7, 7), "{engine}, {number}");
    assert_ne!(here.root::<Node>().unwrap(), there.root::<Node>().unwrap());
    drop((here, there));
    own.close().unwrap();
    store.close().unwrap();
    // It is as well for who finds it alone.
    let (store, there) = open(Path::new(&address));
    assert_eq!(value(&there), 7, "{engine}, {number}");
    drop(there);
    store.close().unwrap();
    steps
}

/// Tries steps until there are no more.
fn try_all(stride: usize) {
    for (engine, first) in [("shadow", 1), ("hybrid", 3), ("twin", 5)] {
        let tried = (first..).step_by(stride);
        let steps = tried
            .map(|number| (number, dies_while_it_moves(engine, number)))
            .find_map(|(number, steps)| steps.map(|steps| (number, steps)));
        let (number, steps) = steps.unwrap();
        // Else it never moved anything.
        assert!(steps > 10 && steps < number, "{engine}: {steps} steps");
    }
}

#[test]
fn a_move_survives_the_death_of_the_service_at_some_steps() {
    try_all(7);
}

#[test]
#[ignore = "it takes minutes"]
fn a_move_survives_the_death_of_the_service_at_each_step() {
    try_all(1);
}
