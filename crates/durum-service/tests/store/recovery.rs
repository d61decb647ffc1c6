//! What a client left under way is undone or completed when the store is opened, without the client's code.

use std::path::Path;

use durum_format::UNIT;
use durum_service::{
    Embedded, Progress, PuddleKind, PuddleOwner, ReadOnlyStore, Service, Stage, check,
};

use crate::support::{
    Log, Space, create, heap, open, open_options, put, room, root, scratch, snapshot, spec, word,
};

/// Where the words of [`interrupted`] lie in the root puddle, and what recovery makes of them.
pub const WORDS: [(u64, u64, &str); 9] = [
    (0x10000, 11, "undone: the transaction did not commit"),
    (0x10008, 22, "completed: sealed, not yet in place"),
    (0x10010, 33, "untouched: redo without a seal"),
    (
        0x10018,
        44,
        "undone: from the second puddle of a chained log",
    ),
    (0x10020, 55, "undone: the seal's contents did not get there"),
    (0x10028, 0b1011, "bits set by a sealed transaction"),
    (0x10030, 0b0100, "bits cleared by a sealed transaction"),
    (0x10038, 88, "fresh, vouched for by a seal"),
    (
        0x10040,
        99,
        "retired: its log went on to the next generation",
    ),
];

/// Leaves a store with a transaction of every kind under way, as a killed process does.
pub fn interrupted(path: &Path) {
    drop(interrupt(create(path)));
}

/// Leaves a transaction of every kind under way in a new pool.
pub fn interrupt(store: Embedded) -> Embedded {
    let pool = store.create_pool("words", &spec()).unwrap();
    let puddle = root(&pool);
    let at = |offset: u64| puddle.address + offset;
    let number = |value: u64| value.to_le_bytes();
    let mut space = Space::new(&store);

    let mut log = space.log(&store, 0xa1);
    put(puddle, 0x10000, &number(11));
    log.undo(at(0x10000), &number(11));
    put(puddle, 0x10000, &number(1000));

    let mut log = space.log(&store, 0xa2);
    put(puddle, 0x10008, &number(21));
    log.redo(at(0x10008), &number(22));
    put(puddle, 0x10028, &number(0b0001));
    log.bits(true, at(0x10028), 0b1010);
    put(puddle, 0x10030, &number(0b0111));
    log.bits(false, at(0x10030), 0b0011);
    put(puddle, 0x10038, &number(88));
    log.seal(&[(at(0x10038), &number(88))]);

    let mut log = space.log(&store, 0xa3);
    put(puddle, 0x10010, &number(33));
    log.redo(at(0x10010), &number(34));

    let mut log = space.log(&store, 0xa4);
    log.undo(at(0x10018), &number(44));
    log.chain(&store);
    put(puddle, 0x10018, &number(45));
    log.undo(at(0x10018), &number(45));
    put(puddle, 0x10018, &number(46));

    let mut log = space.log(&store, 0xa5);
    log.undo(at(0x10020), &number(55));
    log.seal(&[(at(0x10048), &number(77))]);
    put(puddle, 0x10020, &number(56));

    let mut log = space.log(&store, 0xa6);
    log.undo(at(0x10040), &number(98));
    put(puddle, 0x10040, &number(99));
    log.arm();
    store
}

pub fn assert_recovered(read: impl Fn(u64) -> u64) -> Result<(), String> {
    for (offset, expected, what) in WORDS {
        let found = read(offset);
        if found != expected {
            return Err(format!("{what}: {found} where {expected} is expected"));
        }
    }
    Ok(())
}

#[test]
fn a_killed_client_is_recovered_without_its_code_and_only_once() {
    let directory = scratch();
    let path = directory.path().join("store");
    interrupted(&path);

    let seen = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let mut options = open_options();
    let sink = seen.clone();
    options.progress = Some(std::sync::Arc::new(move |progress: Progress| {
        sink.lock()
            .unwrap()
            .push((progress.stage, progress.done, progress.total));
    }));
    let store = Embedded::open(&path, options).unwrap();
    let report = store.recovery_report();
    assert!(!report.was_clean);
    assert_eq!((report.log_spaces, report.logs), (1, 6));
    assert_eq!(
        (report.rolled_back, report.rolled_forward),
        (3, 1),
        "{report:?}"
    );
    assert!(report.quarantined.is_empty(), "{report:?}");
    assert_eq!((report.entries, report.bytes), (7, 56));
    assert!(report.orphans_removed.is_empty());
    assert_eq!(
        *seen.lock().unwrap(),
        (1..=6)
            .map(|done| (Stage::Logs, done, 6))
            .chain([(Stage::Registry, 1, 1)])
            .collect::<Vec<_>>()
    );
    let pool = store.open_pool("words").unwrap();
    assert_recovered(|offset| word(root(&pool), offset)).unwrap();
    assert_eq!(
        std::fs::read_dir(path.join("puddles")).unwrap().count(),
        1,
        "the logs are gone"
    );
    // Something changes, and the next opener must not undo it.
    put(root(&pool), 0x10000, &1_u64.to_le_bytes());
    drop(store);
    let store = open(&path);
    assert!(!store.recovery_report().was_clean);
    assert_eq!(store.recovery_report().logs, 0);
    assert_eq!(word(root(&store.open_pool("words").unwrap()), 0x10000), 1);
}

