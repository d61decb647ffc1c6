//! Pools: named sets of puddles with a root object, and what a program does with one.

use std::ops::Range;
use std::path::Path;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use durum_format::Uuid;
use durum_format::extent::{self, ExtentKind};
use durum_format::puddle::{BITMAP_OFFSET, heap_offset};
use durum_service::{EngineKind, PuddleGrant, PuddleOwner};

use crate::addresses::Beside;
use crate::alloc::{Allocate, Ground, PoolHeap, Puddle, PuddleHeap, puddle_at};
use crate::checker::{Checker, Pending};
use crate::combine::{Combine, Concurrency};
use crate::described::Described;
use crate::engine::{self, Copies, Engine, TwinMode};
use crate::error::{Error, Result};
use crate::fault::{guarded, media_failed};
use crate::mapping::Owner;
use crate::pages::PageTracking;
use crate::poison::Poison;
use crate::store::StoreInner;
use crate::tx::{Durability, Transaction, Tx};

/// How a pool is made, and how it is used while it is open.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct PoolOptions {
    /// The engine that runs its transactions. Fixed when the pool is made. Default: Shadow.
    pub engine: EngineKind,
    /// Bytes of the puddle that holds the root, a multiple of 2 MiB. The root has to fit. Fixed when the pool is made.
    /// Default: 2 MiB.
    pub root_puddle_size: u64,
    /// A pool doubles when it grows, but by at most this many bytes, unless one object needs more. Default: 256 MiB.
    pub growth_max: u64,
    /// So many bytes of unused puddles are kept for when the pool grows again, or as many as the puddles in use have,
    /// if that is more; the rest is given back to the file system at once, and all of it when the pool closes. 0 keeps
    /// none. Default: 64 MiB.
    pub spare_max: u64,
    /// Survive media errors in the program's own accesses: a page that cannot be read is replaced by a private one, and
    /// the next operation returns `Poisoned`. Default: off, and such an access ends the process (SIGBUS).
    pub survive_media_errors: bool,
    /// How sections find what has changed ([`Pool::section`]). Default: the best that the system has.
    pub page_tracking: PageTracking,
    /// How a Twin pool copies and is read. Default: [`TwinMode::Log`].
    pub twin_mode: TwinMode,
    /// Who keeps threads apart in [`Pool::update`] and [`Pool::read`]. Default: durum does.
    pub concurrency: Concurrency,
    /// Look for stores that no `add` announced, and for pointers that lead out of the store, at each commit and abort.
    /// Slow, for tests: keeps a copy of the pool. Default: off.
    pub check_stores: bool,
    /// Memory beside its puddles that the opener keeps something in.
    pub(crate) beside: Option<Arc<Beside>>,
}

impl Default for PoolOptions {
    fn default() -> Self {
        Self {
            engine: EngineKind::Shadow,
            root_puddle_size: durum_format::UNIT,
            growth_max: 256 << 20,
            spare_max: 64 << 20,
            survive_media_errors: false,
            page_tracking: PageTracking::Auto,
            twin_mode: TwinMode::Log,
            concurrency: Concurrency::Combining,
            check_stores: false,
            beside: None,
        }
    }
}

impl PoolOptions {
    /// The defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets [`PoolOptions::engine`].
    #[must_use]
    pub fn engine(mut self, engine: EngineKind) -> Self {
        self.engine = engine;
        self
    }

    /// Sets [`PoolOptions::root_puddle_size`].
    #[must_use]
    pub fn root_puddle_size(mut self, bytes: u64) -> Self {
        self.root_puddle_size = bytes;
        self
    }

    /// Sets [`PoolOptions::growth_max`].
    #[must_use]
    pub fn growth_max(mut self, bytes: u64) -> Self {
        self.growth_max = bytes;
        self
    }

    /// Sets [`PoolOptions::spare_max`].
    #[must_use]
    pub fn spare_max(mut self, bytes: u64) -> Self {
        self.spare_max = bytes;
        self
    }

