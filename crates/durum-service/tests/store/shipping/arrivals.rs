//! What arrives is what left: in another store, under another name, elsewhere, joined to another pool.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use durum_format::types::{Declarations, Field, Primitive, Type};
use durum_service::{
    Error, Export, ExportOptions, ImportOptions, PuddleGrant, Service, check, export,
};

use super::{copied, export_beside, import, named, puddles_of};
use crate::moving::{NODES, POOLS, displace, follow_in, lists, moves, version};
use crate::support::{
    create, heap, open, open_all, place_object, put, root, scratch, snapshot, spec, word,
};

#[test]
fn pools_arrive_as_they_left_and_the_export_becomes_the_stores() {
    let directory = scratch();
    let path = directory.path().join("store");
    lists(&path);
    let before = snapshot(&path);
    let place = export_beside(&path, "hybrid", true);
    assert_eq!(snapshot(&path), before, "the store is as it was");
    let mode = fs::metadata(&place).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700, "nobody else reads what is exported");
    let manifest = Export::open(&place).unwrap().manifest().clone();
    assert_eq!((manifest.pools.len(), manifest.puddles.len()), (3, 6));

    let other = directory.path().join("other");
    let store = create(&other);
    let twice = import(&store, &place, &named("shadow")).unwrap_err();
    assert!(matches!(&twice, Error::PoolExists { name, .. } if name == "shadow"));
    let report = import(&store, &place, &ImportOptions::default()).unwrap();
    assert_eq!(report.pools[0], "hybrid");
    assert_eq!((report.puddles, report.moved, report.copied), (6, 0, None));
    assert!(!place.exists(), "it is the store's now");
    let puddles = puddles_of(&store);
    follow_in(&puddles, POOLS.len() as u64 * NODES).unwrap();
    for puddle in &puddles {
        let is_there = |from: &durum_format::export::ExportedPuddle| from.address == puddle.address;
        assert!(manifest.puddles.values().any(is_there));
        assert!(!manifest.puddles.contains_key(&puddle.uuid), "a new name");
    }
    assert_eq!(version(&other), 3);
    store.close().unwrap();
    drop(store);
    let store = open(&other);
    follow_in(&puddles_of(&store), POOLS.len() as u64 * NODES).unwrap();
    store.close().unwrap();
    drop(store);
    assert_eq!(check(&other, &Default::default()).unwrap().findings, []);
}

#[test]
fn a_pool_arrives_in_its_own_store_under_another_name_and_elsewhere() {
    let directory = scratch();
    let path = directory.path().join("store");
    lists(&path);
    let place = export_beside(&path, "shadow", false);
    let exported = snapshot(&place);
    let store = open(&path);
    let taken = import(&store, &place, &copied()).unwrap_err();
    assert!(matches!(&taken, Error::PoolExists { name, .. } if name == "shadow"));
    let options = ImportOptions {
        verifies: true,
        ..named("one")
    };
    let one = ImportOptions {
        copies: true,
        ..options.clone()
    };
    let report = import(&store, &place, &one).unwrap();
    assert_eq!((report.puddles, report.moved), (2, 2));
    assert!(report.copied.is_some());
    assert_eq!(snapshot(&place), exported, "a copy leaves it as it is");
    let two = ImportOptions {
        name: Some("two".to_owned()),
        ..options
    };
    assert_eq!(import(&store, &place, &two).unwrap().copied, None);
    assert!(!place.exists());
    let opened = |name| open_all(&store, store.open_pool(name).unwrap());
    let [one, two, shadow] = ["one", "two", "shadow"].map(opened);
    for puddles in [&one, &two, &shadow] {
        follow_in(puddles, NODES).unwrap();
    }
    // They have nothing in common any more.
    put(&one[0], heap(&one[0]) + 16, &77_u64.to_le_bytes());
    for puddles in [&two, &shadow] {
        follow_in(puddles, NODES).unwrap();
    }
    store.close().unwrap();
    drop(store);
    assert_eq!(check(&path, &Default::default()).unwrap().findings, []);
}

