//! Owners in collections: each object has one always, also where the code of the user panics, and none when the
//! collection is gone. A wrong count ends the process.

use std::cell::Cell;
use std::cmp::Ordering;
use std::collections::HashSet;
use std::hash::{Hash, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind};

use durum::typed::*;

use super::assert_sound;
use crate::{Place, on_each_engine, options};

thread_local! {
    /// So many comparisons or hashes are made before one panics.
    static PATIENCE: Cell<Option<u32>> = const { Cell::new(None) };
}

fn lose_patience() {
    if let Some(left) = PATIENCE.get() {
        assert!(left > 0, "on purpose");
        PATIENCE.set(Some(left - 1));
    }
}

/// A key whose comparisons and hashes panic at times. Where one is lost, so is the object of its text.
#[derive(PSafe)]
#[repr(C)]
struct Touchy<P: PoolType>(PString<P>);

impl<P: PoolType> PartialEq for Touchy<P> {
    fn eq(&self, other: &Self) -> bool {
        lose_patience();
        self.0 == other.0
    }
}

impl<P: PoolType> Eq for Touchy<P> {}

impl<P: PoolType> Hash for Touchy<P> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        lose_patience();
        self.0.hash(state);
    }
}

impl<P: PoolType> PartialOrd for Touchy<P> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<P: PoolType> Ord for Touchy<P> {
    fn cmp(&self, other: &Self) -> Ordering {
        lose_patience();
        self.0.cmp(&other.0)
    }
}

/// Changes a map again and again, while its keys panic at all possible places, and sees that it is whole.
macro_rules! survives_panics {
    ($engine:ident, $map:ident) => {
        durum::pool!(P);
        type Map = $map<Touchy<P>, Pbox<u64, P>, P>;
        let place = Place::new();
        let root = P::open::<PRefCell<Map, P>>(&place.path, options($engine)).unwrap();
        P::transaction(|j| {
            let mut map = root.borrow_mut(j);
            let mut next = 0;
            for patience in (0..60).cycle().take(600) {
                let key = |number: u64| Touchy(PString::new(&format!("{number:06}"), j));
                next = (next + 7919) % 400;
                let change = || {
                    PATIENCE.set(Some(patience));
                    match patience % 4 {
                        0 | 1 => drop(map.insert(key(next), Pbox::new(next, j), j)),
                        2 => drop(map.remove(&key(next / 2))),
                        _ => map.retain(|key, value| {
                            lose_patience();
                            key.0.parse::<u64>().unwrap() == **value && **value % 17 != next % 17
                        }),
                    }
                };
                let _ = catch_unwind(AssertUnwindSafe(change));
                PATIENCE.set(None);
                let mut seen = 0;
                for (key, value) in map.iter() {
                    assert_eq!(key.0.parse::<u64>().unwrap(), **value);
                    assert!(map.contains_key(key));
                    seen += 1;
                }
                assert_eq!(seen, map.len());
            }
            assert!(map.len() > 20);
        })
        .unwrap();
        root.close().unwrap();
        assert_sound(&place.path);
    };
}

/// Fills a map with objects and empties it in several ways; then there is as much room as before.
macro_rules! gives_room_back {
    ($engine:ident, $map:ident) => {
        durum::pool!(P);
        type Map = $map<u64, Pbox<[u64; 40], P>, P>;
        let place = Place::new();
        let root = P::open::<PRefCell<Map, P>>(&place.path, options($engine)).unwrap();
        let fill = || {
            P::transaction(|j| {
                let mut map = root.borrow_mut(j);
                map.extend((0..3000).map(|n| (n * 31 % 3001, Pbox::new([n; 40], j))), j);
            })
            .unwrap();
        };
        let free_bytes = || root.pool().usage().unwrap().free_bytes;
        let mut before = 0;
        let empty: [fn(&mut Map); 4] = [
            |map| map.clear(),
            |map| *map = Map::new(),
            |map| drop(std::mem::take(map).into_iter()),
            |map| map.retain(|_, _| false),
        ];
        for (turn, empty) in empty.into_iter().enumerate() {
            fill();
            let full = free_bytes();
            P::transaction(|j| empty(&mut root.borrow_mut(j))).unwrap();
            P::transaction(|j| root.borrow_mut(j).clear()).unwrap();
            assert!(root.borrow().is_empty());
            if turn == 0 {
                before = free_bytes();
                assert!(before > full + 3000 * 320);
            }
            assert_eq!(free_bytes(), before);
        }
        root.close().unwrap();
        assert_sound(&place.path);
    };
}

