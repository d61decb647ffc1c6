//! `PVec` and `PString` against `Vec` and `String`.

use std::fmt::Write;

use durum::Engine;
use durum::typed::*;
use proptest::prelude::*;

use super::{End, Sample, assert_sound, cases, transactions};
use crate::{Place, on_each_engine, options};

#[derive(Clone, Debug)]
enum Op {
    Push(u64),
    Pop,
    Insert(usize, u64),
    Remove(usize),
    SwapRemove(usize),
    Swap(usize, usize),
    Truncate(usize),
    Clear,
    Retain(u64),
    Extend(Vec<u64>),
    Change(usize, u64),
    ChangeAll(u64),
    ChangeRow(usize, usize, u64),
    ReverseRow(usize, usize),
    Sort,
    Reverse,
    Reserve(usize),
    Drain(usize, usize),
    SplitOff(usize),
    Copy,
    Dedup,
    DedupByKey(u64),
    Resize(usize, u64),
    ResizeWith(usize, u64),
    Append(Vec<u64>),
    ShrinkToFit,
    IntoIter(usize),
}

fn any_op() -> impl Strategy<Value = Op> {
    let at = || 0..60usize;
    let value = || 0..1000u64;
    prop_oneof![
        20 => value().prop_map(Op::Push),
        6 => Just(Op::Pop),
        6 => (at(), value()).prop_map(|(at, value)| Op::Insert(at, value)),
        6 => at().prop_map(Op::Remove),
        4 => at().prop_map(Op::SwapRemove),
        4 => (at(), at()).prop_map(|(a, b)| Op::Swap(a, b)),
        1 => at().prop_map(Op::Truncate),
        1 => Just(Op::Clear),
        1 => (2..7u64).prop_map(Op::Retain),
        2 => prop::collection::vec(value(), 0..20).prop_map(Op::Extend),
        8 => (at(), value()).prop_map(|(at, value)| Op::Change(at, value)),
        1 => value().prop_map(Op::ChangeAll),
        4 => (at(), at(), value()).prop_map(|(from, len, value)| Op::ChangeRow(from, len, value)),
        4 => (at(), at()).prop_map(|(from, len)| Op::ReverseRow(from, len)),
        3 => Just(Op::Sort),
        3 => Just(Op::Reverse),
        1 => at().prop_map(Op::Reserve),
        1 => Just(Op::Copy),
        3 => (at(), at()).prop_map(|(from, to)| Op::Drain(from, to)),
        3 => at().prop_map(Op::SplitOff),
        2 => Just(Op::Dedup),
        2 => (2..9u64).prop_map(Op::DedupByKey),
        2 => (at(), value()).prop_map(|(len, value)| Op::Resize(len, value)),
        2 => (at(), value()).prop_map(|(len, value)| Op::ResizeWith(len, value)),
        2 => prop::collection::vec(value(), 0..20).prop_map(Op::Append),
        2 => Just(Op::ShrinkToFit),
        2 => at().prop_map(Op::IntoIter),
    ]
}

