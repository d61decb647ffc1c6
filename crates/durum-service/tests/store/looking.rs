//! Pools in quarantine are looked at as the crash left them, and nobody decides about them meanwhile.

use std::path::Path;
use std::sync::Arc;

use durum_format::twin::{STATE_OFFSET, Stage, State};
use durum_service::{
    Caller, CloneOptions, Embedded, Error, Host, ReadOnlyStore, Service, Uuid, check, check_served,
    clone_served,
};

use crate::scene::{Hostile, PLACE, POOLS};
use crate::support::{create_options, heap, open_all, put, root, scratch, snapshot, word};

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
