//! Maps whose keys change are built anew by the program's own `Hash` and `Ord`.

use std::path::Path;

use durum::typed::*;
use durum::{Engine, Error};

use super::{ENGINES, alone};

/// As it began: a day is a number.
pub mod was {
    use durum::typed::*;

    durum::pool!(pub P);

    #[derive(PSafe, PartialEq, Eq, Hash, PartialOrd, Ord)]
    #[repr(C)]
    pub struct Day {
        pub number: u32,
    }

    #[derive(PSafe, PartialEq, Eq, Hash, PartialOrd, Ord)]
    #[repr(C)]
    pub struct Name {
        pub text: PString<P>,
        pub day: Day,
    }

    #[derive(PSafe)]
    #[repr(C)]
    pub struct Note {
        pub text: PString<P>,
    }

    pub type ByDay = PHashMap<Day, Parc<Note, P>, P>;
    pub type InOrder = PBTreeMap<Day, u64, P>;
    pub type ByName = PBTreeMap<Name, Parc<Note, P>, P>;
    pub type ByNumber = PHashMap<u32, PVec<u32, P>, P>;

    #[derive(PSafe, Root)]
    #[repr(C)]
    pub struct Diary {
        pub by_day: ByDay,
        pub in_order: InOrder,
        pub by_name: ByName,
        pub by_number: PRefCell<PVec<ByNumber, P>, P>,
    }

    pub type Entry = PMutex<Diary, P>;
}

/// A day is a year and a day of it, and the latest comes first; numbers have more bits.
pub mod is {
    use std::cmp::Ordering;

    use durum::typed::*;

    durum::pool!(pub P);

    #[derive(PSafe, PartialEq, Eq, Hash, Debug)]
    #[repr(C)]
    pub struct Day {
        pub year: u16,
        pub day: u16,
        pub kind: u64,
    }

    impl Ord for Day {
        fn cmp(&self, other: &Self) -> Ordering {
            (other.year, other.day).cmp(&(self.year, self.day))
        }
    }

    impl PartialOrd for Day {
        fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
            Some(self.cmp(other))
        }
    }

    #[derive(PSafe, PartialEq, Eq, Hash, PartialOrd, Ord)]
    #[repr(C)]
    pub struct Name {
        pub day: Day,
        pub text: PString<P>,
    }

    #[derive(PSafe)]
    #[repr(C)]
    pub struct Note {
        pub seen: PCell<u64, P>,
        pub text: PString<P>,
    }

    pub type ByDay = PHashMap<Day, Parc<Note, P>, P>;
    pub type InOrder = PBTreeMap<Day, u64, P>;
    pub type ByName = PBTreeMap<Name, Parc<Note, P>, P>;
    pub type ByNumber = PHashMap<u64, PVec<u32, P>, P>;

    #[derive(PSafe, Root)]
    #[repr(C)]
    pub struct Diary {
        pub by_day: ByDay,
        pub in_order: InOrder,
        pub by_name: ByName,
        pub by_number: PRefCell<PVec<ByNumber, P>, P>,
    }

    pub type Entry = PMutex<Diary, P>;

    pub fn day(number: u32, days: u32) -> Day {
        let (year, day) = ((number / days) as u16, (number % days) as u16);
        let kind = u64::from(number % 7);
        Day { year, day, kind }
    }

    /// What becomes of everything but the maps, with years of so many days.
    pub fn without_maps(days: u32) -> Migration<P> {
        let migration = Migration::new().default_of("Note", "seen", 5_u64);
        migration.object(move |old: &super::was::Day, _| day(old.number, days))
    }

    pub fn migration(days: u32) -> Migration<P> {
        maps(without_maps(days))
    }

    pub fn maps(migration: Migration<P>) -> Migration<P> {
        migration
            .rebuild::<super::was::ByDay, ByDay>()
            .rebuild::<super::was::InOrder, InOrder>()
            .rebuild::<super::was::ByName, ByName>()
            .rebuild::<super::was::ByNumber, ByNumber>()
    }
}

/// More than a root node has, or a table of one group; enough for trees of three levels.
const DAYS: u32 = 1500;
/// A year that has fewer days than there are.
pub const YEAR: u32 = 365;

fn text(number: u32) -> String {
    format!("{}", number % 11)
}

