//! `PBTreeMap` against `BTreeMap`.

use std::collections::BTreeMap;
use std::ops::Bound;

use durum::Engine;
use durum::typed::*;
use proptest::prelude::*;

use super::{End, Sample, assert_sound, cases, transactions};
use crate::{Place, on_each_engine, options};

#[derive(Clone, Debug)]
enum Op {
    Insert(u64, u64),
    InsertRow(u64, u64),
    Remove(u64),
    RemoveRow(u64, u64),
    Get(u64),
    Change(u64, u64),
    ChangeRange(u64, u64, u64),
    OrInsert(u64, u64),
    RemoveEntry(u64),
    PopFirst,
    PopLast,
    RemoveFirst,
    Range(Bound<u64>, Bound<u64>),
    Retain(u64),
    Clear,
    Copy,
    TakeOut(usize),
    Append(u64, u64),
    SplitOff(u64),
}

fn bound() -> impl Strategy<Value = Bound<u64>> {
    prop_oneof![
        (0..900u64).prop_map(Bound::Included),
        (0..900u64).prop_map(Bound::Excluded),
        Just(Bound::Unbounded),
    ]
}

fn any_op() -> impl Strategy<Value = Op> {
    let key = || 0..900u64;
    let value = || 0..1000u64;
    let row = || 1..150u64;
    prop_oneof![
        30 => (key(), value()).prop_map(|(key, value)| Op::Insert(key, value)),
        3 => (key(), row()).prop_map(|(key, count)| Op::InsertRow(key, count)),
        12 => key().prop_map(Op::Remove),
        3 => (key(), row()).prop_map(|(key, count)| Op::RemoveRow(key, count)),
        4 => key().prop_map(Op::Get),
        8 => (key(), value()).prop_map(|(key, value)| Op::Change(key, value)),
        1 => (key(), row(), value()).prop_map(|(key, count, value)| Op::ChangeRange(key, count, value)),
        8 => (key(), value()).prop_map(|(key, value)| Op::OrInsert(key, value)),
        8 => key().prop_map(Op::RemoveEntry),
        4 => Just(Op::PopFirst),
        4 => Just(Op::PopLast),
        2 => Just(Op::RemoveFirst),
        4 => (bound(), bound()).prop_map(|(from, to)| Op::Range(from, to)),
        1 => (2..7u64).prop_map(Op::Retain),
        1 => Just(Op::Clear),
        1 => Just(Op::Copy),
        1 => (0..50usize).prop_map(Op::TakeOut),
        1 => (key(), row()).prop_map(|(key, count)| Op::Append(key, count)),
        2 => key().prop_map(Op::SplitOff),
    ]
}

/// Whether std takes this for a range.
fn is_range(from: Bound<u64>, to: Bound<u64>) -> bool {
    use Bound::{Excluded, Included};
    match (from, to) {
        (Excluded(from), Excluded(to)) => from < to,
        (Included(from) | Excluded(from), Included(to) | Excluded(to)) => from <= to,
        _ => true,
    }
}

fn mix(sum: u64, key: u64, value: u64) -> u64 {
    (sum ^ key).wrapping_mul(31).wrapping_add(value)
}

type Map<K, V, P> = PBTreeMap<K, V, P>;

