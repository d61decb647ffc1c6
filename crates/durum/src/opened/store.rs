//! An open store: what its handles share, and what the engines keep of it.

use std::any::Any;
use std::collections::{HashMap, HashSet};
use std::fmt::{self, Debug};
use std::ops::Deref;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError, RwLock, Weak};
use std::time::Duration;

use durum_persist::domain::Domain;
use durum_service::{EngineKind, RecoveryReport, Service, StoreInfo};

use super::neighbours::Neighbours;
use super::observed::{Observed, Tell};
use super::tie::Tie;
use crate::alloc::{Puddle, Puddles};
use crate::asymmetric::Bias;
use crate::completed::Completer;
use crate::deferred_events::put_off;
use crate::demand::Follow;
use crate::described::{Described, Description};
use crate::error::{Error, Result};
use crate::fault;
use crate::gate::Gate;
use crate::logs::Logs;
use crate::options::StoreOptions;
use crate::pages::Way;
use crate::poison::Poison;
use crate::primitive::{locked, waited};
use crate::services::Opened;
use crate::snapshot_requests::AllAsked;
use crate::space::Space;
use crate::stats::Meter;
use crate::upkeep::Upkeep;

/// An open store. Handles are cheap to clone and may be used from any thread.
///
/// The store closes when the last handle to it and to its pools is gone, and with it what pointers have opened
/// ([`StoreOptions::follow`]): it can be opened again when that is dropped. If the process dies before, nothing that
/// was committed is lost, except for buffered transactions within their window; the next opener recovers.
#[derive(Clone, Debug)]
pub struct Store {
    pub(crate) inner: Arc<StoreInner>,
    /// Goes last.
    pub(crate) tie: Tie,
}

/// A number that no other opening in this process has.
pub(crate) fn next_key() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// A pool that is open, or whose last handle is just going.
#[derive(Debug)]
pub(crate) struct OpenPool {
    pub(crate) key: u64,
    pub(crate) pool: Weak<dyn Any + Send + Sync>,
    /// For who looks at it, and must not keep it open.
    pub(crate) puddles: Arc<Puddles>,
    pub(crate) engine: EngineKind,
    pub(crate) is_read_only: bool,
}

/// What all handles of an open store share.
pub(crate) struct StoreInner {
    pub(crate) key: u64,
    pub(crate) service: Arc<dyn Service>,
    /// Other stores of the process.
    pub(crate) neighbours: Neighbours,
    pub(crate) info: StoreInfo,
    pub(crate) space: &'static Space,
    /// Stores stay in this process until they are written back (`file` domain).
    pub(crate) private: bool,
    pub(crate) poison: Arc<Poison>,
    /// Puddles that were given back: their structs stay for late lookups.
    pub(crate) retired: Mutex<Vec<Arc<Puddle>>>,
    /// Open pools by name, and those whose last handle is just going: they leave when they are closed.
    pub(crate) pools: Mutex<HashMap<String, OpenPool>>,
    pub(crate) pool_closed: Condvar,
    /// Held while a pool is opened or made.
    pub(crate) opening: Mutex<()>,
    pub(crate) logs: Logs,
    /// What the engines keep.
    pub(crate) kept: ByStore,
    /// Asks threads to do something for what is kept.
    pub(crate) upkeep: Arc<Upkeep>,
    pub(crate) options: StoreOptions,
    /// How puddles of its pools are mapped.
    pub(crate) way: Way,
    /// What accesses to its pools do that are not open.
    pub(crate) follow: Follow,
    /// Every transaction of the store goes through it.
    pub(crate) gate: Arc<Gate>,
    /// Held while a snapshot is made.
    pub(crate) snapshots: Mutex<()>,
    /// Pools that others want to see.
    pub(crate) asked: Arc<AllAsked>,
    pub(crate) closed: Arc<Closed>,
    /// Threads that end.
    pub(crate) leaving: Arc<Leaving>,
    pub(crate) types: RwLock<HashSet<u64>>,
    pub(crate) recovery: Option<RecoveryReport>,
    /// Absent where another process serves the store.
    pub(crate) completer: Option<Box<dyn Completer>>,
    pub(crate) stats: Option<Meter>,
    /// Where the program answers those who watch it.
    pub(crate) observed: OnceLock<Box<dyn Observed>>,
}

impl std::fmt::Debug for StoreInner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Store")
            .field("path", &self.info.path)
            .finish_non_exhaustive()
    }
}

