//! Pools that are exported and imported: what arrives is what left, at whatever addresses, or is told by name.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use durum_format::Uuid;
use durum_format::types::{Declarations, Field, Primitive, Type};
use durum_persist::Site;
use durum_persist::record::note;
use durum_persist::simulate::{Failure, Plan, Report, Rules, explore_with_recovery};
use durum_service::{
    Compression, Embedded, Error, Export, ExportOptions, ImportOptions, ImportReport, PuddleGrant,
    Service, check, export, repair,
};

use crate::moving::{NODES, POOLS, displace, follow_in, lists, moves, version};
use crate::support::{
    Space, create, heap, open, open_all, open_options, place_object, put, recorder, root, scratch,
    snapshot, spec, word,
};

/// Exports a pool beside its store.
fn export_beside(store: &Path, pool: &str, with_referenced: bool) -> PathBuf {
    let place = store.with_file_name("export");
    let options = ExportOptions {
        with_referenced,
        ..ExportOptions::default()
    };
    export(store, pool, &place, &options).unwrap();
    place
}

fn import(store: &Embedded, place: &Path, options: &ImportOptions) -> Result<ImportReport, Error> {
    store.import(&Export::open(place)?, options)
}

fn named(name: &str) -> ImportOptions {
    ImportOptions {
        name: Some(name.to_owned()),
        ..ImportOptions::default()
    }
}

fn copied() -> ImportOptions {
    ImportOptions {
        copies: true,
        ..ImportOptions::default()
    }
}

/// The puddles of the pools that [`lists`] makes.
fn puddles_of(store: &Embedded) -> Vec<PuddleGrant> {
    let opened = POOLS.map(|(name, _)| open_all(store, store.open_pool(name).unwrap()));
    opened.into_iter().flatten().collect()
}

/// The copy of a registry that is lost is from before an import ended, which has taken the export over.
#[test]
fn a_repair_from_what_is_older_than_an_import_removes_none_of_its_files() {
    let directory = scratch();
    let path = directory.path().join("store");
    lists(&path);
    let place = export_beside(&path, POOLS[0].0, true);
    let other = directory.path().join("other");
    let store = create(&other);
    let export = Export::open(&place).unwrap();
    let mut importing = store
        .begin_import(&place, export.manifest(), &ImportOptions::default())
        .unwrap();
    let copy = fs::read(other.join("registry.copy")).unwrap();
    export
        .each_puddle(|puddle, file| export.copy(puddle, file, &importing.give(puddle)?))
        .unwrap();
    importing.finish().unwrap();
    drop(store);
    let files = || fs::read_dir(other.join("puddles")).unwrap().count();
    let before = files();
    assert!(before > 0);
    fs::write(other.join("registry.copy"), copy).unwrap();
    fs::remove_file(other.join("registry")).unwrap();
    repair(&other).unwrap_err();
    assert_eq!(files(), before);
}

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
fn what_is_not_as_it_was_exported_is_in_quarantine_and_can_be_brought_back_or_accepted() {
    let directory = scratch();
    let path = directory.path().join("store");
    lists(&path);
    let place = export_beside(&path, "shadow", false);
    let puddle = |is_root: bool| {
        let manifest = Export::open(&place).unwrap().manifest().clone();
        let mut puddles = manifest.puddles.iter();
        *puddles
            .find(|(_, puddle)| puddle.is_root == is_root)
            .unwrap()
            .0
    };
    let other_puddle = puddle(false);
    let damage = |file: &Path| {
        let mut bytes = fs::read(file).unwrap();
        let last = bytes.len() - 1;
        bytes[last] ^= 1;
        fs::write(file, bytes).unwrap();
    };
    damage(&place.join(other_puddle.to_string()));
    let store = open(&path);
    // Whoever copies looks at what it copies, and so does who is asked to.
    let refused = import(
        &store,
        &place,
        &ImportOptions {
            copies: true,
            ..named("copy")
        },
    );
    assert!(matches!(refused, Err(Error::Damaged { .. })), "{refused:?}");
    let refused = import(
        &store,
        &place,
        &ImportOptions {
            verifies: true,
            ..named("copy")
        },
    );
    assert!(matches!(refused, Err(Error::Damaged { .. })), "{refused:?}");
    import(&store, &place, &named("copy")).unwrap();
    let pool = store.open_pool("copy").unwrap();
    let others: Vec<Uuid> = pool.others.iter().map(|place| place.uuid).collect();
    let refused = store.open_puddles(pool.uuid, &others).unwrap_err();
    assert!(
        matches!(&refused, Error::PoolQuarantined { pool, .. } if pool == "copy"),
        "{refused}"
    );
    assert!(refused.to_string().contains("sum up to"), "{refused}");
    store.close_pool(pool.uuid).unwrap();
    assert!(matches!(
        store.open_pool("copy"),
        Err(Error::PoolQuarantined { .. })
    ));
    let is_listed = |store: &Embedded| {
        let pools = store.pools().unwrap();
        pools
            .iter()
            .any(|pool| pool.name == "copy" && pool.quarantine.is_some())
    };
    assert!(is_listed(&store));
    store.close().unwrap();
    drop(store);
    // It is, for whoever comes next; others are not.
    let store = open(&path);
    assert!(is_listed(&store));
    assert!(matches!(
        store.open_pool("copy"),
        Err(Error::PoolQuarantined { .. })
    ));
    let shadow = open_all(&store, store.open_pool("shadow").unwrap());
    follow_in(&shadow, NODES).unwrap();
    // With the right contents it is tried again.
    let file = path.join("puddles").join(others[0].to_string());
    store.retry_quarantined("copy").unwrap();
    let pool = store.open_pool("copy").unwrap();
    assert!(
        store.open_puddles(pool.uuid, &others).is_err(),
        "nothing was cured"
    );
    store.close_pool(pool.uuid).unwrap();
    damage(&file);
    store.retry_quarantined("copy").unwrap();
    let copy = open_all(&store, store.open_pool("copy").unwrap());
    follow_in(&copy, NODES).unwrap();
    store.close().unwrap();
    drop(store);
}

