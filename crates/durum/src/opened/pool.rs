//! An open pool: its puddles, what it asks its engine, and how it closes.

use std::any::Any;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use durum_service::{PuddleGrant, PuddleOwner};

use super::engine::{OfPool, PoolInner, SecondMapping};
use super::frontier::Mapper;
use super::store::StoreInner;
use crate::alloc::{Ground, Grow, PoolHeap, Puddle};
use crate::checker::{Pending, Subject};
use crate::error::{Error, Result};
use crate::fault::media_failed;
use crate::mapping::Owner;
use crate::poison::Poison;
use crate::primitive::locked;
use crate::reading::is_reading;

impl PoolInner {
    /// What it takes to map its puddles.
    pub(crate) fn mapper(&self) -> Mapper {
        let (engine, store, survive) = (self.engine, self.store.clone(), self.survive);
        let (key, pool) = (self.key, self.this.clone());
        let (poison, beside) = (self.store.poison.clone(), self.beside.clone());
        let is_writable = !self.is_read_only;
        let second = engine.second_mapping();
        let second_range = store.info.space_size as usize;
        let back = (second == SecondMapping::Back).then_some(second_range);
        let map = move |grant: PuddleGrant, is_claimed| {
            let (address, size) = (grant.address as usize, grant.size as usize);
            let owner = Owner {
                store_key: store.key,
                pool_key: key,
                pool: pool.clone(),
                poison: poison.clone(),
                survive,
                home: (second == SecondMapping::Home).then_some(second_range),
                back,
                beside: beside.clone(),
                kept: engine.keep_puddle(&store, address, size),
                is_writable,
                is_claimed,
            };
            let info = &store.info;
            let puddle = Puddle::map(grant, owner, info.domain, store.space, &info.path)?;
            engine.puddle_is_mapped(&store, &puddle);
            Ok(puddle)
        };
        Mapper {
            store: self.store.clone(),
            pool: self.uuid,
            poison: self.store.poison.clone(),
            beside: self.beside.clone(),
            back,
            puddles: self.heap.shared_puddles(),
            map: Box::new(map),
        }
    }

    /// The open pool of this name, after any that is just being closed is.
    pub(crate) fn find(store: &StoreInner, name: &str) -> Option<Arc<Self>> {
        store.find_open_pool(name)?.downcast().ok()
    }

    /// The open pool with this key.
    pub(crate) fn by_key(store: &StoreInner, key: u64) -> Option<Arc<Self>> {
        store.open_pool_by_key(key)?.downcast().ok()
    }

    /// The open pool of a puddle, unless it is being closed.
    pub(crate) fn of(puddle: &Puddle) -> Option<Arc<Self>> {
        puddle.pool.upgrade()?.downcast().ok()
    }

    #[inline(always)]
    pub(crate) fn check_usable(&self) -> Result<()> {
        self.poison.check()?;
        if media_failed() {
            self.check_media()
        } else {
            Ok(())
        }
    }

    #[inline(always)]
    pub(crate) fn check_readable(&self) -> Result<()> {
        match self.check_usable() {
            Ok(()) => Ok(()),
            Err(error) => self.check_only_readable(error),
        }
    }

    #[cold]
    fn check_only_readable(&self, error: Error) -> Result<()> {
        match error {
            Error::ReadOnly { .. } => {
                self.store.poison.check()?;
                self.check_media()
            }
            error => Err(error),
        }
    }

    /// A thread must not wait for its turn while others wait for it.
    ///
    /// # Errors
    /// `ReadsCopy`.
    #[inline(always)]
    pub(crate) fn check_turn_may_come(&self) -> Result<()> {
        match self.facts.takes_turns && is_reading() {
            true => Err(Error::ReadsCopy {
                pool: self.name.clone(),
            }),
            false => Ok(()),
        }
    }

    /// Whether one transaction may use both pools.
    pub(crate) fn commits_with(&self, other: &PoolInner) -> bool {
        let is_same_engine = (self.kind, self.run_by) == (other.kind, other.run_by);
        is_same_engine && self.facts.commits_with_others
    }

    /// The error of a transaction that uses this pool and wants another one, too.
    pub(crate) fn mixed_with(&self, second: &PoolInner) -> Error {
        Error::MixedEngines {
            first: self.name.clone(),
            first_engine: self.kind.name(),
            second: second.name.clone(),
            second_engine: second.kind.name(),
        }
    }

    /// What its engine keeps, if that is a `T`.
    pub(crate) fn kept<T: OfPool>(&self) -> Option<&T> {
        (&*self.kept as &dyn Any).downcast_ref()
    }

    /// What its engine keeps.
    ///
    /// # Safety
    /// It is a `T`.
    #[inline(always)]
    pub(crate) unsafe fn kept_unchecked<T: OfPool>(&self) -> &T {
        let kept = &*self.kept;
        debug_assert!((kept as &dyn Any).is::<T>(), "the pool is another engine's");
        // SAFETY: as the caller promises.
        unsafe { &*std::ptr::from_ref(kept).cast::<T>() }
    }

    /// The error of a page of this pool that failed, if any.
    #[cold]
    pub(crate) fn check_media(&self) -> Result<()> {
        self.heap
            .puddles()
            .iter()
            .try_for_each(|puddle| puddle.check_failed())?;
        self.store.check_logs()
    }

