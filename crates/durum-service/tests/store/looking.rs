//! What is not in order is shown to those who may see it: pools in quarantine as the crash left them, logs of clients
//! that are gone, and files that belong to nothing.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use durum_format::UNIT;
use durum_format::twin::{STATE_OFFSET, Stage, State};
use durum_service::{
    Caller, CloneOptions, Embedded, Error, Host, PuddleKind, PuddleOwner, ReadOnlyStore, Service,
    Uuid, check, check_served, clone_served,
};

use crate::recovery::interrupt;
use crate::scene::{Hostile, PLACE, POOLS};
use crate::support::{Space, create_options, heap, open_all, put, root, scratch, snapshot, word};

const ALICE: u32 = 61_001;
const BOB: u32 = 61_002;

/// A store with a pool of each engine, all in quarantine because of one log. In the Twin pool a copy is under way.
fn quarantined(path: &Path) -> Arc<Host> {
    let host = Host::create(path, &create_options()).unwrap();
    let client = Hostile::new(host.client().unwrap());
    put(root(&client.hybrid), PLACE, &2_u64.to_le_bytes());
    let log = &client.log.parts[0];
    put(log, heap(log) + 16, &[0xff]);
    let id = client.store.id();
    let Hostile { store, twin, .. } = client;
    drop(store);
    assert_eq!(host.recover_client(id).unwrap().quarantined.len(), 1);
    let twin = root(&twin);
    let copying = State {
        stage: Stage::Copying,
        ..State::from_word(word(twin, STATE_OFFSET)).unwrap()
    };
    put(twin, STATE_OFFSET, &copying.to_word().to_le_bytes());
    put(twin, twin.size + PLACE, &7_u64.to_le_bytes());
    host
}

fn host_of(path: &Path) -> (Arc<Host>, Embedded) {
    let host = quarantined(path);
    let client = host.client().unwrap();
    (host, client)
}

fn is_busy<T>(result: Result<T, Error>, pool: &str) -> bool {
    matches!(result, Err(Error::PoolBusy { name }) if name == pool)
}

fn is_quarantined<T>(result: &Result<T, Error>) -> bool {
    matches!(result, Err(Error::PoolQuarantined { .. }))
}

#[test]
fn a_pool_in_quarantine_is_looked_at_as_the_crash_left_it() {
    let directory = scratch();
    let path = directory.path().join("store");
    let (host, looker) = host_of(&path);
    let before = snapshot(&path);
    for name in POOLS {
        assert!(is_quarantined(&looker.read_pool(name)));
        let pool = looker.look_at_pool(name).unwrap();
        // A request whose answer was lost.
        assert_eq!(looker.read_again(name).unwrap().unwrap().uuid, pool.uuid);
        let puddles = open_all(&looker, pool);
        assert!(puddles[0].file.write_all_at(&[1], 0).is_err());
        let value = word(&puddles[0], PLACE);
        assert_eq!(value == 2, name == "hybrid", "{name}: {value}");
    }
    assert_eq!(snapshot(&path), before, "nothing is made whole");
    // A reader of another pool is one as ever.
    let other = host.client().unwrap();
    let pool = other
        .create_pool("other", &crate::support::spec())
        .unwrap()
        .uuid;
    other.close_pool(pool).unwrap();
    looker.look_at_pool("other").unwrap();
    other.read_pool("other").unwrap();
}

#[test]
fn nobody_decides_about_a_pool_that_is_looked_at() {
    let directory = scratch();
    let (host, looker) = host_of(&directory.path().join("store"));
    let other = host.client().unwrap();
    for name in POOLS {
        let pool = looker.look_at_pool(name).unwrap().uuid;
        assert!(is_busy(other.accept_quarantined(name), name));
        assert!(is_busy(other.remove_pool(name), name));
        let own = looker.accept_quarantined(name);
        assert!(matches!(own, Err(Error::PoolOpen { .. })), "{own:?}");
        // The log may write each of the pools.
        for any in POOLS {
            assert!(is_busy(other.retry_quarantined(any), name), "{any}");
        }
        // Others may look, too.
        other.look_at_pool(name).unwrap();
        looker.close_pool(pool).unwrap();
        assert!(is_busy(looker.accept_quarantined(name), name));
        other.close_pool(pool).unwrap();
    }
    looker.look_at_pool("shadow").unwrap();
    other.accept_quarantined("hybrid").unwrap();
    other.open_pool("hybrid").unwrap();
    // The end of a client is the end of its look.
    looker.close().unwrap();
    other.retry_quarantined("twin").unwrap();
}

