//! A store makes way for what a process has at its addresses: everything is found where it is then, by whoever opens it
//! next, whatever crashed in between.

mod claims;
mod settling;

use std::path::Path;

use durum_format::registry::{self, AddressRange};
use durum_format::{UNIT, Uuid};
use durum_persist::Site;
use durum_persist::record::note;
use durum_persist::simulate::{Failure, Plan, Report, Rules, explore_with_recovery};
use durum_service::{
    CloneOptions, Embedded, EngineKind, Error, Host, PoolGrant, PoolSpec, PuddleGrant, PuddleKind,
    PuddleOwner, ReadOnlyStore, Service, UsedElsewhere, check, clone_store,
};

use crate::support::{
    Space, create, create_options, heap, node, node_type, open, open_all, open_options,
    place_object, put, recorder, root, scratch, snapshot, spec, word,
};

/// The pools of these tests, by name.
pub const POOLS: [(&str, EngineKind); 3] = [
    ("hybrid", EngineKind::Hybrid),
    ("twin", EngineKind::Twin),
    ("shadow", EngineKind::Shadow),
];
/// Nodes of each pool.
pub const NODES: u64 = 6;

/// Makes a store with a list through both puddles of each pool, and on from each pool to the next.
pub fn lists(path: &Path) {
    let store = create(path);
    let ty = node_type();
    store.register_type(ty.id(), ty.text()).unwrap();
    let mut next = 0;
    for (name, engine) in POOLS.into_iter().rev() {
        let pool = store.create_pool(name, &PoolSpec::new(engine)).unwrap();
        let kind = engine.puddle_kind();
        let more = store
            .create_puddle(PuddleOwner::Pool(pool.uuid), kind, 2 * UNIT)
            .unwrap();
        for number in (0..NODES).rev() {
            let puddle = if number % 2 == 0 { root(&pool) } else { &more };
            let granule = 40 * (number / 2);
            next = place_object(puddle, granule, ty.id(), &node(number as i64, next));
        }
        if engine == EngineKind::Twin {
            for puddle in [root(&pool), &more] {
                let mut main = vec![0; (puddle.size - 1024) as usize];
                puddle.file.read_exact_at(&mut main, 1024).unwrap();
                put(puddle, puddle.size + 1024, &main);
            }
        }
        store.close_pool(pool.uuid).unwrap();
    }
    store.close().unwrap();
}

/// Opens all pools and follows the list from the first node of the first pool.
pub fn follow(store: &Embedded) -> Result<(), String> {
    let mut puddles = Vec::new();
    for (name, _) in POOLS {
        let pool = store.open_pool(name).map_err(|error| error.to_string())?;
        puddles.extend(open_all(store, pool));
    }
    follow_in(&puddles, POOLS.len() as u64 * NODES)
}

/// Follows the list from the first node of the first of the puddles.
pub fn follow_in(puddles: &[PuddleGrant], nodes: u64) -> Result<(), String> {
    let mut address = puddles[0].address + heap(&puddles[0]) + 16;
    for number in 0..nodes {
        let holds = |puddle: &&PuddleGrant| {
            (puddle.address..puddle.address + puddle.size).contains(&address)
        };
        let Some(puddle) = puddles.iter().find(holds) else {
            return Err(format!(
                "node {number} is said to be at {address:#x}, where nothing is"
            ));
        };
        let at = address - puddle.address;
        let value = word(puddle, at);
        if value != number % NODES {
            return Err(format!("node {number} has the value {value}"));
        }
        if puddle.kind == PuddleKind::Twin {
            let mut copies = [[0; 16]; 2];
            puddle.file.read_exact_at(&mut copies[0], at).unwrap();
            puddle
                .file
                .read_exact_at(&mut copies[1], puddle.size + at)
                .unwrap();
            if copies[0] != copies[1] {
                return Err(format!("the copies of node {number} differ"));
            }
        }
        address = word(puddle, at + 8);
    }
    Ok(())
}

/// Has a store make way for something that lies where it does.
pub fn displace(store: &Embedded) -> Result<(), Error> {
    displace_all(store, false)
}

pub fn displace_all(store: &Embedded, untyped_hold_no_pointers: bool) -> Result<(), Error> {
    let used = UsedElsewhere {
        ranges: store.occupied()?,
        untyped_hold_no_pointers,
    };
    store.avoid(&used)?;
    store.make_way()
}

fn meets(range: &AddressRange, puddle: &PuddleGrant) -> bool {
    range.address < puddle.address + puddle.size && puddle.address < range.address + range.size
}