/// Values are opened to be changed, and then moved, replaced and taken out in one transaction.
macro_rules! keeps_open_ranges {
    ($engine:ident, $map:ident) => {
        durum::pool!(P);
        type Map = $map<u64, PVec<Option<Pbox<u64, P>>, P>, P>;
        let place = Place::new();
        let root = P::open::<PRefCell<Map, P>>(&place.path, options($engine)).unwrap();
        for aborts in [true, false, true, false] {
            let result: Result<(), durum::Error> = P::try_transaction(|j| {
                let mut map = root.borrow_mut(j);
                for n in 0..100 {
                    map.entry(n, j).or_default().push(Some(Pbox::new(n, j)), j);
                }
                let held = map.get_mut(&50).unwrap().remove(0);
                map.get_mut(&51).unwrap().push(held, j);
                map.values_mut().for_each(|value| value.push(None, j));
                // The table or the nodes change under open ranges.
                for n in 100..400 {
                    map.insert(n, PVec::new(), j);
                    map.get_mut(&(n - 50))
                        .unwrap()
                        .push(Some(Pbox::new(n, j)), j);
                }
                let swapped = std::mem::take(map.get_mut(&60).unwrap());
                let old = map.insert(61, swapped, j).unwrap();
                *map.get_mut(&60).unwrap() = old;
                for n in (0..400).step_by(3) {
                    drop(map.remove(&n));
                }
                map.retain(|n, _| n % 5 != 0);
                map.iter_mut().for_each(|(_, value)| value.truncate(3));
                if aborts {
                    Err(durum::Error::Aborted)
                } else {
                    Ok(())
                }
            });
            assert_eq!(result.is_err(), aborts);
        }
        let map = root.borrow();
        assert_eq!(
            map.len(),
            (0..400).filter(|n| n % 3 != 0 && n % 5 != 0).count()
        );
        drop(map);
        root.close().unwrap();
        assert_sound(&place.path);
    };
}

/// Keys that contradict themselves get wrong answers; each object still has one owner.
macro_rules! bears_nonsense {
    ($engine:ident, $map:ident) => {
        durum::pool!(P);
        type Map = $map<Nonsense, Pbox<u64, P>, P>;
        let place = Place::new();
        let root = P::open::<PRefCell<Map, P>>(&place.path, options($engine)).unwrap();
        for _ in 0..5 {
            P::transaction(|j| {
                let mut map = root.borrow_mut(j);
                for n in 0..600 {
                    map.insert(Nonsense(n), Pbox::new(n, j), j);
                    if n % 3 == 0 {
                        map.remove(&Nonsense(n / 2));
                        map.get_mut(&Nonsense(n))
                            .into_iter()
                            .for_each(|value| **value += 1);
                    }
                }
                map.retain(|key, _| key.0 % 7 != 0);
                assert_eq!(map.iter().count(), map.len());
                assert_eq!(
                    map.iter_mut().map(|(_, value)| **value += 1).count(),
                    map.len()
                );
            })
            .unwrap();
        }
        root.close().unwrap();
        assert_sound(&place.path);
    };
}

thread_local! {
    static RANDOM: Cell<u64> = const { Cell::new(1) };
}

fn random() -> u64 {
    let next = RANDOM
        .get()
        .wrapping_mul(0x5851_f42d_4c95_7f2d)
        .wrapping_add(0x1405_7b7e_f767_814f);
    RANDOM.set(next);
    next >> 33
}

