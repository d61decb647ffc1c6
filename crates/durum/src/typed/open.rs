//! Opening a pool under a pool type, and its root.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;
use std::mem::{ManuallyDrop, offset_of};
use std::ops::{BitOr, Deref};
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::path::Path;
use std::ptr;
use std::sync::{Arc, Mutex};

use durum_format::types::{Field, Primitive, Type};

use super::binding::{Open, PoolType};
use super::counts::GlueTable;
use super::journal;
use super::limbo::{self, Limbo, Lost};
use super::psafe::{PSafe, Root, name_of};
use super::words::Words;
use crate::Engine;
use crate::described::{Described, Walk};
use crate::error::{Error, Result};
use crate::opened::{Store, next_key};
use crate::options::{PoolOptions, StoreOptions};

/// The pool in a store of one.
const POOL: &str = "pool";

/// How a pool is opened, as flags (Corundum §3.2). Two are combined by `|`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flags(u32);

impl Flags {
    /// It must exist.
    pub const OPEN: Self = Self(0);
    /// It is made if it does not exist.
    pub const CREATE: Self = Self(1);
    /// It must not exist, and is made.
    pub const NEW: Self = Self(2);
    /// Its transactions run on the Hybrid engine, not on Shadow; one that was made for another engine is refused.
    pub const HYBRID: Self = Self(4);
    /// The same for the Twin engine: one at a time.
    pub const TWIN: Self = Self(8);

    fn has(self, flag: Self) -> bool {
        self.0 & flag.0 != 0
    }
}

impl BitOr for Flags {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// How a pool is opened.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct OpenOptions {
    /// It is made if it does not exist. Default: no.
    pub create: bool,
    /// It must not exist. Default: no.
    pub new: bool,
    /// How its store is opened, or made.
    pub store: StoreOptions,
    /// How the pool is used, and made.
    pub pool: PoolOptions,
    /// The engine that it runs on: a pool that is made is made for it, and one that was made for another is refused.
    /// Default: any, and what `pool` says for one that is made.
    pub engine: Option<Engine>,
    /// Look for threads that wait for each other's [`PMutex`](super::PMutex), and panic in one of them: the message
    /// names each mutex by its type, its pool and its address, which is that of a reference to it. Default: with
    /// `debug_assertions`, as in a build without `--release`.
    pub find_deadlocks: bool,
}

impl Default for OpenOptions {
    fn default() -> Self {
        Self {
            create: false,
            new: false,
            store: StoreOptions::default(),
            pool: PoolOptions::default(),
            engine: None,
            find_deadlocks: cfg!(debug_assertions),
        }
    }
}

impl OpenOptions {
    /// The defaults: the pool must exist.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets [`OpenOptions::create`].
    #[must_use]
    pub fn create(mut self, create: bool) -> Self {
        self.create = create;
        self
    }

    /// Sets [`OpenOptions::store`].
    #[must_use]
    pub fn store(mut self, options: StoreOptions) -> Self {
        self.store = options;
        self
    }

    /// Sets [`OpenOptions::pool`].
    #[must_use]
    pub fn pool(mut self, options: PoolOptions) -> Self {
        self.pool = options;
        self
    }

    /// Sets [`OpenOptions::engine`].
    #[must_use]
    pub fn engine(mut self, engine: Engine) -> Self {
        self.engine = Some(engine);
        self
    }

    /// Sets [`OpenOptions::find_deadlocks`].
    #[must_use]
    pub fn find_deadlocks(mut self, find: bool) -> Self {
        self.find_deadlocks = find;
        self
    }
}

impl From<Flags> for OpenOptions {
    fn from(flags: Flags) -> Self {
        let mut options = Self::new().create(flags.has(Flags::CREATE));
        options.new = flags.has(Flags::NEW);
        if flags.has(Flags::HYBRID) {
            options.engine = Some(Engine::Hybrid);
        }
        if flags.has(Flags::TWIN) {
            options.engine = Some(Engine::Twin);
        }
        options
    }
}

impl From<u32> for OpenOptions {
    /// The bits of [`Flags`]; as in the paper, 0 opens what exists.
    fn from(flags: u32) -> Self {
        Flags(flags).into()
    }
}

impl From<i32> for OpenOptions {
    /// As from `u32`: what a plain `0` is.
    fn from(flags: i32) -> Self {
        Flags(flags as u32).into()
    }
}

/// What the root object of a typed pool begins with.
#[repr(C)]
pub(super) struct Base {
    /// 0 until the root has its first value.
    is_made: u64,
    /// Address of the first reference in the limbo, or 0.
    pub(super) limbo: usize,
}

/// The root object.
#[repr(C)]
struct RootObject<T> {
    base: Base,
    value: T,
}

