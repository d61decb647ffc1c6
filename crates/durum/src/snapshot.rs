//! Snapshots: pools as they are at one moment, exported while their program goes on
//! (`docs/internals/snapshots.md`).

use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard};
use std::thread;
use std::time::{Duration, Instant};

use durum_format::Uuid;
use durum_persist::signals::Blocked;
use durum_persist::{Site, record as recorder};
use durum_service::{
    Asked, Compression, ExportOptions, ExportReport, Picture, ProgressFn, ReadOnlyStore, ShownFile,
    export_picture,
};

use crate::alloc::Puddle;
use crate::before_images;
use crate::error::{Error, Result};
use crate::fault::check_forked;
use crate::gate::Closed;
use crate::kept_lines;
use crate::opened::{Pool, PoolInner, StoreInner};
use crate::primitive::locked;
use crate::tx::Tx;

/// Steps that a test leaves out.
const GATE: Site = Site("snapshot: close the gate");

/// The first time for which transactions are kept waiting by one that is open, and the longest, which is a part of the
/// time for which a moment is waited for, if that is more. In between they go on for four times as long.
const FIRST_TRY: Duration = Duration::from_millis(1);
const LONGEST_TRY: Duration = Duration::from_millis(20);
const WAIT_PART: u32 = 10;
const REST: u32 = 4;

/// Pieces of memory for kept lines that are made ahead: some more than are needed while a puddle is copied.
const SPARES: usize = 64;

/// How often it is looked whether somebody still waits for what is shown.
const LOOKING: Duration = Duration::from_millis(100);

/// How a snapshot is made.
#[derive(Clone)]
#[non_exhaustive]
pub struct SnapshotOptions {
    /// Other pools of the store that are shown as of the same moment, in the same export.
    pub with: Vec<Pool>,
    /// For so long a moment is waited for at which no transaction of the store is open. Default: 10 seconds.
    pub wait: Duration,
    /// One file instead of a directory: a tar archive of the same contents.
    pub archive: Option<Compression>,
    /// Called as the snapshot goes on. It may use the pools, but makes no snapshot, which would wait for this one.
    pub progress: Option<Arc<ProgressFn>>,
}

impl Default for SnapshotOptions {
    fn default() -> Self {
        Self {
            with: Vec::new(),
            wait: Duration::from_secs(10),
            archive: None,
            progress: None,
        }
    }
}

impl std::fmt::Debug for SnapshotOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SnapshotOptions")
            .field("with", &self.with)
            .field("wait", &self.wait)
            .field("archive", &self.archive)
            .field("progress", &self.progress.is_some())
            .finish()
    }
}

impl SnapshotOptions {
    /// Of one pool, in a directory.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Shows this pool of the store as of the same moment.
    #[must_use]
    pub fn with(mut self, pool: &Pool) -> Self {
        self.with.push(pool.clone());
        self
    }

    /// Waits for so long for a moment at which no transaction is open.
    #[must_use]
    pub fn wait(mut self, wait: Duration) -> Self {
        self.wait = wait;
        self
    }

    /// Makes one file.
    #[must_use]
    pub fn archive(mut self, compression: Compression) -> Self {
        self.archive = Some(compression);
        self
    }

    /// Calls `progress` as the snapshot goes on.
    #[must_use]
    pub fn progress(mut self, progress: Arc<ProgressFn>) -> Self {
        self.progress = Some(progress);
        self
    }
}

