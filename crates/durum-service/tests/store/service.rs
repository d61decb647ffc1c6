//! What a client may ask for, and what it gets.

use std::path::Path;

use crate::support::{
    create, create_options, node_type, open, open_options, scratch, snapshot, spec,
};
use durum_format::UNIT;
use durum_persist::inject::{self, Operation};
use durum_service::{
    CreateOptions, Embedded, Error, ErrorKind, PuddleKind, PuddleOwner, Service, Uuid,
};

#[test]
fn pools_and_types_are_found_again() {
    let directory = scratch();
    let path = directory.path().join("store");
    let store = create(&path);
    let pool = store.create_pool("words", &spec()).unwrap();
    let more = store
        .create_puddle(PuddleOwner::Pool(pool.uuid), PuddleKind::Data, 2 * UNIT)
        .unwrap();
    let node = node_type();
    store.register_type(node.id(), node.text()).unwrap();
    store.register_type(node.id(), node.text()).unwrap();
    let info = store.info();
    store.close().unwrap();
    drop(store);

    let store = open(&path);
    assert!(store.recovery_report().was_clean);
    assert_eq!(store.info().uuid, info.uuid);
    assert_ne!(store.info().client, info.client, "a client is one opening");
    let found = store.open_pool("words").unwrap();
    assert_eq!(found.uuid, pool.uuid);
    assert_eq!(found.root.uuid, pool.root.uuid);
    assert_eq!(found.others.len(), 1);
    let place = found.others[0];
    assert_eq!(
        (place.uuid, place.address, place.size, place.kind),
        (more.uuid, more.address, 2 * UNIT, PuddleKind::Data)
    );
    let again = store.open_puddles(found.uuid, &[more.uuid]).unwrap();
    let again = again.first().unwrap();
    assert_eq!((again.address, again.size), (more.address, 2 * UNIT));
    assert!(!again.is_root && again.kind == PuddleKind::Data);
    assert_eq!(
        store.type_text(node.id()).unwrap().as_deref(),
        Some(node.text())
    );
    assert_eq!(store.types().unwrap().len(), 1);
    let pools = store.pools().unwrap();
    assert_eq!(
        (pools[0].name.as_str(), pools[0].bytes),
        ("words", 3 * UNIT)
    );
}

#[test]
fn addresses_begin_at_the_start_wrap_around_and_never_straddle_the_end() {
    let directory = scratch();
    let options = CreateOptions {
        base: 0x2100_0000_0000,
        space_size: 8 * UNIT,
        start: Some(0x2100_0000_0000 + 6 * UNIT),
        ..crate::support::create_options()
    };
    let store = Embedded::create(&directory.path().join("store"), &options).unwrap();
    let pool = store.create_pool("a", &spec()).unwrap();
    let at = |address: u64| (address - options.base) / UNIT;
    assert_eq!(at(pool.root.address), 6);
    let owner = PuddleOwner::Pool(pool.uuid);
    let data = PuddleKind::Data;
    let wide = store.create_puddle(owner, data, 3 * UNIT).unwrap();
    assert_eq!(
        at(wide.address),
        0,
        "one unit is left above, three wrap around"
    );
    let next = store.create_puddle(owner, data, 3 * UNIT).unwrap();
    assert_eq!(at(next.address), 3);
    store.remove_puddle(wide.uuid).unwrap();
    assert_eq!(
        at(store.create_puddle(owner, data, UNIT).unwrap().address),
        7
    );
    assert_eq!(
        at(store.create_puddle(owner, data, 2 * UNIT).unwrap().address),
        0
    );
    match store.create_puddle(owner, data, 2 * UNIT) {
        Err(error @ Error::AddressesExhausted { .. }) => assert_eq!(error.kind(), ErrorKind::User),
        other => panic!("{other:?}"),
    }
    assert_eq!(
        at(store.create_puddle(owner, data, UNIT).unwrap().address),
        2
    );
}

#[test]
fn two_stores_draw_different_starts() {
    let directory = scratch();
    let starts = (0..8).map(|index| {
        let store = create(&directory.path().join(index.to_string()));
        store.create_pool("a", &spec()).unwrap().root.address
    });
    let starts: Vec<u64> = starts.collect();
    let granules: std::collections::BTreeSet<u64> =
        starts.iter().map(|start| start >> 30).collect();
    // One process: as long as there are others, nobody gets the same.
    assert_eq!(granules.len(), 8, "{starts:x?}");
    // Of another process one knows no more than chance.
    assert!(
        starts.iter().any(|start| start % (1 << 30) != 0),
        "{starts:x?}"
    );
}

