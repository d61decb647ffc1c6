//! Two who need one stale puddle at the same time: one rewrites it, the other one waits.

use std::sync::Mutex;
use std::thread;

use durum_format::UNIT;
use durum_persist::Site;
use durum_service::{
    Embedded, EngineKind, Error, Host, PoolSpec, PuddleGrant, PuddleOwner, Service,
};

use super::displace;
use crate::support::{
    create, heap, node, node_type, open, open_options, place_object, root, scratch, word,
};
use crate::together::Company;

const REWRITTEN: Site = Site("rewritten puddle");
const VALUE: u64 = 7;

/// A store that has moved, with one pool of three puddles. Each of these has one node, that points to itself.
fn moved(directory: &std::path::Path, engine: EngineKind) -> Embedded {
    let path = directory.join("store");
    let store = create(&path);
    let ty = node_type();
    store.register_type(ty.id(), ty.text()).unwrap();
    let pool = store.create_pool("pool", &PoolSpec::new(engine)).unwrap();
    let more = || {
        let owner = PuddleOwner::Pool(pool.uuid);
        store.create_puddle(owner, engine.puddle_kind(), UNIT)
    };
    for puddle in [root(&pool), &more().unwrap(), &more().unwrap()] {
        let at = puddle.address + heap(puddle) + 16;
        let placed = place_object(puddle, 0, ty.id(), &node(VALUE as i64, at));
        assert_eq!(placed, at);
    }
    store.close_pool(pool.uuid).unwrap();
    store.close().unwrap();
    drop(store);
    let store = open(&path);
    displace(&store).unwrap();
    store
}

/// Where the value of a puddle's node is in its file, in the main copy.
fn value_of(puddle: &PuddleGrant) -> u64 {
    heap(puddle) + 16
}

/// One thread is at the first of two puddles when another one needs the second. Should that one go ahead, a transaction
/// could change the puddle, and then the first thread would make both of its copies what main is in the middle of it.
#[test]
fn a_puddle_that_somebody_is_about_to_rewrite_is_waited_for() {
    for engine in [EngineKind::Twin, EngineKind::Hybrid, EngineKind::Shadow] {
        let directory = scratch();
        let store = moved(directory.path(), engine);
        let pool = store.open_pool("pool").unwrap();
        let others: Vec<_> = pool.others.iter().map(|place| place.uuid).collect();
        let threads = Mutex::new(Vec::new());
        let changed = thread::scope(|scope| {
            let (store, others) = (&store, &others);
            let both = move || drop(store.open_puddles(pool.uuid, others).unwrap());
            let company = Company::gather_at(REWRITTEN, scope, &threads, both);
            let second = company.comes(move || {
                let opened = store.open_puddles(pool.uuid, &others[1..]).unwrap();
                let puddle = opened.into_iter().next().unwrap();
                let value = 99_u64.to_le_bytes();
                puddle.file.write_all_at(&value, value_of(&puddle)).unwrap();
                puddle
            });
            company.go();
            second.join().unwrap()
        });
        let at = value_of(&changed);
        assert_eq!(word(&changed, at), 99);
        assert_eq!(word(&changed, at + 8), changed.address + at);
        if engine == EngineKind::Twin {
            let back = word(&changed, changed.size + at);
            assert_eq!(back, VALUE, "the transaction could not be undone");
        }
    }
}

/// As above, for the root puddle and those who open its pool to read it.
#[test]
fn two_who_open_a_stale_pool_get_it_rewritten() {
    let directory = scratch();
    moved(directory.path(), EngineKind::Hybrid).close().unwrap();
    let host = Host::open(&directory.path().join("store"), open_options()).unwrap();
    let clients = [host.client().unwrap(), host.client().unwrap()];
    let threads = Mutex::new(Vec::new());
    thread::scope(|scope| {
        let [first, second] = &clients;
        let company = Company::gather_at(REWRITTEN, scope, &threads, || {
            first.read_pool("pool").map(drop).unwrap();
        });
        let second = company.comes(|| {
            let pool = second.read_pool("pool")?;
            let (puddle, at) = (root(&pool), value_of(root(&pool)));
            Ok::<_, Error>((word(puddle, at + 8), puddle.address + at))
        });
        company.go();
        let (pointer, node) = second.join().unwrap().unwrap();
        assert_eq!(pointer, node);
    });
}
