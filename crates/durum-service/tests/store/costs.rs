//! What a registry commit costs: what it changes, whatever the store holds.

use std::path::Path;
use std::time::Duration;

use durum_format::registry::{
    Change, PoolRecord, PuddleRecord, Room, State, encode_snapshot, parse,
};
use durum_format::types::{Meanings, type_id};
use durum_format::{UNIT, Uuid};
use durum_persist::count::{Counters, thread_counters};
use durum_service::{Embedded, EngineKind, PuddleKind, Service};

use crate::support::{Space, cpu_time, create, open, scratch, small_type, spec};

const TYPES: u64 = 5_000;
const POOLS: u64 = 10_000;

/// A store with a pool `a`; and, where asked, a registry that knows of many types, and of many other pools, whose files
/// nobody looks at.
fn store(path: &Path, is_large: bool) -> Embedded {
    let store = create(path);
    store.create_pool("a", &spec()).unwrap();
    store.close().unwrap();
    drop(store);
    if is_large {
        let registry = path.join("registry");
        let mut state = parse(&std::fs::read(&registry).unwrap()).unwrap().state;
        fill(&mut state);
        let mut bytes = encode_snapshot(&state).unwrap();
        let room = Room::of(&bytes).unwrap();
        bytes.resize(room.end as usize, 0);
        std::fs::write(&registry, &bytes).unwrap();
        std::fs::write(path.join("registry.copy"), &bytes).unwrap();
    }
    open(path)
}

fn fill(state: &mut State) {
    let uuid = |number: u64| Uuid(u128::from(number + 1).to_be_bytes());
    let mut changes: Vec<Change> = (0..TYPES)
        .map(|number| {
            let made = small_type(&format!("type number {number}"));
            Change::PutType(type_id(made.text()), made.text().to_owned())
        })
        .collect();
    // From the other end of the space, where the pool `a` is not.
    let (base, size) = (state.store.base, state.store.size);
    let taken: Vec<u64> = state
        .puddles
        .values()
        .map(|puddle| puddle.address)
        .collect();
    let addresses = (1..).map(|index| base + size - index * UNIT);
    let free = addresses.filter(|address| !taken.contains(address));
    for (number, address) in (0..POOLS).zip(free) {
        let (pool, root) = (uuid(number), uuid(number + POOLS));
        let record = PuddleRecord {
            owner: pool,
            address,
            size: UNIT,
            kind: PuddleKind::Data,
            is_root: true,
            is_stale: false,
            origin: None,
        };
        changes.push(Change::PutPuddle(root, record));
        let record = PoolRecord {
            rights: None,
            damage: None,
            meanings: Meanings::default(),
            name: format!("pool number {number}"),
            engine: EngineKind::Hybrid,
            root_puddle: root,
        };
        changes.push(Change::PutPool(pool, record));
    }
    state.commit(&changes);
}

type Step = (&'static str, fn(&Embedded));

const STEPS: [Step; 4] = [
    ("open a pool", |store| drop(store.open_pool("a").unwrap())),
    ("register a type", |store| {
        let made = small_type("one more");
        store.register_type(made.id(), made.text()).unwrap();
    }),
    ("make a pool", |store| {
        drop(store.create_pool("b", &spec()).unwrap());
    }),
    ("close a pool", |store| {
        let pools = store.pools().unwrap();
        let pool = pools.iter().find(|pool| pool.name == "b").unwrap();
        store.close_pool(pool.uuid).unwrap();
    }),
];

/// What each step cost: bytes written to files, and syncs.
fn costs(store: &Embedded) -> Vec<(&'static str, u64, u64)> {
    let mut costs = Vec::new();
    for (name, step) in STEPS {
        let before = thread_counters();
        step(store);
        let Counters {
            bytes_written,
            syncs,
            ..
        } = thread_counters() - before;
        costs.push((name, bytes_written, syncs));
    }
    costs
}

#[test]
fn a_commit_costs_what_it_changes_whatever_the_store_holds() {
    let directory = scratch();
    let small = costs(&store(&directory.path().join("small"), false));
    let large = costs(&store(&directory.path().join("large"), true));
    for ((name, bytes, syncs), (_, bytes_large, syncs_large)) in small.into_iter().zip(large) {
        println!("{name}: {bytes} bytes and {syncs} syncs, {bytes_large} and {syncs_large}");
        assert!(
            bytes_large * 2 <= bytes * 3,
            "{name}: {bytes_large} bytes, {bytes} in a new store"
        );
        assert_eq!(syncs, syncs_large, "{name}");
        let expected = match name {
            // The file, its name, and the registry.
            "make a pool" => 3,
            _ => 1,
        };
        assert_eq!(syncs, expected, "{name}");
    }
}

/// A request that can be made again and again, by its number.
type Request = (&'static str, fn(&Embedded, u64));

const REQUESTS: [Request; 4] = [
    ("register a type", |store, number| {
        let made = small_type(&format!("timed {number}"));
        store.register_type(made.id(), made.text()).unwrap();
    }),
    ("open and close a pool", |store, _| {
        let pool = store.open_pool("a").unwrap();
        store.close_pool(pool.uuid).unwrap();
    }),
    ("register a log space", |store, _| {
        let client = store.host().client().unwrap();
        let space = Space::new(&client);
        client.remove_puddle(space.grant.uuid).unwrap();
    }),
    ("recover a client", |store, _| {
        let client = store.host().client().unwrap();
        Space::new(&client);
        let report = store.host().recover_client(client.info().client);
        assert_eq!(report.unwrap().log_spaces, 1);
    }),
];

/// The shortest time of a request, in processor time.
fn fastest(store: &Embedded, request: fn(&Embedded, u64)) -> Duration {
    let timed = (0..200).map(|number| {
        let began = cpu_time();
        request(store, number);
        cpu_time() - began
    });
    timed.min().unwrap()
}

/// On a machine that is busy: whoever searches all pools, or all types, takes twenty times as long.
#[test]
fn a_request_searches_for_nothing() {
    compare(6.0);
}

#[test]
#[ignore = "the machine may be busy with other tests"]
fn a_request_takes_as_long_whatever_the_store_holds() {
    compare(1.5);
}

/// Checks that requests to a large store take at most so many times as long as to a new one.
fn compare(ratio_max: f64) {
    let directory = scratch();
    let small = store(&directory.path().join("small"), false);
    let large = store(&directory.path().join("large"), true);
    for (name, request) in REQUESTS {
        let (small, large) = (fastest(&small, request), fastest(&large, request));
        println!("to {name} takes {small:?} in a new store, {large:?} in a large one");
        assert!(
            large <= small.mul_f64(ratio_max),
            "{name}: {small:?}, {large:?}"
        );
    }
}
