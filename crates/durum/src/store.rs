//! Stores: a directory of pools, opened by one process at a time.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use durum_service::{
    CreateOptions, Export, ExportOptions, ExportReport, ImportOptions, ImportReport, OpenOptions,
    PoolSpec, PoolSummary, ReadOnlyStore, RecoveryReport, StoreInfo, export_served,
};
use tracing::info_span;

use crate::demand::Follow;
use crate::engine::{self, Engines};
use crate::error::{Error, Result};
use crate::fault;
use crate::observe;
use crate::opened::{OpenPool, Pool, PoolInner, Store, StoreInner, tie};
use crate::options::{PoolOptions, StoreOptions};
use crate::primitive::locked;
use crate::services::{self, Opened};
use crate::snapshot;
use crate::tx::Tx;

/// How long `Store::close` waits for threads that are just ending and give their logs back.
const CLOSE_WAIT: Duration = Duration::from_secs(5);

impl Store {
    /// Makes a store at `path`, which must not exist yet, and opens it. It exists durably when this returns.
    ///
    /// # Errors
    /// `StoreExists`, I/O errors; nothing is left behind. `AddressConflict` where something else of this process lies
    /// at its addresses: the store was made, and opens in another process, or here with another [`StoreOptions::base`]
    /// for a new one.
    pub fn create(path: impl AsRef<Path>, options: StoreOptions) -> Result<Self> {
        let _span = info_span!("create_store", store = %path.as_ref().display()).entered();
        let defaults = CreateOptions::default();
        let create = CreateOptions {
            domain: options.domain,
            base: options.base.unwrap_or(defaults.base),
            space_size: options.space.unwrap_or(defaults.space_size),
            ..defaults
        };
        fault::check_forked()?;
        let service = services::create(path.as_ref(), &create)?;
        Ok(Self::of(StoreInner::new(service.into(), &options)?))
    }

    /// Opens the store at `path`. If its last user died, its logs are replayed first.
    ///
    /// `durum:` names the store of this machine's service (`durumd`), `durum+unix:PATH` that of the service at a
    /// socket: other programs use it at the same time, each pool being one program's. A directory of such a name is
    /// `./durum:`.
    ///
    /// # Errors
    /// `ServiceGone` where no service answers; `StoreMissing`, `StoreBusy`, `Version`, `Damaged` and others, with what
    /// to do; the store is as before.
    pub fn open(path: impl AsRef<Path>, options: StoreOptions) -> Result<Self> {
        let _span = info_span!("open_store", store = %path.as_ref().display()).entered();
        let open = OpenOptions {
            domain: options.domain,
            ..OpenOptions::default()
        };
        fault::check_forked()?;
        Self::over(services::open(path.as_ref(), open)?, &options)
    }

    /// A store that a service has opened.
    pub(crate) fn over(opened: Opened, options: &StoreOptions) -> Result<Self> {
        Ok(Self::of(StoreInner::new(opened, options)?))
    }

