//! Ranges of an ordered map.

use std::borrow::Borrow;
use std::fmt;
use std::marker::PhantomData;
use std::ops::{Bound, RangeBounds};

use super::path::Path;
use super::{PBTreeMap, search};
use crate::typed::collections::map::iter::iterator;
use crate::typed::collections::map::slot::Place;
use crate::typed::pool_type::PoolType;
use crate::typed::psafe::PSafe;
use crate::typed::typed_tx::TypedTx;

/// The entries between two gaps, the first of which is not behind the second.
pub(super) struct Span<K, V> {
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
    pub(super) fn all<P: PoolType>(map: &PBTreeMap<K, V, P>) -> Self {
        Self {
            front: Path::first(map.root()),
            back: Path::last(map.root()),
        }
    }

    #[track_caller]
    pub(super) fn of_range<Q, P: PoolType>(
        map: &PBTreeMap<K, V, P>,
        range: &impl RangeBounds<Q>,
    ) -> Self
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
}

impl<K: PSafe, V: PSafe> Iterator for Span<K, V> {
    type Item = Place<K, V>;

    #[inline]
    fn next(&mut self) -> Option<Place<K, V>> {
        if self.is_over() {
            return None;
        }
        self.front.next()
    }
}

impl<K: PSafe, V: PSafe> DoubleEndedIterator for Span<K, V> {
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

impl<K: PSafe, V: PSafe> Range<'_, K, V> {
    pub(super) fn new(span: Span<K, V>) -> Self {
        Self {
            span,
            _map: PhantomData,
        }
    }
}

impl<'a, K: PSafe, V: PSafe> RangeMut<'a, K, V> {
    pub(super) fn new(span: Span<K, V>, tx: Option<&'a TypedTx>) -> Self {
        Self {
            span,
            tx,
            _map: PhantomData,
        }
    }
}

iterator! { [both]
    ['a, K: PSafe, V: PSafe] Range<'a, K, V> of span gives (&'a K, &'a V), |_this, place| {
        // SAFETY: an entry, borrowed as the map is.
        Some(unsafe { place.entry() })
    };
    ['a, K: PSafe, V: PSafe] RangeMut<'a, K, V> of span gives (&'a K, &'a mut V), |this, place| {
        let tx = this.tx?;
        // SAFETY: an entry, borrowed as the map is; no other item is of the same one.
        Some(unsafe { (&*place.key(), place.value_to_change(tx)) })
    };
}

impl<K: PSafe, V: PSafe> Clone for Range<'_, K, V> {
    fn clone(&self) -> Self {
        Self::new(self.span.clone())
    }
}

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
