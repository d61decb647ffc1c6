//! `PHashMap` against `HashMap`.

use std::collections::HashMap;
use std::hash::Hash;

use durum::Engine;
use durum::typed::*;
use proptest::prelude::*;

use super::{End, Sample, assert_sound, cases, transactions};
use crate::{Place, on_each_engine, options};

#[derive(Clone, Debug)]
enum Op {
    Insert(u64, u64),
    Remove(u64),
    Get(u64),
    Change(u64, u64),
    ChangeAll(u64),
    OrInsert(u64, u64),
    RemoveEntry(u64),
    Retain(u64),
    Clear,
    Reserve(usize),
    ShrinkToFit,
    Rehash,
    Copy,
    TakeOut(usize),
    Drain,
    IntoParts,
}

fn any_op() -> impl Strategy<Value = Op> {
    let key = || 0..150u64;
    let value = || 0..1000u64;
    prop_oneof![
        30 => (key(), value()).prop_map(|(key, value)| Op::Insert(key, value)),
        12 => key().prop_map(Op::Remove),
        4 => key().prop_map(Op::Get),
        8 => (key(), value()).prop_map(|(key, value)| Op::Change(key, value)),
        1 => value().prop_map(Op::ChangeAll),
        8 => (key(), value()).prop_map(|(key, value)| Op::OrInsert(key, value)),
        8 => key().prop_map(Op::RemoveEntry),
        1 => (2..7u64).prop_map(Op::Retain),
        1 => Just(Op::Clear),
        1 => (0..100usize).prop_map(Op::Reserve),
        1 => Just(Op::ShrinkToFit),
        1 => Just(Op::Rehash),
        1 => Just(Op::Copy),
        1 => (0..50usize).prop_map(Op::TakeOut),
        1 => Just(Op::Drain),
        1 => Just(Op::IntoParts),
    ]
}

type Map<K, V, P> = PHashMap<K, V, P>;

/// What the operation tells.
fn apply<P: PoolType, K, V>(map: &mut Map<K, V, P>, op: &Op, j: &Journal<P>) -> Option<u64>
where
    K: Sample<P> + Eq + Hash,
    V: Sample<P>,
{
    let key = |number: u64| K::make(number, j);
    let value = |number: u64| V::make(number, j);
    match *op {
        Op::Insert(k, v) => return map.insert(key(k), value(v), j).map(|old| old.number()),
        Op::Remove(k) => return map.remove(&key(k)).map(|old| old.number()),
        Op::Get(k) => return map.get(&key(k)).map(Sample::number),
        Op::Change(k, v) => map.get_mut(&key(k))?.change(v, j),
        Op::ChangeAll(v) => map.values_mut().for_each(|value| value.change(v, j)),
        Op::OrInsert(k, v) => {
            let entry = map.entry(key(k), j);
            let entry = entry.and_modify(|value| value.change(v + 1, j));
            return Some(entry.or_insert_with(|| value(v)).number());
        }
        Op::RemoveEntry(k) => match map.entry(key(k), j) {
            hash_map::Entry::Occupied(entry) => return Some(entry.remove().number()),
            hash_map::Entry::Vacant(_) => return None,
        },
        Op::Retain(n) => map.retain(|key, _| key.number() % n != 0),
        Op::Clear => map.clear(),
        Op::Reserve(n) => map.reserve(n, j),
        Op::ShrinkToFit => map.shrink_to_fit(j),
        Op::Rehash => map.rehash(j),
        Op::Copy => *map = map.pclone(j),
        Op::TakeOut(n) => {
            let mut entries = std::mem::take(map).into_iter();
            let taken = entries
                .by_ref()
                .take(n)
                .map(|(key, value)| (key.number(), value.number()));
            let taken: Vec<(u64, u64)> = taken.collect();
            let rest: Vec<(K, V)> = entries.collect();
            map.extend(rest, j);
            map.extend(taken.into_iter().map(|(k, v)| (key(k), value(v))), j);
        }
        Op::Drain => {
            let drained: Vec<(K, V)> = map.drain().collect();
            assert!(map.is_empty());
            map.extend(drained, j);
        }
        Op::IntoParts => {
            let keys = map
                .pclone(j)
                .into_keys()
                .map(|key| key.number())
                .sum::<u64>();
            let mut values = map.pclone(j).into_values();
            let len = values.len() as u64;
            // The others are dropped with the iterator.
            drop(values.next());
            return Some(keys + len);
        }
    }
    None
}

fn apply_to_model(map: &mut HashMap<u64, u64>, op: &Op) -> Option<u64> {
    match *op {
        Op::Insert(k, v) => return map.insert(k, v),
        Op::Remove(k) | Op::RemoveEntry(k) => return map.remove(&k),
        Op::Get(k) => return map.get(&k).copied(),
        Op::Change(k, v) => *map.get_mut(&k)? = v,
        Op::ChangeAll(v) => map.values_mut().for_each(|value| *value = v),
        Op::OrInsert(k, v) => {
            let entry = map.entry(k).and_modify(|value| *value = v + 1);
            return Some(*entry.or_insert(v));
        }
        Op::Retain(n) => map.retain(|key, _| key % n != 0),
        Op::IntoParts => return Some(map.keys().sum::<u64>() + map.len() as u64),
        Op::Clear => map.clear(),
        Op::Reserve(_) | Op::ShrinkToFit | Op::Rehash | Op::Copy | Op::TakeOut(_) | Op::Drain => {}
    }
    None
}

