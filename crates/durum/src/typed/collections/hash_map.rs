//! `PHashMap`: entries by the hash of their keys.
//!
//! A table is a row of groups. A group is one word, with a byte for each of its seven slots, and the slots behind it:
//!
//! ```text
//! map     table | groups | len | seed
//! table   group 0 | group 1 | ...                         a power of two
//! group   tag 0 ... tag 6, overflow | slot 0 ... slot 6   tag: 7 bits of the hash of the entry there, or 0
//! ```
//!
//! The hash says where to begin and in which steps to go on. An entry lies in the first group on its way that had a
//! vacant slot when it came; in each group that it passed, `overflow` counts it, and goes down when it is removed. So a
//! search ends at the first group that nobody passed, nothing has to stay where an entry was removed, and no entry is
//! ever moved for another one. An insertion writes to a group's word, to a slot behind it, mostly on the same line, and
//! to the map's length; one entry of ten passes a group, and writes to a second word.
//!
//! A full table is replaced by one of twice as many groups. The code of the user (`Hash`, `Eq`, `Borrow`, closures)
//! runs before anything is changed; if it panics, or if it contradicts itself, searches give wrong answers at worst:
//! which slots have entries is told by the tags alone.

mod hasher;
mod rebuild;
mod table;
mod traits;

use std::borrow::Borrow;
use std::hash::Hash;
use std::marker::PhantomData;

use self::hasher::{fresh_seed, hash_of};
use self::table::{Found, Table};
use self::traits::EntryPlaces;
pub use self::traits::{
    Entry, IntoIter, IntoKeys, IntoValues, Iter, IterMut, Keys, OccupiedEntry, VacantEntry, Values,
    ValuesMut,
};
use super::map::iter::Places;
use super::map::slot::Place;
use crate::typed::journal::{Journal, current_tx, current_tx_unless};
use crate::typed::pool_type::PoolType;
use crate::typed::psafe::PSafe;
use crate::typed::typed_tx::TypedTx;

/// The hash of a key, and where its entry is.
type At<K, V> = (u64, Found<K, V>);

/// A hash map in the pool.
///
/// What gives a value to be changed ([`PHashMap::get_mut`], [`PHashMap::iter_mut`], entries) announces that value and
/// nothing else.
///
/// Which entries there are is part of the pool, and so is where `Hash` has put them. A key type whose `Hash` is another
/// one in a new build of the program finds its old entries after [`PHashMap::rehash`].
#[repr(C)]
pub struct PHashMap<K: PSafe, V: PSafe, P: PoolType> {
    /// Address of the table; 0 if there is none.
    table: usize,
    groups: usize,
    len: usize,
    seed: u64,
    _entries: PhantomData<(*mut K, *mut V, P)>,
}

impl<K: PSafe, V: PSafe, P: PoolType> PHashMap<K, V, P> {
    /// An empty map, which has allocated nothing.
    pub const fn new() -> Self {
        const { K::POOL.and(V::POOL).assert_fits(P::ID) };
        Self {
            table: 0,
            groups: 0,
            len: 0,
            seed: 0,
            _entries: PhantomData,
        }
    }

    /// The number of entries that there is room for.
    pub fn capacity(&self) -> usize {
        self.table().capacity()
    }

    /// Drops all entries and frees their room: that writes less than to say of each slot that it is vacant.
    pub fn clear(&mut self) {
        *self = Self::new();
    }

    /// Takes all entries out, in no order; their room goes, as by [`PHashMap::clear`]. Those that the iterator is not
    /// asked for are dropped with it.
    pub fn drain(&mut self) -> IntoIter<K, V, P> {
        std::mem::take(self).into_iter()
    }

    fn places(&self) -> Places<EntryPlaces<K, V>> {
        Places::new(EntryPlaces(self.table().entries()), self.len)
    }

    fn table(&self) -> Table<K, V> {
        Table::at(self.table, self.groups)
    }

    /// Takes an entry out of a map that is not searched any more.
    fn take_unsearched(&mut self, found: Found<K, V>, tx: &TypedTx) -> (K, V) {
        let entry = found.take(tx);
        self.len -= 1;
        entry
    }
}

impl<K: PSafe + Eq + Hash, V: PSafe, P: PoolType> PHashMap<K, V, P> {
    /// An empty map with room for `capacity` entries.
    ///
    /// # Panics
    /// As [`PHashMap::reserve`].
    pub fn with_capacity(capacity: usize, j: &Journal<P>) -> Self {
        let mut made = Self::new();
        made.reserve(capacity, j);
        made
    }

    /// Makes room for `additional` more entries.
    ///
    /// # Panics
    /// If that is more than memory has. If the pool cannot grow, the transaction returns the error.
    pub fn reserve(&mut self, additional: usize, j: &Journal<P>) {
        if additional > self.capacity() - self.len {
            self.take_room(additional, j.tx());
        }
    }

