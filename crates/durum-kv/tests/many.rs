//! Many keys in one call, and writes in two halves: what is seen of them, and what is left where they fail.

mod support;

use std::fs;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;

use durum::Domain;
use durum_kv::{Db, Error, Options, ReadOptions, StoreOptions, WriteBatch};
use durum_persist::inject;
use support::{Fragile, Map, contents, database, options, place};

fn key(number: u32) -> Vec<u8> {
    format!("{number:06}").into_bytes()
}

fn settings() -> Vec<(String, Options)> {
    let mut settings = Vec::new();
    for engine in support::ENGINES {
        for domain in [Domain::Dram, Domain::File] {
            let store = StoreOptions::new().domain(domain);
            let options = options().engine(engine).store(store);
            settings.push((format!("{engine:?}, {domain:?}"), options));
        }
    }
    settings
}

/// As long as `write` goes on, some threads `read`, each at least once while it does.
fn beside(write: impl Fn(u64), read: impl Fn() + Sync) {
    let (done, reads) = (AtomicBool::new(false), AtomicU64::new(0));
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !done.load(Relaxed) {
                    read();
                    reads.fetch_add(1, Relaxed);
                }
            });
        }
        let mut round = 1;
        while round < 60 || reads.load(Relaxed) < 10 {
            write(round);
            round += 1;
        }
        done.store(true, Relaxed);
    });
}

/// Far more keys than are read at a stretch: the writer comes in between, and they are of one moment all the same.
#[test]
fn keys_of_one_call_are_of_one_moment() {
    const KEYS: u32 = 300;
    for (name, options) in settings() {
        let (_dir, path) = place();
        let db = Db::open(&path, options).unwrap();
        let write = |round: u64| {
            let mut batch = WriteBatch::new();
            for number in 0..KEYS {
                batch.delete(&key(number));
                batch.put(&key(number), &round.to_le_bytes());
            }
            db.write(&batch).unwrap();
        };
        write(0);
        // In no order, and twice.
        let keys: Vec<_> = (0..2 * KEYS).map(|at| key(at * 7 % KEYS)).collect();
        beside(write, || {
            for keys in [&keys[..], &keys[..20]] {
                let found = db.multi_get(keys).unwrap();
                assert!(found[0].is_some(), "{name}");
                assert!(found.iter().all(|value| *value == found[0]), "{name}");
            }
        });
    }
}

/// Readers see the first pairs of a call, and none behind one that they do not see.
#[test]
fn pairs_of_one_call_are_seen_in_their_order() {
    const PAIRS: u32 = 200;
    for (name, options) in settings() {
        let (_dir, path) = place();
        let db = Db::open(&path, options).unwrap();
        let write = |round: u64| {
            // In an order that is not that of keys.
            let value = round.to_le_bytes();
            let pairs: Vec<_> = (0..PAIRS).map(|at| (key(at * 7 % PAIRS), value)).collect();
            db.multi_put(&pairs).unwrap();
        };
        write(0);
        let keys: Vec<_> = (0..PAIRS).map(|at| key(at * 7 % PAIRS)).collect();
        beside(write, || {
            let found = db.multi_get(&keys).unwrap();
            let rounds: Vec<u64> = (found.into_iter())
                .map(|value| u64::from_le_bytes(value.unwrap()[..].try_into().unwrap()))
                .collect();
            assert!(rounds.is_sorted_by(|a, b| a >= b), "{name}: {rounds:?}");
            let (first, last) = (rounds[0], rounds[rounds.len() - 1]);
            assert!(first - last <= 1, "{name}: {rounds:?}");
        });
    }
}

/// Threads that have writes in flight, put rows and read them: nothing is lost.
#[test]
fn threads_write_rows_and_in_flight_at_once() {
    const THREADS: u32 = 3;
    const ROUNDS: u32 = 40;
    for (name, options) in settings() {
        let (_dir, path) = place();
        let db = Db::open(&path, options.clone()).unwrap();
        thread::scope(|scope| {
            for thread in 0..THREADS {
                let db = &db;
                scope.spawn(move || {
                    for round in 0..ROUNDS {
                        let own = |at: u32| key(1000 * round + 10 * at + thread);
                        let row: Vec<_> = (0..40).map(|at| (own(at), own(at))).collect();
                        db.multi_put(&row).unwrap();
                        let first = db.put_begin(&own(50), b"begun").unwrap();
                        let second = db.delete_begin(&own(0)).unwrap();
                        let keys = [own(0), own(39), own(50)];
                        let found = db.multi_get(&keys).unwrap();
                        assert_eq!(found, [None, Some(own(39)), Some(b"begun".to_vec())]);
                        second.wait().unwrap();
                        first.wait().unwrap();
                    }
                });
            }
        });
        let check = |db: &Db| {
            let found = contents(db);
            assert_eq!(found.len(), (THREADS * ROUNDS * 40) as usize, "{name}");
            let own = found.iter().filter(|(key, value)| key == value);
            assert_eq!(own.count(), (THREADS * ROUNDS * 39) as usize, "{name}");
        };
        check(&db);
        drop(db);
        check(&Db::open(&path, options).unwrap());
    }
}

