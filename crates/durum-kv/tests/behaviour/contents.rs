//! Keys and values, snapshots of them, and their sizes.

use durum_kv::{Db, Error, Range, ReadOptions, WriteBatch};
use durum_persist::inject;

use crate::support::{contents, database, options, place};

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

/// A value as long as the old one goes into the record that is there, unless somebody still sees the old one.
#[test]
fn who_reads_at_a_moment_sees_no_later_value_of_the_same_length() {
    let (_dir, db) = database();
    db.put(b"a", b"first").unwrap();
    db.put(b"b", b"first").unwrap();
    let before = db.snapshot();
    let mut entries = db.iter();
    assert!(entries.seek(b"a").unwrap());
    for value in [b"later", b"third"] {
        db.put(b"a", value).unwrap();
        db.put(b"b", value).unwrap();
    }
    let at = ReadOptions::new().snapshot(&before);
    assert_eq!(
        db.get_with(b"b", &at).unwrap().as_deref(),
        Some(&b"first"[..])
    );
    assert_eq!(entries.value(), Some(&b"first"[..]));
    assert!(entries.next().unwrap());
    assert_eq!(entries.value(), Some(&b"first"[..]));
    assert_eq!(db.get(b"a").unwrap().as_deref(), Some(&b"third"[..]));
    drop((before, entries));
    db.put(b"a", b"fifth").unwrap();
    assert_eq!(db.get(b"a").unwrap().as_deref(), Some(&b"fifth"[..]));
    assert_eq!(db.verify().unwrap(), 2);
}

/// What a batch puts and puts again with as many bytes is changed in the transaction that makes it.
#[test]
fn a_batch_changes_what_it_has_made() {
    let (_dir, db) = database();
    db.put(b"a", b"first").unwrap();
    let mut batch = WriteBatch::new();
    for value in [b"later", b"third", b"fifth"] {
        batch.put(b"a", value);
        batch.put(b"b", value);
        batch.put(b"c", &[value[0]; 4000]);
    }
    batch.delete(b"c");
    batch.put(b"c", b"fresh");
    batch.put(b"c", b"again");
    db.write(&batch).unwrap();
    let path = db.path().to_path_buf();
    let check = |db: &Db| {
        for (key, value) in [(b"a", b"fifth"), (b"b", b"fifth"), (b"c", b"again")] {
            assert_eq!(db.get(key).unwrap().as_deref(), Some(&value[..]));
        }
        assert_eq!(db.verify().unwrap(), 3);
    };
    check(&db);
    drop(db);
    check(&Db::open(path, options()).unwrap());
}