    /// Sets [`PoolOptions::survive_media_errors`].
    #[must_use]
    pub fn survive_media_errors(mut self, survive: bool) -> Self {
        self.survive_media_errors = survive;
        self
    }

    /// Sets [`PoolOptions::page_tracking`].
    #[must_use]
    pub fn page_tracking(mut self, tracking: PageTracking) -> Self {
        self.page_tracking = tracking;
        self
    }

    /// Sets [`PoolOptions::twin_mode`].
    #[must_use]
    pub fn twin_mode(mut self, mode: TwinMode) -> Self {
        self.twin_mode = mode;
        self
    }

    /// Sets [`PoolOptions::concurrency`].
    #[must_use]
    pub fn concurrency(mut self, concurrency: Concurrency) -> Self {
        self.concurrency = concurrency;
        self
    }

    /// Sets [`PoolOptions::check_stores`].
    #[must_use]
    pub fn check_stores(mut self, check: bool) -> Self {
        self.check_stores = check;
        self
    }
}

/// What all handles of an open pool share.
#[derive(Debug)]
pub(crate) struct PoolInner {
    /// Different for each opening in this process.
    pub(crate) key: u64,
    pub(crate) uuid: Uuid,
    pub(crate) name: String,
    pub(crate) kind: EngineKind,
    pub(crate) engine: &'static dyn Engine,
    /// What [`Engine::keeps_lines`] says, without a call.
    pub(crate) keeps_lines: bool,
    /// What [`Engine::keeps_objects`] says.
    keeps_objects: bool,
    /// A transaction on it has something to do at its end also where nothing was announced: its turn ends, or the
    /// checker looks.
    pub(crate) ends_empty: bool,
    /// Where its puddles have two copies.
    pub(crate) copies: Option<Copies>,
    pub(crate) store: Arc<StoreInner>,
    pub(crate) poison: Arc<Poison>,
    survive: bool,
    beside: Option<Arc<Beside>>,
    pub(crate) heap: PoolHeap,
    pub(crate) page_tracking: PageTracking,
    /// The store's next stamp when the last section ended; 0: there was none.
    pub(crate) section_stamp: AtomicU64,
    pub(crate) combine: Combine,
    root: Mutex<()>,
    this: std::sync::Weak<PoolInner>,
    checker: Option<Mutex<Checker>>,
}

impl PoolInner {
    pub(crate) fn open(
        store: Arc<StoreInner>,
        grant: durum_service::PoolGrant,
        options: &PoolOptions,
    ) -> Result<Arc<Self>> {
        let Some(engine) = engine::engine(grant.engine) else {
            let _ = store.service.close_pool(grant.uuid);
            return Err(Error::EngineMissing {
                pool: grant.name,
                engine: grant.engine.name(),
            });
        };
        // One for the whole store: a transaction may span its pools, and what one failed write means for the others
        // nobody knows.
        let poison = store.poison.clone();
        let pool = Arc::new_cyclic(|this| Self {
            key: crate::store::next_key(),
            uuid: grant.uuid,
            name: grant.name,
            kind: grant.engine,
            engine,
            keeps_lines: engine.keeps_lines(),
            keeps_objects: engine.keeps_objects(),
            ends_empty: grant.engine == EngineKind::Twin || options.check_stores,
            copies: (grant.engine == EngineKind::Twin).then(|| Copies::new(options.twin_mode)),
            store,
            poison,
            survive: options.survive_media_errors,
            beside: options.beside.clone(),
            heap: PoolHeap::new(options.growth_max, options.spare_max),
            page_tracking: options.page_tracking,
            section_stamp: AtomicU64::new(0),
            combine: Combine::new(options.concurrency),
            root: Mutex::new(()),
            this: this.clone(),
            checker: options.check_stores.then(|| Mutex::new(Checker::default())),
        });
        let mut puddles = Vec::with_capacity(grant.puddles.len());
        for puddle in grant.puddles {
            puddles.push(pool.map(puddle)?);
        }
        *pool
            .heap
            .puddles
            .write()
            .unwrap_or_else(PoisonError::into_inner) = puddles;
        pool.after_commit();
        Ok(pool)
    }

