//! The transactions of a thread: one for each store that it uses, from the first use until the thread ends or leaves.

use std::cell::{Cell, RefCell};
use std::marker::PhantomData;
use std::ptr::{self, NonNull};
use std::rc::Rc;
use std::sync::Arc;

use super::end::Ending;
use super::{CURRENT, Tx};
use crate::error::{Error, Result};
use crate::fault::forked;
use crate::opened::{Durability, PoolInner, StoreInner, TxState};
use crate::window;

/// The transactions of this thread, one for each store that it used.
struct Thread(RefCell<Vec<Rc<Tx>>>);

impl Drop for Thread {
    fn drop(&mut self) {
        CURRENT.with(|current| current.set(ptr::null()));
        for tx in self.0.get_mut().drain(..) {
            tx.retire();
        }
    }
}

thread_local! {
    static THREAD: Thread = const { Thread(RefCell::new(Vec::new())) };
}

impl Tx {
    /// This thread's transaction on the pool's store.
    #[inline]
    pub(super) fn of(pool: &PoolInner) -> Result<NonNull<Tx>> {
        let current = CURRENT.with(Cell::get);
        // SAFETY: null, or kept alive by `THREAD` of this thread.
        match unsafe { current.as_ref() } {
            Some(tx) if tx.store_key == pool.store.key => Ok(NonNull::from(tx)),
            _ => Self::find(pool, false),
        }
    }

    /// The same, also where a transaction on another store is running. That one stays the current one, for interfaces
    /// that have no closure.
    #[inline]
    pub(crate) fn beside(pool: &PoolInner) -> Result<NonNull<Tx>> {
        let current = CURRENT.with(Cell::get);
        // SAFETY: null, or kept alive by `THREAD` of this thread.
        match unsafe { current.as_ref() } {
            Some(tx) if tx.store_key == pool.store.key => Ok(NonNull::from(tx)),
            Some(tx) if tx.depth.get() > 0 => {
                let found = Self::find(pool, true);
                CURRENT.with(|kept| kept.set(current));
                found
            }
            _ => Self::find(pool, true),
        }
    }

    #[cold]
    fn find(pool: &PoolInner, is_beside: bool) -> Result<NonNull<Tx>> {
        let found = THREAD.try_with(|thread| {
            let mut known = thread.0.borrow_mut();
            if let Some(running) = known
                .iter()
                .find(|tx| tx.depth.get() > 0 && tx.store_key != pool.store.key)
                && !is_beside
            {
                return Err(Error::OtherStore {
                    running: running
                        .store
                        .upgrade()
                        .map(|store| store.info.path.clone())
                        .unwrap_or_default(),
                    wanted: pool.store.info.path.clone(),
                });
            }
            known.retain(|tx| tx.store.strong_count() > 0);
            let tx = match known.iter().find(|tx| tx.store_key == pool.store.key) {
                Some(tx) => NonNull::from(&**tx),
                None => {
                    let state = TxState::default();
                    let tx = Rc::new(Tx {
                        store_key: pool.store.key,
                        store: Arc::downgrade(&pool.store),
                        gate: pool.store.gate.join(),
                        upkeep: pool.store.upkeep.clone(),
                        leaving: pool.store.leaving.clone(),
                        depth: Cell::new(0),
                        origin: Cell::new(ptr::null()),
                        remembered: Cell::new((0, 0)),
                        doomed: Cell::new(false),
                        durability: Cell::new(Durability::Durable),
                        touched: Cell::new(false),
                        is_rare: Cell::new(false),
                        flies: Cell::new(None),
                        window: state.announced.window().clone(),
                        of_thread: window::ThreadWindow::find(),
                        state: RefCell::new(state),
                        _one_thread: PhantomData,
                    });
                    let pointer = NonNull::from(&*tx);
                    known.push(tx);
                    pointer
                }
            };
            CURRENT.with(|current| current.set(tx.as_ptr()));
            Ok(tx)
        });
        // Thread-local destructors run in any order: one that uses a pool may come after ours.
        found.unwrap_or(Err(Error::NoTransaction))
    }

    /// Whether this thread has a transaction on a store open.
    pub(crate) fn is_open_on(store: &StoreInner) -> bool {
        let is_it = |tx: &Rc<Tx>| tx.store_key == store.key && tx.depth.get() > 0;
        let is_open = THREAD.try_with(|thread| thread.0.borrow().iter().any(is_it));
        is_open.unwrap_or(false)
    }

    /// This thread gives back what it keeps for transactions on a store, unless one is running.
    pub(crate) fn leave_store(store: &StoreInner) {
        let left = THREAD.try_with(|thread| {
            let mut known = thread.0.borrow_mut();
            let is_it = |tx: &Rc<Tx>| tx.store_key == store.key && tx.depth.get() == 0;
            let at = known.iter().position(is_it)?;
            let tx = known.swap_remove(at);
            CURRENT.with(|current| {
                if current.get() == Rc::as_ptr(&tx) {
                    current.set(ptr::null());
                }
            });
            Some(tx)
        });
        if let Ok(Some(tx)) = left {
            tx.retire();
        }
    }

    /// The thread ends, or leaves the store: its log and its slabs go back.
    fn retire(&self) {
        match forked() {
            // Of the threads that may hold locks none is there.
            true => self.give_back(),
            false => self.leaving.while_leaving(|| self.give_back()),
        }
    }

    fn give_back(&self) {
        let Some(store) = self.store.upgrade() else {
            return;
        };
        if self.depth.get() > 0 {
            // The thread ends inside a transaction: it never commits. Its log must be empty before another thread gets
            // it.
            let _ = self.end_any(Ending::RollsBack);
        }
        if forked() {
            // Nobody needs them here, and a thread that is not there may hold the locks.
            return;
        }
        let Ok(mut state) = self.state.try_borrow_mut() else {
            return;
        };
        for mut cache in state.caches.drain(..) {
            if let Some(pool) = PoolInner::by_key(&store, cache.pool_key) {
                cache.give_back(&*pool);
            }
        }
        // Not before: until then no other thread takes itself to be alone with the slabs.
        state.kept.leave(&store);
    }
}