/// What the operation tells.
fn apply<P: PoolType, T: Sample<P>>(vec: &mut PVec<T, P>, op: &Op, j: &Journal<P>) -> Option<u64> {
    let value = |number: u64| T::make(number, j);
    let len = vec.len();
    match op {
        Op::Push(v) => vec.push(value(*v), j),
        Op::Pop => return vec.pop().map(|old| old.number()),
        Op::Insert(at, v) => vec.insert(at % (len + 1), value(*v), j),
        Op::Remove(at) if len > 0 => return Some(vec.remove(at % len).number()),
        Op::SwapRemove(at) if len > 0 => return Some(vec.swap_remove(at % len).number()),
        Op::Swap(a, b) if len > 0 => vec.swap(a % len, b % len),
        Op::Truncate(len) => vec.truncate(*len),
        Op::Clear => vec.clear(),
        Op::Retain(n) => vec.retain(|value| value.number() % n != 0),
        Op::Extend(values) => vec.extend(values.iter().map(|v| value(*v)), j),
        Op::Change(at, v) => vec.get_mut(*at)?.change(*v, j),
        Op::ChangeAll(v) => vec.iter_mut().for_each(|value| value.change(*v, j)),
        Op::ChangeRow(from, row, v) => {
            let row = vec.get_mut(*from..from + row)?;
            row.iter_mut().for_each(|value| value.change(*v, j));
        }
        Op::ReverseRow(from, row) => vec.get_mut(*from..from + row)?.reverse(),
        Op::Sort => vec.sort_by_key(|value| value.number()),
        Op::Reverse => vec.reverse(),
        Op::Reserve(n) => vec.reserve(*n, j),
        Op::Copy => *vec = vec.pclone(j),
        Op::Drain(from, to) => {
            let (from, to) = (from % (len + 1), to % (len + 1));
            let mut drained = vec.drain(from.min(to)..from.max(to));
            return drained.next_back().map(|last| last.number());
        }
        Op::SplitOff(at) => {
            // The tail comes before the rest.
            let mut tail = vec.split_off(at % (len + 1), j);
            std::mem::swap(vec, &mut tail);
            vec.extend(tail.drain(..), j);
        }
        Op::Dedup => {
            vec.sort_by_key(|value| value.number() / 10);
            vec.dedup_by(|a, b| a.number() / 10 == b.number() / 10);
        }
        Op::DedupByKey(n) => vec.dedup_by_key(|value| value.number() / n),
        Op::Resize(len, v) => vec.resize(*len, value(*v), j),
        Op::ResizeWith(len, v) => vec.resize_with(*len, || value(*v), j),
        Op::Append(values) => {
            let mut other: PVec<T, P> = values.iter().map(|v| value(*v)).collect();
            vec.append(&mut other, j);
            assert!(other.is_empty());
        }
        Op::ShrinkToFit => {
            vec.shrink_to_fit(j);
            assert_eq!(vec.capacity(), vec.len());
        }
        Op::IntoIter(n) => {
            // The first ones are dropped, and of the rest every other one with the iterator.
            let mut values = std::mem::take(vec).into_iter().skip(*n);
            while let Some(kept) = values.next() {
                vec.push(kept, j);
                values.next();
                if vec.len() == 20 {
                    break;
                }
            }
        }
        _ => {}
    }
    None
}

fn apply_to_model(vec: &mut Vec<u64>, op: &Op) -> Option<u64> {
    let len = vec.len();
    match op {
        Op::Push(v) => vec.push(*v),
        Op::Pop => return vec.pop(),
        Op::Insert(at, v) => vec.insert(at % (len + 1), *v),
        Op::Remove(at) if len > 0 => return Some(vec.remove(at % len)),
        Op::SwapRemove(at) if len > 0 => return Some(vec.swap_remove(at % len)),
        Op::Swap(a, b) if len > 0 => vec.swap(a % len, b % len),
        Op::Truncate(len) => vec.truncate(*len),
        Op::Clear => vec.clear(),
        Op::Retain(n) => vec.retain(|value| value % n != 0),
        Op::Extend(values) => vec.extend(values),
        Op::Change(at, v) => *vec.get_mut(*at)? = *v,
        Op::ChangeAll(v) => vec.fill(*v),
        Op::ChangeRow(from, row, v) => vec.get_mut(*from..from + row)?.fill(*v),
        Op::ReverseRow(from, row) => vec.get_mut(*from..from + row)?.reverse(),
        Op::Sort => vec.sort(),
        Op::Reverse => vec.reverse(),
        Op::Drain(from, to) => {
            let (from, to) = (from % (len + 1), to % (len + 1));
            return vec.drain(from.min(to)..from.max(to)).next_back();
        }
        Op::SplitOff(at) => vec.rotate_left(at % (len + 1)),
        Op::Dedup => {
            vec.sort_by_key(|value| value / 10);
            vec.dedup_by(|a, b| *a / 10 == *b / 10);
        }
        Op::DedupByKey(n) => vec.dedup_by_key(|value| *value / n),
        Op::Resize(len, v) | Op::ResizeWith(len, v) => vec.resize(*len, *v),
        Op::Append(values) => vec.extend(values),
        Op::IntoIter(n) => {
            let kept = vec.iter().skip(*n).step_by(2).take(20);
            *vec = kept.copied().collect();
        }
        _ => {}
    }
    None
}

