//! Stores: a directory of pools, opened by one process at a time.

mod logs;

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError, RwLock, Weak};
use std::time::Duration;

use durum_persist::domain::Domain;
use durum_service::{
    CreateOptions, Embedded, OpenOptions, PoolSpec, PoolSummary, RecoveryReport, Service, StoreInfo,
};

use crate::alloc::Puddle;
use crate::budget::{self, Budget};
use crate::described::{Described, Description};
use crate::engine::Journal;
use crate::error::{Error, Result};
use crate::fault;
use crate::gate::Gate;
use crate::poison::Poison;
use crate::pool::{Pool, PoolInner, PoolOptions};
use crate::space::Space;
use crate::stats::Meter;
use crate::tx::Tx;
use logs::Logs;

pub(crate) use logs::SITES;

/// A number that no other opening in this process has.
pub(crate) fn next_key() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// A pool that is open, or whose last handle is just going.
#[derive(Debug)]
struct OpenPool {
    key: u64,
    pool: Weak<PoolInner>,
}

/// What all handles of an open store share.
pub(crate) struct StoreInner {
    pub(crate) key: u64,
    pub(crate) service: Box<dyn Service>,
    pub(crate) info: StoreInfo,
    pub(crate) space: &'static Space,
    /// Stores stay in this process until they are written back (`file` domain).
    pub(crate) private: bool,
    pub(crate) poison: Arc<Poison>,
    /// Puddles that were given back: their structs stay for late lookups.
    pub(crate) retired: Mutex<Vec<Arc<Puddle>>>,
    /// Open pools by name, and those whose last handle is just going: they leave when they are closed.
    pools: Mutex<HashMap<String, OpenPool>>,
    pool_closed: Condvar,
    /// Held while a pool is opened or made.
    opening: Mutex<()>,
    logs: Logs,
    /// What the threads share that use pools of the Shadow engine.
    journal: OnceLock<Journal>,
    log_max: u64,
    buffered_window: Duration,
    /// The private pages of pools of the Shadow engine.
    pub(crate) budget: Arc<Budget>,
    checkpoint_thread: bool,
    /// Every transaction of the store goes through it.
    pub(crate) gate: Arc<Gate>,
    closed: Arc<Closed>,
    types: RwLock<HashSet<u64>>,
    recovery: Option<RecoveryReport>,
    stats: Option<Meter>,
}

impl std::fmt::Debug for StoreInner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Store")
            .field("path", &self.info.path)
            .finish_non_exhaustive()
    }
}

impl StoreInner {
    fn new(
        service: Box<dyn Service>,
        recovery: Option<RecoveryReport>,
        options: &StoreOptions,
    ) -> Result<Arc<Self>> {
        crate::fault::install();
        let info = service.info();
        let space = Space::reserve(info.base, info.space_size, &info.path)?;
        space.prepare_growth(info.next_address, options.growth, &info.path)?;
        let private = matches!(info.domain, Domain::File);
        fault::store_opens();
        Ok(Arc::new(Self {
            key: next_key(),
            service,
            info,
            space,
            private,
            poison: Arc::new(Poison::default()),
            retired: Mutex::new(Vec::new()),
            pools: Mutex::new(HashMap::new()),
            pool_closed: Condvar::new(),
            opening: Mutex::new(()),
            logs: Logs::default(),
            journal: OnceLock::new(),
            log_max: options.log_max,
            buffered_window: options.buffered_window,
            budget: Budget::new(options.private_max),
            checkpoint_thread: options.checkpoint_thread,
            gate: Gate::new(),
            closed: Arc::default(),
            types: RwLock::new(HashSet::new()),
            recovery,
            stats: Meter::wanted(),
        }))
    }

    fn open_pools(&self) -> MutexGuard<'_, HashMap<String, OpenPool>> {
        self.pools.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The pool has been closed: whoever waits to open it again may.
    pub(crate) fn pool_is_closed(&self, pool: &PoolInner) {
        let mut pools = self.open_pools();
        if pools
            .get(&pool.name)
            .is_some_and(|open| open.key == pool.key)
        {
            pools.remove(&pool.name);
        }
        self.pool_closed.notify_all();
    }

    /// The open pool of this name, after any that is just being closed is.
    fn find_open_pool(&self, name: &str) -> Option<Arc<PoolInner>> {
        let mut pools = self.open_pools();
        loop {
            match pools.get(name).map(|open| open.pool.upgrade()) {
                None => return None,
                Some(Some(pool)) => return Some(pool),
                Some(None) => {
                    pools = self
                        .pool_closed
                        .wait(pools)
                        .unwrap_or_else(PoisonError::into_inner)
                }
            }
        }
    }

