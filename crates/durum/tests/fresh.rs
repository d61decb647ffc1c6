//! A process ends right after it has made a large object on the Shadow engine, and recovery has to look at home to know
//! whether it did.
//!
//! The record of that transaction is the last of its log: nobody says that its fence was passed.

#![allow(
    clippy::undocumented_unsafe_blocks,
    reason = "tests use pools as programs do: their objects are live, and theirs alone"
)]

mod support;

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use durum::{Engine, Error, PoolOptions, Store, StoreOptions};

const SIZE: usize = 1 << 20;
const BYTE: u8 = 0xa7;
const LARGE: usize = 32 << 10;

#[repr(C)]
struct Root {
    object: *mut u8,
    made: u64,
}
durum::describe!(Root as "root" { object, made });

#[test]
#[ignore = "the other process of the tests below"]
fn worker_that_ends_after_a_large_object() {
    let Some(dir) = support::directory() else {
        return;
    };
    let store = Store::create(dir.join("store"), StoreOptions::new()).unwrap();
    let options = PoolOptions::new().engine(Engine::Shadow);
    let pool = store.create_pool("pool", options).unwrap();
    let root = pool.root::<Root>().unwrap();
    pool.transaction(|tx| unsafe {
        let object = tx.alloc_bytes(&pool, 0, SIZE, 8)?;
        object.write_bytes(BYTE, SIZE);
        tx.set(&raw mut (*root).object, object)?;
        tx.set(&raw mut (*root).made, 1)
    })
    .unwrap();
    std::process::abort();
}

/// A store as that process leaves it.
fn left_behind() -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    let mut child = support::start("worker_that_ends_after_a_large_object", dir.path());
    assert_eq!(child.wait().unwrap().code(), None, "it ends by a signal");
    let store = dir.path().join("store");
    (dir, store)
}

/// The file that the object lies in, and an offset in the middle of it.
fn place_of_the_object(store: &Path) -> (PathBuf, u64) {
    let mut files = fs::read_dir(store.join("puddles")).unwrap();
    files
        .find_map(|file| {
            let path = file.unwrap().path();
            let bytes = fs::read(&path).unwrap();
            let pages = bytes.chunks_exact(4096);
            let is_its = |page: &[u8]| page.iter().all(|byte| *byte == BYTE);
            let first = pages.clone().position(is_its)?;
            Some((path, (first * 4096 + SIZE / 2) as u64))
        })
        .expect("the object is home")
}

/// Opens the store: whether the object is there. It is whole, or was never made.
fn is_there(store: &Path) -> bool {
    let store = Store::open(store, StoreOptions::new()).unwrap();
    assert!(store.recovery().unwrap().quarantined.is_empty());
    let pool = store.open_pool("pool", PoolOptions::new()).unwrap();
    let root = pool.root::<Root>().unwrap();
    unsafe {
        let object = (*root).object;
        assert_eq!((*root).made, u64::from(!object.is_null()));
        if object.is_null() {
            return false;
        }
        let bytes = std::slice::from_raw_parts(object, SIZE);
        assert!(bytes.iter().all(|byte| *byte == BYTE));
        pool.transaction(|tx| {
            tx.free(object)?;
            tx.set(&raw mut (*root).object, std::ptr::null_mut())?;
            tx.set(&raw mut (*root).made, 0)?;
            Ok::<_, Error>(())
        })
        .unwrap();
    }
    true
}

fn is_sound(store: &Path) -> bool {
    let found = durum_service::check(store, &Default::default()).unwrap();
    found.is_sound()
}

#[test]
fn what_is_home_is_there() {
    let (_dir, store) = left_behind();
    assert!(is_there(&store));
    assert!(!is_there(&store));
    assert!(is_sound(&store));
}

#[test]
fn what_is_not_home_was_never_made() {
    let (_dir, store) = left_behind();
    let (path, offset) = place_of_the_object(&store);
    let file = OpenOptions::new().write(true).open(path).unwrap();
    file.write_all_at(&[0; 8], offset).unwrap();
    assert!(!is_there(&store));
    assert!(is_sound(&store));
}

