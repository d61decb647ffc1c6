//! Pools: named sets of puddles with a root object, and what a program does with one.

use std::ops::Range;
use std::ptr::NonNull;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use durum_format::Uuid;
use durum_format::extent::{self, ExtentKind};
use durum_format::puddle::{BITMAP_OFFSET, heap_offset};
use durum_persist::line::prefetch_all;
use durum_service::EngineKind;

use crate::alloc::{
    Grow, PoolHeap, Puddle, PuddleHeap, Slab, puddle_at, puddle_followed_at, puddle_needed_at,
};
use crate::combine::Combine;
use crate::described::Described;
use crate::engine::{self, Engines};
use crate::error::{Error, Result};
use crate::fault::{check_forked, guarded};
use crate::opened::{Durability, Pool, PoolInner, StoreInner, next_key};
use crate::options::PoolOptions;
use crate::pages::Way;
use crate::poison::Poison;
use crate::pool_types::PoolTypes;
use crate::primitive::locked;
use crate::tx::{Transaction, Tx};

impl PoolInner {
    pub(crate) fn open(
        store: Arc<StoreInner>,
        grant: durum_service::PoolGrant,
        options: &PoolOptions,
        engines: Engines,
    ) -> Result<Arc<Self>> {
        let engine = match options.run_by {
            _ if options.read_only => Some(engine::read_only()),
            // They leave nothing that recovery has to know of, as long as the pool's own engine does not look for it.
            Some(name) => (engines.of)(grant.engine)
                .filter(|engine| engine.facts().works_in_place)
                .and_then(|_| engine::test_engine(name)),
            None => (engines.of)(grant.engine),
        };
        let Some(engine) = engine else {
            let _ = store.service.close_pool(grant.uuid);
            return Err(Error::EngineMissing {
                pool: grant.name,
                engine: grant.engine.name(),
            });
        };
        let facts = engine.facts();
        // One for the whole store: a transaction may span its pools, and what one failed write means for the others
        // nobody knows.
        let poison = match options.read_only {
            true => Arc::new(Poison::of_reading(&grant.name)),
            false => store.poison.clone(),
        };
        let is_checked = options.check_stores && !options.read_only;
        let checker = engines.checker.filter(|_| is_checked);
        let checks_stores = checker.is_some();
        let types = PoolTypes::new(store.service.meanings(grant.uuid)?);
        let pool = Arc::new_cyclic(|this| Self {
            key: next_key(),
            uuid: grant.uuid,
            name: grant.name,
            kind: grant.engine,
            engine,
            run_by: options.run_by,
            has_sections: AtomicBool::new(false),
            facts,
            ends_empty: facts.takes_turns || checks_stores,
            kept: engine.keep_pool(&store, options),
            bias: engine.bias(&store),
            store,
            poison,
            is_read_only: options.read_only,
            survive: options.survive_media_errors,
            beside: options.beside.clone(),
            heap: PoolHeap::new(options.growth_max, options.spare_max),
            frontier: Arc::default(),
            combine: Combine::new(options.concurrency),
            root: Mutex::new(()),
            types,
            this: this.clone(),
            checker: checker.map(|begin| Mutex::new(begin())),
            on_mismatch: engines.on_mismatch,
        });
        let mapper = pool.mapper();
        let file = grant.root.file.clone();
        let root = (mapper.map)(grant.root, false)?;
        pool.heap.puddles_mut().push(root);
        // The checker looks at all of a pool; and a store to one that is only read is not to look like a puddle that
        // waits.
        let way = match checks_stores || options.read_only {
            true => Way::Eager,
            false => pool.store.way,
        };
        (pool.frontier.open(mapper, &file, grant.others, way)).inspect_err(|_| {
            // A pool that was never open is not closed as one that was.
            pool.heap.puddles_mut().clear();
        })?;
        pool.after_commit();
        Ok(pool)
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
    /// `RootType` if the pool's root is of another type; `ObjectSize` if it does not fit into the root puddle (see
    /// [`PoolOptions::root_puddle_size`]); `ReadOnly` if it would have to be made; `RootPending` while the transaction
    /// of another thread is making it.
    pub fn root<T: Described>(&self) -> Result<*mut T> {
        let type_id = self.ensure_described(T::description())?;
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
            Ok(Transaction::begin(self, Durability::Durable)?)
        })
    }

    /// [`Pool::root`], made in a transaction of its own also where one on another store is running.
    pub(crate) fn root_beside<T: Described>(&self) -> Result<*mut T> {
        let type_id = self.ensure_described(T::description())?;
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
        check_forked()?;
        let existing = || self.existing_root_as(type_id, size);
        {
            let _once = locked(&self.inner.root);
            if let Some(root) = existing()? {
                return Ok(root);
            }
        }
        // The transaction before the lock: a section, which keeps transactions out, may ask for the root, too.
        let transaction = begin()?;
        let _once = locked(&self.inner.root);
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
        let root = std::ptr::with_exposed_provenance_mut(address);
        let is_so_large = found_size == size.max(1) as u64;
        self.inner
            .fit_root((found, found_size), (type_id, size as u64), is_so_large)?;
        Ok(Some(root))
    }

    /// Takes objects whose type has the id `found` as such of the registered type `wanted`, as [`Pool::root`] does with
    /// the root: for a program that keeps ids beside objects of its own.
    ///
    /// # Errors
    /// `RootType`, `OldRootType`.
    #[doc(hidden)]
    pub fn take_type(&self, found: u64, wanted: u64) -> Result<()> {
        self.inner.fit_root((found, 0), (wanted, 0), true)
    }

    /// Whether objects of this pool have ids that mean other types.
    #[doc(hidden)]
    pub fn has_old_types(&self) -> bool {
        !self.inner.types.meanings().is_empty()
    }

    /// The type id of the root object, if the pool has one: that of what it means, where types have changed.
    ///
    /// # Errors
    /// `DamagedHeap`, `Poisoned`.
    pub fn root_type(&self) -> Result<Option<u64>> {
        match self.inner.existing_root() {
            Ok(root) => Ok(root.map(|(_, type_id, _)| self.inner.meaning(type_id))),
            Err(Error::RootPending { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Makes `[address, address + len)` durable as it is now, outside of any transaction.
    ///
    /// Not atomic: after a crash before it returns, any part of the range may be old. On a Twin pool a part that is
    /// found new then may be old again after another crash, unless it was persisted once more, or changed by a
    /// transaction. Bytes that the running transaction has announced stay with it: they are durable once it has
    /// committed.
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
        check_forked()?;
        self.inner.check_usable()
    }

    /// The puddle of this pool that a range lies in. It lives while the store is open.
    #[inline]
    fn puddle_holding(&self, range: &Range<usize>) -> Result<&Puddle> {
        let (address, len) = (range.start, range.len());
        let mapped = puddle_at(address).and_then(|puddle| self.if_it_holds(puddle, address, len));
        match mapped {
            Some(puddle) => Ok(puddle),
            None => self.puddle_needed_for(address, len),
        }
    }

    #[cold]
    fn puddle_needed_for(&self, address: usize, len: usize) -> Result<&Puddle> {
        match self.puddle_at(address, len)? {
            Some(puddle) => Ok(puddle),
            None => Err(Error::NotInPool { address, len }),
        }
    }

    /// It is mapped if it was not yet.
    fn puddle_at(&self, address: usize, len: usize) -> Result<Option<&Puddle>> {
        let puddle = puddle_needed_at(address)?;
        Ok(puddle.and_then(|puddle| self.if_it_holds(puddle, address, len)))
    }

    #[inline(always)]
    fn if_it_holds(&self, puddle: NonNull<Puddle>, address: usize, len: usize) -> Option<&Puddle> {
        // SAFETY: puddles live while their store is open, which the pool keeps open.
        let puddle = unsafe { puddle.as_ref() };
        (puddle.pool_key == self.inner.key && puddle.holds(address, len)).then_some(puddle)
    }

    /// Sees to it that the puddle is mapped that `[address, address + len)` lies in. For system calls: one that is
    /// given an address in a puddle which is not mapped yet fails with EFAULT ([`PuddleMapping::OnDemand`]).
    ///
    /// [`PuddleMapping::OnDemand`]: crate::PuddleMapping::OnDemand
    ///
    /// # Errors
    /// `NotInPool`; those of the puddle's file, and of mapping it.
    pub fn touch<T>(&self, address: *const T, len: usize) -> Result<()> {
        check_forked()?;
        let start = address.addr();
        let end = start.saturating_add(len);
        self.puddle_holding(&(start..end)).map(drop)
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
        check_forked()?;
        self.inner.check_usable()?;
        self.inner.engine.flush_buffered(&self.inner)
    }

    /// Does once what the thread does that writes buffered transactions: writes them if the oldest has waited for half
    /// of the window at `now`. How long it may wait before the next time; `None`: nothing waits. For tests.
    ///
    /// # Errors
    /// As for [`Pool::sync`].
    #[doc(hidden)]
    pub fn flush_if_due(&self, now: Instant) -> Result<Option<Duration>> {
        self.inner.engine.flush_if_due(&self.inner, now)
    }

    /// The pool that an address lies in; opened now if it was not, where the store follows pointers. For interfaces
    /// that are given addresses only; the caller knows that the pool is not closed meanwhile.
    #[doc(hidden)]
    pub fn holding(address: usize) -> Result<Pool> {
        check_forked()?;
        let refused = Error::NotInPool { address, len: 1 };
        let Some(puddle) = puddle_followed_at(address)? else {
            return Err(refused);
        };
        // SAFETY: puddles live while their store is open, and the caller keeps the pool open.
        let pool = PoolInner::of(unsafe { puddle.as_ref() });
        let handle = |inner| Pool { inner, _tie: None };
        pool.map(handle).ok_or(refused)
    }

    /// How many of its puddles are not mapped yet. For tests.
    #[doc(hidden)]
    pub fn puddles_waiting(&self) -> usize {
        self.inner.frontier.left()
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
        let puddle = unsafe { puddle_needed_at(address).ok()??.as_ref() };
        let is_of_pool = puddle.pool_key != 0 && puddle.holds(address, 1);
        is_of_pool.then_some(puddle.pool_key)
    }

    /// Whether an address lies in an open pool: among its objects, or in what a pool has behind them, its back copies
    /// above all. Nobody but the pool may store there.
    #[doc(hidden)]
    pub fn lies_in_any(address: usize) -> bool {
        let puddle = puddle_needed_at(address).ok().flatten();
        // SAFETY: puddles live while their store is open, and the caller keeps the pool open.
        let pool = puddle.and_then(|puddle| PoolInner::of(unsafe { puddle.as_ref() }));
        pool.is_some() || crate::space::is_behind_a_puddle(address)
    }

    /// Whether `[address, address + len)` lies in the part of one of the pool's puddles that objects lie in. For
    /// programs that read pointers and lengths from a pool whose contents may be damaged, before they follow them.
    #[inline]
    pub fn holds(&self, address: *const u8, len: usize) -> bool {
        matches!(self.puddle_at(address.addr(), len), Ok(Some(_)))
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
        let Some(puddle) = self.puddle_at(address, 1)? else {
            return Ok(None);
        };
        let heap = self.inner.heap_of(puddle)?;
        Ok(heap.object_at(puddle, address).map(|found| Extent {
            start: std::ptr::with_exposed_provenance_mut(found.address),
            len: found.len,
            type_id: self.inner.meaning(found.type_id),
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
        self.see_slab(object.addr(), |slab, puddle| {
            slab.prefetch_free(object.addr(), puddle.home_offset());
        });
    }

    /// Fetches what [`Pool::prefetch_free`] looks at itself, for a caller that has several objects to free.
    ///
    /// # Safety
    /// The object is allocated.
    #[doc(hidden)]
    #[inline]
    pub unsafe fn prefetch_slab(&self, object: *const u8) {
        self.see_slab(object.addr(), |slab, _| prefetch_all(slab));
    }

    #[inline(always)]
    fn see_slab(&self, address: usize, see: impl FnOnce(&Slab, &Puddle)) {
        let Some(puddle) = puddle_at(address) else {
            return;
        };
        // SAFETY: puddles live while their store is open, and this pool is.
        let puddle = unsafe { puddle.as_ref() };
        if let Some(heap) = puddle.heap.get()
            && let Some(slab) = heap.slab_at(puddle, address)
        {
            see(slab, puddle);
        }
    }

    /// The id of a described type, registered with the pool's store. For types that were declared in another language.
    #[doc(hidden)]
    #[inline]
    pub fn ensure_described(&self, description: &crate::described::Description) -> Result<u64> {
        match self.inner.is_read_only {
            // Who only reads leaves no type behind.
            true => {
                self.inner.types.note(description);
                Ok(description.id)
            }
            false => self.inner.store.ensure_described(description),
        }
    }

    /// How a registered type differs from one that was there before; nothing where one of them is not known. For types
    /// that were declared in another language.
    #[doc(hidden)]
    pub fn type_changes(&self, was: u64, is: u64) -> Vec<String> {
        self.inner.store.type_changes(was, is)
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
        check_forked()?;
        self.inner.check_usable()?;
        self.inner.make_room(bytes)
    }

    /// How much room the pool has, and in which pieces.
    ///
    /// # Errors
    /// `DamagedHeap`, `Poisoned` when a puddle is read for the first time.
    pub fn usage(&self) -> Result<Usage> {
        check_forked()?;
        self.inner.frontier.map_all()?;
        let puddles = self.inner.heap.puddles().clone();
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
    /// The id of its type, or, where that has changed since, of what it has become; 0: none.
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
