//! Iterators over hash maps.

use std::fmt;
use std::iter::FusedIterator;
use std::marker::PhantomData;

use super::PHashMap;
use super::table::{Place, Places};
use crate::typed::journal::{current_tx, current_tx_unless};
use crate::typed::pool_type::PoolType;
use crate::typed::psafe::PSafe;
use crate::typed::typed_tx::TypedTx;

/// The places of a borrowed map's entries, and how many are left.
struct Walk<K, V> {
    places: Places<K, V>,
    left: usize,
}

impl<K: PSafe, V: PSafe> Walk<K, V> {
    fn new<P: PoolType>(map: &PHashMap<K, V, P>) -> Self {
        Self {
            places: map.table().places(),
            left: map.len,
        }
    }

    #[inline]
    fn next(&mut self) -> Option<Place<K, V>> {
        let place = self.places.next()?;
        self.left -= 1;
        Some(place)
    }
}

impl<K, V> Clone for Walk<K, V> {
    fn clone(&self) -> Self {
        Self {
            places: self.places.clone(),
            left: self.left,
        }
    }
}

/// The entries of a [`PHashMap`], in no order.
pub struct Iter<'a, K: PSafe, V: PSafe> {
    walk: Walk<K, V>,
    _map: PhantomData<&'a (K, V)>,
}

/// The entries of a [`PHashMap`], in no order. Each value is announced when it is given.
pub struct IterMut<'a, K: PSafe, V: PSafe> {
    walk: Walk<K, V>,
    /// None where there is nothing to announce.
    tx: Option<&'a TypedTx>,
    _map: PhantomData<&'a mut (K, V)>,
}

/// The keys of a [`PHashMap`], in no order.
pub struct Keys<'a, K: PSafe, V: PSafe>(Iter<'a, K, V>);

/// The values of a [`PHashMap`], in no order.
pub struct Values<'a, K: PSafe, V: PSafe>(Iter<'a, K, V>);

/// The values of a [`PHashMap`], in no order. Each is announced when it is given.
pub struct ValuesMut<'a, K: PSafe, V: PSafe>(IterMut<'a, K, V>);

/// The entries of a [`PHashMap`], taken out one by one. The others are dropped with it.
pub struct IntoIter<K: PSafe, V: PSafe, P: PoolType> {
    places: Places<K, V>,
    map: PHashMap<K, V, P>,
}

impl<'a, K: PSafe, V: PSafe> Iter<'a, K, V> {
    pub(super) fn new<P: PoolType>(map: &'a PHashMap<K, V, P>) -> Self {
        Self {
            walk: Walk::new(map),
            _map: PhantomData,
        }
    }
}

impl<'a, K: PSafe, V: PSafe> IterMut<'a, K, V> {
    pub(super) fn new<P: PoolType>(map: &'a mut PHashMap<K, V, P>) -> Self {
        Self {
            walk: Walk::new(map),
            tx: current_tx_unless::<P>(map.len == 0),
            _map: PhantomData,
        }
    }
}

impl<'a, K: PSafe, V: PSafe> Keys<'a, K, V> {
    pub(super) fn new<P: PoolType>(map: &'a PHashMap<K, V, P>) -> Self {
        Self(Iter::new(map))
    }
}

impl<'a, K: PSafe, V: PSafe> Values<'a, K, V> {
    pub(super) fn new<P: PoolType>(map: &'a PHashMap<K, V, P>) -> Self {
        Self(Iter::new(map))
    }
}

impl<'a, K: PSafe, V: PSafe> ValuesMut<'a, K, V> {
    pub(super) fn new<P: PoolType>(map: &'a mut PHashMap<K, V, P>) -> Self {
        Self(IterMut::new(map))
    }
}

impl<'a, K: PSafe, V: PSafe> Iterator for Iter<'a, K, V> {
    type Item = (&'a K, &'a V);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let place = self.walk.next()?;
        // SAFETY: an entry, borrowed as the map is.
        Some(unsafe { (&*place.key(), &*place.value()) })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.walk.left, Some(self.walk.left))
    }
}

impl<'a, K: PSafe, V: PSafe> Iterator for IterMut<'a, K, V> {
    type Item = (&'a K, &'a mut V);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let (place, tx) = (self.walk.next()?, self.tx?);
        // SAFETY: an entry, borrowed as the map is; no other item is of the same one.
        Some(unsafe { (&*place.key(), place.value_to_change(tx)) })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.walk.left, Some(self.walk.left))
    }
}

