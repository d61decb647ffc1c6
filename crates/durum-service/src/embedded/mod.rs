//! The service in the program itself: the one writer of a store directory.
//!
//! [`open`] and [`create`] make it, [`recover`] brings home what others left under way, [`settle`] does what a person
//! decides about the rest, [`service`] answers the client, [`puddles`] makes and removes puddles, [`commit`] is the way
//! of every change: requests that come at the same time share a registry commit.

mod commit;
pub(crate) mod create;
pub(crate) mod open;
mod puddles;
mod recover;
mod service;
mod settle;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use durum_format::Uuid;
use durum_format::store::StoreHeader;
use durum_persist::domain::Domain;

use crate::error::{Error, Result};
use crate::inspect::ReadOnlyStore;
use crate::lock::StoreLock;
use crate::model::{ProgressFn, RecoveryReport};
use crate::names;
use crate::recovery::{RefusedPools, ensure_nothing_kept};
use crate::registry::Registry;
use crate::registry::contents::Contents;
use crate::space::{OpenHere, Space};

use commit::{Durable, Group};

/// How a store is made.
#[derive(Clone, Debug)]
pub struct CreateOptions {
    /// The persistence domain to work in; detected when absent. It is not recorded: each opener detects it.
    pub domain: Option<Domain>,
    /// The first address of the puddle space, a multiple of the unit (2 MiB).
    pub base: u64,
    /// The size of the puddle space in bytes, a multiple of the unit (2 MiB). An equal range behind it is the store's
    /// too.
    pub space_size: u64,
    /// Where the first puddle goes (an address in the space, a multiple of the unit); drawn at random when absent.
    pub start: Option<u64>,
}

impl Default for CreateOptions {
    fn default() -> CreateOptions {
        CreateOptions {
            domain: None,
            base: durum_format::DEFAULT_BASE,
            space_size: durum_format::SPACE_SIZE,
            start: None,
        }
    }
}

/// How a store is opened.
#[derive(Clone, Default)]
pub struct OpenOptions {
    /// The persistence domain to work in; detected when absent.
    pub domain: Option<Domain>,
    /// Called as recovery goes on.
    pub progress: Option<Arc<ProgressFn>>,
}

impl std::fmt::Debug for OpenOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OpenOptions")
            .field("domain", &self.domain)
            .field("progress", &self.progress.is_some())
            .finish()
    }
}

/// An open store: the service in this process.
///
/// Dropping it without [`Service::close`](crate::Service::close) is like a crash for its clients' logs: the next
/// opener recovers. The lock is given up either way. In a forked child every call is refused, and
/// dropping it does nothing to the store.
#[derive(Debug)]
pub struct Embedded {
    path: PathBuf,
    identity: StoreHeader,
    client: Uuid,
    domain: Domain,
    recovery: RecoveryReport,
    state: Mutex<State>,
    /// A commit is decided, or a request under way has ended.
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    /// Absent after the end.
    open: Option<Open>,
    /// The file whose write failed with an unknown outcome.
    poisoned: Option<PathBuf>,
}

#[derive(Debug)]
struct Open {
    /// Absent while a thread makes a commit.
    durable: Option<Durable>,
    /// What the registry says once all commits that wait are made.
    contents: Contents,
    group: Group,
    /// Requests that wait for a commit, and those that work on files, without the lock.
    waiting: usize,
    away: usize,
    /// How many want that there are none of these.
    wants_quiet: usize,
    is_closing: bool,
    space: Space,
    _here: OpenHere,
    /// Pools that could not be recovered.
    refused: RefusedPools,
    /// Removed puddles that the registry still lists, whose files are unlinked: not durably yet, and durably.
    unlinked: Vec<Uuid>,
    gone: Vec<Uuid>,
    lock: StoreLock,
}

impl Embedded {
    /// What recovery did when this store was opened.
    pub fn recovery_report(&self) -> &RecoveryReport {
        &self.recovery
    }

    fn over(
        path: PathBuf,
        identity: StoreHeader,
        domain: Domain,
        recovery: RecoveryReport,
        open: Open,
    ) -> Result<Embedded> {
        Ok(Embedded {
            path,
            identity,
            client: names::random_uuid()?,
            domain,
            recovery,
            state: Mutex::new(State {
                open: Some(open),
                poisoned: None,
            }),
            changed: Condvar::new(),
        })
    }

    fn closed(&self) -> Error {
        Error::Closed {
            store: self.path.clone(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Every change goes to the copy in memory in one step: a panic elsewhere does not spoil it.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs `work` on a reader of the store, whose pools stay closed meanwhile.
    pub(crate) fn with_closed_pools<T>(
        &self,
        operation: &'static str,
        work: impl FnOnce(ReadOnlyStore) -> Result<T>,
    ) -> Result<T> {
        self.undisturbed(|open| {
            ensure_nothing_kept(&self.path, &open.contents, operation)?;
            let mut grants = open.contents.grants.iter();
            if let Some((_, pool)) = grants.next() {
                let name = open.contents.pools.get(pool).map(|pool| pool.name.clone());
                return Err(Error::PoolOpen {
                    name: name.unwrap_or_default(),
                    operation,
                });
            }
            // Recovery was done when the store was opened, and nobody has written since.
            let (path, identity) = (self.path.clone(), self.identity.clone());
            work(ReadOnlyStore::over(
                path,
                identity,
                open.contents.clone(),
                true,
            )?)
        })
    }
}

impl Open {
    fn new(registry: Registry, contents: Contents, space: Space, lock: StoreLock) -> Open {
        Open {
            durable: Some(Durable {
                registry,
                contents: contents.clone(),
            }),
            unlinked: contents.removing.iter().copied().collect(),
            contents,
            group: Group::default(),
            waiting: 0,
            away: 0,
            wants_quiet: 0,
            is_closing: false,
            _here: space.open_here(),
            space,
            refused: RefusedPools::default(),
            gone: Vec::new(),
            lock,
        }
    }
}

impl State {
    /// Whether nobody makes a commit or waits for one, and nobody works on files.
    fn is_quiet(&self) -> bool {
        let Some(open) = &self.open else {
            return true;
        };
        let is_led = open.durable.is_none() && self.poisoned.is_none();
        !is_led && open.waiting == 0 && open.away == 0
    }

    /// After a commit: nothing more is written where its outcome is unknown.
    fn note_poison(&mut self) {
        let durable = self.open.as_ref().and_then(|open| open.durable.as_ref());
        if let Some(Durable { registry, .. }) = durable
            && registry.is_poisoned()
        {
            self.poisoned = Some(registry.path().to_owned());
        }
    }

    /// The open store, unless it must not be touched any more.
    fn open(&mut self, store: &Path) -> Result<&mut Open> {
        let store = || store.to_owned();
        let open = match &mut self.open {
            Some(open) if !open.is_closing => open,
            _ => return Err(Error::Closed { store: store() }),
        };
        if !open.lock.is_ours() {
            return Err(Error::Forked { store: store() });
        }
        match &self.poisoned {
            Some(file) => Err(Error::Poisoned {
                store: store(),
                file: file.clone(),
            }),
            None => Ok(open),
        }
    }
}
