//! What a first touch takes in each way, and opening a pool of many puddles.
//!
//! `cargo test --release -p durum --test on_demand -- --ignored --nocapture speed`

use std::time::Instant;

use durum::{Domain, Engine, PoolOptions, PuddleMapping, Store, StoreOptions};

use crate::fixture::{ENGINES, WAYS, make, open};

#[test]
#[ignore = "prints a table"]
fn first_touches() {
    const BLOCKS: usize = 256;
    for engine in ENGINES {
        let dir = tempfile::tempdir_in("/dev/shm").unwrap();
        make(dir.path(), engine, Domain::Dram, BLOCKS);
        for is_random in [true, false] {
            let mut eager = 0.0;
            for way in [PuddleMapping::Eager, WAYS[1], WAYS[0]] {
                let mut best = f64::MAX;
                for _ in 0..10 {
                    let began = Instant::now();
                    let opened = open(dir.path(), Domain::Dram, way);
                    for at in 0..BLOCKS {
                        let block = if is_random { at * 151 % BLOCKS } else { at };
                        assert_eq!(opened.load(block, 0), block as u64);
                    }
                    let each = began.elapsed().as_secs_f64();
                    opened.close();
                    best = best.min(each * 1e6 / BLOCKS as f64);
                }
                if way == PuddleMapping::Eager {
                    eager = best;
                }
                println!(
                    "{:7} {way:12?} {} {best:6.2} us for each puddle, opening included: {:.2} of eager",
                    engine.name(),
                    if is_random { "at random" } else { "in order " },
                    best / eager
                );
            }
        }
    }
}

/// Files that nobody opens need not be there.
#[test]
#[ignore = "prints a table"]
fn opening_ten_thousand() {
    const PUDDLES: u64 = 10_000;
    let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    let path = dir.path().join("store");
    let options = StoreOptions::new().domain(Domain::Dram);
    let store = Store::create(&path, options.clone()).unwrap();
    let pool = store
        .create_pool("pool", PoolOptions::new().engine(Engine::Hybrid))
        .unwrap();
    let info = store.info().clone();
    let uuid = pool.uuid();
    drop(pool);
    store.close().unwrap();
    // Where the root is not.
    let half = info.space_size / 2;
    let first = match info.next_address < info.base + half {
        true => info.base + half,
        false => info.base,
    };
    register(&path, uuid, first, PUDDLES);
    for way in [WAYS[1], WAYS[0]] {
        let store = Store::open(&path, options.clone().mapping(way)).unwrap();
        let mut times = Vec::new();
        for _ in 0..20 {
            let began = Instant::now();
            let pool = store.open_pool("pool", PoolOptions::new()).unwrap();
            times.push(began.elapsed());
            assert_eq!(pool.puddles_waiting() as u64, PUDDLES);
        }
        times.sort();
        println!("{way:?}: {:?}, at best {:?}", times[10], times[0]);
        store.close().unwrap();
    }
}

/// Enters puddles in the registry that have no file.
fn register(path: &std::path::Path, pool: durum::Uuid, first: u64, count: u64) {
    use durum_format::registry::{Change, PuddleRecord, Room, encode_snapshot, parse};
    let changes = (0..count).map(|index| {
        let record = PuddleRecord {
            owner: pool,
            address: first + index * (2 << 20),
            size: 2 << 20,
            kind: durum_service::PuddleKind::Data,
            is_root: false,
        };
        Change::PutPuddle(durum::Uuid(u128::from(index + 1).to_be_bytes()), record)
    });
    let registry = path.join("registry");
    let mut state = parse(&std::fs::read(&registry).unwrap()).unwrap().state;
    state.commit(&changes.collect::<Vec<_>>());
    let mut bytes = encode_snapshot(&state).unwrap();
    let room = Room::of(&bytes).unwrap();
    bytes.resize(room.end as usize, 0);
    std::fs::write(&registry, &bytes).unwrap();
    std::fs::write(path.join("registry.copy"), &bytes).unwrap();
}