impl<K: PSafe, V: PSafe, P: PoolType> Iterator for IntoIter<K, V, P> {
    type Item = (K, V);

    fn next(&mut self) -> Option<(K, V)> {
        let place = self.places.next()?;
        Some(self.map.take_unsearched(place, current_tx::<P>()))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.map.len, Some(self.map.len))
    }
}

impl<K: PSafe, V: PSafe, P: PoolType> ExactSizeIterator for IntoIter<K, V, P> {}
impl<K: PSafe, V: PSafe, P: PoolType> FusedIterator for IntoIter<K, V, P> {}

/// The keys of a [`PHashMap`], taken out in no order.
#[derive(Debug)]
pub struct IntoKeys<K: PSafe, V: PSafe, P: PoolType>(pub(super) IntoIter<K, V, P>);

/// The values of a [`PHashMap`], taken out in no order.
#[derive(Debug)]
pub struct IntoValues<K: PSafe, V: PSafe, P: PoolType>(pub(super) IntoIter<K, V, P>);

macro_rules! of_entries_taken {
    ($($name:ident gives $item:ty, $part:expr;)*) => { $(
        impl<K: PSafe, V: PSafe, P: PoolType> Iterator for $name<K, V, P> {
            type Item = $item;

            fn next(&mut self) -> Option<$item> {
                self.0.next().map($part)
            }

            fn size_hint(&self) -> (usize, Option<usize>) {
                self.0.size_hint()
            }
        }

        impl<K: PSafe, V: PSafe, P: PoolType> ExactSizeIterator for $name<K, V, P> {}
        impl<K: PSafe, V: PSafe, P: PoolType> FusedIterator for $name<K, V, P> {}
    )* };
}

of_entries_taken! {
    IntoKeys gives K, |(key, _)| key;
    IntoValues gives V, |(_, value)| value;
}

macro_rules! of_entries {
    ($($name:ident gives $item:ty, $part:expr;)*) => { $(
        impl<'a, K: PSafe, V: PSafe> Iterator for $name<'a, K, V> {
            type Item = $item;

            #[inline]
            fn next(&mut self) -> Option<$item> {
                self.0.next().map($part)
            }

            fn size_hint(&self) -> (usize, Option<usize>) {
                self.0.size_hint()
            }
        }
    )* };
}

of_entries! {
    Keys gives &'a K, |(key, _)| key;
    Values gives &'a V, |(_, value)| value;
    ValuesMut gives &'a mut V, |(_, value)| value;
}

macro_rules! exact {
    ($($name:ident)*) => { $(
        impl<K: PSafe, V: PSafe> ExactSizeIterator for $name<'_, K, V> {}
        impl<K: PSafe, V: PSafe> FusedIterator for $name<'_, K, V> {}

        impl<K: PSafe, V: PSafe> fmt::Debug for $name<'_, K, V> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({} left)"), self.len())
            }
        }
    )* };
}

exact! { Iter IterMut Keys Values ValuesMut }

impl<K: PSafe, V: PSafe> Clone for Iter<'_, K, V> {
    fn clone(&self) -> Self {
        Self {
            walk: self.walk.clone(),
            _map: PhantomData,
        }
    }
}

impl<K: PSafe, V: PSafe> Clone for Keys<'_, K, V> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<K: PSafe, V: PSafe> Clone for Values<'_, K, V> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<K: PSafe, V: PSafe, P: PoolType> fmt::Debug for IntoIter<K, V, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "IntoIter({} left)", self.len())
    }
}

impl<'a, K: PSafe, V: PSafe, P: PoolType> IntoIterator for &'a PHashMap<K, V, P> {
    type Item = (&'a K, &'a V);
    type IntoIter = Iter<'a, K, V>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<'a, K: PSafe, V: PSafe, P: PoolType> IntoIterator for &'a mut PHashMap<K, V, P> {
    type Item = (&'a K, &'a mut V);
    type IntoIter = IterMut<'a, K, V>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter_mut()
    }
}

impl<K: PSafe, V: PSafe, P: PoolType> IntoIterator for PHashMap<K, V, P> {
    type Item = (K, V);
    type IntoIter = IntoIter<K, V, P>;

    /// Takes the entries out. Only in a transaction, as everything that has a map by value.
    fn into_iter(self) -> Self::IntoIter {
        IntoIter {
            places: self.table().places(),
            map: self,
        }
    }
}