    pub(crate) fn open_pool_by_key(&self, key: u64) -> Option<Arc<PoolInner>> {
        // Only the one asked for is upgraded: the last handle must not go while the lock is held.
        let pools = self.open_pools();
        pools.values().find(|pool| pool.key == key)?.pool.upgrade()
    }

    /// What the threads share that use pools of the Shadow engine.
    #[inline]
    pub(crate) fn journal(&self) -> &Journal {
        self.journal.get_or_init(|| {
            let home_offset = (!self.private).then_some(self.info.space_size as usize);
            Journal::new(
                home_offset,
                self.log_max,
                self.buffered_window,
                self.checkpoint_thread,
                self.poison.clone(),
            )
        })
    }

    pub(crate) fn has_open_pool(&self, key: u64) -> bool {
        self.open_pools().values().any(|pool| pool.key == key)
    }

    /// The id of a Rust type, registered with the store.
    #[inline]
    pub(crate) fn ensure_type<T: Described>(&self) -> Result<u64> {
        self.ensure_described(T::description())
    }

    /// The id of a described type, registered with the store.
    #[inline]
    pub(crate) fn ensure_described(&self, description: &Description) -> Result<u64> {
        if !description.is_registered_with(self.key) {
            self.register(description)?;
        }
        Ok(description.id)
    }

    #[cold]
    fn register(&self, description: &Description) -> Result<()> {
        if !self
            .types
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .contains(&description.id)
        {
            for (id, text) in &description.texts {
                self.service.register_type(*id, text)?;
            }
            let mut types = self.types.write().unwrap_or_else(PoisonError::into_inner);
            types.extend(description.texts.iter().map(|(id, _)| *id));
        }
        description
            .registered_with
            .store(self.key, Ordering::Relaxed);
        Ok(())
    }

    pub(crate) fn type_name(&self, id: u64) -> String {
        if id == 0 {
            return "untyped bytes".into();
        }
        match self.service.type_text(id) {
            Ok(Some(text)) => {
                crate::described::name_in(&text).unwrap_or_else(|| format!("{id:#018x}"))
            }
            _ => format!("{id:#018x}"),
        }
    }
}

impl Drop for StoreInner {
    fn drop(&mut self) {
        // No pool is open any more, so no transaction runs and every log is drained.
        self.logs.unmap();
        if let Some(stats) = &self.stats
            && !fault::forked()
        {
            stats.tell(&self.info.path, self.budget.given_back());
        }
        let result = match fault::forked() {
            // The parent goes on.
            true => Ok(()),
            // Where it is poisoned the next opener recovers.
            false => (self.poison.check()).and_then(|()| Ok(self.service.close()?)),
        };
        // Before anybody is told: who then forks may open stores in the child.
        fault::store_is_closed();
        self.closed.set(result);
    }
}

/// Tells whoever waits that the last handle is gone, and how closing went.
#[derive(Debug, Default)]
struct Closed {
    result: Mutex<Option<Result<()>>>,
    changed: Condvar,
}

impl Closed {
    fn set(&self, result: Result<()>) {
        if let Err(error) = &result {
            tracing::warn!(%error, "a store could not be closed in order; the next opener recovers it");
        }
        *self.result.lock().unwrap_or_else(PoisonError::into_inner) = Some(result);
        self.changed.notify_all();
    }

    fn wait(&self, timeout: Duration) -> Option<Result<()>> {
        let result = self.result.lock().unwrap_or_else(PoisonError::into_inner);
        let (mut result, _) = self
            .changed
            .wait_timeout_while(result, timeout, |result| result.is_none())
            .unwrap_or_else(PoisonError::into_inner);
        result.take()
    }
}

/// How long `Store::close` waits for threads that are just ending and give their logs back.
const CLOSE_WAIT: Duration = Duration::from_secs(5);

pub(crate) fn random_bytes<const N: usize>() -> Result<[u8; N]> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes)
        .map_err(|error| Error::system("drawing random bytes", std::io::Error::other(error)))?;
    Ok(bytes)
}

