//! `PBTreeMap`: entries in the order of their keys.
//!
//! A B-tree with entries in all nodes, as std's. A node holds its entries in any order, and a word says which order
//! that is:
//!
//! ```text
//! map    root | height | len
//! leaf   order | slot 0 ... slot 14               order: the number of entries, and 15 numbers of slots of 4 bits
//! inner  order | slot 0 ... slot 14 | children    the first child, and the one behind the entry of each slot
//! ```
//!
//! So an insertion writes to one vacant slot, to the order and to the map's length, where keeping the entries in a row
//! would move half of them, and log them before: for pairs of words two to three lines instead of up to five. Fifteen
//! slots are what one word can order, and make a leaf of such pairs just the largest object that slabs have. No entry
//! moves but when a node is split or two are merged.
//!
//! The code of the user (`Ord`, `Borrow`, closures) runs before anything is changed, and every split and merge leaves a
//! tree; so if it panics, or if it contradicts itself, searches give wrong answers at worst. Nothing but speed depends
//! on how full nodes are, nor on the order of the keys.

mod change;
mod node;
mod path;
mod range;
mod rebuild;
mod traits;

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::marker::PhantomData;
use std::mem;
use std::ops::RangeBounds;

use self::node::Node;
use self::path::Path;
use self::range::Span;
pub use self::range::{Range, RangeMut};
pub use self::traits::{
    Entry, IntoIter, IntoKeys, IntoValues, Iter, IterMut, Keys, OccupiedEntry, VacantEntry, Values,
    ValuesMut,
};
use super::map::iter::Places;
use super::map::slot::Place;
use crate::typed::journal::{Journal, current_tx, current_tx_unless};
use crate::typed::pool_type::PoolType;
use crate::typed::psafe::PSafe;

/// An ordered map in the pool.
///
/// What gives a value to be changed ([`PBTreeMap::get_mut`], [`PBTreeMap::iter_mut`], entries) announces that value and
/// nothing else.
#[repr(C)]
pub struct PBTreeMap<K: PSafe, V: PSafe, P: PoolType> {
    /// Address of the root node; 0 if there is none.
    root: usize,
    /// Levels of nodes. All leaves are on the lowest one.
    height: usize,
    len: usize,
    _entries: PhantomData<(*mut K, *mut V, P)>,
}

impl<K: PSafe, V: PSafe, P: PoolType> PBTreeMap<K, V, P> {
    /// An empty map, which has allocated nothing.
    pub const fn new() -> Self {
        const { K::POOL.and(V::POOL).assert_fits(P::ID) };
        Self {
            root: 0,
            height: 0,
            len: 0,
            _entries: PhantomData,
        }
    }

    /// Drops all entries, and frees their room.
    pub fn clear(&mut self) {
        *self = Self::new();
    }

    fn places(&self) -> Places<Span<K, V>> {
        Places::new(Span::all(self), self.len)
    }

    fn place_of(path: &Path<K, V>) -> Place<K, V> {
        path.entry()
    }

    /// The entry with the lowest key.
    pub fn first_key_value(&self) -> Option<(&K, &V)> {
        self.iter().next()
    }

    /// The entry with the highest key.
    pub fn last_key_value(&self) -> Option<(&K, &V)> {
        self.iter().next_back()
    }

    /// Takes the entry with the lowest key out.
    pub fn pop_first(&mut self) -> Option<(K, V)> {
        let mut path = Path::first(self.root());
        path.go_to_entry_behind()
            .then(|| self.take(&mut path, current_tx::<P>()))
    }

    /// Takes the entry with the highest key out.
    pub fn pop_last(&mut self) -> Option<(K, V)> {
        let mut path = Path::last(self.root());
        path.go_to_entry_before()
            .then(|| self.take(&mut path, current_tx::<P>()))
    }

    /// The entry with the lowest key, if there is one.
    pub fn first_entry<'a>(&'a mut self, j: &'a Journal<P>) -> Option<OccupiedEntry<'a, K, V, P>> {
        let mut path = Path::first(self.root());
        path.go_to_entry_behind()
            .then(|| OccupiedEntry::new(self, path, j.tx()))
    }

    /// The entry with the highest key, if there is one.
    pub fn last_entry<'a>(&'a mut self, j: &'a Journal<P>) -> Option<OccupiedEntry<'a, K, V, P>> {
        let mut path = Path::last(self.root());
        path.go_to_entry_before()
            .then(|| OccupiedEntry::new(self, path, j.tx()))
    }

    /// Keeps the entries for which `keep` is true. Values can be changed by [`PBTreeMap::iter_mut`] before: here that
    /// would announce all of them.
    pub fn retain(&mut self, mut keep: impl FnMut(&K, &V) -> bool) {
        let Some(tx) = current_tx_unless::<P>(self.len == 0) else {
            return;
        };
        let mut path = Path::first(self.root());
        while path.go_to_entry_behind() {
            let place = path.entry();
            // SAFETY: an entry; the references end before it is taken out.
            let (key, value) = unsafe { place.entry() };
            if keep(key, value) {
                path.step_over();
                continue;
            }
            drop(self.take(&mut path, tx));
        }
    }