    fn of(inner: Arc<StoreInner>) -> Self {
        let tie = tie(&inner, follow);
        snapshot::attend(&inner);
        observe::attend(&inner);
        Self { inner, tie }
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
    /// Dropping the last handle closes the store too, and tells nobody of an error.
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

    /// The socket at which this program answers those who watch it ([`StoreOptions::observe`]).
    pub fn observed_at(&self) -> Option<&Path> {
        self.inner.observed.get().map(|observed| observed.path())
    }

    /// Whether somebody wants that this program closes the store, which a service serves, and will end it if it does
    /// not (`durum kick`). A program that runs for long looks now and then.
    pub fn is_asked_to_leave(&self) -> bool {
        self.inner.service.is_asked_to_leave()
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

    /// Makes a pool and opens it. It exists durably when this returns.
    ///
    /// # Errors
    /// `PoolExists`, `StorageFull`, `EngineMissing` and others; nothing is left behind.
    pub fn create_pool(&self, name: &str, options: PoolOptions) -> Result<Pool> {
        // Outside of what others may wait for: whoever hears of it may be code of the program.
        let _span = info_span!("create_pool", pool = name).entered();
        self.check()?;
        if options.read_only {
            return Err(Error::ReadOnly { pool: name.into() });
        }
        if engine::engine(options.engine).is_none() {
            return Err(Error::EngineMissing {
                pool: name.into(),
                engine: options.engine.name(),
            });
        }
        let mut spec = PoolSpec::new(options.engine);
        spec.root_puddle_size = options.root_puddle_size;
        let store = &self.inner;
        let made = store.while_others_wait(|| {
            let _one_at_a_time = locked(&store.opening);
            store.find_open_pool(name);
            let place = store
                .neighbours
                .place(|service| service.create_pool(name, &spec));
            enter(store, place?, &options, engine::ALL).inspect_err(|_| {
                // A pool that cannot be mapped here must not stay behind.
                let _ = store.service.remove_pool(name);
            })
        })?;
        Ok(self.prepared(made))
    }

    /// Opens a pool; a pool that is open in this process gives another handle to it.
    ///
    /// With [`PoolOptions::read_only`] any number of programs may have it open at the same time, where a service serves
    /// the store: they share the memory, and nobody writes it.
    ///
    /// # Errors
    /// `PoolBusy` while another program writes it, or while others read it and it is to be written; `PoolOpen` where
    /// this process has it open otherwise; `PoolMissing`, `PoolQuarantined`, `PoolRefused`, `EngineMissing`
    /// and others, with what to do. `Unmovable` where another store of the process lies at its addresses and this one
    /// cannot make way; `AddressConflict` where something else of the process does. `PoolInterrupted` where a program
    /// has ended in sections, and no code has completed them ([`StoreOptions::run_code`]).
    pub fn open_pool(&self, name: &str, options: PoolOptions) -> Result<Pool> {
        let _span = info_span!("open_pool", pool = name).entered();
        match self.open_whole_pool(name, &options) {
            // Others open pools of this store meanwhile. Code that another thread has run may have it now.
            Err(Error::Store(
                durum_service::Error::PoolInterrupted { .. }
                | durum_service::Error::PoolBusy { .. },
            )) if self.inner.options.run_code && self.inner.completer.is_some() => {
                self.complete_by_code(name)?;
                // Where it was not completed, the error says why.
                self.open_whole_pool(name, &options)
            }
            opened => opened,
        }
    }

    /// Has code complete what programs have left in this pool, each by what it has deposited, in a sandbox. Whether any
    /// was completed: all of that is durable when this returns. [`Store::open_pool`] does it by itself, unless
    /// [`StoreOptions::run_code`] is off. Nothing happens in a store that another process serves, which does it when a
    /// program is gone.
    ///
    /// # Errors
    /// Of the store. Where code fails there is none: `PoolInterrupted` says why, when the pool is opened.
    pub fn complete_by_code(&self, pool: &str) -> Result<bool> {
        self.check()?;
        let completer = self.inner.completer.as_ref();
        completer.map_or(Ok(false), |completer| completer.complete(pool))
    }

    fn open_whole_pool(&self, name: &str, options: &PoolOptions) -> Result<Pool> {
        self.check()?;
        let store = &self.inner;
        let opened = store.while_others_wait(|| {
            let _one_at_a_time = locked(&store.opening);
            if let Some(open) = PoolInner::find(store, name) {
                if open.is_read_only == options.read_only {
                    return Ok(open);
                }
                return Err(Error::Store(durum_service::Error::PoolOpen {
                    name: name.into(),
                    operation: match options.read_only {
                        true => "opened for reading only",
                        false => "opened for writing",
                    },
                }));
            }
            match open(store, name, options) {
                // Another store of this process, or one that came to it through the service, is there since.
                Err(Error::Store(durum_service::Error::AddressConflict { .. }))
                    if store.neighbours.make_way()? =>
                {
                    open(store, name, options)
                }
                opened => opened,
            }
        })?;
        Ok(self.prepared(opened))
    }

    /// Opens a pool, or makes it if the store has none of this name. One that is only read is not made: `PoolMissing`.
    ///
    /// # Errors
    /// As for [`Store::open_pool`] and [`Store::create_pool`].
    pub fn open_or_create_pool(&self, name: &str, options: PoolOptions) -> Result<Pool> {
        match self.open_pool(name, options.clone()) {
            Err(Error::Store(durum_service::Error::PoolMissing { .. })) if !options.read_only => {
                self.create_pool(name, options)
            }
            other => other,
        }
    }

    /// Exports a pool that nobody has open for writing: makes a directory `place`, which must not exist yet, with the
    /// pool as it is in memory and the descriptors of its types (Puddles, EuroSys'24, §3.5). It is durable when this
    /// returns.
    ///
    /// ```
    /// use durum::{ExportOptions, ImportOptions, PoolOptions, Store, StoreOptions};
    /// # let directory = tempfile::tempdir()?;
    /// # let path = |name: &str| directory.path().join(name);
    /// let store = Store::create(path("store"), StoreOptions::default())?;
    /// drop(store.create_pool("words", PoolOptions::default())?);
    /// store.export_pool("words", path("words.export"), &ExportOptions::default())?;
    ///
    /// let other = Store::create(path("other"), StoreOptions::default())?;
    /// let report = other.import(path("words.export"), &ImportOptions::default())?;
    /// assert_eq!(report.pools, ["words"]);
    /// let words = other.open_pool("words", PoolOptions::default())?;
    /// # drop(words);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `PoolMissing`; `PoolOpen` where this program has it open ([`Pool::snapshot`] exports it then), `PoolBusy` where
    /// another one writes it, which is asked to show it where [`ExportOptions::wait`] says so;
    /// `PointersLeave` where pointers lead to other pools, unless [`ExportOptions::with_referenced`]; `ExportExists`,
    /// `StorageFull` and others. Nothing is left behind.
    pub fn export_pool(
        &self,
        name: &str,
        place: impl AsRef<Path>,
        options: &ExportOptions,
    ) -> Result<ExportReport> {
        self.check()?;
        let store = &self.inner;
        store.while_others_wait(|| {
            let _one_at_a_time = locked(&store.opening);
            // A pool whose last handle is just going is waited for; an open one is refused by the service.
            store.find_open_pool(name);
        });
        // Without the lock: it takes long, and whoever is told of progress may access any pool.
        let mut reader = ReadOnlyStore::beside(self.inner.service.clone())?;
        Ok(export_served(&mut reader, name, place.as_ref(), options)?)
    }

    /// Imports what [`Store::export_pool`] has exported, from wherever it came: as pools of the same names, or under
    /// another one. They are durable when this returns. On the same file system the export's files become the store's
    /// and the export is gone, unless [`ImportOptions::copies`]: that takes as long for 16 bytes as for 16 MiB.
    ///
    /// Each puddle's contents are compared with their sums before it is first mapped, and its pointers rewritten, where
    /// it could not have its addresses here.
    ///
    /// # Errors
    /// `PoolExists`; `ImportRefused`, `Format`, `Damaged`, `FileMissing` for what is no whole export, `StorageFull` and
    /// others. Nothing has changed, neither here nor there.
    pub fn import(&self, place: impl AsRef<Path>, options: &ImportOptions) -> Result<ImportReport> {
        self.check()?;
        let export = Export::open(place.as_ref())?;
        // The service knows now what to keep out of the way of. Without the lock, as for an export: another store that
        // grows there meanwhile is met when the pool is opened, which makes way then.
        self.inner.neighbours.place(|_| Ok(()))?;
        Ok(self.inner.service.import(&export, options)?)
    }

    /// Gives back what this thread keeps for its transactions: a log, and slabs that it allocates in; as when it ends.
    /// For a thread that opens a store and leaves the work to others: a thread that commits alone is faster. Nothing
    /// changes for one with a transaction open, or that has had none.
    pub fn leave(&self) {
        if !fault::forked() {
            Tx::leave_store(&self.inner);
        }
    }

    /// Removes a pool and everything in it. It is durably gone when this returns.
    ///
    /// # Errors
    /// `PoolMissing`, `PoolOpen`.
    pub fn remove_pool(&self, name: &str) -> Result<()> {
        self.check()?;
        let store = &self.inner;
        store.while_others_wait(|| {
            let _one_at_a_time = locked(&store.opening);
            // A pool whose last handle is just going is waited for; an open one is refused by the service.
            store.find_open_pool(name);
            Ok(store.service.remove_pool(name)?)
        })
    }

    /// Closes the pools that are open because pointers led there ([`StoreOptions::follow`]) and that the program has no
    /// handle of, so that others may have them. The next access opens them again.
    pub fn let_go(&self) {
        if !fault::forked() {
            self.tie.let_go();
        }
    }

    /// A handle of a pool that has just been opened, or was open.
    pub(crate) fn prepared(&self, inner: Arc<PoolInner>) -> Pool {
        inner.engine.prepare_log(&self.inner);
        let tie = Some(self.tie.clone());
        Pool { inner, _tie: tie }
    }

    pub(crate) fn check(&self) -> Result<()> {
        fault::check_forked()?;
        self.inner.poison.check()
    }
}

/// Opens a pool that is not open.
fn open(store: &Arc<StoreInner>, name: &str, options: &PoolOptions) -> Result<Arc<PoolInner>> {
    let grant = match options.read_only {
        true => store.service.read_pool(name)?,
        false => store.service.open_pool(name)?,
    };
    enter(store, grant, options, engine::ALL)
}

pub(crate) fn enter(
    store: &Arc<StoreInner>,
    grant: durum_service::PoolGrant,
    options: &PoolOptions,
    engines: Engines,
) -> Result<Arc<PoolInner>> {
    let pool = PoolInner::open(store.clone(), grant, options, engines)?;
    let open = OpenPool {
        key: pool.key,
        pool: Arc::downgrade(&pool) as _,
        puddles: pool.heap.shared_puddles(),
        engine: pool.kind,
        is_read_only: pool.is_read_only,
    };
    store.open_pools().insert(pool.name.clone(), open);
    Ok(pool)
}

/// Opens a pool because an access led there, as far as the user may. A thread may be stopped at the access: its first
/// log, which takes more locks, is made by the transaction that needs one. Nor does the store make way for others: the
/// pointer would lead elsewhere then.
fn follow(store: &Arc<StoreInner>, name: &str, follow: Follow) -> Result<Arc<PoolInner>> {
    use durum_service::Error::NotPermitted;
    store.poison.check()?;
    let _one_at_a_time = locked(&store.opening);
    if let Some(open) = PoolInner::find(store, name) {
        return Ok(open);
    }
    let (writing, reading) = (PoolOptions::new(), PoolOptions::new().read_only(true));
    match follow {
        Follow::Writing => match open(store, name, &writing) {
            Err(Error::Store(NotPermitted { .. })) => open(store, name, &reading),
            opened => opened,
        },
        _ => open(store, name, &reading),
    }
}