    /// The puddles are about to be unmapped, come what may.
    ///
    /// # Errors
    /// The store is poisoned, now if not before, and nothing is written home any more.
    fn settle(&self) -> Result<()> {
        self.drain().inspect_err(|error| {
            // The next opener replays the records, which are all there.
            tracing::warn!(pool = %self.name, %error, "records could not be brought home");
            self.store
                .set_poison("committed records could not be brought home");
            self.store.kept.stop();
        })
    }

    pub(crate) fn root_puddle(&self) -> Result<Arc<Puddle>> {
        let puddles = self.heap.puddles();
        puddles
            .iter()
            .find(|puddle| puddle.is_root)
            .cloned()
            .ok_or_else(|| Error::DamagedHeap {
                file: self.store.info.path.clone(),
                reason: format!("pool \"{}\" has no root puddle", self.name),
            })
    }

    /// Whether stores were announced is asked where somebody announces: not in a section.
    pub(crate) fn before_commit(&self, pending: &Pending<'_>, is_announced: bool) -> Result<()> {
        let Some(checker) = &self.checker else {
            return Ok(());
        };
        let checker = locked(checker);
        let puddles = self.heap.puddles().clone();
        let info = &self.store.info;
        let subject = Subject {
            name: &self.name,
            pool: self.uuid,
            puddles: &puddles,
            space: (info.base, info.base + info.space_size),
            type_text: &|id| self.store.service.type_text(self.meaning(id)).ok()?,
        };
        checker.look(subject, pending, is_announced)
    }

    /// Ranges are durable without an announcement. After a failed attempt they are as they are, too.
    #[inline]
    pub(crate) fn after_persist(&self, ranges: &[(&Puddle, Range<usize>)]) {
        if let Some(checker) = &self.checker {
            let mut checker = locked(checker);
            for (puddle, range) in ranges {
                checker.remember_range(puddle, range);
            }
        }
    }

    pub(crate) fn after_commit(&self) {
        if let Some(checker) = &self.checker {
            locked(checker).remember(&self.heap.puddles());
        }
    }
}

impl Ground for PoolInner {
    #[inline]
    fn heap(&self) -> &PoolHeap {
        &self.heap
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn directory(&self) -> &Path {
        self.store.info.directory()
    }

    fn poison(&self) -> &Poison {
        &self.poison
    }

    #[inline]
    fn keeps_objects(&self) -> bool {
        self.facts.keeps_objects
    }

    #[inline]
    fn try_alone(&self) -> Option<impl Sized> {
        self.bias.as_ref()?.try_enter(0)
    }

    fn make_puddle(&self, size: u64) -> Result<Arc<Puddle>> {
        let _span = tracing::debug_span!("grow_pool", pool = self.name, bytes = size).entered();
        let owner = PuddleOwner::Pool(self.uuid);
        let kind = self.kind.puddle_kind();
        let grant = self
            .store
            .neighbours
            .place(|service| service.create_puddle(owner, kind, size))?;
        let uuid = grant.uuid;
        (self.mapper().map)(grant, false).inspect_err(|_| {
            // A puddle that nobody can use must not stay behind.
            let _ = self.store.service.remove_puddle(uuid);
        })
    }

    fn map_more(&self) -> Result<bool> {
        self.frontier.map_more()
    }

    fn remove_puddle(&self, puddle: Arc<Puddle>) {
        puddle.unmap();
        let uuid = puddle.uuid;
        // Freed objects may still be looked up by late callers: the struct stays until the store closes.
        locked(&self.store.retired).push(puddle);
        if let Err(error) = self.store.service.remove_puddle(uuid) {
            // The puddle stays in the registry, empty; the next opener finds it and uses it.
            tracing::warn!(puddle = %uuid, %error, "an empty puddle could not be given back");
        }
    }

    fn give_log_back(&self) -> Result<()> {
        self.store.kept.give_log_back(&self.store)
    }

    /// Brings every record home, so that none will be written to the pool's puddles any more, nor any seal tell of
    /// them.
    fn drain(&self) -> Result<()> {
        if crate::fault::forked() {
            return Ok(());
        }
        self.engine.drain(self)
    }
}

impl Drop for PoolInner {
    fn drop(&mut self) {
        if crate::fault::forked() {
            // Nothing of it is mapped here, and a thread that is not there may hold the locks.
            return;
        }
        // Who wants to open it again waits for that, and may be stopped at an access.
        let store = self.store.clone();
        store.while_others_wait(|| self.close());
    }
}

impl PoolInner {
    fn close(&mut self) {
        self.frontier.close();
        if self.check_usable().is_ok() {
            self.load_empty_heaps();
            self.give_back_unused(0, 0);
        }
        self.engine.before_close(self);
        let _ = self.settle();
        if self.poison.check().is_ok() {
            self.engine.close(self);
        }
        let puddles = std::mem::take(&mut *self.heap.puddles_mut());
        for puddle in &puddles {
            puddle.unmap();
        }
        // A late lookup may still hold one: the structs stay until the store closes.
        locked(&self.store.retired).extend(puddles);
        // After a failure the grant stays: only so may the next opener replay the logs that name this pool.
        if self.store.poison.check().is_ok()
            && let Err(error) = self.store.service.close_pool(self.uuid)
        {
            // The next opener finds the grant and recovers, which changes nothing in a drained pool.
            tracing::warn!(pool = %self.name, %error, "the pool could not be closed in order");
        }
        self.store.pool_is_closed(&self.name, self.key);
    }
}
