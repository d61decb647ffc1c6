//! Readers beside writers: nobody sees half of a batch, what is not committed, or an older state after a newer one.

mod support;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use durum::Domain;
use durum_kv::{Db, Durability, Engine, Options, StoreOptions, WriteBatch, WriteOptions};

/// Keys that a batch changes together; more than one leaf has.
const KEYS: u32 = 150;

fn key(number: u32) -> Vec<u8> {
    format!("{number:06}").into_bytes()
}

fn settings() -> Vec<(&'static str, Options)> {
    let on = |engine: Engine, domain: Domain| {
        let store = StoreOptions::new().domain(domain);
        support::options().engine(engine).store(store)
    };
    vec![
        ("shadow", on(Engine::Shadow, Domain::Dram)),
        ("hybrid", on(Engine::Hybrid, Domain::Dram)),
        ("twin", on(Engine::Twin, Domain::Dram)),
        ("shadow on a file system", on(Engine::Shadow, Domain::File)),
        ("hybrid on a file system", on(Engine::Hybrid, Domain::File)),
        ("twin on a file system", on(Engine::Twin, Domain::File)),
    ]
}

/// Every key has the same value, which grows.
fn read_generations(db: &Db, done: &AtomicBool, reads: &AtomicU64) {
    let number = |value: &[u8]| -> u64 { String::from_utf8_lossy(&value[..10]).parse().unwrap() };
    let mut last = 0;
    while !done.load(Ordering::Relaxed) {
        // An iterator, a snapshot's gets, and single gets in turn.
        let mut iter = db.iter();
        let (mut count, mut generation) = (0, None);
        let mut is_there = match last % 2 {
            0 => iter.seek_to_first().unwrap(),
            _ => iter.seek_to_last().unwrap(),
        };
        while is_there {
            let found = number(iter.value().unwrap());
            assert_eq!(*generation.get_or_insert(found), found, "half of a batch");
            count += 1;
            is_there = match last % 2 {
                0 => iter.next().unwrap(),
                _ => iter.prev().unwrap(),
            };
        }
        assert_eq!(count, KEYS);
        let seen = generation.unwrap();
        assert!(seen >= last, "an older state than before");
        last = seen;
        let snapshot = db.snapshot();
        let options = durum_kv::ReadOptions::new()
            .snapshot(&snapshot)
            .verify_checksums(true);
        let values = [0, KEYS / 2, KEYS - 1]
            .map(|at| number(&db.get_with(&key(at), &options).unwrap().unwrap()));
        assert!(values.iter().all(|value| *value == values[0]), "{values:?}");
        let now = number(&db.get(&key(7)).unwrap().unwrap());
        assert!(now >= values[0] && values[0] >= last);
        last = now;
        reads.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn readers_see_whole_batches_in_their_order() {
    for (name, options) in settings() {
        let (_dir, path) = support::place();
        let db = Db::open(&path, options).unwrap();
        let write = |generation: u64| {
            let mut batch = WriteBatch::new();
            for at in 0..KEYS {
                let value = format!(
                    "{generation:010} {}",
                    "v".repeat((generation % 40) as usize)
                );
                // Deleted and put again: nobody may see that.
                batch.delete(&key(at));
                batch.put(&key(at), value.as_bytes());
            }
            db.write(&batch).unwrap();
        };
        write(0);
        let (done, reads) = (AtomicBool::new(false), AtomicU64::new(0));
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| read_generations(&db, &done, &reads));
            }
            for generation in 1..=150 {
                write(generation);
            }
            // They get their turn, however busy the machine is.
            let before = reads.load(Ordering::Relaxed);
            while reads.load(Ordering::Relaxed) < before + 4 {
                thread::yield_now();
            }
            done.store(true, Ordering::Relaxed);
        });
        db.compact().unwrap();
        let stale = db.property("durum.stale-keys").unwrap();
        assert_eq!(stale.as_deref(), Some("0"), "{name}");
        assert_eq!(support::contents(&db).len(), KEYS as usize, "{name}");
        drop(db);
        let report = durum_service::check(&path, &Default::default()).unwrap();
        assert!(report.findings.is_empty(), "{name}: {:?}", report.findings);
    }
}

