//! A log that fails validation is neither replayed nor dropped: it is kept, and its pools wait for a person.

use std::path::Path;

use durum_format::UNIT;
use durum_format::log::LOG_AREA_OFFSET;
use durum_format::log_space;
use durum_service::{
    Embedded, Error, ErrorKind, PuddleGrant, PuddleKind, PuddleOwner, ReadOnlyStore, Service, check,
};

use crate::support::{Log, Space, create, heap, open, put, root, scratch, spec, word};

/// A client with an undo of 1 over 2 in pool `a`, and one of 3 over 4 in pool `b`, each in its own log.
struct Client {
    store: Embedded,
    space: Space,
    first: Log,
    _second: Log,
    address: u64,
}

fn client(path: &Path) -> Client {
    let store = create(path);
    let a = store.create_pool("a", &spec()).unwrap();
    let b = store.create_pool("b", &spec()).unwrap();
    store.create_pool("c", &spec()).unwrap();
    store.close_pool(store.pools().unwrap()[2].uuid).unwrap();
    let mut space = Space::new(&store);
    let mut first = space.log(&store, 0xf1);
    let mut second = space.log(&store, 0xf2);
    let address = root(&a).address;
    first.undo(root(&a).address + 0x10000, &1_u64.to_le_bytes());
    put(root(&a), 0x10000, &2_u64.to_le_bytes());
    second.undo(root(&b).address + 0x10000, &3_u64.to_le_bytes());
    put(root(&b), 0x10000, &4_u64.to_le_bytes());
    Client {
        store,
        space,
        first,
        _second: second,
        address,
    }
}

/// Opens the store and expects the first log in quarantine, the second replayed.
fn assert_quarantined(path: &Path, reason: &str) {
    let store = open(path);
    let report = store.recovery_report().clone();
    assert_eq!(report.quarantined.len(), 1, "{report:?}");
    let note = &report.quarantined[0];
    assert!(note.reason.contains(reason), "{}", note.reason);
    assert!(path.join(&note.log).is_file(), "{}", note.log.display());
    for name in ["a", "b"] {
        let refusal = store.open_pool(name).unwrap_err();
        assert_eq!(refusal.kind(), ErrorKind::Data);
        let text = refusal.to_string();
        assert!(matches!(refusal, Error::PoolQuarantined { .. }), "{text}");
        assert!(
            text.contains(note.log.to_str().unwrap())
                && text.contains(&format!("--accept-quarantined {name}")),
            "{text}"
        );
    }
    // A pool that the client had given back is not concerned.
    let other = store.open_pool("c").unwrap();
    store.close_pool(other.uuid).unwrap();
    store.close().unwrap();
    drop(store);

    // It stays so, for readers as well.
    let reader = ReadOnlyStore::open(path).unwrap();
    let marked: Vec<bool> = reader
        .pools()
        .iter()
        .map(|pool| pool.quarantine.is_some())
        .collect();
    assert_eq!(marked, [true, true, false]);
    let findings = check(path, &Default::default()).unwrap();
    let told: Vec<String> = findings.findings.iter().map(ToString::to_string).collect();
    assert!(!findings.is_sound(), "{told:?}");
    assert!(
        told.iter()
            .any(|text| text.contains("of these pools: a, b")),
        "{told:?}"
    );
    let store = open(path);
    assert!(store.open_pool("a").is_err());

    store.accept_quarantined("a").unwrap();
    let a = store.open_pool("a").unwrap();
    assert_eq!(
        word(root(&a), 0x10000),
        2,
        "the invalid log was not replayed"
    );
    assert!(store.open_pool("b").is_err(), "each pool is accepted apart");
    store.accept_quarantined("b").unwrap();
    let b = store.open_pool("b").unwrap();
    assert_eq!(word(root(&b), 0x10000), 3, "the valid log was replayed");
    assert!(
        path.join(&note.log).is_file(),
        "the log stays for those who look later"
    );
    store.close().unwrap();
    drop(store);
    assert!(open(path).recovery_report().was_clean);
}