/// What nobody waits for is there when the database is opened again.
#[test]
fn what_is_in_flight_when_a_database_is_closed_is_there() {
    for (name, options) in settings() {
        let (_dir, path) = place();
        let db = Db::open(&path, options.clone()).unwrap();
        drop(db.put_begin(b"a", b"1").unwrap());
        drop(db.put_begin(b"b", b"2").unwrap());
        drop(db);
        assert_eq!(
            contents(&Db::open(&path, options).unwrap()).len(),
            2,
            "{name}"
        );
    }
}

/// As a future it is ready when it is durable.
#[test]
fn a_write_in_flight_is_a_future() {
    let (_dir, db) = database();
    // The first one makes room in the pool, which is durable at once.
    db.put(b"key", b"before").unwrap();
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    let mut flight = std::pin::pin!(db.put_begin(b"key", b"value").unwrap());
    let before = durum::thread_counters().fences;
    let polled = std::future::Future::poll(flight.as_mut(), &mut context);
    assert!(matches!(polled, std::task::Poll::Ready(Ok(()))));
    assert_eq!(durum::thread_counters().fences - before, 1);
}

#[test]
fn misuse_is_an_error() {
    let (_one, db) = database();
    let (_other, other) = database();
    let (nothing, one): (&[(&str, &str)], _) = (&[], [("key", "value")]);
    let transaction = db.transaction().unwrap();
    assert!(matches!(db.multi_put(&one), Err(Error::InTransaction)));
    let begun = db.put_begin(b"key", b"value").map(drop);
    assert!(matches!(begun, Err(Error::InTransaction)));
    drop(transaction);
    let inside = db.pool().transaction(|_| db.multi_put(&one));
    assert!(matches!(inside, Err(Error::InTransaction)));
    let inside = db.pool().transaction(|_| db.delete_begin(b"key").map(drop));
    assert!(matches!(inside, Err(Error::InTransaction)));
    db.multi_put(nothing).unwrap();
    assert!(db.multi_get::<&str>(&[]).unwrap().is_empty());
    assert!(contents(&db).is_empty());
    let snapshot = other.snapshot();
    let foreign = ReadOptions::new().snapshot(&snapshot);
    let found = db.multi_get_with(&["key"], &foreign);
    assert!(matches!(found, Err(Error::OtherSnapshot)));
}

#[test]
fn who_may_only_read_reads_many_and_writes_none() {
    let (_dir, path) = place();
    Db::open(&path, options())
        .unwrap()
        .multi_put(&[("a", "1"), ("b", "2")])
        .unwrap();
    let db = Db::open(&path, Options::new().read_only(true)).unwrap();
    let keys: Vec<_> = ["b", "none", "a"].into_iter().cycle().take(200).collect();
    let found = db.multi_get(&keys).unwrap();
    assert_eq!(found[..3], [Some(b"2".to_vec()), None, Some(b"1".to_vec())]);
    let is_refused = |result: Result<(), Error>| {
        assert!(matches!(
            result,
            Err(Error::Durum(durum::Error::ReadOnly { .. }))
        ));
    };
    is_refused(db.multi_put(&[("a", "2")]));
    is_refused(db.put_begin(b"a", b"2").map(drop));
    is_refused(db.delete_begin(b"a").map(drop));
}

