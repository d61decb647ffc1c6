//! Large batches, and what takes a batch back.

use std::sync::Arc;

use durum_kv::{Db, Engine, Error, ReadOptions, StoreOptions, WriteBatch};
use durum_persist::inject;

use crate::support::{Fragile, contents, database, entries, options, place};
use crate::{Named, support};

/// A comparator that panics in the middle of a batch: nothing of the batch is there, and the database goes on.
#[test]
fn a_panic_inside_a_batch_takes_it_back() {
    let (_dir, path) = place();
    let db = Db::open(&path, options().comparator(Arc::new(Fragile))).unwrap();
    db.put(b"kept", b"1").unwrap();
    let mut batch = WriteBatch::new();
    for number in 0..100u8 {
        batch.put(&[number], b"gone");
    }
    batch.put(b"panic", b"");
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| db.write(&batch)));
    assert!(outcome.is_err());
    assert_eq!(contents(&db).len(), 1);
    db.put(b"other", b"2").unwrap();
    assert_eq!(contents(&db).len(), 2);
}

/// What a batch says of a key last counts, also where it is so large that readers go on beside it.
#[test]
fn a_large_batch_may_change_a_key_many_times() {
    for engine in support::ENGINES {
        let (_dir, path) = place();
        let db = Db::open(&path, options().engine(engine)).unwrap();
        let key = |number: u32| format!("{number:05}").into_bytes();
        (0..300).for_each(|number| db.put(&key(number), b"old").unwrap());
        // Some are pinned, and have older versions.
        let snapshot = db.snapshot();
        (0..50).for_each(|number| db.put(&key(number), b"newer").unwrap());
        let mut model = contents(&db);
        let before = {
            let read = ReadOptions::new().snapshot(&snapshot);
            entries(&mut db.iter_with(&read).unwrap()).unwrap()
        };
        for round in 0..3u32 {
            let mut batch = WriteBatch::new();
            for number in 0..400 {
                let (key, value) = (key(number * 7 % 400), format!("{round} {number}"));
                let steps = [&b"pd"[..], b"dp", b"dpd", b"dd", b"pdp", b"d", b""];
                for step in steps[(number + round) as usize % steps.len()] {
                    match step {
                        b'p' => {
                            batch.put(&key, value.as_bytes());
                            model.insert(key.clone(), value.clone().into_bytes());
                        }
                        _ => {
                            batch.delete(&key);
                            model.remove(&key);
                        }
                    }
                }
            }
            db.write(&batch).unwrap();
            assert_eq!(contents(&db), model, "{engine:?}, {round}");
        }
        let read = ReadOptions::new().snapshot(&snapshot);
        let after = entries(&mut db.iter_with(&read).unwrap()).unwrap();
        assert_eq!(after, before, "{engine:?}");
        drop(snapshot);
        db.compact().unwrap();
        assert_eq!(contents(&db), model);
        drop(db);
        let report = durum_service::check(&path, &Default::default()).unwrap();
        assert!(report.findings.is_empty(), "{:?}", report.findings);
        let db = Db::open(&path, options()).unwrap();
        assert_eq!(contents(&db), model);
    }
}

/// A batch that deletes what it has put itself, among keys that come in any order or in their own, so that leaves are
/// split while some of their keys are on their way out; in the order of bytes and in the program's own, where the tree
/// grows at its other end.
#[test]
fn a_large_batch_may_delete_what_it_has_put() {
    let begin = "a beginning that is longer than what is kept of one, and than a head";
    for engine in support::ENGINES {
        for (order, ascends) in [
            ("bytes", false),
            ("bytes", true),
            ("own", false),
            ("own", true),
        ] {
            let (_dir, path) = place();
            let options = match order {
                "bytes" => options(),
                _ => options().comparator(Arc::new(Named("backward"))),
            };
            let db = Db::open(&path, options.engine(engine)).unwrap();
            let mut model = support::Map::new();
            // A row that is the same in each run, of every 16 bits once.
            let mut row = 1_u32;
            let mut draw = |count: u32| {
                row = row * 75 % 65_537;
                row % count
            };
            for round in 0..30 {
                let mut batch = WriteBatch::new();
                for step in 0..300 {
                    let number = match ascends {
                        true => 300 * round + step - draw(20).min(step),
                        false => draw(400),
                    };
                    let key = format!("{begin} {number:05}").into_bytes();
                    if draw(5) < 3 {
                        let value = vec![b'v'; draw(60) as usize];
                        batch.put(&key, &value);
                        model.insert(key, value);
                    } else {
                        batch.delete(&key);
                        model.remove(&key);
                    }
                }
                db.write(&batch).unwrap();
                let what = format!("{engine:?}, {order}, {ascends}, after {round} batches");
                assert!(contents(&db) == model, "{what}");
                for number in 0..400 {
                    let key = format!("{begin} {number:05}").into_bytes();
                    assert!(db.get(&key).unwrap() == model.get(&key).cloned(), "{what}");
                }
            }
        }
    }
}

