//! Damaged, truncated, foreign and newer stores: an error that names the file, and not a byte changed.

use std::path::{Path, PathBuf};

use durum_format::crc::crc32c;
use durum_service::{Embedded, Error, ErrorKind, ReadOnlyStore, Service, repair};

use crate::support::{copy, create, node_type, open, open_options, scratch, snapshot, spec};

/// A small store that was closed in order: without puddle files, so that it can be copied many times.
fn small(path: &Path) {
    let store = create(path);
    let node = node_type();
    store.register_type(node.id(), node.text()).unwrap();
    store.create_pool("a", &spec()).unwrap();
    let a = store.pools().unwrap()[0].uuid;
    store.close_pool(a).unwrap();
    store.remove_pool("a").unwrap();
    store.close().unwrap();
}

/// Tries to open the store for writing and expects a refusal that names the file and changes nothing.
fn assert_refused(path: &Path, file: &str, what: &str) -> Error {
    let before = snapshot(path);
    let refusal = match Embedded::open(path, open_options()) {
        Ok(_) => panic!("{what}: opened"),
        Err(refusal) => refusal,
    };
    assert!(
        matches!(refusal.kind(), ErrorKind::Data | ErrorKind::User),
        "{what}: {refusal}"
    );
    assert!(
        refusal.to_string().contains(file),
        "{what}: the file is not named: {refusal}"
    );
    assert!(snapshot(path) == before, "{what}: bytes were changed");
    refusal
}

fn change(path: &Path, edit: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = std::fs::read(path).unwrap();
    edit(&mut bytes);
    std::fs::write(path, bytes).unwrap();
}

#[test]
fn a_pipe_in_the_place_of_a_file_is_refused_and_not_waited_for() {
    let directory = scratch();
    let path = directory.path().join("store");
    small(&path);
    for name in ["durum.store", "catalog", "registry.redb"] {
        let (file, aside) = (path.join(name), path.join("aside"));
        std::fs::rename(&file, &aside).unwrap();
        let made = std::process::Command::new("mkfifo").arg(&file).status();
        assert!(made.unwrap().success());
        let refusal = Embedded::open(&path, open_options())
            .unwrap_err()
            .to_string();
        assert!(
            refusal.contains(name) && refusal.contains("not a regular file"),
            "{refusal}"
        );
        std::fs::rename(&aside, &file).unwrap();
    }
    open(&path);
}

#[test]
fn every_byte_of_identity_and_catalog_is_guarded() {
    let directory = scratch();
    let path = directory.path().join("store");
    small(&path);
    for name in ["durum.store", "catalog"] {
        let file = path.join(name);
        let whole = std::fs::read(&file).unwrap();
        for at in 0..whole.len() {
            for bit in [0x01, 0x80] {
                change(&file, |bytes| bytes[at] ^= bit);
                assert_refused(&path, name, &format!("{name} byte {at}"));
                assert!(ReadOnlyStore::open(&path).is_err(), "{name} byte {at}");
                std::fs::write(&file, &whole).unwrap();
            }
        }
        for length in [0, 1, whole.len() / 2, whole.len() - 1] {
            change(&file, |bytes| bytes.truncate(length));
            assert_refused(&path, name, &format!("{name} cut to {length}"));
            std::fs::write(&file, &whole).unwrap();
        }
        change(&file, |bytes| bytes.push(b'\n'));
        assert_refused(&path, name, &format!("{name} with a byte more"));
        std::fs::write(&file, b"#!/bin/sh\nexit 0\n").unwrap();
        let refusal = assert_refused(&path, name, &format!("{name} of something else"));
        // A directory without an identity of ours is no store; one with it whose catalog is something else is damaged.
        let kind = match name {
            "catalog" => ErrorKind::Data,
            _ => ErrorKind::User,
        };
        assert_eq!(refusal.kind(), kind, "{refusal}");
        std::fs::write(&file, &whole).unwrap();
    }
    open(&path);
}

