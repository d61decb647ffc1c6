//! Pools that lead into each other are made anew together: pointers between them follow, and both are what they were or
//! both the new ones.

use durum_service::{Caller, Host, Quota};

use super::*;

const OTHER: &str = "other";

/// Two pools with a list of one node each: what comes behind a node, and a pointer into one, lead to the other pool.
fn make_pair(store: &Embedded, engines: [EngineKind; 2]) {
    let [head, node, _, thing] = types();
    store.register_type(head.id(), head.text()).unwrap();
    let [pool, other] = [(POOL, engines[0]), (OTHER, engines[1])]
        .map(|(name, engine)| store.create_pool(name, &PoolSpec::new(engine)).unwrap());
    let first = place_object(&pool.root, 9, node.id(), &words(&[1, 3 | 4 << 32, 0, 0, 0]));
    let kept = place_object(&other.root, 9, thing.id(), &words(&[1, 1, 8]));
    let second = [2, 5 | 6 << 32, first, kept, kept];
    let second = place_object(&other.root, 10, node.id(), &words(&second));
    put(
        &pool.root,
        first + 16 - pool.root.address,
        &words(&[second]),
    );
    place_object(&pool.root, 0, head.id(), &words(&[first, second + 8, 1, 0]));
    place_object(
        &other.root,
        0,
        head.id(),
        &words(&[second, first + 8, 1, 0]),
    );
    for (engine, pool) in engines.into_iter().zip([pool, other]) {
        settle(engine, &[&pool.root]);
        store.close_pool(pool.uuid).unwrap();
    }
}

fn with(names: &[&str]) -> MigrateOptions {
    MigrateOptions {
        with: names.iter().map(|name| (*name).to_owned()).collect(),
        ..MigrateOptions::default()
    }
}

/// Reads both pools.
struct Pair([Reader; 2]);

impl Pair {
    fn of(store: &Embedded) -> Pair {
        let opened = |name| Reader(open_all(store, store.open_pool(name).unwrap()));
        Pair([POOL, OTHER].map(opened))
    }

    fn at(&self, address: u64) -> Result<u64, String> {
        self.0[0].at(address).or_else(|_| self.0[1].at(address))
    }

    fn is_migrated(&self) -> Result<[bool; 2], String> {
        let [one, other] = [0, 1].map(|pool| {
            let first = self.0[pool].at(self.0[pool].root())?;
            // Its weight, or its value.
            Ok::<bool, String>(self.at(first)? & 0xff == 7)
        });
        Ok([one?, other?])
    }

    /// What both hold, before or behind.
    fn holds(&self, is_new: bool) -> Result<(), String> {
        // Where in a node are value, point (and `x` in it), next, kept and hint.
        let [value, point, x, next, kept, hint] = match is_new {
            true => [8, 16, 24, 32, 40, 48],
            false => [0, 8, 8, 16, 24, 32],
        };
        let roots = [0, 1].map(|pool| self.0[pool].root());
        let nodes = [self.at(roots[0])?, self.at(roots[1])?];
        for (pool, points) in [(0, 3 | 4 << 32), (1, 5 | 6 << 32)] {
            let (node, other) = (nodes[pool], nodes[1 - pool]);
            expect("a value", self.0[pool].at(node + value)?, pool as u64 + 1)?;
            expect("a point", self.at(node + x)?, points)?;
            expect("what comes behind", self.at(node + next)?, other)?;
            let inside = self.at(roots[pool] + 8)?;
            expect("a pointer into the other pool", inside, other + point)?;
        }
        let thing = self.0[1].at(nodes[1] + kept)?;
        expect("a hint", self.at(nodes[1] + hint)?, thing)?;
        let counts = [self.at(thing)?, self.at(thing + 8)?, self.at(thing + 16)?];
        match counts == [1, 1, 8] {
            true => Ok(()),
            false => Err(format!("counts and a value are {counts:?}")),
        }
    }
}

#[test]
fn pointers_between_pools_follow() {
    for engines in [
        [EngineKind::Shadow, EngineKind::Shadow],
        [EngineKind::Hybrid, EngineKind::Twin],
        [EngineKind::Twin, EngineKind::Shadow],
    ] {
        let directory = scratch();
        let path = directory.path().join("store");
        let store = create(&path);
        make_pair(&store, engines);
        for (name, other) in [(POOL, OTHER), (OTHER, POOL)] {
            let alone = store.migrate_pool(name, &mut migration(MAP), &with(&[]));
            let refused = alone.unwrap_err().to_string();
            let part = format!(
                "pool \"{other}\", Node: a pointer of it leads into the pool; both are made anew together by `durum migrate --with`"
            );
            assert!(refused.contains(&part), "{refused}");
        }
        store.close().unwrap();
        drop(store);
        let before = snapshot(&path);
        let reader = ReadOnlyStore::open(&path).unwrap();
        let plan = plan_migration(&reader, POOL, &mut migration(MAP), &with(&[OTHER])).unwrap();
        drop(reader);
        assert_eq!(snapshot(&path), before, "a plan writes nothing");
        assert_eq!(plan.refusals, []);
        assert_eq!((plan.objects, plan.puddles), (5, 2));
        assert_eq!(
            (plan.pool.as_str(), &plan.with[..]),
            (POOL, &[OTHER.to_owned()][..])
        );

        let store = open(&path);
        let pools = store.pools().unwrap();
        let report = store.migrate_pool(POOL, &mut migration(MAP), &with(&[OTHER]));
        assert_eq!(report.unwrap(), plan);
        let pair = Pair::of(&store);
        assert_eq!(pair.is_migrated(), Ok([true; 2]));
        pair.holds(true).unwrap();
        let now = store.pools().unwrap();
        for (pool, before) in now.iter().zip(&pools) {
            assert_eq!((pool.uuid, &pool.name), (before.uuid, &before.name));
            assert_eq!(pool.engine, before.engine);
        }
        store.close().unwrap();
        drop((pair, store));
        is_clean(&path);
        let files = std::fs::read_dir(path.join("puddles")).unwrap().count();
        assert_eq!(files, 2, "the old ones are gone");
        Pair::of(&open(&path)).holds(true).unwrap();
    }
}

