//! Allocating and freeing in a transaction.

use std::ops::Range;
use std::ptr;
use std::sync::Arc;

use durum_persist::{line, record as recorder};

use super::Tx;
use crate::alloc::{Class, FILLED_MIN, Puddle, ThreadCache, lone_room, puddle_at, puddle_near_at};
use crate::described::{Described, Description};
use crate::error::{Error, Result};
use crate::fault::{forked, guarded};
use crate::mapping::PAGE;
use crate::opened::{Durability, Pool, PoolInner, PoolRef, TxState};

impl Tx {
    /// Allocates a `T` in the pool that the transaction began on. Its bytes are whatever was there before.
    ///
    /// The object exists durably when the commit returns, with what the program stored in it; it needs no `add`.
    /// After an abort or a crash before, it was never allocated.
    ///
    /// # Errors
    /// `ObjectSize`; store errors when the pool has to grow (a full disk). The transaction goes on.
    pub fn alloc<T: Described>(&self) -> Result<*mut T> {
        self.alloc_described(self.origin()?)
    }

    /// Allocates a `T` in any open pool of the store. See [`Tx::alloc`].
    ///
    /// # Errors
    /// As for [`Tx::alloc`], and `MixedEngines`.
    pub fn alloc_in<T: Described>(&self, pool: &Pool) -> Result<*mut T> {
        self.alloc_described(&pool.inner)
    }

    fn alloc_described<T: Described>(&self, pool: &Arc<PoolInner>) -> Result<*mut T> {
        let type_id = pool.store.ensure_type::<T>()?;
        let (size, align) = (size_of::<T>(), align_of::<T>());
        let object = self.reserve(pool, type_id, size, lone_room(size), align)?;
        Ok(object.cast())
    }

    /// Allocates a `T` whose bytes are all zero. See [`Tx::alloc`].
    ///
    /// # Errors
    /// As for [`Tx::alloc`].
    pub fn alloc_zeroed<T: Described>(&self) -> Result<*mut T> {
        let object = self.alloc::<T>()?;
        // SAFETY: the object was just allocated, so nobody else touches its bytes.
        unsafe { durum_persist::line::zero(object.cast(), size_of::<T>()) };
        Ok(object)
    }

    /// Allocates `size` bytes, aligned to `align`, for objects of type `type_id` (0: bytes without a type; others must
    /// have been registered with the store). See [`Tx::alloc`].
    ///
    /// # Errors
    /// As for [`Tx::alloc`].
    pub fn alloc_bytes(
        &self,
        pool: &Pool,
        type_id: u64,
        size: usize,
        align: usize,
    ) -> Result<*mut u8> {
        self.reserve(&pool.inner, type_id, size, size, align)
    }

    /// The short way of [`Tx::alloc_bytes`] in the transaction that runs on this thread: a place for a small object in
    /// a slab that the thread has; of this type, or of none; with `is_lone` for one object of the type. NULL where
    /// there is more to do; nothing was done then. For interfaces that have no closure.
    #[doc(hidden)]
    #[inline(always)]
    pub fn alloc_at_hand(
        pool: &Pool,
        description: Option<&Description>,
        size: usize,
        align: usize,
        is_lone: bool,
    ) -> *mut u8 {
        let store_key = pool.inner.store.key;
        let room = if is_lone { lone_room(size) } else { size };
        let object = Self::if_running(|tx| match description {
            None => tx.reserve_at_hand(&pool.inner, 0, size, room, align),
            Some(known) if known.is_registered_with(store_key) => {
                tx.reserve_at_hand(&pool.inner, known.id, size, room, align)
            }
            Some(_) => None,
        });
        object.flatten().unwrap_or(ptr::null_mut())
    }

    /// The short way of [`Tx::free`] in the transaction that runs on this thread, for a small object. False where there
    /// is more to do; nothing was done then. For interfaces that have no closure.
    ///
    /// # Safety
    /// As for [`Tx::free`].
    #[doc(hidden)]
    #[inline(always)]
    pub unsafe fn free_at_hand<T>(object: *mut T) -> bool {
        let address = object.expose_provenance();
        Self::if_running(|tx| tx.free_element(address)) == Some(true)
    }

    /// Allocates an object that holds `parts`, one behind the other. See [`Tx::alloc_bytes`].
    ///
    /// Where they are large this is faster than to allocate and then to store: on the Shadow engine whole pages go
    /// where they will stay, and no private ones are made for them.
    ///
    /// # Safety
    /// Nobody stores to the object before the transaction has ended, by [`Tx::set`] neither.
    ///
    /// # Errors
    /// As for [`Tx::alloc`].
    pub unsafe fn alloc_filled(
        &self,
        pool: &Pool,
        type_id: u64,
        parts: &[&[u8]],
        align: usize,
    ) -> Result<*mut u8> {
        let len = parts.iter().map(|part| part.len()).sum();
        if len >= FILLED_MIN {
            pool.inner.heap.note_filling();
        }
        let object = self.alloc_bytes(pool, type_id, len, align)?;
        let is_durable = self.durability.get() == Durability::Durable;
        self.state
            .borrow_mut()
            .fill(object.expose_provenance(), parts, len, is_durable);
        Ok(object)
    }

    /// Allocates one object of a type that takes `size` bytes. As [`Tx::alloc_bytes`], whose objects may be rows of
    /// several.
    ///
    /// # Errors
    /// As for [`Tx::alloc`].
    #[doc(hidden)]
    #[inline]
    pub fn alloc_lone(
        &self,
        pool: &Pool,
        type_id: u64,
        size: usize,
        align: usize,
    ) -> Result<*mut u8> {
        self.reserve(&pool.inner, type_id, size, lone_room(size), align)
    }