/// A full disk in the middle of a call: the first pairs are there, and the database goes on.
#[test]
fn a_row_without_room_leaves_its_first_pairs() {
    for engine in support::ENGINES {
        let (dir, path) = place();
        let db = Db::open(&path, options().engine(engine)).unwrap();
        db.put(b"before", b"1").unwrap();
        let mut pairs: Vec<_> = (0..100).map(|number| (key(number), vec![1; 10])).collect();
        pairs.push((key(100), vec![0; 30 << 20]));
        pairs.extend((101..200).map(|number| (key(number), vec![1; 10])));
        let full = inject::fail_after(inject::Operation::Grow, 0, dir.path());
        let error = db.multi_put(&pairs).unwrap_err();
        assert!(matches!(error, Error::Durum(_)), "{error}");
        let mut expected: Map = pairs[..100].iter().cloned().collect();
        expected.insert(b"before".to_vec(), b"1".to_vec());
        assert_eq!(contents(&db), expected, "{engine:?}");
        let begun = db.put_begin(b"large", &vec![0; 30 << 20]).map(drop);
        assert!(matches!(begun, Err(Error::Durum(_))), "{engine:?}");
        db.put_begin(b"small", b"1").unwrap().wait().unwrap();
        drop(full);
        db.multi_put(&pairs).unwrap();
        assert_eq!(contents(&db).len(), 202, "{engine:?}");
    }
}

/// A comparator that panics takes back what shares its transaction, and nothing else.
#[test]
fn a_panic_inside_a_row_leaves_the_pairs_before_it() {
    let (_dir, path) = place();
    let db = Db::open(&path, options().comparator(Arc::new(Fragile))).unwrap();
    let mut pairs: Vec<_> = (0..100).map(|number| (key(number), b"1")).collect();
    pairs[90].0 = b"panic".to_vec();
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| db.multi_put(&pairs)));
    assert!(outcome.is_err());
    let found = contents(&db);
    assert!((1..=90).contains(&found.len()), "{}", found.len());
    let first: Map = (pairs[..found.len()].iter())
        .map(|(key, value)| (key.clone(), value.to_vec()))
        .collect();
    assert_eq!(found, first);
    db.multi_put(&pairs[..90]).unwrap();
    assert_eq!(contents(&db).len(), 90);
}

/// A value that has other bytes now is damage where checksums are asked for, and nothing is given then.
#[test]
fn damage_is_an_error_for_all_keys_of_the_call() {
    let (_dir, path) = place();
    {
        let db = Db::open(&path, options()).unwrap();
        let pairs: Vec<_> = (0..100)
            .map(|number| (key(number), format!("={number}=")))
            .collect();
        db.multi_put(&pairs).unwrap();
    }
    let puddle = fs::read_dir(path.join("puddles")).unwrap().next().unwrap();
    let puddle = puddle.unwrap().path();
    let clean = fs::read(&puddle).unwrap();
    let found: Vec<_> = (clean.windows(4).enumerate())
        .filter(|(_, bytes)| *bytes == b"=70=")
        .collect();
    assert_eq!(found.len(), 1);
    let file = fs::OpenOptions::new().write(true).open(&puddle).unwrap();
    file.write_all_at(b"=71=", found[0].0 as u64).unwrap();
    let db = Db::open(&path, options()).unwrap();
    let keys: Vec<_> = (0..100).map(key).collect();
    let trusting = db.multi_get(&keys).unwrap();
    assert_eq!(trusting[70].as_deref(), Some(&b"=71="[..]));
    let verifying = ReadOptions::new().verify_checksums(true);
    let mut values = b"before".to_vec();
    let refused = db.multi_get_into(&keys, &verifying, &mut values);
    assert!(matches!(refused, Err(Error::Damaged { .. })));
    assert_eq!(values, b"before");
    assert!(db.multi_get_with(&keys[..70], &verifying).is_ok());
    // A key that is not there could hide behind what is damaged.
    let missing = db.multi_get_with(&[b"000070x"], &verifying);
    assert!(matches!(missing, Err(Error::Damaged { .. })));
}

/// A key that writes to the database when it is asked for its bytes.
#[test]
fn keys_may_be_made_by_code_that_writes() {
    struct Writes<'d>(&'d Db, &'static [u8]);

    impl AsRef<[u8]> for Writes<'_> {
        fn as_ref(&self) -> &[u8] {
            self.0.put(self.1, b"there").unwrap();
            self.1
        }
    }

    let (_dir, path) = place();
    let db = Db::open(&path, options()).unwrap();
    let found = db
        .multi_get(&[Writes(&db, b"a"), Writes(&db, b"b")])
        .unwrap();
    assert_eq!(found, [Some(b"there".to_vec()), Some(b"there".to_vec())]);
}
