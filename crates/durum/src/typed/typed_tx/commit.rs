//! How a transaction ends: what was put off is done, the balance is checked, and then the core commits or rolls back.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::ptr;

use super::{Failure, HOLDS, LOOKS, SETTLES, TypedTx, give_up};
use crate::error::{Error, Result};
use crate::opened::BeforeReuse;
use crate::tx::Transaction;

impl TypedTx {
    #[inline]
    fn check_balance(&self) {
        let change = self.open_ranges.borrow_mut().close_all();
        let balance = self.balance.get() + change;
        if balance != 0 {
            self.give_up_owners(balance);
        }
        self.balance.set(0);
    }

    #[cold]
    fn give_up_owners(&self, balance: i64) -> ! {
        give_up(&format!(
            "{balance} handles to objects of pool {} were carried out of a transaction or forgotten",
            self.binding().name
        ))
    }

    /// What is rolled back must not be borrowed: a reader would see it change.
    fn check_readers(&self) {
        for word in &*self.written.borrow() {
            // SAFETY: words of the open pool.
            if unsafe { word.as_ref() }.has_readers() {
                give_up("a transaction is rolled back while what it changed is borrowed");
            }
        }
    }

    #[inline(always)]
    pub(in crate::typed) fn commit(&self, transaction: Transaction<'_>) -> Result<()> {
        if self.tasks.get() == 0 && self.balance.get() == 0 {
            let result = transaction.commit();
            self.depth.set(0);
            return result;
        }
        // Most others write to what is in cells, and do no more.
        if self.tasks.get() > LOOKS || self.open().deferred_drops.len() > 0 {
            return self.commit_more(transaction);
        }
        self.check_balance();
        let result = transaction.commit();
        self.end_of_commit(&result);
        result
    }

    #[inline(never)]
    fn commit_more(&self, transaction: Transaction<'_>) -> Result<()> {
        if self.open().deferred_drops.len() > 0 {
            self.note(SETTLES);
        }
        if self.tasks.get() & SETTLES != 0
            && !self.is_doomed()
            && let Err(panic) = self.settle()
        {
            self.abort(transaction);
            resume_unwind(panic);
        }
        if self.is_doomed() {
            let failure = self.failure.take().unwrap_or(Error::Aborted);
            self.abort(transaction);
            return Err(failure);
        }
        self.check_balance();
        // Settling may have locked and counted more.
        let holds = self.tasks.get() & HOLDS != 0;
        if holds {
            self.end_before_reuse();
        }
        let result = transaction.commit();
        if holds {
            self.end_unless_told(result.is_ok());
        }
        self.end_of_commit(&result);
        result
    }

    #[inline(always)]
    fn end_of_commit(&self, result: &Result<()>) {
        if result.is_err() {
            // It was rolled back.
            self.check_readers();
        }
        self.rest();
    }

    /// Drops what was put off, and adds up what was counted. Where that fails the transaction is doomed.
    ///
    /// # Errors
    /// A panic that is none of ours.
    #[inline(never)]
    fn settle(&self) -> std::thread::Result<()> {
        // What it announces may find no room, and then leaves it as it would leave the body.
        match catch_unwind(AssertUnwindSafe(|| self.settle_counts())) {
            Ok(Ok(())) => {}
            Ok(Err(error)) => self.fail_later(error),
            Err(panic) => self.fail_later(panic.downcast::<Failure>()?.0),
        }
        Ok(())
    }

    #[inline(never)]
    pub(in crate::typed) fn abort(&self, transaction: Transaction<'_>) {
        self.queued_drops.borrow_mut().clear();
        self.check_balance();
        self.check_readers();
        self.end_before_reuse();
        transaction.abort();
        self.end_unless_told(false);
        self.failure.take();
        self.rest();
    }

    /// Has [`TypedTx::end`] called by the core as soon as the outcome is certain, and before it gives places back:
    /// their words are others' then.
    fn end_before_reuse(&self) {
        unsafe fn end(tx: *const (), committed: bool) {
            // SAFETY: the context is this thread's, whose transaction is about to end.
            unsafe { &*tx.cast::<TypedTx>() }.end(committed);
        }
        self.has_ended.set(false);
        self.core().tell_before_reuse(BeforeReuse {
            context: ptr::from_ref(self).cast(),
            call: end,
        });
    }

    /// Where the core had nothing to do it has told nobody.
    #[inline]
    fn end_unless_told(&self, committed: bool) {
        if !self.has_ended.get() {
            self.core().tell_nobody();
            self.end(committed);
        }
    }

    /// The transaction is over.
    #[inline]
    fn rest(&self) {
        self.written.borrow_mut().clear();
        self.tasks.set(0);
        self.depth.set(0);
    }

    /// Gives back what was held until the outcome was durable.
    fn end(&self, committed: bool) {
        self.has_ended.set(true);
        if let Some(change) = self.deferred_change.take() {
            let change = if committed { change } else { 0 };
            self.open().deferred_drops.give_back(change);
        }
        let words = &self.binding().words;
        self.counts.borrow_mut().end(words, committed);
        for word in self.locked.borrow_mut().drain(..) {
            // SAFETY: words of the open pool, which this thread has locked.
            unsafe { word.as_ref() }.unlock();
        }
    }
}
