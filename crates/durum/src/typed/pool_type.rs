//! Pool types: the types that a program opens pools and begins transactions under.

use std::path::Path;

use super::journal::{self, HasBinding, Journal};
use super::open::{Place, RootGuard};
use super::open_options::OpenOptions;
use super::pool_id::PoolId;
use super::psafe::{TxInSafe, TxOutSafe};
use super::values::Root;
use crate::error::{Error, Result};
#[expect(unused_imports, reason = "the documentation names it")]
use crate::opened::Pool;
use crate::opened::Store;

/// A type that stands for one pool at a time (Corundum §3.2). Made by [`pool!`](crate::pool).
///
/// # Safety
/// `ID` is no other pool type's but that of one which the same macro declares at the same place.
pub unsafe trait PoolType: HasBinding {
    /// What tells it from other pool types.
    const ID: PoolId;

    /// Opens the pool in the store directory `path` and ties it to this type, until the [`RootGuard`] and every
    /// transaction are gone.
    ///
    /// `options` say whether it is made if it is not there: a number or [`Flags`](super::Flags) as in the paper (`0`:
    /// it must exist), or [`OpenOptions`]. The root of a new pool is what [`Root::init`] gives; it is durable when this
    /// returns. Within a transaction on another pool, too: opening is no part of that one, and a pool that was made
    /// stays if that one aborts.
    ///
    /// # Errors
    /// `ReadOnly`: it is to be opened for reading only, and has no root yet, or is to be new. `PoolTypeInUse`: a pool
    /// is open under this type. `NothingToOpen`: it must exist, and does not. `RootType`: the pool was made with
    /// another root. Those of [`Store::open`], [`Store::create`] and [`Store::create_pool`]; what a transaction of
    /// `Root::init` returns.
    fn open<T: Root<Self>>(
        path: impl AsRef<Path>,
        options: impl Into<OpenOptions>,
    ) -> Result<RootGuard<T, Self>> {
        const { T::POOL.assert_fits(Self::ID) };
        RootGuard::open(Place::At(path.as_ref()), &options.into(), Self::ID)
    }

    /// Opens the pool `name` of a store that is open: one store has pools of several types, between which
    /// [`Pptr`](super::Pptr)s lead, say a database and its event log. What `options` say of the store is of no effect.
    ///
    /// ```
    /// use durum::typed::*;
    /// pool!(Database);
    /// pool!(Log);
    ///
    /// # let directory = tempfile::tempdir_in("/dev/shm")?;
    /// # let path = directory.path().join("store");
    /// let database = Database::open::<PCell<u64, Database>>(&path, Flags::CREATE)?;
    /// let log = Log::open_in::<PCell<u64, Log>>(database.store(), "log", Flags::CREATE)?;
    /// Log::transaction(|j| log.set(1, j))?;
    /// log.close()?;
    /// database.close()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As for [`PoolType::open`], but for those of the store's opening.
    fn open_in<T: Root<Self>>(
        store: &Store,
        name: &str,
        options: impl Into<OpenOptions>,
    ) -> Result<RootGuard<T, Self>> {
        const { T::POOL.assert_fits(Self::ID) };
        RootGuard::open(Place::In(store, name), &options.into(), Self::ID)
    }

    /// As [`PoolType::open`], for a pool whose root is not used.
    ///
    /// # Errors
    /// As for [`PoolType::open`].
    fn open_no_root(
        path: impl AsRef<Path>,
        options: impl Into<OpenOptions>,
    ) -> Result<RootGuard<(), Self>> {
        Self::open(path, options)
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
    /// `NotOpen`; `ReadOnly` if the pool is open for reading only: `body` is not called. `Aborted` where a transaction
    /// inside was rolled back; those of [`Pool::transaction`], also where an allocation found no room. Nothing was
    /// changed then, unless the error says that the outcome is unknown (`Poisoned`).
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
