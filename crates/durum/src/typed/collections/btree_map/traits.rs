//! What an ordered map shares with the other map and other collections.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::hash::{Hash, Hasher};

use durum_format::types::Type;

use super::PBTreeMap;
use super::node::{NodeType, drop_node};
use super::path::Path;
use super::range::Span;
use crate::described::{Described, Walk};
use crate::typed::collections::collection::collection;
use crate::typed::collections::map::entry::entries;
use crate::typed::collections::map::iter::iterators;
use crate::typed::collections::map::methods::methods;
use crate::typed::collections::map::slot::{Place, map_name};
use crate::typed::collections::map::traits::traits;
use crate::typed::journal::Journal;
use crate::typed::layout::{WORD, structure};
use crate::typed::pool_type::PoolType;
use crate::typed::psafe::PSafe;
use crate::typed::values::PClone;

// SAFETY: the compiler measures size and offsets; `root` is the only pointer.
unsafe impl<K: PSafe, V: PSafe, P: PoolType> Described for PBTreeMap<K, V, P> {
    fn name() -> Option<Cow<'static, str>> {
        Some(Cow::Owned(map_name::<K, V>("PBTreeMap")))
    }

    fn layout(walk: &mut Walk) -> Type<String> {
        structure!(map_name::<K, V>("PBTreeMap"), {
            root: walk.pointer_to::<NodeType<K, V>>(),
            height: WORD,
            len: WORD,
        })
    }
}

collection! {
    PBTreeMap<K, V> of (K, V) {
        Threads: (K::Threads, V::Threads),
        inserts where: [K: Ord],
        address: root,
        extent: height,
        drop: drop_node::<K, V>,
    }
}

methods! { PBTreeMap, Ord }

traits! { PBTreeMap, Ord, |_, _| Self::new() }

entries! { PBTreeMap, K: [], Path<K, V>, Path<K, V> }

iterators! { PBTreeMap, Span, entries " in order", values " in the order of their keys", ends [both] }

/// The entries of a [`PBTreeMap`], taken out in order. The others are dropped with it.
pub struct IntoIter<K: PSafe, V: PSafe, P: PoolType> {
    map: PBTreeMap<K, V, P>,
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

impl<K: PSafe, V: PSafe, P: PoolType> IntoIterator for PBTreeMap<K, V, P> {
    type Item = (K, V);
    type IntoIter = IntoIter<K, V, P>;

    /// Takes the entries out. Only in a transaction, as everything that has a map by value.
    fn into_iter(self) -> Self::IntoIter {
        IntoIter { map: self }
    }
}

impl<K: PSafe + PartialEq, V: PSafe + PartialEq, P: PoolType> PartialEq for PBTreeMap<K, V, P> {
    fn eq(&self, other: &Self) -> bool {
        self.len == other.len && self.iter().eq(other)
    }
}

impl<K: PSafe + Eq, V: PSafe + Eq, P: PoolType> Eq for PBTreeMap<K, V, P> {}

impl<K: PSafe + PartialOrd, V: PSafe + PartialOrd, P: PoolType> PartialOrd for PBTreeMap<K, V, P> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        self.iter().partial_cmp(other)
    }
}

impl<K: PSafe + Ord, V: PSafe + Ord, P: PoolType> Ord for PBTreeMap<K, V, P> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.iter().cmp(other)
    }
}

impl<K: PSafe + Hash, V: PSafe + Hash, P: PoolType> Hash for PBTreeMap<K, V, P> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_usize(self.len);
        self.iter().for_each(|entry| entry.hash(state));
    }
}