    /// A handle to this pool, unless it is being closed.
    pub(crate) fn this(&self) -> Option<Arc<Self>> {
        self.this.upgrade()
    }

    pub(crate) fn map(&self, grant: PuddleGrant) -> Result<Arc<Puddle>> {
        let second_range = self.store.info.space_size as usize;
        let (address, size) = (grant.address as usize, grant.size as usize);
        let owner = Owner {
            store_key: self.store.key,
            pool_key: self.key,
            pool: self.this.clone(),
            poison: self.poison.clone(),
            survive: self.survive,
            home: (self.kind == EngineKind::Shadow).then_some(second_range),
            back: (self.kind == EngineKind::Twin).then_some(second_range),
            beside: self.beside.clone(),
            kept: self.engine.keep_puddle(&self.store, address, size),
        };
        let puddle = Puddle::map(
            grant,
            owner,
            self.store.info.domain,
            self.store.space,
            &self.store.info.path,
        )?;
        self.engine.puddle_is_mapped(&self.store, &puddle);
        Ok(puddle)
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

    /// A thread that reads a copy must not wait for its turn to change a pool with copies: whoever has it may wait for
    /// the thread to leave the copy.
    #[inline(always)]
    pub(crate) fn check_turn_may_come(&self) -> Result<()> {
        match self.copies.is_some() && engine::reads_copy() {
            true => Err(Error::ReadsCopy {
                pool: self.name.clone(),
            }),
            false => Ok(()),
        }
    }

    /// The error of a page of this pool that failed, if any.
    #[cold]
    pub(crate) fn check_media(&self) -> Result<()> {
        self.heap
            .puddles
            .read()
            .unwrap_or_else(PoisonError::into_inner)
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
            let reason = "committed records could not be brought home";
            self.poison.set(&self.store.info.path, 0, reason);
            self.store.journal().stop();
        })
    }

    pub(crate) fn root_puddle(&self) -> Result<Arc<Puddle>> {
        let puddles = self
            .heap
            .puddles
            .read()
            .unwrap_or_else(PoisonError::into_inner);
        puddles
            .iter()
            .find(|puddle| puddle.is_root)
            .cloned()
            .ok_or_else(|| Error::DamagedHeap {
                file: self.store.info.path.clone(),
                reason: format!("pool \"{}\" has no root puddle", self.name),
            })
    }

    fn lock_root(&self) -> MutexGuard<'_, ()> {
        self.root.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The root object, if it was made, or is being made by the transaction that runs on this thread: address, type and
    /// size.
    fn existing_root(&self) -> Result<Option<(usize, u64, u64)>> {
        let puddle = self.root_puddle()?;
        // Without a heap in memory nobody has reserved anything.
        let is_pending = puddle.heap.get().is_some_and(PuddleHeap::root_is_pending);
        if is_pending && !Tx::makes_root_of(&puddle) {
            // Its bit may be set and not yet durable.
            return Err(Error::RootPending {
                pool: self.name.clone(),
            });
        }
        let start = heap_offset(puddle.size as u64) as usize;
        // SAFETY: both places lie in the mapped puddle.
        let (bitmap, words) = guarded(|| unsafe {
            let bitmap = puddle.at(BITMAP_OFFSET as usize).cast::<u64>().read();
            (bitmap, puddle.at(start).cast::<[u64; 2]>().read())
        });
        puddle.check_failed()?;
        if bitmap & 1 == 0 && !is_pending {
            return Ok(None);
        }
        let damaged = |reason: String| Error::DamagedHeap {
            file: puddle.path.clone(),
            reason,
        };
        let header =
            extent::parse(words).map_err(|error| damaged(format!("root object: {error}")))?;
        match header.kind {
            ExtentKind::Object { size, data_offset } => Ok(Some((
                puddle.address + start + data_offset as usize,
                header.type_id,
                size,
            ))),
            ExtentKind::Slab { .. } => Err(damaged(
                "a slab stands in the place of the root object".into(),
            )),
        }
    }

    /// Whether somebody wants to look at what is committed.
    #[inline]
    pub(crate) fn has_checker(&self) -> bool {
        self.checker.is_some()
    }

    /// Whether stores were announced is asked where somebody announces: not in a section.
    pub(crate) fn before_commit(&self, pending: &Pending<'_>, is_announced: bool) -> Result<()> {
        match &self.checker {
            Some(checker) => checker.lock().unwrap_or_else(PoisonError::into_inner).look(
                self,
                pending,
                is_announced,
            ),
            None => Ok(()),
        }
    }

    /// Ranges are durable without an announcement. After a failed attempt they are as they are, too.
    #[inline]
    pub(crate) fn after_persist(&self, ranges: &[(&Puddle, Range<usize>)]) {
        if let Some(checker) = &self.checker {
            let mut checker = checker.lock().unwrap_or_else(PoisonError::into_inner);
            for (puddle, range) in ranges {
                checker.remember_range(puddle, range);
            }
        }
    }

    pub(crate) fn after_commit(&self) {
        if let Some(checker) = &self.checker {
            checker
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .remember(self);
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
        &self.store.info.path
    }

    fn poison(&self) -> &Poison {
        &self.poison
    }

    #[inline]
    fn keeps_objects(&self) -> bool {
        self.keeps_objects
    }

    #[inline]
    fn try_alone(&self) -> Option<impl Sized> {
        match self.kind {
            EngineKind::Shadow => self.store.journal().try_alone(),
            _ => None,
        }
    }

    fn make_puddle(&self, size: u64) -> Result<Arc<Puddle>> {
        let owner = PuddleOwner::Pool(self.uuid);
        let kind = self.kind.puddle_kind();
        let grant = self.store.service.create_puddle(owner, kind, size)?;
        let uuid = grant.uuid;
        self.map(grant).inspect_err(|_| {
            // A puddle that nobody can use must not stay behind.
            let _ = self.store.service.remove_puddle(uuid);
        })
    }

    fn remove_puddle(&self, puddle: Arc<Puddle>) {
        puddle.unmap();
        let uuid = puddle.uuid;
        // Freed objects may still be looked up by late callers: the struct stays until the store closes.
        self.store
            .retired
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(puddle);
        if let Err(error) = self.store.service.remove_puddle(uuid) {
            // The puddle stays in the registry, empty; the next opener finds it and uses it.
            tracing::warn!(puddle = %uuid, %error, "an empty puddle could not be given back");
        }
    }

    fn give_log_back(&self) -> Result<()> {
        self.store.journal().give_log_back(&self.store)
    }

    /// Brings every record home, so that none will be written to the pool's puddles any more, nor any seal tell of
    /// them.
    fn drain(&self) -> Result<()> {
        if crate::fault::forked() {
            return Ok(());
        }
        match (&self.copies, self.kind) {
            (Some(copies), _) => {
                self.poison.check()?;
                copies.forget_seal(self)
            }
            (None, EngineKind::Shadow) => {
                self.poison.check()?;
                self.store.journal().drain(&self.store)
            }
            _ => Ok(()),
        }
    }
}

