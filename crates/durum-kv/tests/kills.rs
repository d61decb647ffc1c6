//! A process that writes with several threads is killed at random moments: all that was acknowledged is there, and of
//! what was not, all or nothing.
//!
//! The crash: SIGKILL at any instruction. The page cache survives it, so this tests recovery under real concurrency,
//! not missing flushes (`tests/crash/main.rs` does).

#[path = "../../durum/tests/support/mod.rs"]
mod process;
mod support;

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::time::Duration;

use durum_kv::{Db, Durability, Engine, ReadOptions, StoreOptions, WriteBatch, WriteOptions};
use durum_service::{CheckOptions, Leaks};
use support::{ENGINES, Map, contents};

const THREADS: u64 = 3;
/// Each thread has so many keys of its own.
const KEYS: u64 = 300;

/// Numbers that look random, and are the same for the same number.
fn mix(number: u64) -> u64 {
    let mut state = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    state = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    state = (state ^ (state >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    state ^ (state >> 31)
}

fn key(thread: u64, number: u64) -> Vec<u8> {
    format!("thread {thread} key {:04}", number % KEYS).into_bytes()
}

/// The value of a thread's operation: most are short, some have puddles of their own.
fn value(operation: u64) -> Vec<u8> {
    let random = mix(operation ^ 0x5555);
    let len = match random % 50 {
        0 => 30_000,
        1..=5 => 3_000,
        _ => 100,
    };
    let mut value = operation.to_le_bytes().to_vec();
    value.resize(len + (random >> 32) as usize % 50, operation as u8);
    value
}

/// What a thread's operation with this number changes: it is the same whoever asks.
fn changes(thread: u64, operation: u64) -> Vec<(Vec<u8>, Option<Vec<u8>>)> {
    let random = mix(thread << 48 | operation);
    let at = random >> 8;
    match random % 8 {
        0 | 1 => vec![(key(thread, at), None)],
        2 => vec![
            (key(thread, at), Some(value(operation))),
            (key(thread, at + 1), None),
            (key(thread, at + 2), Some(value(operation))),
        ],
        _ => vec![(key(thread, at), Some(value(operation)))],
    }
}

/// Where a thread's number of acknowledged operations is.
fn place(thread: u64) -> u64 {
    thread * 8
}

fn acknowledged(file: &File, thread: u64) -> u64 {
    let mut number = [0; 8];
    file.read_exact_at(&mut number, place(thread)).unwrap();
    u64::from_le_bytes(number)
}

fn acknowledge(file: &File, thread: u64, operations: u64) {
    file.write_all_at(&operations.to_le_bytes(), place(thread))
        .unwrap();
}

fn acknowledgements(dir: &Path) -> File {
    let path = dir.join("acknowledged");
    File::options().read(true).write(true).open(path).unwrap()
}

fn work(db: &Db, file: &File, thread: u64) {
    for operation in acknowledged(file, thread).. {
        let mut batch = WriteBatch::new();
        for (key, value) in changes(thread, operation) {
            match value {
                Some(value) => batch.put(&key, &value),
                None => batch.delete(&key),
            }
        }
        match batch.len() {
            1 if operation % 2 == 0 => {
                let (key, value) = changes(thread, operation).swap_remove(0);
                match value {
                    Some(value) => db.put(&key, &value).unwrap(),
                    None => db.delete(&key).unwrap(),
                }
            }
            _ => db.write(&batch).unwrap(),
        }
        acknowledge(file, thread, operation + 1);
    }
}

#[test]
#[ignore = "the other process of the test below"]
fn writes_until_it_is_killed() {
    let Some(dir) = process::directory() else {
        return;
    };
    let file = acknowledgements(&dir);
    let db = Db::open(dir.join("db"), support::options()).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (db, file) = (&db, &file);
            scope.spawn(move || work(db, file, thread));
        }
        // Older versions are kept and swept meanwhile.
        scope.spawn(|| {
            loop {
                let snapshot = db.snapshot();
                let mut iter = db
                    .iter_with(&ReadOptions::new().snapshot(&snapshot))
                    .unwrap();
                let seen = support::entries(&mut iter).unwrap();
                assert!(seen.is_sorted_by(|one, next| one.0 < next.0));
            }
        });
    });
}

