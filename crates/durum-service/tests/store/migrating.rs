//! A pool is made anew under other types: every object is what it was, as the new types say, and pointers of all kinds
//! lead to where things are now; or something stands in the way, and nothing was changed.

mod doubts;
mod grown;
mod rebuilt;
mod together;

use std::path::Path;
use std::sync::{Arc, Mutex};

use durum_format::Uuid;
use durum_format::migrate::map;
use durum_format::types::Descriptor;
use durum_persist::Site;
use durum_persist::record::note;
use durum_persist::simulate::{Failure, Plan, Report, Rules as CrashRules, explore_with_recovery};
use durum_service::{
    Embedded, EngineKind, Error, MigrateOptions, MigrateReport, Migration, PoolSpec, Progress,
    PuddleGrant, PuddleOwner, ReadOnlyStore, Service, Stage, check, plan_migration,
};

use crate::support::{
    create, open, open_all, open_options, place_object, put, recorder, scratch, snapshot, word,
};

const ENGINES: [EngineKind; 3] = [EngineKind::Hybrid, EngineKind::Twin, EngineKind::Shadow];
/// Nodes of the list.
const NODES: u64 = 40;
const POOL: &str = "pool";

const HEAD: &str =
    "struct \"Head\"(32,8){0:\"first\":*1;8:\"inside\":*2;16:\"nodes\":u64;24:\"row\":*3;}\n";
const NODE: &str = "struct \"Node\"(40,8){0:\"value\":i64;8:\"at\":struct \"Point\"(8,4){0:\"x\":u32;4:\"y\":u32;};16:\"next\":*1;24:\"kept\":*4;32:\"hint\":~4;}\n";
const POINT: &str = "struct \"Point\"(8,4){0:\"x\":u32;4:\"y\":u32;}\n";
const ROW: &str = "[struct \"Point\"(8,4){0:\"x\":u32;4:\"y\":u32;};tail]\n";
const THING: &str = "struct \"counted Thing\"(24,8){0:\"strong\":u64;8:\"weak\":u64;16:\"value\":struct \"Thing\"(8,8){0:\"n\":u64;};}\n";

/// What the types of the pool are, with lines as those of the first: Head, Node, Point, row, thing.
fn types() -> [Descriptor; 4] {
    let whole = [HEAD, NODE, POINT, ROW, THING].concat();
    let head = Descriptor::parse(&whole).unwrap();
    let target = |line| head.target(line).unwrap();
    [head.clone(), target(1), target(3), target(4)]
}

/// A node gets another name and a field before others, a point one that moves `y`, a thing one behind.
const MAP: &str = r#"{
  "durum-map": 1,
  "types": {
    "Node": {"now": "Item", "fields": [
      {"name": "weight", "type": "u32", "default": 7}, "value", "at", "next", "kept", "hint"]},
    "Point": {"fields": [{"name": "z", "type": "u64", "default": 3}, "x", "y"]},
    "Thing": {"fields": ["n", {"name": "more", "type": "u64", "default": 9}]}
  }
}"#;

fn migration(text: &str) -> Migration<'static> {
    Migration {
        rules: Arc::new(map::parse(text).unwrap()),
        types: None,
        functions: None,
    }
}

fn migrate(store: &Embedded, text: &str) -> Result<MigrateReport, Error> {
    store.migrate_pool(POOL, &mut migration(text), &MigrateOptions::default())
}

