//! What one thread's running transaction has gathered, for its engine to work on.

use std::ops::Range;
use std::ptr::{self, NonNull};
use std::sync::Arc;

use durum_persist::line;

use super::Tx;
use crate::alloc::{Allocation, FILLED_MIN, Puddle, ThreadCache, puddle_at, puddle_near_at};
use crate::announced::{Announced, LARGE};
use crate::checker::Pending;
use crate::deferred::Set;
use crate::error::{Error, Result, Step};
use crate::fault::{Guard, failed_or_forked, guarded, media_failed};
use crate::mapping::PAGE;
use crate::media::Barrier;
use crate::opened::{ByThread, Durability, Engine, PoolInner, PoolRef, TxState};
use crate::saved::Saved;

/// The pools that the transaction has touched, and the one that it began on, where stores may have been forgotten, too.
fn with_home<'p>(pools: &'p [PoolRef], home: &'p PoolInner) -> impl Iterator<Item = &'p PoolInner> {
    let is_touched = pools.iter().any(|pool| pool.key == home.key);
    let pools = pools.iter().map(|pool| &**pool);
    pools.chain((!is_touched).then_some(home))
}

/// What of `parts`, one behind the other, lies in a range of them all.
fn clipped<'p>(parts: &'p [&'p [u8]], range: Range<usize>) -> impl Iterator<Item = &'p [u8]> {
    let mut start = 0;
    parts.iter().filter_map(move |part| {
        let own = start..start + part.len();
        start = own.end;
        let (from, to) = (range.start.max(own.start), range.end.min(own.end));
        (from < to).then(|| &part[from - own.start..to - own.start])
    })
}

impl TxState {
    pub(super) fn new() -> Self {
        Self {
            durability: Durability::Durable,
            pools: Vec::new(),
            held: Vec::new(),
            announced: Announced::default(),
            recent: 0..0,
            recent_home: 0,
            sets: Vec::new(),
            set_bytes: Vec::new(),
            set_index: Announced::default(),
            allocation: Allocation::default(),
            bits: Vec::new(),
            bitmaps: Vec::new(),
            kept: ByThread::default(),
            wants_end: false,
            section: None,
            barrier: Barrier::default(),
            backups: Saved::default(),
            volatile: Saved::default(),
            caches: Vec::new(),
            before_reuse: None,
            savepoint: None,
        }
    }

    #[inline]
    fn tell_before_reuse(&mut self, committed: bool) {
        if let Some(wanted) = self.before_reuse.take() {
            // SAFETY: who asked for it lives until the transaction has ended.
            unsafe { (wanted.call)(wanted.context, committed) };
        }
    }

    /// Whether a `set` changes announced bytes.
    pub(crate) fn sets_overlap_announced(&self) -> bool {
        self.sets
            .iter()
            .any(|set| self.announced.overlaps(set.target, set.len))
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
                let source = &set_bytes[set.from..set.from + set.len];
                // SAFETY: an announced range lies in a mapped puddle, and the caller of `set` promised that only this
                // thread changes it.
                guarded(|| unsafe { line::copy(set.target as *mut u8, source.as_ptr(), set.len) });
            }
            stays
        });
    }

    pub(super) fn engine(&self) -> Option<&'static dyn Engine> {
        self.pools.first().map(|pool| pool.engine)
    }

    /// Whether the address lies in a puddle where the short way of `add` is possible; it is remembered then.
    #[inline(always)]
    fn is_known(&mut self, address: usize) -> bool {
        self.recent.contains(&address) || self.turn_to(address)
    }

    /// Remembers the puddle at `address` instead, if it is another one of the pool that the transaction began on.
    #[inline(always)]
    fn turn_to(&mut self, address: usize) -> bool {
        if self.recent.is_empty() {
            return false;
        }
        let (Some(puddle), Some(pool)) = (puddle_near_at(address), self.pools.first()) else {
            return false;
        };
        // SAFETY: as in `touch`.
        let puddle = unsafe { puddle.as_ref() };
        if puddle.pool_key != pool.key || !puddle.holds(address, 1) {
            return false;
        }
        self.remember_puddle(puddle);
        true
    }

    /// The short way of `add`, for a small range. Whether it was possible.
    ///
    /// # Safety
    /// As for [`Tx::add_bytes`].
    #[inline(always)]
    pub(super) unsafe fn save_small(&mut self, address: usize, len: usize) -> bool {
        // Without length `len - 1` is very large.
        if len.wrapping_sub(1) >= LARGE - 1
            || failed_or_forked()
            || !self.is_known(address)
            || len > self.recent.end - address
        {
            return false;
        }
        if self.announced.has_objects() && self.announced.is_in_object(address, len) {
            return true;
        }
        // SAFETY: the range lies in a mapped puddle; the rest as the caller promises.
        unsafe { self.save_in_lines(address, len) };
        // Where reading failed, the long way finds out and says so.
        !media_failed()
    }

    /// The same, and calls nothing but `save` ([`Announced::insert_few`]).
    #[inline(always)]
    pub(super) fn save_few(
        &mut self,
        address: usize,
        len: usize,
        save: impl Fn(*mut u8, *const u8, u64),
    ) -> bool {
        // Without length `len - 1` is very large.
        if len.wrapping_sub(1) >= LARGE - 1
            || failed_or_forked()
            || !self.is_known(address)
            || len > self.recent.end - address
        {
            return false;
        }
        if self.announced.has_objects() && self.announced.is_in_object(address, len) {
            return true;
        }
        self.prefetch_home(address, len);
        let _guard = Guard::new();
        // Where reading failed, the long way finds out and says so.
        self.announced.insert_few(address, len, save) && !media_failed()
    }

    /// Soon after the commit the change goes home, where it may meet cold lines.
    #[inline(always)]
    fn prefetch_home(&self, address: usize, len: usize) {
        let home = address + self.recent_home;
        for number in home / line::LINE..=(home + len - 1) / line::LINE {
            line::prefetch_to_write(number * line::LINE);
        }
    }

    /// The same, for a word, and calls nothing.
    ///
    /// # Safety
    /// As for [`Tx::add_bytes`], where `address` is a multiple of 8.
    #[inline(always)]
    pub(super) unsafe fn save_word(&mut self, address: usize) -> bool {
        // The range ends with a page.
        if failed_or_forked() || !self.is_known(address) {
            return false;
        }
        if self.announced.has_objects() && self.announced.is_in_object(address, 8) {
            return true;
        }
        line::prefetch_to_write(address + self.recent_home);
        // SAFETY: the word lies in a mapped puddle; the rest as the caller promises.
        let old = guarded(|| unsafe { (address as *const u64).read() });
        // Where reading failed, the long way finds out and says so.
        !media_failed() && self.announced.insert_word(address, old)
    }

    /// Announces a range shorter than [`LARGE`] in the puddle that was remembered last, and keeps what it holds.
    ///
    /// # Safety
    /// As for [`Announced::insert_saving`].
    #[inline(always)]
    pub(crate) unsafe fn save_in_lines(&mut self, address: usize, len: usize) {
        self.prefetch_home(address, len);
        let _guard = Guard::new();
        // SAFETY: as the caller promises.
        unsafe { self.announced.insert_saving(address, len) };
    }

    /// Fills an object of `len` bytes that was just allocated on a Shadow pool. Its whole pages go home at once where
    /// that is possible, and are never private.
    pub(super) fn fill(&mut self, object: usize, parts: &[&[u8]], len: usize, is_durable: bool) {
        let pages = object.next_multiple_of(PAGE)..(object + len) & !(PAGE - 1);
        let mut written = 0..0;
        if is_durable
            && len >= FILLED_MIN
            && self.section.is_none()
            && self.savepoint.is_none()
            && self.sets.is_empty()
            && let (Some(puddle), Some(pool)) = (puddle_at(object), self.pools.first().copied())
            && !pool.has_checker()
        {
            let inside = pages.start - object..pages.end - object;
            let mut parts = clipped(parts, inside.clone());
            // SAFETY: as in `touch`.
            let puddle = unsafe { puddle.as_ref() };
            if pool.engine.write_now(self, pages, &mut parts, puddle) {
                written = inside;
            }
        }
        for rest in [0..written.start, written.end..len] {
            let mut target = object + rest.start;
            for part in clipped(parts, rest) {
                // SAFETY: in the object, which only this thread knows.
                guarded(|| unsafe { line::copy(target as *mut u8, part.as_ptr(), part.len()) });
                target += part.len();
            }
        }
    }

    /// Makes the short way of `add` possible in a puddle of this transaction.
    #[inline(always)]
    pub(crate) fn remember_puddle(&mut self, puddle: &Puddle) {
        self.recent = puddle.heap();
        self.recent_home = puddle.home_offset();
    }

    /// Checks that a range lies in an open pool which this transaction may touch.
    #[inline(always)]
    pub(super) fn touch(&mut self, tx: &Tx, address: usize, len: usize) -> Step<NonNull<Puddle>> {
        let refused = || Box::new(Error::NotInPool { address, len });
        let pointer = puddle_at(address).ok_or_else(refused)?;
        // SAFETY: puddles in the table live while their store is open; the transaction keeps its own store open, and
        // for another store's puddle only plain fields are read.
        let puddle = unsafe { pointer.as_ref() };
        if puddle.store_key != tx.store_key || puddle.pool_key == 0 || !puddle.holds(address, len) {
            return Err(refused());
        }
        if tx.depth.get() == 0 {
            return Err(Error::NoTransaction.into());
        }
        match self.pools.first() {
            Some(pool) if pool.key == puddle.pool_key => {}
            // SAFETY: as in `home`.
            None if let Some(home) = unsafe { tx.home.get().as_ref() }
                && home.key == puddle.pool_key =>
            {
                home.check_usable()?;
                home.engine.enter(self, home)?;
                self.pools.push(PoolRef(NonNull::from(&**home)));
            }
            _ => self.touch_pool(tx, puddle)?,
        }
        Ok(pointer)
    }

    /// Makes the pool of a puddle part of the transaction, which is not the one that it began on or not its first.
    #[inline(never)]
    fn touch_pool(&mut self, tx: &Tx, puddle: &Puddle) -> Step {
        if self.pools.iter().any(|pool| pool.key == puddle.pool_key) {
            return Ok(());
        }
        // SAFETY: as in `home`.
        if let Some(home) = unsafe { tx.home.get().as_ref() }
            && home.key == puddle.pool_key
        {
            self.join(tx, home)?;
            return Ok(());
        }
        let pool = PoolInner::of(puddle).ok_or(Error::NotInPool {
            address: puddle.address,
            len: puddle.size,
        })?;
        self.join(tx, &pool)?;
        Ok(())
    }

    /// Makes a pool part of the transaction.
    pub(super) fn join(&mut self, tx: &Tx, pool: &Arc<PoolInner>) -> Result<()> {
        pool.check_usable()?;
        if self.is_empty() {
            self.forget_pools();
        }
        match self.pools.first() {
            None => {
                pool.check_turn_may_come()?;
                pool.engine.enter(self, pool)?;
            }
            Some(first) if first.commits_with(pool) => {}
            Some(first) => return Err(first.mixed_with(pool)),
        }
        // SAFETY: as in `home`.
        if unsafe { tx.home.get().as_ref() }.is_none_or(|home| home.key != pool.key) {
            self.held.push(pool.clone());
        }
        self.pools.push(PoolRef(NonNull::from(&**pool)));
        Ok(())
    }

    /// The pool with this key.
    pub(crate) fn pool_of(pools: &[PoolRef], key: u64) -> Option<PoolRef> {
        pools.iter().find(|pool| pool.key == key).copied()
    }

    /// The slabs that this thread owns in a pool.
    #[inline]
    pub(super) fn cache<'c>(
        caches: &'c mut Vec<ThreadCache>,
        pool: &PoolInner,
    ) -> &'c mut ThreadCache {
        let at = match caches.iter().position(|cache| cache.pool_key == pool.key) {
            Some(at) => at,
            None => {
                // Time to forget those of pools that were closed since: their slabs went with them.
                caches.retain(|cache| pool.store.has_open_pool(cache.pool_key));
                caches.push(ThreadCache::new(pool.key));
                caches.len() - 1
            }
        };
        &mut caches[at]
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
            && !self.wants_end;
        if !is_plain {
            self.clear_more();
        }
    }

    /// Forgets the pools of the last transaction.
    pub(super) fn forget_pools(&mut self) {
        self.pools.clear();
        self.recent = 0..0;
    }

    #[inline(never)]
    fn clear_more(&mut self) {
        if std::mem::take(&mut self.wants_end) {
            let first = self.pools.first();
            self.kept.end(first.map(|pool| &**pool));
            self.section = None;
            if first.is_some_and(|pool| pool.facts.takes_turns) {
                // The next transaction has to say first that it is about to change the pool.
                self.recent = 0..0;
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

    /// `home` is the pool that the transaction began on.
    #[inline(always)]
    pub(super) fn commit(&mut self, home: &PoolInner) -> Step {
        let first = match self.pools.first() {
            Some(first) if !self.is_empty() => *first,
            _ => return self.commit_nothing(home),
        };
        let allocates = !self.allocation.is_empty();
        if allocates {
            self.allocation
                .changes(&self.pools, &mut self.bits, &mut self.bitmaps);
        }
        let is_checked = home.has_checker() || self.pools.iter().any(|pool| pool.has_checker());
        let mut result = Ok(());
        if is_checked || !self.sets.is_empty() {
            result = self.check_and_settle(home);
        }
        if result.is_ok() {
            result = first.engine.commit(self);
        }
        if let Err(error) = result {
            return Err(self.fail(error));
        }
        self.tell_before_reuse(true);
        if allocates {
            let pools = &self.pools;
            self.allocation.committed(|key| Self::pool_of(pools, key));
        }
        if is_checked {
            with_home(&self.pools, home).for_each(PoolInner::after_commit);
        }
        self.clear();
        Ok(())
    }

    /// Nothing was announced, but volatile memory at most: there is nothing to make durable. A forgotten announcement
    /// looks the same.
    #[inline(never)]
    fn commit_nothing(&mut self, home: &PoolInner) -> Step {
        let result = home.before_commit(&self.pending(), true);
        if let Err(error) = result {
            let error = self.fail(error.into());
            home.after_commit();
            return Err(error);
        }
        self.clear();
        Ok(())
    }

    /// Whether it has changed nothing in any pool.
    #[inline]
    fn is_empty(&self) -> bool {
        self.announced.is_empty()
            && self.allocation.is_empty()
            && self.sets.is_empty()
            && self.section.is_none()
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
    fn check_and_settle(&mut self, home: &PoolInner) -> Step {
        let pending = self.pending();
        with_home(&self.pools, home)
            .try_for_each(|pool| pool.before_commit(&pending, self.section != Some(pool.key)))?;
        self.settle_announced_sets();
        Ok(())
    }

    /// The commit has failed: rolls back. What to tell.
    #[cold]
    fn fail(&mut self, error: Box<Error>) -> Box<Error> {
        // After a write or a sync failed nobody knows what is on the media; poison says that, and what failed.
        let unknown = self
            .pools
            .first()
            .and_then(|pool| pool.poison.check().err());
        self.abort();
        unknown.map_or(error, Box::new)
    }

    #[cold]
    pub(super) fn abort(&mut self) {
        if let Some(engine) = self.engine() {
            engine.abort(self);
        }
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
}
