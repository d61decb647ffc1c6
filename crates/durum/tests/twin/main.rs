//! Twin: what its transactions cost, that both copies are the same afterwards, and what a pool with two copies refuses.

#![allow(
    clippy::undocumented_unsafe_blocks,
    reason = "the root is live as long as its pool is open, and each test knows who changes it"
)]

mod costs;
mod killed;
mod readers;
#[path = "../support/mod.rs"]
mod support;
mod transactions;

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use durum::{Engine, Error, Pool, PoolOptions, Store, StoreOptions, Tx};
use tempfile::TempDir;

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