    /// Gives room back that the entries do not need.
    pub fn shrink_to_fit(&mut self, j: &Journal<P>) {
        if self.len == 0 {
            self.clear();
        } else if let Some(groups) = Table::<K, V>::groups_for(self.len)
            && groups < self.groups
        {
            self.move_to(groups, j.tx());
        }
    }

    /// Puts all entries where their keys' `Hash` says now, if that is not what it said when they were inserted.
    pub fn rehash(&mut self, j: &Journal<P>) {
        if self.table != 0 {
            self.move_to(self.groups, j.tx());
        }
    }

    #[cold]
    fn take_room(&mut self, additional: usize, tx: &TypedTx) {
        let wanted = self.len.checked_add(additional);
        let Some(groups) = wanted.and_then(Table::<K, V>::groups_for) else {
            panic!("a map of that many entries has no room in memory");
        };
        self.move_to(groups, tx);
    }

    /// Moves all entries to a table of so many groups.
    fn move_to(&mut self, groups: usize, tx: &TypedTx) {
        let (old, seed) = (self.table(), fresh_seed());
        // All of them before anything is moved: a key may not only panic, it may also change itself in the old table.
        let hashes: Vec<u64> = self.keys().map(|key| hash_of(seed, key)).collect();
        let new = Table::allocate(groups, tx);
        old.close_ranges(tx);
        for (found, hash) in old.entries().zip(hashes) {
            new.move_here(hash, found, tx);
        }
        match old.start() {
            // One owner more in the hands of whoever has the map.
            0 => tx.gain(1),
            start => tx.free(start),
        }
        self.table = new.start();
        self.groups = new.groups();
        self.seed = seed;
    }

    /// The hash of a key, and where its entry is, if there is one.
    #[inline]
    fn search<Q>(&self, key: &Q) -> (u64, Option<Found<K, V>>)
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        let hash = hash_of(self.seed, key);
        let found = self.table().find(hash, |other| other.borrow() == key);
        (hash, found)
    }

    #[inline]
    fn find<Q>(&self, key: &Q) -> Option<Place<K, V>>
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        let (_, found) = self.search(key);
        Some(found?.place())
    }

    fn place_of((_, found): &At<K, V>) -> Place<K, V> {
        found.place()
    }

    /// Inserts an entry whose key is not in the map.
    fn put(&mut self, hash: &mut u64, key: K, value: V, tx: &TypedTx) -> Place<K, V> {
        if self.len == self.capacity() {
            self.take_room(1, tx);
            // Under another seed now.
            *hash = hash_of(self.seed, &key);
        }
        let place = self.table().put(*hash, key, value, tx);
        self.len += 1;
        place
    }

    fn take(&mut self, (hash, found): &mut At<K, V>, tx: &TypedTx) -> (K, V) {
        let entry = self.table().take(*hash, *found, tx);
        self.len -= 1;
        entry
    }

    /// Inserts an entry. If there is one with this key, its value is replaced and given, and its key stays.
    #[inline]
    pub fn insert(&mut self, key: K, value: V, j: &Journal<P>) -> Option<V> {
        let tx = j.tx();
        match self.search(&key) {
            (_, Some(found)) => Some(found.place().replace_value(value, tx)),
            (mut hash, None) => {
                self.put(&mut hash, key, value, tx);
                None
            }
        }
    }

    /// Takes the entry of a key out.
    pub fn remove_entry<Q>(&mut self, key: &Q) -> Option<(K, V)>
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        let (hash, found) = self.search(key);
        Some(self.take(&mut (hash, found?), current_tx::<P>()))
    }

    /// Where the entry of a key is or would be.
    pub fn entry<'a>(&'a mut self, key: K, j: &'a Journal<P>) -> Entry<'a, K, V, P> {
        match self.search(&key) {
            (hash, Some(found)) => Entry::Occupied(OccupiedEntry::new(self, (hash, found), j.tx())),
            (hash, None) => Entry::Vacant(VacantEntry::new(self, hash, key, j.tx())),
        }
    }

    /// Keeps the entries for which `keep` is true. Values can be changed by [`PHashMap::iter_mut`] before: here that
    /// would announce all of them.
    pub fn retain(&mut self, mut keep: impl FnMut(&K, &V) -> bool) {
        let Some(tx) = current_tx_unless::<P>(self.len == 0) else {
            return;
        };
        for found in self.table().entries() {
            // SAFETY: an entry; the references end before it is taken out.
            let (key, value) = unsafe { found.place().entry() };
            if !keep(key, value) {
                let hash = hash_of(self.seed, key);
                drop(self.take(&mut (hash, found), tx));
            }
        }
    }
}