#[test]
fn a_damaged_pool_can_be_accepted() {
    let directory = scratch();
    let path = directory.path().join("store");
    lists(&path);
    let place = export_beside(&path, "twin", true);
    let other = directory.path().join("other");
    let store = create(&other);
    import(&store, &place, &ImportOptions::default()).unwrap();
    let root_of = |name: &str| {
        let pools = store.pools().unwrap();
        pools
            .iter()
            .find(|pool| pool.name == name)
            .unwrap()
            .root_puddle
    };
    let file = other.join("puddles").join(root_of("twin").to_string());
    // A byte that no object has.
    let mut bytes = fs::read(&file).unwrap();
    let last = bytes.len() - 1;
    bytes[last] = 9;
    fs::write(&file, bytes).unwrap();
    assert!(matches!(
        store.open_pool("twin"),
        Err(Error::PoolQuarantined { .. })
    ));
    assert!(store.read_pool("twin").is_err());
    store.accept_quarantined("twin").unwrap();
    for name in ["twin", "shadow"] {
        let opened = open_all(&store, store.open_pool(name).unwrap());
        follow_in(&opened, NODES - 1).unwrap();
    }
}

/// Each thing that can be wrong with an export is told, and nothing is imported.
#[test]
fn what_is_no_whole_export_is_refused_and_nothing_has_changed() {
    let directory = scratch();
    let path = directory.path().join("store");
    lists(&path);
    let good = export_beside(&path, "shadow", false);
    let other = directory.path().join("other");
    let puddle = Export::open(&good)
        .unwrap()
        .manifest()
        .puddles
        .keys()
        .next()
        .unwrap()
        .to_string();
    let place = directory.path().join("bad");
    type Spoil = Box<dyn Fn(&Path)>;
    let in_manifest = |from: &'static str, to: &'static str| -> Spoil {
        Box::new(move |place: &Path| {
            let text = fs::read_to_string(place.join("durum.export")).unwrap();
            fs::write(place.join("durum.export"), text.replacen(from, to, 1)).unwrap();
        })
    };
    let file = puddle.clone();
    let in_puddle = move |at: usize, byte: u8| -> Spoil {
        let file = file.clone();
        Box::new(move |place: &Path| {
            let path = place.join(&file);
            let mut bytes = fs::read(&path).unwrap();
            bytes[at] = byte;
            fs::write(path, bytes).unwrap();
        })
    };
    let on_puddle = |change: fn(&Path)| -> Spoil {
        let file = puddle.clone();
        Box::new(move |place: &Path| change(&place.join(&file)))
    };
    let spoils: Vec<(&str, Spoil)> = vec![
        ("export 2", in_manifest("durum export 1", "durum export 2")),
        ("foreign", in_manifest("durum export 1", "another thing")),
        ("checksum", in_manifest("shadow", "shadox")),
        (
            "cut",
            Box::new(|place: &Path| {
                let text = fs::read(place.join("durum.export")).unwrap();
                fs::write(place.join("durum.export"), &text[..text.len() - 9]).unwrap();
            }),
        ),
        (
            "longer",
            Box::new(|place: &Path| {
                let mut text = fs::read(place.join("durum.export")).unwrap();
                text.push(b' ');
                fs::write(place.join("durum.export"), text).unwrap();
            }),
        ),
        ("magic", in_puddle(0, 0)),
        ("uuid", in_puddle(16, 0xff)),
        ("missing", on_puddle(|file| fs::remove_file(file).unwrap())),
        (
            "short",
            on_puddle(|file| {
                fs::OpenOptions::new()
                    .write(true)
                    .open(file)
                    .unwrap()
                    .set_len(4096)
                    .unwrap();
            }),
        ),
        (
            "link",
            on_puddle(|file| {
                let aside = file.with_extension("aside");
                fs::rename(file, &aside).unwrap();
                std::os::unix::fs::symlink(aside, file).unwrap();
            }),
        ),
        (
            "directory",
            on_puddle(|file| {
                fs::remove_file(file).unwrap();
                fs::create_dir(file).unwrap();
            }),
        ),
        (
            "nothing",
            Box::new(|place: &Path| fs::remove_dir_all(place).unwrap()),
        ),
    ];
    let store = create(&other);
    for (what, spoil) in spoils {
        for copies in [false, true] {
            crate::support::copy(&good, &place);
            spoil(&place);
            let options = ImportOptions {
                copies,
                ..ImportOptions::default()
            };
            let refused = import(&store, &place, &options);
            assert!(refused.is_err(), "{what}");
            assert_eq!(store.pools().unwrap(), [], "{what}");
            assert_eq!(
                fs::read_dir(other.join("puddles")).unwrap().count(),
                0,
                "{what}"
            );
            let _ = fs::remove_dir_all(&place);
        }
    }
    store.close().unwrap();
    drop(store);
    let store = open(&other);
    assert_eq!(
        store.recovery_report().orphans_removed,
        Vec::<PathBuf>::new()
    );
    import(&store, &good, &ImportOptions::default()).unwrap();
    follow_in(&open_all(&store, store.open_pool("shadow").unwrap()), NODES).unwrap();
}

