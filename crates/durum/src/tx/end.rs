//! How a transaction ends: levels, the outermost of which commits or rolls back.

use std::cell::Cell;
use std::marker::PhantomData;
use std::ops::Deref;
use std::ptr::{self, NonNull};
use std::sync::atomic::Ordering;

use durum_persist::{count, record as recorder};

use super::{CURRENT, Tx};
use crate::checker::Pending;
use crate::deferred::Set;
use crate::error::{Error, Result, Step};
use crate::fault::{failed_or_forked, forked, media_failed};
use crate::opened::{BeforeReuse, Durability, Pool, PoolInner, PoolRef, TxState, WHATEVER};

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

impl Transaction<'_> {
    /// Commits. On the outermost level everything announced, allocated and freed is durable when it returns; soon
    /// after, if every level began as [`Durability::Buffered`](crate::Durability::Buffered).
    ///
    /// # Errors
    /// `Aborted` where an inner transaction was aborted; the engine's errors. Nothing was kept then, unless the error
    /// says that the outcome is unknown (`Poisoned`).
    #[inline]
    pub fn commit(self) -> Result<()> {
        // Not to be dropped, also if the commit panics: what is durable by then cannot be rolled back.
        std::mem::ManuallyDrop::new(self).leave_level(Ending::Commits)?;
        Ok(())
    }

    /// Rolls back: announced memory, allocations and registered volatile memory are as before. Inside an outer
    /// transaction the outer one can only roll back, too.
    pub fn abort(self) {
        drop(self);
    }
}

impl Drop for Transaction<'_> {
    fn drop(&mut self) {
        // Rolling back reports no error: what fails poisons the pool, which the next call reports.
        let _ = self.leave_level(Ending::RollsBack);
    }
}

/// How a level ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    RollsBack,
    Commits,
    /// It commits, and may leave it to somebody else that it is durable.
    MayFly,
}

impl Tx {
    /// Ends one level of the running transaction, which [`Pool::begin_level`] began. For interfaces that have no
    /// closure; the pool handle that the outermost level began on has to live until that level ends. Gives how many
    /// levels are left.
    ///
    /// # Safety
    /// The level is not one of a closure's, which ends by itself.
    ///
    /// # Errors
    /// As for [`Transaction::commit`]; `NoTransaction`.
    #[doc(hidden)]
    #[inline]
    pub unsafe fn end_level(commit: bool) -> Result<u32, Box<Error>> {
        let ending = match commit {
            true => Ending::Commits,
            false => Ending::RollsBack,
        };
        // SAFETY: null, or kept alive by its thread; the reference is used within a call on this thread only.
        match unsafe { CURRENT.with(Cell::get).as_ref() } {
            Some(tx) => tx.leave_level(ending).map(|_| tx.depth.get()),
            None => Err(Error::NoTransaction.into()),
        }
    }

    /// Ends the transaction's hope of committing. Return the error from the closure; the outermost transaction rolls
    /// back.
    pub fn abort<R>(&self) -> Result<R> {
        self.doom();
        Err(Error::Aborted)
    }

    /// The outermost level can only roll back.
    fn doom(&self) {
        self.doomed.set(true);
        self.is_rare.set(true);
    }

    /// Gives which record is left in flight; 0: none.
    #[inline]
    pub(super) fn leave_level(&self, ending: Ending) -> Step<u64> {
        let commit = ending != Ending::RollsBack;
        let Some(depth) = self.depth.get().checked_sub(1) else {
            return Err(Error::NoTransaction.into());
        };
        if depth > 0 {
            self.depth.set(depth);
            if !commit {
                self.doom();
            }
            return if self.doomed.get() && commit {
                Err(Error::Aborted.into())
            } else {
                Ok(0)
            };
        }
        if self.is_rare.get() {
            return self.end_any(ending);
        }
        if !self.touched.get() && self.window.is_empty() {
            let left = match self.flies.get() {
                Some(_) => self.leave_in_flight(ending, WHATEVER),
                None => Ok(0),
            };
            self.end();
            return left;
        }
        self.end_words(ending)
    }

