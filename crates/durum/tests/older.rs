//! A registry that is older than the store's puddles, as a backup that was restored in part leaves it: nothing is
//! deleted because of it.

#![allow(
    clippy::undocumented_unsafe_blocks,
    reason = "tests use pools as programs do: their objects are live, and theirs alone"
)]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use durum::{Domain, Engine, Error, PoolOptions, Store, StoreOptions};
use durum_service::{self as service, check, repair};

#[repr(C)]
struct Root {
    number: u64,
    more: *mut u8,
}
durum::describe!(Root as "older root" { number, more });

const ENGINES: [Engine; 3] = [Engine::Hybrid, Engine::Twin, Engine::Shadow];
const DOMAINS: [Domain; 3] = [Domain::File, Domain::Dram, Domain::Dax];
const FILES: [&str; 2] = ["registry", "registry.copy"];

fn open(path: &Path, domain: Domain) -> durum::Result<Store> {
    Store::open_or_create(path, StoreOptions::new().domain(domain))
}

/// Sets the number of a pool, and gives it an object that needs a puddle of its own.
fn work(store: &Store, name: &str, engine: Engine, number: u64) {
    let pool = store
        .open_or_create_pool(name, PoolOptions::new().engine(engine))
        .unwrap();
    let root = pool.root::<Root>().unwrap();
    pool.transaction(|tx| {
        let more = tx.alloc_bytes(&pool, 0, 3 << 20, 8)?;
        unsafe {
            more.write_bytes(number as u8, 3 << 20);
            tx.add(root)?;
            (*root).number = number;
            (*root).more = more;
        }
        Ok::<_, Error>(())
    })
    .unwrap();
}

fn number(store: &Store, name: &str) -> u64 {
    let pool = store.open_pool(name, PoolOptions::new()).unwrap();
    let root = pool.root::<Root>().unwrap();
    unsafe {
        assert_eq!(*(*root).more.add(2 << 20), (*root).number as u8);
        (*root).number
    }
}

/// All files of the puddles, wherever they lie, with their bytes.
fn puddles(path: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let directories = ["puddles", "unregistered"].map(|name| path.join(name));
    let entries = directories
        .iter()
        .filter_map(|directory| fs::read_dir(directory).ok())
        .flatten();
    let files = entries.map(|entry| entry.unwrap());
    files
        .map(|file| (file.file_name().into(), fs::read(file.path()).unwrap()))
        .collect()
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => copy(&entry.path(), &target),
            false => drop(fs::copy(entry.path(), target).unwrap()),
        }
    }
}

fn older(engine: Engine, domain: Domain, is_closed: bool) {
    let what = format!("{engine:?} {domain:?} {is_closed}");
    let directory = tempfile::tempdir_in("/dev/shm").unwrap();
    let path = directory.path().join("store");
    let store = open(&path, domain).unwrap();
    work(&store, "a", engine, 7);
    store.close().unwrap();
    let old = FILES.map(|name| fs::read(path.join(name)).unwrap());
    // Another pool, and one that is as good as empty.
    let store = open(&path, domain).unwrap();
    work(&store, "b", engine, 8);
    store
        .create_pool("c", PoolOptions::new().engine(engine))
        .unwrap();
    let path = match is_closed {
        true => {
            store.close().unwrap();
            path
        }
        // As a killed program leaves it: logs and all.
        false => {
            let killed = directory.path().join("killed");
            copy(&path, &killed);
            store.close().unwrap();
            killed
        }
    };
    let new = FILES.map(|name| fs::read(path.join(name)).unwrap());
    let restore = |files: &[Vec<u8>; 2]| {
        for (name, bytes) in FILES.iter().zip(files) {
            fs::write(path.join(name), bytes).unwrap();
        }
    };
    restore(&old);
    let before = puddles(&path);
    let refusal = open(&path, domain).unwrap_err();
    assert!(
        matches!(&refusal, Error::Store(service::Error::RegistryOlder { .. })),
        "{what}: {refusal}"
    );
    assert!(
        refusal.to_string().contains("--repair"),
        "{what}: {refusal}"
    );
    let report = check(&path, &Default::default()).unwrap();
    assert!(!report.is_sound(), "{what}: {:?}", report.findings);
    assert!(puddles(&path) == before, "{what}: something was changed");
    // With the newer registry everything is there.
    restore(&new);
    let store = open(&path, domain).unwrap();
    assert_eq!((number(&store, "a"), number(&store, "b")), (7, 8), "{what}");
    store.close().unwrap();
    let new = FILES.map(|name| fs::read(path.join(name)).unwrap());
    // Or what it does not know is moved out of the way, and the rest goes on.
    restore(&old);
    let before = puddles(&path);
    let actions = repair(&path).unwrap().actions;
    assert!(
        actions.iter().any(|action| action.contains("unregistered")),
        "{what}: {actions:?}"
    );
    let mut after = puddles(&path);
    for (name, bytes) in &before {
        let is_empty = bytes[1024..].iter().all(|byte| *byte == 0);
        let kept = after.remove(name);
        assert!(
            kept.as_ref() == Some(bytes) || is_empty,
            "{what}: {}",
            name.display()
        );
    }
    let report = check(&path, &Default::default()).unwrap();
    assert!(!report.is_sound(), "{what}: somebody has to be told");
    let store = open(&path, domain).unwrap();
    assert_eq!(number(&store, "a"), 7, "{what}");
    assert!(store.open_pool("b", PoolOptions::new()).is_err());
    store.close().unwrap();
    // And comes back with its registry.
    restore(&new);
    for entry in fs::read_dir(path.join("unregistered")).unwrap() {
        let file = entry.unwrap();
        fs::rename(file.path(), path.join("puddles").join(file.file_name())).unwrap();
    }
    let store = open(&path, domain).unwrap();
    assert_eq!((number(&store, "a"), number(&store, "b")), (7, 8), "{what}");
    // The puddle in which nobody had written is gone.
    store.remove_pool("c").unwrap();
    store.close().unwrap();
    let report = check(&path, &Default::default()).unwrap();
    assert!(report.is_sound(), "{what}: {:?}", report.findings);
}

#[test]
fn an_older_registry_deletes_nothing() {
    for engine in ENGINES {
        for domain in DOMAINS {
            older(engine, domain, true);
            older(engine, domain, false);
        }
    }
}
