//! The service in the program itself: the one writer of a store directory.
//!
//! [`open`] and [`create`] make it, [`recover`] brings home what others left under way, [`settle`] does what a person
//! decides about the rest, [`service`] answers the client, [`commit`] is the way of every change: the registry, and
//! only then files that go.

mod commit;
pub(crate) mod create;
pub(crate) mod open;
mod recover;
mod service;
mod settle;

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use durum_format::Uuid;
use durum_format::store::StoreHeader;
use durum_persist::domain::Domain;

use crate::error::{Error, Result};
use crate::inspect::ReadOnlyStore;
use crate::lock::StoreLock;
use crate::model::{ProgressFn, RecoveryReport};
use crate::recovery::{RefusedPools, ensure_nothing_kept};
use crate::registry::Registry;
use crate::registry::contents::{Contents, PuddleRecord};
use crate::space::{OpenHere, Space};

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
    inner: Mutex<Inner>,
}

#[derive(Debug)]
struct Inner {
    /// Absent after the end.
    open: Option<Open>,
    /// The file whose write failed with an unknown outcome.
    poisoned: Option<PathBuf>,
}

#[derive(Debug)]
struct Open {
    registry: Registry,
    contents: Contents,
    space: Space,
    _here: OpenHere,
    /// Pools that could not be recovered.
    refused: RefusedPools,
    /// Removed puddles that the registry still lists, whose files are unlinked: not durably yet, and durably.
    unlinked: Vec<Uuid>,
    gone: Vec<Uuid>,
    lock: StoreLock,
}

impl Open {
    /// Gives back the addresses of those of the puddles that the registry does not name any more.
    fn free_addresses(&mut self, puddles: &[(Uuid, PuddleRecord)]) {
        for (uuid, record) in puddles {
            if !self.contents.puddles.contains_key(uuid) {
                self.space.remove(record.address);
            }
        }
    }
}

impl Embedded {
    /// What recovery did when this store was opened.
    pub fn recovery_report(&self) -> &RecoveryReport {
        &self.recovery
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        // Every change goes to the copy in memory in one step after its commit: a panic elsewhere does not spoil it.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs `work` on a reader of the store, whose pools stay closed meanwhile.
    pub(crate) fn with_closed_pools<T>(
        &self,
        operation: &'static str,
        work: impl FnOnce(ReadOnlyStore) -> Result<T>,
    ) -> Result<T> {
        self.with_open(|open| {
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
            let contents = open.contents.clone();
            work(ReadOnlyStore::over(path, identity, contents, true)?)
        })
    }

    /// Runs `work` on the open store, unless it must not be touched any more.
    fn with_open<T>(&self, work: impl FnOnce(&mut Open) -> Result<T>) -> Result<T> {
        let mut inner = self.inner();
        let Inner { open, poisoned } = &mut *inner;
        let store = || self.path.clone();
        let Some(open) = open else {
            return Err(Error::Closed { store: store() });
        };
        if !open.lock.is_ours() {
            return Err(Error::Forked { store: store() });
        }
        if let Some(file) = poisoned.clone() {
            let store = store();
            return Err(Error::Poisoned { store, file });
        }
        let result = work(open);
        if open.registry.is_poisoned() {
            *poisoned = Some(open.registry.path().to_owned());
        }
        result
    }
}
