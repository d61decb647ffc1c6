//! Opening a pool under a pool type, and its root.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;
use std::mem::{ManuallyDrop, offset_of};
use std::ops::Deref;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::path::Path;
use std::ptr;
use std::sync::Arc;

use durum_format::types::Type;
use durum_protocol::Address;

use super::binding::{Identity, OpenPool};
use super::deferred_drops::{DeferredDrop, DeferredDrops, RootHeader};
use super::journal::{self, HasBinding};
use super::layout::{WORD, structure};
use super::open_options::OpenOptions;
use super::pool_id::PoolId;
use super::psafe::{PSafe, name_of};
use super::reading::Reading;
use super::values::Root;
use super::volatile_words::VolatileWords;
use crate::addresses::Beside;
use crate::described::{Described, Walk};
use crate::error::{Error, Result};
use crate::opened::{Store, next_key};

/// The pool in a store of one.
pub(super) const POOL: &str = "pool";

/// The root object.
#[repr(C)]
pub(super) struct RootObject<T> {
    header: RootHeader,
    value: T,
}

// SAFETY: the compiler measures size and offsets, and the type says where its value has pointers.
unsafe impl<T: PSafe> Described for RootObject<T> {
    fn name() -> Option<Cow<'static, str>> {
        Some(Cow::Owned(format!("root {}", name_of::<T>())))
    }

    fn layout(walk: &mut Walk) -> Type<String> {
        structure!(name_of::<Self>(), {
            is_made in header: WORD,
            limbo in header: walk.pointer_to::<DeferredDrop>(),
            value: T::layout(walk),
        })
    }
}

/// What to say where a pool must exist and does not. A store that `durum init` makes has no pool, so the store's own
/// cure would not help.
fn nothing_to_open(error: Error) -> Error {
    use durum_service::Error::{PoolMissing, StoreMissing};
    let (path, missing) = match error {
        Error::Store(StoreMissing {
            path,
            missing,
            can_be_made: true,
        }) => (path, missing.to_owned()),
        Error::Store(PoolMissing { store, name }) => (store, format!("the pool \"{name}\"")),
        other => return other,
    };
    Error::NothingToOpen { path, missing }
}

/// Where a pool is.
#[derive(Clone, Copy)]
pub(super) enum Place<'p> {
    /// In the store at this path, or of this address.
    At(&'p Path),
    /// In a store that is open, by its name.
    In(&'p Store, &'p str),
}

/// The root of an open pool, to read; its cells can be changed in transactions. The pool closes when it is dropped and
/// no transaction runs any more.
pub struct RootGuard<T: PSafe, P: HasBinding> {
    /// Given up by `drop`.
    open: ManuallyDrop<Arc<OpenPool>>,
    value: *const T,
    _pool: PhantomData<(*mut T, P)>,
}

// SAFETY: it gives `&T` only, and what threads may do with that its shadow says.
unsafe impl<T: PSafe<Threads: Send + Sync>, P: HasBinding> Send for RootGuard<T, P> {}
// SAFETY: it gives `&T` only, and what threads may do with that its shadow says.
unsafe impl<T: PSafe<Threads: Send + Sync>, P: HasBinding> Sync for RootGuard<T, P> {}

impl<T: PSafe, P: HasBinding> UnwindSafe for RootGuard<T, P> {}
impl<T: PSafe, P: HasBinding> RefUnwindSafe for RootGuard<T, P> {}

impl<T: Root<P>, P: HasBinding> RootGuard<T, P> {
    pub(super) fn open(place: Place<'_>, options: &OpenOptions, id: PoolId) -> Result<Self> {
        let open = P::binding().open(id, |words, identity| {
            Self::make(place, options, words, identity)
        })?;
        // From here on dropping it closes the pool.
        let mut guard = Self {
            open: ManuallyDrop::new(open),
            value: ptr::null(),
            _pool: PhantomData,
        };
        guard.value = guard.find_value()?;
        Ok(guard)
    }