#[test]
fn damage_of_the_registry_is_found_before_anything_is_written() {
    let directory = scratch();
    let path = directory.path().join("store");
    small(&path);
    let file = path.join("registry.redb");
    let whole = std::fs::read(&file).unwrap();
    let node = node_type();
    // The header byte by byte, and one byte of each further 512 that hold anything.
    let positions = (0..320).chain((512..whole.len()).step_by(512).filter_map(|start| {
        let sector = &whole[start..start + 512];
        sector
            .iter()
            .position(|byte| *byte != 0)
            .map(|at| start + at)
    }));
    let mut refused = 0;
    for at in positions {
        change(&file, |bytes| bytes[at] ^= 0x10);
        let damaged = snapshot(&path);
        match Embedded::open(&path, open_options()) {
            // A page that is in use no more, or a field that a clean database does not need.
            Ok(store) => {
                assert_eq!(
                    store.type_text(node.id()).unwrap().as_deref(),
                    Some(node.text())
                );
                drop(store);
            }
            Err(refusal) => {
                assert_eq!(refusal.kind(), ErrorKind::Data, "byte {at}: {refusal}");
                assert!(refusal.to_string().contains("registry.redb"), "{refusal}");
                assert!(snapshot(&path) == damaged, "byte {at}: bytes were changed");
                refused += 1;
            }
        }
        for name in ["registry.redb", "catalog"] {
            let _ = std::fs::remove_file(path.join(name));
        }
        std::fs::write(&file, &whole).unwrap();
        std::fs::write(path.join("catalog"), &damaged[Path::new("catalog")]).unwrap();
    }
    assert!(refused > 100, "{refused}");
    for length in [0, 1, 320, 4096, whole.len() / 2, whole.len() - 1] {
        change(&file, |bytes| bytes.truncate(length));
        assert_refused(&path, "registry.redb", &format!("cut to {length}"));
        std::fs::write(&file, &whole).unwrap();
    }
    std::fs::write(&file, vec![b'x'; 8192]).unwrap();
    assert_refused(&path, "registry.redb", "of something else");
    std::fs::remove_file(&file).unwrap();
    assert_refused(&path, "registry.redb", "missing");
    std::fs::write(&file, &whole).unwrap();
    for name in ["puddles", "quarantine"] {
        std::fs::remove_dir(path.join(name)).unwrap();
        assert_refused(&path, name, "missing");
        std::fs::create_dir(path.join(name)).unwrap();
    }
}

#[test]
fn a_newer_store_is_refused_by_its_version_and_is_no_damage() {
    let directory = scratch();
    let path = directory.path().join("store");
    small(&path);
    let file = path.join("durum.store");
    let text = std::fs::read_to_string(&file).unwrap();
    let (body, _) = text.split_at(text.rfind("checksum = ").unwrap());
    let body = body.replace("version = 1", "version = 7");
    let newer = format!("{body}checksum = {:#010x}\n", crc32c(body.as_bytes()));
    std::fs::write(&file, newer).unwrap();
    let refusal = assert_refused(&path, "durum.store", "newer");
    assert_eq!(refusal.kind(), ErrorKind::User);
    assert!(refusal.to_string().contains("version 7"), "{refusal}");
}

#[test]
fn files_of_two_stores_are_not_mixed() {
    let directory = scratch();
    let first = directory.path().join("first");
    let second = directory.path().join("second");
    small(&first);
    small(&second);
    for name in ["registry.redb", "catalog", "durum.store"] {
        let mixed = directory.path().join(format!("mixed-{name}"));
        copy(&first, &mixed);
        std::fs::copy(second.join(name), mixed.join(name)).unwrap();
        let refusal = assert_refused(&mixed, "", name);
        assert_eq!(refusal.kind(), ErrorKind::Data, "{refusal}");
    }
    // An older copy of the registry beside a newer catalog.
    let older = directory.path().join("older");
    copy(&first, &older);
    let store = open(&first);
    store.create_pool("later", &spec()).unwrap();
    store.close().unwrap();
    drop(store);
    std::fs::copy(first.join("catalog"), older.join("catalog")).unwrap();
    let refusal = assert_refused(&older, "registry.redb", "older");
    assert!(refusal.to_string().contains("commit"), "{refusal}");
}

