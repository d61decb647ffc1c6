//! Iterators over ordered maps.

use std::borrow::Borrow;
use std::fmt;
use std::iter::FusedIterator;
use std::marker::PhantomData;
use std::ops::{Bound, RangeBounds};

use super::node::Place;
use super::path::Path;
use super::{PBTreeMap, search};
use crate::typed::journal::current_tx_unless;
use crate::typed::pool_type::PoolType;
use crate::typed::psafe::PSafe;
use crate::typed::typed_tx::TypedTx;

/// The entries between two gaps, the first of which is not behind the second.
struct Span<K, V> {
    front: Path<K, V>,
    back: Path<K, V>,
}

impl<K, V> Clone for Span<K, V> {
    fn clone(&self) -> Self {
        Self {
            front: self.front.clone(),
            back: self.back.clone(),
        }
    }
}

impl<K: PSafe, V: PSafe> Span<K, V> {
    /// All entries.
    fn all<P: PoolType>(map: &PBTreeMap<K, V, P>) -> Self {
        Self {
            front: Path::first(map.root()),
            back: Path::last(map.root()),
        }
    }

    #[track_caller]
    fn of_range<Q, P: PoolType>(map: &PBTreeMap<K, V, P>, range: &impl RangeBounds<Q>) -> Self
    where
        K: Borrow<Q> + Ord,
        Q: Ord + ?Sized,
    {
        use Bound::{Excluded, Included, Unbounded};
        let (start, end) = (range.start_bound(), range.end_bound());
        if let (Included(from) | Excluded(from), Included(to) | Excluded(to)) = (start, end) {
            let are_excluded = matches!((start, end), (Excluded(_), Excluded(_)));
            assert!(
                !(from > to || are_excluded && from == to),
                "a range of the map begins behind its end"
            );
        }
        let gap = |key: &Q, behind_key: bool| {
            let mut path = Path::new();
            if let Some(root) = map.root() {
                path.descend(root, |node| match search(node, key) {
                    Ok(at) => at + usize::from(behind_key),
                    Err(at) => at,
                });
            }
            path
        };
        let front = match start {
            Included(key) => gap(key, false),
            Excluded(key) => gap(key, true),
            Unbounded => Path::first(map.root()),
        };
        let back = match end {
            Included(key) => gap(key, true),
            Excluded(key) => gap(key, false),
            Unbounded => Path::last(map.root()),
        };
        // An `Ord` that contradicts itself must not let the ends pass each other: both would give the same entries.
        match front.position().le(back.position()) {
            true => Self { front, back },
            false => Self {
                back: front.clone(),
                front,
            },
        }
    }

    #[inline]
    fn is_over(&self) -> bool {
        self.front.len() == 0 || {
            let (front, back) = (self.front.end(), self.back.end());
            (front.node.address(), front.at) == (back.node.address(), back.at)
        }
    }

    #[inline]
    fn next(&mut self) -> Option<Place<K, V>> {
        if self.is_over() {
            return None;
        }
        self.front.next()
    }

    #[inline]
    fn next_back(&mut self) -> Option<Place<K, V>> {
        if self.is_over() {
            return None;
        }
        self.back.next_back()
    }
}

/// Some entries of a [`PBTreeMap`] in order.
pub struct Range<'a, K: PSafe, V: PSafe> {
    span: Span<K, V>,
    _map: PhantomData<&'a (K, V)>,
}

/// Some entries of a [`PBTreeMap`] in order. Each value is announced when it is given.
pub struct RangeMut<'a, K: PSafe, V: PSafe> {
    span: Span<K, V>,
    /// None where there is nothing to announce.
    tx: Option<&'a TypedTx>,
    _map: PhantomData<&'a mut (K, V)>,
}

/// The entries of a [`PBTreeMap`] in order.
pub struct Iter<'a, K: PSafe, V: PSafe> {
    entries: Range<'a, K, V>,
    left: usize,
}

/// The entries of a [`PBTreeMap`] in order. Each value is announced when it is given.
pub struct IterMut<'a, K: PSafe, V: PSafe> {
    entries: RangeMut<'a, K, V>,
    left: usize,
}

/// The keys of a [`PBTreeMap`] in order.
pub struct Keys<'a, K: PSafe, V: PSafe> {
    entries: Iter<'a, K, V>,
}

/// The values of a [`PBTreeMap`] in the order of their keys.
pub struct Values<'a, K: PSafe, V: PSafe> {
    entries: Iter<'a, K, V>,
}

/// The values of a [`PBTreeMap`] in the order of their keys. Each is announced when it is given.
pub struct ValuesMut<'a, K: PSafe, V: PSafe> {
    entries: IterMut<'a, K, V>,
}

/// The entries of a [`PBTreeMap`], taken out in order. The others are dropped with it.
pub struct IntoIter<K: PSafe, V: PSafe, P: PoolType> {
    map: PBTreeMap<K, V, P>,
}

/// The keys of a [`PBTreeMap`], taken out in order.
pub struct IntoKeys<K: PSafe, V: PSafe, P: PoolType> {
    entries: IntoIter<K, V, P>,
}

