//! What passes between a client and the service: grants, specifications, reports.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

pub use durum_format::EngineKind;
use durum_format::Uuid;
use durum_format::puddle::PuddleKind;
pub use durum_format::registry::AddressRange;
use durum_format::registry::Rights;
use durum_format::section::Code;
use durum_persist::domain::Domain;
use durum_persist::file::MediaFile;
use serde::{Deserialize, Serialize};

/// How a pool is made.
#[derive(Clone, Debug)]
pub struct PoolSpec {
    /// The engine that runs its transactions.
    pub engine: EngineKind,
    /// The size of its root puddle in bytes, a multiple of the unit (2 MiB).
    pub root_puddle_size: u64,
}

impl PoolSpec {
    /// A pool with a root puddle of one unit.
    pub fn new(engine: EngineKind) -> PoolSpec {
        PoolSpec {
            engine,
            root_puddle_size: durum_format::UNIT,
        }
    }
}

/// Who owns a puddle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PuddleOwner {
    /// A pool that is open: the puddle holds its data.
    Pool(Uuid),
    /// This client: the puddle is a log or a log space, and goes away with the client.
    Client,
}

/// A puddle that the client may map, read and write.
#[derive(Debug)]
pub struct PuddleGrant {
    /// The puddle.
    pub uuid: Uuid,
    /// Where it is mapped, in every process.
    pub address: u64,
    /// Its size in bytes, header included.
    pub size: u64,
    /// What it holds.
    pub kind: PuddleKind,
    /// Whether it is the root puddle of its pool.
    pub is_root: bool,
    /// Its file, open for reading and writing. Its first 1024 bytes were validated.
    pub file: MediaFile,
}

/// A pool that the client may use.
#[derive(Debug)]
pub struct PoolGrant {
    /// The pool.
    pub uuid: Uuid,
    /// Its name.
    pub name: String,
    /// The engine that runs its transactions.
    pub engine: EngineKind,
    /// The puddle that holds its root object.
    pub root: PuddleGrant,
    /// Where its other puddles lie, in order of address. [`Service::open_puddles`](crate::Service::open_puddles) opens
    /// their files.
    pub others: Vec<PuddlePlace>,
}

/// Where a puddle of a pool lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PuddlePlace {
    /// The puddle.
    pub uuid: Uuid,
    /// Where it is mapped, in every process.
    pub address: u64,
    /// Its size in bytes, header included.
    pub size: u64,
    /// What it holds.
    pub kind: PuddleKind,
}

/// What the process of a client uses addresses for, beside the store.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UsedElsewhere {
    /// The addresses, in any order.
    pub ranges: Vec<AddressRange>,
    /// The client says that objects of unknown type hold no pointers.
    pub untyped_hold_no_pointers: bool,
}

/// What a store is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoreInfo {
    /// The store, as messages name it: its directory, absolute, or the name by which a client came to its service.
    pub path: PathBuf,
    /// The store.
    pub uuid: Uuid,
    /// This opening: the owner of log puddles and log spaces made through this handle.
    pub client: Uuid,
    /// The first address of the puddle space.
    pub base: u64,
    /// The size of the puddle space in bytes. The range for back copies lies right behind it.
    pub space_size: u64,
    /// Where the next puddle is placed, if there is room: upward from here, with wrap-around.
    pub next_address: u64,
    /// How a write becomes durable here.
    pub domain: Domain,
    /// The version of the store format.
    pub format_version: u32,
    /// Its directory, where it is not named by that: as the service sees it. Messages of the protocol have it as the
    /// path.
    #[serde(skip)]
    pub served: Option<PathBuf>,
}

impl StoreInfo {
    /// The store directory, absolute; of a store that is served, as the service sees it.
    pub fn directory(&self) -> &Path {
        self.served.as_deref().unwrap_or(&self.path)
    }
}