pub fn make(path: &Path, engine: Engine) {
    let options = OpenOptions::new().create(true).engine(engine);
    let root = was::P::open::<was::Entry>(path, options).unwrap();
    for begin in (0..DAYS).step_by(100) {
        was::P::transaction(|j| {
            let mut diary = root.lock(j);
            for at in begin..begin + 100 {
                // In no order.
                let number = at * 7 % DAYS;
                let note = Parc::new(
                    was::Note {
                        text: PString::new(&text(number), j),
                    },
                    j,
                );
                let name = was::Name {
                    text: PString::new(&text(number), j),
                    day: was::Day { number },
                };
                diary.by_name.insert(name, note.pclone(j), j);
                diary.by_day.insert(was::Day { number }, note, j);
                diary.in_order.insert(was::Day { number }, number.into(), j);
            }
        })
        .unwrap();
    }
    was::P::transaction(|j| {
        let mut diary = root.lock(j);
        // Places where something was.
        for number in (0..DAYS).filter(|number| number % 10 == 3) {
            diary.by_day.remove(&was::Day { number });
            diary.in_order.remove(&was::Day { number });
        }
        let mut all = diary.by_number.borrow_mut(j);
        for length in [0, 1, 7, 8, 100] {
            let mut map = was::ByNumber::new();
            for number in 0..length {
                map.insert(number, PVec::from_iter([number, length]), j);
            }
            all.push(map, j);
        }
    })
    .unwrap();
    root.close().unwrap();
}

fn is_there(number: u32) -> bool {
    number % 10 != 3
}

fn assert_migrated(path: &Path) {
    let root = is::P::open::<is::Entry>(path, 0).unwrap();
    is::P::transaction(|j| {
        let mut diary = root.lock(j);
        let there = (0..DAYS).filter(|number| is_there(*number)).count();
        assert_eq!((diary.by_day.len(), diary.in_order.len()), (there, there));
        for number in 0..DAYS {
            let day = is::day(number, YEAR);
            let note = diary.by_day.get(&day);
            assert_eq!(note.is_some(), is_there(number), "{number}");
            assert!(note.is_none_or(|note| *note.text == *text(number) && note.seen.get() == 5));
            let wanted = is_there(number).then_some(u64::from(number));
            assert_eq!(diary.in_order.get(&day).copied(), wanted);
            let name = is::Name {
                day,
                text: PString::new(&text(number), j),
            };
            let named = &diary.by_name[&name];
            assert!(note.is_none_or(|note| note.ptr_eq(named)));
            assert_eq!(named.strong_count(j), 1 + u64::from(is_there(number)));
        }
        let numbers: Vec<u64> = diary.in_order.values().copied().collect();
        assert!(numbers.is_sorted_by(|a, b| a > b), "the latest comes first");
        assert!(diary.by_name.keys().is_sorted());
        {
            let all = diary.by_number.borrow();
            for (map, length) in all.iter().zip([0, 1, 7, 8, 100]) {
                assert_eq!(map.len(), length as usize);
                for number in 0..length {
                    assert_eq!(map[&u64::from(number)][..], [number, length]);
                }
                assert!(!map.contains_key(&u64::from(length)));
            }
        }
        // They go on.
        for number in DAYS..2 * DAYS {
            diary.in_order.insert(is::day(number, YEAR), 0, j);
        }
        for number in (0..DAYS).filter(|number| is_there(*number)) {
            assert!(diary.by_day.remove(&is::day(number, YEAR)).is_some());
            assert!(diary.in_order.remove(&is::day(number, YEAR)).is_some());
        }
        assert!(diary.by_day.is_empty() && diary.in_order.len() == DAYS as usize);
        diary.by_name.clear();
        diary.by_number.borrow_mut(j).clear();
    })
    .unwrap();
    root.close().unwrap();
    let report = durum_service::check(path, &Default::default()).unwrap();
    assert_eq!(report.findings, []);
}

pub fn migrate(path: &Path) {
    is::P::migrate::<is::Entry>(path, is::migration(YEAR)).unwrap();
}

/// Whether a pool is the new one, and all of it.
pub fn is_migrated(path: &Path) -> bool {
    match is::P::open::<is::Entry>(path, 0) {
        Ok(root) => {
            root.close().unwrap();
            assert_migrated(path);
            true
        }
        Err(error) => {
            assert!(matches!(error, Error::RootType { .. }), "{error}");
            is_old(path);
            false
        }
    }
}

#[test]
fn keys_change_and_are_found_on_each_engine() {
    for engine in ENGINES {
        let (_alone, directory) = alone();
        let path = directory.path().join("store");
        make(&path, engine);
        let plan = is::P::plan_migration::<is::Entry>(&path, is::migration(YEAR)).unwrap();
        assert_eq!(plan.refusals, []);
        // That without entries has nothing to be built.
        assert_eq!(plan.rebuilt_maps, 3 + 4);
        let report = is::P::migrate::<is::Entry>(&path, is::migration(YEAR)).unwrap();
        assert_eq!(report, plan);
        let report = durum_service::check(&path, &Default::default()).unwrap();
        assert_eq!(report.findings, []);
        assert_migrated(&path);
    }
}