/// The values of a [`PBTreeMap`], taken out in the order of their keys.
pub struct IntoValues<K: PSafe, V: PSafe, P: PoolType> {
    entries: IntoIter<K, V, P>,
}

impl<'a, K: PSafe, V: PSafe> Range<'a, K, V> {
    #[track_caller]
    pub(super) fn new<Q, P: PoolType>(
        map: &'a PBTreeMap<K, V, P>,
        range: &impl RangeBounds<Q>,
    ) -> Self
    where
        K: Borrow<Q> + Ord,
        Q: Ord + ?Sized,
    {
        Self {
            span: Span::of_range(map, range),
            _map: PhantomData,
        }
    }

    fn entry(place: Place<K, V>) -> (&'a K, &'a V) {
        // SAFETY: an entry, borrowed as the map is.
        unsafe { (&*place.key(), &*place.value()) }
    }
}

impl<'a, K: PSafe, V: PSafe> RangeMut<'a, K, V> {
    #[track_caller]
    pub(super) fn new<Q, P: PoolType>(
        map: &'a mut PBTreeMap<K, V, P>,
        range: &impl RangeBounds<Q>,
    ) -> Self
    where
        K: Borrow<Q> + Ord,
        Q: Ord + ?Sized,
    {
        Self {
            span: Span::of_range(map, range),
            tx: current_tx_unless::<P>(map.len == 0),
            _map: PhantomData,
        }
    }

    fn entry(&self, place: Place<K, V>) -> Option<(&'a K, &'a mut V)> {
        let tx = self.tx?;
        // SAFETY: an entry, borrowed as the map is; no other item is of the same one.
        Some(unsafe { (&*place.key(), place.value_to_change(tx)) })
    }
}

impl<'a, K: PSafe, V: PSafe> Iter<'a, K, V> {
    pub(super) fn new<P: PoolType>(map: &'a PBTreeMap<K, V, P>) -> Self {
        let entries = Range {
            span: Span::all(map),
            _map: PhantomData,
        };
        Self {
            entries,
            left: map.len,
        }
    }
}

impl<'a, K: PSafe, V: PSafe> IterMut<'a, K, V> {
    pub(super) fn new<P: PoolType>(map: &'a mut PBTreeMap<K, V, P>) -> Self {
        let entries = RangeMut {
            span: Span::all(map),
            tx: current_tx_unless::<P>(map.len == 0),
            _map: PhantomData,
        };
        Self {
            entries,
            left: map.len,
        }
    }
}

impl<'a, K: PSafe, V: PSafe> Iterator for Range<'a, K, V> {
    type Item = (&'a K, &'a V);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        self.span.next().map(Self::entry)
    }
}

impl<K: PSafe, V: PSafe> DoubleEndedIterator for Range<'_, K, V> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.span.next_back().map(Self::entry)
    }
}

impl<'a, K: PSafe, V: PSafe> Iterator for RangeMut<'a, K, V> {
    type Item = (&'a K, &'a mut V);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let place = self.span.next()?;
        self.entry(place)
    }
}

impl<K: PSafe, V: PSafe> DoubleEndedIterator for RangeMut<'_, K, V> {
    fn next_back(&mut self) -> Option<Self::Item> {
        let place = self.span.next_back()?;
        self.entry(place)
    }
}

macro_rules! counted {
    ($($name:ident gives $item:ty;)*) => { $(
        impl<'a, K: PSafe, V: PSafe> Iterator for $name<'a, K, V> {
            type Item = $item;

            #[inline]
            fn next(&mut self) -> Option<$item> {
                let entry = self.entries.next()?;
                self.left -= 1;
                Some(entry)
            }

            fn size_hint(&self) -> (usize, Option<usize>) {
                (self.left, Some(self.left))
            }
        }

        impl<K: PSafe, V: PSafe> DoubleEndedIterator for $name<'_, K, V> {
            fn next_back(&mut self) -> Option<Self::Item> {
                let entry = self.entries.next_back()?;
                self.left -= 1;
                Some(entry)
            }
        }
    )* };
}

counted! {
    Iter gives (&'a K, &'a V);
    IterMut gives (&'a K, &'a mut V);
}

impl<K: PSafe, V: PSafe, P: PoolType> Iterator for IntoIter<K, V, P> {
    type Item = (K, V);

    fn next(&mut self) -> Option<(K, V)> {
        self.map.pop_first()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.map.len, Some(self.map.len))
    }
}

impl<K: PSafe, V: PSafe, P: PoolType> DoubleEndedIterator for IntoIter<K, V, P> {
    fn next_back(&mut self) -> Option<(K, V)> {
        self.map.pop_last()
    }
}