/// A pool, as a list shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PoolSummary {
    /// The pool.
    pub uuid: Uuid,
    /// Its name.
    pub name: String,
    /// The engine that runs its transactions.
    pub engine: EngineKind,
    /// The puddle that holds its root object.
    pub root_puddle: Uuid,
    /// How many puddles it has.
    pub puddles: u64,
    /// The bytes of its puddles, headers included.
    pub bytes: u64,
    /// Whose it is, and who else may use it.
    pub rights: Rights,
    /// Why it is quarantined, if it is.
    pub quarantine: Option<QuarantineNote>,
}

/// A puddle, as the registry knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PuddleSummary {
    /// The puddle.
    pub uuid: Uuid,
    /// The pool it belongs to, or the client for logs and log spaces.
    pub owner: Uuid,
    /// Where it is mapped.
    pub address: u64,
    /// Its size in bytes, header included.
    pub size: u64,
    /// What it holds.
    pub kind: PuddleKind,
    /// Whether it is the root puddle of its pool.
    pub is_root: bool,
}

/// Why a pool is quarantined.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuarantineNote {
    /// The file of the log that failed validation, relative to the store.
    pub log: PathBuf,
    /// Why it failed.
    pub reason: String,
}

/// A pool that recovery could not write: it must not be opened before the cause is cured. What it would have written is
/// kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RefusedPool {
    /// The pool's name.
    pub name: String,
    /// The file that is in the way; one of another pool where that is needed to tell whether a transaction committed.
    pub file: PathBuf,
    /// Where in it, in bytes, if that can be said.
    pub offset: Option<u64>,
    /// What is wrong with it, and the cure.
    pub reason: String,
    /// The names of the pools whose files are in the way, where its own are whole: it loses nothing while it waits for
    /// them. Empty where one of its own files is in the way.
    pub waits_for: Vec<String>,
    /// Transactions that are to be undone or completed in the pool.
    pub transactions: u64,
    /// Transactions of which nobody can say yet whether they committed.
    pub undecided: u64,
    /// Bytes that recovery would write to the pool.
    pub bytes: u64,
    /// Whether its part is kept in logs. That of a Twin pool lies in its own files.
    pub is_kept: bool,
}

impl RefusedPool {
    /// What to do, as a clause.
    pub fn cure(&self, store: &Path) -> String {
        let store = store.display();
        let name = &self.name;
        if let Some(first) = self.waits_for.first() {
            return format!(
                "its own files are whole, and it loses nothing while it waits: bring back the file of {}, or give up what is \
                 kept there: `durum recover {store} --give-up {first}`",
                quoted(&self.waits_for)
            );
        }
        match self.is_kept {
            true => format!(
                "what recovery would write to it is kept: bring the file back and open the store again, or give it up: \
                 `durum recover {store} --give-up {name}`"
            ),
            false => format!(
                "it is recovered from its own files: bring them back and open the store again, or remove the pool: \
                 `durum rm {store} {name}`"
            ),
        }
    }
}

/// Names of pools: `"a", "b"`.
pub(crate) fn quoted(names: &[String]) -> String {
    let names: Vec<String> = names.iter().map(|name| format!("\"{name}\"")).collect();
    names.join(", ")
}

/// What a client that is gone has left for its own code to complete.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InterruptedClient {
    /// The client.
    pub client: Uuid,
    /// The names of the pools that it could write, in order: nobody may open them.
    pub pools: Vec<String>,
    /// How many sections it was in.
    pub sections: u64,
    /// Where the first of them goes on.
    pub first: Option<Code>,
    /// Where they go on, by function, file and line, as its program has deposited: `push, queue.c:66`. The first 64 of
    /// them; none where it has deposited nothing, or that is damaged. Nothing depends on it: it is the program's word.
    pub places: Vec<String>,
    /// Which program it was, by name and build, from the same source: `queue, build 3f2a81`.
    pub program: Option<String>,
    /// What is wrong with its records, if anything is: how many sections there are nobody can say then.
    pub damage: Option<String>,
    /// Why the code that it has deposited did not complete them, where that was tried, as a clause.
    pub not_completed: Option<String>,
}

/// What is known of sections beside where they are.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct InterruptionDetails {
    /// Where the first of them goes on, by function, file and line, and which program it was, of which build, as that
    /// has deposited.
    pub place: Option<String>,
    /// What is wrong with their records, if anything is.
    pub damage: Option<String>,
    /// Why the code that their program has deposited did not complete them, where that was tried, as a clause.
    pub not_completed: Option<String>,
}

