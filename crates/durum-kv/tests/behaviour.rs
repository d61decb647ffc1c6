//! What a program may count on: options, errors, names of comparators, sizes, properties, damage.

mod support;

use std::cmp::Ordering;
use std::fs;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use durum::{PoolOptions, Store};
use durum_kv::{
    Comparator, Db, Engine, Error, ErrorKind, Options, Range, ReadOptions, StoreOptions,
    WriteBatch, destroy, exists, repair,
};
use durum_persist::inject;
use support::{Fragile, contents, database, entries, options, place};

struct Named(&'static str);

impl Comparator for Named {
    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        b.cmp(a)
    }

    fn name(&self) -> &str {
        self.0
    }
}

#[test]
fn options_decide_what_may_be_there() {
    let (_dir, path) = place();
    let missing = Db::open(&path, Options::new()).unwrap_err();
    assert!(matches!(missing, Error::Missing { .. }), "{missing}");
    assert_eq!(missing.kind(), ErrorKind::User);
    assert!(missing.to_string().contains("create_if_missing"));
    assert!(!path.exists() && !exists(&path).unwrap());
    drop(Db::open(&path, options().error_if_exists(true)).unwrap());
    assert!(exists(&path).unwrap());
    let there = Db::open(&path, options().error_if_exists(true)).unwrap_err();
    assert!(matches!(there, Error::Exists { .. }), "{there}");
    let _db = Db::open(&path, Options::new()).unwrap();
    // A second opener of the store, in this process or another, is told so.
    assert!(Db::open(&path, Options::new()).is_err());
    assert!(matches!(destroy(&path), Err(Error::Durum(_))));
}

#[test]
fn a_directory_of_something_else_is_left_alone() {
    let (dir, _) = place();
    fs::write(dir.path().join("letter"), "dear").unwrap();
    let refused = Db::open(dir.path(), options()).unwrap_err();
    assert!(matches!(refused, Error::Occupied { .. }), "{refused}");
    // Who opens is not told to remove what is there.
    let told = refused.to_string();
    assert!(
        told.contains("choose another directory") && !told.contains("remove"),
        "{told}"
    );
    let refused = destroy(dir.path()).unwrap_err();
    assert!(matches!(refused, Error::NotAStore { .. }), "{refused}");
    assert_eq!(fs::read(dir.path().join("letter")).unwrap(), b"dear");
}

#[test]
fn a_destroyed_database_is_gone() {
    let (_dir, path) = place();
    drop(Db::open(&path, options()).unwrap());
    destroy(&path).unwrap();
    assert!(!path.exists());
    destroy(&path).unwrap();
    assert!(contents(&Db::open(&path, options()).unwrap()).is_empty());
}

#[test]
fn the_comparators_name_is_kept() {
    let (_dir, path) = place();
    let with = |name| options().comparator(Arc::new(Named(name)));
    {
        let db = Db::open(&path, with("backwards")).unwrap();
        db.put(b"a", b"1").unwrap();
        db.put(b"b", b"2").unwrap();
        let mut iter = db.iter();
        assert!(iter.seek_to_first().unwrap());
        assert_eq!(iter.key(), Some(&b"b"[..]));
        let property = db.property("durum.comparator").unwrap();
        assert_eq!(property.as_deref(), Some("backwards"));
    }
    for wrong in [with("upwards"), options()] {
        match Db::open(&path, wrong).unwrap_err() {
            Error::Comparator { stored, given, .. } => {
                assert_eq!(stored, "backwards");
                assert!(given == "upwards" || given == durum_kv::BYTEWISE);
            }
            error => panic!("{error}"),
        }
    }
    Db::open(&path, with("backwards")).unwrap();
}