fn behaves_as_its_model<P: PoolType, T: Sample<P>>(engine: Engine, count: u32) {
    proptest!(cases(count), |(steps in transactions(any_op()))| {
        let place = Place::new();
        let open = || P::open::<PRefCell<PVec<T, P>, P>>(&place.path, options(engine)).unwrap();
        let (mut root, mut model) = (open(), Vec::new());
        for (ops, end) in &steps {
            let result: Result<Vec<Option<u64>>, durum::Error> = P::try_transaction(|j| {
                let mut vec = root.borrow_mut(j);
                let told = ops.iter().map(|op| apply(&mut vec, op, j)).collect();
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
            let found: Vec<u64> = root.borrow().iter().map(T::number).collect();
            prop_assert_eq!(&found, &model);
        }
        root.close().unwrap();
        assert_sound(&place.path);
    });
}

on_each_engine! {
    fn words(engine) {
        durum::pool!(P);
        behaves_as_its_model::<P, u64>(engine, 30);
    }

    fn boxes(engine) {
        durum::pool!(P);
        behaves_as_its_model::<P, Pbox<u64, P>>(engine, 30);
    }

    fn optional_boxes(engine) {
        durum::pool!(P);
        behaves_as_its_model::<P, Option<Pbox<u64, P>>>(engine, 30);
    }

    fn strings(engine) {
        durum::pool!(P);
        behaves_as_its_model::<P, PString<P>>(engine, 20);
    }

    fn nothings(engine) {
        durum::pool!(P);
        let place = Place::new();
        let root = P::open::<PRefCell<PVec<(), P>, P>>(&place.path, options(engine)).unwrap();
        P::transaction(|j| {
            let mut vec = root.borrow_mut(j);
            (0..10).for_each(|_| vec.push((), j));
            vec.insert(3, (), j);
            assert_eq!((vec.pop(), vec.remove(0), vec.swap_remove(2)), (Some(()), (), ()));
            vec.iter_mut().for_each(|nothing| *nothing = ());
            vec.resize(20, (), j);
            let mut other = PVec::<(), P>::new();
            other.resize_with(5, || (), j);
            vec.append(&mut other, j);
            vec.shrink_to_fit(j);
            assert_eq!((vec.len(), other.len()), (25, 0));
            vec.truncate(8);
            other.resize(3, (), j);
            other.dedup();
            assert_eq!(other.into_iter().count(), 1);
            assert_eq!((vec.drain(1..2).len(), vec.split_off(5, j).len()), (1, 2));
        })
        .unwrap();
        assert_eq!(root.borrow().len(), 5);
    }

    fn texts(engine) {
        durum::pool!(P);
        proptest!(cases(20), |(steps in prop::collection::vec((0..12u8, any::<prop::sample::Index>(), "[a-zäß€]{0,40}", any::<bool>()), 1..40))| {
            let place = Place::new();
            let root = P::open::<PRefCell<PString<P>, P>>(&place.path, options(engine)).unwrap();
            let mut model = String::new();
            for (op, at, text, commits) in &steps {
                let borders: Vec<usize> = model.char_indices().map(|(at, _)| at).chain([model.len()]).collect();
                let at = *at.get(&borders);
                let result: Result<(), durum::Error> = P::try_transaction(|j| {
                    let mut string = root.borrow_mut(j);
                    match op {
                        0 | 1 => string.push_str(text, j),
                        2 => string.insert_str(at, text, j),
                        3 => string.truncate(at),
                        4 => drop(string.pop()),
                        5 => string.insert(at, 'ö', j),
                        6 if at < string.len() => assert_eq!(string.remove(at), model[at..].chars().next().unwrap()),
                        7 => string.retain(|char| char.is_ascii()),
                        8 => string.shrink_to_fit(j),
                        9 => *string = [text.as_str(), "and", text].into_iter().collect(),
                        10 => write!(string, "{text}{at}").unwrap(),
                        11 => string.clear(),
                        _ => {}
                    }
                    if *commits { Ok(()) } else { Err(durum::Error::Aborted) }
                });
                if result.is_ok() {
                    match op {
                        0 | 1 => model.push_str(text),
                        2 => model.insert_str(at, text),
                        3 => model.truncate(at),
                        4 => drop(model.pop()),
                        5 => model.insert(at, 'ö'),
                        6 if at < model.len() => drop(model.remove(at)),
                        7 => model.retain(|char| char.is_ascii()),
                        9 => model = format!("{text}and{text}"),
                        10 => write!(model, "{text}{at}").unwrap(),
                        11 => model.clear(),
                        _ => {}
                    }
                }
                let string = root.borrow();
                prop_assert_eq!(string.as_str(), &model);
            }
        });
    }
}
