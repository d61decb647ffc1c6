//! Whose the files of an export are while it is imported, and afterwards.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use durum_format::Uuid;
use durum_service::{Error, Export, ImportOptions, Service, repair};

use super::{export_beside, import, named};
use crate::moving::{NODES, POOLS, follow_in, lists};
use crate::support::{Space, create, heap, open, open_all, put, scratch, snapshot, spec};

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
