//! Commits in two halves: the first one writes the record and sends it on its way, the second one waits for it.
//!
//! On Shadow a commit waits for one fence, which takes as long as the media take the record. What a program does
//! between the halves goes on meanwhile, the next transaction above all, which waits before it writes its own record:
//! so of those that a thread has begun to commit at most the last is not durable.

use std::future::Future;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::pin::Pin;
use std::task::{Context, Poll};

use super::end::Ending;
use super::{Transaction, Tx};
use crate::error::{Error, Result};
use crate::fault::check_forked;
use crate::opened::{Durability, Pool, PoolInner};

/// A transaction that has committed and may not be durable yet ([`Transaction::commit_begin`]).
///
/// As a future it is ready when it is durable, at once: nobody is told when the media have taken something, so whoever
/// asks waits for it, some hundred nanoseconds at most.
#[must_use = "it may not be durable yet"]
#[derive(Debug)]
pub struct InFlight<'p> {
    /// Which record of which engine that is; `None`: it is durable.
    left: Option<(&'p PoolInner, u64)>,
    /// Of the thread that has committed.
    _one_thread: PhantomData<*mut ()>,
}

impl InFlight<'_> {
    /// Returns when the transaction is durable, and with it all that this thread has committed before.
    ///
    /// # Errors
    /// As for [`Pool::begin`].
    pub fn wait(self) -> Result<()> {
        self.land()
    }

    /// Which record is in flight, for [`Pool::land`]; 0: none.
    #[doc(hidden)]
    pub fn record(&self) -> u64 {
        self.left.map_or(0, |(_, record)| record)
    }

    fn land(&self) -> Result<()> {
        match self.left {
            Some((pool, record)) => Tx::land(pool, record),
            None => Ok(()),
        }
    }
}

impl Future for InFlight<'_> {
    type Output = Result<()>;

    fn poll(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<Result<()>> {
        Poll::Ready(self.land())
    }
}

impl<'p> Transaction<'p> {
    /// Commits, and leaves it to [`InFlight::wait`] that what it has changed is durable.
    ///
    /// When it returns, the outcome is certain as long as no crash comes: locks may be let go of, and other threads see
    /// what it has changed. After a crash it is there as a whole or not at all, as are all transactions that were in
    /// flight: those of this thread up to some moment. Nothing is there without what it came after: a transaction of a
    /// Shadow pool of the store that begins to commit later, in any thread, makes this one durable first. What the
    /// program tells others of it waits for `wait`.
    ///
    /// Where other threads commit to the store, on a file system, for a transaction of more than about a kilobyte, on
    /// other engines than Shadow, and where buffered transactions wait, it is durable when this returns. On an inner
    /// level this is [`Transaction::commit`].
    ///
    /// ```
    /// # use durum::{Pool, PoolOptions, Store, StoreOptions};
    /// # let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    /// # let store = Store::create(dir.path().join("store"), StoreOptions::new())?;
    /// # let pool = store.create_pool("counters", PoolOptions::new())?;
    /// # let counters = pool.root_bytes(0, 16, 8)?.cast::<u64>();
    /// let count = |at: usize| {
    ///     // SAFETY: counters that this thread alone changes.
    ///     pool.transaction_in_flight(|tx| unsafe {
    ///         tx.add(counters.add(at))?;
    ///         *counters.add(at) += 1;
    ///         Ok::<_, durum::Error>(())
    ///     })
    /// };
    /// let ((), first) = count(0)?;
    /// let ((), second) = count(1)?; // waits for the first one while it has something to do itself
    /// first.wait()?;
    /// second.wait()?; // from here on no crash takes any of them
    /// # Ok::<(), durum::Error>(())
    /// ```
    ///
    /// # Errors
    /// As for [`Transaction::commit`].
    #[inline]
    pub fn commit_begin(self) -> Result<InFlight<'p>> {
        let this = ManuallyDrop::new(self);
        // SAFETY: set by the outermost `begin`, which borrows the pool as long as this level does if that is the one.
        let pool = unsafe { this.origin.get().as_ref() }.map(|pool| &**pool);
        let record = this.leave_level(Ending::MayFly)?;
        let left = pool.filter(|_| record > 0).map(|pool| (pool, record));
        Ok(InFlight {
            left,
            _one_thread: PhantomData,
        })
    }
}

impl Tx {
    /// Ends one level as [`Tx::end_level`] does, and as [`Transaction::commit_begin`]: which record is in flight, for
    /// [`Pool::land`]; 0: none.
    ///
    /// # Safety
    /// As for [`Tx::end_level`].
    ///
    /// # Errors
    /// As for [`Transaction::commit`]; `NoTransaction`.
    #[doc(hidden)]
    #[inline]
    pub unsafe fn begin_to_end_level() -> Result<u64, Box<Error>> {
        let left = Self::if_running(|tx| tx.leave_level(Ending::MayFly));
        left.unwrap_or_else(|| Err(Error::NoTransaction.into()))
    }

    /// Makes durable what this thread has left in flight, up to this record.
    fn land(pool: &PoolInner, record: u64) -> Result<()> {
        check_forked()?;
        pool.check_usable()?;
        let tx = Self::beside(pool)?;
        // SAFETY: kept alive by `THREAD` of this thread.
        let tx = unsafe { tx.as_ref() };
        // What was there before, as one on another engine has found it, too.
        let engine = tx.flies.get().unwrap_or(pool.engine);
        engine.land(&mut tx.state.borrow_mut(), record)
    }
}

impl Pool {
    /// Runs `body` as [`Pool::transaction`] does, and ends it by [`Transaction::commit_begin`].
    ///
    /// # Errors
    /// As for [`Pool::transaction`].
    #[inline]
    pub fn transaction_in_flight<R, E: From<Error>>(
        &self,
        body: impl FnOnce(&Tx) -> Result<R, E>,
    ) -> Result<(R, InFlight<'_>), E> {
        let transaction = Transaction::begin(self, Durability::Durable).map_err(|error| *error)?;
        let value = body(&transaction)?;
        let in_flight = transaction.commit_begin()?;
        Ok((value, in_flight))
    }

    /// Makes durable what this thread has left in flight, up to this record of [`Tx::begin_to_end_level`]; 0: none.
    ///
    /// # Errors
    /// As for [`InFlight::wait`].
    #[doc(hidden)]
    pub fn land(&self, record: u64) -> Result<()> {
        match record {
            0 => Ok(()),
            _ => Tx::land(&self.inner, record),
        }
    }
}