/// What a client has taken over of one that is gone, to complete its sections.
#[derive(Debug)]
#[non_exhaustive]
pub struct TakenOver {
    /// The pools, as [`Service::open_pool`](crate::Service::open_pool) gives them, in order of name.
    pub pools: Vec<PoolGrant>,
    /// The puddles of sections, open for writing.
    pub puddles: Vec<PuddleGrant>,
}

impl TakenOver {
    /// As a service has told of it.
    pub fn new(pools: Vec<PoolGrant>, puddles: Vec<PuddleGrant>) -> TakenOver {
        TakenOver { pools, puddles }
    }
}

/// What recovery did when the store was opened.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RecoveryReport {
    /// Whether the last opener closed the store in order: then there was nothing to do.
    pub was_clean: bool,
    /// Log spaces of earlier clients.
    pub log_spaces: u64,
    /// Active logs in them.
    pub logs: u64,
    /// Logs whose transaction was undone.
    pub rolled_back: u64,
    /// Logs whose transaction was completed.
    pub rolled_forward: u64,
    /// Logs that failed validation: their files are in `quarantine/`.
    pub quarantined: Vec<QuarantineNote>,
    /// Pools that could not be written: their part is kept.
    pub refused: Vec<RefusedPool>,
    /// Clients that were in sections, which only their own code can complete; what else they left is recovered.
    /// Messages of the protocol have it apart ([`Service::interrupted`](crate::Service::interrupted)).
    #[serde(skip)]
    pub interrupted: Vec<InterruptedClient>,
    /// Entries applied.
    pub entries: u64,
    /// Bytes written to puddles.
    pub bytes: u64,
    /// From the first log read to the last fence.
    pub log_time: Duration,
    /// Retiring the old logs in the registry, and removing their files.
    pub registry_time: Duration,
    /// Files that no registry entry named, removed: a crash between two steps leaves them.
    pub orphans_removed: Vec<PathBuf>,
}

impl RecoveryReport {
    /// How many sections were interrupted, as far as their records can be read.
    pub fn sections(&self) -> u64 {
        let clients = self.interrupted.iter();
        clients.map(|client| client.sections).sum()
    }
}

/// How far recovery, a check or a clone has come.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Progress {
    /// What is being done.
    pub stage: Stage,
    /// Steps done in this stage.
    pub done: u64,
    /// Steps of this stage, as far as known.
    pub total: u64,
}

impl Progress {
    /// Tells whoever wants to know.
    pub fn tell(to: &Option<Arc<ProgressFn>>, stage: Stage, done: u64, total: u64) {
        if let Some(progress) = to {
            progress(Progress { stage, done, total });
        }
    }
}

/// A stage of a long operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Stage {
    /// The old logs are retired in the registry, after they were replayed (one step).
    Registry,
    /// Logs are replayed (steps are logs).
    Logs,
    /// Puddles are checked (steps are puddles).
    Check,
    /// Pointers of objects are followed (steps are objects).
    Pointers,
    /// Objects are looked at that nothing leads to (steps are objects).
    Leaks,
    /// Puddles are rewritten (steps are puddles).
    Clone,
    /// Puddles are exported (steps are puddles).
    Export,
    /// Puddles are imported (steps are puddles).
    Import,
    /// A pool is written as lines (steps are objects).
    Dump,
    /// A pool is made of lines (steps are objects).
    Load,
    /// Pointers are rewritten in puddles that may lead to where others were (steps are puddles).
    Move,
    /// Objects are looked at, and made anew, under other types (steps are objects, each twice).
    Migrate,
}

/// Called as a long operation goes on.
pub type ProgressFn = dyn Fn(Progress) + Send + Sync;

/// Who is told, if anybody.
#[derive(Clone, Default)]
pub(crate) struct Listener(pub(crate) Option<Arc<ProgressFn>>);

impl fmt::Debug for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Listener").field(&self.0.is_some()).finish()
    }
}