#[test]
fn misuse_is_refused_and_leaves_nothing_behind() {
    let directory = scratch();
    let path = directory.path().join("store");
    let store = create(&path);
    let pool = store.create_pool("a", &spec()).unwrap();
    let space = store
        .create_puddle(PuddleOwner::Client, PuddleKind::LogSpace, UNIT)
        .unwrap();
    store.register_log_space(space.uuid).unwrap();
    let files = snapshot(&path).len();
    let root = pool.root.uuid;
    let of_pool = PuddleOwner::Pool(pool.uuid);
    let nobody = Uuid([9; 16]);
    let node = node_type();
    let text = node.text();
    let refusals = [
        (
            "name taken",
            store.create_pool("a", &spec()).map(drop),
            ErrorKind::User,
        ),
        (
            "empty name",
            store.create_pool("", &spec()).map(drop),
            ErrorKind::User,
        ),
        (
            "open twice",
            store.open_pool("a").map(drop),
            ErrorKind::Caller,
        ),
        (
            "open missing",
            store.open_pool("b").map(drop),
            ErrorKind::User,
        ),
        ("remove open", store.remove_pool("a"), ErrorKind::Caller),
        ("remove missing", store.remove_pool("b"), ErrorKind::User),
        ("remove root", store.remove_puddle(root), ErrorKind::Caller),
        (
            "remove nothing",
            store.remove_puddle(nobody),
            ErrorKind::Caller,
        ),
        ("close nothing", store.close_pool(nobody), ErrorKind::Caller),
        (
            "size",
            store
                .create_puddle(of_pool, PuddleKind::Data, UNIT + 1)
                .map(drop),
            ErrorKind::Caller,
        ),
        (
            "no size",
            store.create_puddle(of_pool, PuddleKind::Data, 0).map(drop),
            ErrorKind::Caller,
        ),
        (
            "log of a pool",
            store
                .create_puddle(of_pool, PuddleKind::Log, UNIT)
                .map(drop),
            ErrorKind::Caller,
        ),
        (
            "data of a client",
            store
                .create_puddle(PuddleOwner::Client, PuddleKind::Data, UNIT)
                .map(drop),
            ErrorKind::Caller,
        ),
        (
            "data of a stranger",
            store
                .create_puddle(PuddleOwner::Pool(nobody), PuddleKind::Data, UNIT)
                .map(drop),
            ErrorKind::Caller,
        ),
        (
            "data as log space",
            store.register_log_space(root),
            ErrorKind::Caller,
        ),
        (
            "type of another id",
            store.register_type(node.id() ^ 1, text),
            ErrorKind::Caller,
        ),
        (
            "type that is none",
            store.register_type(7, "struct"),
            ErrorKind::Caller,
        ),
    ];
    for (what, result, kind) in refusals {
        match result {
            Err(error) => assert_eq!(error.kind(), kind, "{what}: {error}"),
            Ok(()) => panic!("{what} was allowed"),
        }
    }
    assert_eq!(snapshot(&path).len(), files);
    store.close_pool(pool.uuid).unwrap();
    store.remove_pool("a").unwrap();
    assert!(store.pools().unwrap().is_empty());
    assert!(matches!(
        store.remove_pool("a"),
        Err(Error::PoolMissing { .. })
    ));
    store.close().unwrap();
    store.close().unwrap();
    assert!(matches!(store.open_pool("a"), Err(Error::Closed { .. })));
    drop(store);
    let left: Vec<_> = snapshot(&path).into_keys().collect();
    let names: Vec<_> = left.iter().map(|path| path.to_str().unwrap()).collect();
    assert_eq!(names, ["durum.store", "lock", "registry", "registry.copy"]);
}