impl Pool {
    /// Exports the pool as it is at one moment while the program goes on: all that was committed before, durable or
    /// not, and nothing that is committed later. What is made, and what becomes of it, is as for
    /// [`Store::export_pool`](crate::Store::export_pool). The export is durable when this returns.
    ///
    /// Transactions of the store wait for a moment in which none is open, and for what is logged to come home; then
    /// they go on, and whoever changes a line that is not exported yet keeps what it held. So memory is needed for the
    /// largest puddle, and for what changes meanwhile. Puddles that become empty are given back later. Snapshots of a
    /// store are made one after the other.
    ///
    /// What the program stores without announcing it (locks, what it makes durable by [`Pool::persist`], what a
    /// [`RawLog`](crate::RawLog) is about at that moment) may be in the export as it was at any time.
    ///
    /// ```
    /// use durum::{PoolOptions, SnapshotOptions, Store, StoreOptions};
    /// # let directory = tempfile::tempdir_in("/dev/shm")?;
    /// # let path = |name: &str| directory.path().join(name);
    /// let store = Store::create(path("store"), StoreOptions::new())?;
    /// let words = store.create_pool("words", PoolOptions::new())?;
    /// words.snapshot(path("words.snapshot"), &SnapshotOptions::new())?;
    ///
    /// let backup = Store::create(path("backup"), StoreOptions::new())?;
    /// backup.import(path("words.snapshot"), &Default::default())?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `SnapshotRefused` on a thread that has a transaction of the store open, for a pool of another store, and for one
    /// that sections change;
    /// `ReadOnly`; `SnapshotWaits` where a transaction stays open; `PointersLeave` for pointers to pools that are not
    /// shown; `ExportExists`, `StorageFull` and others. Nothing is left behind.
    pub fn snapshot(
        &self,
        place: impl AsRef<Path>,
        options: &SnapshotOptions,
    ) -> Result<ExportReport> {
        recorder::api("snapshot");
        check_forked()?;
        let store = &self.inner.store;
        let mut pools = vec![&*self.inner];
        for pool in &options.with {
            if pools.iter().all(|known| known.key != pool.inner.key) {
                pools.push(&pool.inner);
            }
        }
        for pool in &pools {
            check(pool, store)?;
        }
        if Tx::is_open_on(store) {
            let reason =
                "a transaction is open on this thread, which it would wait for; end that first";
            return Err(refused(&self.inner, reason));
        }
        let _one_at_a_time = locked(&store.snapshots);
        for pool in &pools {
            pool.frontier.map_all()?;
        }
        let shown = Shown::begin(store, &pools, options.wait)?;
        let names: Vec<&str> = pools.iter().map(|pool| pool.name.as_str()).collect();
        let reader = ReadOnlyStore::beside(store.service.clone())?;
        let export = ExportOptions {
            archive: options.archive,
            progress: options.progress.clone(),
            ..ExportOptions::default()
        };
        Ok(export_picture(
            &reader,
            &names,
            &shown,
            place.as_ref(),
            &export,
        )?)
    }
}

/// Shows pools of a store to others, where its service asks for that (`durum export` of a pool in use).
pub(crate) fn attend(store: &Arc<StoreInner>) {
    let (known, all) = (Arc::downgrade(store), store.asked.clone());
    let begin = move |asked| {
        if !all.add(asked) {
            return;
        }
        let (known, of_thread) = (known.clone(), all.clone());
        let show = move || {
            while let Some(asked) = of_thread.next() {
                if let Some(store) = known.upgrade() {
                    answer(&store, asked);
                }
            }
        };
        // It inherits the mask: the program's handlers run in the program's threads.
        let _blocked = Blocked::all();
        let thread = thread::Builder::new().name("durum-snapshot".to_owned());
        if let Err(error) = thread.spawn(show) {
            all.forget();
            tracing::warn!(%error, "no thread to show a pool that somebody wants to see");
        }
    };
    store.service.when_asked_to_show(Arc::new(begin));
}

fn answer(store: &Arc<StoreInner>, asked: Asked) {
    let Err(problem) = show(store, asked) else {
        return;
    };
    let problem = problem.to_string();
    if let Err(error) = store.service.end_showing(asked, Err(&problem)) {
        tracing::debug!(problem, %error, "nobody waits any more for a pool that was to be shown");
    }
}

/// Writes what the puddles of a pool hold at one moment to a file of the service's.
fn show(store: &Arc<StoreInner>, asked: Asked) -> Result<()> {
    let open = store.all_open_pools().into_iter();
    // Others may be closed meanwhile.
    let pool = open
        .filter_map(|pool| pool.downcast::<PoolInner>().ok())
        .find(|pool| pool.uuid == asked.pool && !pool.is_read_only);
    let pool = pool.ok_or_else(|| {
        let pool = asked.pool.to_string();
        Error::Store(durum_service::Error::PoolNotOpen { pool })
    })?;
    check(&pool, store)?;
    let _one_at_a_time = locked(&store.snapshots);
    // Only if somebody still waits for it.
    let mut file = ShownFile::new(store.service.showing_file(asked)?);
    pool.frontier.map_all()?;
    let shown = Shown::begin(store, &[&pool], SnapshotOptions::default().wait)?;
    let mut looked = Instant::now();
    for (uuid, puddle) in &shown.puddles {
        if looked.elapsed() > LOOKING {
            store.service.showing_file(asked)?;
            looked = Instant::now();
        }
        file.add(*uuid, puddle.size, |bytes| shown.read(*uuid, bytes))?;
        shown.is_done(*uuid);
    }
    // Until then none of its puddles is given back.
    Ok(store.service.end_showing(asked, Ok(&file.places()))?)
}

/// Whether a pool can be shown, with others of `store`.
fn check(pool: &PoolInner, store: &StoreInner) -> Result<()> {
    pool.check_usable()?;
    if pool.is_read_only {
        return Err(Error::ReadOnly {
            pool: pool.name.clone(),
        });
    }
    if pool.run_by.is_some() {
        return Err(refused(pool, "it is run by an engine of the tests"));
    }
    if pool.has_sections.load(Ordering::Relaxed) {
        let reason = "sections change it in place without announcing that, so that it would be seen half done; end the \
                      program, and export the pool";
        return Err(refused(pool, reason));
    }
    if pool.store.key != store.key {
        let reason =
            "it is of another store, whose transactions are none of this one's; make one of each";
        return Err(refused(pool, reason));
    }
    Ok(())
}