    /// Ends the outermost level of a transaction that has changed words, and done nothing else: mostly it commits.
    #[inline(never)]
    fn end_words(&self, ending: Ending) -> Step<u64> {
        let is_plain = ending == Ending::Commits
            && self.durability.get() == Durability::Durable
            && self.flies.get().is_none()
            && !failed_or_forked();
        if is_plain {
            // A store behind the fence of the last transaction costs more than a look.
            if self.touched.get() {
                self.touched.set(false);
            }
            let result = self.state.borrow_mut().commit_words();
            if !matches!(result, Ok(false)) {
                return self.ended(result.map(|_| 0));
            }
        }
        self.end_any(ending)
    }

    /// Ends the outermost level, whatever the transaction has done.
    #[inline(never)]
    pub(super) fn end_any(&self, ending: Ending) -> Step<u64> {
        let commit = ending != Ending::RollsBack;
        // As above.
        let doomed = self.doomed.get() && self.doomed.replace(false);
        self.touched.set(false);
        self.is_rare.set(false);
        if forked() {
            // The pools are not mapped in this process: there is nothing to roll back, and nothing that could be.
            self.end();
            return Err(Error::Forked.into());
        }
        let result = {
            let mut state = self.state.borrow_mut();
            if commit && !doomed {
                recorder::api("tx.commit");
                state.durability = self.durability.get();
                state.may_fly = ending == Ending::MayFly;
                let result = state.commit_changes(self.origin()?);
                count::add_transaction(result.is_ok());
                result.map(|()| std::mem::take(&mut state.in_flight))
            } else {
                recorder::api("tx.abort");
                state.roll_back();
                count::add_transaction(false);
                if commit {
                    Err(Error::Aborted.into())
                } else {
                    Ok(0)
                }
            }
        };
        let result = match (commit, result) {
            (true, Ok(left)) if left > 0 || self.flies.get().is_some() => {
                self.leave_in_flight(ending, left)
            }
            (_, result) => result,
        };
        self.ended(result)
    }

    /// The transaction is over, with this result.
    #[inline(always)]
    fn ended(&self, result: Step<u64>) -> Step<u64> {
        self.end();
        if self.upkeep.now.load(Ordering::Relaxed) >= self.upkeep.due.load(Ordering::Relaxed) {
            self.do_upkeep();
        }
        result
    }

    /// A transaction has committed, or changed nothing, and left `left` in flight, or [`WHATEVER`] was there before.
    /// One that waits makes that durable: who asked for something that is there already is told that it is.
    #[cold]
    fn leave_in_flight(&self, ending: Ending, left: u64) -> Step<u64> {
        match ending {
            Ending::MayFly if left == WHATEVER => Ok(self.flies.get().map_or(0, |_| left)),
            Ending::MayFly if left > 0 => {
                self.flies.set(Some(self.origin()?.engine));
                Ok(left)
            }
            Ending::MayFly | Ending::Commits if self.durability.get() == Durability::Durable => {
                if let Some(engine) = self.flies.get() {
                    engine.land(&mut self.state.borrow_mut(), WHATEVER)?;
                    self.flies.set(None);
                }
                Ok(0)
            }
            // One that is buffered waits for nothing, and lands nothing.
            Ending::MayFly | Ending::Commits | Ending::RollsBack => Ok(0),
        }
    }

    #[cold]
    fn do_upkeep(&self) {
        // Not where the store is just closing.
        if let Some(store) = self.store.upgrade() {
            store.kept.upkeep(&store);
        }
    }

    #[inline]
    fn end(&self) {
        self.depth.set(0);
        // SAFETY: this thread's, which lasts as long as that.
        unsafe { (*self.of_thread).leave(&self.window) };
        self.gate.active.leave();
    }

    /// Has somebody told of the outcome before places that became free can be allocated again. Not told of a
    /// transaction that announced nothing.
    pub(crate) fn tell_before_reuse(&self, wanted: BeforeReuse) {
        self.state.borrow_mut().before_reuse = Some(wanted);
    }

