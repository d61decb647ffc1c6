//! Transactions: what a program announced since the outermost `begin`, and how it ends.
//!
//! A transaction belongs to a thread. The first use of a store on a thread makes a [`Tx`], which is kept: beginning
//! and ending an empty transaction touches nothing but its depth.

mod savepoint;
mod scope;
mod section;
mod state;

use std::cell::{Cell, RefCell};
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::ops::Range;
use std::ptr::{self, NonNull};
use std::rc::Rc;
use std::sync::{Arc, Weak};

use durum_persist::line::is_recorded;
use durum_persist::{count, record};

use crate::alloc::{FILLED_MIN, Puddle, lone_room};
use crate::announced::LARGE;
use crate::deferred::Set;
use crate::described::Described;
use crate::error::{Error, Result, Step};
use crate::fault::forked;
use crate::gate::Member;
use crate::opened::{Announce, BeforeReuse, Durability, Pool, PoolInner, StoreInner, TxState};
use crate::space::removed;
use crate::upkeep::Upkeep;

pub use scope::Transaction;

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
    depth: Cell<u32>,
    /// The pool that the outermost transaction began on.
    home: Cell<*const Arc<PoolInner>>,
    /// Of which pool `state` remembers what transactions on it begin with, and how many puddles had been removed then
    /// ([`Tx::forget_pool`]).
    remembered: Cell<(u64, u64)>,
    /// An inner transaction was aborted: the outermost one can only roll back.
    doomed: Cell<bool>,
    /// What the outermost level asked for, or an inner one that asked for more.
    durability: Cell<Durability>,
    /// Something was announced since the outermost begin.
    touched: Cell<bool>,
    state: RefCell<TxState>,
    _one_thread: PhantomData<*mut ()>,
}

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
    /// The transaction used last; kept alive by `THREAD`. Const and without destructor, so cheap.
    static CURRENT: Cell<*const Tx> = const { Cell::new(ptr::null()) };
}