fn is_old(path: &Path) {
    let root = was::P::open::<was::Entry>(path, 0).unwrap();
    was::P::transaction(|j| {
        let diary = root.lock(j);
        for number in 0..DAYS {
            let day = was::Day { number };
            assert_eq!(diary.by_day.contains_key(&day), is_there(number));
            assert_eq!(diary.in_order.contains_key(&day), is_there(number));
        }
    })
    .unwrap();
    root.close().unwrap();
    let report = durum_service::check(path, &Default::default()).unwrap();
    assert_eq!(report.findings, []);
    let puddles = std::fs::read_dir(path.join("puddles")).unwrap().count();
    assert_eq!(puddles, 1, "nothing is left");
}

/// Nobody says that the maps are built anew: their paths are told, and what to say.
#[test]
fn keys_that_change_without_that_are_refused() {
    let (_alone, directory) = alone();
    let path = directory.path().join("store");
    make(&path, Engine::Shadow);
    let plan = is::P::plan_migration::<is::Entry>(&path, is::without_maps(YEAR)).unwrap();
    let told: Vec<String> = plan.refusals.iter().map(ToString::to_string).collect();
    for what in [
        "slots[].key: the keys of a map change: it finds them no more; only the program builds it anew",
        "PHashMap<u32,PVec<u32>>, now PHashMap<u64,PVec<u32>>, of which nobody says",
    ] {
        assert!(
            told.iter().any(|told| told.contains(what)),
            "{what}: {told:#?}"
        );
    }
    assert!(is::P::migrate::<is::Entry>(&path, is::without_maps(YEAR)).is_err());
    is_old(&path);
}

/// Years of fewer days, whose number is not told: keys become the same. The pool is what it was.
#[test]
fn keys_that_become_the_same_are_refused_by_path() {
    let (_alone, directory) = alone();
    let path = directory.path().join("store");
    make(&path, Engine::Hybrid);
    let same = |old: &was::Day, _: &Migrating<is::P>| is::Day {
        year: 0,
        day: (old.number % YEAR) as u16,
        kind: 0,
    };
    let migration = is::maps(Migration::new().default_of("Note", "seen", 5_u64)).object(same);
    let plan = is::P::plan_migration::<is::Entry>(&path, &migration).unwrap();
    assert_eq!(plan.refusals.len(), 2);
    is_old(&path);
    let told = is::P::migrate::<is::Entry>(&path, &migration).unwrap_err();
    let told = told.to_string();
    for refusal in &plan.refusals {
        assert!(told.contains(&refusal.to_string()), "{refusal}: {told}");
    }
    for what in [
        "root PMutex<Diary>.value.value.by_day: two of its keys have become the same one: {",
        "root PMutex<Diary>.value.value.in_order: two of its keys have become the same one: {",
    ] {
        assert!(told.contains(what), "{what}: {told}");
    }
    assert!(!told.contains("by_number"), "{told}");
    is_old(&path);
}

/// Code of the user that panics, or contradicts itself, leaves the old pool.
#[test]
fn a_key_whose_code_panics_is_told() {
    mod odd {
        use std::cmp::Ordering;
        use std::hash::{Hash, Hasher};

        use durum::typed::*;

        durum::pool!(pub P);

        #[derive(PSafe, PartialEq, Eq)]
        #[repr(C)]
        pub struct Day {
            pub number: u32,
        }

        impl Hash for Day {
            fn hash<H: Hasher>(&self, _: &mut H) {
                panic!("no hash of {}", self.number / 10_000);
            }
        }

        impl Ord for Day {
            fn cmp(&self, _: &Self) -> Ordering {
                panic!("no order")
            }
        }

        impl PartialOrd for Day {
            fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
                Some(self.cmp(other))
            }
        }

        #[derive(PSafe)]
        #[repr(C)]
        pub struct Note {
            pub text: PString<P>,
        }

        #[derive(PSafe, PartialEq, Eq, PartialOrd, Ord)]
        #[repr(C)]
        pub struct Name {
            pub text: PString<P>,
            pub day: Day,
        }

        pub type ByDay = PHashMap<Day, Parc<Note, P>, P>;
        pub type InOrder = PBTreeMap<Day, u64, P>;
        pub type ByNumber = PHashMap<u32, PVec<u32, P>, P>;

        #[derive(PSafe, Root)]
        #[repr(C)]
        pub struct Diary {
            pub by_day: ByDay,
            pub in_order: InOrder,
            pub by_name: PBTreeMap<Name, Parc<Note, P>, P>,
            pub by_number: PRefCell<PVec<ByNumber, P>, P>,
        }

        pub type Entry = PMutex<Diary, P>;
    }
    let (_alone, directory) = alone();
    let path = directory.path().join("store");
    make(&path, Engine::Shadow);
    let migration = Migration::new()
        .rebuild::<was::ByDay, odd::ByDay>()
        .rebuild::<was::InOrder, odd::InOrder>();
    let told = odd::P::migrate::<odd::Entry>(&path, migration).unwrap_err();
    let told = told.to_string();
    for what in [
        "by_day: `Hash` or `Eq` of a key panicked: no hash of 0",
        "in_order: `Ord` of a key panicked: no order",
    ] {
        assert!(told.contains(what), "{what}: {told}");
    }
    is_old(&path);
}