/// Equal, less or greater, and of any hash, as chance has it.
#[derive(PSafe)]
#[repr(C)]
struct Nonsense(u64);

impl PartialEq for Nonsense {
    fn eq(&self, _: &Self) -> bool {
        random().is_multiple_of(4)
    }
}

impl Eq for Nonsense {}

impl PartialOrd for Nonsense {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Nonsense {
    fn cmp(&self, _: &Self) -> Ordering {
        [
            Ordering::Less,
            Ordering::Greater,
            Ordering::Less,
            Ordering::Greater,
            Ordering::Equal,
        ][random() as usize % 5]
    }
}

impl Hash for Nonsense {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (random() % 8).hash(state);
    }
}

on_each_engine! {
    fn panics_leave_hash_maps_whole(engine) {
        survives_panics!(engine, PHashMap);
    }

    fn panics_leave_ordered_maps_whole(engine) {
        survives_panics!(engine, PBTreeMap);
    }

    fn hash_maps_give_room_back(engine) {
        gives_room_back!(engine, PHashMap);
    }

    fn ordered_maps_give_room_back(engine) {
        gives_room_back!(engine, PBTreeMap);
    }

    fn hash_maps_keep_open_ranges(engine) {
        keeps_open_ranges!(engine, PHashMap);
    }

    fn ordered_maps_keep_open_ranges(engine) {
        keeps_open_ranges!(engine, PBTreeMap);
    }

    fn hash_maps_bear_nonsense(engine) {
        bears_nonsense!(engine, PHashMap);
    }

    fn ordered_maps_bear_nonsense(engine) {
        bears_nonsense!(engine, PBTreeMap);
    }

    fn ranges_of_nonsense_give_no_entry_twice(engine) {
        durum::pool!(P);
        let place = Place::new();
        let root = P::open::<PRefCell<PBTreeMap<Nonsense, u64, P>, P>>(&place.path, options(engine)).unwrap();
        P::transaction(|j| {
            let mut map = root.borrow_mut(j);
            map.extend((0..2000).map(|n| (Nonsense(n), 0)), j);
            for _ in 0..200 {
                let _ = catch_unwind(AssertUnwindSafe(|| {
                    let mut range = map.range_mut(Nonsense(0)..Nonsense(1));
                    let mut given = HashSet::new();
                    loop {
                        let ends = [range.next(), range.next_back()];
                        if ends.iter().all(Option::is_none) {
                            break;
                        }
                        for (_, value) in ends.into_iter().flatten() {
                            assert!(given.insert(std::ptr::from_ref(value)), "given twice");
                        }
                    }
                }))
                .inspect_err(|panic| assert!(panic.downcast_ref::<&str>().is_some_and(|text| text.contains("range"))));
            }
        })
        .unwrap();
    }

    fn maps_nest(engine) {
        durum::pool!(P);
        type Inner = PHashMap<PString<P>, PBTreeMap<u64, Prc<u64, P>, P>, P>;
        let place = Place::new();
        let root = P::open::<PRefCell<PBTreeMap<u64, Inner, P>, P>>(&place.path, options(engine)).unwrap();
        for turn in 0..3 {
            P::transaction(|j| {
                let mut map = root.borrow_mut(j);
                let shared = Prc::new(turn, j);
                for n in 0..20 {
                    let inner = map.entry(n % 5, j).or_default();
                    let innermost = inner.entry(PString::new(&format!("{}", n % 3), j), j).or_default();
                    innermost.insert(100 * turn + n, shared.pclone(j), j);
                }
                assert_eq!(shared.strong_count(j), 21);
                let copy = map.pclone(j);
                assert!(copy == *map);
                drop(copy);
                map.remove(&turn);
            })
            .unwrap();
        }
        let values: Vec<u64> = root.borrow()[&4]["1"].values().map(|value| **value).collect();
        assert_eq!(values, [0, 0, 1, 1, 2, 2]);
        root.close().unwrap();
        assert_sound(&place.path);
    }
}