pub fn version(path: &Path) -> u32 {
    let bytes = std::fs::read(path.join("registry")).unwrap();
    registry::parse(&bytes).unwrap().version
}

pub fn moves(path: &Path) -> usize {
    let bytes = std::fs::read(path.join("registry")).unwrap();
    registry::parse(&bytes).unwrap().state.moves.len()
}

#[test]
fn everything_is_found_where_it_has_moved() {
    let directory = scratch();
    let path = directory.path().join("store");
    lists(&path);
    let store = open(&path);
    let before = store.occupied().unwrap();
    // Nothing is in the way, so nothing moves.
    store.make_way().unwrap();
    assert_eq!(store.occupied().unwrap(), before);
    displace(&store).unwrap();
    assert_eq!(version(&path), 3, "no older build reads it");
    let mut puddles = Vec::new();
    for (name, _) in POOLS {
        let opened = open_all(&store, store.open_pool(name).unwrap());
        for puddle in &opened {
            assert!(!before.iter().any(|range| meets(range, puddle)), "{name}");
        }
        puddles.extend(opened);
    }
    follow_in(&puddles, POOLS.len() as u64 * NODES).unwrap();
    assert_eq!(moves(&path), 0, "all are rewritten");
    // Where things were is free again, and nothing is placed where the process has something else.
    let pool = store.create_pool("more", &spec()).unwrap();
    assert!(!before.iter().any(|range| meets(range, root(&pool))));
    store.close().unwrap();
    drop((store, puddles));
    let report = check(&path, &Default::default()).unwrap();
    assert_eq!(report.findings, []);
    follow(&open(&path)).unwrap();
}

/// The last move leaves a registry of the newer version, whose next copy needs the older one only.
#[test]
fn the_registrys_copy_can_be_made_anew_behind_the_last_move() {
    let directory = scratch();
    let path = directory.path().join("store");
    lists(&path);
    let store = open(&path);
    displace(&store).unwrap();
    follow(&store).unwrap();
    store.close().unwrap();
    drop(store);
    assert_eq!((version(&path), moves(&path)), (3, 0));
    std::fs::remove_file(path.join("registry.copy")).unwrap();
    let store = open(&path);
    assert_eq!(version(&path), 2);
    store.close().unwrap();
    drop(store);
    assert_eq!(check(&path, &Default::default()).unwrap().findings, []);
}

#[test]
fn a_pool_is_rewritten_when_it_is_opened_and_others_later() {
    let directory = scratch();
    let path = directory.path().join("store");
    lists(&path);
    let store = open(&path);
    displace(&store).unwrap();
    let pool = store.open_pool("hybrid").unwrap();
    assert_eq!(moves(&path), 6);
    let first = open_all(&store, pool);
    follow_in(&first, NODES).unwrap();
    store.close().unwrap();
    drop((store, first));
    assert_eq!(moves(&path), 6, "two of six are rewritten");
    // Whoever reads the files as they are is told, and says nothing of damage.
    let is_moving = |error: &Error| matches!(error, Error::StoreMoving { puddles: 4, .. });
    assert!(is_moving(&check(&path, &Default::default()).unwrap_err()));
    let copy = directory.path().join("copy");
    let refused = clone_store(&path, &copy, &CloneOptions::default()).unwrap_err();
    assert!(is_moving(&refused), "{refused}");
    let reader = ReadOnlyStore::open(&path).unwrap();
    let roots = reader
        .pools()
        .into_iter()
        .map(|pool| (pool.name, pool.root_puddle));
    for (name, puddle) in roots {
        match reader.puddle(puddle) {
            Ok(_) => assert_eq!(name, "hybrid"),
            Err(error) => assert!(is_moving(&error), "{name}: {error}"),
        }
    }
    drop(reader);
    // Another process goes on.
    let store = open(&path);
    follow(&store).unwrap();
    assert_eq!(moves(&path), 0);
    store.close().unwrap();
    drop(store);
    clone_store(&path, &copy, &CloneOptions::default()).unwrap();
    follow(&open(&copy)).unwrap();
}

#[test]
fn a_second_move_before_the_first_is_done_goes_on_from_there() {
    let directory = scratch();
    let path = directory.path().join("store");
    lists(&path);
    for round in 0..4 {
        let store = open(&path);
        displace(&store).unwrap();
        assert_eq!(moves(&path), 6 * (round + 1));
        // One pool is rewritten each time, others never were.
        let (name, _) = POOLS[round % 2];
        let opened = open_all(&store, store.open_pool(name).unwrap());
        follow_in(&opened, NODES - 1).unwrap();
        store.close().unwrap();
    }
    let store = open(&path);
    assert_eq!(store.finish_moving().unwrap(), 4);
    assert_eq!(moves(&path), 0);
    assert_eq!(store.finish_moving().unwrap(), 0);
    follow(&store).unwrap();
    store.close().unwrap();
    drop(store);
    assert_eq!(check(&path, &Default::default()).unwrap().findings, []);
}