impl Tx {
    /// This thread's transaction on the pool's store.
    #[inline]
    fn of(pool: &PoolInner) -> Result<NonNull<Tx>> {
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
        // SAFETY: as above.
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
                    let tx = Rc::new(Tx {
                        store_key: pool.store.key,
                        store: Arc::downgrade(&pool.store),
                        gate: pool.store.gate.join(),
                        upkeep: pool.store.upkeep.clone(),
                        depth: Cell::new(0),
                        home: Cell::new(ptr::null()),
                        remembered: Cell::new((0, 0)),
                        doomed: Cell::new(false),
                        durability: Cell::new(Durability::Durable),
                        touched: Cell::new(false),
                        state: RefCell::new(TxState::new()),
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

    /// The running transaction of this thread, for interfaces that have no closure.
    ///
    /// # Errors
    /// `NoTransaction`, `Forked`, and what `f` returns.
    #[doc(hidden)]
    #[inline]
    pub fn with_running<R>(f: impl FnOnce(&Tx) -> Result<R>) -> Result<R> {
        // SAFETY: null, or kept alive by `THREAD`; the reference is used within a call on this thread only.
        match unsafe { CURRENT.with(Cell::get).as_ref() } {
            Some(_) if forked() => Err(Error::Forked),
            Some(current) if current.depth.get() > 0 => f(current),
            _ => Err(Error::NoTransaction),
        }
    }

    /// Makes ranges durable as they are now, with what this thread has for the pool's store.
    pub(crate) fn persist(pool: &PoolInner, ranges: &[(&Puddle, Range<usize>)]) -> Result<()> {
        let tx = Self::of(pool)?;
        // SAFETY: kept alive by `THREAD` of this thread.
        let tx = unsafe { tx.as_ref() };
        let pass = (tx.depth.get() == 0).then(|| tx.gate.pass());
        let is_alone = pass.is_some();
        let result = {
            let mut state = tx.state.borrow_mut();
            pool.engine.persist(&mut state, pool, ranges)
        };
        pool.after_persist(ranges);
        drop(pass);
        if is_alone && tx.upkeep.is_due() {
            pool.store.kept.upkeep(&pool.store);
        }
        result
    }

    /// Ends one level of the running transaction, whose [`Transaction`] was forgotten after `begin`. For interfaces
    /// that have no closure; the pool handle that the outermost level began on has to live until that level ends.
    ///
    /// # Safety
    /// The level is not one of a closure's, which ends by itself.
    ///
    /// # Errors
    /// As for [`Transaction::commit`]; `NoTransaction`.
    #[doc(hidden)]
    #[inline]
    pub unsafe fn end_level(commit: bool) -> Result<()> {
        // SAFETY: as in `with_running`.
        match unsafe { CURRENT.with(Cell::get).as_ref() } {
            Some(current) if current.depth.get() > 0 => current.leave(commit),
            _ => Err(Error::NoTransaction),
        }
    }

    /// The levels of the transaction that runs on this thread; 0 if none does.
    #[doc(hidden)]
    #[inline]
    pub fn levels() -> u32 {
        // SAFETY: as in `with_running`.
        unsafe { CURRENT.with(Cell::get).as_ref() }.map_or(0, |current| current.depth.get())
    }

    /// Whether the outermost level of the running transaction began on this very handle, which has to stay until then.
    #[doc(hidden)]
    pub fn began_on(pool: &Pool) -> bool {
        // SAFETY: as in `with_running`.
        unsafe { CURRENT.with(Cell::get).as_ref() }.is_some_and(|current| {
            current.depth.get() > 0 && ptr::eq(current.home.get(), &raw const pool.inner)
        })
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
        let Some(store) = self.store.upgrade() else {
            return;
        };
        if self.depth.get() > 0 {
            // The thread ends inside a transaction: it never commits. Its log must be empty before another thread gets
            // it.
            let _ = self.finish(false);
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

    /// Announces that the program is about to change `*target`. See [`Tx::add_bytes`].
    ///
    /// # Safety
    /// As for [`Tx::add_bytes`].
    #[inline]
    pub unsafe fn add<T>(&self, target: *const T) -> Result<()> {
        // SAFETY: as the caller promises.
        unsafe { self.add_bytes(target.cast(), size_of::<T>(), Announce::Backup) }
    }

    /// Announces that the program is about to change `[target, target + len)`.
    ///
    /// When it returns, the old contents are safe (`Backup`): whatever the program stores there, an abort or a crash
    /// before the commit brings them back, exactly these bytes. Ranges may overlap and repeat; bytes that were
    /// announced before, and objects allocated in this transaction, cost nothing. The new contents are durable when the
    /// commit returns.
    ///
    /// # Safety
    /// No other thread changes the range until the transaction has ended.
    ///
    /// # Errors
    /// `NotInPool`, `PendingSet`, `MixedEngines`, `Poisoned`; store errors when the log has to grow. Nothing is
    /// announced then.
    #[inline]
    pub unsafe fn add_bytes(
        &self,
        target: *const u8,
        len: usize,
        announce: Announce,
    ) -> Result<()> {
        let address = target.expose_provenance();
        // SAFETY: as the caller promises.
        unsafe {
            if len == 8 && address.is_multiple_of(8) && self.add_word(address) {
                return Ok(());
            }
            #[cfg(all(target_arch = "x86_64", not(miri)))]
            if durum_persist::wide::is_there() && self.add_lines(address, len) {
                return Ok(());
            }
            self.add_small(address, len, announce)
        }
    }

    /// The short way for a small range. Whether it was possible: mostly it is. As [`Tx::add_word`], it calls nothing.
    ///
    /// # Safety
    /// As for [`Tx::add_bytes`].
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    #[target_feature(enable = "avx512f,avx512bw,popcnt")]
    unsafe fn add_lines(&self, address: usize, len: usize) -> bool {
        // SAFETY: bytes of the range, which is in a mapped puddle where it comes to that; 64 bytes of the target. The
        // rest as the caller promises.
        let save = |target, source, mask| unsafe {
            durum_persist::wide::copy_bytes(target, source, mask);
        };
        let is_done = !is_recorded() && self.state.borrow_mut().save_few(address, len, save);
        if is_done {
            self.touched.set(true);
        }
        is_done
    }

    /// The short way for a word. Whether it was possible: mostly it is. It calls nothing, so that it has to put few
    /// registers aside: stores are what the next transaction can make few of while the fence of the last one is under
    /// way.
    ///
    /// # Safety
    /// As for [`Tx::add_bytes`], where `address` is a multiple of 8.
    #[inline(never)]
    unsafe fn add_word(&self, address: usize) -> bool {
        // SAFETY: as the caller promises.
        let is_done = !is_recorded() && unsafe { self.state.borrow_mut().save_word(address) };
        if is_done {
            self.touched.set(true);
        }
        is_done
    }

    /// # Safety
    /// As for [`Tx::add_bytes`].
    #[inline(never)]
    unsafe fn add_small(&self, address: usize, len: usize, announce: Announce) -> Result<()> {
        record::api("tx.add");
        let mut state = self.state.borrow_mut();
        // SAFETY: as the caller promises.
        if unsafe { state.save_small(address, len) } {
            self.touched.set(true);
            return Ok(());
        }
        self.add_range(&mut state, address, len, announce)?;
        Ok(())
    }

    /// Any range, in any pool of the store.
    #[inline(never)]
    fn add_range(
        &self,
        state: &mut TxState,
        address: usize,
        len: usize,
        announce: Announce,
    ) -> Step {
        if len == 0 {
            return Ok(());
        }
        if forked() {
            return Err(Error::Forked.into());
        }
        if address.checked_add(len).is_none() {
            return Err(Error::NotInPool { address, len }.into());
        }
        // Also where the range was announced before: the `set` would overwrite at commit what is stored there after it.
        if !state.sets.is_empty() && state.set_index.overlaps(address, len) {
            return Err(Error::PendingSet { address, len }.into());
        }
        let puddle = state.touch(self, address, len)?;
        self.touched.set(true);
        // SAFETY: as in `touch`.
        let puddle = unsafe { puddle.as_ref() };
        let Some(pool) = state.pools.first().copied() else {
            return Err(Error::NoTransaction.into());
        };
        if pool.facts.takes_turns {
            pool.engine.before_store(state)?;
        }
        if let Some(savepoint) = &mut state.savepoint {
            // SAFETY: the range lies in a mapped puddle, and the caller of `add` promised that nobody changes it.
            unsafe { savepoint.save(address, len) };
        }
        if len >= LARGE || !pool.facts.keeps_lines {
            return pool.engine.announce(state, puddle, address, len, announce);
        }
        if state.sets.is_empty() && state.savepoint.is_none() {
            state.remember_puddle(puddle);
        }
        // SAFETY: the range lies in a mapped puddle, and the caller of `add` promised that nobody changes it.
        unsafe { state.save_in_lines(address, len) };
        puddle.check_failed()?;
        Ok(())
    }

    /// Announces that `[target, target + len)` shall be durable with the transaction as it is when that commits,
    /// whatever of it is durable by now: for memory to which the program has stored without any transaction, because
    /// nothing durable led there.
    ///
    /// After a crash before that it holds what it held durably, or what it holds now. An abort leaves it as it is, or
    /// brings back what it holds now: whoever needs that names it to [`Tx::volatile_bytes`], too. Bytes that this
    /// transaction has announced before stay as they were announced. Costs no fence on a Shadow pool, and that of a
    /// [`Pool::persist`] on others.
    ///
    /// # Safety
    /// As for [`Tx::add_bytes`].
    ///
    /// # Errors
    /// As for [`Tx::add_bytes`].
    pub unsafe fn add_contents(&self, target: *const u8, len: usize) -> Result<()> {
        record::api("tx.add");
        if len == 0 {
            return Ok(());
        }
        let address = target.expose_provenance();
        let mut state = self.state.borrow_mut();
        let state = &mut *state;
        if !state.sets.is_empty() && state.set_index.overlaps(address, len) {
            return Err(Error::PendingSet { address, len });
        }
        let puddle = state.touch(self, address, len)?;
        self.touched.set(true);
        // SAFETY: as in `touch`.
        let puddle = unsafe { puddle.as_ref() };
        let Some(pool) = TxState::pool_of(&state.pools, puddle.pool_key) else {
            return Err(Error::NoTransaction);
        };
        if pool.facts.compares_announced {
            // What has no old contents counts as changed, like a fresh object.
            state.announced.insert(address, len);
            return Ok(());
        }
        // These compare with what was announced, which is to be what is durable.
        let range = address..address + len;
        pool.engine.persist(state, &pool, &[(puddle, range)])?;
        self.add_range(state, address, len, Announce::Backup)?;
        Ok(())
    }

    /// Defers a store: `*target` becomes `value` when the transaction commits, and not before.
    ///
    /// Durable when the commit returns. Costs no fence of its own. Reading `*target` in the transaction gives the old
    /// value.
    ///
    /// # Safety
    /// As for [`Tx::add_bytes`].
    #[inline]
    pub unsafe fn set<T: Copy>(&self, target: *mut T, value: T) -> Result<()> {
        let value = MaybeUninit::new(value);
        // SAFETY: reads the value's own bytes; padding is copied as it is and never interpreted. The rest as the caller
        // promises.
        unsafe { self.set_bytes(target.cast(), value.as_ptr().cast(), size_of::<T>()) }
    }

    /// Defers a store of `len` bytes from `source`, as [`Tx::set`] does.
    ///
    /// # Safety
    /// As for [`Tx::add_bytes`]; `source` has `len` readable bytes.
    ///
    /// # Errors
    /// As for [`Tx::add_bytes`].
    pub unsafe fn set_bytes(&self, target: *mut u8, source: *const u8, len: usize) -> Result<()> {
        record::api("tx.set");
        if len == 0 {
            return Ok(());
        }
        if forked() {
            return Err(Error::Forked);
        }
        let (target, mut state) = (target.expose_provenance(), self.state.borrow_mut());
        let puddle = state.touch(self, target, len)?;
        self.touched.set(true);
        let from = state.set_bytes.len();
        state.set_bytes.reserve(len);
        // SAFETY: `len` bytes were just reserved behind `from`; the source is readable as the caller promises.
        unsafe {
            ptr::copy_nonoverlapping(source, state.set_bytes.as_mut_ptr().add(from), len);
            state.set_bytes.set_len(from + len);
        }
        state.sets.push(Set {
            puddle,
            target,
            len,
            from,
        });
        // An `add` has to look whether it meets this one.
        state.recent = 0..0;
        state.set_index.insert(target, len);
        Ok(())
    }

    /// Allocates a `T` in the pool that the transaction began on. Its bytes are whatever was there before.
    ///
    /// The object exists durably when the commit returns, with what the program stored in it; it needs no `add`.
    /// After an abort or a crash before, it was never allocated.
    ///
    /// # Errors
    /// `ObjectSize`; store errors when the pool has to grow (a full disk). The transaction goes on.
    pub fn alloc<T: Described>(&self) -> Result<*mut T> {
        self.alloc_described(self.home()?)
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
    #[inline]
    pub(crate) fn alloc_lone(
        &self,
        pool: &Pool,
        type_id: u64,
        size: usize,
        align: usize,
    ) -> Result<*mut u8> {
        self.reserve(&pool.inner, type_id, size, lone_room(size), align)
    }

    fn reserve(
        &self,
        pool: &Arc<PoolInner>,
        type_id: u64,
        size: usize,
        room: usize,
        align: usize,
    ) -> Result<*mut u8> {
        record::api("tx.alloc");
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
        // SAFETY: as in `with_running`.
        unsafe { CURRENT.with(Cell::get).as_ref() }.is_some_and(|tx| {
            tx.depth.get() > 0 && tx.state.borrow().allocation.has_root_in(puddle)
        })
    }

    #[inline(always)]
    fn enter_pool(&self, state: &mut TxState, pool: &Arc<PoolInner>) -> Result<()> {
        let is_first = state
            .pools
            .first()
            .is_some_and(|first| first.key == pool.key);
        // A pool that stayed from the last transaction is not there in one on another pool.
        if forked() || self.depth.get() == 0 || !is_first {
            self.enter_other_pool(state, pool)?;
        }
        self.touched.set(true);
        Ok(())
    }

    #[cold]
    fn enter_other_pool(&self, state: &mut TxState, pool: &Arc<PoolInner>) -> Result<()> {
        if forked() {
            return Err(Error::Forked);
        }
        if self.depth.get() == 0 {
            return Err(Error::NoTransaction);
        }
        if pool.store.key != self.store_key {
            return Err(Error::NotInPool { address: 0, len: 0 });
        }
        if !state.pools.iter().any(|other| other.key == pool.key) {
            state.join(self, pool)?;
        }
        Ok(())
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
        record::api("tx.free");
        if forked() {
            return Err(Error::Forked);
        }
        let address = object.expose_provenance();
        let mut state = self.state.borrow_mut();
        let state = &mut *state;
        let puddle = state.touch(self, address, 1)?;
        self.touched.set(true);
        // SAFETY: as in `touch`.
        let key = unsafe { puddle.as_ref() }.pool_key;
        let first = state.pools.first().copied().filter(|pool| pool.key == key);
        let Some(pool) = first.or_else(|| TxState::pool_of(&state.pools, key)) else {
            return Err(Error::NotAllocated { address });
        };
        state.allocation.free(&*pool, puddle, address)
    }

    /// Remembers volatile memory: if the transaction does not commit, `*target` gets back the value that it has now.
    ///
    /// # Safety
    /// `target` stays valid until the transaction has ended, and no other thread uses it.
    pub unsafe fn volatile<T: Copy>(&self, target: *mut T) {
        // SAFETY: as the caller promises.
        unsafe { self.volatile_bytes(target.cast(), size_of::<T>()) }
    }

    /// Remembers `len` bytes of volatile memory, as [`Tx::volatile`] does.
    ///
    /// # Safety
    /// As for [`Tx::volatile`].
    pub unsafe fn volatile_bytes(&self, target: *mut u8, len: usize) {
        let mut state = self.state.borrow_mut();
        self.touched.set(true);
        // SAFETY: readable and unshared, as the caller promises.
        unsafe { state.volatile.save(target as usize, len) };
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

    /// Ends the transaction's hope of committing. Return the error from the closure; the outermost transaction rolls
    /// back.
    pub fn abort<R>(&self) -> Result<R> {
        self.doomed.set(true);
        Err(Error::Aborted)
    }

    /// The pool that the outermost transaction began on. The reference lives as long as that runs.
    fn home(&self) -> Result<&Arc<PoolInner>> {
        if self.depth.get() == 0 {
            return Err(Error::NoTransaction);
        }
        // SAFETY: set by the outermost `begin`, whose borrow of the pool lasts as long as the depth is not zero.
        match unsafe { self.home.get().as_ref() } {
            Some(home) => Ok(home),
            None => Err(Error::NoTransaction),
        }
    }

    #[inline]
    fn leave(&self, commit: bool) -> Result<()> {
        let depth = self.depth.get() - 1;
        if depth > 0 {
            self.depth.set(depth);
            if !commit {
                self.doomed.set(true);
            }
            return if self.doomed.get() && commit {
                Err(Error::Aborted)
            } else {
                Ok(())
            };
        }
        if !self.touched.get() && !self.doomed.get() {
            self.end();
            return Ok(());
        }
        self.finish(commit)?;
        Ok(())
    }

    #[inline(never)]
    fn finish(&self, commit: bool) -> Step {
        let doomed = self.doomed.replace(false);
        self.touched.set(false);
        if forked() {
            // The pools are not mapped in this process: there is nothing to roll back, and nothing that could be.
            self.end();
            return Err(Error::Forked.into());
        }
        let result = {
            let mut state = self.state.borrow_mut();
            if commit && !doomed {
                record::api("tx.commit");
                state.durability = self.durability.get();
                let result = state.commit(self.home()?);
                count::add_transaction(result.is_ok());
                result
            } else {
                record::api("tx.abort");
                state.abort();
                count::add_transaction(false);
                if commit {
                    Err(Error::Aborted.into())
                } else {
                    Ok(())
                }
            }
        };
        self.end();
        if self.upkeep.is_due() {
            self.do_upkeep();
        }
        result
    }

    #[cold]
    fn do_upkeep(&self) {
        // Not where the store is just closing.
        if let Some(store) = self.store.upgrade() {
            store.kept.upkeep(&store);
        }
    }

    /// Forgets what stayed of the last transaction that does not hold for one on `pool`: it was on another pool, or a
    /// puddle has gone since. Its pool may be gone, too.
    #[inline(never)]
    fn forget_pool(&self, pool: &PoolInner) {
        self.remembered.set((pool.key, removed()));
        self.state.borrow_mut().forget_pools();
    }

    /// The beginning of a transaction that has something to do at its end, whether it announces anything or not: where
    /// transactions take turns it waits for its own.
    #[inline(never)]
    fn begin_to_end(&self, pool: &Arc<PoolInner>) {
        if pool.facts.takes_turns {
            // Nothing can be mixed yet, and nobody reads a copy, which `begin` has made sure of.
            let _ = pool.engine.enter(&mut self.state.borrow_mut(), pool);
        }
        self.touched.set(true);
    }

    /// The outermost level begins on this pool.
    #[inline(always)]
    fn begin_on(&self, pool: &Arc<PoolInner>, durability: Durability) {
        if self.remembered.get() != (pool.key, removed()) {
            self.forget_pool(pool);
        }
        self.home.set(pool);
        self.durability.set(durability);
        if pool.ends_empty {
            self.begin_to_end(pool);
        }
        // A constant: the next transaction need not wait until it is known what this one stored.
        self.depth.set(1);
    }

    #[inline]
    fn end(&self) {
        self.depth.set(0);
        self.gate.leave();
    }
}
