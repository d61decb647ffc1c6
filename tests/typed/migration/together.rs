//! Pools of one store that are made anew together: all of them, or none.

use std::path::Path;

use durum::typed::*;
use durum::{Store, StoreOptions};

use super::alone;

/// Two pools, as they began.
mod was {
    use durum::typed::*;
    durum::pool!(pub Log);
    durum::pool!(pub Index);

    #[derive(PSafe)]
    #[repr(C)]
    pub struct Line {
        pub at: u32,
        pub before: Option<Pbox<Line, Log>>,
    }

    #[derive(PSafe, Root)]
    #[repr(C)]
    pub struct Head {
        pub last: PRefCell<Option<Pbox<Line, Log>>, Log>,
    }

    #[derive(PSafe)]
    #[repr(C)]
    pub struct Entry {
        pub line: u32,
    }

    #[derive(PSafe, Root)]
    #[repr(C)]
    pub struct Entries {
        pub all: PRefCell<PVec<Pbox<Entry, Index>, Index>, Index>,
    }
}

mod is {
    use durum::typed::*;
    durum::pool!(pub Log);
    durum::pool!(pub Index);

    #[derive(PSafe)]
    #[repr(C)]
    pub struct Line {
        pub before: Option<Pbox<Line, Log>>,
        pub at: u64,
        pub twice: u64,
    }

    #[derive(PSafe, Root)]
    #[repr(C)]
    pub struct Head {
        pub last: PRefCell<Option<Pbox<Line, Log>>, Log>,
    }

    #[derive(PSafe)]
    #[repr(C)]
    pub struct Place {
        pub line: u64,
        pub weight: u8,
    }

    #[derive(PSafe, Root)]
    #[repr(C)]
    pub struct Entries {
        pub version: PCell<u32, Index>,
        pub all: PRefCell<PVec<Pbox<Place, Index>, Index>, Index>,
    }
}

const LINES: u32 = 9;

fn make(path: &Path) {
    let store = Store::create(path, StoreOptions::default()).unwrap();
    let log = was::Log::open_in::<was::Head>(&store, "log", Flags::CREATE).unwrap();
    let index = was::Index::open_in::<was::Entries>(&store, "index", Flags::CREATE).unwrap();
    for at in 0..LINES {
        was::Log::transaction(|j| {
            let mut last = log.last.borrow_mut(j);
            let before = last.take();
            *last = Some(Pbox::new(was::Line { at, before }, j));
        })
        .unwrap();
        was::Index::transaction(|j| {
            let entry = Pbox::new(was::Entry { line: at }, j);
            index.all.borrow_mut(j).push(entry, j);
        })
        .unwrap();
    }
    log.close().unwrap();
    index.close().unwrap();
    store.close().unwrap();
}

fn of_log() -> Migration<is::Log> {
    let migration = Migration::new().pool("log");
    migration.object(|old: &was::Line, j| is::Line {
        before: j.carry(&old.before),
        at: old.at.into(),
        twice: 2 * u64::from(old.at),
    })
}

/// The index, with a weight of its places.
fn of_index(weight: u8) -> Migration<is::Index> {
    let migration = Migration::new().pool("index");
    let migration = migration.default_of("Entries", "version", 2_u32);
    migration.object(move |old: &was::Entry, _| is::Place {
        line: old.line.into(),
        weight,
    })
}

fn assert_migrated(path: &Path) {
    let store = Store::open(path, StoreOptions::default()).unwrap();
    let log = is::Log::open_in::<is::Head>(&store, "log", 0).unwrap();
    let index = is::Index::open_in::<is::Entries>(&store, "index", 0).unwrap();
    let last = log.last.borrow();
    let mut line = last.as_ref();
    for at in (0..u64::from(LINES)).rev() {
        let found = line.unwrap();
        assert_eq!((found.at, found.twice), (at, 2 * at));
        line = found.before.as_ref();
    }
    assert!(line.is_none());
    assert_eq!(index.version.get(), 2);
    let all = index.all.borrow();
    let lines: Vec<(u64, u8)> = all.iter().map(|it| (it.line, it.weight)).collect();
    let wanted: Vec<(u64, u8)> = (0..u64::from(LINES)).map(|at| (at, 4)).collect();
    assert_eq!(lines, wanted);
}

#[test]
fn two_pools_of_a_program_are_made_anew_by_their_functions() {
    let (_alone, directory) = alone();
    let path = directory.path().join("store");
    make(&path);
    let together = of_log().with::<is::Entries, _>(of_index(4));
    let plan = is::Log::plan_migration::<is::Head>(&path, &together).unwrap();
    assert_eq!(plan.refusals, []);
    assert_eq!(
        (plan.pool.as_str(), &plan.with[..]),
        ("log", &["index".to_owned()][..])
    );
    assert_eq!(
        is::Log::migrate::<is::Head>(&path, &together).unwrap(),
        plan
    );
    assert_migrated(&path);
    let report = durum_service::check(&path, &Default::default()).unwrap();
    assert_eq!(report.findings, []);
}

/// What stands in the way in one of them keeps both as they are.
#[test]
fn neither_is_made_anew_where_one_is_refused() {
    let (_alone, directory) = alone();
    let path = directory.path().join("store");
    make(&path);
    let refused = |migration: Migration<is::Log>| {
        let refused = is::Log::migrate::<is::Head>(&path, migration).unwrap_err();
        refused.to_string()
    };
    let without_function = Migration::new().pool("index");
    let told = refused(of_log().with::<is::Entries, _>(without_function));
    let parts = [
        "Entry, now Place, of which nobody says that it was Entry",
        "version: it is new, and has no default",
    ];
    assert!(parts.iter().all(|part| told.contains(part)), "{told}");
    let told = refused(of_log().with::<is::Entries, _>(of_index(4).pool("log")));
    assert!(told.contains("pool \"log\" is named twice"), "{told}");
    let told = refused(of_log().with::<is::Entries, _>(of_index(4).pool("none")));
    assert!(told.contains("none"), "{told}");
    let both = of_log().default_of("Entry", "weight", 1_u8);
    let told = refused(both.with::<is::Entries, _>(of_index(4)));
    let part = "it is said twice what becomes of type Entry, by functions or of two pools";
    assert!(told.contains(part), "{told}");
    // The same where the other pool comes first.
    let with = of_log().with::<is::Entries, _>(of_index(4));
    let told = refused(with.default_of("Entry", "weight", 1_u8));
    assert!(told.contains(part), "{told}");
    let with = Migration::new()
        .pool("log")
        .with::<is::Entries, _>(of_index(4));
    let told = refused(with.object(|old: &was::Entry, _| is::Line {
        before: None,
        at: old.line.into(),
        twice: 0,
    }));
    assert!(told.contains(part), "{told}");
    let store = Store::open(&path, StoreOptions::default()).unwrap();
    let log = was::Log::open_in::<was::Head>(&store, "log", 0).unwrap();
    let index = was::Index::open_in::<was::Entries>(&store, "index", 0).unwrap();
    assert_eq!(log.last.borrow().as_ref().unwrap().at, LINES - 1);
    assert_eq!(index.all.borrow().len(), LINES as usize);
}