/// What goes at the next open goes no earlier: others who settle something meanwhile remove no file that is coming.
#[test]
fn an_import_under_way_is_nobody_elses_rubbish() {
    let directory = scratch();
    let path = directory.path().join("store");
    lists(&path);
    let place = export_beside(&path, "shadow", false);
    let other = directory.path().join("other");
    let store = create(&other);
    // A log that is in quarantine, so that there is something to settle.
    store.create_pool("torn", &spec()).unwrap();
    let log = Space::new(&store).log(&store, 1);
    put(&log.parts[0], heap(&log.parts[0]), &[0]);
    drop((store, log));
    let store = open(&other);
    let export = Export::open(&place).unwrap();
    let options = ImportOptions::default();
    let mut importing = store
        .begin_import(&place, export.manifest(), &options)
        .unwrap();
    export
        .each_puddle(|puddle, from| export.copy(puddle, from, &importing.give(puddle)?))
        .unwrap();
    let files = || fs::read_dir(other.join("puddles")).unwrap().count();
    let before = files();
    // Nobody is given its addresses meanwhile, and all know that these are in use.
    let occupied = store.occupied().unwrap();
    for puddle in export.manifest().puddles.values() {
        let end = puddle.address + puddle.size;
        let holds = |range: &durum_service::AddressRange| {
            range.address <= puddle.address && end <= range.address + range.size
        };
        assert!(occupied.iter().any(holds));
    }
    store.retry_quarantined("torn").unwrap();
    assert!(files() >= before, "nothing of it is gone");
    store.create_pool("more", &spec()).unwrap();
    importing.finish().unwrap();
    drop(store);
    // As after a crash.
    let store = open(&other);
    follow_in(&open_all(&store, store.open_pool("shadow").unwrap()), NODES).unwrap();
}