/// How a store is made and opened.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct StoreOptions {
    /// The persistence domain, where it should not be detected. Claiming `dax` for a file system that is not loses
    /// data.
    pub domain: Option<Domain>,
    /// The base of the store's address range, a multiple of 2 MiB; fixed when the store is made. Default:
    /// 0x2000_0000_0000.
    pub base: Option<u64>,
    /// Bytes of log that the pools of the Shadow engine may have together before commits wait for home updates; default
    /// 64 MiB. It bounds what a recovery has to read and write, and so how long that takes: 1.5 ms for each MiB, 0.1 s
    /// for the default.
    ///
    /// On mapped memory each place that a large transaction changes counts as 768 bytes more, because it may be a page
    /// of its own: a commit that leaves more than so much to recover brings it home before it returns. On the `file`
    /// domain, where a page takes up to 10 us, its bytes count alone. Transactions that are larger take longer if they
    /// are cut off at their very end, and so do many threads: each that has committed holds 256 KiB until it ends.
    pub log_max: u64,
    /// What a crash may lose of transactions that are [`Durability::Buffered`](crate::Durability::Buffered), as a time
    /// before it; default 10 ms. A thread of the store's writes them after half of it; the other half is for the write,
    /// and for a machine too busy to run that thread at once. Zero makes them durable when their commits return.
    pub buffered_window: Duration,
    /// Bytes of private memory that the pools of the Shadow engine may keep together; default a quarter of the memory
    /// that the process may use. Above it, threads that commit give pages back which hold nothing but what is at home,
    /// until half of it is left: up to a millisecond in a commit, on the `file` domain a few syncs, while other
    /// transactions wait.
    ///
    /// A page counts when changes of it go home, so that up to [`StoreOptions::log_max`] may come on top. Zero gives
    /// pages back after every commit, which is for tests; `u64::MAX` never does.
    ///
    /// What a program stores in a pool without a transaction is kept, in its page. A thread that stores there in the
    /// very moment waits for it, in a handler for SIGSEGV: it must not block that signal, nor may a system call store
    /// there (it would fail with EFAULT). A program that takes the handler away keeps its pages.
    pub private_max: u64,
    /// Bytes of addresses for the puddles of the store, a multiple of 2 MiB; fixed when the store is made. Default: 1
    /// TiB.
    ///
    /// An opener reserves twice as much, which takes no memory. Where its limit of address space (`ulimit -v`,
    /// systemd's `LimitAS`) is lower, it reserves what the puddles need that it maps, and [`StoreOptions::growth`].
    pub space: Option<u64>,
    /// Bytes by which pools may grow while the store is open, for which addresses are reserved when it is opened, where
    /// the process cannot reserve all of the space. Default: 0: pools grow until the limit is met, and an allocation
    /// fails with `AddressSpace`.
    pub growth: u64,
    /// On the `file` domain, whether a thread of the store's writes home what pools of the Shadow engine have logged
    /// (default), so that no commit waits for it. Without, commits do it. It starts with the first commits that need
    /// it, and ends when a pool is closed; the next commits start another one.
    pub checkpoint_thread: bool,
}

impl Default for StoreOptions {
    fn default() -> Self {
        Self {
            domain: None,
            base: None,
            space: None,
            growth: 0,
            log_max: 64 << 20,
            buffered_window: Duration::from_millis(10),
            private_max: budget::default_max(),
            checkpoint_thread: true,
        }
    }
}

impl StoreOptions {
    /// The defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets [`StoreOptions::domain`].
    #[must_use]
    pub fn domain(mut self, domain: Domain) -> Self {
        self.domain = Some(domain);
        self
    }

    /// Sets [`StoreOptions::log_max`].
    #[must_use]
    pub fn log_max(mut self, bytes: u64) -> Self {
        self.log_max = bytes;
        self
    }

    /// Sets [`StoreOptions::buffered_window`].
    #[must_use]
    pub fn buffered_window(mut self, window: Duration) -> Self {
        self.buffered_window = window;
        self
    }

    /// Sets [`StoreOptions::private_max`].
    #[must_use]
    pub fn private_max(mut self, bytes: u64) -> Self {
        self.private_max = bytes;
        self
    }

    /// Sets [`StoreOptions::checkpoint_thread`].
    #[must_use]
    pub fn checkpoint_thread(mut self, wanted: bool) -> Self {
        self.checkpoint_thread = wanted;
        self
    }

    /// Sets [`StoreOptions::space`].
    #[must_use]
    pub fn space(mut self, bytes: u64) -> Self {
        self.space = Some(bytes);
        self
    }

    /// Sets [`StoreOptions::growth`].
    #[must_use]
    pub fn growth(mut self, bytes: u64) -> Self {
        self.growth = bytes;
        self
    }

    /// Sets [`StoreOptions::base`].
    #[must_use]
    pub fn base(mut self, base: u64) -> Self {
        self.base = Some(base);
        self
    }
}

