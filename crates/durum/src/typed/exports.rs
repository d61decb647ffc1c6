//! Pointers from one pool to objects of another, and the table in which the other one keeps what they lead to.

use std::borrow::Cow;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::marker::PhantomData;
use std::panic::{RefUnwindSafe, UnwindSafe};

use durum_format::types::Type;

use super::collections::PHashMap;
use super::counted::{Counted, Counting, PWeak, Shared};
use super::journal::Journal;
use super::layout::{WORD, structure};
use super::pointer_kind::{Plain, Pointers};
use super::pool_id::PoolId;
use super::pool_type::PoolType;
use super::psafe::{PSafe, name_of};
use super::reading::Reading;
use super::values::{PClone, Root};
use crate::described::{Described, Walk};
use crate::error::Error;

/// The name of a table, drawn at random when it is made.
type Name = [u64; 2];

/// A table of a pool `Q`: counted objects that pointers of other pools lead to ([`Pptr`]).
///
/// It keeps no object alive, only the memory of those that are gone ([`PWeak`]), until [`Exports::purge`] or
/// [`Exports::withdraw`].
#[repr(C)]
pub struct Exports<T: PSafe, Q: PoolType, K: Counting = Shared> {
    /// A pointer that was made by another table leads to nothing of this one.
    name: Name,
    /// Of the next object. No number is given twice.
    next: u64,
    objects: PHashMap<u64, PWeak<T, Q, K>, Q>,
}

/// A pointer that lies in pool `P` and leads to a counted object of pool `Q`, in whichever store (Puddles, EuroSys'24,
/// §3.5; Corundum Design Goal 2).
///
/// It owns nothing, and a transaction of `P` alone changes it. It is followed by a journal of `Q` and the [`Exports`]
/// of `Q` that it was made by, and so not while `Q` is not open. Where the object is gone, or that table, it leads to
/// nothing: it cannot dangle.
///
/// It is no address. A safe pointer would have to be counted where it leads, by a transaction of `P` and `Q`, and what
/// counts in `Q` would be lost or left over where only one of them commits. So it stays right when a pool is moved,
/// copied or shipped without the other one.
///
/// ```
/// use durum::typed::*;
/// durum::pool!(Database);
/// durum::pool!(Log);
///
/// type Events = (PRefCell<Exports<u64, Log>, Log>, PRefCell<PVec<Parc<u64, Log>, Log>, Log>);
/// type Row = PCell<Option<Pptr<u64, Database, Log>>, Database>;
/// # let dir = tempfile::tempdir_in("/dev/shm").unwrap();
/// # let path = |name| dir.path().join(name);
/// let log = Log::open::<Events>(path("log"), Flags::CREATE)?;
/// let row = Database::open::<Row>(path("database"), Flags::CREATE)?;
///
/// let event = Log::transaction(|j| {
///     let event = Parc::new(7, j);
///     let to = log.0.borrow_mut(j).export(&event, j);
///     log.1.borrow_mut(j).push(event, j);
///     to
/// })?;
/// Database::transaction(|j| row.set(Some(event), j))?;
///
/// let event = row.get();
/// let value = Log::transaction(|j| event?.follow(&log.0.borrow(), j).map(|event| *event))?;
/// assert_eq!(value, Some(7));
/// # Ok::<(), durum::Error>(())
/// ```
#[repr(C)]
pub struct Pptr<T: PSafe, P: PoolType, Q: PoolType, K: Counting = Shared> {
    exports: Name,
    number: u64,
    _to: PhantomData<fn() -> (T, P, Q, K)>,
}

impl<T: PSafe, Q: PoolType, K: Counting> Exports<T, Q, K> {
    /// An empty table. If the system has no random numbers the transaction returns the error.
    pub fn new(j: &Journal<Q>) -> Self {
        let mut bytes = [0; 16];
        if let Err(error) = durum_persist::random::fill(&mut bytes) {
            j.tx().fail(Error::system("drawing random bytes", error));
        }
        let [one, other] = [&bytes[..8], &bytes[8..]].map(|half| {
            let half = half.iter().copied();
            half.fold(0, |word, byte| word << 8 | u64::from(byte))
        });
        Self {
            name: [one, other],
            next: 0,
            objects: PHashMap::new(),
        }
    }

    /// A pointer to the object for other pools: another one each time. It leads there once the transaction has
    /// committed, durably, and as long as the object has a strong pointer in `Q`.
    pub fn export<P: PoolType>(
        &mut self,
        object: &Counted<T, Q, K>,
        j: &Journal<Q>,
    ) -> Pptr<T, P, Q, K> {
        let number = self.next;
        self.next += 1;
        self.objects.insert(number, object.downgrade(j), j);
        Pptr {
            exports: self.name,
            number,
            _to: PhantomData,
        }
    }

    /// A pointer leads to nothing from here on. Whether it did, or had.
    pub fn withdraw<P: PoolType>(&mut self, to: &Pptr<T, P, Q, K>) -> bool {
        to.exports == self.name && self.objects.remove(&to.number).is_some()
    }

    /// Gives back what is kept of objects that are gone.
    pub fn purge(&mut self, j: &Journal<Q>) {
        self.objects.retain(|_, weak| weak.upgrade(j).is_some());
    }