fn behaves_as_its_model<P: PoolType, K, V>(engine: Engine, count: u32)
where
    K: Sample<P> + Eq + Hash,
    V: Sample<P>,
{
    proptest!(cases(count), |(steps in transactions(any_op()))| {
        let place = Place::new();
        let open = || P::open::<PRefCell<Map<K, V, P>, P>>(&place.path, options(engine)).unwrap();
        let (mut root, mut model) = (open(), HashMap::new());
        for (ops, end) in &steps {
            let result: Result<Vec<Option<u64>>, durum::Error> = P::try_transaction(|j| {
                let mut map = root.borrow_mut(j);
                let told = ops.iter().map(|op| apply(&mut map, op, j)).collect();
                match end {
                    End::Abort => Err(durum::Error::Aborted),
                    _ => Ok(told),
                }
            });
            if let Ok(told) = result {
                let expected: Vec<_> = ops.iter().map(|op| apply_to_model(&mut model, op)).collect();
                prop_assert_eq!(told, expected);
            }
            if let End::CommitAndReopen = end {
                drop(root);
                root = open();
            }
            let map = root.borrow();
            let found: HashMap<u64, u64> = map.iter().map(|(key, value)| (key.number(), value.number())).collect();
            prop_assert_eq!((map.len(), map.keys().len(), map.values().count()), (found.len(), found.len(), found.len()));
            prop_assert_eq!(&found, &model);
        }
        root.close().unwrap();
        assert_sound(&place.path);
    });
}

on_each_engine! {
    fn words(engine) {
        durum::pool!(P);
        behaves_as_its_model::<P, u64, u64>(engine, 30);
    }

    fn strings_and_boxes(engine) {
        durum::pool!(P);
        behaves_as_its_model::<P, PString<P>, Pbox<u64, P>>(engine, 20);
    }

    fn counted_and_optional(engine) {
        durum::pool!(P);
        behaves_as_its_model::<P, Prc<u64, P>, Option<Pbox<PString<P>, P>>>(engine, 15);
    }

    fn keys_are_found_by_what_they_borrow_as(engine) {
        durum::pool!(P);
        let place = Place::new();
        let root = P::open::<PRefCell<Map<PString<P>, u64, P>, P>>(&place.path, options(engine)).unwrap();
        P::transaction(|j| {
            let mut map = root.borrow_mut(j);
            for (at, name) in ["one", "two", "three"].into_iter().enumerate() {
                map.insert(PString::new(name, j), at as u64 + 1, j);
            }
            *map.get_mut("two").unwrap() += 20;
            assert_eq!(map.remove_entry("three").unwrap().0.as_str(), "three");
            assert_eq!(map.entry(PString::new("four", j), j).or_default(), &0);
        })
        .unwrap();
        let map = root.borrow();
        assert_eq!((map["one"], map["two"], map.get("three"), map["four"]), (1, 22, None, 0));
        assert!(map.contains_key("one") && !map.contains_key("five"));
        assert_eq!(map.get_key_value("one").unwrap().0, "one");
    }

    fn maps_compare_and_show_as_those_of_std(engine) {
        durum::pool!(P);
        let place = Place::new();
        let root = P::open::<PRefCell<Map<u64, u64, P>, P>>(&place.path, options(engine)).unwrap();
        P::transaction(|j| {
            let a: Map<u64, u64, P> = (0..50).map(|n| (n, n * n)).collect();
            let mut b: Map<u64, u64, P> = (0..50).rev().map(|n| (n, n * n)).collect();
            assert!(a == b);
            b.insert(7, 0, j);
            assert!(a != b);
            let one: Map<u64, u64, P> = [(1, 2)].into_iter().collect();
            assert_eq!(format!("{one:?}"), "{1: 2}");
            assert_eq!(a.keys().sum::<u64>(), 49 * 25);
            *root.borrow_mut(j) = a;
        })
        .unwrap();
        assert_eq!(root.borrow()[&49], 49 * 49);
        assert!(std::panic::catch_unwind(|| root.borrow()[&50]).is_err());
    }

    fn nothing_is_an_entry_too(engine) {
        durum::pool!(P);
        let place = Place::new();
        let root = P::open::<PRefCell<(Map<(), (), P>, Map<u64, (), P>), P>>(&place.path, options(engine)).unwrap();
        P::transaction(|j| {
            let (nothings, set) = &mut *root.borrow_mut(j);
            assert_eq!(nothings.insert((), (), j), None);
            assert_eq!(nothings.insert((), (), j), Some(()));
            set.extend((0..100).map(|n| (n, ())), j);
            set.retain(|n, ()| n % 2 == 0);
        })
        .unwrap();
        let read = root.borrow();
        assert_eq!((read.0.len(), read.0.get(&())), (1, Some(&())));
        assert!((0..100).all(|n| read.1.contains_key(&n) == (n % 2 == 0)));
        drop(read);
        P::transaction(|j| assert_eq!(root.borrow_mut(j).0.remove(&()), Some(()))).unwrap();
        root.close().unwrap();
        assert_sound(&place.path);
    }
}