fn refused(pool: &PoolInner, reason: &'static str) -> Error {
    let pool = pool.name.clone();
    Error::SnapshotRefused { pool, reason }
}

/// Pools as they were at the moment at which this was made, as long as it lives.
struct Shown<'p> {
    pools: Vec<&'p PoolInner>,
    puddles: HashMap<Uuid, Arc<Puddle>>,
}

impl<'p> Shown<'p> {
    fn begin(store: &Arc<StoreInner>, pools: &[&'p PoolInner], wait: Duration) -> Result<Self> {
        // From here on every way out ends it.
        let mut shown = Self {
            pools: Vec::new(),
            puddles: HashMap::new(),
        };
        // What takes time is done while the gate is open; what comes in between is little. Where a transaction is in
        // the way all of it comes later.
        for pool in pools {
            let _ = pool.engine.drain(pool);
        }
        // Each puddle may need one at once.
        let puddles = pools.iter().map(|pool| pool.heap.puddles().len());
        kept_lines::make_spares(puddles.sum::<usize>() + SPARES);
        let rest = Rest::begin(store, pools, wait)?;
        for pool in pools {
            shown.pools.push(*pool);
            let puddles = &mut shown.puddles;
            let mut show = || {
                for puddle in pool.heap.puddles().iter() {
                    puddle.kept_lines.begin();
                    puddles.insert(puddle.uuid, puddle.clone());
                }
            };
            pool.engine.show(pool, &mut show)?;
        }
        drop(rest);
        Ok(shown)
    }
}

/// A moment in which no transaction is open, and no puddle comes or goes: as short as can be.
struct Rest<'p> {
    _closed: Option<Closed>,
    /// Who gives a puddle back takes this first, too, and then drains.
    _held: Vec<MutexGuard<'p, ()>>,
}

impl<'p> Rest<'p> {
    fn begin(store: &Arc<StoreInner>, pools: &[&'p PoolInner], wait: Duration) -> Result<Self> {
        let began = Instant::now();
        let longest = LONGEST_TRY.max(wait / WAIT_PART);
        let mut patience = FIRST_TRY;
        loop {
            if let Some(rest) = Rest::try_begin(store, pools, patience)? {
                return Ok(rest);
            }
            if began.elapsed() >= wait {
                return Err(Error::SnapshotWaits {
                    pool: pools[0].name.clone(),
                    waited: wait,
                });
            }
            // A transaction that is open may wait for a lock that a thread at the gate holds.
            thread::sleep(patience * REST);
            patience = (patience * 2).min(longest);
        }
    }

    fn try_begin(
        store: &Arc<StoreInner>,
        pools: &[&'p PoolInner],
        patience: Duration,
    ) -> Result<Option<Self>> {
        let closed = match recorder::leaves_out(GATE) {
            true => None,
            false => match store.gate.try_close(patience)? {
                None => return Ok(None),
                closed => closed,
            },
        };
        let held = pools.iter().map(|pool| pool.heap.hold());
        let held = held.collect::<Option<Vec<_>>>();
        Ok(held.map(|held| Self {
            _closed: closed,
            _held: held,
        }))
    }
}

impl Drop for Shown<'_> {
    fn drop(&mut self) {
        for puddle in self.puddles.values() {
            puddle.kept_lines.end();
        }
        for pool in &self.pools {
            pool.engine.is_shown_no_more(pool);
        }
        kept_lines::drop_spares();
    }
}

impl Picture for Shown<'_> {
    fn read(&self, puddle: Uuid, bytes: &mut [u8]) -> durum_service::Result<()> {
        let Some(puddle) = self.puddles.get(&puddle) else {
            return Err(durum_service::Error::PuddleUnknown {
                store: self.pools[0].store.info.path.clone(),
                uuid: puddle.to_string(),
            });
        };
        before_images::read(puddle, bytes).map_err(|error| match error {
            Error::Store(error) => error,
            error => durum_service::Error::Damaged {
                file: puddle.path.clone(),
                structure: "puddle",
                offset: 0,
                problem: error.to_string(),
                cure: "close the pool, and see what recovery says".into(),
            },
        })
    }

    fn has(&self, puddle: Uuid) -> bool {
        self.puddles.contains_key(&puddle)
    }

    fn is_done(&self, puddle: Uuid) {
        if let Some(puddle) = self.puddles.get(&puddle) {
            puddle.kept_lines.is_copied();
            kept_lines::make_spares(SPARES);
        }
    }
}
