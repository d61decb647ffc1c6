//! How a transaction begins: guards, closures, nesting.

use std::cell::Cell;
use std::marker::PhantomData;
use std::ops::Range;
use std::ptr::{self, NonNull};
use std::sync::Arc;

use super::{CURRENT, Transaction, Tx, may_be_open};
use crate::alloc::Puddle;
use crate::error::{Error, Result, Step};
use crate::fault::forked;
use crate::opened::{Durability, Pool, PoolInner};
use crate::space::removed;

impl<'p> Transaction<'p> {
    // Always: out of line an empty transaction takes twice as long.
    #[inline(always)]
    pub(crate) fn begin(pool: &'p Pool, durability: Durability) -> Step<Self> {
        if forked() {
            return Err(Error::Forked.into());
        }
        pool.inner.check_usable()?;
        pool.inner.check_turn_may_come()?;
        Ok(Self::begin_as(Tx::of(&pool.inner)?, pool, durability))
    }

    /// Begins a transaction also where one on another store runs on this thread, which goes on when this one has ended.
    /// It is no part of any other: who begins it has to know the outcome when it ends.
    #[inline(always)]
    pub(crate) fn begin_beside(pool: &'p Pool) -> Result<Self> {
        if forked() {
            return Err(Error::Forked);
        }
        pool.inner.check_usable()?;
        pool.inner.check_turn_may_come()?;
        let tx = Tx::beside(&pool.inner)?;
        // SAFETY: kept alive by `THREAD` of this thread.
        if unsafe { tx.as_ref() }.depth.get() > 0 {
            return Err(Error::TypedInside {
                pool: pool.inner.name.clone(),
            });
        }
        Ok(Self::begin_as(tx, pool, Durability::Durable))
    }

    #[inline(always)]
    fn begin_as(pointer: NonNull<Tx>, pool: &'p Pool, durability: Durability) -> Self {
        // SAFETY: kept alive by `THREAD` of this thread.
        let tx = unsafe { pointer.as_ref() };
        match tx.depth.get() {
            0 => {
                tx.gate.enter();
                tx.begin_on(&pool.inner, durability);
            }
            depth => {
                if durability == Durability::Durable {
                    tx.durability.set(durability);
                }
                tx.depth.set(depth + 1);
            }
        }
        Self {
            tx: pointer,
            _pool: PhantomData,
        }
    }
}

impl Pool {
    /// Begins a transaction on this thread, or joins the one that is running. [`Pool::transaction`] is the safe form.
    ///
    /// # Safety
    /// The guards of one thread end in the reverse order of their beginnings, and none is leaked: the outermost one
    /// borrows its pool for all of them.
    ///
    /// # Errors
    /// `Forked`, `OtherStore`, `Poisoned`; on a Twin pool `ReadsCopy` inside a [`Pool::read_copy`].
    #[inline]
    pub unsafe fn begin(&self) -> Result<Transaction<'_>> {
        Ok(Transaction::begin(self, Durability::Durable)?)
    }

    /// Begins a transaction that is durable when `durability` says. [`Pool::transaction_with`] is the safe form.
    ///
    /// # Safety
    /// As for [`Pool::begin`].
    ///
    /// # Errors
    /// As for [`Pool::begin`].
    #[inline]
    pub unsafe fn begin_with(&self, durability: Durability) -> Result<Transaction<'_>> {
        Ok(Transaction::begin(self, durability)?)
    }

    /// Begins a level of a transaction, which [`Tx::end_level`] ends. For interfaces that have no closure.
    ///
    /// # Safety
    /// As for [`Pool::begin`].
    ///
    /// # Errors
    /// As for [`Pool::begin`].
    #[doc(hidden)]
    #[inline]
    pub unsafe fn begin_level(&self, durability: Durability) -> Result<(), Box<Error>> {
        Transaction::begin(self, durability).map(std::mem::forget)
    }

    /// Runs `body` as a failure-atomic transaction.
    ///
    /// If it returns `Ok`, everything that it announced, allocated and freed is durable when this returns. If it
    /// returns `Err` or panics, or the process or the machine dies, nothing of it is. Inside a running transaction on
    /// the same store it becomes part of that one.
    ///
    /// Isolation is the caller's: protect what threads share by locks held until this returns.
    ///
    /// # Errors
    /// What `body` returns, and the errors of [`Transaction::commit`] and [`Pool::begin`].
    #[inline]
    pub fn transaction<R, E: From<Error>>(
        &self,
        body: impl FnOnce(&Tx) -> Result<R, E>,
    ) -> Result<R, E> {
        self.transaction_with(Durability::Durable, body)
    }

    /// Runs `body` as a failure-atomic transaction, as [`Pool::transaction`] does, that is durable when `durability`
    /// says.
    ///
    /// Inside a running transaction it becomes part of that one, which is durable when its outermost level commits, if
    /// any level of it asked for that.
    ///
    /// A [`Durability::Buffered`] transaction is not durable when this returns, and whoever takes the caller's locks
    /// next builds on something that a crash may still take away, together with what was built on it.
    ///
    /// ```
    /// use durum::{Durability, Engine, PoolOptions, Store, StoreOptions};
    /// # let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    /// # let path = dir.path().join("store");
    /// let store = Store::create(&path, StoreOptions::new())?;
    /// let pool = store.create_pool("hits", PoolOptions::new().engine(Engine::Shadow))?;
    /// let hits = pool.root::<u64>()?;
    /// for _ in 0..1000 {
    ///     pool.transaction_with(Durability::Buffered, |tx| {
    ///         // SAFETY: the root is live as long as the pool is open, and this program has one thread.
    ///         unsafe { tx.set(hits, *hits + 1) }
    ///     })?;
    /// }
    /// pool.sync()?; // from here on no crash takes any of them
    /// # Ok::<(), durum::Error>(())
    /// ```
    ///
    /// # Errors
    /// As for [`Pool::transaction`]. If buffered transactions cannot be written later, the store is poisoned, and the
    /// next call says so; where there is no room for them, that is told to a buffered transaction of which nothing is
    /// kept.
    #[inline]
    pub fn transaction_with<R, E: From<Error>>(
        &self,
        durability: Durability,
        body: impl FnOnce(&Tx) -> Result<R, E>,
    ) -> Result<R, E> {
        let transaction = Transaction::begin(self, durability).map_err(|error| *error)?;
        let value = body(&transaction)?;
        transaction.commit()?;
        Ok(value)
    }
}