#[test]
fn pointers_that_leave_are_refused_by_name() {
    let directory = scratch();
    let path = directory.path().join("store");
    lists(&path);
    let place = directory.path().join("export");
    let refused = export(&path, "hybrid", &place, &ExportOptions::default()).unwrap_err();
    let Error::PointersLeave {
        pool,
        pointers,
        others,
    } = &refused
    else {
        panic!("{refused}");
    };
    assert_eq!((pool.as_str(), *pointers), ("hybrid", 1));
    assert_eq!(others, &["twin"]);
    assert_eq!(
        fs::read_dir(directory.path()).unwrap().count(),
        1,
        "nothing is left"
    );
    export(&path, "shadow", &place, &ExportOptions::default()).unwrap();
    let again = export(&path, "shadow", &place, &ExportOptions::default()).unwrap_err();
    assert!(matches!(again, Error::ExportExists { .. }), "{again}");
    let missing = export(&path, "none", &place.join("x"), &ExportOptions::default()).unwrap_err();
    assert!(matches!(missing, Error::PoolMissing { .. }), "{missing}");
}

/// Puddles of one import are rewritten at different times, while the store they are in moves, too.
#[test]
fn what_was_imported_moves_on_before_it_is_rewritten() {
    let directory = scratch();
    let path = directory.path().join("store");
    lists(&path);
    let place = export_beside(&path, "hybrid", true);
    let other = directory.path().join("other");
    // Its own addresses are taken: it is imported beside a copy of itself.
    crate::support::copy(&path, &other);
    let store = open(&other);
    for (name, _) in POOLS {
        store.remove_pool(name).unwrap();
    }
    let displaced = durum_service::UsedElsewhere {
        ranges: Export::open(&place)
            .unwrap()
            .manifest()
            .puddles
            .values()
            .map(|puddle| durum_service::AddressRange {
                address: puddle.address,
                size: puddle.size,
            })
            .collect(),
        untyped_hold_no_pointers: false,
    };
    store.avoid(&displaced).unwrap();
    let report = import(&store, &place, &ImportOptions::default()).unwrap();
    assert_eq!(report.moved, 6);
    for (name, engine) in POOLS {
        displace(&store).unwrap();
        assert_eq!(store.pools().unwrap().len(), 3);
        let pool = store.open_pool(name).unwrap();
        assert_eq!(pool.engine, engine);
        let opened = open_all(&store, pool);
        follow_in(&opened, NODES - 1).unwrap();
        let uuid = store
            .pools()
            .unwrap()
            .iter()
            .find(|pool| pool.name == name)
            .unwrap()
            .uuid;
        drop(opened);
        store.close_pool(uuid).unwrap();
    }
    follow_in(&puddles_of(&store), POOLS.len() as u64 * NODES).unwrap();
    assert_eq!(moves(&other), 0);
    store.close().unwrap();
    drop(store);
    assert_eq!(check(&other, &Default::default()).unwrap().findings, []);
}

#[test]
fn objects_of_unknown_type_are_imported_where_they_were_or_with_a_promise() {
    let directory = scratch();
    let path = directory.path().join("store");
    let store = create(&path);
    let pool = store.create_pool("plain", &spec()).unwrap();
    place_object(root(&pool), 0, 0, &[7; 24]);
    store.close().unwrap();
    drop((store, pool));
    let place = export_beside(&path, "plain", false);
    assert_eq!(Export::open(&place).unwrap().manifest().untyped_objects, 1);
    let store = open(&path);
    let before = fs::read_dir(path.join("puddles")).unwrap().count();
    let refused = import(&store, &place, &named("copy")).unwrap_err();
    assert!(matches!(refused, Error::ImportRefused { .. }), "{refused}");
    assert_eq!(fs::read_dir(path.join("puddles")).unwrap().count(), before);
    let promised = ImportOptions {
        untyped_hold_no_pointers: true,
        ..named("copy")
    };
    import(
        &store,
        &place,
        &ImportOptions {
            copies: true,
            ..promised
        },
    )
    .unwrap();
    store.close().unwrap();
    drop(store);
    // The promise holds for whoever opens it.
    let store = open(&path);
    let copy = store.open_pool("copy").unwrap();
    assert_eq!(
        word(root(&copy), heap(root(&copy)) + 16),
        u64::from_le_bytes([7; 8])
    );
    let other = create(&directory.path().join("other"));
    let report = import(&other, &place, &ImportOptions::default()).unwrap();
    assert_eq!(
        report.moved, 0,
        "nothing is rewritten, so nothing need be known"
    );
    let plain = other.open_pool("plain").unwrap();
    assert_eq!(
        word(root(&plain), heap(root(&plain)) + 16),
        u64::from_le_bytes([7; 8])
    );
}