fn words(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// Has both copies of a Twin pool's puddles say the same.
fn settle(engine: EngineKind, puddles: &[&PuddleGrant]) {
    if engine != EngineKind::Twin {
        return;
    }
    for puddle in puddles {
        let mut main = vec![0; (puddle.size - 1024) as usize];
        puddle.file.read_exact_at(&mut main, 1024).unwrap();
        put(puddle, puddle.size + 1024, &main);
    }
}

/// Makes a pool: a list through two puddles, of nodes of which each two keep one thing, a pointer into a node, a row
/// of points, and a thing whose value is gone.
fn make(store: &Embedded, engine: EngineKind) -> Uuid {
    let [head, node, row, thing] = types();
    store.register_type(head.id(), head.text()).unwrap();
    let pool = store.create_pool(POOL, &PoolSpec::new(engine)).unwrap();
    let kind = engine.puddle_kind();
    let more = store
        .create_puddle(PuddleOwner::Pool(pool.uuid), kind, 2 << 20)
        .unwrap();
    let puddles = [&pool.root, &more];
    let mut granule = 8;
    let mut placed = |at: usize, id: u64, bytes: &[u8]| {
        granule += 1;
        place_object(puddles[at], granule, id, bytes)
    };
    let husk = placed(0, thing.id(), &words(&[0, 1, 0]));
    let (mut next, mut kept, mut inside) = (0, 0, 0);
    for number in (0..NODES).rev() {
        if number % 2 == 1 {
            // Two strong pointers and one weak one lead to each but the last.
            kept = placed(0, thing.id(), &words(&[2, 1, number]));
        }
        let hint = match number {
            0 => husk,
            number if number % 2 == 1 => kept,
            _ => 0,
        };
        let point = number | (number + 1000) << 32;
        next = placed(
            (number % 2) as usize,
            node.id(),
            &words(&[number, point, next, kept, hint]),
        );
        if number == 5 {
            // To the point in it, and behind that to its `y`.
            inside = next + 8;
        }
    }
    let points: Vec<u64> = (0..5).map(|at| at | (at + 100) << 32).collect();
    let row = placed(1, row.id(), &words(&points));
    place_object(
        &pool.root,
        0,
        head.id(),
        &words(&[next, inside, NODES, row]),
    );
    settle(engine, &puddles);
    store.close_pool(pool.uuid).unwrap();
    pool.uuid
}

/// Reads words at addresses of an open pool, which are the same in both copies of a Twin pool.
struct Reader(Vec<PuddleGrant>);

impl Reader {
    fn of(store: &Embedded) -> Reader {
        Reader(open_all(store, store.open_pool(POOL).unwrap()))
    }

    fn at(&self, address: u64) -> Result<u64, String> {
        let holds = |puddle: &&PuddleGrant| {
            (puddle.address..puddle.address + puddle.size).contains(&address)
        };
        let puddle = self.0.iter().find(holds);
        let puddle = puddle.ok_or_else(|| format!("{address:#x} leads to nothing"))?;
        let at = address - puddle.address;
        let found = word(puddle, at);
        let is_twin = puddle.kind == EngineKind::Twin.puddle_kind();
        match is_twin && word(puddle, puddle.size + at) != found {
            true => Err(format!("the copies of {address:#x} differ")),
            false => Ok(found),
        }
    }

    fn root(&self) -> u64 {
        self.0[0].address + crate::support::heap(&self.0[0]) + 16
    }
}

/// What the pool holds before.
fn is_old(pool: &Reader) -> Result<(), String> {
    let mut node = pool.at(pool.root())?;
    for number in 0..NODES {
        if pool.at(node)? != number {
            return Err(format!("node {number} has the value {}", pool.at(node)?));
        }
        node = pool.at(node + 16)?;
    }
    expect("the end", node, 0)
}

fn expect(what: &str, found: u64, wanted: u64) -> Result<(), String> {
    match found == wanted {
        true => Ok(()),
        false => Err(format!("{what} is {found:#x}, not {wanted:#x}")),
    }
}

/// What it holds under the types of [`MAP`], with such a number of nodes.
fn is_new(pool: &Reader, nodes: u64) -> Result<(), String> {
    let root = pool.root();
    expect("the number of nodes", pool.at(root + 16)?, nodes)?;
    let mut node = pool.at(root)?;
    let low = |word: u64| word & 0xffff_ffff;
    for number in 0..NODES {
        // weight u32, value, Point { z, x, y }, next, kept, hint
        expect("a weight", low(pool.at(node)?), 7)?;
        expect("a value", pool.at(node + 8)?, number)?;
        expect("a z", pool.at(node + 16)?, 3)?;
        let point = number | (number + 1000) << 32;
        expect("a point", pool.at(node + 24)?, point)?;
        if number == 5 {
            expect("the pointer into a node", pool.at(root + 8)?, node + 16)?;
        }
        let (kept, hint) = (pool.at(node + 40)?, pool.at(node + 48)?);
        expect("what is kept", pool.at(kept + 16)?, number | 1)?;
        expect("its default", pool.at(kept + 24)?, 9)?;
        expect("its strong count", pool.at(kept)?, 2)?;
        expect("its weak count", pool.at(kept + 8)?, 1)?;
        match number {
            0 => {
                let husk = (pool.at(hint)?, pool.at(hint + 8)?);
                expect("a husk's strong count", husk.0, 0)?;
                expect("a husk's weak count", husk.1, 1)?;
                expect("a husk's value", pool.at(hint + 24)?, 0)?;
            }
            number => expect("a hint", hint, if number % 2 == 1 { kept } else { 0 })?,
        }
        node = pool.at(node + 32)?;
    }
    expect("the end", node, 0)?;
    let row = pool.at(root + 24)?;
    for at in 0..5 {
        expect("a z of the row", pool.at(row + 16 * at)?, 3)?;
        let point = at | (at + 100) << 32;
        expect("a point of the row", pool.at(row + 16 * at + 8)?, point)?;
    }
    Ok(())
}

fn is_clean(path: &Path) {
    assert_eq!(check(path, &Default::default()).unwrap().findings, []);
}

#[test]
fn every_object_is_what_it_was_and_pointers_lead_to_where_things_are() {
    for engine in ENGINES {
        let directory = scratch();
        let path = directory.path().join("store");
        let store = create(&path);
        let uuid = make(&store, engine);
        store.close().unwrap();
        drop(store);
        is_clean(&path);
        let before = snapshot(&path);
        let reader = ReadOnlyStore::open(&path).unwrap();
        let options = MigrateOptions::default();
        let plan = plan_migration(&reader, POOL, &mut migration(MAP), &options).unwrap();
        drop(reader);
        assert_eq!(snapshot(&path), before, "a plan writes nothing");
        assert_eq!(plan.refusals, []);
        let told: Vec<(&str, &str, u64)> = (plan.types.iter())
            .map(|ty| (ty.name.as_str(), ty.now.as_str(), ty.objects))
            .collect();
        assert!(told.contains(&("Node", "Item", NODES)), "{told:?}");
        let things = NODES / 2 + 1;
        assert!(
            told.contains(&("counted Thing", "counted Thing", things)),
            "{told:?}"
        );

        let store = open(&path);
        let told = Arc::new(Mutex::new(Vec::new()));
        let steps = told.clone();
        let tell = move |it: Progress| steps.lock().unwrap().push((it.stage, it.done, it.total));
        let options = MigrateOptions {
            progress: Some(Arc::new(tell)),
            ..MigrateOptions::default()
        };
        let migrated = store.migrate_pool(POOL, &mut migration(MAP), &options);
        assert_eq!(migrated.unwrap(), plan);
        let told = told.lock().unwrap();
        assert!(told.is_sorted_by_key(|(_, done, _)| *done), "{told:?}");
        let total = 2 * plan.objects;
        assert_eq!(told.last(), Some(&(Stage::Migrate, total, total)));
        is_new(&Reader::of(&store), NODES).unwrap();
        let pool = &store.pools().unwrap()[0];
        assert_eq!(pool.uuid, uuid, "it is the same pool");
        store.close().unwrap();
        drop(store);
        is_clean(&path);
        let files = std::fs::read_dir(path.join("puddles")).unwrap().count();
        assert_eq!(files, plan.puddles as usize, "the old ones are gone");
        let store = open(&path);
        is_new(&Reader::of(&store), NODES).unwrap();
        // What it is it can be made anew.
        let back = r#"{"durum-map": 1, "types": {
            "Item": {"now": "Node", "fields": ["value", "at", "next", "kept", "hint"]},
            "Point": {"fields": ["x", "y"]},
            "Thing": {"fields": ["n"]}}}"#;
        for pool in store.pools().unwrap() {
            store.close_pool(pool.uuid).unwrap();
        }
        let report = migrate(&store, back).unwrap();
        let [_, node, ..] = types();
        assert!(
            report.types.iter().any(|ty| ty.new_id == node.id()),
            "{report:?}"
        );
        is_old(&Reader::of(&store)).unwrap();
    }
}