    /// Takes back [`Tx::tell_before_reuse`].
    pub(crate) fn tell_nobody(&self) {
        self.state.borrow_mut().before_reuse = None;
    }
}

impl TxState {
    /// Commits words, which are all that the transaction has changed. False: it is not the way for this one, and
    /// nothing was done.
    #[inline(always)]
    fn commit_words(&mut self) -> Step<bool> {
        let (Some(first), Some(kept)) = (self.pools.first(), &mut self.kept.current) else {
            return Ok(false);
        };
        let Some(commit_words) = first.facts.commit_words else {
            return Ok(false);
        };
        if !self.announced.words.is_open() {
            return Ok(false);
        }
        recorder::api("tx.commit");
        let (words, home_offset) = (self.announced.words(), self.recent_home);
        let mut result = commit_words(&mut **kept, words, home_offset, &mut self.barrier);
        if media_failed() && matches!(result, Ok(true)) {
            let failed = self.pools.iter().try_for_each(|pool| pool.check_media());
            result = failed.map(|()| true).map_err(Box::new);
        }
        match result {
            Ok(true) => {
                count::add_transaction(true);
                self.tell_before_reuse(true);
                self.announced.words.clear();
                Ok(true)
            }
            Ok(false) => Ok(false),
            Err(error) => {
                count::add_transaction(false);
                Err(self.fail(error))
            }
        }
    }

    /// `origin` is the pool that the transaction began on.
    #[inline(always)]
    fn commit_changes(&mut self, origin: &PoolInner) -> Step {
        let first = match self.pools.first() {
            Some(first) if !self.is_empty() => *first,
            _ => return self.commit_nothing(origin),
        };
        let allocates = !self.allocation.is_empty();
        if allocates {
            self.allocation
                .changes(&self.pools, &mut self.bits, &mut self.bitmaps);
        }
        let is_checked =
            origin.checker.is_some() || self.pools.iter().any(|pool| pool.checker.is_some());
        let mut result = Ok(());
        if is_checked || !self.sets.is_empty() {
            result = self.check_and_settle(origin);
        }
        if result.is_ok() {
            result = first.engine.commit(self);
        }
        if let Err(error) = result {
            return Err(self.fail(error));
        }
        if allocates {
            // ORDER (of threads): before who is told lets go of locks.
            self.allocation.publish();
        }
        self.tell_before_reuse(true);
        if allocates {
            let pools = &self.pools;
            self.allocation.committed(|key| Self::pool_of(pools, key));
        }
        if is_checked {
            with_origin(&self.pools, origin).for_each(PoolInner::after_commit);
        }
        self.clear();
        Ok(())
    }

    /// Nothing was announced, but volatile memory at most: there is nothing to make durable. A forgotten announcement
    /// looks the same.
    #[inline(never)]
    fn commit_nothing(&mut self, origin: &PoolInner) -> Step {
        let result = origin.before_commit(&self.pending(), true);
        if let Err(error) = result {
            let error = self.fail(error.into());
            origin.after_commit();
            return Err(error);
        }
        if self.may_fly {
            self.in_flight = WHATEVER;
        }
        self.clear();
        Ok(())
    }