    /// How many pointers are kept that lead somewhere, or did.
    pub fn len(&self) -> usize {
        self.objects.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.objects.is_empty()
    }

    fn find<P: PoolType>(&self, to: &Pptr<T, P, Q, K>) -> Option<&PWeak<T, Q, K>> {
        match to.exports == self.name {
            true => self.objects.get(&to.number),
            false => None,
        }
    }
}

impl<T: PSafe, P: PoolType, Q: PoolType, K: Counting> Pptr<T, P, Q, K> {
    /// A strong pointer to the object, if it has one still, by the table that this pointer was made by.
    #[inline]
    pub fn follow(&self, exports: &Exports<T, Q, K>, j: &Journal<Q>) -> Option<Counted<T, Q, K>> {
        exports.find(self)?.upgrade(j)
    }

    /// The value, if the object has a strong pointer still, in a pool that is open for reading only.
    #[inline]
    pub fn read<'a>(
        &self,
        exports: &'a Exports<T, Q, K>,
        reading: &'a Reading<Q>,
    ) -> Option<&'a T> {
        exports.find(self)?.read(reading)
    }
}

// SAFETY: the compiler measures size and offsets.
unsafe impl<T: PSafe, Q: PoolType, K: Counting> Described for Exports<T, Q, K> {
    fn name() -> Option<Cow<'static, str>> {
        Some(format!("Exports<{}>", name_of::<T>()).into())
    }

    fn layout(walk: &mut Walk) -> Type<String> {
        structure!(name_of::<Self>(), {
            name: Name::layout(walk),
            next: WORD,
            objects: PHashMap::<u64, PWeak<T, Q, K>, Q>::layout(walk),
        })
    }
}

// SAFETY: as its map; the rest are numbers.
unsafe impl<T: PSafe, Q: PoolType, K: Counting> PSafe for Exports<T, Q, K> {
    type Threads = <PHashMap<u64, PWeak<T, Q, K>, Q> as PSafe>::Threads;
    type Kind = Pointers;
    const OWNERS: bool = true;
    const WORDS: bool = false;
    const POOL: PoolId = Q::ID;

    #[inline]
    fn owners(&self) -> i64 {
        self.objects.owners()
    }
}

impl<T: PSafe, Q: PoolType, K: Counting> Root<Q> for Exports<T, Q, K> {
    fn init(j: &Journal<Q>) -> Self {
        Self::new(j)
    }
}

impl<T: PSafe, Q: PoolType, K: Counting> UnwindSafe for Exports<T, Q, K> {}
impl<T: PSafe, Q: PoolType, K: Counting> RefUnwindSafe for Exports<T, Q, K> {}

impl<T: PSafe, Q: PoolType, K: Counting> fmt::Debug for Exports<T, Q, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Exports")
            .field("len", &self.len())
            .finish_non_exhaustive()
    }
}

// SAFETY: the compiler measures size and offsets.
unsafe impl<T: PSafe, P: PoolType, Q: PoolType, K: Counting> Described for Pptr<T, P, Q, K> {
    fn name() -> Option<Cow<'static, str>> {
        Some(format!("Pptr<{}>", name_of::<T>()).into())
    }

    fn layout(walk: &mut Walk) -> Type<String> {
        structure!(name_of::<Self>(), {
            exports: Name::layout(walk),
            number: WORD,
        })
    }
}

// SAFETY: numbers. Which pool they may lie in is the program's word, not a matter of memory.
unsafe impl<T: PSafe, P: PoolType, Q: PoolType, K: Counting> PSafe for Pptr<T, P, Q, K> {
    type Threads = ();
    type Kind = Plain;
    const OWNERS: bool = false;
    const WORDS: bool = false;
    const POOL: PoolId = P::ID;

    #[inline(always)]
    fn owners(&self) -> i64 {
        0
    }

    fn __any_value() -> Option<Self> {
        Some(Self {
            exports: [0; 2],
            number: 0,
            _to: PhantomData,
        })
    }
}

impl<T: PSafe, P: PoolType, Q: PoolType, K: Counting> Clone for Pptr<T, P, Q, K> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T: PSafe, P: PoolType, Q: PoolType, K: Counting> Copy for Pptr<T, P, Q, K> {}

impl<T: PSafe, P: PoolType, Q: PoolType, K: Counting> PClone<P> for Pptr<T, P, Q, K> {
    fn pclone(&self, _: &Journal<P>) -> Self {
        *self
    }
}

impl<T: PSafe, P: PoolType, Q: PoolType, K: Counting> PartialEq for Pptr<T, P, Q, K> {
    fn eq(&self, other: &Self) -> bool {
        (self.exports, self.number) == (other.exports, other.number)
    }
}

impl<T: PSafe, P: PoolType, Q: PoolType, K: Counting> Eq for Pptr<T, P, Q, K> {}

impl<T: PSafe, P: PoolType, Q: PoolType, K: Counting> Hash for Pptr<T, P, Q, K> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.exports, self.number).hash(state);
    }
}

impl<T: PSafe, P: PoolType, Q: PoolType, K: Counting> fmt::Debug for Pptr<T, P, Q, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(Pptr)")
    }
}