/// Everything is told at once, and nothing is written.
#[test]
fn what_stands_in_the_way_is_told_and_nothing_has_changed() {
    let directory = scratch();
    let path = directory.path().join("store");
    let store = create(&path);
    make(&store, EngineKind::Shadow);
    store.close().unwrap();
    drop(store);
    let before = snapshot(&path);
    let text = r#"{"durum-map": 1, "types": {
        "Node": {"fields": ["value", "next", {"name": "hint", "was": "hint"}, {"name": "deadline", "type": "u64"}]},
        "Thing": {"fields": [{"name": "n", "type": "u32"}]},
        "Task": {"now": "Job"}}}"#;
    let reader = ReadOnlyStore::open(&path).unwrap();
    let options = MigrateOptions::default();
    let plan = plan_migration(&reader, POOL, &mut migration(text), &options).unwrap();
    drop(reader);
    let told: Vec<String> = plan.refusals.iter().map(ToString::to_string).collect();
    let says = |what: &str| {
        assert!(
            told.iter().any(|told| told.contains(what)),
            "{what}: {told:#?}"
        )
    };
    says("Node.deadline: it is new, and has no default");
    says("counted Thing.value.n: u64, now u32");
    says("Task: no object of the pool has such a type");
    let store = open(&path);
    let refused = migrate(&store, text).unwrap_err();
    assert!(
        matches!(&refused, Error::MigrationRefused { reasons, .. } if *reasons == told),
        "{refused}"
    );
    store.close().unwrap();
    drop(store);

    // What objects hold is told once the types are in order.
    let text = r#"{"durum-map": 1, "types": {
        "Node": {"fields": ["value", "next", "hint"]}}}"#;
    let store = open(&path);
    let refused = migrate(&store, text).unwrap_err().to_string();
    let part = format!(
        "Node.kept: it goes, and has pointers: what they lead to would be lost, or have to be reached otherwise; say that it may be forgotten, if so ({NODES} objects)"
    );
    assert!(refused.contains(&part), "{refused}");
    let part = "Node.at: a pointer leads to it, and it is gone (that of a Head) (1 object)";
    assert!(refused.contains(part), "{refused}");
    store.close().unwrap();
    drop(store);
    let after = snapshot(&path);
    assert!(after.keys().eq(before.keys()), "no file came or went");
    let puddles = |files: &std::collections::BTreeMap<std::path::PathBuf, Vec<u8>>| {
        let files = files.iter().filter(|(name, _)| name.starts_with("puddles"));
        files.map(|(_, bytes)| bytes.clone()).collect::<Vec<_>>()
    };
    assert!(puddles(&after) == puddles(&before), "and none was written");
    is_old(&Reader::of(&open(&path))).unwrap();
}