    fn pending(&self) -> Pending<'_> {
        Pending {
            announced: &self.announced,
            sets: &self.sets,
            set_bytes: &self.set_bytes,
            bits: &self.bits,
            bitmaps: &self.bitmaps,
        }
    }

    #[inline(never)]
    fn check_and_settle(&mut self, origin: &PoolInner) -> Step {
        self.announced.settle();
        let pending = self.pending();
        with_origin(&self.pools, origin)
            .try_for_each(|pool| pool.before_commit(&pending, self.section != Some(pool.key)))?;
        self.settle_announced_sets();
        Ok(())
    }

    /// Makes those `set`s now that lie in announced ranges, fresh objects above all: these become durable as a whole
    /// anyway, so the change needs neither a log entry nor a write-back of its own. Nothing, if one lies there in part:
    /// later ones must not overtake it.
    fn settle_announced_sets(&mut self) {
        let Self {
            sets,
            set_bytes,
            announced,
            ..
        } = self;
        let covered = |set: &Set| announced.covers(set.target, set.len);
        let overtakes = |set: &Set| announced.overlaps(set.target, set.len) && !covered(set);
        if sets.is_empty() || announced.is_empty() || sets.iter().any(overtakes) {
            return;
        }
        sets.retain(|set| {
            let stays = !covered(set);
            if !stays {
                // SAFETY: an announced range lies in a mapped puddle, and the caller of `set` promised that only this
                // thread changes it.
                unsafe { set.make(set_bytes) };
            }
            stays
        });
    }

    /// The commit has failed: rolls back. What to tell.
    #[cold]
    fn fail(&mut self, error: Box<Error>) -> Box<Error> {
        // After a write or a sync failed nobody knows what is on the media; poison says that, and what failed.
        let unknown = self
            .pools
            .first()
            .and_then(|pool| pool.poison.check().err());
        self.roll_back();
        unknown.map_or(error, Box::new)
    }

    #[cold]
    fn roll_back(&mut self) {
        if let Some(engine) = self.pools.first().map(|pool| pool.engine) {
            engine.abort(self);
        }
        // ORDER (of threads): as in `commit_changes`.
        self.allocation.withdraw_frees();
        self.tell_before_reuse(false);
        let pools = &self.pools;
        self.allocation.aborted(|key| Self::pool_of(pools, key));
        // SAFETY: the caller of `Tx::volatile_bytes` promised that the memory stays valid and unshared until the
        // transaction ends.
        unsafe {
            self.volatile.restore(|target, saved| {
                ptr::copy_nonoverlapping(saved.as_ptr(), target as *mut u8, saved.len())
            })
        };
        for pool in &self.pools {
            pool.after_commit();
        }
        self.clear();
    }

    #[inline(always)]
    fn clear(&mut self) {
        self.announced.clear();
        self.bits.clear();
        let is_plain = self.set_bytes.is_empty()
            && self.bitmaps.is_empty()
            && self.backups.is_empty()
            && self.volatile.is_empty()
            && self.held.is_empty()
            && self.gathered.is_none()
            && !self.wants_end;
        if !is_plain {
            self.clear_more();
        }
    }

    #[inline(never)]
    fn clear_more(&mut self) {
        // Left where announcing has panicked.
        self.gathered = None;
        if std::mem::take(&mut self.wants_end) {
            let first = self.pools.first();
            self.kept.end(first.map(|pool| &**pool));
            self.section = None;
            if first.is_some_and(|pool| pool.facts.takes_turns) {
                // The next transaction has to say first that it is about to change the pool.
                self.forget_recent();
            }
        }
        if !self.set_bytes.is_empty() {
            self.sets.clear();
            self.set_bytes.clear();
            self.set_index.clear();
        }
        self.bitmaps.clear();
        self.backups.clear();
        self.volatile.clear();
        if !self.held.is_empty() {
            self.held.clear();
            self.forget_pools();
        }
    }

    #[inline]
    fn tell_before_reuse(&mut self, committed: bool) {
        if self.before_reuse.is_some()
            && let Some(wanted) = self.before_reuse.take()
        {
            // SAFETY: who asked for it lives until the transaction has ended.
            unsafe { (wanted.call)(wanted.context, committed) };
        }
    }
}

/// The pools that the transaction has touched, and the one that it began on, where stores may have been forgotten, too.
fn with_origin<'p>(
    pools: &'p [PoolRef],
    origin: &'p PoolInner,
) -> impl Iterator<Item = &'p PoolInner> {
    let is_touched = pools.iter().any(|pool| pool.key == origin.key);
    let pools = pools.iter().map(|pool| &**pool);
    pools.chain((!is_touched).then_some(origin))
}