#[test]
fn a_store_can_be_moved_copied_and_removed_as_a_directory() {
    let directory = scratch();
    let first = directory.path().join("first");
    let store = create(&first);
    store.create_pool("words", &spec()).unwrap();
    store.close().unwrap();
    drop(store);
    let moved = directory.path().join("moved");
    std::fs::rename(&first, &moved).unwrap();
    let copied = directory.path().join("copied");
    crate::support::copy(&moved, &copied);
    let left = open(&moved);
    let right = open(&copied);
    left.open_pool("words").unwrap();
    right.open_pool("words").unwrap();
    left.remove_puddle(Uuid([1; 16])).unwrap_err();
    drop((left, right));
    std::fs::remove_dir_all(&moved).unwrap();
}

#[test]
fn a_path_that_is_no_store_or_is_taken_is_refused_by_name() {
    let directory = scratch();
    let missing = directory.path().join("missing");
    let refusal = Embedded::open(&missing, crate::support::open_options()).unwrap_err();
    assert!(matches!(refusal, Error::StoreMissing { .. }), "{refusal}");
    assert!(refusal.to_string().contains("durum init"), "{refusal}");
    let refusal = Embedded::open(directory.path(), crate::support::open_options()).unwrap_err();
    assert!(matches!(refusal, Error::StoreMissing { .. }), "{refusal}");

    let full = directory.path().join("full");
    std::fs::create_dir(&full).unwrap();
    std::fs::write(full.join("letter"), "dear").unwrap();
    let refusal = Embedded::create(&full, &crate::support::create_options()).unwrap_err();
    assert!(matches!(refusal, Error::StoreExists { .. }), "{refusal}");
    assert_eq!(snapshot(&full).len(), 1);
    let file = directory.path().join("file");
    std::fs::write(&file, "").unwrap();
    let refusal = Embedded::create(&file, &crate::support::create_options()).unwrap_err();
    assert!(matches!(refusal, Error::StoreExists { .. }), "{refusal}");

    let empty = directory.path().join("empty");
    std::fs::create_dir(&empty).unwrap();
    drop(create(&empty));
    let refusal = Embedded::create(&empty, &crate::support::create_options()).unwrap_err();
    assert!(matches!(refusal, Error::StoreExists { .. }), "{refusal}");
    for options in [
        CreateOptions {
            base: 1,
            ..CreateOptions::default()
        },
        CreateOptions {
            space_size: UNIT + 1,
            ..CreateOptions::default()
        },
        CreateOptions {
            base: 1 << 46,
            space_size: 1 << 46,
            ..CreateOptions::default()
        },
        CreateOptions {
            start: Some(0),
            ..CreateOptions::default()
        },
    ] {
        let refusal = Embedded::create(&directory.path().join("options"), &options).unwrap_err();
        assert!(matches!(refusal, Error::Options { .. }), "{refusal}");
    }
    assert!(!directory.path().join("options").exists());
}

#[test]
fn a_store_on_a_disk_detects_its_domain_and_recovers() {
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let path = directory.path().join("store");
    let store = Embedded::create(&path, &CreateOptions::default()).unwrap();
    let domain = durum_persist::domain::detect(directory.path()).unwrap();
    assert_eq!(store.info().domain, domain);
    let pool = store.create_pool("a", &spec()).unwrap();
    let root = crate::support::root(&pool);
    let mut log = crate::support::Space::new(&store).log(&store, 1);
    log.undo(root.address + 8192, &[1; 8]);
    crate::support::put(root, 8192, &[2; 8]);
    drop(store);
    let store = Embedded::open(&path, Default::default()).unwrap();
    assert_eq!(store.recovery_report().rolled_back, 1);
    let pool = store.open_pool("a").unwrap();
    let found = crate::support::word(crate::support::root(&pool), 8192);
    assert_eq!(found, u64::from_le_bytes([1; 8]));
    store.close().unwrap();
}

#[test]
fn a_store_that_finds_no_room_leaves_nothing_behind() {
    let directory = scratch();
    let path = directory.path().join("store");
    let mut refusals = 0;
    for growths in 0..100 {
        let full = inject::fail_after(Operation::Grow, growths, directory.path());
        let made = Embedded::create(&path, &crate::support::create_options());
        drop(full);
        match made {
            Ok(store) => {
                store.close().unwrap();
                assert!(refusals > 3, "{refusals}");
                return;
            }
            Err(refusal) => {
                assert!(matches!(refusal, Error::StorageFull { .. }), "{refusal}");
                assert!(!path.exists(), "after {growths} growths");
                refusals += 1;
            }
        }
    }
    panic!("it is never made");
}

