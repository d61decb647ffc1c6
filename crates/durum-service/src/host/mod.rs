//! The one writer of a store directory, in the program itself or in a daemon.
//!
//! [`open`] and [`create`] make it, [`recover`] brings home what others left under way, [`gone`] does so for one client
//! while others work, [`interrupted`] lets others complete its sections, [`settle`] does what a person decides about
//! the rest, [`client`] answers a client, [`permit`]
//! says what one may, [`puddles`] makes and removes puddles, [`holders`] knows who has a pool open, [`reading`] is for
//! those who only read, [`looking`] shows what is not in order, [`revoke`] takes a pool from those who had it,
//! [`moving`] has puddles make way, [`whole`] recovers a Twin pool as it is opened,
//! [`commit`] is the way of every change: requests that come at the same time share a registry commit. [`pulse`] tells
//! whether all of that goes on.

mod client;
mod commit;
pub(crate) mod create;
mod drawn;
mod gone;
mod holders;
mod imported;
mod importing;
mod interrupted;
mod looking;
mod migrating;
mod moving;
pub(crate) mod open;
mod permit;
mod planned;
mod puddles;
mod pulse;
mod reading;
mod recover;
mod revoke;
mod served;
mod settle;
mod whole;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use durum_format::Uuid;
use durum_format::registry::Rights;
use durum_format::store::StoreHeader;
use durum_persist::domain::Domain;

use crate::error::{Error, Result};
use crate::lock::StoreLock;
use crate::model::{Listener, ProgressFn, RecoveryReport};
use crate::names;
use crate::quota::Quotas;
use crate::recovery::{Interrupted, RefusedPools};
use crate::registry::Registry;
use crate::registry::contents::{Contents, PuddleRecord};
use crate::rewrite::Moves;
use crate::rights;
use crate::space::{OpenHere, Space};

pub use client::Embedded;
use commit::{Durable, Group};
pub use gone::Ended;
pub use importing::Importing;
use moving::InUse;
use puddles::Registered;

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
    /// Whether clients may live in other processes. Those that an earlier service left are clients of this one, if they
    /// live; see [`Host::served`]. Whoever opens a store otherwise is refused while there are any.
    pub is_service: bool,
    /// How much users of other processes may have.
    pub quotas: Quotas,
}

impl std::fmt::Debug for OpenOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OpenOptions")
            .field("domain", &self.domain)
            .field("progress", &self.progress.is_some())
            .field("is_service", &self.is_service)
            .field("quotas", &self.quotas)
            .finish()
    }
}

/// An open store: the one writer of its directory, for any number of clients ([`Embedded`]).
///
/// Dropping it without [`Host::close`] is like a crash for its clients' logs: the next opener recovers. The lock is
/// given up either way. In a forked child every call is refused, and dropping it does nothing to the store.
#[derive(Debug)]
pub struct Host {
    path: PathBuf,
    identity: StoreHeader,
    /// Whose pools are of which the registry says nothing.
    directory: Rights,
    quotas: Quotas,
    domain: Domain,
    recovery: RecoveryReport,
    listener: Listener,
    state: Mutex<State>,
    /// A commit is decided, or a request under way or a client's recovery has ended.
    changed: Condvar,
    /// Somebody has the state for as long as it takes: not forgotten, but at work.
    is_at_long_work: AtomicBool,
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
    /// The clients that use the store now: their logs are theirs.
    at_work: BTreeSet<Uuid>,
    /// Client and pool: it reads the pool, which nobody writes meanwhile.
    readers: BTreeSet<(Uuid, Uuid)>,
    /// The clients that are gone and whose logs are being replayed: nobody does so twice.
    recovering: BTreeSet<Uuid>,
    /// How many have ended whose files are being removed.
    clearing: usize,
    /// The pools that get new files.
    renewed: BTreeSet<Uuid>,
    /// Puddles whose pointers are being rewritten.
    rewriting: BTreeSet<Uuid>,
    /// Where puddles were, and are: as the registry says.
    moves: Arc<Moves>,
    /// The same of imports, once somebody has asked.
    import_moves: BTreeMap<Uuid, Arc<Moves>>,
    /// Where puddles were: these addresses stay taken until nothing points there, durably.
    former: Vec<u64>,
    /// What clients have said of the addresses of their processes.
    in_use: BTreeMap<Uuid, InUse>,
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
    /// Clients that are gone and have left sections.
    interrupted: Interrupted,
    /// Which of these somebody completes, and who.
    taken_over: BTreeMap<Uuid, Uuid>,
    /// Removed puddles that the registry still lists, whose files are unlinked: not durably yet, and durably.
    unlinked: Vec<Uuid>,
    gone: Vec<Uuid>,
    /// Puddles that are being imported. The registry lists their files as such that go, and nobody removes them.
    coming: BTreeMap<Uuid, PuddleRecord>,
    lock: StoreLock,
}