#[test]
fn a_durable_entry_behind_a_damaged_one_shows_the_damage() {
    let directory = scratch();
    let path = directory.path().join("store");
    let mut client = client(&path);
    client.first.undo(client.address + 0x10008, &[0; 8]);
    let part = &client.first.parts[0];
    put(part, heap(part) + LOG_AREA_OFFSET + 24, &[0xff]);
    drop(client);
    assert_quarantined(&path, "damaged");
}

#[test]
fn a_write_outside_of_the_grants_is_refused() {
    let directory = scratch();
    let path = directory.path().join("store");
    let mut client = client(&path);
    let reader = ReadOnlyStore::open(&path).unwrap();
    let c = reader.pools()[2].root_puddle;
    let victim = reader
        .puddles()
        .into_iter()
        .find(|puddle| puddle.uuid == c)
        .unwrap();
    client.first.undo(victim.address + 0x10000, &[0x66; 8]);
    drop(client);
    assert_quarantined(&path, "may write");
    let store = open(&path);
    let pool = store.open_pool("c").unwrap();
    assert_eq!(word(root(&pool), 0x10000), 0);
}

#[test]
fn the_immutable_part_of_a_header_is_no_target() {
    let directory = scratch();
    let path = directory.path().join("store");
    let mut client = client(&path);
    client.first.undo(client.address + 48, &[0; 8]);
    drop(client);
    assert_quarantined(&path, "may write");
}

#[test]
fn a_chain_to_a_puddle_that_is_no_log_is_damage() {
    let directory = scratch();
    let path = directory.path().join("store");
    let mut client = client(&path);
    client.first.chain(&client.store);
    let part = &client.first.parts[1];
    put(part, heap(part), &[0; 64]);
    drop(client);
    assert_quarantined(&path, "goes on");
}

#[test]
fn a_log_header_that_is_damaged_is_quarantined() {
    let directory = scratch();
    let path = directory.path().join("store");
    let client = client(&path);
    let part = &client.first.parts[0];
    put(part, heap(part) + 16, &[0xff]);
    drop(client);
    assert_quarantined(&path, "checksum");
}

#[test]
fn a_log_file_that_is_gone_is_quarantined_by_name() {
    let directory = scratch();
    let path = directory.path().join("store");
    let client = client(&path);
    let file = path
        .join("puddles")
        .join(client.first.parts[0].uuid.to_string());
    std::fs::remove_file(file).unwrap();
    drop(client);
    let store = open(&path);
    assert!(
        store.recovery_report().quarantined[0]
            .reason
            .contains("missing")
    );
    assert!(matches!(
        store.open_pool("a"),
        Err(Error::PoolQuarantined { .. })
    ));
}

fn damage_first_line(space: &PuddleGrant) {
    let line = heap(space) + log_space::entry_offset(0);
    put(space, line + 8, &[0x0f; 8]);
}

#[test]
fn a_damaged_entry_of_the_log_space_is_told_by_its_log() {
    let directory = scratch();
    let path = directory.path().join("store");
    let client = client(&path);
    damage_first_line(&client.space.grant);
    drop(client);
    assert_quarantined(&path, "log space");
}

#[test]
fn a_damaged_log_space_keeps_all_of_its_logs() {
    let directory = scratch();
    let path = directory.path().join("store");
    let client = client(&path);
    let space = &client.space.grant;
    put(space, heap(space) + 16, &[0x0f; 8]);
    drop(client);
    let store = open(&path);
    assert_eq!(store.recovery_report().quarantined.len(), 1);
    assert!(store.open_pool("a").is_err() && store.open_pool("b").is_err());
    assert_eq!(
        std::fs::read_dir(path.join("quarantine")).unwrap().count(),
        3
    );
    // A quarantined pool may be removed; then nothing waits any more, and the addresses are free again.
    store.remove_pool("a").unwrap();
    store.remove_pool("b").unwrap();
    store.close().unwrap();
    drop(store);
    assert!(ReadOnlyStore::open(&path).unwrap().puddles().len() == 1);
}