/// Long enough that nobody writes what is buffered before the process is gone.
const WINDOW: Duration = Duration::from_secs(3600);

#[test]
#[ignore = "the other process of the test below"]
fn dies_with_buffered_writes() {
    let Some(dir) = process::directory() else {
        return;
    };
    let store = StoreOptions::new().buffered_window(WINDOW);
    let db = Db::open(dir.join("db"), support::options().store(store)).unwrap();
    db.set_durability(Durability::Buffered).unwrap();
    db.put(b"1", b"buffered").unwrap();
    let durable = WriteOptions::new().durability(Durability::Durable);
    db.put_with(b"2", b"durable", &durable).unwrap();
    db.put(b"3", b"buffered").unwrap();
    std::process::abort();
}

/// A buffered write waits in the memory of the process, and goes with it, which LevelDB's does not. What a durable one
/// came after is there with it.
#[test]
fn the_death_of_the_process_takes_the_last_buffered_writes() {
    let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    let mut child = process::start("dies_with_buffered_writes", dir.path());
    assert_eq!(child.wait().unwrap().signal(), Some(libc::SIGABRT));
    let db = Db::open(dir.path().join("db"), support::options()).unwrap();
    assert_eq!(db.durability(), Durability::Buffered);
    let keys: Vec<_> = contents(&db).into_keys().collect();
    assert_eq!(keys, [b"1", b"2"]);
}

fn apply(model: &mut Map, thread: u64, operation: u64) {
    for (key, value) in changes(thread, operation) {
        match value {
            Some(value) => model.insert(key, value),
            None => model.remove(&key),
        };
    }
}

fn killed_again_and_again(engine: Engine, kills: u64) {
    let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    let path = dir.path().join("db");
    drop(Db::open(&path, support::options().engine(engine)).unwrap());
    std::fs::write(dir.path().join("acknowledged"), [0; 8 * THREADS as usize]).unwrap();
    let file = acknowledgements(dir.path());
    let mut model = Map::new();
    let mut operations = 0;
    for kill in 0..kills {
        let before: Vec<u64> = (0..THREADS)
            .map(|thread| acknowledged(&file, thread))
            .collect();
        let mut child = process::start("writes_until_it_is_killed", dir.path());
        std::thread::sleep(Duration::from_millis(60 + mix(kill) % 120));
        child.kill().unwrap();
        let status = child.wait().unwrap();
        assert!(status.code().is_none(), "ends by the kill only: {status}");
        let db = Db::open(&path, support::options()).unwrap();
        let mut found = contents(&db);
        for (thread, before) in (0..).zip(before) {
            let done = acknowledged(&file, thread);
            operations += done - before;
            for operation in before..done {
                apply(&mut model, thread, operation);
            }
            let others = found.split_off(&key(thread + 1, 0));
            let expected = |model: &Map| -> Map {
                let of_thread = model.range(key(thread, 0)..key(thread + 1, 0));
                of_thread
                    .map(|(key, value)| (key.clone(), value.clone()))
                    .collect()
            };
            if found != expected(&model) {
                // The one that was not acknowledged has happened.
                apply(&mut model, thread, done);
                acknowledge(&file, thread, done + 1);
                assert!(
                    found == expected(&model),
                    "{engine:?}, thread {thread} after {done} operations"
                );
            }
            found = others;
        }
        assert!(found.is_empty());
        drop(db);
        let report = durum_service::check(&path, &CheckOptions::default()).unwrap();
        assert!(report.is_sound(), "{:?}", report.findings);
        let leaks = &report.pools[0].leaks;
        assert!(
            matches!(leaks, Leaks::Judged { objects: 0, .. }),
            "{leaks:?}"
        );
    }
    println!("{engine:?}: {kills} kills, {operations} operations");
    assert!(operations > kills);
}

#[test]
fn what_was_acknowledged_before_a_kill_is_there() {
    for engine in ENGINES {
        killed_again_and_again(engine, 6);
    }
}

#[test]
#[ignore = "the same for minutes"]
fn what_was_acknowledged_before_many_kills_is_there() {
    for engine in ENGINES {
        killed_again_and_again(engine, 200);
    }
}