    fn root(&self) -> Option<Node<K, V>> {
        (self.root != 0).then(|| Node::at(self.root, self.height))
    }
}

impl<K: PSafe + Ord, V: PSafe, P: PoolType> PBTreeMap<K, V, P> {
    #[inline]
    fn find<Q>(&self, key: &Q) -> Option<Place<K, V>>
    where
        K: Borrow<Q>,
        Q: Ord + ?Sized,
    {
        let mut node = self.root()?;
        loop {
            match search(node, key) {
                Ok(at) => return Some(node.entry(at)),
                Err(_) if node.is_leaf() => return None,
                Err(at) => node = node.child(at),
            }
        }
    }

    /// The way to the entry of a key, or else to the gap for it; and whether there is such an entry.
    ///
    /// `path` is empty. Filled where it is: to move one takes as long as to find a short one.
    #[inline]
    fn go_to<Q>(&self, key: &Q, path: &mut Path<K, V>) -> bool
    where
        K: Borrow<Q>,
        Q: Ord + ?Sized,
    {
        let mut next = self.root();
        while let Some(node) = next {
            match search(node, key) {
                Ok(at) => {
                    path.push(node, at);
                    return true;
                }
                Err(at) => {
                    path.push(node, at);
                    next = (!node.is_leaf()).then(|| node.child(at));
                }
            }
        }
        false
    }

    /// Inserts an entry. If there is one with this key, its value is replaced and given, and its key stays.
    pub fn insert(&mut self, key: K, value: V, j: &Journal<P>) -> Option<V> {
        let (tx, mut path) = (j.tx(), Path::new());
        if self.go_to(&key, &mut path) {
            return Some(path.entry().replace_value(value, tx));
        }
        self.put(&mut path, key, value, tx);
        None
    }

    /// Takes the entry of a key out.
    pub fn remove_entry<Q>(&mut self, key: &Q) -> Option<(K, V)>
    where
        K: Borrow<Q>,
        Q: Ord + ?Sized,
    {
        let mut path = Path::new();
        self.go_to(key, &mut path)
            .then(|| self.take(&mut path, current_tx::<P>()))
    }

    /// Where the entry of a key is or would be.
    pub fn entry<'a>(&'a mut self, key: K, j: &'a Journal<P>) -> Entry<'a, K, V, P> {
        let mut path = Path::new();
        match self.go_to(&key, &mut path) {
            true => Entry::Occupied(OccupiedEntry::new(self, path, j.tx())),
            false => Entry::Vacant(VacantEntry::new(self, path, key, j.tx())),
        }
    }

    /// The entries whose keys lie in a range, in order.
    ///
    /// # Panics
    /// If it begins behind its end, or both are the same key and excluded.
    #[track_caller]
    pub fn range<Q, R>(&self, range: R) -> Range<'_, K, V>
    where
        K: Borrow<Q>,
        Q: Ord + ?Sized,
        R: RangeBounds<Q>,
    {
        Range::new(Span::of_range(self, &range))
    }

    /// The entries whose keys lie in a range, in order, their values to be changed. Each value is announced when the
    /// iterator comes to it.
    ///
    /// # Panics
    /// As [`PBTreeMap::range`].
    #[track_caller]
    pub fn range_mut<Q, R>(&mut self, range: R) -> RangeMut<'_, K, V>
    where
        K: Borrow<Q>,
        Q: Ord + ?Sized,
        R: RangeBounds<Q>,
    {
        RangeMut::new(
            Span::of_range(self, &range),
            current_tx_unless::<P>(self.len == 0),
        )
    }

    /// Moves all entries of another map here. A value that was here under the same key is replaced.
    pub fn append(&mut self, other: &mut Self, j: &Journal<P>) {
        self.extend(mem::take(other), j);
    }

    /// Moves the entries from a key on to a map of their own.
    pub fn split_off<Q>(&mut self, key: &Q, j: &Journal<P>) -> Self
    where
        K: Borrow<Q>,
        Q: Ord + ?Sized,
    {
        let mut tail = Self::new();
        while (self.last_key_value()).is_some_and(|(last, _)| last.borrow() >= key) {
            tail.extend(self.pop_last(), j);
        }
        tail
    }
}

/// Where a key is among those of a node, or the gap where it would be.
#[inline]
fn search<K, V, Q>(node: Node<K, V>, key: &Q) -> Result<usize, usize>
where
    K: PSafe + Borrow<Q>,
    V: PSafe,
    Q: Ord + ?Sized,
{
    let (mut low, mut high) = (0, node.len());
    while low < high {
        let middle = low.midpoint(high);
        // SAFETY: an entry of the map, which the caller has borrowed.
        let other = unsafe { &*node.entry(middle).key() };
        match other.borrow().cmp(key) {
            Ordering::Less => low = middle + 1,
            Ordering::Equal => return Ok(middle),
            Ordering::Greater => high = middle,
        }
    }
    Err(low)
}
