//! What the threads of a pool share to allocate.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{
    Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, TryLockError,
};

use rustc_hash::FxHashMap;

use super::puddle::Puddle;
use super::slab::{Class, Slab};
use crate::contention;
use crate::steps;

/// The puddles of a pool that are mapped.
pub(crate) type Puddles = RwLock<Vec<Arc<Puddle>>>;

/// What the threads of a pool share to allocate.
#[derive(Debug, Default)]
pub(crate) struct PoolHeap {
    /// Shared with who maps puddles on demand, and keeps no pool open.
    puddles: Arc<Puddles>,
    /// Bytes by which the pool grows at most, unless one object needs more.
    pub(super) growth_max: u64,
    /// Bytes of unused puddles that are kept.
    pub(super) spare_max: u64,
    /// Slabs that have room and no owner.
    pub(super) with_room: Mutex<FxHashMap<Class, Vec<Arc<Slab>>>>,
    /// Slabs that were seen empty without an owner: the next commits give their extents back.
    pub(super) empty: Mutex<Vec<Arc<Slab>>>,
    /// Whether `empty` is worth a look.
    has_empty: AtomicBool,
    /// Held while the pool grows or shrinks, so that it does so once.
    pub(super) resize: Mutex<()>,
    /// The program gives large objects their contents when it allocates them.
    pub(super) fills: AtomicBool,
    /// Bytes that the program wants to find free, also where that is more than is kept otherwise.
    pub(super) wanted: AtomicU64,
}

impl PoolHeap {
    pub(crate) fn new(growth_max: u64, spare_max: u64) -> Self {
        Self {
            growth_max,
            spare_max,
            ..Self::default()
        }
    }

    pub(crate) fn puddles(&self) -> RwLockReadGuard<'_, Vec<Arc<Puddle>>> {
        self.puddles.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn puddles_mut(&self) -> RwLockWriteGuard<'_, Vec<Arc<Puddle>>> {
        self.puddles.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// No puddle comes or goes while this is held. `None` while one does, which may take long.
    pub(crate) fn hold(&self) -> Option<MutexGuard<'_, ()>> {
        match self.resize.try_lock() {
            Ok(held) => Some(held),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    pub(crate) fn shared_puddles(&self) -> Arc<Puddles> {
        self.puddles.clone()
    }

    /// A large object is about to be allocated together with its contents.
    pub(crate) fn note_filling(&self) {
        if !self.fills.load(Ordering::Relaxed) {
            self.fills.store(true, Ordering::Relaxed);
        }
    }

    pub(super) fn list(&self, slab: Arc<Slab>) {
        let mut lists = contention::lock(&self.with_room);
        lists.entry(slab.class).or_default().push(slab);
    }

    pub(super) fn take_listed(&self, class: Class) -> Option<Arc<Slab>> {
        contention::lock(&self.with_room).get_mut(&class)?.pop()
    }

    pub(super) fn note_empty(&self, slab: Arc<Slab>) {
        contention::lock(&self.empty).push(slab);
        self.has_empty.store(true, Ordering::Release);
    }

    /// Whether [`PoolHeap::take_empty_slabs`] is worth a call.
    #[inline(always)]
    pub(super) fn may_have_empty_slabs(&self) -> bool {
        self.has_empty.load(Ordering::Acquire)
    }

    /// The slabs that were seen empty, the last one in the pool first. They may have been used again.
    pub(super) fn take_empty_slabs(&self) -> Vec<Arc<Slab>> {
        if !self.may_have_empty_slabs() {
            return Vec::new();
        }
        let mut empty = {
            let mut empty = contention::lock(&self.empty);
            self.has_empty.store(false, Ordering::Release);
            std::mem::take(&mut *empty)
        };
        steps::add(empty.len());
        empty.sort_unstable_by_key(|slab| std::cmp::Reverse(slab.address));
        empty
    }

    /// Keeps them for a later commit.
    pub(super) fn put_empty_slabs(&self, slabs: Vec<Arc<Slab>>) {
        slabs.into_iter().for_each(|slab| self.note_empty(slab));
    }
}
