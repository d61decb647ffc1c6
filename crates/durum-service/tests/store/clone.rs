//! A clone has other addresses and other names, and the same contents: every pointer leads where it led.

use std::path::Path;

use durum_format::types::{Case, Declarations, Field, Primitive, Type, Variants};
use durum_format::{GRANULE, UNIT};
use durum_service::{
    CloneOptions, CreateOptions, Embedded, Error, PuddleKind, PuddleOwner, ReadOnlyStore, Service,
    Severity, check, clone_store,
};

use crate::support::{
    Space, create, create_options, heap, node, node_type, open, open_all, place_object, put, root,
    scratch, snapshot, spec, word,
};

/// A lock that was held when a program was killed is held in no copy; what it guards is there.
#[test]
fn what_is_volatile_is_zero_in_a_clone() {
    let directory = scratch();
    let path = directory.path().join("store");
    let store = create(&path);
    let pool = store.create_pool("locked", &spec()).unwrap();
    let mut declared = Declarations::new();
    let lock = Type::Volatile { size: 8, align: 8 };
    let value = Type::Primitive(Primitive::U64);
    let fields = vec![Field::new("lock", 0, lock), Field::new("value", 8, value)];
    declared
        .declare(Type::structure("Locked", 16, 8, fields))
        .unwrap();
    let locked = declared.resolve("Locked").unwrap();
    store.register_type(locked.id(), locked.text()).unwrap();
    // A row of two.
    place_object(root(&pool), 0, locked.id(), &[7; 32]);
    store.close().unwrap();
    drop(store);
    let copy = directory.path().join("copy");
    clone_store(&path, &copy, &CloneOptions::default()).unwrap();
    let words = |path: &Path| {
        let store = open(path);
        let cloned = open_all(&store, store.open_pool("locked").unwrap());
        let at = heap(&cloned[0]) + 16;
        [0, 8, 16, 24].map(|offset| word(&cloned[0], at + offset))
    };
    let held = u64::from_le_bytes([7; 8]);
    assert_eq!(words(&copy), [0, held, 0, held]);
    assert_eq!(words(&path), [held; 4], "the source is as it was");
}

/// An object whose value is gone is zeros behind its counts, which need not fit its type.
#[test]
fn an_object_whose_value_is_gone_is_cloned_as_it_is() {
    let directory = scratch();
    let path = directory.path().join("store");
    let store = create(&path);
    let pool = store.create_pool("husk", &spec()).unwrap();
    let lock = Type::Volatile { size: 8, align: 8 };
    let value = Type::Variants(Variants {
        was: Vec::new(),
        name: "Either".into(),
        size: 16,
        align: 8,
        tag_offset: 0,
        tag_width: 8,
        cases: vec![Case {
            was: Vec::new(),
            discriminant: Some(1),
            name: "Guarded".into(),
            fields: vec![Field::new("lock", 8, lock)],
        }],
    });
    let count = || Type::Primitive(Primitive::U64);
    let fields = vec![
        Field::new("strong", 0, count()),
        Field::new("weak", 8, count()),
        Field::new("value", 16, value),
    ];
    let mut declared = Declarations::new();
    let name = "counted Either";
    declared
        .declare(Type::structure(name, 32, 8, fields))
        .unwrap();
    let counted = declared.resolve(name).unwrap();
    store.register_type(counted.id(), counted.text()).unwrap();
    let object = |words: [u64; 4]| words.map(u64::to_le_bytes).concat();
    place_object(root(&pool), 0, counted.id(), &object([0, 1, 0, 0]));
    place_object(root(&pool), 20, counted.id(), &object([1, 1, 1, 7]));
    store.close().unwrap();
    drop(store);
    let copy = directory.path().join("copy");
    clone_store(&path, &copy, &CloneOptions::default()).unwrap();
    let store = open(&copy);
    let cloned = open_all(&store, store.open_pool("husk").unwrap());
    let words = |granule: u64| {
        let at = heap(&cloned[0]) + granule * GRANULE + 16;
        [0, 8, 16, 24].map(|offset| word(&cloned[0], at + offset))
    };
    assert_eq!(words(0), [0, 1, 0, 0]);
    assert_eq!(words(20), [1, 1, 1, 0], "and one that is there, as ever");
}