/// While a large batch deletes, readers find each key until all are gone; an iterator, or a snapshot, sees all or none,
/// however long it lives.
#[test]
fn a_large_batch_deletes_all_at_once() {
    const MANY: u32 = 500;
    for (name, options) in settings() {
        let (_dir, path) = support::place();
        let db = Db::open(&path, options).unwrap();
        let done = AtomicBool::new(false);
        thread::scope(|scope| {
            for number in 0..3u32 {
                let (db, done) = (&db, &done);
                scope.spawn(move || {
                    while !done.load(Ordering::Relaxed) {
                        match number {
                            0 => {
                                let snapshot = db.snapshot();
                                let read = durum_kv::ReadOptions::new().snapshot(&snapshot);
                                let first = db.get_with(&key(0), &read).unwrap();
                                thread::yield_now();
                                let last = db.get_with(&key(MANY - 1), &read).unwrap();
                                assert_eq!(first, last, "{name}");
                            }
                            1 => {
                                let count = support::contents(db).len();
                                assert!(count == 0 || count == MANY as usize, "{name}: {count}");
                            }
                            _ => {
                                // Put all at once, too: from generation to generation.
                                let first = db.get(&key(MANY - 1)).unwrap();
                                let value = first.as_deref().unwrap_or_default();
                                assert!(value.is_empty() || value.len() == 16, "{name}");
                            }
                        }
                    }
                });
            }
            for round in 0..8u64 {
                let mut batch = WriteBatch::new();
                (0..MANY).for_each(|at| batch.put(&key(at), &[round as u8; 16]));
                db.write(&batch).unwrap();
                let mut batch = WriteBatch::new();
                (0..MANY).for_each(|at| batch.delete(&key(at * 7 % MANY)));
                db.write(&batch).unwrap();
            }
            done.store(true, Ordering::Relaxed);
        });
        assert!(support::contents(&db).is_empty(), "{name}");
        drop(db);
        let report = durum_service::check(&path, &Default::default()).unwrap();
        assert!(report.findings.is_empty(), "{name}: {:?}", report.findings);
    }
}

/// While a large batch puts a key, deletes it and uses the memory of what it put for others, readers see what was there
/// before.
#[test]
fn what_a_batch_puts_and_deletes_is_seen_by_nobody() {
    const OLD: u32 = 4;
    for (name, options) in settings() {
        let (_dir, path) = support::place();
        let db = Db::open(&path, options).unwrap();
        let done = AtomicBool::new(false);
        let reads = AtomicU64::new(0);
        let restore = || (0..OLD).for_each(|number| db.put(&key(number), b"old").unwrap());
        restore();
        thread::scope(|scope| {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    for number in 0..OLD {
                        let found = db.get(&key(number)).unwrap();
                        let found = found.as_deref();
                        assert!(found.is_none_or(|it| it == b"old"), "{name}: {found:?}");
                    }
                    for (found, value) in support::contents(&db) {
                        let number: u32 = String::from_utf8(found).unwrap().parse().unwrap();
                        let is_old = number < OLD && value == b"old";
                        assert!(
                            is_old || number >= OLD && value == b"new",
                            "{name}: {number}"
                        );
                    }
                    reads.fetch_add(1, Ordering::Relaxed);
                }
            });
            let mut rounds = 0;
            while rounds < 20 || reads.load(Ordering::Relaxed) < 20 {
                let mut batch = WriteBatch::new();
                // Nothing else has been made by the batch when these go, so their places are taken by the next ones.
                for number in 0..OLD {
                    batch.put(&key(number), b"new");
                    batch.delete(&key(number));
                    batch.put(&key(100 + rounds % 7 + 10 * number), b"new");
                }
                (0..KEYS).for_each(|number| batch.put(&key(1000 + number), b"new"));
                db.write(&batch).unwrap();
                restore();
                rounds += 1;
            }
            done.store(true, Ordering::Relaxed);
        });
    }
}