impl Host {
    /// What recovery did when this store was opened.
    pub fn recovery_report(&self) -> &RecoveryReport {
        &self.recovery
    }

    /// Lets one more client use the store. It is recorded when it opens or makes something.
    ///
    /// # Errors
    /// `Closed`, `Forked`, `Poisoned`; `Io` where no random numbers are to be had.
    pub fn client(self: &Arc<Host>) -> Result<Embedded> {
        let id = names::random_uuid()?;
        self.state().open(&self.path)?.at_work.insert(id);
        Ok(Embedded::of(self.clone(), id, None))
    }

    /// Whether a client is at work here.
    fn has_at_work(&self, client: Uuid) -> Result<bool> {
        Ok(self.state().open(&self.path)?.at_work.contains(&client))
    }

    /// The client has ended, and nothing of it is left.
    fn is_not_at_work(&self, client: Uuid) {
        if let Some(open) = &mut self.state().open {
            open.forget_client(client);
        }
    }

    /// Ends the store in order: who is at work may not ask for anything more, and is recovered by the next opener. The
    /// lock is given up. Calling it again does nothing.
    ///
    /// # Errors
    /// `Forked`.
    pub fn close(&self) -> Result<()> {
        let mut state = self.state();
        match &mut state.open {
            None => return Ok(()),
            Some(open) if !open.lock.is_ours() => return Err(self.forked()),
            Some(open) => open.is_closing = true,
        }
        while !state.is_quiet() {
            state = self.wait(state);
        }
        // Where it is poisoned, nothing more is written; the next opener recovers.
        if state.poisoned.is_none()
            && let Some(open) = &mut state.open
            && let Some(Durable { registry, contents }) = &mut open.durable
        {
            registry.close(contents);
        }
        // Gives the lock up.
        state.open = None;
        self.changed.notify_all();
        Ok(())
    }

    fn over(
        path: PathBuf,
        identity: StoreHeader,
        domain: Domain,
        recovery: RecoveryReport,
        open: Open,
        (quotas, listener): (Quotas, Listener),
    ) -> Result<Arc<Host>> {
        Ok(Arc::new(Host {
            directory: rights::of_directory(&path)?,
            quotas,
            path,
            identity,
            domain,
            recovery,
            listener,
            state: Mutex::new(State {
                open: Some(open),
                poisoned: None,
            }),
            changed: Condvar::new(),
            is_at_long_work: AtomicBool::new(false),
        }))
    }

    fn closed(&self) -> Error {
        Error::Closed {
            store: self.path.clone(),
        }
    }

    fn forked(&self) -> Error {
        Error::Forked {
            store: self.path.clone(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Every change goes to the copy in memory in one step: a panic elsewhere does not spoil it.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Open {
    /// Gives back the addresses of those of the puddles that the registry does not name any more.
    fn free_addresses(&mut self, puddles: &[Registered]) {
        for (uuid, record) in puddles {
            if !self.contents.puddles.contains_key(uuid) {
                self.space.remove(record.address);
            }
        }
    }

    /// Whether anything has this name: a puddle, a pool or a client. Nothing can have the nil one.
    fn has_name(&self, uuid: Uuid) -> bool {
        let contents = &self.contents;
        uuid.is_nil()
            || contents.puddles.contains_key(&uuid)
            || contents.pools.contains_key(&uuid)
            || contents.clients.contains(&uuid)
            || contents.is_going(uuid)
            || self.at_work.contains(&uuid)
    }

    fn new(registry: Registry, contents: Contents, space: Space, lock: StoreLock) -> Open {
        Open {
            durable: Some(Durable {
                registry,
                contents: contents.clone(),
            }),
            unlinked: contents.going().collect(),
            coming: BTreeMap::new(),
            moves: Arc::new(contents.moves.clone()),
            import_moves: BTreeMap::new(),
            former: contents.moves.keys().copied().collect(),
            contents,
            group: Group::default(),
            at_work: BTreeSet::new(),
            readers: BTreeSet::new(),
            recovering: BTreeSet::new(),
            clearing: 0,
            renewed: BTreeSet::new(),
            rewriting: BTreeSet::new(),
            in_use: BTreeMap::new(),
            waiting: 0,
            away: 0,
            wants_quiet: 0,
            is_closing: false,
            _here: space.open_here(),
            space,
            refused: RefusedPools::default(),
            interrupted: Interrupted::default(),
            taken_over: BTreeMap::new(),
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