#[test]
fn a_list_over_two_puddles_is_the_same_list_elsewhere() {
    let directory = scratch();
    let path = directory.path().join("store");
    let store = create(&path);
    let pool = store.create_pool("list", &spec()).unwrap();
    let node_type = node_type();
    store
        .register_type(node_type.id(), node_type.text())
        .unwrap();
    let gap = store
        .create_puddle(PuddleOwner::Pool(pool.uuid), PuddleKind::Data, 3 * UNIT)
        .unwrap();
    let more = store
        .create_puddle(PuddleOwner::Pool(pool.uuid), PuddleKind::Data, 2 * UNIT)
        .unwrap();
    store.remove_puddle(gap.uuid).unwrap();
    let outside = 0x7fff_0000_1000;
    let bytes = place_object(&more, 20, 0, &more.address.to_le_bytes());
    let third = place_object(&more, 8, node_type.id(), &node(3, outside));
    let second = place_object(&more, 4, node_type.id(), &node(2, third));
    place_object(root(&pool), 0, node_type.id(), &node(1, second));
    place_object(&more, 30, node_type.id(), &node(4, bytes));
    place_object(&more, 31, node_type.id(), &node(5, gap.address));
    place_object(&more, 32, 0xabcd, &[9; 24]);
    let original = store.info();
    store.close().unwrap();
    drop(store);
    let before = snapshot(&path);

    let copy = directory.path().join("copy");
    let options = CloneOptions {
        start: Some(original.base + (1 << 39)),
        ..CloneOptions::default()
    };
    let report = clone_store(&path, &copy, &options).unwrap();
    assert_eq!(snapshot(&path), before, "the source is as it was");
    assert_eq!((report.puddles, report.objects), (2, 7));
    assert_eq!((report.pointers, report.pointers_to_nowhere), (3, 1));
    assert_eq!((report.untyped_objects, report.untyped_bytes), (1, 8));
    assert_eq!(report.unknown_types, [(0xabcd, 1)].into());

    let store = open(&copy);
    let info = store.info();
    assert_ne!(info.uuid, original.uuid);
    assert_eq!(info.base, original.base);
    let cloned = store.open_pool("list").unwrap();
    assert_ne!(cloned.uuid, pool.uuid);
    assert!(
        cloned
            .others
            .iter()
            .map(|place| place.uuid)
            .chain([cloned.root.uuid])
            .all(|uuid| uuid != pool.root.uuid && uuid != more.uuid)
    );
    let cloned = open_all(&store, cloned);
    let new_root = &cloned[0];
    assert_eq!(new_root.address, original.base + (1 << 39));
    let new_more = cloned.iter().find(|p| !p.is_root).unwrap();
    let read = |address: u64| {
        let puddle = cloned
            .iter()
            .find(|p| (p.address..p.address + p.size).contains(&address))
            .unwrap();
        let at = address - puddle.address;
        (word(puddle, at), word(puddle, at + 8))
    };
    let (value, next) = read(new_root.address + heap(new_root) + 16);
    assert_eq!(value, 1);
    let (value, next) = read(next);
    assert_eq!(value, 2);
    assert_eq!(read(next), (3, outside));
    let at = |granule: u64| new_more.address + heap(new_more) + granule * 256 + 16;
    assert_eq!(read(at(30)), (4, at(20)));
    assert_eq!(read(at(31)), (5, gap.address), "to nowhere, as it was");
    assert_eq!(read(at(20)).0, more.address, "bytes are copied as they are");
    store.close().unwrap();
    drop(store);
    let report = check(&copy, &Default::default()).unwrap();
    let told: Vec<_> = report
        .findings
        .iter()
        .filter(|finding| finding.text.contains("the pointer at offset"))
        .map(|finding| (finding.severity, finding.text.contains("out of the store")))
        .collect();
    // Nothing leads to the object whose pointer leads nowhere.
    let expected = [(Severity::Damage, true), (Severity::Note, false)];
    assert_eq!(told, expected, "{:?}", report.findings);
    assert_eq!(
        snapshot(directory.path())
            .keys()
            .filter(|name| name.to_string_lossy().contains("durum-clone"))
            .count(),
        0
    );
}

