//! Pools in which sections were interrupted are shown as they are, and say so; nobody takes a copy of them for whole.
//! By a service, the user completes them whose program it was.

use std::path::Path;
use std::sync::Arc;

use durum_service::{
    Caller, CloneOptions, Embedded, Error, ExportOptions, Host, ReadOnlyStore, Rights, Service,
    clone_store, export, export_served,
};

use crate::sections::{OLD, PLACE, TORN, left, record, sections_of};
use crate::support::{create, heap, open_options, put, root, scratch, snapshot, spec};

const ALICE: u32 = 4001;
const BOB: u32 = 4002;

fn user(host: &Arc<Host>, uid: u32) -> Embedded {
    // Both are in a group.
    let caller = Caller::new(uid, uid, vec![4000]);
    host.client_elsewhere(caller).unwrap().0
}

fn seen(reader: &ReadOnlyStore, pool: &str) -> u64 {
    let pools = reader.pools();
    let pool = pools.iter().find(|found| found.name == pool).unwrap();
    let view = reader.puddle(pool.root_puddle).unwrap();
    let bytes = view.bytes(PLACE, 8).unwrap();
    u64::from_le_bytes(bytes.try_into().unwrap())
}

#[test]
fn a_reader_sees_what_is_recovered_and_hears_what_is_not() {
    let directory = scratch();
    let path = directory.path().join("store");
    let left = left(&path, true);
    let before = snapshot(&path);
    let reader = ReadOnlyStore::open(&path).unwrap();
    assert_eq!(seen(&reader, "a"), OLD, "its log is replayed");
    let report = reader.pending();
    assert_eq!((report.rolled_back, report.interrupted.len()), (1, 1));
    for (pool, count) in [("a", 1), ("b", 1), ("c", 0)] {
        let clients: Vec<_> = reader.interrupted_in(pool).collect();
        assert_eq!(clients.len(), count, "{pool}");
        for client in clients {
            assert_eq!((client.client, client.sections), (left.client, 1));
        }
    }
    drop(reader);
    assert!(snapshot(&path) == before);
}

fn copies(path: &Path, target: &Path) -> Vec<Result<(), Error>> {
    let of_pool = |pool| export(path, pool, target, &ExportOptions::default()).map(drop);
    vec![
        clone_store(path, target, &CloneOptions::default()).map(drop),
        of_pool("a"),
        of_pool("b"),
    ]
}

#[test]
fn nobody_copies_it() {
    let directory = scratch();
    let (path, target) = (
        directory.path().join("store"),
        directory.path().join("copy"),
    );
    left(&path, true);
    for refused in copies(&path, &target) {
        let error = refused.unwrap_err();
        assert!(matches!(error, Error::PartsKept { .. }), "{error}");
        assert!(
            error.to_string().contains("--abandon-sections POOL"),
            "{error}"
        );
    }
    let host = Host::open(&path, open_options()).unwrap();
    let client = host.client().unwrap();
    let mut reader = ReadOnlyStore::of(Arc::new(host.client().unwrap())).unwrap();
    // It can be looked at, and is kept from changing meanwhile.
    assert!(reader.look(Some("a")).unwrap().is_empty());
    assert_eq!(seen(&reader, "a"), OLD);
    assert!(reader.interrupted_in("a").next().is_some());
    let gone = client.interrupted().unwrap()[0].client;
    for refused in [
        client.take_over(gone).map(drop),
        client.abandon_sections("a").map(drop),
    ] {
        assert!(
            matches!(refused, Err(Error::PoolBusy { .. })),
            "{refused:?}"
        );
    }
    // And not taken for whole.
    let refused = export_served(&mut reader, "a", &target, &ExportOptions::default());
    assert!(
        matches!(refused, Err(Error::PoolInterrupted { .. })),
        "{refused:?}"
    );
    let held = reader.hold(None).unwrap();
    assert_eq!(held.keys().collect::<Vec<_>>(), ["a", "b"]);
    drop(reader);
    assert!(!target.exists());
    client.take_over(gone).unwrap();
}

