//! What the program builds anew in new puddles is there with the rest, or nothing is.

use durum_format::migrate::{Rebuilt, Rule};
use durum_service::{Functions, NewPuddles, OldPuddle, Room};

use super::*;

/// What the program says of the number of nodes.
const BUILT: u64 = NODES + 1000;

/// Builds heads anew.
#[derive(Default)]
struct Builder {
    /// Puddles that were there to be looked at.
    puddles: usize,
    built: u64,
    refuses: bool,
    /// Bytes of room that it says it needs.
    room: u64,
}

impl Functions for Builder {
    fn begin(&mut self, _: &[OldPuddle<'_>]) -> Result<(), Error> {
        Ok(())
    }

    fn make(&mut self, _: usize, _: u64, _: &[u8], _: &mut [u8]) -> Result<(), String> {
        Err("no function makes anything".to_owned())
    }

    fn begin_rebuilding(&mut self, puddles: &[OldPuddle<'_>]) -> Result<(), Error> {
        self.puddles = puddles.len();
        Ok(())
    }

    fn room(&self, function: usize, map: &[u8], most: u64) -> u64 {
        assert_eq!(function, 3);
        assert!(map.len() >= 32, "a head, of {} bytes", map.len());
        assert!(most >= 2 << 20, "a pool, of {most} bytes");
        self.room
    }

    fn rebuild(
        &mut self,
        function: usize,
        address: u64,
        new: &mut NewPuddles,
        room: &mut Room,
    ) -> Result<Result<(), String>, Error> {
        assert_eq!(function, 3);
        assert_eq!(new.object(address)?, Some(32));
        assert_eq!(new.object(address + 8)?, None, "no object begins there");
        assert_eq!(new.object(8)?, None, "nothing is there");
        for (at, size) in [(8, 1), (address & !0xffff, 1), (address, 64 << 20)] {
            let refused = new.write(at, &vec![1; size]).unwrap_err();
            assert!(matches!(refused, Error::Options { .. }), "{refused}");
        }
        for bytes in [100, 3 << 20, 10] {
            let room = room.zeroed(bytes)?;
            assert!(room.len() == bytes && room.iter().all(|byte| *byte == 0));
            room.fill(1);
        }
        assert!(new.claim(new.bytes()), "maps own what there is");
        assert!(!new.claim(1), "and no more");
        self.built += 1;
        if self.refuses {
            return Ok(Err("it has no cover".to_owned()));
        }
        new.write(address + 16, &BUILT.to_le_bytes())?;
        Ok(Ok(()))
    }
}

/// As [`MAP`] says, and heads are built anew.
fn migration(builder: Option<&mut Builder>) -> Migration<'_> {
    let mut rules = map::parse(MAP).unwrap();
    let rule = Rule {
        rebuilt: Some(Rebuilt::Map(3)),
        ..Rule::default()
    };
    rules.types.insert("Head".to_owned(), rule);
    Migration {
        rules: Arc::new(rules),
        types: None,
        functions: builder.map(|builder| builder as &mut dyn Functions),
    }
}

fn migrate(store: &Embedded, builder: &mut Builder) -> Result<MigrateReport, Error> {
    store.migrate_pool(
        POOL,
        &mut migration(Some(builder)),
        &MigrateOptions::default(),
    )
}

#[test]
fn what_is_built_anew_is_there_in_each_copy() {
    for engine in ENGINES {
        let directory = scratch();
        let path = directory.path().join("store");
        let store = create(&path);
        make(&store, engine);
        let mut builder = Builder::default();
        let report = migrate(&store, &mut builder).unwrap();
        assert_eq!((report.rebuilt_maps, builder.built), (1, 1));
        assert_eq!(builder.puddles, report.puddles as usize);
        // Each word is compared with that of the other copy of a Twin pool.
        is_new(&Reader::of(&store), BUILT).unwrap();
        store.close().unwrap();
        drop(store);
        is_clean(&path);
    }
}

#[test]
fn what_cannot_be_built_leaves_the_old_pool() {
    let directory = scratch();
    let path = directory.path().join("store");
    let store = create(&path);
    make(&store, EngineKind::Shadow);
    store.close().unwrap();
    drop(store);
    let mut builder = Builder {
        refuses: true,
        ..Builder::default()
    };
    let before = snapshot(&path);
    let reader = ReadOnlyStore::open(&path).unwrap();
    let options = MigrateOptions::default();
    let plan = plan_migration(&reader, POOL, &mut migration(Some(&mut builder)), &options);
    let told: Vec<String> = (plan.unwrap().refusals.iter())
        .map(ToString::to_string)
        .collect();
    assert_eq!(told, ["Head: it has no cover (1 object)"]);
    drop(reader);
    assert_eq!(snapshot(&path), before, "a plan leaves nothing");
    let store = open(&path);
    let refused = migrate(&store, &mut builder).unwrap_err();
    let Error::MigrationRefused { reasons, .. } = refused else {
        panic!("{refused}");
    };
    assert_eq!(reasons, ["Head: it has no cover (1 object)"]);
    is_old(&Reader::of(&store)).unwrap();
    store.close().unwrap();
    drop(store);
    is_clean(&path);
    let files = std::fs::read_dir(path.join("puddles")).unwrap().count();
    assert_eq!(files, 2, "nothing is left of the new ones");
}

/// What is not there at the end is asked for at the beginning.
#[test]
fn room_for_the_largest_map_is_looked_for_before_anything_is_written() {
    let directory = scratch();
    let path = directory.path().join("store");
    let store = create(&path);
    make(&store, EngineKind::Shadow);
    store.close().unwrap();
    drop(store);
    let options = MigrateOptions::default();
    let plan = |room| {
        let mut builder = Builder {
            room,
            ..Builder::default()
        };
        let reader = ReadOnlyStore::open(&path).unwrap();
        let plan = plan_migration(&reader, POOL, &mut migration(Some(&mut builder)), &options);
        (plan, builder.built)
    };
    let (least, more) = (plan(0).0.unwrap(), plan((5 << 20) + 1).0.unwrap());
    assert_eq!(more.scratch_bytes - least.scratch_bytes, 5 << 20);
    let before = snapshot(&path);
    let is_full = |error: &Error| matches!(error, Error::StorageFull { .. });
    let (refused, built) = plan(1 << 60);
    assert!(is_full(&refused.unwrap_err()));
    assert_eq!(built, 0, "nothing is tried");
    assert_eq!(snapshot(&path), before, "nothing is written");
    let store = open(&path);
    let mut builder = Builder {
        room: 1 << 60,
        ..Builder::default()
    };
    assert!(is_full(&migrate(&store, &mut builder).unwrap_err()));
    assert_eq!(builder.built, 0, "nothing is made");
    is_old(&Reader::of(&store)).unwrap();
    store.close().unwrap();
    drop(store);
    let store = open(&path);
    assert_eq!(
        migrate(&store, &mut Builder::default())
            .unwrap()
            .rebuilt_maps,
        1
    );
}

/// Nothing is built without a program.
#[test]
fn a_map_alone_says_of_nothing_that_it_is_built() {
    let directory = scratch();
    let path = directory.path().join("store");
    let store = create(&path);
    make(&store, EngineKind::Shadow);
    let refused = store.migrate_pool(POOL, &mut migration(None), &MigrateOptions::default());
    let told = refused.unwrap_err().to_string();
    let part = "maps: there is no function that builds them anew";
    assert!(told.contains(part), "{told}");
    is_old(&Reader::of(&store)).unwrap();
}

fn crashes(engine: EngineKind, skip: Option<Site>, seed: u64) -> Result<Report, Failure> {
    let migrate = |store: &Embedded| {
        migrate(store, &mut Builder::default()).unwrap();
    };
    crashes_by(migrate, BUILT, engine, skip, seed)
}

#[test]
fn power_cuts_leave_the_old_pool_or_what_was_built() {
    for (engine, seed) in ENGINES.into_iter().zip(11..) {
        let report = crashes(engine, None, seed).unwrap();
        println!("{engine:?}: {report:?}");
        assert!(report.images > 30, "{report:?}");
    }
}

#[test]
fn a_sync_of_what_was_built_that_is_left_out_is_noticed() {
    let report = crashes(EngineKind::Shadow, Some(Site("rebuilt maps")), 7);
    assert!(report.is_err());
}
