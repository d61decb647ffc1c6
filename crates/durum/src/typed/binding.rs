//! Pool types: what ties a type to the one pool that is open under it.
//!
//! How a transaction knows that the pool is open, and keeps it so, is a [loan](super::loan).

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::counts::GlueTable;
use super::journal::{self, Journal};
use super::limbo::Limbo;
use super::loan::{Borrower, Loan};
use super::open::{OpenOptions, RootGuard};
use super::pool_id::PoolId;
use super::psafe::{Root, TxInSafe, TxOutSafe};
use super::running::Running;
use super::words::{Mapping, Words};
use crate::error::{Error, Result};
use crate::opened::{Pool, Store};

/// A type that stands for one pool at a time (Corundum §3.2). Made by [`pool!`](crate::pool).
///
/// # Safety
/// `binding` gives the same static always, and no other pool type's. `current` and `set_current` use a thread-local of
/// the type that is null at first.
pub unsafe trait PoolType: Sized + Copy + std::fmt::Debug + 'static {
    /// What tells it from other pool types.
    const ID: PoolId;

    #[doc(hidden)]
    fn binding() -> &'static Binding;
    #[doc(hidden)]
    fn current() -> *const Running;
    /// # Safety
    /// Null, or this thread's, as long as it is the current one.
    #[doc(hidden)]
    unsafe fn set_current(running: *const Running);

    /// Opens the pool in the store directory `path` and ties it to this type, until the [`RootGuard`] and every
    /// transaction are gone.
    ///
    /// `options` say whether it is made if it is not there: a number or [`Flags`](super::Flags) as in the paper (`0`:
    /// it must exist), or [`OpenOptions`]. The root of a new pool is what [`Root::init`] gives; it is durable when this
    /// returns. Within a transaction on another pool, too: opening is no part of that one, and a pool that was made
    /// stays if that one aborts.
    ///
    /// # Errors
    /// `PoolTypeInUse`: a pool is open under this type. `NothingToOpen`: it must exist, and does not. `RootType`: the
    /// pool was made with another root. Those of [`Store::open`], [`Store::create`] and [`Store::create_pool`]; what a
    /// transaction of `Root::init` returns.
    fn open<T: Root<Self>>(
        path: impl AsRef<Path>,
        options: impl Into<OpenOptions>,
    ) -> Result<RootGuard<T, Self>> {
        RootGuard::open(path.as_ref(), &options.into())
    }

    /// The same for a pool whose root is not used.
    ///
    /// # Errors
    /// As for [`PoolType::open`].
    fn open_no_root(
        path: impl AsRef<Path>,
        options: impl Into<OpenOptions>,
    ) -> Result<RootGuard<(), Self>> {
        RootGuard::open(path.as_ref(), &options.into())
    }

    /// Runs `body` as a failure-atomic transaction on the pool (Corundum §3.3). What it changed is durable when this
    /// returns.
    ///
    /// What `body` returns is looked at by nobody: with an `Err` it is committed, too. For `?` there is
    /// [`PoolType::try_transaction`]. Where `?` stands here the compiler says that it can only be used in a closure
    /// that returns `Result` or `Option`, or that it cannot infer the type of `E`.
    ///
    /// If `body` panics, everything is rolled back and the panic goes on. Within a transaction on the same pool it
    /// becomes part of that one, which alone commits.
    ///
    /// # Errors
    /// `NotOpen`; `Aborted` where a transaction inside was rolled back; those of [`Pool::transaction`], also where an
    /// allocation found no room. Nothing was changed then, unless the error says that the outcome is unknown
    /// (`Poisoned`).
    #[inline]
    fn transaction<R: TxOutSafe, F>(body: F) -> Result<R>
    where
        F: TxInSafe + for<'tx> FnOnce(&'tx Journal<Self>) -> R,
    {
        journal::run(|j| Ok(body(j)))
    }

    /// The same, where `body` can fail: an `Err` rolls everything back, so that `?` works inside.
    ///
    /// # Errors
    /// What `body` returns, and as for [`PoolType::transaction`].
    #[inline]
    fn try_transaction<R: TxOutSafe, E: TxOutSafe + From<Error>, F>(body: F) -> Result<R, E>
    where
        F: TxInSafe + for<'tx> FnOnce(&'tx Journal<Self>) -> Result<R, E>,
    {
        journal::run(body)
    }
}