impl Drop for PoolInner {
    fn drop(&mut self) {
        if crate::fault::forked() {
            // Nothing of it is mapped here, and a thread that is not there may hold the locks.
            return;
        }
        if self.check_usable().is_ok() {
            self.load_empty_heaps();
            self.give_back_unused(0, 0);
        }
        if self.kind == EngineKind::Shadow {
            self.store.journal().stop_threads();
        }
        let _ = self.settle();
        if let Some(copies) = &self.copies
            && self.poison.check().is_ok()
        {
            copies.close(self);
        }
        let puddles = std::mem::take(
            self.heap
                .puddles
                .get_mut()
                .unwrap_or_else(PoisonError::into_inner),
        );
        for puddle in &puddles {
            puddle.unmap();
        }
        // A late lookup may still hold one: the structs stay until the store closes.
        self.store
            .retired
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .extend(puddles);
        // After a failure the grant stays: only so may the next opener replay the logs that name this pool.
        if self.poison.check().is_ok()
            && let Err(error) = self.store.service.close_pool(self.uuid)
        {
            // The next opener finds the grant and recovers, which changes nothing in a drained pool.
            tracing::warn!(pool = %self.name, %error, "the pool could not be closed in order");
        }
        self.store.pool_is_closed(self);
    }
}

/// An open pool. Handles are cheap to clone and may be used from any thread; the pool closes with the last one.
#[derive(Clone, Debug)]
pub struct Pool {
    pub(crate) inner: Arc<PoolInner>,
}