/// A pool without objects has a root puddle, wherever it stands among the others.
#[test]
fn a_pool_without_objects_stays_one() {
    for names in [["empty", OTHER], [OTHER, "empty"]] {
        let directory = scratch();
        let path = directory.path().join("store");
        let store = create(&path);
        make_pair(&store, [EngineKind::Shadow; 2]);
        let empty = store
            .create_pool("empty", &PoolSpec::new(EngineKind::Twin))
            .unwrap();
        store.close_pool(empty.uuid).unwrap();
        let report = store.migrate_pool(POOL, &mut migration(MAP), &with(&names));
        assert_eq!(report.unwrap().puddles, 3);
        Pair::of(&store).holds(true).unwrap();
        let opened = store.open_pool("empty").unwrap();
        assert_eq!(opened.root.size, 2 << 20);
    }
}

#[test]
fn a_pool_that_is_missing_open_or_named_twice_is_refused() {
    let directory = scratch();
    let store = create(&directory.path().join("store"));
    make_pair(&store, [EngineKind::Shadow; 2]);
    let refused = |names: &[&str]| {
        let refused = store.migrate_pool(POOL, &mut migration(MAP), &with(names));
        refused.unwrap_err()
    };
    assert!(matches!(refused(&["none"]), Error::PoolMissing { .. }));
    for twice in [&[POOL][..], &[OTHER, OTHER]] {
        let told = refused(twice).to_string();
        assert!(told.contains("is named twice"), "{told}");
    }
    let opened = store.open_pool(OTHER).unwrap();
    let told = refused(&[OTHER]);
    assert!(
        matches!(&told, Error::PoolOpen { name, .. } if name == OTHER),
        "{told}"
    );
    store.close_pool(opened.uuid).unwrap();
    Pair::of(&store).holds(false).unwrap();
}

/// What they need is asked of their owner's quota at once: the old puddles are there until the new ones are.
#[test]
fn pools_of_one_user_share_its_quota() {
    const ALICE: u32 = 61_001;
    // Both pools have one puddle, and get one.
    for (limit, is_enough) in [(3, false), (4, true)] {
        let directory = scratch();
        let path = directory.path().join("store");
        create(&path).close().unwrap();
        let mut options = open_options();
        options.is_service = true;
        options.quotas.set(Some(ALICE), Quota::Puddles, limit);
        let host = Host::open(&path, options).unwrap();
        let caller = Caller::new(ALICE, ALICE, Vec::new());
        let (alice, _lock) = host.client_elsewhere(caller).unwrap();
        make_pair(&alice, [EngineKind::Shadow; 2]);
        let migrated = alice.migrate_pool(POOL, &mut migration(MAP), &with(&[OTHER]));
        match is_enough {
            true => assert_eq!(migrated.unwrap().puddles, 2),
            false => assert!(
                matches!(migrated, Err(Error::QuotaExceeded { more: 2, .. })),
                "{migrated:?}"
            ),
        }
        Pair::of(&alice).holds(is_enough).unwrap();
    }
}

fn crashes_of_pair(
    engines: [EngineKind; 2],
    skip: Option<Site>,
    seed: u64,
) -> Result<Report, Failure> {
    let judge = |store: &Embedded, is_over: bool| {
        let pair = Pair::of(store);
        let is_new = match (pair.is_migrated()?, is_over) {
            ([false, false], true) => return Err("a migration that was told is gone".to_owned()),
            ([one, other], _) if one != other => {
                return Err("one pool is the old one, and one the new one".to_owned());
            }
            ([is_new, _], _) => is_new,
        };
        pair.holds(is_new)?;
        Ok(pair.0.iter().map(|reader| reader.0.len()).sum())
    };
    let migrate = |store: &Embedded| {
        let migrated = store.migrate_pool(POOL, &mut migration(MAP), &with(&[OTHER]));
        migrated.unwrap();
    };
    let make = |store: &Embedded| make_pair(store, engines);
    crashes_of(make, migrate, judge, skip, seed)
}

#[test]
fn power_cuts_leave_both_old_pools_or_both_new_ones() {
    for (seed, engine) in ENGINES.into_iter().enumerate() {
        let engines = [engine, ENGINES[(seed + 1) % 3]];
        let report = crashes_of_pair(engines, None, seed as u64 + 1).unwrap();
        println!("{engines:?}: {report:?}");
        assert!(report.images > 30, "{report:?}");
    }
}

#[test]
fn a_sync_of_both_that_is_left_out_is_noticed() {
    for site in ["migrated puddle", "names of migrated puddles"] {
        let engines = [EngineKind::Shadow, EngineKind::Hybrid];
        assert!(
            crashes_of_pair(engines, Some(Site(site)), 7).is_err(),
            "{site}"
        );
    }
}