/// Who tries again hears of no pool that it may not read, though it waits for one.
#[test]
fn who_looks_may_read_and_of_a_strangers_pool_nobody_hears() {
    let directory = scratch();
    let host = quarantined(&directory.path().join("store"));
    let client = |uid| {
        let caller = Caller::new(uid, uid, Vec::new());
        host.client_elsewhere(caller).unwrap().0
    };
    let (alice, bob, root) = (client(ALICE), client(BOB), host.client().unwrap());
    root.set_owner("hybrid", Some(ALICE), None).unwrap();
    root.set_owner("shadow", Some(BOB), None).unwrap();
    for name in POOLS {
        let refused = alice.look_at_pool(name);
        let is_refused = matches!(refused, Err(Error::NotPermitted { .. }));
        assert_eq!(is_refused, name != "hybrid", "{refused:?}");
    }
    root.set_mode("shadow", 0o644).unwrap();
    alice.look_at_pool("shadow").unwrap();
    root.set_mode("shadow", 0o600).unwrap();
    alice.close().unwrap();
    let alice = client(ALICE);
    bob.look_at_pool("shadow").unwrap();
    assert!(is_busy(alice.retry_quarantined("hybrid"), "hybrid"));
    assert!(is_busy(root.retry_quarantined("hybrid"), "shadow"));
    // It hears why its own pool is in quarantine.
    let reader = ReadOnlyStore::of(Arc::new(alice)).unwrap();
    let pools = reader.pools();
    assert_eq!(pools.len(), 1);
    assert!(pools[0].quarantine.is_some());
}

#[test]
fn a_check_by_readers_sees_pools_in_quarantine_and_a_clone_takes_none() {
    let directory = scratch();
    let path = directory.path().join("store");
    let (host, client) = host_of(&path);
    drop(client);
    let mut reader = ReadOnlyStore::of(Arc::new(host.client().unwrap())).unwrap();
    let served = check_served(&mut reader, None, &Default::default()).unwrap();
    let copy = directory.path().join("copy");
    for pool in [None, Some("hybrid")] {
        let refused = clone_served(&mut reader, pool, &copy, &CloneOptions::default());
        assert!(is_quarantined(&refused), "{refused:?}");
    }
    let views: Vec<(Uuid, Vec<u8>)> = reader
        .pools()
        .iter()
        .map(|pool| (pool.uuid, reader.puddle_bytes(pool.root_puddle).unwrap()))
        .collect();
    drop(reader);
    host.close().unwrap();
    let own = check(&path, &Default::default()).unwrap();
    assert_eq!(served.findings, own.findings);
    assert!(!own.is_sound());
    assert_eq!(served.pools.len(), 3);
    assert_eq!(format!("{:?}", served.pools), format!("{:?}", own.pools));
    let reader = ReadOnlyStore::open(&path).unwrap();
    for (pool, (uuid, seen)) in reader.pools().iter().zip(views) {
        let bytes = reader.puddle_bytes(pool.root_puddle).unwrap();
        assert!(pool.uuid == uuid && bytes == seen, "{}", pool.name);
    }
}

#[test]
fn files_that_belong_to_nothing_are_told_to_root_alone() {
    let directory = scratch();
    let path = directory.path().join("store");
    let (host, root) = host_of(&path);
    let places = ["notes", "puddles/notes", "quarantine/notes"];
    for place in places {
        std::fs::write(path.join(place), "mine").unwrap();
    }
    let orphan = format!("puddles/{}", Uuid([5; 16]));
    std::fs::write(path.join(&orphan), [0; 8192]).unwrap();
    let found = root.stray_files().unwrap();
    let found: Vec<_> = found
        .iter()
        .map(|stray| (stray.file.clone(), stray.bytes))
        .collect();
    let expected = [
        (places[0], 4),
        (places[1], 4),
        (&orphan, 8192),
        (places[2], 4),
    ];
    let expected = expected.map(|(place, bytes)| (path.join(place), Some(bytes)));
    assert_eq!(found, expected);
    let caller = Caller::new(ALICE, ALICE, Vec::new());
    let alice = host.client_elsewhere(caller).unwrap().0;
    let refused = alice.stray_files();
    assert!(matches!(refused, Err(Error::NotPermitted { .. })));
    let check_of = |client: Embedded| {
        let mut reader = ReadOnlyStore::of(Arc::new(client)).unwrap();
        check_served(&mut reader, None, &Default::default()).unwrap()
    };
    assert_eq!(check_of(alice).findings, []);
    let served = check_of(root);
    host.close().unwrap();
    let own = check(&path, &Default::default()).unwrap();
    assert_eq!(served.findings, own.findings);
    assert_eq!(served.can_repair, own.can_repair);
    assert!(own.findings.len() > 4, "{own:?}");
}

