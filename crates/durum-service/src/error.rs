//! What can go wrong in a store, grouped by who can act on it.
//!
//! A message names the file, the offset where there is one, what was expected and found, and the cure.
//! Operations that return an error leave the store as it was, unless the variant says otherwise.

mod kind;
mod making;

use std::borrow::Cow;
use std::fmt;
use std::io;
use std::path::PathBuf;

use durum_format::error::FormatError;
use durum_format::section::Code;

use crate::model::{InterruptionDetails, quoted};
use crate::wording::{all_reasons, shown, some_of, user_of_range, with_attempt, with_others};
use crate::wording::{
    at, begins_at, cure_of_conflict, cure_of_missing, holder, in_use, interruption, of_pool,
};

pub use kind::ErrorKind;

/// The result of a store operation.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error of a store operation.
///
/// `Debug` prints the message, too: it is what a `main` shows that returns the error.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    // ---- the caller -------------------------------------------------------------------------
    /// The store was closed through this handle.
    #[error("{store}: this handle was closed; open the store again", store = .store.display())]
    Closed {
        /// The store directory.
        store: PathBuf,
    },
    /// The handle was made before a fork, and this is the child.
    #[error("{store}: this handle belongs to the parent process; open the store again after the fork, when the parent has closed it", store = .store.display())]
    Forked {
        /// The store directory.
        store: PathBuf,
    },
    /// The pool is not open through this handle.
    #[error("pool {pool} is not open; open it before puddles are added to it")]
    PoolNotOpen {
        /// The pool's UUID.
        pool: String,
    },
    /// The pool is open and the operation needs it closed.
    #[error("pool \"{name}\" is open; close it before it is {operation}")]
    PoolOpen {
        /// The pool's name.
        name: String,
        /// What was to be done to it, as a participle ("removed", "opened again").
        operation: &'static str,
    },
    /// No puddle of this store has this UUID.
    #[error("{store}: no puddle {uuid} is registered", store = .store.display())]
    PuddleUnknown {
        /// The store directory.
        store: PathBuf,
        /// The UUID asked for.
        uuid: String,
    },
    /// The puddle is not one that the operation may touch.
    #[error("puddle {uuid}: {reason}")]
    PuddleRefused {
        /// The puddle's UUID.
        uuid: String,
        /// Why, as a clause.
        reason: &'static str,
    },
    /// A puddle size that is zero, not a multiple of the unit, or larger than the space.
    #[error(
        "a puddle of {size} bytes cannot be made: the size must be a multiple of {unit} and at most {max}"
    )]
    PuddleSize {
        /// The size asked for, in bytes.
        size: u64,
        /// The unit, in bytes.
        unit: u64,
        /// The largest size, in bytes.
        max: u64,
    },
    /// A type id that is registered with another text, or a text that does not belong to the id.
    #[error("type {id:#018x} is refused: {reason}")]
    TypeRefused {
        /// The type's id.
        id: u64,
        /// Why, as a clause.
        reason: String,
    },

    // ---- the user ---------------------------------------------------------------------------
    /// There is no store at the path.
    #[error("{path}: no durum store here ({missing} is missing); {cure}", path = .path.display(), cure = cure_of_missing(path, *can_be_made))]
    StoreMissing {
        /// The path asked for.
        path: PathBuf,
        /// What is missing there.
        missing: &'static str,
        /// Whether a store can be made at the path: nothing is there, or what is left of one that was not finished.
        can_be_made: bool,
    },
    /// No store can be at this path, or be made there: the path is empty, leads through a file or to one, or the
    /// directory for a new store is missing. Where a right is missing, this is the system's.
    #[error("{path}: {problem}; {cure}", path = shown(path))]
    PathRefused {
        /// The path asked for.
        path: PathBuf,
        /// What is wrong with it, as a clause.
        problem: String,
        /// What to do.
        cure: String,
        /// What the system says.
        source: io::Error,
    },
    /// Something is already at the path where a store was to be made.
    #[error("{path}: already exists; choose another path, or remove it first", path = .path.display())]
    StoreExists {
        /// The path asked for.
        path: PathBuf,
    },
    /// Another opener holds the store.
    #[error("{path}: the store is {in_use}", path = .path.display(), in_use = in_use(*pid))]
    StoreBusy {
        /// The store directory.
        path: PathBuf,
        /// The process that holds it, where the system tells (this process itself included).
        pid: Option<u32>,
    },
    /// The service of the store has ended, and a client of it lives.
    #[error(
        "{path}: {holder} is a client of this store's service, which has ended; start the service again, or end that first",
        path = .path.display(), holder = holder(*pid)
    )]
    StoreServed {
        /// The store directory.
        path: PathBuf,
        /// The client's process, where the system tells.
        pid: Option<u32>,
    },
    /// The store was not closed, or is in use, and the operation needs it closed and drained.
    #[error("{path}: the store was not closed in order; run `durum recover {path}` first", path = .path.display())]
    StoreDirty {
        /// The store directory.
        path: PathBuf,
    },
    /// The service knows no such client: it was recovered, because it was taken for gone.
    #[error("client {client} is not known to the service any more; open the store again")]
    ClientUnknown {
        /// The client's UUID.
        client: String,
    },
    /// Another client of the store has the pool open.
    #[error(
        "pool \"{name}\" is used by another program; try again when that has closed it, or is gone"
    )]
    PoolBusy {
        /// The pool's name.
        name: String,
    },
    /// The client's user has no right to do this. It is told no more.
    #[error("{what} may not be {operation} by user {uid}; {cure}")]
    NotPermitted {
        /// What it concerns.
        what: String,
        /// What was to be done to it, as a participle.
        operation: &'static str,
        /// The client's user.
        uid: u64,
        /// Whom to ask, as a clause.
        cure: &'static str,
    },
    /// The client's user, or that of the pool, has as much as it may.
    #[error(
        "user {uid} has {used} of {limit} {quota}, and {more} more are asked for; give some back, or have the limit raised (durumd --quota {uid}:{quota}=N)"
    )]
    QuotaExceeded {
        /// The user.
        uid: u64,
        /// Of what there is too much: the name of the quota.
        quota: &'static str,
        /// What it has.
        used: u64,
        /// What was asked for.
        more: u64,
        /// What it may have.
        limit: u64,
    },
    /// A mode that a pool cannot have.
    #[error(
        "a pool cannot have the mode {mode:04o}: it has r and w for owner, group and others, as in 0640"
    )]
    ModeRefused {
        /// The mode asked for.
        mode: u64,
    },
    /// No pool of that name.
    #[error("{store}: no pool \"{name}\"; `durum ls {store}` lists the pools", store = .store.display())]
    PoolMissing {
        /// The store directory.
        store: PathBuf,
        /// The name asked for.
        name: String,
    },
    /// A pool of that name exists.
    #[error("{store}: a pool \"{name}\" exists already; open it, or choose another name", store = .store.display())]
    PoolExists {
        /// The store directory.
        store: PathBuf,
        /// The name asked for.
        name: String,
    },
    /// A name that a pool cannot have.
    #[error("a pool cannot be named {name:?}: {reason}")]
    PoolName {
        /// The name asked for.
        name: String,
        /// Why, as a clause.
        reason: &'static str,
    },
    /// Options that a store cannot be made with.
    #[error("a store cannot be made so: {reason}")]
    Options {
        /// Why, as a clause.
        reason: String,
    },
    /// The store's address range is taken in this process. Raised by the client, declared here.
    #[error(
        "{path}: its puddles lie at addresses that {other} already uses in this process \
         ({address:#x}, {size} bytes); {cure}",
        path = .path.display(), other = user_of_range(other.as_deref()), cure = cure_of_conflict(path, other.as_deref())
    )]
    AddressConflict {
        /// The store that was to be opened.
        path: PathBuf,
        /// The store that uses the range, where it is one of ours.
        other: Option<PathBuf>,
        /// The first address of the range.
        address: u64,
        /// The range's size in bytes.
        size: u64,
    },
    /// Puddles of the store cannot make way for what the process has at their addresses. Nothing was changed.
    #[error(
        "{store}: it lies where something else of this process does, and cannot be moved: {what}{reason}; or open it in a \
         process of its own, or a copy at other addresses: `durum clone {store} DST`",
        store = .store.display(), what = of_pool(pool.as_deref())
    )]
    Unmovable {
        /// The store.
        store: PathBuf,
        /// The pool that keeps it from that, where it is one.
        pool: Option<String>,
        /// Why, and what to do, as a clause.
        reason: String,
    },
    /// Something has the name of an export that was to be made.
    #[error("{place} is there already; name a place where nothing is yet", place = .place.display())]
    ExportExists {
        /// The name.
        place: PathBuf,
    },
    /// Pointers of a pool that was to be exported lead to other pools.
    #[error("pool \"{pool}\" cannot be exported alone: {pointers} of its pointers lead to {others}; export those with it: --with-referenced where no program has them open, SnapshotOptions::with in the one that has", others = quoted(others))]
    PointersLeave {
        /// The pool's name.
        pool: String,
        /// How many there are.
        pointers: u64,
        /// The names of the pools that they lead to.
        others: Vec<String>,
    },
    /// What lies there cannot be imported so.
    #[error("{place} is not imported: {reason}", place = .place.display())]
    ImportRefused {
        /// The export.
        place: PathBuf,
        /// Why, with what to do.
        reason: String,
    },
    /// Lines that are no dump of a pool, or a damaged one. Nothing was changed.
    #[error("line {line}: {problem}")]
    LoadRefused {
        /// The line, from 1.
        line: u64,
        /// What is wrong with it.
        problem: String,
    },
    /// Something stands in the way of a migration. Nothing was changed.
    #[error("{store}: pool \"{pool}\" is not migrated: {all}", store = .store.display(), all = all_reasons(.reasons))]
    MigrationRefused {
        /// The store directory.
        store: PathBuf,
        /// The pool's name.
        pool: String,
        /// What stands in the way, each with the path to it from a type.
        reasons: Vec<String>,
    },
    /// The store was moved to other addresses, and not all its pointers are rewritten. Nothing was changed.
    #[error("{store}: it moves to other addresses, and {puddles} of its puddles are not rewritten yet; finish that: `durum recover {store}`", store = .store.display())]
    StoreMoving {
        /// The store.
        store: PathBuf,
        /// How many.
        puddles: u64,
    },
    /// No run of free addresses is long enough.
    #[error("{store}: no {size} bytes of free addresses in a row are left in the space of {space} bytes; remove pools, or make a second store", store = .store.display())]
    AddressesExhausted {
        /// The store directory.
        store: PathBuf,
        /// The bytes wanted.
        size: u64,
        /// The size of the whole space in bytes.
        space: u64,
    },

    /// There is nothing to give up, or to try again. Nothing was changed.
    #[error("pool \"{pool}\": nothing is kept for it: {reason}; `durum check {store}` tells what is", store = .store.display())]
    NothingKept {
        /// The store directory.
        store: PathBuf,
        /// The pool's name.
        pool: String,
        /// Why, as a clause.
        reason: &'static str,
    },
    /// What is to be done for a quarantined pool was asked for a refused one. Nothing was changed.
    #[error("pool \"{pool}\" is refused, not quarantined: {reason}; {cure}")]
    PoolNotQuarantined {
        /// The store directory.
        store: PathBuf,
        /// The pool's name.
        pool: String,
        /// Which file is in the way and what is wrong with it.
        reason: String,
        /// What to do, as a clause.
        cure: String,
    },
    /// A pool that only waits for others is not given up: they can still decide what it waits for. Nothing changed.
    #[error(
        "pool \"{pool}\" is not given up: its own files are whole, and it only waits for {others}; bring back the file that is \
         missing there, or give up what is kept there: `durum recover {store} --give-up {first}`",
        store = .store.display(), others = quoted(.others), first = .others.first().map_or("POOL", String::as_str)
    )]
    PoolWaits {
        /// The store directory.
        store: PathBuf,
        /// The pool's name.
        pool: String,
        /// The names of the pools that it waits for; at least one.
        others: Vec<String>,
    },
    /// It was stopped by the caller, before its end.
    #[error("{store}: it was stopped before its end", store = .store.display())]
    Stopped {
        /// The store directory.
        store: PathBuf,
    },
    /// What is garbage cannot be told.
    #[error("{store}: which objects are garbage cannot be told: in pool \"{pool}\" {reason}", store = .store.display())]
    GarbageUnjudged {
        /// The store directory.
        store: PathBuf,
        /// The pool with the reason in it.
        pool: String,
        /// Why, as a clause.
        reason: String,
    },

    // ---- the data ---------------------------------------------------------------------------
    /// Garbage is not freed in a store with damage in it. Nothing was changed.
    #[error("{store}: nothing is freed in a damaged store ({damages} found; the first: {first}); look at it with `durum check {store}`", store = .store.display())]
    GarbageDamaged {
        /// The store directory.
        store: PathBuf,
        /// How much damage was found.
        damages: usize,
        /// The first of it.
        first: String,
    },
    /// Bytes that the format refuses: foreign, of another version, or damaged. Nothing was changed.
    #[error("{file}: {source}{at}; {cure}", file = .file.display(), at = begins_at(*base))]
    Format {
        /// The file.
        file: PathBuf,
        /// Where in the file the structure begins, in bytes.
        base: u64,
        /// What is wrong with it.
        source: Box<FormatError>,
        /// What to do.
        cure: Cow<'static, str>,
    },
    /// A structure on the media contradicts another. Nothing was changed.
    #[error("{file}: {structure} at offset {offset}: {problem}; {cure}", file = .file.display())]
    Damaged {
        /// The file.
        file: PathBuf,
        /// The structure.
        structure: &'static str,
        /// The offset in the file, in bytes.
        offset: u64,
        /// What was expected and found.
        problem: String,
        /// What to do.
        cure: Cow<'static, str>,
    },
    /// A file that the registry names is not there. Nothing was changed.
    #[error("{file}: {structure} is missing; {cure}", file = .file.display())]
    FileMissing {
        /// The file.
        file: PathBuf,
        /// What it should be.
        structure: &'static str,
        /// What to do.
        cure: Cow<'static, str>,
    },
    /// Something else than a file lies in the place of a file of the store. Nothing was changed.
    #[error("{file}: this is {found}, not {expected}: {structure} should be here; move it away, and {cure}", file = .file.display())]
    NotAFile {
        /// The file, or the directory that it should be in.
        file: PathBuf,
        /// What lies there, with an article.
        found: &'static str,
        /// What should lie there, with an article.
        expected: &'static str,
        /// What it should be.
        structure: &'static str,
        /// What to do.
        cure: Cow<'static, str>,
    },
    /// There are puddles with objects or logs in them that the registry does not name: it is older than they are.
    /// Nothing was changed.
    #[error(
        "{store}: the registry is older than the puddles: it does not name {files}; restore the whole store, or registry and \
         registry.copy as they were when these puddles were written, or move the puddles aside, into {store}/unregistered: \
         `durum check --repair {store}`",
        store = .store.display(), files = some_of(files)
    )]
    RegistryOlder {
        /// The store directory.
        store: PathBuf,
        /// The puddles' files.
        files: Vec<PathBuf>,
    },
    /// A log that concerns this pool failed validation and is quarantined.
    #[error(
        "pool \"{pool}\": the log {log} failed validation ({reason}), so changes to this pool may be \
         half done; inspect it with `durum inspect`, then either restore a copy or accept the pool as \
         it is: `durum recover {store} --accept-quarantined {pool}`",
        log = .log.display(), store = .store.display()
    )]
    PoolQuarantined {
        /// The store directory.
        store: PathBuf,
        /// The pool's name.
        pool: String,
        /// The quarantined log file.
        log: PathBuf,
        /// Why the log failed, with the offset.
        reason: String,
    },

    /// A file is in the way of the pool's recovery. Nothing of the pool was written, and what recovery has for it is
    /// kept.
    #[error("pool \"{pool}\" cannot be recovered: {reason}; {cure}")]
    PoolRefused {
        /// The store directory.
        store: PathBuf,
        /// The pool's name.
        pool: String,
        /// Which file is in the way and what is wrong with it, with the offset.
        reason: String,
        /// What to do, as a clause.
        cure: String,
    },
    /// A program that is gone was in sections, and only its own code can complete them. Its logs are recovered; nothing
    /// else was changed.
    #[error(
        "pool \"{pool}\" is interrupted: {}{}{}; run the program that left that, or accept the pool as it is, half done: `durum recover {} --abandon-sections {pool}`",
        interruption(*sections, *first, details.place.as_deref(), details.damage.as_deref()), with_others(others),
        with_attempt(details.not_completed.as_deref()), store.display()
    )]
    PoolInterrupted {
        /// The store directory.
        store: PathBuf,
        /// The pool's name.
        pool: String,
        /// How many sections that program was in, in this pool or in others.
        sections: u64,
        /// Where the first of them goes on.
        first: Option<Code>,
        /// What else is known.
        details: Box<InterruptionDetails>,
        /// The names of other pools that are refused for the same reason.
        others: Vec<String>,
    },
    /// The operation follows pointers through the whole store, and parts of pools are not recovered yet. Nothing was
    /// changed.
    #[error(
        "{store}: it cannot be {operation} while what recovery has for these pools is kept: {pools}; `durum recover {store}` {cure}",
        store = .store.display(), pools = .pools.join(", ")
    )]
    PartsKept {
        /// The store directory.
        store: PathBuf,
        /// What was to be done to the store, as a participle.
        operation: &'static str,
        /// The names of the pools.
        pools: Vec<String>,
        /// What `durum recover` does about it, and what else can be done, as a clause.
        cure: String,
    },

    /// An error of which the service told the text only.
    #[error("{text}")]
    Told {
        /// Who can act on it.
        kind: ErrorKind,
        /// What it says.
        text: String,
    },
    /// The service could not be reached, or does not answer. Transactions on pools that are open go on. Raised by the
    /// client, declared here.
    #[error("{socket}: the service of the store {problem}; {cure}", socket = .socket.display())]
    ServiceGone {
        /// The service's socket.
        socket: PathBuf,
        /// What was noticed, as a clause.
        problem: String,
        /// What to do.
        cure: &'static str,
    },

    // ---- the system -------------------------------------------------------------------------
    /// Code that completes sections was compiled for another processor. It was not run.
    #[error(
        "{file}: this code was compiled for a processor with {features}, which this one has not: open the store where there is one",
        file = .file.display(), features = .features.join(", ")
    )]
    ProcessorLacks {
        /// Where the code lies.
        file: PathBuf,
        /// The features that are missing, by the names that compilers have for them (`-mavx2`: `avx2`), or the
        /// architecture.
        features: Vec<String>,
    },
    /// No room for a file. Nothing was left behind.
    #[error("{path}: no room on the file system for {bytes} bytes; free some space and try again", path = .path.display())]
    StorageFull {
        /// The file that was to grow or to be made.
        path: PathBuf,
        /// The bytes wanted.
        bytes: u64,
    },
    /// The process gets no addresses for the store. Raised by the client, declared here.
    #[error("{path}: {size} bytes of address space cannot be had: {reason}", path = .path.display())]
    AddressSpace {
        /// The store.
        path: PathBuf,
        /// The bytes wanted.
        size: u64,
        /// Which limit it is, as a clause, and what to do.
        reason: String,
    },
    /// An operation of the system failed.
    #[error("{path}: {operation} failed{at}: {source}", path = .path.display(), at = at(*offset))]
    Io {
        /// What was tried.
        operation: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The offset, where there is one.
        offset: Option<u64>,
        /// The system's error.
        source: io::Error,
    },
    /// A registry commit failed half way: its outcome is unknown until the store is opened again.
    #[error("{store}: an earlier write to {file} failed, so what is on the media is unknown; close the store and open it again", store = .store.display(), file = .file.display())]
    Poisoned {
        /// The store directory.
        store: PathBuf,
        /// The file whose write or sync failed.
        file: PathBuf,
    },
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