#[test]
fn a_path_that_no_store_can_have_is_told_with_what_to_do() {
    let directory = scratch();
    let file = directory.path().join("file");
    std::fs::write(&file, "mine").unwrap();
    let below = directory.path().join("a/b");
    let make = |path: &Path| Embedded::create(path, &create_options()).unwrap_err();
    let open = |path: &Path| Embedded::open(path, open_options()).unwrap_err();
    for (refusal, told) in [
        (
            make(Path::new("")),
            "\"\": the path is empty; name the directory",
        ),
        (
            open(Path::new("")),
            "\"\": the path is empty; name the directory",
        ),
        (make(&below), "is missing; make that first: `mkdir -p"),
        (
            make(&file.join("store")),
            "which is on the way to it, is not a directory; name another path",
        ),
        (
            open(&file.join("store")),
            "which is on the way to it, is not a directory; name another path",
        ),
        (
            open(&file),
            "this is not a directory, so no store is here; name the directory of a store",
        ),
    ] {
        assert!(matches!(refusal, Error::PathRefused { .. }), "{refusal}");
        assert_eq!(refusal.kind(), ErrorKind::User, "{refusal}");
        assert!(refusal.to_string().contains(told), "{refusal}");
    }
    assert!(!below.exists());
    assert_eq!(std::fs::read(&file).unwrap(), b"mine");
}

#[test]
fn files_of_puddles_are_opened_when_they_are_asked_for() {
    let directory = scratch();
    let path = directory.path().join("store");
    let store = create(&path);
    let pool = store.create_pool("a", &spec()).unwrap();
    let owner = PuddleOwner::Pool(pool.uuid);
    let more: Vec<_> = (0..3)
        .map(|_| store.create_puddle(owner, PuddleKind::Data, UNIT).unwrap())
        .map(|puddle| puddle.uuid)
        .collect();
    let b = store.create_pool("b", &spec()).unwrap();
    store.close_pool(pool.uuid).unwrap();
    let refusal = store.open_puddles(pool.uuid, &more).unwrap_err();
    assert!(matches!(refusal, Error::PoolNotOpen { .. }), "{refusal}");

    // A file that nobody asks for is not looked at.
    let file = |uuid: Uuid| path.join("puddles").join(uuid.to_string());
    let aside = directory.path().join("aside");
    std::fs::rename(file(more[1]), &aside).unwrap();
    let pool = store.open_pool("a").unwrap();
    let places: Vec<_> = pool.others.iter().map(|place| place.uuid).collect();
    assert_eq!(places, more, "in order of address");
    let asked = [more[2], more[0]];
    let opened = store.open_puddles(pool.uuid, &asked).unwrap();
    let opened: Vec<_> = opened.iter().map(|puddle| puddle.uuid).collect();
    assert_eq!(opened, asked, "in the order in which they were asked for");

    let refusal = store.open_puddles(pool.uuid, &more).unwrap_err();
    assert!(matches!(refusal, Error::FileMissing { .. }), "{refusal}");
    assert!(refusal.to_string().contains("pool \"a\""), "{refusal}");
    std::fs::write(file(more[1]), [7; 4096]).unwrap();
    let refusal = store.open_puddles(pool.uuid, &more[1..2]).unwrap_err();
    assert!(matches!(refusal, Error::Format { .. }), "{refusal}");
    std::fs::rename(&aside, file(more[1])).unwrap();
    assert_eq!(store.open_puddles(pool.uuid, &more).unwrap().len(), 3);

    for (puddles, what) in [
        (vec![b.root.uuid], "of another pool"),
        (
            vec![more[0]; durum_service::PUDDLES_AT_ONCE + 1],
            "too many",
        ),
    ] {
        let refusal = store.open_puddles(pool.uuid, &puddles).unwrap_err();
        assert!(
            matches!(refusal, Error::PuddleRefused { .. }),
            "{what}: {refusal}"
        );
    }
    let refusal = store.open_puddles(pool.uuid, &[pool.uuid]).unwrap_err();
    assert!(matches!(refusal, Error::PuddleUnknown { .. }), "{refusal}");
}