#[test]
fn pointers_of_other_pools_and_objects_of_unknown_type_are_told_by_name() {
    let directory = scratch();
    let path = directory.path().join("store");
    let store = create(&path);
    make(&store, EngineKind::Hybrid);
    let pool = Reader::of(&store);
    let first = pool.at(pool.root()).unwrap();
    drop(pool);
    for pool in store.pools().unwrap() {
        store.close_pool(pool.uuid).unwrap();
    }
    let [head, ..] = types();
    let other = store
        .create_pool("other", &PoolSpec::new(EngineKind::Shadow))
        .unwrap();
    place_object(&other.root, 0, head.id(), &words(&[first, 0, 0, 0]));
    let busy = migrate(&store, MAP).unwrap_err();
    assert!(
        matches!(&busy, Error::PoolOpen { name, .. } if name == "other"),
        "{busy}"
    );
    store.close_pool(other.uuid).unwrap();
    let refused = migrate(&store, MAP).unwrap_err().to_string();
    let part = "pool \"other\", Head: a pointer of it leads into the pool; both are made anew together by `durum migrate --with`, `Migration::with` or `durum_pools_migrate` (1 object)";
    assert!(refused.contains(part), "{refused}");
    store.remove_pool("other").unwrap();

    let pool = store.open_pool(POOL).unwrap();
    place_object(&pool.root, 200, 0, &words(&[1, 2, 3]));
    store.close_pool(pool.uuid).unwrap();
    let refused = migrate(&store, MAP).unwrap_err().to_string();
    assert!(
        refused.contains("objects of unknown type: there are 1"),
        "{refused}"
    );
    let options = MigrateOptions {
        untyped_hold_no_pointers: true,
        ..MigrateOptions::default()
    };
    let report = store
        .migrate_pool(POOL, &mut migration(MAP), &options)
        .unwrap();
    assert_eq!(report.untyped_objects, 1);
    is_new(&Reader::of(&store), NODES).unwrap();
}

/// What is counted is what leads there then, whatever was counted before.
#[test]
fn counts_are_those_of_the_pointers_that_are_there() {
    let directory = scratch();
    let path = directory.path().join("store");
    let store = create(&path);
    make(&store, EngineKind::Shadow);
    let pool = Reader::of(&store);
    // One that was counted wrongly: a program has died before it could count, say.
    let first = pool.at(pool.root()).unwrap();
    let kept = pool.at(first + 24).unwrap();
    let puddle = &pool.0[0];
    put(puddle, kept - puddle.address, &words(&[9, 9]));
    // What a program has dropped and nobody has counted off yet is counted off by the next one.
    let lost = "struct \"durum lost reference\"(16,8){0:\"object\":*any;8:\"is_weak\":u64;}\n";
    let lost = Descriptor::parse(lost).unwrap();
    store.register_type(lost.id(), lost.text()).unwrap();
    place_object(puddle, 300, lost.id(), &words(&[kept, 1]));
    place_object(puddle, 302, lost.id(), &words(&[kept, 0]));
    drop(pool);
    for pool in store.pools().unwrap() {
        store.close_pool(pool.uuid).unwrap();
    }
    // The weak pointers go, which keep nothing.
    let text =
        r#"{"durum-map": 1, "types": {"Node": {"fields": ["value", "at", "next", "kept"]}}}"#;
    migrate(&store, text).unwrap();
    let pool = Reader::of(&store);
    let mut node = pool.at(pool.root()).unwrap();
    for number in 0..NODES {
        let kept = pool.at(node + 24).unwrap();
        let counts = (pool.at(kept).unwrap(), pool.at(kept + 8).unwrap());
        assert_eq!(counts, if number < 2 { (3, 1) } else { (2, 0) });
        node = pool.at(node + 16).unwrap();
    }
}