/// A crash between the commit and the end leaves files with both names. They are the store's, which changes them.
#[test]
fn a_file_that_the_store_has_already_is_not_taken_over_twice() {
    let directory = scratch();
    let path = directory.path().join("store");
    lists(&path);
    let place = export_beside(&path, "shadow", false);
    let manifest = fs::read(place.join("durum.export")).unwrap();
    let exported = Export::open(&place).unwrap().manifest().puddles.clone();
    let store = open(&path);
    let before: Vec<_> = snapshot(&path.join("puddles")).into_keys().collect();
    assert_eq!(
        import(&store, &place, &named("first")).unwrap().copied,
        None
    );
    fs::create_dir(&place).unwrap();
    fs::write(place.join("durum.export"), manifest).unwrap();
    let mut after: Vec<_> = snapshot(&path.join("puddles")).into_keys().collect();
    after.retain(|file| !before.contains(file));
    assert_eq!(after.len(), exported.len());
    for file in after {
        let file = path.join("puddles").join(file);
        let uuid = Uuid(fs::read(&file).unwrap()[16..32].try_into().unwrap());
        fs::hard_link(file, place.join(uuid.to_string())).unwrap();
    }
    let report = import(&store, &place, &named("second")).unwrap();
    assert!(report.copied.unwrap().contains("other names"));
    let first = open_all(&store, store.open_pool("first").unwrap());
    // It says by now that it is another puddle.
    let refused = import(&store, &place, &named("third")).unwrap_err();
    assert!(matches!(refused, Error::Damaged { .. }), "{refused}");
    for puddles in [first, open_all(&store, store.open_pool("second").unwrap())] {
        follow_in(&puddles, NODES).unwrap();
    }
}

