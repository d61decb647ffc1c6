//! Empty collections outside of transactions: there is nothing to do, and so nothing to refuse.

use durum::typed::*;

durum::pool!(P);

#[test]
fn a_vector_behaves_as_in_std() {
    let mut vector = PVec::<Pbox<u64, P>, P>::new();
    assert_eq!(vector.iter_mut().rev().count(), 0);
    (&mut vector).into_iter().for_each(|value| **value += 1);
    vector.retain(|_| false);
    vector.truncate(0);
    vector.clear();
    vector.sort();
    assert_eq!(vector.drain(..).count(), 0);
    assert!(vector.pop().is_none() && vector.get_mut(0).is_none());
    assert!(vector.first_mut().is_none() && vector.last_mut().is_none());
    vector[..].reverse();
    assert!(vector.is_empty() && vector.capacity() == 0);
}

#[test]
fn a_string_behaves_as_in_std() {
    let mut string = PString::<P>::default();
    string.truncate(0);
    string.clear();
    assert_eq!((string.pop(), string.as_str()), (None, ""));
}

#[test]
fn maps_behave_as_in_std() {
    let mut map = PHashMap::<u64, Pbox<u64, P>, P>::new();
    map.iter_mut().for_each(|(_, value)| **value += 1);
    map.values_mut().for_each(|value| **value += 1);
    map.retain(|_, _| false);
    map.clear();
    assert!(map.get_mut(&1).is_none() && map.remove(&1).is_none());
    assert!(map.is_empty() && map.into_iter().next().is_none());

    let mut map = PBTreeMap::<u64, Pbox<u64, P>, P>::new();
    map.iter_mut().rev().for_each(|(_, value)| **value += 1);
    map.values_mut().for_each(|value| **value += 1);
    map.range_mut(1..).for_each(|(_, value)| **value += 1);
    map.retain(|_, _| false);
    map.clear();
    assert!(map.get_mut(&1).is_none() && map.remove(&1).is_none());
    assert!(map.pop_first().is_none() && map.pop_last().is_none());
    assert!(map.is_empty() && map.into_values().next().is_none());
}