#[test]
fn puddles_of_a_quarantined_client_keep_their_addresses_until_accepted() {
    let directory = scratch();
    let path = directory.path().join("store");
    let client = client(&path);
    let part = &client.first.parts[0];
    put(part, heap(part) + 16, &[0xff]);
    let kept = part.address;
    drop(client);
    let store = open(&path);
    let c = store.open_pool("c").unwrap();
    for _ in 0..8 {
        let owner = PuddleOwner::Pool(c.uuid);
        let more = store.create_puddle(owner, PuddleKind::Data, UNIT).unwrap();
        assert_ne!(more.address, kept);
    }
}

/// The log space stays for who tries again; it names the logs that were replayed, too.
#[test]
fn a_log_beside_those_that_were_replayed_is_tried_again() {
    let directory = scratch();
    let path = directory.path().join("store");
    let client = client(&path);
    let log = client.first.parts[0].uuid.to_string();
    drop(client);
    let file = path.join("puddles").join(&log);
    let bytes = std::fs::read(&file).unwrap();
    std::fs::remove_file(&file).unwrap();
    let store = open(&path);
    assert_eq!(store.recovery_report().quarantined.len(), 1);
    store.close().unwrap();
    drop(store);

    std::fs::write(path.join("quarantine").join(&log), bytes).unwrap();
    let store = open(&path);
    let report = store.retry_quarantined("a").unwrap();
    assert!(report.quarantined.is_empty(), "{report:?}");
    for (name, value) in [("a", 1), ("b", 3)] {
        let pool = store.open_pool(name).unwrap();
        assert_eq!(word(root(&pool), 0x10000), value, "{name}");
    }
}

/// Who accepts a pool as a lost log left it gives up nothing of a pool that waits for its file.
#[test]
fn what_is_kept_survives_that_others_are_accepted() {
    let directory = scratch();
    let path = directory.path().join("store");
    let client = client(&path);
    let log = client.first.parts[0].uuid.to_string();
    let b = client.store.pools().unwrap()[1].root_puddle.to_string();
    drop(client);
    std::fs::remove_file(path.join("puddles").join(log)).unwrap();
    let file = path.join("puddles").join(b);
    let bytes = std::fs::read(&file).unwrap();
    std::fs::remove_file(&file).unwrap();
    let store = open(&path);
    assert_eq!(store.recovery_report().quarantined.len(), 1);
    store.accept_quarantined("a").unwrap();
    store.accept_quarantined("b").unwrap();
    store.close().unwrap();
    drop(store);

    std::fs::write(&file, bytes).unwrap();
    let store = open(&path);
    let report = store.recovery_report();
    assert!(report.quarantined.is_empty(), "{report:?}");
    assert_eq!(report.rolled_back, 1);
    let pool = store.open_pool("b").unwrap();
    assert_eq!(word(root(&pool), 0x10000), 3);
}

/// A line of the log space is damaged, and the log that it named is in use. So the log space is not sound, but its
/// other lines are read again when a pool's file is back that is missing.
#[test]
fn a_log_space_with_a_damaged_line_is_read_again_when_a_file_is_back() {
    let directory = scratch();
    let path = directory.path().join("store");
    let client = client(&path);
    damage_first_line(&client.space.grant);
    let b = client.store.pools().unwrap()[1].root_puddle.to_string();
    drop(client);
    let file = path.join("puddles").join(b);
    let bytes = std::fs::read(&file).unwrap();
    std::fs::remove_file(&file).unwrap();
    for _ in 0..2 {
        assert_eq!(open(&path).refused_pools().unwrap().len(), 1);
    }
    std::fs::write(&file, bytes).unwrap();
    assert_eq!(open(&path).recovery_report().rolled_back, 1);
    let store = open(&path);
    store.accept_quarantined("b").unwrap();
    let b = store.open_pool("b").unwrap();
    assert_eq!(word(root(&b), 0x10000), 3, "its log was replayed");
    store.accept_quarantined("a").unwrap();
    store.close().unwrap();
    drop(store);
    assert!(open(&path).recovery_report().was_clean);
}
