//! Exports that are not whole, and pools that are not as they were exported.

use std::fs;
use std::path::{Path, PathBuf};

use durum_format::Uuid;
use durum_service::{Embedded, Error, Export, ImportOptions, Service};

use super::{export_beside, import, named};
use crate::moving::{NODES, follow_in, lists};
use crate::support::{create, open, open_all, scratch};

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