impl Pool {
    /// The pool's name.
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// The pool's UUID.
    pub fn uuid(&self) -> Uuid {
        self.inner.uuid
    }

    /// The engine that runs its transactions.
    pub fn engine(&self) -> EngineKind {
        self.inner.kind
    }

    /// The root object: made now, zeroed, if the pool has none yet. It is durable when this returns, or, inside a
    /// transaction, when that one has committed.
    ///
    /// # Errors
    /// `RootType` if the pool's root is of another type; `ObjectSize` if it does not fit into the root puddle
    /// (see [`PoolOptions::root_puddle_size`]); `RootPending` while the transaction of another thread is making it.
    pub fn root<T: Described>(&self) -> Result<*mut T> {
        let type_id = self.inner.store.ensure_type::<T>()?;
        Ok(self
            .root_bytes(type_id, size_of::<T>(), align_of::<T>())?
            .cast())
    }

    /// The root object as untyped memory. See [`Pool::root`].
    ///
    /// # Errors
    /// As for [`Pool::root`].
    pub fn root_bytes(&self, type_id: u64, size: usize, align: usize) -> Result<*mut u8> {
        self.root_made_in(type_id, size, align, || {
            Transaction::begin(self, Durability::Durable)
        })
    }

    /// [`Pool::root`], made in a transaction of its own also where one on another store is running.
    pub(crate) fn root_beside<T: Described>(&self) -> Result<*mut T> {
        let type_id = self.inner.store.ensure_type::<T>()?;
        let begin = || Transaction::begin_beside(self);
        Ok(self
            .root_made_in(type_id, size_of::<T>(), align_of::<T>(), begin)?
            .cast())
    }