/// A pool that Alice has made, and that Bob may write, too; her program was in a section.
fn left_by_alice(host: &Arc<Host>) -> durum_service::Uuid {
    let alice = user(host, ALICE);
    let pool = alice.create_pool("a", &spec()).unwrap();
    alice.set_owner("a", None, Some(4000)).unwrap();
    alice.set_mode("a", 0o660).unwrap();
    put(root(&pool), PLACE, &TORN.to_le_bytes());
    let client = alice.id();
    record(&sections_of(&alice), client, 0, 1, true);
    drop(alice);
    host.recover_client(client).unwrap();
    client
}

#[test]
fn the_user_completes_it_whose_program_it_was() {
    let directory = scratch();
    let path = directory.path().join("store");
    create(&path).close().unwrap();
    let host = Host::open(&path, open_options()).unwrap();
    let gone = left_by_alice(&host);
    let [alice, again, bob] = [ALICE, ALICE, BOB].map(|uid| user(&host, uid));
    // Bob may write the pool, but what Alice's program has recorded is not for his.
    let refused = bob.take_over(gone).unwrap_err();
    assert!(matches!(refused, Error::NotPermitted { .. }), "{refused}");
    assert!(matches!(
        bob.open_pool("a"),
        Err(Error::PoolInterrupted { .. })
    ));
    assert_eq!(bob.interrupted().unwrap().len(), 1);
    assert!(matches!(
        bob.abandon_sections("a"),
        Err(Error::NotPermitted { .. })
    ));
    // A request whose answer was lost.
    assert!(alice.taken_again(gone).unwrap().is_none());
    let first = alice.take_over(gone).unwrap();
    let taken = alice.taken_again(gone).unwrap().unwrap();
    assert!(again.taken_again(gone).unwrap().is_none());
    for (one, other) in first.puddles.iter().zip(&taken.puddles) {
        assert_eq!(one.uuid, other.uuid);
    }
    assert_eq!(
        (first.pools.len(), taken.pools.len(), taken.puddles.len()),
        (1, 1, 1)
    );
    assert_eq!(host_files(&alice, gone), 2);
    // Who completes it is gone: the same for the next one.
    let taker = alice.id();
    drop(alice);
    host.recover_client(taker).unwrap();
    assert!(matches!(
        bob.take_over(gone),
        Err(Error::NotPermitted { .. })
    ));
    let taken = again.take_over(gone).unwrap();
    record(&taken.puddles[0], gone, 0, 2, false);
    again.sections_done(gone).unwrap();
    again.close_pool(taken.pools[0].uuid).unwrap();
    bob.open_pool("a").unwrap();
    assert!(heap(&taken.puddles[0]) > 0);
}

fn host_files(client: &Embedded, gone: durum_service::Uuid) -> usize {
    client.files_left_by(gone).unwrap()
}

#[test]
fn who_may_not_read_a_pool_hears_nothing_of_it() {
    let directory = scratch();
    let path = directory.path().join("store");
    create(&path).close().unwrap();
    let host = Host::open(&path, open_options()).unwrap();
    let gone = left_by_alice(&host);
    let alice = user(&host, ALICE);
    alice.set_mode("a", 0o600).unwrap();
    let [bob, all] = [user(&host, BOB), host.client().unwrap()];
    assert!(bob.interrupted().unwrap().is_empty());
    assert_eq!(all.interrupted().unwrap().len(), 1);
    assert!(matches!(
        bob.take_over(gone),
        Err(Error::NotPermitted { .. })
    ));
    // Who had it and may write it no more.
    all.set_owner("a", Some(BOB), Some(BOB)).unwrap();
    assert!(matches!(
        alice.take_over(gone),
        Err(Error::NotPermitted { .. })
    ));
    assert_eq!(bob.abandon_sections("a").unwrap(), [""; 0]);
    let rights = Rights {
        uid: BOB,
        gid: BOB,
        mode: 0o600,
    };
    assert_eq!(bob.pools().unwrap()[0].rights, rights);
    bob.open_pool("a").unwrap();
}