#[test]
fn a_reader_of_a_dirty_store_sees_it_recovered_and_changes_no_byte() {
    let directory = scratch();
    let path = directory.path().join("store");
    interrupted(&path);
    let before = snapshot(&path);

    let reader = ReadOnlyStore::open(&path).unwrap();
    assert!(!reader.is_clean());
    assert_eq!(reader.writer().unwrap(), None);
    assert_eq!(
        (
            reader.pending().rolled_back,
            reader.pending().rolled_forward
        ),
        (3, 1)
    );
    let pool = &reader.pools()[0];
    let bytes = reader.puddle_bytes(pool.root_puddle).unwrap();
    let read = |offset: u64| {
        let at = offset as usize;
        u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap())
    };
    assert_recovered(read).unwrap();
    let report = check(&path, &Default::default()).unwrap();
    assert!(report.is_sound(), "{:?}", report.findings);
    assert_eq!(report.pending.logs, 6);
    assert_eq!(snapshot(&path), before);

    let store = open(&path);
    let recovered = std::fs::read(path.join("puddles").join(pool.root_puddle.to_string())).unwrap();
    assert_eq!(recovered, bytes, "the reader saw what recovery made");
    // Beside a live writer only the catalog is read.
    let reader = ReadOnlyStore::open(&path).unwrap();
    assert_eq!(reader.writer().unwrap(), Some(std::process::id()));
    assert_eq!(reader.pools().len(), 1);
    assert!(reader.puddle_bytes(pool.root_puddle).is_err());
    store
        .open_pool("words")
        .expect("asking for the writer did not drop its lock");
    let busy = Embedded::open(&path, open_options()).unwrap_err();
    assert!(busy.to_string().contains("this process"), "{busy}");
}

#[test]
fn prepared_puddles_that_were_never_used_are_no_damage() {
    // Crashes while a client prepares: a log puddle without a header, one that is not listed, a torn entry.
    let directory = scratch();
    let path = directory.path().join("store");
    let store = create(&path);
    store.create_pool("words", &spec()).unwrap();
    let space = Space::new(&store);
    store
        .create_puddle(PuddleOwner::Client, PuddleKind::Log, UNIT)
        .unwrap();
    let unlisted = Log::new(&store, 7);
    put(&space.grant, heap(&space.grant) + 64, &[1, 0, 0, 0, 9, 9]);
    drop((store, unlisted));
    let store = open(&path);
    assert!(store.recovery_report().quarantined.is_empty());
    store.open_pool("words").unwrap();
    assert_eq!(std::fs::read_dir(path.join("puddles")).unwrap().count(), 1);
}

#[test]
fn a_log_space_that_was_never_registered_holds_nothing() {
    let directory = scratch();
    let path = directory.path().join("store");
    let store = create(&path);
    store.create_pool("words", &spec()).unwrap();
    store
        .create_puddle(PuddleOwner::Client, PuddleKind::LogSpace, UNIT)
        .unwrap();
    drop(store);
    let store = open(&path);
    assert_eq!(store.recovery_report().log_spaces, 0);
    store.open_pool("words").unwrap();
}

#[test]
fn recovery_time_is_bounded_by_the_work_in_flight() {
    let directory = scratch();
    if room(directory.path()) < 3 << 30 {
        println!(
            "skipped: needs 3 GiB of room in {}",
            directory.path().display()
        );
        return;
    }
    let path = directory.path().join("store");
    let store = create(&path);
    let pool = store.create_pool("words", &spec()).unwrap();
    let big = store
        .create_puddle(PuddleOwner::Pool(pool.uuid), PuddleKind::Data, 1 << 30)
        .unwrap();
    let mut log = Space::new(&store).log(&store, 1);
    log.undo(big.address + (512 << 20), &[7; 8]);
    drop(store);
    let began = crate::support::cpu_time();
    let store = open(&path);
    let whole = crate::support::cpu_time() - began;
    let report = store.recovery_report();
    assert_eq!(report.rolled_back, 1);
    println!(
        "one transaction in a pool of 1 GiB: logs {:?}, registry {:?}, processor for the whole opening {whole:?}",
        report.log_time, report.registry_time
    );
    // The goal is 1 ms for the logs; processor time, because the machine may be busy.
    assert!(whole.as_millis() < 30, "{whole:?}");
    let pool = store.open_pool("words").unwrap();
    let puddles = crate::support::open_all(&store, pool);
    let big = puddles.iter().find(|p| p.uuid == big.uuid).unwrap();
    assert_eq!(word(big, 512 << 20), u64::from_le_bytes([7; 8]));
}

/// A log that nobody has used holds nothing: what became of its file concerns no pool.
#[test]
fn a_log_that_was_never_used_may_be_missing_or_damaged() {
    let damages: [fn(&Path); 3] = [
        |file| std::fs::remove_file(file).unwrap(),
        |file| std::fs::write(file, [0; 100]).unwrap(),
        |file| {
            std::fs::remove_file(file).unwrap();
            std::fs::create_dir(file).unwrap();
        },
    ];
    for damage in damages {
        let directory = scratch();
        let path = directory.path().join("store");
        let store = create(&path);
        let pool = store.create_pool("a", &spec()).unwrap();
        let mut log = Space::new(&store).log(&store, 0xa1);
        log.undo(root(&pool).address + 0x10000, &11_u64.to_le_bytes());
        put(root(&pool), 0x10000, &1000_u64.to_le_bytes());
        let unused = store
            .create_puddle(PuddleOwner::Client, PuddleKind::Log, UNIT)
            .unwrap();
        let file = path.join("puddles").join(unused.uuid.to_string());
        drop((pool, store));
        damage(&file);

        let store = open(&path);
        let report = store.recovery_report();
        assert!(report.quarantined.is_empty(), "{report:?}");
        assert_eq!(report.rolled_back, 1);
        let pool = store.open_pool("a").unwrap();
        assert_eq!(word(root(&pool), 0x10000), 11);
    }
}