/// What the operation tells.
fn apply<P: PoolType, K, V>(map: &mut Map<K, V, P>, op: &Op, j: &Journal<P>) -> Option<u64>
where
    K: Sample<P> + Ord,
    V: Sample<P>,
{
    let key = |number: u64| K::make(number, j);
    let value = |number: u64| V::make(number, j);
    match *op {
        Op::Insert(k, v) => return map.insert(key(k), value(v), j).map(|old| old.number()),
        Op::InsertRow(k, n) => map.extend((k..k + n).map(|k| (key(k), value(k))), j),
        Op::Remove(k) => return map.remove(&key(k)).map(|old| old.number()),
        Op::RemoveRow(k, n) => {
            return Some(
                (k..k + n)
                    .filter(|k| map.remove(&key(*k)).is_some())
                    .count() as u64,
            );
        }
        Op::Get(k) => return map.get(&key(k)).map(Sample::number),
        Op::Change(k, v) => map.get_mut(&key(k))?.change(v, j),
        Op::ChangeRange(k, n, v) => {
            let range = map.range_mut(key(k)..key(k + n));
            range.rev().for_each(|(_, value)| value.change(v, j));
        }
        Op::OrInsert(k, v) => {
            let entry = map.entry(key(k), j);
            let entry = entry.and_modify(|value| value.change(v + 1, j));
            return Some(entry.or_insert_with(|| value(v)).number());
        }
        Op::RemoveEntry(k) => match map.entry(key(k), j) {
            btree_map::Entry::Occupied(entry) => return Some(entry.remove().number()),
            btree_map::Entry::Vacant(_) => return None,
        },
        Op::PopFirst => {
            return map
                .pop_first()
                .map(|(key, value)| mix(0, key.number(), value.number()));
        }
        Op::PopLast => {
            return map
                .pop_last()
                .map(|(key, value)| mix(0, key.number(), value.number()));
        }
        Op::RemoveFirst => return Some(map.first_entry(j)?.remove().number()),
        Op::Range(from, to) => {
            if !is_range(from, to) {
                return None;
            }
            let (from, to) = (from.map(key), to.map(key));
            let range = (from.as_ref(), to.as_ref());
            let forth = map.range::<K, _>(range);
            let back = map.range::<K, _>(range).rev();
            assert_eq!(forth.clone().count(), back.count());
            return Some(forth.fold(0, |sum, (key, value)| {
                mix(sum, key.number(), value.number())
            }));
        }
        Op::Retain(n) => map.retain(|key, _| key.number() % n != 0),
        Op::Clear => map.clear(),
        Op::Copy => *map = map.pclone(j),
        Op::TakeOut(n) => {
            let mut entries = std::mem::take(map).into_iter();
            let taken: Vec<(K, V)> = entries.by_ref().rev().take(n).collect();
            let rest: Vec<(K, V)> = entries.collect();
            map.extend(taken, j);
            map.extend(rest, j);
        }
        Op::Append(k, n) => {
            let mut other = (k..k + n).map(|k| (key(k), value(k + 1))).collect();
            map.append(&mut other, j);
            assert!(other.is_empty());
        }
        Op::SplitOff(k) => {
            let tail = map.split_off(&key(k), j);
            let parts = (map.len() as u64, tail.keys().next().map_or(0, K::number));
            map.extend(tail, j);
            return Some(mix(0, parts.0, parts.1));
        }
    }
    None
}

fn apply_to_model(map: &mut BTreeMap<u64, u64>, op: &Op) -> Option<u64> {
    match *op {
        Op::Insert(k, v) => return map.insert(k, v),
        Op::InsertRow(k, n) => map.extend((k..k + n).map(|k| (k, k))),
        Op::Remove(k) | Op::RemoveEntry(k) => return map.remove(&k),
        Op::RemoveRow(k, n) => {
            return Some((k..k + n).filter(|k| map.remove(k).is_some()).count() as u64);
        }
        Op::Get(k) => return map.get(&k).copied(),
        Op::Change(k, v) => *map.get_mut(&k)? = v,
        Op::ChangeRange(k, n, v) => map.range_mut(k..k + n).for_each(|(_, value)| *value = v),
        Op::OrInsert(k, v) => {
            let entry = map.entry(k).and_modify(|value| *value = v + 1);
            return Some(*entry.or_insert(v));
        }
        Op::PopFirst => return map.pop_first().map(|(key, value)| mix(0, key, value)),
        Op::PopLast => return map.pop_last().map(|(key, value)| mix(0, key, value)),
        Op::RemoveFirst => return Some(map.pop_first()?.1),
        Op::Range(from, to) => {
            if !is_range(from, to) {
                return None;
            }
            return Some(
                map.range((from, to))
                    .fold(0, |sum, (key, value)| mix(sum, *key, *value)),
            );
        }
        Op::Retain(n) => map.retain(|key, _| key % n != 0),
        Op::Clear => map.clear(),
        Op::Copy | Op::TakeOut(_) => {}
        Op::Append(k, n) => map.extend((k..k + n).map(|k| (k, k + 1))),
        Op::SplitOff(k) => {
            let tail = map.split_off(&k);
            let parts = (
                map.len() as u64,
                tail.keys().next().map_or(0, |first| *first),
            );
            map.extend(tail);
            return Some(mix(0, parts.0, parts.1));
        }
    }
    None
}

