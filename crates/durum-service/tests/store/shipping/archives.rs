//! Exports in one file.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use durum_service::{Compression, Error, Export, ExportOptions, ImportOptions, Service, export};

use super::{export_beside, import, puddles_of};
use crate::moving::{NODES, POOLS, follow_in, lists};
use crate::support::{create, scratch};

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