/// Crashes a migration of what `make` has made. `judge` says what is wrong with a store that it finds, given whether
/// the migration was told to be over, or else how many puddles its pools have: those and no other are there then.
fn crashes_of(
    make: impl FnOnce(&Embedded),
    migrate: impl FnOnce(&Embedded),
    judge: impl Fn(&Embedded, bool) -> Result<usize, String> + Sync,
    skip: Option<Site>,
    seed: u64,
) -> Result<Report, Failure> {
    let directory = scratch();
    let path = directory.path().join("store");
    let store = create(&path);
    make(&store);
    store.close().unwrap();
    drop(store);
    let recorder = recorder(directory.path(), skip);
    let store = open(&path);
    migrate(&store);
    note("migrated", 1);
    store.close().unwrap();
    drop(store);
    let trace = recorder.stop();
    let plan = Plan {
        random_images: 1,
        single_units_max: 2,
        exhaustive_max: 4,
        nested_one_in: 30,
        nested_depth: 1,
        nested_points_max: Some(2),
        ..Plan::new(CrashRules::Sectors, seed)
    };
    let reopened = |image: &Path| {
        let store = Embedded::open(&image.join("store"), open_options());
        store.map_err(|error| error.to_string())
    };
    explore_with_recovery(
        &trace,
        &plan,
        |image| reopened(image)?.close().map_err(|error| error.to_string()),
        |image, point| {
            let store = reopened(image)?;
            let puddles = judge(&store, point.last_note("migrated").is_some())?;
            store.close().map_err(|error| error.to_string())?;
            drop(store);
            let path = image.join("store");
            let report = check(&path, &Default::default()).map_err(|error| error.to_string())?;
            let files = std::fs::read_dir(path.join("puddles")).unwrap().count();
            match report.findings.is_empty() && files == puddles {
                true => Ok(()),
                false => Err(format!(
                    "{files} files of {puddles} puddles, {:?}",
                    report.findings
                )),
            }
        },
    )
}

fn crashes(engine: EngineKind, skip: Option<Site>, seed: u64) -> Result<Report, Failure> {
    let migrate = |store: &Embedded| {
        migrate(store, MAP).unwrap();
    };
    crashes_by(migrate, NODES, engine, skip, seed)
}

/// Crashes what makes the pool the new one, which has so many nodes then.
fn crashes_by(
    migrate: impl Fn(&Embedded),
    nodes: u64,
    engine: EngineKind,
    skip: Option<Site>,
    seed: u64,
) -> Result<Report, Failure> {
    let judge = |store: &Embedded, is_over: bool| {
        let pool = Reader::of(store);
        // The first word of the first node is its value, or its weight.
        let is_migrated = pool.at(pool.at(pool.root())?)? & 0xff == 7;
        match (is_migrated, is_over) {
            (false, true) => return Err("a migration that was told is gone".to_owned()),
            (true, _) => is_new(&pool, nodes)?,
            (false, false) => is_old(&pool)?,
        }
        Ok(pool.0.len())
    };
    let make = |store: &Embedded| {
        make(store, engine);
    };
    crashes_of(make, migrate, judge, skip, seed)
}

#[test]
fn power_cuts_leave_the_old_pool_or_the_new_one() {
    for (engine, seed) in ENGINES.into_iter().zip(1..) {
        let report = crashes(engine, None, seed).unwrap();
        println!("{engine:?}: {report:?}");
        assert!(report.images > 30, "{report:?}");
    }
}

/// Each sync that a migration needs is missed if it is left out.
#[test]
fn a_sync_that_is_left_out_is_noticed() {
    for site in ["migrated puddle", "names of migrated puddles"] {
        let report = crashes(EngineKind::Shadow, Some(Site(site)), 7);
        assert!(report.is_err(), "{site}");
    }
}