// SAFETY: measured.
unsafe impl<T: PSafe> Described for RootObject<T> {
    fn name() -> Option<Cow<'static, str>> {
        Some(Cow::Owned(format!("root {}", name_of::<T>())))
    }

    fn layout(walk: &mut Walk) -> Type<String> {
        let base = offset_of!(Self, base);
        let fields = vec![
            Field::new(
                "is_made",
                (base + offset_of!(Base, is_made)) as u64,
                Type::Primitive(Primitive::U64),
            ),
            Field::new(
                "limbo",
                (base + offset_of!(Base, limbo)) as u64,
                walk.pointer_to::<Lost>(),
            ),
            Field::new("value", offset_of!(Self, value) as u64, T::layout(walk)),
        ];
        let (size, align) = (size_of::<Self>() as u64, align_of::<Self>() as u64);
        Type::structure(name_of::<Self>(), size, align, fields)
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

/// The root of an open pool, to read; its cells can be changed in transactions. The pool closes when it is dropped and
/// no transaction runs any more.
pub struct RootGuard<T: PSafe, P: PoolType> {
    /// Given up by `drop`.
    open: ManuallyDrop<Arc<Open>>,
    value: *const T,
    _pool: PhantomData<(*mut T, P)>,
}

// SAFETY: it gives `&T` only, and what threads may do with that its shadow says.
unsafe impl<T: PSafe<Threads: Send + Sync>, P: PoolType> Send for RootGuard<T, P> {}
// SAFETY: as above.
unsafe impl<T: PSafe<Threads: Send + Sync>, P: PoolType> Sync for RootGuard<T, P> {}

impl<T: PSafe, P: PoolType> UnwindSafe for RootGuard<T, P> {}
impl<T: PSafe, P: PoolType> RefUnwindSafe for RootGuard<T, P> {}

impl<T: Root<P>, P: PoolType> RootGuard<T, P> {
    pub(super) fn open(path: &Path, options: &OpenOptions) -> Result<Self> {
        const { T::POOL.assert_fits(P::ID) };
        let open = P::binding().open(P::ID, |words| Self::make(path, options, words))?;
        // From here on dropping it closes the pool.
        let mut guard = Self {
            open: ManuallyDrop::new(open),
            value: ptr::null(),
            _pool: PhantomData,
        };
        guard.value = guard.find_value()?;
        Ok(guard)
    }

    fn make(path: &Path, options: &OpenOptions, words: &'static Words) -> Result<Open> {
        let store_options = options.store.clone();
        let store = match (options.new, options.create) {
            (true, _) => Store::create(path, store_options),
            (false, true) => Store::open_or_create(path, store_options),
            (false, false) => Store::open(path, store_options).map_err(nothing_to_open),
        }?;
        let info = store.info();
        let (base, size) = (info.base as usize, info.space_size as usize);
        let mapping = words.reserve(base, size, &info.path)?;
        let mut pool_options = options.pool.clone();
        pool_options.beside = Some(mapping.beside());
        if let Some(engine) = options.engine {
            pool_options = pool_options.engine(engine);
        }
        let pool = match options.new || options.create {
            true => store.open_or_create_pool(POOL, pool_options),
            false => store.open_pool(POOL, pool_options).map_err(nothing_to_open),
        }?;
        if let Some(wanted) = options.engine
            && pool.engine() != wanted
        {
            return Err(Error::OtherEngine {
                pool: POOL.to_owned(),
                engine: pool.engine().name(),
                wanted: wanted.name(),
            });
        }
        // Whoever finds the pool open may need both at once.
        let root = pool.root_beside::<RootObject<T>>()?.expose_provenance();
        let limbo = Limbo::default();
        limbo.set_len(limbo::count(root));
        Ok(Open {
            pool,
            store,
            serial: next_key(),
            root,
            limbo,
            glue: GlueTable::default(),
            finds_deadlocks: options.find_deadlocks,
            _words: mapping,
            identity: Mutex::new(None),
        })
    }

    /// The root's value, made if the pool is new; what a crash left in the limbo is dropped.
    fn find_value(&self) -> Result<*const T> {
        let object = ptr::with_exposed_provenance_mut::<RootObject<T>>(self.open.root);
        let value = self.open.root + offset_of!(RootObject<T>, value);
        journal::run(|j| {
            // SAFETY: a word of the root object, of which other threads know its limbo only.
            let is_made = unsafe { &raw mut (*object).base.is_made };
            // SAFETY: as above.
            if unsafe { is_made.read() } == 0 {
                let made = T::init(j);
                let running = j.running();
                running.announce(is_made.addr(), size_of::<u64>());
                running.announce(value, size_of::<T>());
                // SAFETY: the root object was zero, and is announced.
                unsafe {
                    running.put_in(value, made);
                    is_made.write(1);
                }
            }
            Ok::<_, Error>(())
        })?;
        self.empty_limbo();
        Ok(ptr::with_exposed_provenance(value))
    }
}

impl<T: PSafe, P: PoolType> RootGuard<T, P> {
    /// Drops the references in the limbo, as far as nobody hinders that.
    fn empty_limbo(&self) {
        let limbo = &self.open.limbo;
        let mut before = usize::MAX;
        while limbo.len() > 0 && limbo.len() < before {
            before = limbo.len();
            let dropped = journal::run::<P, _, Error>(|j| {
                j.running().note_counted();
                Ok(())
            });
            if let Err(error) = dropped {
                // They stay where they are; the next opener tries again.
                tracing::debug!(%error, "references in the limbo were not dropped");
                return;
            }
        }
    }

    /// The pool, for what the untyped interface offers: statistics, syncs of buffered transactions, sections.
    pub fn pool(&self) -> &crate::Pool {
        &self.open.pool
    }

    /// The store that the pool is in.
    pub fn store(&self) -> &Store {
        &self.open.store
    }

    /// Closes the pool, and tells whether that went well. When it returns, the pool can be opened again.
    ///
    /// # Errors
    /// `StillOpen` while transactions of other threads run: it closes with the last of them. Those of [`Store::close`].
    pub fn close(self) -> Result<()> {
        let store = self.open.store.clone();
        drop(self);
        store.close()
    }
}

impl<T: PSafe, P: PoolType> Deref for RootGuard<T, P> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: the root, while the pool is open. It is changed through its cells only.
        unsafe { &*self.value }
    }
}

impl<T: PSafe, P: PoolType> Drop for RootGuard<T, P> {
    fn drop(&mut self) {
        if !self.value.is_null() {
            self.empty_limbo();
        }
        // SAFETY: the guard is gone after this.
        P::binding().close(unsafe { ManuallyDrop::take(&mut self.open) });
    }
}

impl<T: PSafe + fmt::Debug, P: PoolType> fmt::Debug for RootGuard<T, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