impl StoreInner {
    pub(crate) fn new(opened: Opened, options: &StoreOptions) -> Result<Arc<Self>> {
        let Opened {
            service,
            recovery,
            completer,
        } = opened;
        crate::fault::install();
        let info = service.info();
        let space = Space::reserve(info.base, info.space_size, &info.path)?;
        space.prepare_growth(info.next_address, options.growth, &info.path)?;
        let private = matches!(info.domain, Domain::File);
        let poison = Arc::new(Poison::default());
        let (lost, path) = (poison.clone(), info.path.clone());
        service.when_lost(Box::new(move || {
            lost.set(
                &path,
                0,
                "the service took this program for gone, and its pools may be another's",
            );
        }));
        fault::store_opens();
        let (key, service): (_, Arc<dyn Service>) = (next_key(), service.into());
        let untyped = options.untyped_hold_no_pointers;
        let way = Way::choose(options.mapping);
        Ok(Arc::new(Self {
            key,
            neighbours: Neighbours::enter(key, space, service.clone(), untyped),
            service,
            info,
            space,
            private,
            poison,
            retired: Mutex::new(Vec::new()),
            pools: Mutex::new(HashMap::new()),
            pool_closed: Condvar::new(),
            opening: Mutex::new(()),
            logs: Logs::default(),
            kept: ByStore::default(),
            upkeep: Arc::default(),
            options: options.clone(),
            way,
            follow: way.follow(options.follow),
            gate: Gate::new(),
            snapshots: Mutex::new(()),
            asked: Arc::default(),
            closed: Arc::default(),
            leaving: Arc::default(),
            types: RwLock::new(HashSet::new()),
            recovery,
            completer,
            stats: Meter::wanted(),
            observed: OnceLock::new(),
        }))
    }

    /// Does what a thread that is stopped at an access may wait for.
    pub(crate) fn while_others_wait<R>(&self, body: impl FnOnce() -> R) -> R {
        match self.follow {
            Follow::Never => body(),
            _ => put_off(body),
        }
    }

