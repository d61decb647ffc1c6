//! Where a transaction begins and ends: guards, closures, nesting.

use std::marker::PhantomData;
use std::ops::Deref;
use std::ptr::NonNull;

use super::Tx;
use crate::error::{Error, Result};
use crate::pool::Pool;
use crate::space::forked;

/// A transaction that is open until it is committed, aborted or dropped (which aborts).
#[derive(Debug)]
pub struct Transaction<'p> {
    pub(super) tx: NonNull<Tx>,
    pub(super) _pool: PhantomData<&'p Pool>,
}

impl Deref for Transaction<'_> {
    type Target = Tx;

    #[inline]
    fn deref(&self) -> &Tx {
        // SAFETY: kept alive by this thread's list, which outlives every scope on the thread's stack.
        unsafe { self.tx.as_ref() }
    }
}

impl<'p> Transaction<'p> {
    // Always: out of line an empty transaction takes twice as long.
    #[inline(always)]
    pub(crate) fn begin(pool: &'p Pool) -> Result<Self> {
        if forked() {
            return Err(Error::Forked);
        }
        pool.inner.check_usable()?;
        let pointer = Tx::of(&pool.inner)?;
        // SAFETY: as in `deref`.
        let tx = unsafe { pointer.as_ref() };
        match tx.depth.get() {
            0 => {
                tx.gate.enter();
                tx.home.set(&raw const pool.inner);
                // A constant: the next transaction need not wait until it is known what this one stored.
                tx.depth.set(1);
            }
            depth => tx.depth.set(depth + 1),
        }
        Ok(Self {
            tx: pointer,
            _pool: PhantomData,
        })
    }

    /// Commits. On the outermost level everything announced, allocated and freed is durable when it returns.
    ///
    /// # Errors
    /// `Aborted` where an inner transaction was aborted; the engine's errors. Nothing was kept then, unless the error says
    /// that the outcome is unknown (`Poisoned`).
    #[inline]
    pub fn commit(self) -> Result<()> {
        // Not to be dropped, also if the commit panics: what is durable by then cannot be rolled back.
        std::mem::ManuallyDrop::new(self).leave(true)
    }

    /// Rolls back: announced memory, allocations and registered volatile memory are as before. Inside an outer transaction
    /// the outer one can only roll back, too.
    pub fn abort(self) {
        drop(self);
    }
}

impl Drop for Transaction<'_> {
    fn drop(&mut self) {
        // Rolling back reports no error: what fails poisons the pool, which the next call reports.
        let _ = self.leave(false);
    }
}

impl Pool {
    /// Begins a transaction on this thread, or joins the one that is running. [`Pool::transaction`] is the safe form.
    ///
    /// # Safety
    /// The guards of one thread end in the reverse order of their beginnings, and none is leaked: the outermost one borrows
    /// its pool for all of them.
    ///
    /// # Errors
    /// `Forked`, `OtherStore`, `Poisoned`.
    #[inline]
    pub unsafe fn begin(&self) -> Result<Transaction<'_>> {
        Transaction::begin(self)
    }

    /// Runs `body` as a failure-atomic transaction.
    ///
    /// If it returns `Ok`, everything that it announced, allocated and freed is durable when this returns. If it returns
    /// `Err` or panics, or the process or the machine dies, nothing of it is. Inside a running transaction on the same store it becomes
    /// part of that one.
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
        let transaction = Transaction::begin(self)?;
        let value = body(&transaction)?;
        transaction.commit()?;
        Ok(value)
    }
}