impl Tx {
    /// Forgets what stayed of the last transaction that does not hold for one on `pool`: it was on another pool, or a
    /// puddle has gone since. Its pool may be gone, too.
    #[inline(never)]
    fn forget_pool(&self, pool: &PoolInner) {
        self.remembered.set((pool.key, removed()));
        self.state.borrow_mut().forget_pools();
    }

    /// The beginning of a transaction that has something to do at its end, whether it announces anything or not: where
    /// transactions take turns it waits for its own.
    #[inline(never)]
    fn begin_to_end(&self, pool: &Arc<PoolInner>) {
        if pool.facts.takes_turns {
            // Nothing can be mixed yet, and nobody reads a copy, which `begin` has made sure of.
            let _ = pool.engine.enter(&mut self.state.borrow_mut(), pool);
        }
        self.touch();
    }

    /// Words are announced by the window from here on, if they may be.
    #[inline(always)]
    fn open_window(&self) {
        // Beside a transaction on another store that one's window stays this thread's, which the handler of media
        // errors looks at.
        match may_be_open() && ptr::eq(CURRENT.with(Cell::get), self) {
            // SAFETY: this thread's, which lasts as long as that.
            true => unsafe { (*self.of_thread).set(&self.window) },
            false => self.window.close(),
        }
    }

    /// The outermost level begins on this pool.
    #[inline(always)]
    pub(super) fn begin_on(&self, pool: &Arc<PoolInner>, durability: Durability) {
        if self.remembered.get() != (pool.key, removed()) {
            self.forget_pool(pool);
        }
        self.origin.set(pool);
        self.durability.set(durability);
        if pool.ends_empty {
            self.begin_to_end(pool);
        }
        self.open_window();
        // A constant: the next transaction need not wait until it is known what this one stored.
        self.depth.set(1);
    }

    /// Makes ranges durable as they are now, with what this thread has for the pool's store.
    pub(crate) fn persist(pool: &PoolInner, ranges: &[(&Puddle, Range<usize>)]) -> Result<()> {
        let tx = Self::of(pool)?;
        // SAFETY: kept alive by `THREAD` of this thread.
        let tx = unsafe { tx.as_ref() };
        let pass = (tx.depth.get() == 0).then(|| tx.gate.pass());
        let is_outside = pass.is_some();
        let result = {
            // The engine may move words to where the window does not know of them.
            if !tx.window.is_empty() {
                tx.touched.set(true);
            }
            let mut state = tx.state.borrow_mut();
            pool.engine.persist(&mut state, pool, ranges)
        };
        pool.after_persist(ranges);
        drop(pass);
        if is_outside && tx.upkeep.is_due() {
            pool.store.kept.upkeep(&pool.store);
        }
        result
    }
}