/// Batches that take all back which they have put leave no leaf behind.
#[test]
fn what_batches_put_and_delete_takes_no_room() {
    let (_dir, db) = database();
    let mut taken = Vec::new();
    for round in 0..40_u32 {
        let keys: Vec<_> = (0..200_u32)
            .map(|number| format!("{round:08} {number:08}").into_bytes())
            .collect();
        let mut batch = WriteBatch::new();
        keys.iter().for_each(|key| batch.put(key, b"value"));
        keys.iter().for_each(|key| batch.delete(key));
        db.write(&batch).unwrap();
        taken.push(db.property("durum.leaves").unwrap());
    }
    assert_eq!(taken.first(), taken.last(), "{taken:?}");
    assert!(contents(&db).is_empty());
}

/// A batch that fails in the middle has deleted nothing.
#[test]
fn a_large_batch_that_fails_takes_its_deletes_back() {
    let (dir, path) = place();
    let db = Db::open(&path, options()).unwrap();
    let key = |number: u32| format!("{number:05}").into_bytes();
    (0..2000).for_each(|number| db.put(&key(number), b"value").unwrap());
    let before = contents(&db);
    let full = inject::fail_after(inject::Operation::Grow, 0, dir.path());
    let mut batch = WriteBatch::new();
    (0..2000).for_each(|number| batch.delete(&key(number)));
    batch.put(&key(7), b"again");
    batch.put(b"large", &vec![0; 30 << 20]);
    db.write(&batch).unwrap_err();
    assert_eq!(contents(&db), before);
    drop(full);
    db.write(&batch).unwrap();
    assert_eq!(contents(&db).len(), 2);
}

#[test]
fn a_hundred_thousand_deletes_fit_in_full_memory() {
    deletes_fit(durum::Domain::Dram, &[Engine::Shadow]);
}

#[test]
#[ignore = "a minute"]
fn a_hundred_thousand_deletes_fit_on_each_engine_also_on_a_full_disk() {
    deletes_fit(durum::Domain::Dram, &support::ENGINES);
    deletes_fit(durum::Domain::File, &support::ENGINES);
}

/// What 100,000 deletes in one batch need is kept for them, wherever their keys are. A larger batch fails as a whole,
/// and says why.
fn deletes_fit(domain: durum::Domain, engines: &[Engine]) {
    const DELETES: u32 = 100_000;
    let key = |number: u32| format!("{number:016}").into_bytes();
    for &engine in engines {
        let store = StoreOptions::new().domain(domain);
        let options = options().engine(engine).store(store);
        let (dir, path) = place();
        let db = Db::open(&path, options.clone()).unwrap();
        for round in 0..10 {
            let mut batch = WriteBatch::new();
            (0..DELETES).for_each(|at| batch.put(&key(at * 10 + round), b"value"));
            db.write(&batch).unwrap();
        }
        drop(db);
        let db = Db::open(&path, options).unwrap();
        let full = inject::fail_after(inject::Operation::Grow, 0, dir.path());
        let delete = |numbers: std::ops::Range<u32>, step: u32| {
            let mut batch = WriteBatch::new();
            let count = numbers.end - numbers.start;
            numbers.for_each(|at| {
                let scattered = u64::from(at) * 7919 % u64::from(count);
                batch.delete(&key(scattered as u32 * step));
            });
            db.write(&batch)
        };
        let keys = || db.property("durum.keys").unwrap().unwrap();
        // Some six of each leaf.
        delete(0..DELETES, 10).unwrap_or_else(|error| panic!("{engine:?}, {domain:?}: {error}"));
        assert_eq!(keys(), (9 * DELETES).to_string());
        let all = delete(0..10 * DELETES, 1);
        let Err(error) = all else {
            assert_eq!(engine, Engine::Twin, "which logs nothing");
            continue;
        };
        assert!(
            matches!(error, Error::Durum(durum::Error::LogFull { .. })),
            "{error}"
        );
        assert_eq!(keys(), (9 * DELETES).to_string());
        db.delete(&key(1)).unwrap();
        drop(full);
        delete(0..10 * DELETES, 1).unwrap();
        assert_eq!(keys(), "0");
    }
}