#[test]
fn keys_and_values_have_any_size() {
    let (_dir, path) = place();
    let sizes = [0, 1, 7, 8, 9, 200, 255, 256, 4096, 70_000, 3 << 20];
    let bytes =
        |len: usize, seed: usize| -> Vec<u8> { (0..len).map(|at| (at * 7 + seed) as u8).collect() };
    {
        let db = Db::open(&path, options()).unwrap();
        for (number, &key) in sizes.iter().enumerate() {
            for &value in &sizes[..=number] {
                db.put(&bytes(key, 1), &bytes(value, 2)).unwrap();
                let found = db.get(&bytes(key, 1)).unwrap().unwrap();
                assert!(found == bytes(value, 2), "{key} {value}");
            }
        }
        db.put(b"huge", &bytes(40 << 20, 3)).unwrap();
    }
    let db = Db::open(&path, options().paranoid_checks(true)).unwrap();
    for &key in &sizes {
        assert!(db.get(&bytes(key, 1)).unwrap().unwrap() == bytes(key, 2));
    }
    assert!(db.get(b"huge").unwrap().unwrap() == bytes(40 << 20, 3));
    db.delete(b"huge").unwrap();
    db.delete(b"").unwrap();
    assert_eq!(db.get(b"").unwrap(), None);
}

#[test]
fn writing_past_a_transaction_is_an_error() {
    let (_dir, db) = database();
    let mut transaction = db.transaction().unwrap();
    transaction.put(b"a", b"1");
    assert!(matches!(db.put(b"b", b"2"), Err(Error::InTransaction)));
    assert!(matches!(db.transaction(), Err(Error::InTransaction)));
    assert!(matches!(db.compact(), Err(Error::InTransaction)));
    transaction.commit().unwrap();
    db.put(b"b", b"2").unwrap();
    // Nor inside one of the store's, whose outcome nobody knows yet.
    let inside = db.pool().transaction(|_| db.put(b"c", b"3"));
    assert!(matches!(inside, Err(Error::InTransaction)));
    assert_eq!(contents(&db).len(), 2);
}

#[test]
fn a_snapshot_belongs_to_its_database() {
    let (_one, first) = database();
    let (_other, second) = database();
    let snapshot = first.snapshot();
    let options = ReadOptions::new().snapshot(&snapshot);
    assert!(matches!(
        second.get_with(b"", &options),
        Err(Error::OtherSnapshot)
    ));
    assert!(matches!(
        second.iter_with(&options),
        Err(Error::OtherSnapshot)
    ));
    // It keeps its database open.
    drop(first);
    assert_eq!(snapshot.sequence(), 0);
}

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

