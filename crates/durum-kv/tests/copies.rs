//! Two copies of one database, made by `cp -r`, are open in one process: each sees its own entries.

mod support;

use std::process::Command;

use durum::{ExportOptions, ImportOptions, Store, StoreOptions};
use durum_kv::{Db, WriteBatch};
use support::{ENGINES, Map, contents, options, place};

const ENTRIES: u32 = 2_000;

fn key(number: u32) -> Vec<u8> {
    format!("{:08}", number.wrapping_mul(2_654_435_761)).into_bytes()
}

/// Changes, removes and adds entries, each in a way of its own for this `who`; `expected` follows.
fn change(db: &Db, expected: &mut Map, who: &str) {
    let mut batch = WriteBatch::new();
    for number in (0..ENTRIES).step_by(3) {
        let value = format!("{who} changed {number}").into_bytes();
        batch.put(&key(number), &value);
        expected.insert(key(number), value);
    }
    db.write(&batch).unwrap();
    for number in (1..ENTRIES).step_by(7) {
        db.delete(&key(number)).unwrap();
        expected.remove(&key(number));
    }
    for number in ENTRIES..ENTRIES + 500 {
        let (key, value) = ([who.as_bytes(), &key(number)].concat(), vec![b'+'; 700]);
        db.put(&key, &value).unwrap();
        expected.insert(key, value);
    }
}

/// As many leaves as one chunk of the index has, and some more: the next chunk is told of by a guide.
fn lengthen(db: &Db, expected: &mut Map) {
    let mut batch = WriteBatch::new();
    for number in 0..130 * 59 {
        let key = format!("~{number:08}").into_bytes();
        batch.put(&key, b"");
        expected.insert(key, Vec::new());
    }
    db.write(&batch).unwrap();
}

#[test]
fn copies_of_a_database_are_open_side_by_side() {
    for engine in ENGINES {
        let (dir, first) = place();
        let second = dir.path().join("copy");
        let mut expected = Map::new();
        {
            let db = Db::open(&first, options().engine(engine)).unwrap();
            for number in 0..ENTRIES {
                let value = vec![b'a' + (number % 26) as u8; (number % 900) as usize];
                db.put(&key(number), &value).unwrap();
                expected.insert(key(number), value);
            }
            lengthen(&db, &mut expected);
        }
        let copied = Command::new("cp")
            .arg("-r")
            .args([&first, &second])
            .status();
        assert!(copied.unwrap().success());
        let mut both = [expected.clone(), expected];
        // The one that stays, and the one that moves. Then the other way round: where they are now, they meet no more.
        for paths in [[&first, &second], [&second, &first]] {
            let dbs = paths.map(|path| Db::open(path, options()).unwrap());
            for (db, path) in dbs.iter().zip(paths) {
                let (who, expected) = match path == &first {
                    true => ("first", &mut both[0]),
                    false => ("second", &mut both[1]),
                };
                assert_eq!(&contents(db), expected, "{engine:?} {who}");
                change(db, expected, who);
            }
            for (db, path) in dbs.iter().zip(paths) {
                let expected = &both[usize::from(path != &first)];
                assert_eq!(&contents(db), expected, "{engine:?} {}", path.display());
            }
        }
    }
}

/// A database is a pool: it is exported and imported as any other one, and opens beside its original.
#[test]
fn a_database_is_shipped_to_another_store() {
    for engine in ENGINES {
        let (dir, first) = place();
        let [second, export] = ["second", "export"].map(|name| dir.path().join(name));
        let mut expected = Map::new();
        let db = Db::open(&first, options().engine(engine)).unwrap();
        change(&db, &mut expected, "first");
        lengthen(&db, &mut expected);
        drop(db);
        {
            let store = Store::open(&first, StoreOptions::new()).unwrap();
            let name = store.pools().unwrap()[0].name.clone();
            store
                .export_pool(&name, &export, &ExportOptions::default())
                .unwrap();
            let other = Store::create(&second, StoreOptions::new()).unwrap();
            let report = other.import(&export, &ImportOptions::default()).unwrap();
            assert_eq!(report.pools, [name]);
            store.close().unwrap();
            other.close().unwrap();
        }
        let dbs = [&first, &second].map(|path| Db::open(path, options()).unwrap());
        assert_eq!(contents(&dbs[1]), expected);
        let mut apart = expected.clone();
        change(&dbs[1], &mut apart, "second");
        assert_eq!(contents(&dbs[0]), expected);
        assert_eq!(contents(&dbs[1]), apart);
    }
}
