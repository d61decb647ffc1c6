//! Transactions: what a program announced since the outermost `begin`, and how it ends.
//!
//! A transaction belongs to a thread. The first use of a store on a thread makes a [`Tx`], which is kept: beginning
//! and ending an empty transaction touches nothing but its depth.

mod allocate;
mod announce;
mod end;
mod in_flight;
mod pools;
mod savepoint;
mod scope;
mod section;
mod threads;

use std::cell::{Cell, RefCell};
use std::marker::PhantomData;
use std::ptr;
use std::rc::Rc;
use std::sync::{Arc, Weak};

use durum_persist::line::is_recorded;

use crate::error::{Error, Result};
use crate::fault::{failed_or_forked, forked};
use crate::gate::Member;
use crate::opened::{Durability, Engine, Leaving, Pool, PoolInner, StoreInner, TxState};
use crate::upkeep::Upkeep;
use crate::window::{self, Window};

pub use end::Transaction;
pub use in_flight::InFlight;
pub(crate) use savepoint::Part;

/// The transaction of one thread on one store, running or at rest.
///
/// Closures passed to [`Pool::transaction`] get a reference to it; it cannot leave its thread.
#[derive(Debug)]
pub struct Tx {
    store_key: u64,
    store: Weak<StoreInner>,
    /// The outermost level goes through the store's gate.
    gate: Member,
    /// The store asks threads to do something after a transaction.
    upkeep: Arc<Upkeep>,
    /// Told while this goes.
    leaving: Arc<Leaving>,
    depth: Cell<u32>,
    /// The pool that the outermost transaction began on.
    origin: Cell<*const Arc<PoolInner>>,
    /// Of which pool `state` remembers what transactions on it begin with, and how many puddles had been removed then
    /// ([`Tx::forget_pool`]).
    remembered: Cell<(u64, u64)>,
    /// An inner transaction was aborted: the outermost one can only roll back.
    doomed: Cell<bool>,
    /// What the outermost level asked for, or an inner one that asked for more.
    durability: Cell<Durability>,
    /// Something was announced since the outermost begin, and not by the window alone.
    touched: Cell<bool>,
    /// It ends another way than those that change words and do nothing else, which are most.
    is_rare: Cell<bool>,
    /// The engine with which this thread may have left something in flight. It alone can land that, whatever pools the
    /// transactions are on that come after it.
    flies: Cell<Option<&'static dyn Engine>>,
    /// Where words are announced without a look at `state`, which the array belongs to.
    window: Rc<Window>,
    /// Which window is this thread's.
    of_thread: *const window::ThreadWindow,
    state: RefCell<TxState>,
    _one_thread: PhantomData<*mut ()>,
}

thread_local! {
    /// The transaction used last; kept alive by its thread. Const and without destructor, so cheap.
    static CURRENT: Cell<*const Tx> = const { Cell::new(ptr::null()) };
}

/// Whether windows may take words: nobody records what is stored, and all that is mapped can be read.
#[inline(always)]
fn may_be_open() -> bool {
    !is_recorded() && !failed_or_forked()
}

impl Tx {
    /// The running transaction of this thread, for interfaces that have no closure.
    ///
    /// # Errors
    /// `NoTransaction`, `Forked`, and what `f` returns.
    #[doc(hidden)]
    #[inline]
    pub fn with_running<R>(f: impl FnOnce(&Tx) -> Result<R>) -> Result<R> {
        // SAFETY: null, or kept alive by its thread; the reference is used within a call on this thread only.
        match unsafe { CURRENT.with(Cell::get).as_ref() } {
            Some(_) if forked() => Err(Error::Forked),
            Some(current) if current.depth.get() > 0 => f(current),
            _ => Err(Error::NoTransaction),
        }
    }

    /// Runs `f` on the transaction that runs on this thread, if one does.
    #[inline(always)]
    fn if_running<R>(f: impl FnOnce(&Tx) -> R) -> Option<R> {
        // SAFETY: null, or kept alive by its thread; the reference is used within a call on this thread only.
        let current = unsafe { CURRENT.with(Cell::get).as_ref() };
        current.filter(|current| current.depth.get() > 0).map(f)
    }

    /// Something was done that is not to announce words.
    #[inline(always)]
    fn touch(&self) {
        self.touched.set(true);
        self.is_rare.set(true);
    }

    /// The levels of the transaction that runs on this thread; 0 if none does.
    #[doc(hidden)]
    #[inline]
    pub fn levels() -> u32 {
        Self::if_running(|tx| tx.depth.get()).unwrap_or(0)
    }

    /// Whether the outermost level of the running transaction began on this very handle, which has to stay until then.
    #[doc(hidden)]
    pub fn began_on(pool: &Pool) -> bool {
        Self::if_running(|tx| ptr::eq(tx.origin.get(), &raw const pool.inner)) == Some(true)
    }
}
