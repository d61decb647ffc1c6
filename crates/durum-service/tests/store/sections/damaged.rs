//! Damaged records, and sections beside a quarantined log.

use std::path::Path;

use durum_format::UNIT;
use durum_service::{Error, Service};

use super::{Left, OLD, files, head, left, names, record, sections_of, value};
use crate::support::{Space, create, heap, open, put, scratch, snapshot, spec};

#[test]
fn damaged_records_refuse_the_same_pools_and_nothing_is_lost() {
    type Damage = fn(&Left, &Path);
    let damages: [Damage; 4] = [
        |left, _| put(&left.sections, heap(&left.sections) + 20, &[0xff]),
        |left, _| {
            let head = head(left.client);
            let at = heap(&left.sections) + head.bank_offset(3, 0);
            put(&left.sections, at, &[0xff; 16]);
        },
        |left, path| {
            std::fs::remove_file(path.join("puddles").join(left.sections.uuid.to_string()))
                .unwrap();
        },
        |left, _| left.sections.file.set_len(UNIT / 2).unwrap(),
    ];
    for (number, damage) in damages.into_iter().enumerate() {
        let directory = scratch();
        let path = directory.path().join("store");
        let left = left(&path, false);
        damage(&left, &path);
        let store = open(&path);
        assert_eq!(names(&store), ["c"], "{number}");
        let error = store.open_pool("a").unwrap_err();
        assert!(
            error.to_string().contains("its records are damaged"),
            "{error}"
        );
        let listed = store.interrupted().unwrap();
        assert!(listed[0].damage.is_some());
        drop(store);
        let store = open(&path);
        assert_eq!(store.abandon_sections("a").unwrap(), ["b"]);
        assert_eq!(value(&store, "a"), OLD);
        store.abandon_sections("b").unwrap();
        assert_eq!(names(&store), ["a", "b", "c"]);
    }
}

/// A quarantined log and a section: both have to be settled.
#[test]
fn a_quarantined_log_does_not_lose_the_sections() {
    let directory = scratch();
    let path = directory.path().join("store");
    let store = create(&path);
    store.create_pool("a", &spec()).unwrap();
    let log = Space::new(&store).log(&store, 5);
    let damaged = heap(&log.parts[0]) + 16;
    let mut byte = [0];
    log.parts[0].file.read_exact_at(&mut byte, damaged).unwrap();
    put(&log.parts[0], damaged, &[byte[0] ^ 0xff]);
    let sections = sections_of(&store);
    let client = store.id();
    record(&sections, client, 0, 1, true);
    drop(store);
    let store = open(&path);
    assert!(matches!(
        store.open_pool("a"),
        Err(Error::PoolQuarantined { .. })
    ));
    assert!(matches!(
        store.take_over(client),
        Err(Error::PoolQuarantined { .. })
    ));
    drop(store);
    let before = snapshot(&path);
    let store = open(&path);
    assert_eq!(store.interrupted().unwrap().len(), 1);
    drop(store);
    assert!(
        snapshot(&path) == before,
        "nothing can be done, so nothing is written"
    );
    // The log is whole again.
    let file = path.join("quarantine").join(log.parts[0].uuid.to_string());
    let mut bytes = std::fs::read(&file).unwrap();
    bytes[damaged as usize] = byte[0];
    std::fs::write(&file, bytes).unwrap();
    let store = open(&path);
    store.retry_quarantined("a").unwrap();
    assert!(matches!(
        store.open_pool("a"),
        Err(Error::PoolInterrupted { .. })
    ));
    let taken = store.take_over(client).unwrap();
    record(&taken.puddles[0], client, 0, 2, false);
    store.sections_done(client).unwrap();
    store.close().unwrap();
    drop(store);
    assert_eq!(names(&open(&path)), ["a"]);
    assert_eq!(files(&path), 1);
}