    fn make(
        place: Place<'_>,
        options: &OpenOptions,
        words: &'static VolatileWords,
        identity: Identity,
    ) -> Result<OpenPool> {
        let named = match place {
            Place::At(path) => Address::split_pool(path),
            Place::In(..) => None,
        };
        let (path, name) = match (place, &named) {
            (_, Some((store, name))) => (store.as_path(), name.as_deref().unwrap_or(POOL)),
            (Place::At(path), None) => (path, POOL),
            (Place::In(store, name), None) => (store.inner.info.path.as_path(), name),
        };
        let is_read = options.pool.read_only;
        if is_read && options.new {
            return Err(Error::ReadOnly { pool: name.into() });
        }
        // Who only reads makes nothing.
        let (new, create) = (options.new, options.create && !is_read);
        let store_options = options.store.clone();
        let store = match (place, new, create) {
            (Place::In(store, _), ..) => Ok(store.clone()),
            // The store of a service is there; the pool is to be new.
            (_, true, _) if named.is_some() => Store::open(path, store_options),
            (_, true, _) => Store::create(path, store_options),
            (_, false, true) => Store::open_or_create(path, store_options),
            (_, false, false) => Store::open(path, store_options).map_err(nothing_to_open),
        }?;
        let info = store.info();
        let (base, size) = (info.base as usize, info.space_size as usize);
        let mapping = words.reserve(base, size, &info.path)?;
        let mut pool_options = options.pool.clone();
        pool_options.beside = Some(mapping.beside());
        if let Some(engine) = options.engine {
            pool_options = pool_options.engine(engine);
        }
        let pool = match (new, create) {
            (true, _) => store.create_pool(name, pool_options),
            (false, true) => store.open_or_create_pool(name, pool_options),
            (false, false) => store.open_pool(name, pool_options).map_err(nothing_to_open),
        }?;
        // Under two types it would have two of everything that is kept beside it.
        let is_ours = |beside: &Arc<Beside>| Arc::ptr_eq(beside, &mapping.beside());
        if !pool.inner.beside.as_ref().is_some_and(is_ours) {
            return Err(Error::Store(durum_service::Error::PoolOpen {
                name: name.to_owned(),
                operation: "opened under a pool type",
            }));
        }
        if let Some(wanted) = options.engine
            && pool.engine() != wanted
        {
            return Err(Error::OtherEngine {
                pool: name.to_owned(),
                engine: pool.engine().name(),
                wanted: wanted.name(),
            });
        }
        // Whoever finds the pool open may need both at once.
        let root = pool.root_beside::<RootObject<T>>()?.expose_provenance();
        Ok(OpenPool {
            pool,
            store,
            closes_store: matches!(place, Place::At(_)),
            serial: next_key(),
            root,
            deferred_drops: DeferredDrops::of_root(root),
            finds_deadlocks: options.find_deadlocks,
            _words: mapping,
            _identity: identity,
        })
    }

    /// The root's value, made if the pool is new; drops that a crash left deferred are made. A pool that is only read
    /// stays as it is.
    fn find_value(&self) -> Result<*const T> {
        let object = ptr::with_exposed_provenance_mut::<RootObject<T>>(self.open.root);
        let value = self.open.root + offset_of!(RootObject<T>, value);
        // SAFETY: a word of the root object, which nobody changes while the pool is only read.
        if self.reading().is_some() && unsafe { (*object).header.is_made } != 0 {
            return Ok(ptr::with_exposed_provenance(value));
        }
        journal::run(|j| {
            // SAFETY: a word of the root object, of which other threads know the list of deferred drops only.
            let is_made = unsafe { &raw mut (*object).header.is_made };
            // SAFETY: a word of the root object.
            if unsafe { is_made.read() } == 0 {
                let made = T::init(j);
                let tx = j.tx();
                tx.announce(is_made.addr(), size_of::<u64>());
                tx.announce(value, size_of::<T>());
                // SAFETY: the root object was zero, and is announced.
                unsafe {
                    tx.put_in(value, made);
                    is_made.write(1);
                }
            }
            Ok::<_, Error>(())
        })?;
        self.run_deferred_drops();
        Ok(ptr::with_exposed_provenance(value))
    }
}

impl<T: PSafe, P: HasBinding> RootGuard<T, P> {
    /// Drops what transactions have deferred, as far as nobody hinders that.
    fn run_deferred_drops(&self) {
        if self.reading().is_some() {
            return;
        }
        let deferred = &self.open.deferred_drops;
        let mut before = usize::MAX;
        while deferred.len() > 0 && deferred.len() < before {
            before = deferred.len();
            let dropped = journal::run::<P, _, Error>(|j| {
                j.tx().note_counted();
                Ok(())
            });
            if let Err(error) = dropped {
                // They stay where they are; the next opener tries again.
                tracing::debug!(%error, "deferred drops were not made");
                return;
            }
        }
    }

    /// The proof that the pool is open for reading only, for what is read by it; nothing if it may change.
    pub fn reading(&self) -> Option<&Reading<P>> {
        let is_read = self.open.pool.inner.is_read_only;
        // A transaction on `P` would need the pool to be open otherwise, and the guard keeps it open as it is.
        is_read.then(Reading::promised)
    }

    /// The pool, for what the untyped interface offers: statistics, syncs of buffered transactions, sections.
    pub fn pool(&self) -> &crate::Pool {
        &self.open.pool
    }

    /// The store that the pool is in.
    pub fn store(&self) -> &Store {
        &self.open.store
    }

    /// Closes the pool, and tells whether that went well. When it returns, the pool can be opened again. Its store is
    /// closed, too, unless it was open already ([`PoolType::open_in`](super::PoolType::open_in)).
    ///
    /// # Errors
    /// `StillOpen` while transactions of other threads run, or others of its pools are open: it closes with the last of
    /// them. Those of [`Store::close`].
    pub fn close(self) -> Result<()> {
        let store = self.open.closes_store.then(|| self.open.store.clone());
        drop(self);
        store.map_or(Ok(()), Store::close)
    }
}

impl<T: PSafe, P: HasBinding> Deref for RootGuard<T, P> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: the root, while the pool is open. It is changed through its cells only.
        unsafe { &*self.value }
    }
}

impl<T: PSafe, P: HasBinding> Drop for RootGuard<T, P> {
    fn drop(&mut self) {
        if !self.value.is_null() {
            self.run_deferred_drops();
        }
        // SAFETY: the guard is gone after this.
        P::binding().close(unsafe { ManuallyDrop::take(&mut self.open) });
    }
}

impl<T: PSafe + fmt::Debug, P: HasBinding> fmt::Debug for RootGuard<T, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