fn behaves_as_its_model<P: PoolType, K, V>(engine: Engine, count: u32)
where
    K: Sample<P> + Ord,
    V: Sample<P>,
{
    proptest!(cases(count), |(steps in transactions(any_op()))| {
        let place = Place::new();
        let open = || P::open::<PRefCell<Map<K, V, P>, P>>(&place.path, options(engine)).unwrap();
        let (mut root, mut model) = (open(), BTreeMap::new());
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
            let numbers = |(key, value): (&K, &V)| (key.number(), value.number());
            prop_assert!(map.iter().map(numbers).eq(model.iter().map(|(key, value)| (*key, *value))));
            prop_assert!(map.iter().rev().map(numbers).eq(model.iter().rev().map(|(key, value)| (*key, *value))));
            prop_assert_eq!(map.len(), model.len());
            prop_assert_eq!(map.first_key_value().map(numbers), model.iter().next().map(|(key, value)| (*key, *value)));
            prop_assert_eq!(map.last_key_value().map(numbers), model.iter().next_back().map(|(key, value)| (*key, *value)));
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
        behaves_as_its_model::<P, PString<P>, Pbox<u64, P>>(engine, 15);
    }

    fn words_and_counted(engine) {
        durum::pool!(P);
        behaves_as_its_model::<P, u64, Prc<u64, P>>(engine, 15);
    }

    fn both_ends_of_an_iterator_meet(engine) {
        durum::pool!(P);
        let place = Place::new();
        let root = P::open::<PRefCell<Map<u64, u64, P>, P>>(&place.path, options(engine)).unwrap();
        P::transaction(|j| root.borrow_mut(j).extend((0..500).map(|n| (n, n)), j)).unwrap();
        let map = root.borrow();
        for front in [0, 1, 7, 250, 499, 500] {
            let mut entries = map.iter();
            let first: Vec<u64> = entries.by_ref().take(front).map(|(key, _)| *key).collect();
            assert_eq!(entries.len(), 500 - front);
            let rest: Vec<u64> = entries.by_ref().rev().map(|(key, _)| *key).collect();
            assert_eq!((first.len(), rest.len()), (front, 500 - front));
            assert!(first.into_iter().chain(rest.into_iter().rev()).eq(0..500));
            assert_eq!((entries.next(), entries.next_back()), (None, None));
        }
        assert!(std::panic::catch_unwind(|| map.range((Bound::Included(5), Bound::Included(3))).count()).is_err());
        assert_eq!(map.range(5..5).count(), 0);
    }

    fn maps_compare_and_show_as_those_of_std(engine) {
        durum::pool!(P);
        let place = Place::new();
        let _root = P::open::<()>(&place.path, options(engine)).unwrap();
        P::transaction(|j| {
            let a: Map<u64, u64, P> = (0..50).map(|n| (n, n * n)).collect();
            let mut b: Map<u64, u64, P> = (0..50).rev().map(|n| (n, n * n)).collect();
            assert_eq!((a == b, a.cmp(&b)), (true, std::cmp::Ordering::Equal));
            b.insert(7, 0, j);
            assert!(a > b);
            let two: Map<u64, u64, P> = [(3, 4), (1, 2)].into_iter().collect();
            assert_eq!(format!("{two:?}"), "{1: 2, 3: 4}");
            assert_eq!(format!("{:?}", two.range(2..)), "{3: 4}");
            assert_eq!((a[&7], two.into_values().collect::<Vec<_>>()), (49, vec![2, 4]));
            assert!(a.into_keys().eq(0..50));
        })
        .unwrap();
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
