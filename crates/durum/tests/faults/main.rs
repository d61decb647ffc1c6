//! Full disks, failing syncs, vanished media and forks: an error that says what happened, and nothing lost.

#![allow(
    clippy::undocumented_unsafe_blocks,
    reason = "tests use pools as programs do: their objects are live, and theirs alone"
)]

mod forks;
mod full_disk;
#[path = "../support/mod.rs"]
mod support;
mod syncs;
mod vanished;

use std::path::{Path, PathBuf};

use durum::{Error, Pool, PoolOptions, Store, StoreOptions};

#[repr(C)]
struct Root {
    count: u64,
    blocks: [*mut u8; 512],
}
durum::describe!(Root as "faults root" { count, blocks });

fn open(dir: &Path, options: StoreOptions, pool: PoolOptions) -> (Store, Pool, &'static mut Root) {
    let store = Store::open_or_create(dir.join("store"), options).unwrap();
    let pool = store.open_or_create_pool("pool", pool).unwrap();
    let root = unsafe { &mut *pool.root::<Root>().unwrap() };
    (store, pool, root)
}

fn increment(pool: &Pool, root: &mut Root) -> Result<(), Error> {
    pool.transaction(|tx| {
        unsafe { tx.add(&raw const root.count)? };
        root.count += 1;
        Ok(())
    })
}

/// The file of the puddle at this address.
fn puddle_file(dir: &Path, address: usize) -> PathBuf {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let line = maps
        .lines()
        .find(|line| {
            let (start, end) = line.split(' ').next().unwrap().split_once('-').unwrap();
            let parse = |text| usize::from_str_radix(text, 16).unwrap();
            (parse(start)..parse(end)).contains(&address)
        })
        .unwrap();
    let path = PathBuf::from(line.split_whitespace().last().unwrap());
    assert!(path.starts_with(dir.canonicalize().unwrap()));
    path
}