/// Declares pool types: `pool!(P)`, `pool!(pub Accounts)`. A program that is built with `panic = "abort"` is refused.
///
/// With a module, `pool!(P, mod p)`, it also makes one of aliases without the pool parameter: `p::Pbox<T>` is `Pbox<T,
/// P>`.
///
/// ```
/// use durum::typed::*;
/// pool!(P, mod p);
///
/// fn main() -> durum::Result<()> {
///     # let dir = tempfile::tempdir_in("/dev/shm").unwrap();
///     # let path = dir.path().join("store");
///     let root = P::open::<p::PCell<u64>>(&path, Flags::CREATE)?;
///     P::transaction(|j| root.set(root.get() + 1, j))?;
///     assert_eq!(root.get(), 1);
///     Ok(())
/// }
/// ```
#[macro_export]
macro_rules! pool {
    ($(#[$attribute:meta])* $visibility:vis $name:ident) => {
        $(#[$attribute])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        $visibility enum $name {}

        const _: () = {
            #[cfg(panic = "abort")]
            ::core::compile_error!(
                "typed pools need unwinding: where a pool has no room left, or cannot be written, a transaction leaves its closure by it, is rolled back and returns the error. \
                 Remove `panic = \"abort\"` from the profile; or use the untyped interface, `durum::Pool`, whose closures return errors"
            );
            static BINDING: $crate::typed::__private::Binding = $crate::typed::__private::Binding::new(::core::stringify!($name));
            ::std::thread_local! {
                static CURRENT: ::core::cell::Cell<*const $crate::typed::__private::Running> =
                    const { ::core::cell::Cell::new(::core::ptr::null()) };
            }

            // SAFETY: one static and one thread-local, of this type alone.
            unsafe impl $crate::typed::PoolType for $name {
                const ID: $crate::typed::PoolId = $crate::typed::PoolId::of_place(::core::concat!(
                    ::core::module_path!(), ":", ::core::line!(), ":", ::core::column!(), ":", ::core::stringify!($name)
                ));

                #[inline(always)]
                fn binding() -> &'static $crate::typed::__private::Binding {
                    &BINDING
                }

                #[inline(always)]
                fn current() -> *const $crate::typed::__private::Running {
                    CURRENT.with(::core::cell::Cell::get)
                }

                unsafe fn set_current(running: *const $crate::typed::__private::Running) {
                    CURRENT.with(|current| current.set(running));
                }
            }
        };
    };
    ($(#[$attribute:meta])* $visibility:vis $name:ident, mod $module:ident) => {
        $crate::pool!($(#[$attribute])* $visibility $name);

        #[doc = ::core::concat!("The types of durum's typed interface for the pool type `", ::core::stringify!($name), "`.")]
        #[allow(dead_code, unused_imports, missing_docs)]
        $visibility mod $module {
            use super::$name as TheirPool;
            pub type Journal = $crate::typed::Journal<TheirPool>;
            pub type Pbox<T> = $crate::typed::Pbox<T, TheirPool>;
            pub type Prc<T> = $crate::typed::Prc<T, TheirPool>;
            pub type Parc<T> = $crate::typed::Parc<T, TheirPool>;
            pub type PWeak<T, K = $crate::typed::Shared> = $crate::typed::PWeak<T, TheirPool, K>;
            pub type VWeak<T, K = $crate::typed::Shared> = $crate::typed::VWeak<T, TheirPool, K>;
            pub type PCell<T> = $crate::typed::PCell<T, TheirPool>;
            pub type PRefCell<T> = $crate::typed::PRefCell<T, TheirPool>;
            pub type PMutex<T> = $crate::typed::PMutex<T, TheirPool>;
            pub type PVec<T> = $crate::typed::PVec<T, TheirPool>;
            pub type PHashMap<K, V> = $crate::typed::PHashMap<K, V, TheirPool>;
            pub type PBTreeMap<K, V> = $crate::typed::PBTreeMap<K, V, TheirPool>;
            pub type PString = $crate::typed::PString<TheirPool>;
        }
    };
}

/// An open pool, as the threads share it.
#[derive(Debug)]
pub struct Open {
    // In this order: the pool closes before its store, and the words go last.
    pub(crate) pool: Pool,
    pub(crate) store: Store,
    /// Different for each opening in this process.
    pub(crate) serial: u64,
    /// Address of the `Base`, at the start of the root object.
    pub(crate) root: usize,
    pub(crate) limbo: Limbo,
    pub(crate) glue: GlueTable,
    pub(crate) finds_deadlocks: bool,
    pub(crate) _words: Mapping,
    pub(crate) identity: Mutex<Option<Identity>>,
}

/// The right to have a pool open under a pool type's identity.
///
/// Two pool types that a macro declares at one place have one identity, and the compiler takes pointers into either for
/// pointers into the other. So they are not open at the same time.
#[derive(Debug)]
pub(crate) struct Identity(PoolId);

static IDENTITIES: Mutex<Vec<PoolId>> = Mutex::new(Vec::new());

impl Identity {
    fn take(id: PoolId, binding: &Binding) -> Result<Self> {
        let mut taken = IDENTITIES.lock().unwrap_or_else(PoisonError::into_inner);
        if taken.contains(&id) {
            return Err(binding.in_use());
        }
        taken.push(id);
        Ok(Self(id))
    }
}

impl Drop for Identity {
    fn drop(&mut self) {
        let mut taken = IDENTITIES.lock().unwrap_or_else(PoisonError::into_inner);
        taken.retain(|id| *id != self.0);
    }
}

/// What a pool type has in common between threads.
#[derive(Debug)]
pub struct Binding {
    pub(crate) name: &'static str,
    pub(crate) words: Words,
    /// The serial of the open pool, or 0.
    serial: AtomicU64,
    loan: Loan<Open>,
}

impl Binding {
    #[doc(hidden)]
    pub const fn new(name: &'static str) -> Self {
        Self {
            name,
            words: Words::new(),
            serial: AtomicU64::new(0),
            loan: Loan::new(),
        }
    }

    /// The number of the opening that lasts, or 0.
    #[inline]
    pub(crate) fn serial(&self) -> u64 {
        self.serial.load(Ordering::Acquire)
    }

    fn in_use(&self) -> Error {
        Error::PoolTypeInUse {
            pool_type: self.name,
        }
    }

    /// Ties a pool to the type. While `make` runs nobody else does.
    pub(crate) fn open(
        &'static self,
        id: PoolId,
        make: impl FnOnce(&'static Words) -> Result<Open>,
    ) -> Result<Arc<Open>> {
        let mut desk = self.loan.desk();
        // A pool that was closed during transactions is there until these have ended.
        if desk.is_in_use() {
            return Err(self.in_use());
        }
        let identity = Identity::take(id, self)?;
        let open = Arc::new(make(&self.words)?);
        *open.identity.lock().unwrap_or_else(PoisonError::into_inner) = Some(identity);
        self.serial.store(open.serial, Ordering::Release);
        desk.open(open.clone());
        Ok(open)
    }

    /// Unties the pool: no transaction begins any more, and the pool closes when the last one has ended.
    ///
    /// `open` is the reference of who closes it: given up under the lock, as all are, so that nobody opens another pool
    /// before this one is closed.
    pub(crate) fn close(&self, open: Arc<Open>) {
        let mut desk = self.loan.desk();
        self.serial.store(0, Ordering::Release);
        let given_back = desk.close();
        // The last reference closes the pool, which takes its time: under the lock, so that who opens it again waits
        // for it.
        drop(open);
        drop(given_back);
        drop(desk);
    }
}

/// A thread's side of a binding.
#[derive(Debug)]
pub(crate) struct Seat {
    binding: &'static Binding,
    borrower: Borrower<'static, Open>,
}

impl Seat {
    pub(crate) fn new(binding: &'static Binding) -> Self {
        Self {
            binding,
            borrower: binding.loan.join(),
        }
    }

    pub(crate) fn binding(&self) -> &'static Binding {
        self.binding
    }

    /// The open pool, which stays open until [`Seat::leave`].
    ///
    /// # Errors
    /// `NotOpen`.
    #[inline(always)]
    pub(crate) fn enter(&self) -> Result<&Open> {
        match self.borrower.enter() {
            Some(open) => Ok(open),
            // Made here only: to drop an error that nobody needs takes time.
            None => Err(Error::NotOpen {
                pool_type: self.binding.name,
            }),
        }
    }

    /// The transaction has ended.
    #[inline(always)]
    pub(crate) fn leave(&self) {
        self.borrower.leave();
    }
}