/// What others could write to, or have open, the store does not take: it gets copies, and the export stays whole.
#[test]
fn files_that_are_not_this_users_alone_are_copied() {
    use std::os::unix::fs::{MetadataExt, chown};
    let directory = scratch();
    let path = directory.path().join("store");
    lists(&path);
    let place = export_beside(&path, "shadow", false);
    let file_of = |puddle: &Uuid| place.join(puddle.to_string());
    let manifest = Export::open(&place).unwrap().manifest().clone();
    let last = file_of(manifest.puddles.keys().last().unwrap());
    let files: Vec<_> = manifest.puddles.keys().map(file_of).collect();
    let store = open(&path);
    let before = fs::read_dir(path.join("puddles")).unwrap().count();
    let set_mode = |file: &Path, mode| fs::set_permissions(file, PermissionsExt::from_mode(mode));

    // Only the last one is not: the others would be the store's already.
    set_mode(&last, 0o602).unwrap();
    let refused = import(&store, &place, &named("one")).unwrap_err();
    assert!(refused.to_string().contains("may write to it"), "{refused}");
    assert_eq!(fs::read_dir(path.join("puddles")).unwrap().count(), before);

    for file in &files {
        set_mode(file, 0o602).unwrap();
    }
    let report = import(&store, &place, &named("one")).unwrap();
    assert!(report.copied.unwrap().contains("may write to it"));
    if rustix::process::geteuid().is_root() {
        for file in &files {
            set_mode(file, 0o600).unwrap();
            chown(file, Some(1), None).unwrap();
        }
        let report = import(&store, &place, &named("two")).unwrap();
        assert!(report.copied.unwrap().contains("another user's"));
    }
    for file in &files {
        assert_eq!(fs::metadata(file).unwrap().nlink(), 1);
    }
    follow_in(&open_all(&store, store.open_pool("one").unwrap()), NODES).unwrap();
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

#[test]
fn an_archive_holds_the_same_in_one_file() {
    let directory = scratch();
    let path = directory.path().join("store");
    lists(&path);
    let mut lengths = Vec::new();
    for (name, compression) in [("plain", Compression::None), ("small", Compression::Gzip)] {
        let place = directory.path().join(format!("{name}.tar"));
        let options = ExportOptions {
            with_referenced: true,
            archive: Some(compression),
            ..ExportOptions::default()
        };
        let report = export(&path, "hybrid", &place, &options).unwrap();
        assert_eq!((report.pools.len(), report.puddles), (3, 6));
        let found = fs::metadata(&place).unwrap();
        assert_eq!(found.permissions().mode() & 0o777, 0o600);
        lengths.push(found.len());
        let before = fs::read(&place).unwrap();
        let store = create(&directory.path().join(name));
        let report = import(&store, &place, &ImportOptions::default()).unwrap();
        assert_eq!((report.puddles, report.moved), (6, 0));
        assert_eq!(report.copied.as_deref(), Some("it is an archive"));
        assert_eq!(fs::read(&place).unwrap(), before, "it stays as it is");
        follow_in(&puddles_of(&store), POOLS.len() as u64 * NODES).unwrap();
        store.close().unwrap();
        // Whatever is missing or changed in it.
        let bad = directory.path().join("bad");
        let other = create(&directory.path().join(format!("{name} other")));
        for cut in [0, 1, 100, 700, before.len() / 2, before.len() - 2000] {
            fs::write(&bad, &before[..cut]).unwrap();
            // Zeros behind the last file are no part of it.
            assert!(
                import(&other, &bad, &ImportOptions::default()).is_err(),
                "{name} {cut}"
            );
        }
        for at in [3, 600, before.len() / 2] {
            let mut changed = before.clone();
            changed[at] ^= 0x55;
            fs::write(&bad, changed).unwrap();
            // Zeros may be compressed in more than one way: then all is as it was.
            if import(&other, &bad, &ImportOptions::default()).is_ok() {
                assert_eq!(name, "small", "{at}");
                follow_in(&puddles_of(&other), POOLS.len() as u64 * NODES).unwrap();
                for (pool, _) in POOLS {
                    let found = other.pools().unwrap();
                    let found = found.iter().find(|found| found.name == pool).unwrap();
                    other.close_pool(found.uuid).unwrap();
                    other.remove_pool(pool).unwrap();
                }
            }
        }
        assert_eq!(other.pools().unwrap(), []);
        assert_eq!(
            fs::read_dir(directory.path().join(format!("{name} other/puddles")))
                .unwrap()
                .count(),
            0
        );
    }
    assert!(lengths[1] * 20 < lengths[0], "{lengths:?}");
}

/// Names in an archive lead nowhere.
#[test]
fn an_archive_with_names_of_others_is_refused() {
    let directory = scratch();
    let path = directory.path().join("store");
    lists(&path);
    let good = export_beside(&path, "shadow", false);
    let manifest = fs::read(good.join("durum.export")).unwrap();
    let place = directory.path().join("bad.tar");
    let store = create(&directory.path().join("other"));
    let refused = |entries: &[(&str, &[u8], tar::EntryType)]| {
        let mut builder = tar::Builder::new(fs::File::create(&place).unwrap());
        for (name, bytes, kind) in entries {
            let mut header = tar::Header::new_gnu();
            header.set_size(bytes.len() as u64);
            header.set_entry_type(*kind);
            let field = &mut header.as_old_mut().name;
            field[..name.len()].copy_from_slice(name.as_bytes());
            header.set_cksum();
            builder.append(&header, *bytes).unwrap();
        }
        builder.into_inner().unwrap();
        let refused = import(&store, &place, &ImportOptions::default()).unwrap_err();
        assert!(matches!(refused, Error::ImportRefused { .. }), "{refused}");
        assert_eq!(store.pools().unwrap(), []);
    };
    let file = tar::EntryType::Regular;
    let first = ("durum.export", manifest.as_slice(), file);
    refused(&[]);
    refused(&[("../../escaped", b"x", file)]);
    refused(&[first]);
    refused(&[first, ("/tmp/escaped", b"x", file)]);
    refused(&[first, ("../escaped", b"x", file)]);
    let uuid = Export::open(&good)
        .unwrap()
        .manifest()
        .puddles
        .keys()
        .next()
        .unwrap()
        .to_string();
    refused(&[first, (&uuid, b"x", file)]);
    refused(&[first, (&uuid, b"", tar::EntryType::Symlink)]);
    refused(&[first, (&uuid, b"", tar::EntryType::Directory)]);
    assert_eq!(
        fs::read_dir(directory.path()).unwrap().count(),
        4,
        "nothing was made"
    );
}

/// Tries so many crashes, or all that there are, if `DURUM_CRASH_ALL` is set.
fn explore_shipping(
    skip: Option<Site>,
    copies: bool,
    seed: u64,
    points: usize,
) -> Result<Report, Failure> {
    let directory = scratch();
    let path = directory.path().join("store");
    lists(&path);
    let other = directory.path().join("other");
    let store = create(&other);
    store.close().unwrap();
    drop(store);
    let recorder = recorder(directory.path(), skip);
    let place = export_beside(&path, "twin", true);
    note("exported", 1);
    let second = directory.path().join("second");
    export(&path, "shadow", &second, &ExportOptions::default()).unwrap();
    let archive = directory.path().join("archive");
    let archived = ExportOptions {
        archive: Some(Compression::Gzip),
        ..ExportOptions::default()
    };
    export(&path, "shadow", &archive, &archived).unwrap();
    note("archived", 1);
    let store = open(&other);
    let options = ImportOptions {
        copies,
        ..ImportOptions::default()
    };
    import(&store, &place, &options).unwrap();
    note("imported", 1);
    let twin = open_all(&store, store.open_pool("twin").unwrap());
    note("opened", 1);
    put(&twin[0], heap(&twin[0]) + 16, &0_u64.to_le_bytes());
    store.close().unwrap();
    drop((store, twin));
    let store = open(&path);
    import(&store, &second, &named("copy")).unwrap();
    note("copied", 1);
    let copy = open_all(&store, store.open_pool("copy").unwrap());
    put(&copy[0], heap(&copy[0]) + 16, &0_u64.to_le_bytes());
    store.close().unwrap();
    let trace = recorder.stop();
    assert_eq!(trace.bypassed(), [] as [&str; 0]);
    let plan = Plan {
        random_images: 2,
        single_units_max: 3,
        exhaustive_max: 6,
        nested_one_in: 20,
        nested_depth: 1,
        nested_points_max: Some(6),
        points_max: match std::env::var_os("DURUM_CRASH_ALL") {
            Some(_) => None,
            None => Some(points),
        },
        ..Plan::new(Rules::Sectors, seed)
    };
    let opened = |image: &Path, name: &str| {
        let store = Embedded::open(&image.join(name), open_options());
        store.map_err(|error| error.to_string())
    };
    let arrived = |store: &Embedded, names: &[&str]| {
        let mut puddles = Vec::new();
        for name in names {
            let pool = store.open_pool(name).map_err(|error| error.to_string())?;
            let others: Vec<Uuid> = pool.others.iter().map(|place| place.uuid).collect();
            let others = store.open_puddles(pool.uuid, &others);
            puddles.push(pool.root);
            puddles.extend(others.map_err(|error| error.to_string())?);
        }
        follow_in(&puddles, names.len() as u64 * NODES)
    };
    explore_with_recovery(
        &trace,
        &plan,
        |image| {
            for name in ["store", "other"] {
                opened(image, name)?
                    .close()
                    .map_err(|error| error.to_string())?;
            }
            Ok(())
        },
        |image, point| {
            let store = opened(image, "other")?;
            let has = |store: &Embedded, name: &str| {
                store.pools().unwrap().iter().any(|pool| pool.name == name)
            };
            let text = |error: Error| error.to_string();
            match (has(&store, "twin"), point.last_note("imported")) {
                (true, _) => arrived(&store, &["twin", "shadow"])?,
                (false, Some(_)) => return Err("an import that was told is gone".to_owned()),
                // The export is whole as long as nothing of it was imported.
                (false, None) if point.last_note("exported").is_some() => {
                    import(&store, &image.join("export"), &ImportOptions::default())
                        .map_err(text)?;
                    arrived(&store, &["twin", "shadow"])?;
                }
                (false, None) => {}
            }
            // An archive is there when that was told, and whole when it is there.
            let archive = image.join("archive");
            if archive.exists() {
                import(&store, &archive, &named("archived")).map_err(text)?;
                arrived(&store, &["archived"])?;
            } else if point.last_note("archived").is_some() {
                return Err("an archive that was told of is gone".to_owned());
            }
            store.close().map_err(text)?;
            let store = opened(image, "store")?;
            if has(&store, "copy") {
                arrived(&store, &["copy"])?;
            } else if point.last_note("copied").is_some() {
                return Err("a copy that was told is gone".to_owned());
            }
            arrived(&store, &["shadow"])?;
            store.close().map_err(text)
        },
    )
}

#[test]
fn shipping_survives_power_cuts() {
    for (copies, seed) in [(false, 61), (true, 62)] {
        match explore_shipping(None, copies, seed, 25) {
            Ok(report) => assert!(report.images > 30, "{report:?}"),
            Err(failure) => panic!("{failure}"),
        }
    }
}

/// Each of these, left out, is noticed.
#[test]
fn a_sync_of_shipping_that_is_left_out_is_noticed() {
    let sites = [
        ("exported puddle", false),
        ("imported puddle", true),
        ("names of imported puddles", false),
        ("export's place", false),
        ("name of an export's manifest", false),
        ("export's archive", false),
        ("registry commit", false),
        ("rewritten puddle", false),
    ];
    for (site, copies) in sites {
        let noticed = [71, 72, 73]
            .into_iter()
            .any(|seed| explore_shipping(Some(Site(site)), copies, seed, 60).is_err());
        assert!(noticed, "{site}");
    }
}
