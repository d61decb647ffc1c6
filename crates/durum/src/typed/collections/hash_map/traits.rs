//! What a hash map shares with the other map and other collections.

use std::borrow::Cow;
use std::hash::Hash;

use durum_format::types::Type;

use super::table::{Entries, TableType, drop_table};
use super::{At, PHashMap};
use crate::described::{Described, Walk};
use crate::typed::collections::collection::collection;
use crate::typed::collections::map::entry::entries;
use crate::typed::collections::map::iter::iterators;
use crate::typed::collections::map::methods::methods;
use crate::typed::collections::map::slot::{Place, map_name};
use crate::typed::collections::map::traits::traits;
use crate::typed::journal::{Journal, current_tx};
use crate::typed::layout::{WORD, structure};
use crate::typed::pool_type::PoolType;
use crate::typed::psafe::PSafe;
use crate::typed::values::PClone;

// SAFETY: the compiler measures size and offsets; `table` is the only pointer.
unsafe impl<K: PSafe, V: PSafe, P: PoolType> Described for PHashMap<K, V, P> {
    fn name() -> Option<Cow<'static, str>> {
        Some(Cow::Owned(map_name::<K, V>("PHashMap")))
    }

    fn layout(walk: &mut Walk) -> Type<String> {
        structure!(map_name::<K, V>("PHashMap"), {
            table: walk.pointer_to::<TableType<K, V>>(),
            groups: WORD,
            len: WORD,
            seed: WORD,
        })
    }
}

collection! {
    PHashMap<K, V> of (K, V) {
        Threads: (K::Threads, V::Threads),
        inserts where: [K: Eq + Hash],
        address: table,
        extent: groups,
        drop: drop_table::<K, V>,
    }
}

methods! { PHashMap, Eq Hash }

traits! { PHashMap, Eq Hash, PHashMap::with_capacity }

entries! { PHashMap, K: [+ Eq + Hash], At<K, V>, u64 }

/// The places of the entries in a table.
pub(super) struct EntryPlaces<K, V>(pub(super) Entries<K, V>);

impl<K, V> Clone for EntryPlaces<K, V> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<K: PSafe, V: PSafe> Iterator for EntryPlaces<K, V> {
    type Item = Place<K, V>;

    #[inline]
    fn next(&mut self) -> Option<Place<K, V>> {
        self.0.next().map(|found| found.place())
    }
}

iterators! { PHashMap, EntryPlaces, entries ", in no order", values ", in no order", ends [one] }

/// The entries of a [`PHashMap`], taken out one by one. The others are dropped with it.
pub struct IntoIter<K: PSafe, V: PSafe, P: PoolType> {
    entries: Entries<K, V>,
    map: PHashMap<K, V, P>,
}

impl<K: PSafe, V: PSafe, P: PoolType> Iterator for IntoIter<K, V, P> {
    type Item = (K, V);

    fn next(&mut self) -> Option<(K, V)> {
        let found = self.entries.next()?;
        Some(self.map.take_unsearched(found, current_tx::<P>()))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.map.len, Some(self.map.len))
    }
}

impl<K: PSafe, V: PSafe, P: PoolType> IntoIterator for PHashMap<K, V, P> {
    type Item = (K, V);
    type IntoIter = IntoIter<K, V, P>;

    /// Takes the entries out. Only in a transaction, as everything that has a map by value.
    fn into_iter(self) -> Self::IntoIter {
        IntoIter {
            entries: self.table().entries(),
            map: self,
        }
    }
}

impl<K: PSafe + Eq + Hash, V: PSafe + PartialEq, P: PoolType> PartialEq for PHashMap<K, V, P> {
    fn eq(&self, other: &Self) -> bool {
        self.len == other.len
            && self
                .iter()
                .all(|(key, value)| other.get(key).is_some_and(|theirs| value == theirs))
    }
}

impl<K: PSafe + Eq + Hash, V: PSafe + Eq, P: PoolType> Eq for PHashMap<K, V, P> {}
