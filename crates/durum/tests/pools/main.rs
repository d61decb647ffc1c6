//! Several pools, many threads, large pools, and the checker for stores that nobody announced.

#![allow(
    clippy::undocumented_unsafe_blocks,
    reason = "tests use pools as programs do: their objects are live, and theirs alone"
)]

mod checker;
mod large;
#[path = "../support/mod.rs"]
mod support;
mod together;

use durum::{Error, Store, StoreOptions};

#[repr(C)]
struct Pair {
    left: u64,
    right: u64,
}
durum::describe!(Pair as "pair" { left, right });

fn store() -> (tempfile::TempDir, Store) {
    let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    let store = Store::create(dir.path().join("store"), StoreOptions::new()).unwrap();
    (dir, store)
}

fn is_told(result: Result<(), Error>, field: &str) {
    match result {
        Err(Error::Unannounced { first, count, .. }) => {
            assert_eq!(count, 1);
            assert!(first.contains(field), "{first}");
        }
        other => panic!("{other:?}"),
    }
}