    #[inline]
    fn reserve(
        &self,
        pool: &Arc<PoolInner>,
        type_id: u64,
        size: usize,
        room: usize,
        align: usize,
    ) -> Result<*mut u8> {
        match self.reserve_at_hand(pool, type_id, size, room, align) {
            Some(object) => Ok(object),
            None => self.reserve_anywhere(pool, type_id, size, room, align),
        }
    }

    /// The short way: a small object in a slab that the thread has, in the pool that the transaction touched first.
    /// Mostly it is possible.
    #[inline(always)]
    fn reserve_at_hand(
        &self,
        pool: &PoolInner,
        type_id: u64,
        size: usize,
        room: usize,
        align: usize,
    ) -> Option<*mut u8> {
        let mut state = self.state.borrow_mut();
        let state = &mut *state;
        let is_first = |first: &PoolRef| first.key == pool.key;
        if forked() || self.depth.get() == 0 || !state.pools.first().is_some_and(is_first) {
            return None;
        }
        let class = Class::of(type_id, room, align)?;
        let caches = &mut state.caches;
        let cache = caches.iter_mut().find(|cache| cache.pool_key == pool.key)?;
        let announced = &mut state.announced;
        let address = (state.allocation).reserve_at_hand(pool, cache, announced, class, size)?;
        recorder::api("tx.alloc");
        self.touch();
        Some(ptr::with_exposed_provenance_mut(address))
    }

    #[inline(never)]
    fn reserve_anywhere(
        &self,
        pool: &Arc<PoolInner>,
        type_id: u64,
        size: usize,
        room: usize,
        align: usize,
    ) -> Result<*mut u8> {
        recorder::api("tx.alloc");
        let mut state = self.state.borrow_mut();
        let state = &mut *state;
        self.enter_pool(state, pool)?;
        let cache = TxState::cache(&mut state.caches, pool);
        let announced = &mut state.announced;
        let address = state
            .allocation
            .reserve(&**pool, cache, announced, type_id, size, room, align)?;
        Ok(ptr::with_exposed_provenance_mut(address))
    }

    /// Allocates the root object of a pool; `Pool::root` decides when.
    pub(crate) fn alloc_root(
        &self,
        pool: &Pool,
        type_id: u64,
        size: usize,
        align: usize,
    ) -> Result<*mut u8> {
        let mut state = self.state.borrow_mut();
        let state = &mut *state;
        self.enter_pool(state, &pool.inner)?;
        let root_puddle = pool.inner.root_puddle()?;
        let address = state.allocation.reserve_root(
            &*pool.inner,
            &root_puddle,
            &mut state.announced,
            type_id,
            size,
            align,
        )?;
        Ok(ptr::with_exposed_provenance_mut(address))
    }

    /// Whether the transaction that runs on this thread makes the root of this puddle.
    pub(crate) fn makes_root_of(puddle: &Puddle) -> bool {
        Self::if_running(|tx| tx.state.borrow().allocation.has_root_in(puddle)) == Some(true)
    }

    /// Frees an object when the transaction commits; until then it keeps its contents.
    ///
    /// Its place can be allocated again by transactions that begin after the commit returned. After an abort or a
    /// crash before, it was never freed.
    ///
    /// # Safety
    /// No pointer to the object is followed after the commit.
    ///
    /// # Errors
    /// `NotInPool`; `NotAllocated` if no live object starts there: a second free is refused.
    pub unsafe fn free<T>(&self, object: *mut T) -> Result<()> {
        let address = object.expose_provenance();
        match self.free_element(address) {
            true => Ok(()),
            false => self.free_anything(address),
        }
    }

    /// The short way: an element of a slab in the pool that the transaction touched first. Whether it was possible.
    #[inline(always)]
    fn free_element(&self, address: usize) -> bool {
        let mut state = self.state.borrow_mut();
        let state = &mut *state;
        let (Some(puddle), Some(pool)) = (puddle_near_at(address), state.pools.first()) else {
            return false;
        };
        if forked() || self.depth.get() == 0 {
            return false;
        }
        // SAFETY: puddles live while their store is open, and a transaction keeps its store open.
        let key = unsafe { puddle.as_ref() }.pool_key;
        let is_freed = key == pool.key && state.allocation.free_at_hand(&**pool, puddle, address);
        if is_freed {
            recorder::api("tx.free");
            self.touch();
        }
        is_freed
    }

    #[inline(never)]
    fn free_anything(&self, address: usize) -> Result<()> {
        recorder::api("tx.free");
        if forked() {
            return Err(Error::Forked);
        }
        let mut state = self.state.borrow_mut();
        let state = &mut *state;
        let puddle = state.touch(self, address, 1)?;
        self.touch();
        // SAFETY: puddles live while their store is open, and a transaction keeps its store open.
        let key = unsafe { puddle.as_ref() }.pool_key;
        let first = state.pools.first().copied().filter(|pool| pool.key == key);
        let Some(pool) = first.or_else(|| TxState::pool_of(&state.pools, key)) else {
            return Err(Error::NotAllocated { address });
        };
        state.allocation.free(&*pool, puddle, address)
    }
}

impl TxState {
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
            && pool.checker.is_none()
        {
            let inside = pages.start - object..pages.end - object;
            let mut parts = clipped(parts, inside.clone());
            // SAFETY: puddles live while their store is open, and a transaction keeps its store open.
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