#[test]
fn every_byte_of_a_puddle_header_is_guarded() {
    let directory = scratch();
    let path = directory.path().join("store");
    let store = create(&path);
    let pool = store.create_pool("a", &spec()).unwrap();
    let file = path.join("puddles").join(pool.root_puddle.to_string());
    store.close_pool(pool.uuid).unwrap();
    let name = pool.root_puddle.to_string();
    drop(pool);
    let handle = std::fs::OpenOptions::new()
        .read(true)
        .write(true)
        .open(&file)
        .unwrap();
    use std::os::unix::fs::FileExt;
    for at in (0..128).chain([200, 777, 1023]) {
        let mut byte = [0];
        handle.read_exact_at(&mut byte, at).unwrap();
        handle.write_all_at(&[byte[0] ^ 0x20], at).unwrap();
        let refusal = store.open_pool("a").unwrap_err();
        assert!(refusal.to_string().contains(&name), "byte {at}: {refusal}");
        assert!(
            matches!(refusal, Error::Format { .. }),
            "byte {at}: {refusal}"
        );
        handle.write_all_at(&byte, at).unwrap();
    }
    let size = handle.metadata().unwrap().len();
    for length in [0, 100, 1024, size - 1, size + 1] {
        let kept = std::fs::read(&file).unwrap();
        handle.set_len(length).unwrap();
        let refusal = store.open_pool("a").unwrap_err();
        assert_eq!(refusal.kind(), ErrorKind::Data, "{length}: {refusal}");
        assert!(refusal.to_string().contains(&name), "{length}: {refusal}");
        std::fs::write(&file, kept).unwrap();
    }
    std::fs::rename(&file, directory.path().join("away")).unwrap();
    let refusal = store.open_pool("a").unwrap_err();
    assert!(matches!(refusal, Error::FileMissing { .. }), "{refusal}");
    std::fs::rename(directory.path().join("away"), &file).unwrap();
    store.open_pool("a").unwrap();
}

#[test]
fn repair_rewrites_a_catalog_and_rebuilds_a_registry_that_surely_lost_nothing() {
    let directory = scratch();
    let path = directory.path().join("store");
    let store = create(&path);
    store.create_pool("a", &spec()).unwrap();
    let node = node_type();
    store.register_type(node.id(), node.text()).unwrap();
    store.close().unwrap();
    drop(store);
    assert!(repair(&path).unwrap().actions.is_empty());

    let orphan = path.join("puddles/01234567-89ab-4def-8123-456789abcdef");
    std::fs::write(&orphan, "x").unwrap();
    std::fs::write(path.join("puddles/letter"), "dear").unwrap();
    std::fs::write(path.join("catalog"), "x").unwrap();
    let actions = repair(&path).unwrap().actions;
    assert_eq!(actions.len(), 2, "{actions:?}");
    assert!(!orphan.exists() && path.join("puddles/letter").exists());
    std::fs::remove_file(path.join("puddles/letter")).unwrap();
    drop(open(&path));

    change(&path.join("registry.redb"), |bytes| bytes[0] = 0);
    assert_refused(&path, "registry.redb", "damaged");
    let actions = repair(&path).unwrap().actions;
    assert!(actions[0].contains("rebuilt the registry"), "{actions:?}");
    let store = open(&path);
    store.open_pool("a").unwrap();
    assert_eq!(store.types().unwrap().len(), 1);
    store.create_pool("b", &spec()).unwrap();
    store.close().unwrap();
    drop(store);

    // A puddle that the catalog does not name: the registry may have known it.
    std::fs::write(&orphan, "x").unwrap();
    std::fs::remove_file(path.join("registry.redb")).unwrap();
    let before = snapshot(&path);
    let refusal = repair(&path).unwrap_err();
    assert!(matches!(refusal, Error::FileMissing { .. }), "{refusal}");
    assert_eq!(snapshot(&path), before);
}

#[test]
fn an_unfinished_store_is_no_store_and_a_lost_identity_is_not_taken_for_one() {
    let directory = scratch();
    let path = directory.path().join("store");
    small(&path);
    let identity: PathBuf = path.join("durum.store");
    std::fs::remove_file(&identity).unwrap();
    let before = snapshot(&path);
    let refusal = Embedded::open(&path, open_options()).unwrap_err();
    assert!(matches!(refusal, Error::StoreMissing { .. }), "{refusal}");
    let refusal = Embedded::create(&path, &crate::support::create_options()).unwrap_err();
    assert!(matches!(refusal, Error::StoreExists { .. }), "{refusal}");
    assert_eq!(snapshot(&path), before);
    // With the mark of an unfinished store it is begun anew.
    std::fs::write(path.join("unfinished"), "").unwrap();
    let refusal = Embedded::open(&path, open_options()).unwrap_err();
    assert!(
        refusal.to_string().contains("while the store was made"),
        "{refusal}"
    );
    let store = create(&path);
    assert!(store.types().unwrap().is_empty());
    // But not over what is not ours.
    drop(store);
    std::fs::remove_file(&identity).unwrap();
    std::fs::write(path.join("unfinished"), "").unwrap();
    std::fs::write(path.join("letter"), "dear").unwrap();
    let before = snapshot(&path);
    Embedded::create(&path, &crate::support::create_options()).unwrap_err();
    assert_eq!(snapshot(&path), before);
}
