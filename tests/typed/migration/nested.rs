//! Keys that hold maps of their own, whose keys lie in cells: what is built first is what the others see.

use std::path::Path;

use durum::typed::*;

use super::alone;

macro_rules! compared {
    ($($type:ident),*) => { $(
        impl PartialOrd for $type {
            fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
                Some(self.cmp(other))
            }
        }

        impl PartialEq for $type {
            fn eq(&self, other: &Self) -> bool {
                self.cmp(other) == Ordering::Equal
            }
        }

        impl Eq for $type {}
    )* };
}

/// Both versions, which say of a number which of two comes first.
macro_rules! version {
    ($module:ident, $a:ident, $b:ident => $compared:expr) => {
        mod $module {
            use std::cmp::Ordering;

            use durum::typed::*;

            durum::pool!(pub P);

            #[derive(PSafe)]
            #[repr(C)]
            pub struct Number {
                pub n: PRefCell<u32, P>,
            }

            impl Ord for Number {
                fn cmp(&self, other: &Self) -> Ordering {
                    // Looking into a cell notes something in it.
                    let ($a, $b) = (self.n.borrow(), other.n.borrow());
                    $compared
                }
            }

            pub type Set = PBTreeMap<Number, u8, P>;

            /// The first numbers count most.
            #[derive(PSafe)]
            #[repr(C)]
            pub struct Key {
                pub all: Set,
            }

            impl Ord for Key {
                fn cmp(&self, other: &Self) -> Ordering {
                    self.all.keys().cmp(other.all.keys())
                }
            }

            pub type Outer = PBTreeMap<Key, u64, P>;

            #[derive(PSafe, Root)]
            #[repr(C)]
            pub struct Head {
                pub outer: PRefCell<Outer, P>,
            }

            compared!(Number, Key);

            pub fn key(numbers: &[u32], j: &Journal<P>) -> Key {
                let mut all = Set::new();
                for n in numbers {
                    let n = PRefCell::new(*n, j);
                    all.insert(Number { n }, 0, j);
                }
                Key { all }
            }
        }
    };
}

version!(was, a, b => a.cmp(&b));
version!(is, a, b => b.cmp(&a));

/// The more numbers there are the more of them say something else in the other order.
const KEYS: u32 = 40;

fn numbers(key: u32) -> [u32; 3] {
    [key * 7 % KEYS, 100 + key * 11 % KEYS, 200 + key * 13 % KEYS]
}

fn make(path: &Path) {
    let root = was::P::open::<was::Head>(path, Flags::CREATE).unwrap();
    was::P::transaction(|j| {
        let mut outer = root.outer.borrow_mut(j);
        for key in 0..KEYS {
            outer.insert(was::key(&numbers(key), j), key.into(), j);
        }
    })
    .unwrap();
    root.close().unwrap();
}

/// Whatever the order in which the program says them.
#[test]
fn maps_in_keys_are_built_before_those_that_they_are_keys_of() {
    for outer_first in [false, true] {
        let (_alone, directory) = alone();
        let path = directory.path().join("store");
        make(&path);
        let migration = match outer_first {
            false => Migration::new()
                .rebuild::<was::Set, is::Set>()
                .rebuild::<was::Outer, is::Outer>(),
            true => Migration::new()
                .rebuild::<was::Outer, is::Outer>()
                .rebuild::<was::Set, is::Set>(),
        };
        let report = is::P::migrate::<is::Head>(&path, migration).unwrap();
        assert_eq!(report.rebuilt_maps, u64::from(KEYS) + 1);
        let root = is::P::open::<is::Head>(&path, 0).unwrap();
        is::P::transaction(|j| {
            let outer = root.outer.borrow();
            for key in 0..KEYS {
                let found = outer.get(&is::key(&numbers(key), j)).copied();
                assert_eq!(found, Some(key.into()), "{key}");
            }
            assert!(outer.keys().is_sorted());
        })
        .unwrap();
        root.close().unwrap();
        let report = durum_service::check(&path, &Default::default()).unwrap();
        assert_eq!(report.findings, []);
    }
}

/// Keys whose maps come in another order are other keys.
#[test]
fn a_map_whose_keys_hold_others_is_not_left_as_it_was() {
    let (_alone, directory) = alone();
    let path = directory.path().join("store");
    make(&path);
    let migration = Migration::new().rebuild::<was::Set, is::Set>();
    let told = is::P::migrate::<is::Head>(&path, migration).unwrap_err();
    let told = told.to_string();
    let part = "slots[].key: the keys of a map change";
    assert!(told.contains(part), "{told}");
}
