//! What a hash map has in common with other types.

use std::borrow::{Borrow, Cow};
use std::fmt;
use std::hash::Hash;
use std::marker::PhantomData;
use std::mem::offset_of;
use std::ops::Index;
use std::panic::{RefUnwindSafe, UnwindSafe};

use durum_format::types::{Field, Primitive, Type};

use super::PHashMap;
use super::table::TableType;
use crate::described::{Described, Walk};
use crate::typed::journal::{self, Journal};
use crate::typed::pointer_kind::Pointers;
use crate::typed::pool_id::PoolId;
use crate::typed::pool_type::PoolType;
use crate::typed::psafe::{PSafe, name_of};
use crate::typed::values::{PClone, Root};

// SAFETY: the compiler measures size and offsets.
unsafe impl<K: PSafe, V: PSafe, P: PoolType> Described for PHashMap<K, V, P> {
    fn name() -> Option<Cow<'static, str>> {
        let (key, value) = (name_of::<K>(), name_of::<V>());
        Some(Cow::Owned(format!("PHashMap<{key},{value}>")))
    }

    fn layout(walk: &mut Walk) -> Type<String> {
        let table = walk.pointer_to::<TableType<K, V>>();
        let word = || Type::Primitive(Primitive::U64);
        let fields = vec![
            Field::new("table", offset_of!(Self, table) as u64, table),
            Field::new("groups", offset_of!(Self, groups) as u64, word()),
            Field::new("len", offset_of!(Self, len) as u64, word()),
            Field::new("seed", offset_of!(Self, seed) as u64, word()),
        ];
        let (size, align) = (size_of::<Self>() as u64, align_of::<Self>() as u64);
        Type::structure(name_of::<Self>(), size, align, fields)
    }
}

// SAFETY: a handle, if it has a table; used by threads as its entries are.
unsafe impl<K: PSafe, V: PSafe, P: PoolType> PSafe for PHashMap<K, V, P> {
    type Threads = PhantomData<(K::Threads, V::Threads)>;
    type Kind = Pointers;
    const OWNERS: bool = true;
    const WORDS: bool = false;
    const POOL: PoolId = P::ID;

    #[inline]
    fn owners(&self) -> i64 {
        i64::from(self.table != 0)
    }
}

impl<K: PSafe, V: PSafe, P: PoolType> UnwindSafe for PHashMap<K, V, P> {}
impl<K: PSafe, V: PSafe, P: PoolType> RefUnwindSafe for PHashMap<K, V, P> {}

impl<K: PSafe, V: PSafe, P: PoolType> Default for PHashMap<K, V, P> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K: PSafe, V: PSafe, P: PoolType> Root<P> for PHashMap<K, V, P> {
    fn init(_: &Journal<P>) -> Self {
        Self::new()
    }
}

impl<K, V, P: PoolType> PClone<P> for PHashMap<K, V, P>
where
    K: PSafe + PClone<P> + Eq + Hash,
    V: PSafe + PClone<P>,
{
    fn pclone(&self, j: &Journal<P>) -> Self {
        let mut copy = Self::with_capacity(self.len, j);
        for (key, value) in self {
            copy.insert(key.pclone(j), value.pclone(j), j);
        }
        copy
    }
}

impl<K: PSafe + Eq + Hash, V: PSafe, P: PoolType> FromIterator<(K, V)> for PHashMap<K, V, P> {
    /// # Panics
    /// Outside of a transaction on the pool.
    fn from_iter<I: IntoIterator<Item = (K, V)>>(entries: I) -> Self {
        let mut made = Self::new();
        made.extend(entries, journal::current_journal());
        made
    }
}

impl<K: PSafe + Eq + Hash, V: PSafe, P: PoolType> Extend<(K, V)> for PHashMap<K, V, P> {
    /// # Panics
    /// Outside of a transaction on the pool.
    fn extend<I: IntoIterator<Item = (K, V)>>(&mut self, entries: I) {
        PHashMap::extend(self, entries, journal::current_journal());
    }
}

impl<K, Q, V, P: PoolType> Index<&Q> for PHashMap<K, V, P>
where
    K: PSafe + Eq + Hash + Borrow<Q>,
    Q: Eq + Hash + ?Sized,
    V: PSafe,
{
    type Output = V;

    /// # Panics
    /// If there is no entry with this key.
    #[track_caller]
    fn index(&self, key: &Q) -> &V {
        match self.get(key) {
            Some(value) => value,
            None => panic!("no entry of the map has this key"),
        }
    }
}

impl<K: PSafe + fmt::Debug, V: PSafe + fmt::Debug, P: PoolType> fmt::Debug for PHashMap<K, V, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self).finish()
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
