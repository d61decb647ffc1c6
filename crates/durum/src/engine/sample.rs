//! An engine of the tests' own: what any engine has to do, in the simplest way ([`Direct`]), with something that it
//! keeps of each puddle, pool, store and thread. It looks whether it is told of them what it should be.
//!
//! It has no `EngineKind`. A test runs pools of another engine by it, one whose programs work in place.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use super::direct::Direct;
use crate::alloc::Puddle;
use crate::error::{Result, Step};
use crate::mapping::Kept;
use crate::opened::{
    Announce, Engine, Facts, OfPool, OfStore, OfThread, PoolInner, StoreInner, TxState,
};
use crate::options::PoolOptions;

#[derive(Debug)]
pub(super) struct Sample;

/// What it keeps of a store: how many puddles are mapped.
#[derive(Debug, Default)]
struct SampleStore {
    puddles: AtomicUsize,
}

impl OfStore for SampleStore {}

impl Drop for SampleStore {
    fn drop(&mut self) {
        let mapped = *self.puddles.get_mut();
        assert_eq!(mapped, 0, "puddles are mapped when their store is gone");
    }
}

fn of_store(store: &StoreInner) -> Arc<SampleStore> {
    store.kept.find_or_make(SampleStore::default)
}

/// What it keeps of a pool.
#[derive(Debug, Default)]
struct SamplePool {
    is_closed: AtomicBool,
}

impl OfPool for SamplePool {}

fn of_pool(pool: &PoolInner) -> &SamplePool {
    pool.kept().expect("a pool of this engine")
}

/// What it keeps of a puddle.
#[derive(Debug)]
struct SamplePuddle {
    store: Arc<SampleStore>,
    place: Range<usize>,
    is_mapped: AtomicBool,
}

impl Kept for SamplePuddle {
    fn note_freed(&self, range: Range<usize>) {
        assert!(self.place.start <= range.start && range.end <= self.place.end);
        assert!(self.is_mapped.load(Ordering::Relaxed));
    }

    fn note_unmapped(&self) {
        assert!(
            self.is_mapped.swap(false, Ordering::Relaxed),
            "unmapped twice"
        );
        self.store.puddles.fetch_sub(1, Ordering::Relaxed);
    }
}

/// What it keeps of a thread.
#[derive(Debug)]
struct SampleThread {
    store: Arc<SampleStore>,
    /// A transaction is under way.
    is_open: bool,
}

impl OfThread for SampleThread {
    fn end(&mut self, _pool: Option<&PoolInner>) {
        self.is_open = false;
    }

    fn leave(self: Box<Self>, _store: &Arc<StoreInner>) {
        assert!(!self.is_open, "a thread leaves within a transaction");
    }
}

impl SampleThread {
    fn new(pool: &PoolInner) -> Self {
        Self {
            store: of_store(&pool.store),
            is_open: false,
        }
    }
}

impl Engine for Sample {
    fn facts(&self) -> Facts {
        Direct.facts()
    }

    fn enter(&self, tx: &mut TxState, pool: &Arc<PoolInner>) -> Result<()> {
        let own = tx.kept.turn_to(|| SampleThread::new(pool));
        assert!(Arc::ptr_eq(&own.store, &of_store(&pool.store)));
        Ok(())
    }

    fn announce(
        &self,
        tx: &mut TxState,
        puddle: &Puddle,
        address: usize,
        len: usize,
        announce: Announce,
    ) -> Step {
        let own: &mut SampleThread = tx.kept.current().expect("what was turned to");
        own.is_open = true;
        tx.wants_end = true;
        Direct.announce(tx, puddle, address, len, announce)
    }

    fn commit(&self, tx: &mut TxState) -> Step {
        for pool in &tx.pools {
            assert!(!of_pool(pool).is_closed.load(Ordering::Relaxed));
        }
        Direct.commit(tx)
    }

    fn abort(&self, tx: &mut TxState) {
        Direct.abort(tx);
    }

    fn persist(
        &self,
        tx: &mut TxState,
        pool: &PoolInner,
        ranges: &[(&Puddle, Range<usize>)],
    ) -> Result<()> {
        tx.kept.find_or_make(|| SampleThread::new(pool));
        Direct.persist(tx, pool, ranges)
    }

    fn keep_pool(&self, _store: &Arc<StoreInner>, _options: &PoolOptions) -> Box<dyn OfPool> {
        Box::new(SamplePool::default())
    }

    fn keep_puddle(
        &self,
        store: &Arc<StoreInner>,
        address: usize,
        size: usize,
    ) -> Option<Box<dyn Kept>> {
        Some(Box::new(SamplePuddle {
            store: of_store(store),
            place: address..address + size,
            is_mapped: AtomicBool::new(false),
        }))
    }

    fn puddle_is_mapped(&self, store: &StoreInner, puddle: &Arc<Puddle>) {
        let kept = puddle.kept.as_deref().expect("what was kept");
        let own: &SamplePuddle = (kept as &dyn std::any::Any)
            .downcast_ref()
            .expect("its own");
        assert_eq!(own.place, puddle.address..puddle.address + puddle.size);
        own.is_mapped.store(true, Ordering::Relaxed);
        of_store(store).puddles.fetch_add(1, Ordering::Relaxed);
    }

    fn close(&self, pool: &PoolInner) {
        let was_closed = of_pool(pool).is_closed.swap(true, Ordering::Relaxed);
        assert!(!was_closed, "a pool is closed twice");
    }
}