/// What is said of maps of one name is said of one type of them, and by one function.
#[test]
fn a_map_of_another_type_of_the_name_is_refused() {
    /// Days that are others, of the same name.
    mod other {
        use durum::typed::*;

        #[derive(PSafe, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(C)]
        pub struct Day {
            pub hour: u64,
            pub number: u64,
        }
    }
    type Other<P> = PBTreeMap<other::Day, u64, P>;
    let (_alone, directory) = alone();
    let path = directory.path().join("store");
    make(&path, Engine::Shadow);
    let told = |migration: Migration<is::P>| {
        let refused = is::P::migrate::<is::Entry>(&path, migration).unwrap_err();
        refused.to_string()
    };
    let all_but = || {
        is::without_maps(YEAR)
            .rebuild::<was::ByDay, is::ByDay>()
            .rebuild::<was::ByName, is::ByName>()
            .rebuild::<was::ByNumber, is::ByNumber>()
    };
    let another = "what is built anew is another type of the name PBTreeMap<Day,u64>";
    let of_old = told(all_but().rebuild::<Other<was::P>, is::InOrder>());
    assert!(of_old.contains(another), "{of_old}");
    let of_new = told(all_but().rebuild::<was::InOrder, Other<is::P>>());
    assert!(of_new.contains(another), "{of_new}");
    // As a type that the field is not.
    let elsewhere = told(all_but().rebuild::<was::InOrder, PBTreeMap<u32, u64, is::P>>());
    let part = "it is built anew as PBTreeMap<u32,u64>, and is to be PBTreeMap<Day,u64> here";
    assert!(elsewhere.contains(part), "{elsewhere}");
    let twice = told(is::migration(YEAR).rebuild::<was::InOrder, Other<is::P>>());
    let part = "it is said twice what becomes of type PBTreeMap<Day,u64>";
    assert!(twice.contains(part), "{twice}");
    let day = |old: &was::Day, _: &Migrating<is::P>| is::day(old.number, 7);
    let twice = told(is::migration(YEAR).object(day));
    assert!(
        twice.contains("it is said twice what becomes of type Day"),
        "{twice}"
    );
    is_old(&path);
}

/// Types stay what they are, and only the order changes, which no text tells.
#[test]
fn maps_of_another_order_are_built_anew() {
    mod reversed {
        use std::cmp::Ordering;

        use durum::typed::*;

        durum::pool!(pub P);

        #[derive(PSafe, PartialEq, Eq)]
        #[repr(C)]
        pub struct Day {
            pub number: u32,
        }

        impl Ord for Day {
            fn cmp(&self, other: &Self) -> Ordering {
                other.number.cmp(&self.number)
            }
        }

        impl PartialOrd for Day {
            fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
                Some(self.cmp(other))
            }
        }

        pub type InOrder = PBTreeMap<Day, u64, P>;

        #[derive(PSafe, Root)]
        #[repr(C)]
        pub struct Head {
            pub in_order: PRefCell<InOrder, P>,
        }
    }
    mod straight {
        use durum::typed::*;

        durum::pool!(pub P);

        #[derive(PSafe, PartialEq, Eq, PartialOrd, Ord)]
        #[repr(C)]
        pub struct Day {
            pub number: u32,
        }

        pub type InOrder = PBTreeMap<Day, u64, P>;

        #[derive(PSafe, Root)]
        #[repr(C)]
        pub struct Head {
            pub in_order: PRefCell<InOrder, P>,
        }
    }
    let (_alone, directory) = alone();
    let path = directory.path().join("store");
    let root = straight::P::open::<straight::Head>(&path, Flags::CREATE).unwrap();
    straight::P::transaction(|j| {
        let mut map = root.in_order.borrow_mut(j);
        (0..50).for_each(|number| _ = map.insert(straight::Day { number }, number.into(), j));
    })
    .unwrap();
    root.close().unwrap();
    let migration = Migration::new().rebuild::<straight::InOrder, reversed::InOrder>();
    reversed::P::migrate::<reversed::Head>(&path, migration).unwrap();
    let root = reversed::P::open::<reversed::Head>(&path, 0).unwrap();
    let map = root.in_order.borrow();
    assert!(map.values().copied().eq((0..50).rev()));
    assert!((0..50).all(|number| map[&reversed::Day { number }] == u64::from(number)));
}
