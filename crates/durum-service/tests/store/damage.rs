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
    for name in ["durum.store", "registry"] {
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
fn every_byte_of_the_identity_is_guarded() {
    let directory = scratch();
    let path = directory.path().join("store");
    small(&path);
    let name = "durum.store";
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
    assert_eq!(refusal.kind(), ErrorKind::Data, "{refusal}");
    // A directory with neither an identity of ours nor a registry is no store.
    let names = ["registry", "registry.copy"];
    for name in names {
        std::fs::rename(path.join(name), directory.path().join(name)).unwrap();
    }
    let refusal = assert_refused(&path, name, &format!("{name} of something else"));
    assert_eq!(refusal.kind(), ErrorKind::User, "{refusal}");
    for name in names {
        std::fs::rename(directory.path().join(name), path.join(name)).unwrap();
    }
    std::fs::write(&file, &whole).unwrap();
    open(&path);
}

/// The bytes of a registry that say something.
fn used(bytes: &[u8]) -> usize {
    bytes.iter().rposition(|byte| *byte != 0).unwrap() + 1
}

#[test]
fn every_byte_of_the_registry_is_guarded_and_can_be_repaired() {
    let directory = scratch();
    let path = directory.path().join("store");
    small(&path);
    let file = path.join("registry");
    let whole = std::fs::read(&file).unwrap();
    let kept = std::fs::read(path.join("registry.copy")).unwrap();
    let node = node_type();
    for at in 0..used(&whole) {
        let bit = 1 << (at % 8);
        change(&file, |bytes| bytes[at] ^= bit);
        let refusal = assert_refused(&path, "registry", &format!("byte {at}"));
        let is_version = refusal.to_string().contains("use the durum that wrote it");
        assert_eq!(
            refusal.kind(),
            match is_version {
                true => ErrorKind::User,
                false => ErrorKind::Data,
            },
            "byte {at}: {refusal}"
        );
        assert!(ReadOnlyStore::open(&path).is_err(), "byte {at}");
        if !is_version {
            let actions = repair(&path).unwrap().actions;
            assert!(actions[0].contains("rebuilt the registry"), "{actions:?}");
            let store = ReadOnlyStore::open(&path).unwrap();
            assert_eq!(
                store.types().next(),
                Some((node.id(), node.text())),
                "byte {at}"
            );
            std::fs::remove_file(path.join("registry.damaged")).unwrap();
        }
        std::fs::write(&file, &whole).unwrap();
        std::fs::write(path.join("registry.copy"), &kept).unwrap();
    }
    for length in [0, 1, 320, 4096, whole.len() / 2, whole.len() - 1] {
        change(&file, |bytes| bytes.truncate(length));
        assert_refused(&path, "registry", &format!("cut to {length}"));
        std::fs::write(&file, &whole).unwrap();
    }
    change(&file, |bytes| bytes.push(0));
    assert_refused(&path, "registry", "with a byte more");
    std::fs::write(&file, vec![b'x'; 8192]).unwrap();
    assert_refused(&path, "registry", "of something else");
    std::fs::remove_file(&file).unwrap();
    assert_refused(&path, "registry", "missing");
    std::fs::write(&file, &whole).unwrap();
    for name in ["puddles", "quarantine"] {
        std::fs::remove_dir(path.join(name)).unwrap();
        assert_refused(&path, name, "missing");
        std::fs::create_dir(path.join(name)).unwrap();
    }
}

#[test]
fn a_copy_that_is_damaged_costs_nothing_and_is_made_anew() {
    let directory = scratch();
    let path = directory.path().join("store");
    small(&path);
    let file = path.join("registry.copy");
    let whole = std::fs::read(&file).unwrap();
    for at in 0..used(&whole) {
        change(&file, |bytes| bytes[at] ^= 1 << (at % 8));
        let report = durum_service::check(&path, &Default::default()).unwrap();
        assert_eq!(report.findings.len(), 1, "byte {at}: {:?}", report.findings);
        if at % 3 == 0 {
            assert_eq!(repair(&path).unwrap().actions.len(), 1, "byte {at}");
        } else {
            drop(open(&path));
        }
        let report = durum_service::check(&path, &Default::default()).unwrap();
        assert!(
            report.findings.is_empty(),
            "byte {at}: {:?}",
            report.findings
        );
        std::fs::write(&file, &whole).unwrap();
    }
    std::fs::remove_file(&file).unwrap();
    open(&path).close().unwrap();
    assert!(file.exists());
}

/// One sector that is lost, of whichever file, and any one of the files that is gone: nothing is lost, however the
/// store ended.
#[test]
fn one_bad_sector_or_one_lost_file_costs_nothing() {
    let directory = scratch();
    for is_closed in [true, false] {
        let path = directory.path().join(format!("store-{is_closed}"));
        let store = create(&path);
        let node = node_type();
        store.register_type(node.id(), node.text()).unwrap();
        for name in ["a", "b", "c"] {
            store.create_pool(name, &spec()).unwrap();
        }
        if is_closed {
            store.close().unwrap();
        }
        drop(store);
        let files = ["registry", "registry.copy", "durum.store"];
        let kept: Vec<Vec<u8>> = files
            .map(|name| std::fs::read(path.join(name)).unwrap())
            .into();
        for (name, whole) in files.iter().zip(&kept) {
            let sectors = (0..used(whole)).step_by(512).map(Some);
            for lost in sectors.chain([None]) {
                match lost {
                    Some(start) => change(&path.join(name), |bytes| {
                        let end = (start + 512).min(bytes.len());
                        bytes[start..end].fill(0);
                    }),
                    None => std::fs::remove_file(path.join(name)).unwrap(),
                }
                let what = format!("{name}, {lost:?}");
                repair(&path).unwrap_or_else(|error| panic!("{what}: {error}"));
                let report = durum_service::check(&path, &Default::default()).unwrap();
                assert!(report.is_sound(), "{what}: {:?}", report.findings);
                let reader = ReadOnlyStore::open(&path).unwrap();
                assert_eq!(reader.pools().len(), 3, "{what}");
                assert_eq!(reader.types().count(), 1, "{what}");
                assert_eq!(reader.is_clean(), is_closed, "{what}");
                for (name, whole) in files.iter().zip(&kept) {
                    std::fs::write(path.join(name), whole).unwrap();
                }
            }
        }
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
    for name in ["registry", "registry.copy", "durum.store"] {
        let mixed = directory.path().join(format!("mixed-{name}"));
        copy(&first, &mixed);
        std::fs::copy(second.join(name), mixed.join(name)).unwrap();
        let refusal = assert_refused(&mixed, "", name);
        assert_eq!(refusal.kind(), ErrorKind::Data, "{refusal}");
    }
    // An older registry beside a newer copy.
    let older = directory.path().join("older");
    copy(&first, &older);
    let store = open(&first);
    store.create_pool("later", &spec()).unwrap();
    store.close().unwrap();
    drop(store);
    std::fs::copy(first.join("registry.copy"), older.join("registry.copy")).unwrap();
    let refusal = assert_refused(&older, "registry", "older");
    assert!(refusal.to_string().contains("commit"), "{refusal}");
}

#[test]
fn every_byte_of_a_puddle_header_is_guarded() {
    let directory = scratch();
    let path = directory.path().join("store");
    let store = create(&path);
    let pool = store.create_pool("a", &spec()).unwrap();
    let file = path.join("puddles").join(pool.root.uuid.to_string());
    store.close_pool(pool.uuid).unwrap();
    let name = pool.root.uuid.to_string();
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
fn repair_rebuilds_a_registry_that_surely_lost_nothing() {
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
    std::fs::write(path.join("registry.copy"), "x").unwrap();
    let actions = repair(&path).unwrap().actions;
    assert_eq!(actions.len(), 2, "{actions:?}");
    assert!(!orphan.exists() && path.join("puddles/letter").exists());
    std::fs::remove_file(path.join("puddles/letter")).unwrap();
    drop(open(&path));

    change(&path.join("registry"), |bytes| bytes[0] = 0);
    assert_refused(&path, "registry", "damaged");
    let actions = repair(&path).unwrap().actions;
    assert!(actions[0].contains("rebuilt the registry"), "{actions:?}");
    let store = open(&path);
    store.open_pool("a").unwrap();
    assert_eq!(store.types().unwrap().len(), 1);
    store.create_pool("b", &spec()).unwrap();
    store.close().unwrap();
    drop(store);

    // A puddle that the copy does not name, with something in it: the registry may have known it.
    std::fs::write(&orphan, [1; 2000]).unwrap();
    std::fs::remove_file(path.join("registry")).unwrap();
    let before = snapshot(&path);
    let refusal = repair(&path).unwrap_err();
    assert!(matches!(refusal, Error::FileMissing { .. }), "{refusal}");
    assert_eq!(snapshot(&path), before);
}

/// Cut, zeroed, foreign, gone: whoever opens the store is told what brings the identity back, and that does.
#[test]
fn a_damaged_identity_names_the_cure_that_the_registry_is() {
    let directory = scratch();
    let path = directory.path().join("store");
    small(&path);
    let identity = path.join("durum.store");
    let whole = std::fs::read(&identity).unwrap();
    let zeroed = vec![0; whole.len()];
    let damaged: [Option<&[u8]>; 4] = [Some(&whole[..40]), Some(&zeroed), Some(b"letter"), None];
    for bytes in damaged {
        match bytes {
            Some(bytes) => std::fs::write(&identity, bytes).unwrap(),
            None => std::fs::remove_file(&identity).unwrap(),
        }
        let refusal = assert_refused(&path, "durum.store", "identity");
        assert_eq!(refusal.kind(), ErrorKind::Data, "{refusal}");
        let refusal = refusal.to_string();
        assert!(refusal.contains("`durum check --repair`"), "{refusal}");
        assert!(!refusal.contains("path is right"), "{refusal}");
        let told = durum_service::check(&path, &Default::default()).unwrap();
        assert!(!told.is_sound());
        repair(&path).unwrap();
        assert_eq!(std::fs::read(&identity).unwrap(), whole);
    }
}

/// An empty directory, which some backups leave out.
#[test]
fn a_directory_of_quarantined_logs_that_is_missing_is_made_anew() {
    let directory = scratch();
    let path = directory.path().join("store");
    small(&path);
    std::fs::remove_dir(path.join("quarantine")).unwrap();
    let refusal = assert_refused(&path, "quarantine", "missing").to_string();
    assert!(refusal.contains("`durum check --repair`"), "{refusal}");
    assert_eq!(repair(&path).unwrap().actions.len(), 1);
    open(&path).close().unwrap();
}

/// What no repair can make good, or take the place of, is named with what to do.
#[test]
fn a_repair_says_what_is_in_its_way() {
    let directory = scratch();
    let path = directory.path().join("store");
    small(&path);
    for name in ["registry", "registry.copy"] {
        let (file, aside) = (path.join(name), directory.path().join("aside"));
        std::fs::rename(&file, &aside).unwrap();
        std::fs::create_dir(&file).unwrap();
        let refusal = repair(&path).unwrap_err();
        assert_eq!(refusal.kind(), ErrorKind::Data, "{refusal}");
        assert!(refusal.to_string().contains("move it away"), "{refusal}");
        std::fs::remove_dir(&file).unwrap();
        assert_eq!(repair(&path).unwrap().actions.len(), 1, "{name}");
    }
    let puddles = path.join("puddles");
    std::fs::rename(&puddles, directory.path().join("puddles")).unwrap();
    for is_file in [false, true] {
        if is_file {
            std::fs::write(&puddles, "").unwrap();
        }
        let refusal = repair(&path).unwrap_err();
        assert_eq!(refusal.kind(), ErrorKind::Data, "{refusal}");
        assert!(refusal.to_string().contains("restore a copy"), "{refusal}");
    }
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
    assert!(matches!(refusal, Error::FileMissing { .. }), "{refusal}");
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
