//! Sections: transactions whose changes are found, for code that announces nothing.

use std::marker::PhantomData;

use durum_persist::record as recorder;

use super::{Transaction, Tx};
use crate::error::{Error, Result};
use crate::fault::check_forked;
use crate::opened::{Durability, Pool};

impl Pool {
    /// Runs `body` as a transaction in which this pool may be changed by plain stores, without any `add`.
    ///
    /// Where it returns `Ok`, every word of the pool's objects that has changed is durable when this returns, together
    /// with what was allocated, freed and announced, in this pool and in others of the store: all of it or nothing. If
    /// it returns `Err` or panics, the pool's objects are as they were before. So code that knows nothing of durum can
    /// change durable data: containers with an allocator, a library that is given a place for its structures.
    ///
    /// It waits until no other transaction of the store is open, and keeps new ones out until it has ended, as a lock
    /// would. Inside a section of the same pool it becomes part of that one, as do transactions on this thread.
    ///
    /// Costs one fence (one sync on a file system), and beyond that half a microsecond for the first write to each
    /// page, as much to compare it, and 0.2 µs for each MiB of the pool ([`PageTracking`](crate::PageTracking)). A
    /// program that can say what it changes is faster with transactions.
    ///
    /// # Safety
    /// 1. From the moment this is called until it has returned, no other thread changes the pool, except in a
    ///    transaction.
    /// 2. The caller holds nothing that another thread waits for inside a transaction, and will not wait itself for one
    ///    that does: neither would ever go on.
    /// 3. Words that threads share and nobody announces, such as locks inside objects, are not touched by others
    ///    meanwhile. They may be logged and, if the section fails, get back a value that was durable at some time,
    ///    where something else in their page was changed.
    ///
    /// # Errors
    /// What `body` returns, the errors of [`Transaction::commit`] and [`Pool::begin`]; `SectionEngine` if the pool's
    /// engine is not Shadow; `SectionInside` if a transaction that is not a section of this pool is running on this
    /// thread; `System` where pages cannot be tracked.
    pub unsafe fn section<R, E: From<Error>>(
        &self,
        body: impl FnOnce(&Tx) -> Result<R, E>,
    ) -> Result<R, E> {
        // SAFETY: as the caller promises; the guard ends here.
        let section = unsafe { self.begin_section() }?;
        let value = body(&section)?;
        section.commit()?;
        Ok(value)
    }

    /// Begins a section on this thread, which ends as a transaction does. See [`Pool::section`].
    ///
    /// # Safety
    /// As for [`Pool::section`], until the section has ended; as for [`Pool::begin`].
    ///
    /// # Errors
    /// As for [`Pool::section`].
    pub unsafe fn begin_section(&self) -> Result<Transaction<'_>> {
        recorder::api("section");
        check_forked()?;
        self.inner.check_usable()?;
        self.inner.engine.check_sections(&self.inner)?;
        let pointer = Tx::of(&self.inner)?;
        // SAFETY: kept alive by this thread's list.
        let tx = unsafe { pointer.as_ref() };
        if tx.depth.get() > 0 {
            let state = tx.state.borrow();
            if state.section != Some(self.inner.key) {
                return Err(Error::SectionInside {
                    pool: self.inner.name.clone(),
                });
            }
            drop(state);
            return Ok(Transaction::begin(self, Durability::Durable)?);
        }
        let closed = self.inner.store.gate.close()?;
        // The gate is closed: this thread's transaction must not go through it.
        tx.begin_on(&self.inner, Durability::Durable);
        let transaction = Transaction {
            tx: pointer,
            _pool: PhantomData,
        };
        // A failure drops the guard, which rolls back what there is.
        let mut state = tx.state.borrow_mut();
        tx.enter_pool(&mut state, &self.inner)?;
        self.inner
            .engine
            .begin_section(&mut state, &self.inner, closed)?;
        drop(state);
        Ok(transaction)
    }
}