/// An open store. Handles are cheap to clone and may be used from any thread.
///
/// The store closes when the last handle to it and to its pools is gone. If the process dies before, nothing that was
/// committed is lost, except for buffered transactions within their window; the next opener recovers.
#[derive(Clone, Debug)]
pub struct Store {
    pub(crate) inner: Arc<StoreInner>,
}

impl Store {
    /// Makes a store at `path`, which must not exist yet, and opens it. It exists durably when this returns.
    ///
    /// # Errors
    /// `StoreExists`, I/O errors; nothing is left behind. `AddressConflict` where something else of this process lies
    /// at its addresses: the store was made, and opens in another process, or here with another [`StoreOptions::base`]
    /// for a new one.
    pub fn create(path: impl AsRef<Path>, options: StoreOptions) -> Result<Self> {
        let defaults = CreateOptions::default();
        let create = CreateOptions {
            domain: options.domain,
            base: options.base.unwrap_or(defaults.base),
            space_size: options.space.unwrap_or(defaults.space_size),
            ..defaults
        };
        if fault::forked() {
            return Err(Error::Forked);
        }
        let service = Embedded::create(path.as_ref(), &create)?;
        Ok(Self {
            inner: StoreInner::new(Box::new(service), None, &options)?,
        })
    }

    /// Opens the store at `path`. If its last user died, its logs are replayed first.
    ///
    /// # Errors
    /// `StoreMissing`, `StoreBusy`, `Version`, `Damaged` and others, with what to do; the store is as before.
    pub fn open(path: impl AsRef<Path>, options: StoreOptions) -> Result<Self> {
        let open = OpenOptions {
            domain: options.domain,
            ..OpenOptions::default()
        };
        if fault::forked() {
            return Err(Error::Forked);
        }
        Self::over(Embedded::open(path.as_ref(), open)?, &options)
    }

    /// A store that the service has opened.
    pub(crate) fn over(service: Embedded, options: &StoreOptions) -> Result<Self> {
        let report = service.recovery_report().clone();
        Ok(Self {
            inner: StoreInner::new(Box::new(service), Some(report), options)?,
        })
    }

    /// Opens the store at `path`, or makes it if nothing is there.
    ///
    /// # Errors
    /// As for [`Store::open`] and [`Store::create`].
    pub fn open_or_create(path: impl AsRef<Path>, options: StoreOptions) -> Result<Self> {
        use durum_service::Error::{StoreExists, StoreMissing};
        let path = path.as_ref();
        match Self::open(path, options.clone()) {
            // Nothing is there, or what a crash left of a store that was not finished.
            Err(Error::Store(StoreMissing {
                can_be_made: true, ..
            })) => match Self::create(path, options.clone()) {
                // Somebody else has made it meanwhile.
                Err(Error::Store(StoreExists { .. })) => Self::open(path, options),
                made => made,
            },
            opened => opened,
        }
    }

    /// Closes the store, and tells whether that went well. When it returns, the store can be opened again.
    ///
    /// Dropping the last handle closes the store too, but a thread that ends at the same moment may hold it a little
    /// longer.
    ///
    /// # Errors
    /// `StillOpen` when other handles to the store or to its pools remain: it closes with the last of them. Store
    /// errors when the end could not be recorded: nothing is lost, the next opener recovers.
    pub fn close(self) -> Result<()> {
        let (closed, path) = (self.inner.closed.clone(), self.inner.info.path.clone());
        drop(self);
        match closed.wait(CLOSE_WAIT) {
            Some(result) => result,
            None => Err(Error::StillOpen { store: path }),
        }
    }

    /// What this store is.
    pub fn info(&self) -> &StoreInfo {
        &self.inner.info
    }

    /// What recovery did when this handle opened the store; `None` for a store that it made.
    pub fn recovery(&self) -> Option<&RecoveryReport> {
        self.inner.recovery.as_ref()
    }

    /// The descriptor's text (docs/format/types.md) of a type that is registered with the store, by its id.
    ///
    /// # Errors
    /// Store errors.
    pub fn type_text(&self, id: u64) -> Result<Option<String>> {
        Ok(self.inner.service.type_text(id)?)
    }

    /// The pools of the store, by name.
    ///
    /// # Errors
    /// Store errors.
    pub fn pools(&self) -> Result<Vec<PoolSummary>> {
        Ok(self.inner.service.pools()?)
    }

    /// Gives back every private page that holds nothing but what is at home, now and whatever the limit is. How many
    /// those were; `None` if a transaction was open. For tests.
    ///
    /// # Errors
    /// `Poisoned`, `System`.
    #[doc(hidden)]
    pub fn give_pages_back(&self) -> Result<Option<usize>> {
        self.check()?;
        self.inner.journal().give_all_pages_back(&self.inner)
    }