/// The puddles of a pool join another one: all is found from the old root, at the address that was told.
#[test]
fn a_pool_joins_another_one_of_its_engine() {
    let directory = scratch();
    let path = directory.path().join("store");
    lists(&path);
    let place = export_beside(&path, "twin", true);
    let shadow = directory.path().join("shadow");
    export(&path, "shadow", &shadow, &ExportOptions::default()).unwrap();
    let into = |name: &str| ImportOptions {
        into: Some(name.to_owned()),
        ..copied()
    };
    let store = open(&path);
    let before = store.pools().unwrap();
    for (place, options) in [
        (&place, into("shadow")),
        (&shadow, into("hybrid")),
        (
            &shadow,
            ImportOptions {
                name: Some("x".to_owned()),
                ..into("shadow")
            },
        ),
    ] {
        let refused = import(&store, place, &options).unwrap_err();
        assert!(matches!(refused, Error::ImportRefused { .. }), "{refused}");
    }
    let missing = import(&store, &shadow, &into("none")).unwrap_err();
    assert!(matches!(missing, Error::PoolMissing { .. }), "{missing}");
    let pool = store.open_pool("shadow").unwrap();
    let is_open = import(&store, &shadow, &into("shadow")).unwrap_err();
    assert!(matches!(is_open, Error::PoolOpen { .. }), "{is_open}");
    store.close_pool(pool.uuid).unwrap();
    assert_eq!(store.pools().unwrap(), before);
    let report = import(&store, &shadow, &into("shadow")).unwrap();
    assert_eq!(
        (report.pools, report.puddles),
        (vec!["shadow".to_owned()], 2)
    );
    let root = report.root.unwrap();
    let puddles = open_all(&store, store.open_pool("shadow").unwrap());
    assert_eq!(puddles.len(), 4);
    follow_in(&puddles, NODES).unwrap();
    // Beginning with that which has the other root.
    let holds =
        |puddle: &PuddleGrant| (puddle.address..puddle.address + puddle.size).contains(&root);
    let (joined, mut others): (Vec<_>, Vec<_>) = puddles.into_iter().partition(holds);
    assert_eq!(joined.len(), 1);
    assert!(!joined[0].is_root && root == joined[0].address + heap(&joined[0]) + 16);
    let mut all = joined;
    all.append(&mut others);
    follow_in(&all, NODES).unwrap();
    store.close().unwrap();
    drop((store, all));
    // Nothing leads to it yet.
    let report = check(&path, &Default::default()).unwrap();
    assert!(report.is_sound(), "{:?}", report.findings);
}

#[test]
fn what_is_volatile_is_exported_as_zero() {
    let directory = scratch();
    let path = directory.path().join("store");
    let store = create(&path);
    let pool = store.create_pool("locked", &spec()).unwrap();
    let mut declared = Declarations::new();
    let fields = vec![
        Field::new("lock", 0, Type::Volatile { size: 8, align: 8 }),
        Field::new("value", 8, Type::Primitive(Primitive::U64)),
    ];
    declared
        .declare(Type::structure("Locked", 16, 8, fields))
        .unwrap();
    let locked = declared.resolve("Locked").unwrap();
    store.register_type(locked.id(), locked.text()).unwrap();
    place_object(root(&pool), 0, locked.id(), &[7; 16]);
    store.close().unwrap();
    drop((store, pool));
    let place = export_beside(&path, "locked", false);
    let other = create(&directory.path().join("other"));
    import(&other, &place, &ImportOptions::default()).unwrap();
    let pool = other.open_pool("locked").unwrap();
    let at = heap(root(&pool)) + 16;
    assert_eq!(
        (word(root(&pool), at), word(root(&pool), at + 8)),
        (0, u64::from_le_bytes([7; 8]))
    );
    assert_eq!(
        other.type_text(locked.id()).unwrap().as_deref(),
        Some(locked.text())
    );
}