#[test]
fn readers_and_seekers_of_garbage_get_what_is_rewritten() {
    let directory = scratch();
    let path = directory.path().join("store");
    lists(&path);
    let host = Host::open(&path, open_options()).unwrap();
    let first = host.client().unwrap();
    displace(&first).unwrap();
    let mut puddles = Vec::new();
    for (name, _) in POOLS {
        puddles.extend(open_all(&first, first.read_pool(name).unwrap()));
    }
    follow_in(&puddles, POOLS.len() as u64 * NODES).unwrap();
    let second = host.client().unwrap();
    // It must not move what the first one has open.
    let refused = displace(&second).unwrap_err();
    assert!(
        matches!(refused, Error::Unmovable { pool: Some(_), .. }),
        "{refused}"
    );
    first.close().unwrap();
    displace(&second).unwrap();
    assert_eq!(moves(&path), 6);
    let garbage = second.find_garbage(&Default::default()).unwrap();
    assert_eq!(garbage.groups, [], "every node is found");
    assert_eq!(moves(&path), 0);
}

#[test]
fn what_has_pointers_that_nobody_knows_does_not_move_unasked() {
    let directory = scratch();
    let path = directory.path().join("store");
    lists(&path);
    let store = open(&path);
    let pool = store.open_pool("hybrid").unwrap();
    let bytes = place_object(root(&pool), 200, 0, &[7; 24]);
    let unregistered = place_object(root(&pool), 204, 0xabcd, &bytes.to_le_bytes());
    store.close().unwrap();
    drop((store, pool));
    let before = snapshot(&path);
    let store = open(&path);
    let refused = displace(&store).unwrap_err();
    let Error::Unmovable {
        pool: Some(pool), ..
    } = &refused
    else {
        panic!("{refused}");
    };
    assert_eq!(pool, "hybrid");
    assert!(
        refused
            .to_string()
            .contains("2 objects of type 0x000000000000abcd"),
        "{refused}"
    );
    store.close().unwrap();
    drop(store);
    assert_eq!(snapshot(&path), before, "nothing has changed");
    let store = open(&path);
    displace_all(&store, true).unwrap();
    let pool = store.open_pool("hybrid").unwrap();
    let moved = root(&pool).address + heap(root(&pool));
    assert_eq!(word(root(&pool), heap(root(&pool)) + 204 * 256 + 16), bytes);
    assert_ne!(moved + 204 * 256 + 16, unregistered);
    store.close().unwrap();
    drop((store, pool));
    // Said once, it has to be said until all is rewritten: a file of then may be put back.
    let store = open(&path);
    store.finish_moving().unwrap();
    follow(&store).unwrap();
}

#[test]
fn nothing_moves_of_which_a_log_may_tell() {
    let directory = scratch();
    let path = directory.path().join("store");
    lists(&path);
    let store = open(&path);
    store.open_pool("hybrid").unwrap();
    let log = Space::new(&store).log(&store, 1);
    put(&log.parts[0], heap(&log.parts[0]), &[0]);
    drop((store, log));
    let store = open(&path);
    let before = store.occupied().unwrap();
    let refused = displace(&store).unwrap_err();
    assert!(matches!(&refused, Error::Unmovable { pool: Some(pool), .. } if pool == "hybrid"));
    assert_eq!(store.occupied().unwrap(), before);
    assert_eq!(version(&path), 2);
    store.accept_quarantined("hybrid").unwrap();
    displace(&store).unwrap();
    follow(&store).unwrap();
}

/// A pool whose file is missing costs the others nothing, and is rewritten once the file is back.
#[test]
fn a_file_that_is_missing_moves_when_it_is_back() {
    let directory = scratch();
    let path = directory.path().join("store");
    lists(&path);
    let reader = ReadOnlyStore::open(&path).unwrap();
    let pools = reader.pools();
    let lost: Vec<Uuid> = ["hybrid", "twin"]
        .map(|name| {
            pools
                .iter()
                .find(|pool| pool.name == name)
                .unwrap()
                .root_puddle
        })
        .into();
    drop(reader);
    let aside = |uuid: &Uuid| directory.path().join(uuid.to_string());
    let place = |uuid: &Uuid| path.join("puddles").join(uuid.to_string());
    for uuid in &lost {
        std::fs::rename(place(uuid), aside(uuid)).unwrap();
    }
    let store = open(&path);
    displace(&store).unwrap();
    let shadow = open_all(&store, store.open_pool("shadow").unwrap());
    follow_in(&shadow, NODES).unwrap();
    let missing = store.open_pool("hybrid").unwrap_err();
    assert!(matches!(missing, Error::FileMissing { .. }), "{missing}");
    for uuid in &lost {
        std::fs::rename(aside(uuid), place(uuid)).unwrap();
    }
    store.close().unwrap();
    drop((store, shadow));
    follow(&open(&path)).unwrap();
}