macro_rules! parts {
    ($($name:ident<$($lifetime:lifetime,)? K, V $(, $pool:ident: $bound:ident)?> gives $item:ty, $part:expr;)*) => { $(
        impl<$($lifetime,)? K: PSafe, V: PSafe $(, $pool: $bound)?> Iterator for $name<$($lifetime,)? K, V $(, $pool)?> {
            type Item = $item;

            #[inline]
            fn next(&mut self) -> Option<$item> {
                self.entries.next().map($part)
            }

            fn size_hint(&self) -> (usize, Option<usize>) {
                self.entries.size_hint()
            }
        }

        impl<$($lifetime,)? K: PSafe, V: PSafe $(, $pool: $bound)?> DoubleEndedIterator for $name<$($lifetime,)? K, V $(, $pool)?> {
            fn next_back(&mut self) -> Option<$item> {
                self.entries.next_back().map($part)
            }
        }
    )* };
}

parts! {
    Keys<'a, K, V> gives &'a K, |(key, _)| key;
    Values<'a, K, V> gives &'a V, |(_, value)| value;
    ValuesMut<'a, K, V> gives &'a mut V, |(_, value)| value;
    IntoKeys<K, V, P: PoolType> gives K, |(key, _)| key;
    IntoValues<K, V, P: PoolType> gives V, |(_, value)| value;
}

macro_rules! constructors {
    ($($name:ident of $entries:ident from $map:ty;)*) => { $(
        impl<'a, K: PSafe, V: PSafe> $name<'a, K, V> {
            pub(super) fn new<P: PoolType>(map: $map) -> Self {
                Self {
                    entries: $entries::new(map),
                }
            }
        }
    )* };
}

constructors! {
    Keys of Iter from &'a PBTreeMap<K, V, P>;
    Values of Iter from &'a PBTreeMap<K, V, P>;
    ValuesMut of IterMut from &'a mut PBTreeMap<K, V, P>;
}

impl<K: PSafe, V: PSafe, P: PoolType> IntoKeys<K, V, P> {
    pub(super) fn new(map: PBTreeMap<K, V, P>) -> Self {
        Self {
            entries: map.into_iter(),
        }
    }
}

impl<K: PSafe, V: PSafe, P: PoolType> IntoValues<K, V, P> {
    pub(super) fn new(map: PBTreeMap<K, V, P>) -> Self {
        Self {
            entries: map.into_iter(),
        }
    }
}

macro_rules! exact {
    ($($name:ident)*) => { $(
        impl<K: PSafe, V: PSafe> ExactSizeIterator for $name<'_, K, V> {}

        impl<K: PSafe, V: PSafe> fmt::Debug for $name<'_, K, V> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({} left)"), self.len())
            }
        }
    )* };
}

exact! { Iter IterMut Keys Values ValuesMut }

macro_rules! owning {
    ($($name:ident)*) => { $(
        impl<K: PSafe, V: PSafe, P: PoolType> ExactSizeIterator for $name<K, V, P> {}
        impl<K: PSafe, V: PSafe, P: PoolType> FusedIterator for $name<K, V, P> {}

        impl<K: PSafe, V: PSafe, P: PoolType> fmt::Debug for $name<K, V, P> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({} left)"), self.len())
            }
        }
    )* };
}

owning! { IntoIter IntoKeys IntoValues }

macro_rules! fused {
    ($($name:ident)*) => { $(
        impl<K: PSafe, V: PSafe> FusedIterator for $name<'_, K, V> {}
    )* };
}

fused! { Range RangeMut Iter IterMut Keys Values ValuesMut }

impl<K: PSafe, V: PSafe> fmt::Debug for RangeMut<'_, K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RangeMut").finish_non_exhaustive()
    }
}

impl<K: PSafe + fmt::Debug, V: PSafe + fmt::Debug> fmt::Debug for Range<'_, K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.clone()).finish()
    }
}

impl<K: PSafe, V: PSafe> Clone for Range<'_, K, V> {
    fn clone(&self) -> Self {
        Self {
            span: self.span.clone(),
            _map: PhantomData,
        }
    }
}

impl<K: PSafe, V: PSafe> Clone for Iter<'_, K, V> {
    fn clone(&self) -> Self {
        Self {
            entries: self.entries.clone(),
            left: self.left,
        }
    }
}

impl<K: PSafe, V: PSafe> Clone for Keys<'_, K, V> {
    fn clone(&self) -> Self {
        Self {
            entries: self.entries.clone(),
        }
    }
}

impl<K: PSafe, V: PSafe> Clone for Values<'_, K, V> {
    fn clone(&self) -> Self {
        Self {
            entries: self.entries.clone(),
        }
    }
}

impl<'a, K: PSafe, V: PSafe, P: PoolType> IntoIterator for &'a PBTreeMap<K, V, P> {
    type Item = (&'a K, &'a V);
    type IntoIter = Iter<'a, K, V>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<'a, K: PSafe, V: PSafe, P: PoolType> IntoIterator for &'a mut PBTreeMap<K, V, P> {
    type Item = (&'a K, &'a mut V);
    type IntoIter = IterMut<'a, K, V>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter_mut()
    }
}

impl<K: PSafe, V: PSafe, P: PoolType> IntoIterator for PBTreeMap<K, V, P> {
    type Item = (K, V);
    type IntoIter = IntoIter<K, V, P>;

    /// Takes the entries out. Only in a transaction, as everything that has a map by value.
    fn into_iter(self) -> Self::IntoIter {
        IntoIter { map: self }
    }
}