/// A file that is being made is not in the registry yet, and one that is being removed is no more.
#[test]
fn files_that_come_and_go_belong_to_something() {
    let directory = scratch();
    let host = Host::create(&directory.path().join("store"), &create_options()).unwrap();
    let (works, looks) = (host.client().unwrap(), host.client().unwrap());
    let ends = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !ends.load(Ordering::Relaxed) {
                let made = works.create_puddle(PuddleOwner::Client, PuddleKind::Log, UNIT);
                works.remove_puddle(made.unwrap().uuid).unwrap();
            }
        });
        let found: Vec<_> = (0..300).map(|_| looks.stray_files().unwrap()).collect();
        ends.store(true, Ordering::Relaxed);
        assert!(found.iter().all(Vec::is_empty), "{found:?}");
    });
}

/// What a person decides about: logs in quarantine, and those that wait for a pool's file. Not those of who lives.
#[test]
fn logs_of_clients_that_are_gone_are_shown_to_root_alone() {
    let directory = scratch();
    let path = directory.path().join("store");
    let (host, root) = host_of(&path);
    let keeps = interrupt(host.client().unwrap());
    let (kept, pools) = (keeps.id(), keeps.pools().unwrap());
    let words = pools.iter().find(|pool| pool.name == "words").unwrap();
    let file = path.join(format!("puddles/{}", words.root_puddle));
    std::fs::rename(&file, path.with_file_name("aside")).unwrap();
    drop(keeps);
    assert_eq!(host.recover_client(kept).unwrap().refused.len(), 1);
    let lives = host.client().unwrap();
    let lives_log = Space::new(&lives).grant.uuid;

    let caller = Caller::new(ALICE, ALICE, Vec::new());
    let alice = host.client_elsewhere(caller).unwrap().0;
    let refused = (
        alice.logs().map(drop),
        alice.open_logs(&[lives_log]).map(drop),
    );
    for refused in [refused.0, refused.1] {
        assert!(matches!(refused, Err(Error::NotPermitted { .. })));
    }
    for strange in [lives_log, pools[0].root_puddle] {
        let refused = root.open_logs(&[strange]);
        assert!(
            matches!(refused, Err(Error::PuddleRefused { .. })),
            "{refused:?}"
        );
    }
    let logs_of = |reader: &ReadOnlyStore| -> Vec<(Uuid, Vec<u8>)> {
        let puddles = reader.puddles().into_iter();
        puddles
            .filter(|puddle| !puddle.kind.holds_objects())
            .map(|puddle| (puddle.uuid, reader.puddle_bytes(puddle.uuid).unwrap()))
            .collect()
    };
    let mut reader = ReadOnlyStore::of(Arc::new(root)).unwrap();
    reader.look_at_logs().unwrap();
    let served = logs_of(&reader);
    assert!(!served.iter().any(|(uuid, _)| *uuid == lives_log));
    let verdicts = reader.verdicts(kept).to_vec();
    lives.close().unwrap();
    host.close().unwrap();
    let own = ReadOnlyStore::open(&path).unwrap();
    assert_eq!(served, logs_of(&own));
    assert_eq!(verdicts, own.verdicts(kept));
    // The one in quarantine, that is in a directory of its own, and eight of who waits.
    let clients = own
        .puddles()
        .into_iter()
        .filter(|puddle| puddle.owner == kept);
    assert!(served.len() > clients.count() + 1 && served.len() > 8);
}

#[test]
fn a_log_in_quarantine_whose_file_is_gone_is_found_by_a_check() {
    let directory = scratch();
    let path = directory.path().join("store");
    let (host, root) = host_of(&path);
    let mut logs = std::fs::read_dir(path.join("quarantine")).unwrap();
    std::fs::remove_file(logs.next().unwrap().unwrap().path()).unwrap();
    let mut reader = ReadOnlyStore::of(Arc::new(root)).unwrap();
    let served = check_served(&mut reader, None, &Default::default()).unwrap();
    drop(reader);
    host.close().unwrap();
    let own = check(&path, &Default::default()).unwrap();
    assert_eq!(served.findings, own.findings);
    let texts = own.findings.iter().map(|finding| &finding.text);
    assert!(
        texts.clone().any(|text| text.contains("is missing")),
        "{own:?}"
    );
}