    pub(crate) fn open_pools(&self) -> MutexGuard<'_, HashMap<String, OpenPool>> {
        locked(&self.pools)
    }

    /// The pool has been closed: whoever waits to open it again may.
    pub(crate) fn pool_is_closed(&self, name: &str, key: u64) {
        let mut pools = self.open_pools();
        if pools.get(name).is_some_and(|open| open.key == key) {
            pools.remove(name);
        }
        self.pool_closed.notify_all();
    }

    /// The open pool of this name, after any that is just being closed is.
    pub(crate) fn find_open_pool(&self, name: &str) -> Option<Arc<dyn Any + Send + Sync>> {
        let mut pools = self.open_pools();
        loop {
            match pools.get(name).map(|open| open.pool.upgrade()) {
                None => return None,
                Some(Some(pool)) => return Some(pool),
                Some(None) => pools = waited(&self.pool_closed, pools),
            }
        }
    }

    /// The open pool with this key.
    pub(crate) fn open_pool_by_key(&self, key: u64) -> Option<Arc<dyn Any + Send + Sync>> {
        // Only the one asked for is upgraded: the last handle must not go while the lock is held.
        let pools = self.open_pools();
        pools.values().find(|pool| pool.key == key)?.pool.upgrade()
    }

    /// All open pools.
    pub(crate) fn all_open_pools(&self) -> Vec<Arc<dyn Any + Send + Sync>> {
        // None is dropped here, whose last handle this may be: not while the lock is held.
        let pools = self.open_pools();
        pools
            .values()
            .filter_map(|pool| pool.pool.upgrade())
            .collect()
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

    /// From here on nothing may be written: what the media hold is not known, or not what it should be.
    #[cold]
    pub(crate) fn set_poison(&self, reason: &'static str) {
        self.poison.set(&self.info.path, 0, reason);
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
        if let Some(observed) = self.observed.get()
            && !fault::forked()
        {
            observed.stop();
        }
        // No pool is open any more, so no transaction runs and every log is drained.
        self.logs.unmap();
        if let Some(stats) = &self.stats
            && !fault::forked()
        {
            stats.tell(&self.info.path, self.kept.pages_given_back());
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

/// Threads that give back what they hold of a store, and hold the store until then. Nobody sees that they end: a scope
/// of threads is left before their thread-local destructors have run.
#[derive(Debug, Default)]
pub(crate) struct Leaving {
    count: Mutex<usize>,
    changed: Condvar,
}

impl Leaving {
    /// Runs `body`, in which a thread may hold the store.
    pub(crate) fn while_leaving(&self, body: impl FnOnce()) {
        *locked(&self.count) += 1;
        body();
        *locked(&self.count) -= 1;
        self.changed.notify_all();
    }

    /// Waits until there is none, for a while: the last of them closes the store.
    pub(crate) fn wait(&self, timeout: Duration) {
        let count = locked(&self.count);
        let waited = self
            .changed
            .wait_timeout_while(count, timeout, |count| *count > 0);
        drop(waited);
    }
}

/// Tells whoever waits that the last handle is gone, and how closing went.
#[derive(Debug, Default)]
pub(crate) struct Closed {
    result: Mutex<Option<Result<()>>>,
    changed: Condvar,
}

impl Closed {
    pub(crate) fn set(&self, result: Result<()>) {
        if let Err(error) = &result {
            tracing::warn!(%error, "a store could not be closed in order; the next opener recovers it");
        }
        *locked(&self.result) = Some(result);
        self.changed.notify_all();
    }

    pub(crate) fn wait(&self, timeout: Duration) -> Option<Result<()>> {
        let result = locked(&self.result);
        let (mut result, _) = self
            .changed
            .wait_timeout_while(result, timeout, |result| result.is_none())
            .unwrap_or_else(PoisonError::into_inner);
        result.take()
    }
}

pub(crate) fn random_bytes<const N: usize>() -> Result<[u8; N]> {
    let mut bytes = [0; N];
    durum_persist::random::fill(&mut bytes)
        .map_err(|error| Error::system("drawing random bytes", error))?;
    Ok(bytes)
}

/// What an engine keeps of a store, also between the openings of its pools.
pub(crate) trait OfStore: Any + Send + Sync {
    /// A thread that has no transaction open was asked to do something for the store ([`Upkeep`](crate::upkeep)).
    fn upkeep(&self, _store: &Arc<StoreInner>) {}

    /// A pool finds no room: logs give back what they can do without.
    ///
    /// # Errors
    /// Those of bringing home what is logged.
    fn give_log_back(&self, _store: &StoreInner) -> Result<()> {
        Ok(())
    }

    /// Nothing is written to puddles any more: the store is poisoned, and puddles go.
    fn stop(&self) {}

    /// Private pages that were given back so far.
    fn pages_given_back(&self) -> u64 {
        0
    }

    /// Tells what it counts to those who watch the program.
    fn tell(&self, _tell: Tell<'_>) {}
}

/// As with [`OfThread`](super::OfThread).
impl Debug for dyn OfStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OfStore")
    }
}

/// What the engines keep of a store.
#[derive(Debug, Default)]
pub(crate) struct ByStore(Mutex<Vec<Arc<dyn OfStore>>>);

impl ByStore {
    /// What an engine keeps; made now if there is nothing yet.
    pub(crate) fn find_or_make<T: OfStore>(&self, make: impl FnOnce() -> T) -> Arc<T> {
        let mut all = locked(&self.0);
        let is_it = |kept: &Arc<dyn OfStore>| -> Option<Arc<T>> {
            let kept: Arc<dyn Any + Send + Sync> = kept.clone();
            kept.downcast().ok()
        };
        all.iter().find_map(is_it).unwrap_or_else(|| {
            let kept = Arc::new(make());
            all.push(kept.clone());
            kept
        })
    }

    fn all(&self) -> Vec<Arc<dyn OfStore>> {
        let all = locked(&self.0);
        all.clone()
    }

    pub(crate) fn upkeep(&self, store: &Arc<StoreInner>) {
        self.all().iter().for_each(|kept| kept.upkeep(store));
    }

    pub(crate) fn give_log_back(&self, store: &StoreInner) -> Result<()> {
        let all = self.all();
        all.iter().try_for_each(|kept| kept.give_log_back(store))
    }

    pub(crate) fn stop(&self) {
        self.all().iter().for_each(|kept| kept.stop());
    }

    pub(crate) fn tell(&self, tell: Tell<'_>) {
        self.all().iter().for_each(|kept| kept.tell(tell));
    }

    pub(crate) fn pages_given_back(&self) -> u64 {
        self.all().iter().map(|kept| kept.pages_given_back()).sum()
    }
}

/// The bias of a lock that an engine's threads share, and what it is a part of.
#[derive(Debug)]
pub(crate) struct SharedBias {
    bias: NonNull<Bias>,
    _kept: Arc<dyn OfStore>,
}

// SAFETY: a bias is for any thread, and stays as long as what it is a part of.
unsafe impl Send for SharedBias {}
// SAFETY: all that it gives is `&Bias`, which is for any thread.
unsafe impl Sync for SharedBias {}

impl SharedBias {
    /// The bias of something that is kept.
    pub(crate) fn new<T: OfStore>(kept: Arc<T>, bias: impl FnOnce(&T) -> &Bias) -> Self {
        Self {
            bias: NonNull::from(bias(&kept)),
            _kept: kept,
        }
    }
}

impl Deref for SharedBias {
    type Target = Bias;

    #[inline(always)]
    fn deref(&self) -> &Bias {
        // SAFETY: a part of what is kept here.
        unsafe { self.bias.as_ref() }
    }
}