#[test]
fn what_cannot_be_read_is_told() {
    let shorten = |file: &Path, at| {
        let file = OpenOptions::new().write(true).open(file).unwrap();
        File::set_len(&file, at).unwrap();
    };
    let remove = |file: &Path, _| fs::remove_file(file).unwrap();
    for damage in [shorten, remove] as [fn(&Path, u64); 2] {
        let (_dir, store) = left_behind();
        let (path, offset) = place_of_the_object(&store);
        let whole = fs::read(&path).unwrap();
        damage(&path, offset);
        let opened = Store::open(&store, StoreOptions::new()).unwrap();
        let report = opened.recovery().unwrap();
        assert!(report.quarantined.is_empty(), "{report:?}");
        let refused = &report.refused[0];
        assert_eq!(
            (refused.file.as_path(), refused.undecided),
            (path.as_path(), 1)
        );
        assert_eq!(report.entries, 0, "nothing is guessed: {report:?}");
        drop(opened);
        fs::write(&path, whole).unwrap();
        assert!(is_there(&store));
    }
}

/// What is logged while `work` runs.
fn logged(work: impl FnOnce()) -> u64 {
    let before = durum::thread_counters().bytes_logged;
    work();
    durum::thread_counters().bytes_logged - before
}

#[test]
fn what_fills_objects_or_slabs_is_not_logged() {
    const LEN: usize = 100_000;
    let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    let path = dir.path().join("store");
    let store = Store::create(&path, StoreOptions::new()).unwrap();
    let options = PoolOptions::new().engine(Engine::Shadow);
    let pool = store.create_pool("pool", options.clone()).unwrap();
    let table = pool.root::<[*mut u8; 512]>().unwrap();
    let byte = |at: usize| (at * 31 + at / 256) as u8;
    let bytes: Vec<u8> = (0..LEN).map(byte).collect();
    let holds = |object: *const u8, len| {
        let found = unsafe { std::slice::from_raw_parts(object, len) };
        assert!(found == &bytes[..len], "{object:?}");
    };
    // The first puddle is full before the last of these, which lie in one that was made for them.
    let count = 40;
    for at in 0..count {
        let bytes_logged = logged(|| {
            let filled = |tx: &durum::Tx| unsafe {
                let parts = [&bytes[..at], &bytes[at..50_000], &bytes[50_000..]];
                let object = tx.alloc_filled(&pool, 0, &parts, 8)?;
                tx.set(&raw mut (*table)[at], object)
            };
            pool.transaction(filled).unwrap();
        });
        assert!(bytes_logged < 4096, "{bytes_logged}");
        holds(unsafe { (*table)[at] }, LEN);
    }
    // A change of a page that is not private yet.
    let target = unsafe { (*table)[count - 1].add(60_000) };
    pool.transaction(|tx| unsafe {
        tx.add_bytes(target, 1, durum::Announce::Backup)?;
        target.write(!bytes[60_000]);
        Ok::<_, Error>(())
    })
    .unwrap();
    // One that is rolled back leaves nothing behind, and its place is taken again.
    let rolled_back = pool.transaction(|tx| unsafe {
        tx.alloc_filled(&pool, 0, &[&[0xee; LEN]], 8)?;
        tx.abort::<()>()
    });
    rolled_back.unwrap_err();
    pool.transaction(|tx| unsafe {
        let object = tx.alloc_filled(&pool, 0, &[&bytes], 8)?;
        tx.set(&raw mut (*table)[count], object)
    })
    .unwrap();
    holds(unsafe { (*table)[count] }, LEN);
    let bytes_logged = logged(|| {
        let many = |tx: &durum::Tx| {
            (100..500).try_for_each(|at| unsafe {
                let object = tx.alloc_bytes(&pool, 0, 200, 8)?;
                object.copy_from_nonoverlapping(bytes.as_ptr(), 200);
                tx.set(&raw mut (*table)[at], object)
            })
        };
        pool.transaction(many).unwrap();
    });
    assert!(bytes_logged < 400 * 200 / 3, "{bytes_logged}");
    drop((pool, store));
    let store = Store::open(&path, StoreOptions::new()).unwrap();
    let pool = store.open_pool("pool", options).unwrap();
    let table = pool.root::<[*mut u8; 512]>().unwrap();
    for at in (0..=count).filter(|at| *at != count - 1) {
        holds(unsafe { (*table)[at] }, LEN);
    }
    (100..500).for_each(|at| holds(unsafe { (*table)[at] }, 200));
    assert_eq!(target, unsafe { (*table)[count - 1].add(60_000) });
    assert_eq!(unsafe { target.read() }, !bytes[60_000]);
}