/// Threads that write at once share commits, and none is lost.
#[test]
fn writers_do_not_lose_each_others_writes() {
    const THREADS: u32 = 4;
    const WRITES: u32 = 120;
    for (name, options) in settings() {
        let (_dir, path) = support::place();
        let db = Db::open(&path, options.clone()).unwrap();
        thread::scope(|scope| {
            for number in 0..THREADS {
                let db = &db;
                scope.spawn(move || {
                    let buffered = WriteOptions::new().durability(Durability::Buffered);
                    for at in 0..WRITES {
                        let key = key(at * THREADS + number);
                        match at % 4 {
                            0 => db.put_with(&key, &key, &buffered).unwrap(),
                            1 => {
                                let mut transaction = db.transaction().unwrap();
                                let count = transaction.get(b"count").unwrap();
                                let count = count.map_or(0, |count| count.len());
                                transaction.put(b"count", &vec![b'|'; count + 1]);
                                transaction.put(&key, &key);
                                transaction.commit().unwrap();
                            }
                            _ => db.put(&key, &key).unwrap(),
                        }
                        assert_eq!(db.get(&key).unwrap().as_ref(), Some(&key));
                        if at % 3 == 0 {
                            db.delete(&key).unwrap();
                        }
                    }
                });
            }
        });
        let mut expected = support::Map::new();
        for at in 0..WRITES * THREADS {
            if !(at / THREADS).is_multiple_of(3) {
                expected.insert(key(at), key(at));
            }
        }
        let counts = (0..WRITES).filter(|at| at % 4 == 1).count() * THREADS as usize;
        expected.insert(b"count".to_vec(), vec![b'|'; counts]);
        assert_eq!(support::contents(&db), expected, "{name}");
        drop(db);
        let db = Db::open(&path, options).unwrap();
        assert_eq!(support::contents(&db), expected, "{name}, opened again");
    }
}

/// While a commit waits for its sync, readers read; the writer is held in the middle of one.
#[test]
fn readers_go_on_beside_a_slow_commit() {
    let (_dir, path) = support::place();
    let store = StoreOptions::new().domain(Domain::File);
    let db = Db::open(&path, support::options().store(store)).unwrap();
    db.put(b"key", b"old").unwrap();
    let transaction = db.transaction().unwrap();
    thread::scope(|scope| {
        scope.spawn(|| {
            assert_eq!(db.get(b"key").unwrap().as_deref(), Some(&b"old"[..]));
            let _snapshot = db.snapshot();
            assert_eq!(support::contents(&db).len(), 1);
        });
    });
    drop(transaction);
}

/// A comparator that panics is met by the thread whose key it was, not by those who wrote at the same time.
#[test]
fn a_panic_stays_with_its_writer() {
    let (_dir, path) = support::place();
    let options = support::options().comparator(std::sync::Arc::new(support::Fragile));
    let db = Db::open(&path, options).unwrap();
    db.put(b"first", b"").unwrap();
    for round in 0..20u32 {
        let transaction = db.transaction().unwrap();
        thread::scope(|scope| {
            let write = |key: Vec<u8>| {
                let db = &db;
                scope.spawn(move || db.put(&key, b"").is_ok())
            };
            let fine = write(round.to_be_bytes().to_vec());
            let panics = write(b"panic".to_vec());
            let too = write((1000 + round).to_be_bytes().to_vec());
            thread::sleep(std::time::Duration::from_millis(2));
            drop(transaction);
            assert!(fine.join().unwrap() && too.join().unwrap());
            assert!(panics.join().is_err());
        });
    }
    assert_eq!(support::contents(&db).len(), 41);
}