/// A full disk: the write that finds it changes nothing, smaller ones go on.
#[test]
fn a_write_without_room_changes_nothing() {
    let (dir, path) = place();
    let db = Db::open(&path, options()).unwrap();
    for number in 0..100u8 {
        db.put(&[number], &[1; 100]).unwrap();
    }
    let before = contents(&db);
    let full = inject::fail_after(inject::Operation::Grow, 0, dir.path());
    let mut batch = WriteBatch::new();
    for number in 0..200u8 {
        batch.put(&[number, 0], b"gone");
    }
    batch.put(b"large", &vec![0; 30 << 20]);
    let error = db.write(&batch).unwrap_err();
    assert!(matches!(error, Error::Durum(_)), "{error}");
    assert_eq!(contents(&db), before);
    db.put(b"small", b"1").unwrap();
    drop(full);
    db.write(&batch).unwrap();
    assert_eq!(contents(&db).len(), 302);
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

#[test]
fn sizes_and_properties_say_what_is_there() {
    let (_dir, db) = database();
    for number in 0..5000u32 {
        db.put(format!("{number:06}").as_bytes(), &[7; 1000])
            .unwrap();
    }
    let ranges = [
        ("000000", "005000"),
        ("001000", "002000"),
        ("002000", "002003"),
        ("9", "a"),
        ("2", "1"),
    ]
    .map(|(start, limit)| Range {
        start: start.as_bytes(),
        limit: limit.as_bytes(),
    });
    let sizes = db.approximate_sizes(&ranges).unwrap();
    assert_eq!(&sizes[2..], [3 * 1038, 0, 0]);
    assert_eq!(sizes[0], 5000 * 1038);
    assert!(sizes[1].abs_diff(1000 * 1038) < 1038);
    let property = |name: &str| db.property(name).unwrap();
    let number = |name: &str| property(name).unwrap().parse::<u64>().unwrap();
    assert_eq!(number("durum.keys"), 5000);
    assert_eq!(number("durum.leaves"), 5000u64.div_ceil(59));
    assert!(number("leveldb.num-files-at-level0") > 1);
    assert_eq!(number("leveldb.num-files-at-level3"), 0);
    assert!(number("leveldb.approximate-memory-usage") > 5000 * 17);
    assert!(property("leveldb.stats").unwrap().contains("leaves"));
    assert!(property("leveldb.sstables").unwrap().contains("puddles"));
    for unknown in [
        "leveldb.num-files-at-level7",
        "leveldb.num-files-at-level",
        "leveldb.",
        "durum.",
        "",
    ] {
        assert_eq!(property(unknown), None, "{unknown}");
    }
}

/// What a snapshot keeps takes room, as LevelDB's older versions do.
#[test]
fn sizes_count_what_snapshots_keep() {
    let (_dir, db) = database();
    let all = || {
        let range = Range {
            start: b"",
            limit: b"z",
        };
        db.approximate_sizes(&[range]).unwrap()[0]
    };
    let keys: Vec<_> = (0..40u32).map(|number| format!("{number:02}")).collect();
    for key in &keys {
        db.put(key.as_bytes(), &[1; 100]).unwrap();
    }
    let once = 40 * (32 + 2 + 100);
    assert_eq!(all(), once);
    let before = db.snapshot();
    for key in &keys {
        db.put(key.as_bytes(), &[2; 100]).unwrap();
    }
    assert_eq!(all(), 2 * once);
    for key in &keys {
        db.delete(key.as_bytes()).unwrap();
    }
    // The first versions, and that they were deleted.
    assert_eq!(all(), once + 40 * (32 + 2));
    drop(before);
    db.compact().unwrap();
    assert_eq!(all(), 0);
}

#[test]
fn a_database_lives_beside_other_pools() {
    let (_dir, path) = place();
    let store = Store::create(&path, StoreOptions::new()).unwrap();
    let other = store.create_pool("other", PoolOptions::new()).unwrap();
    let db = Db::open_in(&store, "names", options()).unwrap();
    assert!(matches!(
        Db::open_in(&store, "none", Options::new()),
        Err(Error::Missing { .. })
    ));
    // A pool of something else is refused.
    other.root::<u64>().unwrap();
    assert!(Db::open_in(&store, "other", options()).is_err());
    db.put(b"a", b"1").unwrap();
    assert_eq!(db.path(), path);
    // What a transaction takes back, a database that was opened inside it would count on.
    let inside = other.transaction(|_| match Db::open_in(&store, "more", options()) {
        Err(Error::InTransaction) => Ok::<_, durum::Error>(()),
        result => panic!("{result:?}"),
    });
    inside.unwrap();
    assert!(matches!(
        store.open_pool("more", PoolOptions::new()),
        Err(durum::Error::Store(
            durum_service::Error::PoolMissing { .. }
        ))
    ));
}

/// Whatever bytes of the pool are wrong, opening and reading say so or read right; nothing panics, and no pointer is
/// followed out of the pool.
#[test]
fn damage_is_an_error() {
    let (dir, path) = place();
    {
        let db = Db::open(&path, options()).unwrap();
        for number in 0..300u32 {
            db.put(format!("{number:04}").as_bytes(), &[number as u8; 40])
                .unwrap();
        }
    }
    let puddles: Vec<_> = fs::read_dir(path.join("puddles"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    assert_eq!(puddles.len(), 1, "the root puddle");
    let clean = fs::read(&puddles[0]).unwrap();
    // Words of the heap that are not zero: pointers, lengths, bounds, keys.
    let used: Vec<usize> = (8192..clean.len())
        .step_by(8)
        .filter(|&at| clean[at..at + 8] != [0; 8])
        .collect();
    assert!(used.len() > 300 * 8);
    let (mut errors, mut sound) = (0, 0);
    for (number, &at) in used.iter().step_by(23).enumerate() {
        let mut word: [u8; 8] = clean[at..at + 8].try_into().unwrap();
        match number % 4 {
            0 => word[number / 4 % 8] ^= 1 << (number % 7),
            1 => word = [0xff; 8],
            2 => word = (u64::from_le_bytes(word) + 4).to_le_bytes(),
            _ => word = [0; 8],
        }
        let file = fs::OpenOptions::new()
            .write(true)
            .open(&puddles[0])
            .unwrap();
        file.write_all_at(&word, at as u64).unwrap();
        let read = || -> durum_kv::Result<u64> {
            let db = Db::open(&path, Options::new())?;
            for number in 0..300u32 {
                db.get(format!("{number:04}").as_bytes())?;
            }
            db.verify()
        };
        match read() {
            Ok(count) => sound += u32::from(count > 0),
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Data, "at {at}: {error}");
                errors += 1;
            }
        }
        file.write_all_at(&clean, 0).unwrap();
    }
    assert!(errors > 50 && sound > 0, "{errors} errors, {sound} sound");
    assert_eq!(repair(&path, Options::new()).unwrap(), 300);
    drop(dir);
}

/// Puts other bytes to the one place of the root puddle where `found` is, has `check` look at the database, and puts
/// them back.
fn with_damage(path: &Path, found: &[u8], other: &[u8], check: impl FnOnce(&Db)) {
    let puddle = fs::read_dir(path.join("puddles"))
        .unwrap()
        .next()
        .unwrap()
        .unwrap();
    let clean = fs::read(puddle.path()).unwrap();
    let mut places = clean.windows(found.len()).enumerate();
    let (at, _) = places.find(|(_, bytes)| *bytes == found).unwrap();
    assert!(places.all(|(_, bytes)| bytes != found));
    let file = fs::OpenOptions::new()
        .write(true)
        .open(puddle.path())
        .unwrap();
    file.write_all_at(other, at as u64).unwrap();
    check(&Db::open(path, Options::new()).unwrap());
    file.write_all_at(&clean, 0).unwrap();
}

/// A key that has other bytes now, or that lies behind another bound, is not where it is looked for. With checksums
/// that is damage, and not a key that is not there.
#[test]
fn a_key_that_damage_hides_is_damage_where_checksums_are_asked_for() {
    let (_dir, path) = place();
    {
        let db = Db::open(&path, options()).unwrap();
        for number in 0..300u32 {
            let value = format!("={number}");
            db.put(format!("{number:04}").as_bytes(), value.as_bytes())
                .unwrap();
        }
    }
    let verifying = ReadOptions::new().verify_checksums(true);
    let is_damage = |result: Result<_, Error>| {
        let result = result.map(|found: Option<Vec<u8>>| found.is_some());
        assert!(matches!(result, Err(Error::Damaged { .. })), "{result:?}");
    };
    let seek = |db: &Db, key: &[u8]| {
        let mut entries = db.iter_with(&verifying)?;
        entries.seek(key)?;
        Ok(entries.key().map(<[u8]>::to_vec))
    };
    with_damage(&path, b"0070=70", b"007!=70", |db| {
        assert_eq!(db.get(b"0070").unwrap(), None);
        is_damage(db.get_with(b"0070", &verifying));
        is_damage(db.get_with(b"007!", &verifying));
        is_damage(seek(db, b"0070"));
        // What lies in other leaves is as it was.
        assert!(db.get_with(b"0200", &verifying).unwrap().is_some());
        assert_eq!(db.get_with(b"02000", &verifying).unwrap(), None);
        assert_eq!(seek(db, b"0200").unwrap().as_deref(), Some(&b"0200"[..]));
    });
    // The bound of the second leaf: down to a key of the first one, and up beyond one of its own.
    let bound = |last: u8| [&4u64.to_le_bytes()[..], b"005", &[last]].concat();
    with_damage(&path, &bound(b'9'), &bound(b'8'), |db| {
        assert_eq!(db.get(b"0058").unwrap(), None);
        is_damage(db.get_with(b"0058", &verifying));
        is_damage(seek(db, b"0058"));
    });
    with_damage(&path, &bound(b'9'), &bound(b':'), |db| {
        assert_eq!(db.get(b"0059").unwrap(), None);
        is_damage(db.get_with(b"0059", &verifying));
        is_damage(seek(db, b"0059"));
    });
    assert_eq!(repair(&path, Options::new()).unwrap(), 300);
}
