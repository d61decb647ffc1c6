//! What tests share: databases in a directory that goes, and reading all of one.

#![allow(dead_code, reason = "no test needs all of it")]

use std::collections::BTreeMap;
use std::path::PathBuf;

use durum_kv::{Db, Engine, Iter, Options};

/// The engines that a database can have.
pub const ENGINES: [Engine; 3] = [Engine::Shadow, Engine::Hybrid, Engine::Twin];

pub type Map = BTreeMap<Vec<u8>, Vec<u8>>;

/// A directory in memory, and the path of a database in it.
pub fn place() -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    let path = dir.path().join("db");
    (dir, path)
}

/// Options that make a database.
pub fn options() -> Options {
    Options::new().create_if_missing(true)
}

/// A new database, and the directory that it goes with.
pub fn database() -> (tempfile::TempDir, Db) {
    let (dir, path) = place();
    let db = Db::open(path, options()).unwrap();
    (dir, db)
}

/// What an iterator sees, from the first entry to the last, and back.
pub fn entries(iter: &mut Iter) -> durum_kv::Result<Vec<(Vec<u8>, Vec<u8>)>> {
    let entry = |iter: &Iter| (iter.key().unwrap().to_vec(), iter.value().unwrap().to_vec());
    let mut found = Vec::new();
    let mut is_there = iter.seek_to_first()?;
    while is_there {
        found.push(entry(iter));
        is_there = iter.next()?;
    }
    assert!(!iter.valid() && iter.key().is_none());
    let mut back = Vec::new();
    let mut is_there = iter.seek_to_last()?;
    while is_there {
        back.push(entry(iter));
        is_there = iter.prev()?;
    }
    back.reverse();
    assert_eq!(found, back, "forward and backward");
    Ok(found)
}

/// What is in a database now.
pub fn contents(db: &Db) -> Map {
    entries(&mut db.iter()).unwrap().into_iter().collect()
}

/// Panics where it meets the key "panic".
pub struct Fragile;

impl durum_kv::Comparator for Fragile {
    fn compare(&self, a: &[u8], b: &[u8]) -> std::cmp::Ordering {
        assert!(a != b"panic" && b != b"panic");
        a.cmp(b)
    }

    fn name(&self) -> &str {
        "fragile"
    }
}