/// In a space with room for few starts one in three clones would begin where its source does.
#[test]
fn a_clone_has_no_address_of_its_source() {
    let directory = scratch();
    let path = directory.path().join("store");
    let options = CreateOptions {
        space_size: 3 << 30,
        ..create_options()
    };
    let store = Embedded::create(&path, &options).unwrap();
    let root = store.create_pool("pool", &spec()).unwrap().root.address;
    store.close().unwrap();
    drop(store);
    for number in 0..30 {
        let copy = directory.path().join(format!("copy {number}"));
        clone_store(&path, &copy, &CloneOptions::default()).unwrap();
        let info = ReadOnlyStore::open(&copy).unwrap();
        let [puddle] = &info.puddles()[..] else {
            panic!("a pool has one puddle");
        };
        assert_ne!(puddle.address, root);
    }
}

#[test]
fn only_a_closed_store_is_cloned_and_only_to_a_free_place() {
    let directory = scratch();
    let path = directory.path().join("store");
    let copy = directory.path().join("copy");
    let store = create(&path);
    store.create_pool("a", &spec()).unwrap();
    let clone = || clone_store(&path, &copy, &CloneOptions::default());
    assert!(matches!(clone(), Err(Error::StoreBusy { .. })));
    drop(store);
    assert!(matches!(clone(), Err(Error::StoreDirty { .. })));
    open(&path).close().unwrap();
    std::fs::create_dir(&copy).unwrap();
    assert!(matches!(clone(), Err(Error::StoreExists { .. })));
    std::fs::remove_dir(&copy).unwrap();

    let fault = durum_persist::inject::fail_after(
        durum_persist::inject::Operation::Grow,
        3,
        directory.path(),
    );
    assert!(matches!(clone(), Err(Error::StorageFull { .. })));
    drop(fault);
    let names: Vec<_> = std::fs::read_dir(directory.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(names, ["store"], "nothing is left behind");
    clone().unwrap();
    open(&copy).open_pool("a").unwrap();

    let elsewhere = directory.path().join("elsewhere");
    let options = CloneOptions {
        base: Some(0x7a00_0000_0000 - (4 << 40)),
        ..CloneOptions::default()
    };
    clone_store(&path, &elsewhere, &options).unwrap();
    let store = open(&elsewhere);
    assert_eq!(store.info().base, 0x7a00_0000_0000 - (4 << 40));
    assert!(root(&store.open_pool("a").unwrap()).address >= store.info().base);
}

#[test]
fn a_quarantined_store_is_not_cloned_before_a_person_has_looked() {
    let directory = scratch();
    let path = directory.path().join("store");
    let store = create(&path);
    store.create_pool("a", &spec()).unwrap();
    let log = Space::new(&store).log(&store, 1);
    put(&log.parts[0], heap(&log.parts[0]), &[0]);
    drop((store, log));
    open(&path).close().unwrap();
    let copy = directory.path().join("copy");
    let refusal = clone_store(&path, &copy, &CloneOptions::default()).unwrap_err();
    assert!(
        matches!(refusal, Error::PoolQuarantined { .. }),
        "{refusal}"
    );
    let store = open(&path);
    store.accept_quarantined("a").unwrap();
    store.close().unwrap();
    drop(store);
    clone_store(&path, &copy, &CloneOptions::default()).unwrap();
}
