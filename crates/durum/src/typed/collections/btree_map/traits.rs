//! What an ordered map has in common with other types.

use std::borrow::{Borrow, Cow};
use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::marker::PhantomData;
use std::mem::offset_of;
use std::ops::Index;
use std::panic::{RefUnwindSafe, UnwindSafe};

use durum_format::types::{Field, Primitive, Type};

use super::PBTreeMap;
use super::node::NodeType;
use crate::described::{Described, Walk};
use crate::typed::journal::{self, Journal};
use crate::typed::pointer_kind::Pointers;
use crate::typed::pool_id::PoolId;
use crate::typed::pool_type::PoolType;
use crate::typed::psafe::{PSafe, name_of};
use crate::typed::values::{PClone, Root};

// SAFETY: the compiler measures size and offsets.
unsafe impl<K: PSafe, V: PSafe, P: PoolType> Described for PBTreeMap<K, V, P> {
    fn name() -> Option<Cow<'static, str>> {
        let (key, value) = (name_of::<K>(), name_of::<V>());
        Some(Cow::Owned(format!("PBTreeMap<{key},{value}>")))
    }

    fn layout(walk: &mut Walk) -> Type<String> {
        let root = walk.pointer_to::<NodeType<K, V>>();
        let word = || Type::Primitive(Primitive::U64);
        let fields = vec![
            Field::new("root", offset_of!(Self, root) as u64, root),
            Field::new("height", offset_of!(Self, height) as u64, word()),
            Field::new("len", offset_of!(Self, len) as u64, word()),
        ];
        let (size, align) = (size_of::<Self>() as u64, align_of::<Self>() as u64);
        Type::structure(name_of::<Self>(), size, align, fields)
    }
}

// SAFETY: a handle, if it has a node; used by threads as its entries are.
unsafe impl<K: PSafe, V: PSafe, P: PoolType> PSafe for PBTreeMap<K, V, P> {
    type Threads = PhantomData<(K::Threads, V::Threads)>;
    type Kind = Pointers;
    const OWNERS: bool = true;
    const WORDS: bool = false;
    const POOL: PoolId = P::ID;

    #[inline]
    fn owners(&self) -> i64 {
        i64::from(self.root != 0)
    }
}

impl<K: PSafe, V: PSafe, P: PoolType> UnwindSafe for PBTreeMap<K, V, P> {}
impl<K: PSafe, V: PSafe, P: PoolType> RefUnwindSafe for PBTreeMap<K, V, P> {}

impl<K: PSafe, V: PSafe, P: PoolType> Default for PBTreeMap<K, V, P> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K: PSafe, V: PSafe, P: PoolType> Root<P> for PBTreeMap<K, V, P> {
    fn init(_: &Journal<P>) -> Self {
        Self::new()
    }
}

impl<K, V, P: PoolType> PClone<P> for PBTreeMap<K, V, P>
where
    K: PSafe + PClone<P> + Ord,
    V: PSafe + PClone<P>,
{
    fn pclone(&self, j: &Journal<P>) -> Self {
        let mut copy = Self::new();
        for (key, value) in self {
            copy.insert(key.pclone(j), value.pclone(j), j);
        }
        copy
    }
}

impl<K: PSafe + Ord, V: PSafe, P: PoolType> FromIterator<(K, V)> for PBTreeMap<K, V, P> {
    /// # Panics
    /// Outside of a transaction on the pool.
    fn from_iter<I: IntoIterator<Item = (K, V)>>(entries: I) -> Self {
        let mut made = Self::new();
        made.extend(entries, journal::current_journal());
        made
    }
}

impl<K: PSafe + Ord, V: PSafe, P: PoolType> Extend<(K, V)> for PBTreeMap<K, V, P> {
    /// # Panics
    /// Outside of a transaction on the pool.
    fn extend<I: IntoIterator<Item = (K, V)>>(&mut self, entries: I) {
        PBTreeMap::extend(self, entries, journal::current_journal());
    }
}

impl<K, Q, V, P: PoolType> Index<&Q> for PBTreeMap<K, V, P>
where
    K: PSafe + Ord + Borrow<Q>,
    Q: Ord + ?Sized,
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

impl<K: PSafe + fmt::Debug, V: PSafe + fmt::Debug, P: PoolType> fmt::Debug for PBTreeMap<K, V, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self).finish()
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