/// A pool that is gone is waited for by nobody.
#[test]
fn a_pool_that_is_removed_is_rewritten_no_more() {
    let directory = scratch();
    let path = directory.path().join("store");
    lists(&path);
    let store = open(&path);
    displace(&store).unwrap();
    for name in ["shadow", "twin"] {
        store.remove_pool(name).unwrap();
    }
    let pool = store.open_pool("hybrid").unwrap();
    assert_eq!(moves(&path), 6);
    follow_in(&open_all(&store, pool), NODES).unwrap();
    assert_eq!(moves(&path), 0);
}

fn explore_moving(skip: Option<Site>, rules: Rules, seed: u64) -> Result<Report, Failure> {
    let directory = scratch();
    let path = directory.path().join("store");
    lists(&path);
    let recorder = recorder(directory.path(), skip);
    let move_and_open = |pools: &[&str]| {
        let store = open(&path);
        displace(&store).unwrap();
        note("moved", 1);
        for name in pools {
            let pool: PoolGrant = store.open_pool(name).unwrap();
            let opened = open_all(&store, pool);
            // As a program that changes what it finds.
            put(&opened[0], heap(&opened[0]) + 16, &0_u64.to_le_bytes());
        }
        store.close().unwrap();
    };
    // The second move comes before the first is done.
    move_and_open(&["hybrid", "twin"]);
    move_and_open(&["twin", "shadow", "hybrid"]);
    let trace = recorder.stop();
    assert_eq!(trace.bypassed(), [] as [&str; 0]);
    let plan = Plan {
        random_images: 2,
        single_units_max: 3,
        exhaustive_max: 6,
        nested_one_in: 20,
        nested_depth: 1,
        nested_points_max: Some(6),
        points_max: match std::env::var_os("DURUM_CRASH_ALL") {
            Some(_) => None,
            None => Some(25),
        },
        ..Plan::new(rules, seed)
    };
    explore_with_recovery(
        &trace,
        &plan,
        |image| {
            let store = Embedded::open(&image.join("store"), open_options());
            let store = store.map_err(|error| error.to_string())?;
            follow(&store)?;
            store.close().map_err(|error| error.to_string())
        },
        |image, _| {
            let path = image.join("store");
            let store = Embedded::open(&path, open_options()).map_err(|error| error.to_string())?;
            follow(&store)?;
            store.close().map_err(|error| error.to_string())?;
            drop(store);
            match moves(&path) {
                0 => Ok(()),
                left => Err(format!("{left} moves are left though all was opened")),
            }
        },
    )
}

#[test]
fn moving_survives_power_cuts() {
    for (rules, seed) in [(Rules::Sectors, 31), (Rules::Lines, 32)] {
        match explore_moving(None, rules, seed) {
            Ok(report) => assert!(report.images > 30, "{report:?}"),
            Err(failure) => panic!("{failure}"),
        }
    }
}

/// Each of these, left out, is noticed.
#[test]
fn a_sync_of_moving_that_is_left_out_is_noticed() {
    for site in ["rewritten puddle", "registry commit"] {
        let noticed = [41, 42, 43]
            .into_iter()
            .any(|seed| explore_moving(Some(Site(site)), Rules::Sectors, seed).is_err());
        assert!(noticed, "{site}");
    }
}

#[test]
fn a_client_of_another_user_moves_nobody_elses_pools() {
    let directory = scratch();
    let path = directory.path().join("store");
    let host = Host::create(&path, &create_options()).unwrap();
    let own = host.client().unwrap();
    own.create_pool("a", &spec()).unwrap();
    own.close().unwrap();
    let caller = durum_service::Caller::new(4711, 4711, Vec::new());
    let (stranger, _file) = host.client_elsewhere(caller).unwrap();
    let refused = displace(&stranger).unwrap_err();
    assert!(matches!(refused, Error::NotPermitted { .. }), "{refused}");
    assert_eq!(version(&path), 2);
}