    fn root_made_in<'p>(
        &'p self,
        type_id: u64,
        size: usize,
        align: usize,
        begin: impl FnOnce() -> Result<Transaction<'p>>,
    ) -> Result<*mut u8> {
        if crate::fault::forked() {
            return Err(Error::Forked);
        }
        let existing = || self.existing_root_as(type_id, size);
        {
            let _once = self.inner.lock_root();
            if let Some(root) = existing()? {
                return Ok(root);
            }
        }
        // The transaction before the lock: a section, which keeps transactions out, may ask for the root, too.
        let transaction = begin()?;
        let _once = self.inner.lock_root();
        let made = match existing() {
            Ok(None) => {
                let root = transaction.alloc_root(self, type_id, size, align)?;
                // SAFETY: the root was just allocated.
                unsafe { durum_persist::line::zero(root, size) };
                Ok(root)
            }
            Ok(Some(root)) => Ok(root),
            Err(error) => Err(error),
        };
        transaction.commit()?;
        made
    }

    /// The root object, if it was made: it has to be of this type.
    fn existing_root_as(&self, type_id: u64, size: usize) -> Result<Option<*mut u8>> {
        let Some((address, found, found_size)) = self.inner.existing_root()? else {
            return Ok(None);
        };
        if found == type_id && found_size == size.max(1) as u64 {
            return Ok(Some(std::ptr::with_exposed_provenance_mut(address)));
        }
        let name = |id, size| {
            format!(
                "{} ({size} bytes, id {id:#018x})",
                self.inner.store.type_name(id)
            )
        };
        Err(Error::RootType {
            pool: self.inner.name.clone(),
            expected: name(type_id, size as u64),
            found: name(found, found_size),
        })
    }

    /// The type id of the root object, if the pool has one.
    ///
    /// # Errors
    /// `DamagedHeap`, `Poisoned`.
    pub fn root_type(&self) -> Result<Option<u64>> {
        match self.inner.existing_root() {
            Ok(root) => Ok(root.map(|(_, type_id, _)| type_id)),
            Err(Error::RootPending { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Makes `[address, address + len)` durable as it is now, outside of any transaction.
    ///
    /// Not atomic: after a crash before it returns, any part of the range may be old. Bytes that the running
    /// transaction has announced stay with it: they are durable once it has committed.
    ///
    /// # Safety
    /// No other thread changes the range meanwhile.
    ///
    /// # Errors
    /// `NotInPool`, `Poisoned`; on a Twin pool `ReadsCopy` inside a [`Pool::read_copy`].
    #[inline]
    pub unsafe fn persist<T>(&self, address: *const T, len: usize) -> Result<()> {
        durum_persist::record::api("persist");
        let address = address.expose_provenance();
        if len == 0 {
            return Ok(());
        }
        self.check_persists()?;
        let range = address..address + len;
        Tx::persist(&self.inner, &[(self.puddle_holding(&range)?, range)])
    }

    /// Makes several ranges of addresses durable as they are now, with one fence. Else as [`Pool::persist`].
    ///
    /// # Safety
    /// No other thread changes the ranges meanwhile.
    ///
    /// # Errors
    /// As for [`Pool::persist`]; with `NotInPool` none of the ranges has been made durable.
    pub unsafe fn persist_all(&self, ranges: &[Range<usize>]) -> Result<()> {
        durum_persist::record::api("persist");
        self.check_persists()?;
        let ranges = ranges.iter().filter(|range| !range.is_empty());
        let found = ranges.map(|range| Ok((self.puddle_holding(range)?, range.clone())));
        let found = found.collect::<Result<Vec<_>>>()?;
        match found.is_empty() {
            true => Ok(()),
            false => Tx::persist(&self.inner, &found),
        }
    }

    fn check_persists(&self) -> Result<()> {
        if crate::fault::forked() {
            return Err(Error::Forked);
        }
        self.inner.check_usable()
    }

    /// The puddle of this pool that a range lies in. It lives while the store is open.
    fn puddle_holding(&self, range: &Range<usize>) -> Result<&Puddle> {
        let (address, len) = (range.start, range.len());
        let refused = || Error::NotInPool { address, len };
        let puddle = puddle_at(address).ok_or_else(refused)?;
        // SAFETY: puddles live while their store is open.
        let puddle = unsafe { puddle.as_ref() };
        match puddle.pool_key == self.inner.key && puddle.holds(address, len) {
            true => Ok(puddle),
            false => Err(refused()),
        }
    }

    /// Makes every transaction of the pool durable that has committed as
    /// [`Durability::Buffered`](crate::Durability::Buffered) before, in any thread; those of the store's other Shadow
    /// pools, too. They are durable when this returns.
    ///
    /// Costs one fence, or one sync on a file system, and nothing if there are none. The transaction that runs on this
    /// thread, if any, is not concerned.
    ///
    /// # Errors
    /// `Poisoned`: which of them are durable is unknown. `StorageFull` and others where the log had to grow: they are
    /// not durable, and will be tried again.
    pub fn sync(&self) -> Result<()> {
        durum_persist::record::api("sync");
        if crate::fault::forked() {
            return Err(Error::Forked);
        }
        self.inner.check_usable()?;
        match self.inner.kind {
            EngineKind::Shadow => self.inner.store.journal().flush(&self.inner.store),
            _ => Ok(()),
        }
    }

    /// Does once what the thread does that writes buffered transactions: writes them if the oldest has waited for half
    /// of the window at `now`. How long it may wait before the next time; `None`: nothing waits. For tests.
    ///
    /// # Errors
    /// As for [`Pool::sync`].
    #[doc(hidden)]
    pub fn flush_if_due(&self, now: Instant) -> Result<Option<Duration>> {
        let store = &self.inner.store;
        store.journal().flush_if_due(store, now)
    }

    /// The open pool that an address lies in. For interfaces that are given addresses only; the caller knows
    /// that the pool is not closed meanwhile.
    #[doc(hidden)]
    pub fn holding(address: usize) -> Result<Pool> {
        if crate::fault::forked() {
            return Err(Error::Forked);
        }
        let refused = Error::NotInPool { address, len: 1 };
        let Some(puddle) = puddle_at(address) else {
            return Err(refused);
        };
        // SAFETY: puddles live while their store is open, and the caller keeps the pool open.
        let pool = PoolInner::of(unsafe { puddle.as_ref() });
        pool.map(|inner| Pool { inner }).ok_or(refused)
    }

    /// A number that no other opening of a pool in this process has.
    #[doc(hidden)]
    pub fn key(&self) -> u64 {
        self.inner.key
    }

    /// The [key](Pool::key) of the pool that has an address among its objects. The caller knows that the pool's store
    /// is not closed meanwhile, if there is one.
    #[doc(hidden)]
    #[inline]
    pub fn key_at(address: usize) -> Option<u64> {
        // SAFETY: puddles live while their store is open, as the caller knows.
        let puddle = unsafe { puddle_at(address)?.as_ref() };
        let is_of_pool = puddle.pool_key != 0 && puddle.holds(address, 1);
        is_of_pool.then_some(puddle.pool_key)
    }

    /// Whether an address lies in an open pool: among its objects, or in what a pool has behind them, its back copies
    /// above all. Nobody but the pool may store there.
    #[doc(hidden)]
    pub fn lies_in_any(address: usize) -> bool {
        Self::holding(address).is_ok() || crate::space::is_behind_a_puddle(address)
    }

    /// Whether `[address, address + len)` lies in the part of one of the pool's puddles that objects lie in. For
    /// programs that read pointers and lengths from a pool whose contents may be damaged, before they follow them.
    #[inline]
    pub fn holds(&self, address: *const u8, len: usize) -> bool {
        let address = address.addr();
        let Some(puddle) = puddle_at(address) else {
            return false;
        };
        // SAFETY: puddles live while their store is open, which the pool keeps open.
        let puddle = unsafe { puddle.as_ref() };
        puddle.pool_key == self.inner.key && puddle.holds(address, len)
    }

    /// The object of this pool whose bytes hold the address, which may point into its middle: allocated, or allocated
    /// by a transaction that runs. `None` where there is none.
    ///
    /// Takes some nanoseconds for objects of up to 256 bytes; for larger ones a lock of their puddle, for a moment.
    ///
    /// # Errors
    /// `Poisoned`, `DamagedHeap` when a puddle is read for the first time.
    ///
    /// # Safety
    /// The caller knows that the object, if there is one, is not freed meanwhile.
    pub unsafe fn object_at(&self, address: *const u8) -> Result<Option<Extent>> {
        let address = address.addr();
        let Some(puddle) = puddle_at(address) else {
            return Ok(None);
        };
        // SAFETY: puddles live while their store is open, which the pool keeps open.
        let puddle = unsafe { puddle.as_ref() };
        if puddle.pool_key != self.inner.key || !puddle.holds(address, 1) {
            return Ok(None);
        }
        let heap = self.inner.heap_of(puddle)?;
        Ok(heap.object_at(puddle, address).map(|found| Extent {
            start: std::ptr::with_exposed_provenance_mut(found.address),
            len: found.len,
            type_id: found.type_id,
        }))
    }

    /// Fetches to the caches what [`Tx::free`](crate::Tx::free) of this object will look at. For a program that knows
    /// early what it is going to free: it waits for each of these places otherwise, for one after the other.
    ///
    /// # Safety
    /// The object is allocated.
    #[doc(hidden)]
    #[inline]
    pub unsafe fn prefetch_free(&self, object: *const u8) {
        let address = object.addr();
        let Some(puddle) = puddle_at(address) else {
            return;
        };
        // SAFETY: as above.
        let puddle = unsafe { puddle.as_ref() };
        if let Some(heap) = puddle.heap.get()
            && let Some(slab) = heap.slab_at(puddle, address)
        {
            slab.prefetch_free(address, puddle.home_offset());
        }
    }

    /// The id of a described type, registered with the pool's store. For types that were declared in another language.
    #[doc(hidden)]
    #[inline]
    pub fn ensure_described(&self, description: &crate::described::Description) -> Result<u64> {
        self.inner.store.ensure_described(description)
    }

    /// Makes room: afterwards at least `bytes` of the pool are free ([`Usage::free_bytes`]), so that transactions that
    /// allocate as much need not wait while it grows. Pages of the puddles that this adds are there already, within
    /// [`StoreOptions::private_max`](crate::StoreOptions::private_max).
    ///
    /// The room stays as long as the pool is open, also where objects are freed. Nothing is allocated: what is not used
    /// by then goes when the pool is closed. The room comes in pieces of up to [`PoolOptions::growth_max`]; an object
    /// that fits none of them makes the pool grow all the same.
    ///
    /// # Errors
    /// `StorageFull` and others where puddles cannot be made; `DamagedHeap`, `Poisoned`. The pool is as large as before
    /// then.
    pub fn reserve(&self, bytes: u64) -> Result<()> {
        if crate::fault::forked() {
            return Err(Error::Forked);
        }
        self.inner.check_usable()?;
        self.inner.make_room(bytes)
    }

    /// How much room the pool has, and in which pieces.
    ///
    /// # Errors
    /// `DamagedHeap`, `Poisoned` when a puddle is read for the first time.
    pub fn usage(&self) -> Result<Usage> {
        if crate::fault::forked() {
            return Err(Error::Forked);
        }
        let puddles = self
            .inner
            .heap
            .puddles
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        let mut usage = Usage {
            puddles: puddles.len(),
            ..Usage::default()
        };
        for puddle in puddles {
            let heap = self.inner.heap_of(&puddle)?;
            usage.bytes += puddle.size;
            usage.free_bytes += heap.free_bytes();
            for (order, count) in heap.histogram().into_iter().enumerate() {
                if usage.free_blocks.len() <= order {
                    usage.free_blocks.resize(order + 1, 0);
                }
                usage.free_blocks[order] += count;
            }
        }
        Ok(usage)
    }
}

/// Where an object lies ([`Pool::object_at`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Extent {
    /// Its first byte, which [`Tx::free`](crate::Tx::free) wants.
    pub start: *mut u8,
    /// Bytes from there on that are its own: as many as were asked for, or a few more.
    pub len: usize,
    /// The id of its type; 0: none.
    pub type_id: u64,
}

/// The room in a pool.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Usage {
    /// Number of puddles.
    pub puddles: usize,
    /// Bytes of all puddles, headers included.
    pub bytes: usize,
    /// Bytes that no extent covers. Free elements of slabs are not counted.
    pub free_bytes: usize,
    /// Free blocks by size: entry k counts blocks of `256 << k` bytes.
    pub free_blocks: Vec<usize>,
}