    /// One step of what the checkpointer does: brings home what is durable, or the part of it that makes a batch. For
    /// tests.
    ///
    /// # Errors
    /// `Poisoned`, `StorageFull`, `System`.
    #[doc(hidden)]
    pub fn step_checkpoint(&self) -> Result<()> {
        self.check()?;
        self.inner.journal().bring_batch_home()
    }

    /// From now on commits of Shadow pools bring nothing home, and go on as if they did: what they have changed is lost
    /// in the end. For a benchmark of what home updates take.
    #[doc(hidden)]
    pub fn dangerous_skip_home_updates(&self) {
        self.inner.journal().skip_home_updates();
    }

    /// Private pages that count for [`StoreOptions::private_max`], and how many were given back so far. For tests.
    #[doc(hidden)]
    pub fn private_pages(&self) -> (usize, u64) {
        (self.inner.budget.pages(), self.inner.budget.given_back())
    }

    /// Makes a pool and opens it. It exists durably when this returns.
    ///
    /// # Errors
    /// `PoolExists`, `StorageFull`, `EngineMissing` and others; nothing is left behind.
    pub fn create_pool(&self, name: &str, options: PoolOptions) -> Result<Pool> {
        self.check()?;
        if crate::engine::engine(options.engine).is_none() {
            return Err(Error::EngineMissing {
                pool: name.into(),
                engine: options.engine.name(),
            });
        }
        let mut spec = PoolSpec::new(options.engine);
        spec.root_puddle_size = options.root_puddle_size;
        let _one_at_a_time = self.opening();
        self.inner.find_open_pool(name);
        let grant = self.inner.service.create_pool(name, &spec)?;
        self.enter(grant, &options).inspect_err(|_| {
            // A pool that cannot be mapped here must not stay behind.
            let _ = self.inner.service.remove_pool(name);
        })
    }

    /// Opens a pool; a pool that is open in this process gives another handle to it.
    ///
    /// # Errors
    /// `PoolMissing`, `PoolQuarantined`, `PoolRefused`, `AddressConflict`, `EngineMissing` and others, with what to do.
    pub fn open_pool(&self, name: &str, options: PoolOptions) -> Result<Pool> {
        self.check()?;
        let _one_at_a_time = self.opening();
        if let Some(inner) = self.inner.find_open_pool(name) {
            return Ok(Pool { inner });
        }
        let grant = self.inner.service.open_pool(name)?;
        self.enter(grant, &options)
    }

    /// Opens a pool, or makes it if the store has none of this name.
    ///
    /// # Errors
    /// As for [`Store::open_pool`] and [`Store::create_pool`].
    pub fn open_or_create_pool(&self, name: &str, options: PoolOptions) -> Result<Pool> {
        match self.open_pool(name, options.clone()) {
            Err(Error::Store(durum_service::Error::PoolMissing { .. })) => {
                self.create_pool(name, options)
            }
            other => other,
        }
    }

    /// Gives back what this thread keeps for its transactions: a log, and slabs that it allocates in; as when it ends.
    /// For a thread that opens a store and leaves the work to others: a thread that commits alone is faster. Nothing
    /// changes for one with a transaction open, or that has had none.
    pub fn leave(&self) {
        if !crate::fault::forked() {
            Tx::leave_store(&self.inner);
        }
    }

    /// Removes a pool and everything in it. It is durably gone when this returns.
    ///
    /// # Errors
    /// `PoolMissing`, `PoolOpen`.
    pub fn remove_pool(&self, name: &str) -> Result<()> {
        self.check()?;
        let _one_at_a_time = self.opening();
        // A pool whose last handle is just going is waited for; an open one is refused by the service.
        self.inner.find_open_pool(name);
        Ok(self.inner.service.remove_pool(name)?)
    }

    fn enter(&self, grant: durum_service::PoolGrant, options: &PoolOptions) -> Result<Pool> {
        let inner = PoolInner::open(self.inner.clone(), grant, options)?;
        let open = OpenPool {
            key: inner.key,
            pool: Arc::downgrade(&inner),
        };
        self.inner.open_pools().insert(inner.name.clone(), open);
        self.inner.prepare_log(&inner);
        Ok(Pool { inner })
    }

    fn opening(&self) -> MutexGuard<'_, ()> {
        self.inner
            .opening
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn check(&self) -> Result<()> {
        if fault::forked() {
            return Err(Error::Forked);
        }
        self.inner.poison.check()
    }
}