/// The places of objects that a committed transaction gave up are in its record; what is made there later must not be
/// older than that.
#[test]
fn a_record_of_objects_that_are_gone_does_not_come_home_over_their_successors() {
    let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    let path = dir.path().join("store");
    let options = PoolOptions::new().engine(Engine::Shadow);
    let store = Store::create(&path, StoreOptions::new()).unwrap();
    let pool = store.create_pool("pool", options.clone()).unwrap();
    let table = pool.root::<[*mut u8; 512]>().unwrap();
    pool.transaction(|tx| unsafe {
        for _ in 0..6 {
            let object = tx.alloc_bytes(&pool, 0, 200, 8)?;
            object.write_bytes(0xaa, 200);
            tx.free(object)?;
        }
        let kept = tx.alloc_bytes(&pool, 0, 8, 8)?;
        kept.write_bytes(0, 8);
        tx.set(&raw mut (*table)[511], kept)
    })
    .unwrap();
    pool.transaction(|tx| unsafe {
        for at in 0..100 {
            // Some of another size first: a transaction that makes many.
            let len = if at < 6 { 64 } else { 200 };
            let object = tx.alloc_bytes(&pool, 0, len, 8)?;
            object.write_bytes(0xbb, len);
            tx.set(&raw mut (*table)[at], object)?;
        }
        Ok::<_, Error>(())
    })
    .unwrap();
    drop((pool, store));
    let store = Store::open(&path, StoreOptions::new()).unwrap();
    let pool = store.open_pool("pool", options).unwrap();
    let table = pool.root::<[*mut u8; 512]>().unwrap();
    for at in 6..100 {
        let bytes = unsafe { std::slice::from_raw_parts((*table)[at], 200) };
        assert!(bytes.iter().all(|byte| *byte == 0xbb), "object {at}");
    }
}

/// A program announces or persists more than its object: whatever lies behind it is logged as it is. Who takes a place
/// there next has it as he has filled it.
fn reaches_beyond(size: usize, reach: impl Fn(&durum::Pool, *mut u8)) {
    let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    let path = dir.path().join("store");
    let make = |pool: &durum::Pool, byte: u8| {
        pool.transaction(|tx| unsafe {
            let object = tx.alloc_bytes(pool, 0, size, 8)?;
            object.write_bytes(byte, size);
            Ok::<_, Error>(object)
        })
        .unwrap()
    };
    let store = Store::create(&path, StoreOptions::new()).unwrap();
    let options = PoolOptions::new().engine(Engine::Shadow);
    let pool = store.create_pool("pool", options).unwrap();
    let root = pool.root::<Root>().unwrap();
    let before = make(&pool, 1);
    reach(&pool, before);
    let behind = make(&pool, BYTE);
    assert!((before as usize..before as usize + 8 * size).contains(&(behind as usize)));
    pool.transaction(|tx| unsafe { tx.set(&raw mut (*root).object, behind) })
        .unwrap();
    drop((pool, store));
    let store = Store::open(&path, StoreOptions::new()).unwrap();
    let pool = store.open_pool("pool", PoolOptions::new()).unwrap();
    let root = pool.root::<Root>().unwrap();
    let bytes = unsafe { std::slice::from_raw_parts((*root).object, size) };
    assert!(bytes.iter().all(|byte| *byte == BYTE));
}

#[test]
fn a_small_object_is_whole_where_a_range_was_announced_beyond_another() {
    reaches_beyond(128, |pool, before| {
        pool.transaction(|tx| unsafe {
            tx.add_bytes(before, 1024, durum::Announce::Backup)?;
            before.write_bytes(2, 128);
            Ok::<_, Error>(())
        })
        .unwrap();
    });
}

#[test]
fn a_small_object_is_whole_where_a_range_was_persisted_beyond_another() {
    reaches_beyond(128, |pool, before| {
        unsafe { pool.persist(before, 1024) }.unwrap()
    });
}

#[test]
fn a_small_object_is_whole_where_contents_were_announced_beyond_another() {
    reaches_beyond(128, |pool, before| {
        pool.transaction(|tx| unsafe { tx.add_contents(before, 400) })
            .unwrap();
    });
}

#[test]
fn a_large_object_is_whole_where_a_range_was_announced_or_persisted_beyond_another() {
    reaches_beyond(LARGE, |pool, before| {
        pool.transaction(|tx| unsafe {
            tx.add_bytes(before, 8 * LARGE, durum::Announce::Backup)?;
            before.write_bytes(2, LARGE);
            Ok::<_, Error>(())
        })
        .unwrap();
    });
    reaches_beyond(LARGE, |pool, before| {
        unsafe { pool.persist(before, 8 * LARGE) }.unwrap()
    });
}
