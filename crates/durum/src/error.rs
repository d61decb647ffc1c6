//! What can go wrong in the client, grouped by who can act on it.

use std::fmt;
use std::path::PathBuf;

pub use durum_service::ErrorKind;

/// The result of an operation on a store, a pool or a transaction.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The result of a step of a commit: in a register, where a [`Result`] goes through memory. `?` makes either into the
/// other.
pub(crate) type Step<T = ()> = std::result::Result<T, Box<Error>>;

impl From<Box<Error>> for Error {
    #[cold]
    fn from(error: Box<Error>) -> Self {
        *error
    }
}

/// An error of a store, a pool or a transaction.
///
/// An operation that fails inside a transaction leaves the transaction usable: return the error from the closure to
/// roll back. A commit that fails has rolled back, except where the variant says that the outcome is unknown.
///
/// `Debug` prints the message, too: it is what a `main` shows that returns the error.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The store refused or failed; see the message.
    #[error(transparent)]
    Store(#[from] durum_service::Error),

    /// The store is one that a service serves, which migrates nothing.
    #[error(
        "{path}: a service does not migrate pools; end it, and name the directory of its store", path = .path.display()
    )]
    NotMigrated {
        /// How the store was named.
        path: PathBuf,
    },

    // ---- the caller -------------------------------------------------------------------------
    /// The address lies in no puddle of this store that is open for writing.
    #[error(
        "{address:#x} ({len} bytes) is not inside an object of an open pool of this store; announce only addresses in its pools"
    )]
    NotInPool {
        /// The first address of the range.
        address: usize,
        /// The length of the range in bytes.
        len: usize,
    },
    /// The address is not the start of a live object.
    #[error(
        "{address:#x} is not the start of an allocated object: it was freed before, or never allocated"
    )]
    NotAllocated {
        /// The address that was to be freed.
        address: usize,
    },
    /// The root was to be freed, which lives as long as its pool.
    #[error(
        "the root of pool \"{pool}\" cannot be freed: it lives as long as the pool; free what it leads to, and set its pointers to null"
    )]
    RootFreed {
        /// The pool's name.
        pool: String,
    },
    /// `add` of a range that a `set` of the same transaction will change at commit.
    #[error(
        "{address:#x} ({len} bytes) has a pending `set` in this transaction; `add` and store, or `set`, but not both"
    )]
    PendingSet {
        /// The first address of the range.
        address: usize,
        /// The length of the range in bytes.
        len: usize,
    },
    /// A transaction touched pools that it cannot commit together.
    #[error(
        "the transaction uses pool \"{first}\" ({first_engine}) and pool \"{second}\" ({second_engine}), which cannot commit together; use pools of one engine"
    )]
    MixedEngines {
        /// A pool that the transaction used before.
        first: String,
        /// Its engine.
        first_engine: &'static str,
        /// The pool that it tried to use.
        second: String,
        /// Its engine.
        second_engine: &'static str,
    },
    /// A transaction of another store is running on this thread.
    #[error(
        "a transaction on the store {running} is running on this thread; end it before one on {wanted} begins"
    )]
    OtherStore {
        /// The store of the running transaction.
        running: PathBuf,
        /// The store of the new one.
        wanted: PathBuf,
    },
    /// The transaction was already doomed by an inner abort, or is over.
    #[error("the transaction was aborted inside; nothing of it was kept")]
    Aborted,
    /// No transaction is running on this thread.
    #[error("no transaction is running on this thread")]
    NoTransaction,
    /// The pool was opened for reading only.
    #[error(
        "pool \"{pool}\" is open for reading only; close it, and open it for writing to change it"
    )]
    ReadOnly {
        /// The pool's name.
        pool: String,
    },
    /// A pool type has no open pool.
    #[error(
        "no pool is open as {pool_type}; keep what {pool_type}::open returned as long as its transactions run"
    )]
    NotOpen {
        /// The pool type.
        pool_type: &'static str,
    },
    /// A typed transaction was to begin inside an untyped one.
    #[error(
        "pool \"{pool}\": an untyped transaction is running on this thread, and one of the typed interface inside it would not know whether it commits; begin the typed one first"
    )]
    TypedInside {
        /// The pool's name.
        pool: String,
    },
    /// A pool type has an open pool already.
    #[error(
        "a pool is open as {pool_type} already, or as another pool type that the same macro declares at the same place; drop its root first, or declare another pool type for a second pool"
    )]
    PoolTypeInUse {
        /// The pool type.
        pool_type: &'static str,
    },
    /// `Store::close` was called while other handles to the store or its pools were held.
    #[error("{store}: other handles to the store or its pools are still held, so it stays open until they are dropped", store = .store.display())]
    StillOpen {
        /// The store directory.
        store: PathBuf,
    },
    /// This process was forked while a store was open: no handle of its parent's works here, and it opens no stores.
    #[error(
        "this process was forked while a store was open, whose memory was left behind: fork when all stores are closed, or exec, and open them then"
    )]
    Forked,
    /// An allocation that no puddle can hold.
    #[error(
        "an object of {size} bytes aligned to {align} cannot be allocated: at most {size_max} bytes, and an alignment that is a power of two up to {align_max}"
    )]
    ObjectSize {
        /// The size asked for, in bytes.
        size: usize,
        /// The alignment asked for.
        align: usize,
        /// The largest size, in bytes.
        size_max: usize,
        /// The largest alignment.
        align_max: usize,
    },
    /// A pool of the typed interface was to be opened that does not exist.
    #[error(
        "{path}: no pool to open here ({missing} is missing); open it with Flags::CREATE, or OpenOptions::create, which makes it", path = .path.display()
    )]
    NothingToOpen {
        /// The path of the store.
        path: PathBuf,
        /// What is missing there.
        missing: String,
    },
    /// The pool's root is of another type.
    #[error(
        "pool \"{pool}\": its root is of type {found}, not {expected}{}{}; give its types what they may become (new cases, fields in reserved bytes, former names), or have the program migrate it (both: docs/how-to/change-types.md); else open it with the program that made it, or use another pool",
        differing(changes), in_the_way(obstacle.as_deref())
    )]
    RootType {
        /// The pool's name.
        pool: String,
        /// The type asked for.
        expected: String,
        /// The type found.
        found: String,
        /// How they differ, as far as that is known, with the way to each place from the root
        /// ([`Difference`](durum_format::types::Difference)).
        changes: Vec<String>,
        /// The first of them that a type which stays readable may not have.
        obstacle: Option<String>,
    },
    /// The pool's root is of a type that a newer version of the program has.
    #[error(
        "pool \"{pool}\": a newer version of this program has been there: its root is of type {found} now, not {expected}{}; use that version, because this one would not understand what it has stored",
        differing(changes)
    )]
    OldRootType {
        /// The pool's name.
        pool: String,
        /// The type asked for.
        expected: String,
        /// What it has become.
        found: String,
        /// How they differ, as for `RootType`.
        changes: Vec<String>,
    },
    /// Another transaction is making the pool's root.
    #[error(
        "pool \"{pool}\": its root is being made by a transaction that has not ended; ask for it after that one, or make it before other threads begin"
    )]
    RootPending {
        /// The pool's name.
        pool: String,
    },
    /// A section on a pool whose engine has none.
    #[error(
        "pool \"{pool}\": its engine, {engine}, has no sections; announce what changes, or use a pool of the Shadow engine"
    )]
    SectionEngine {
        /// The pool's name.
        pool: String,
        /// Its engine.
        engine: &'static str,
    },
    /// A section was to begin inside a transaction.
    #[error(
        "pool \"{pool}\": a transaction is running on this thread, and a section would have to find what that one has changed before; begin the section first"
    )]
    SectionInside {
        /// The pool's name.
        pool: String,
    },
    /// No snapshot can be made of a pool here.
    #[error("pool \"{pool}\": no snapshot: {reason}")]
    SnapshotRefused {
        /// The pool's name.
        pool: String,
        /// Why, and what helps.
        reason: &'static str,
    },
    /// A snapshot was to be made, and a transaction of the store stayed open.
    #[error(
        "pool \"{pool}\": no snapshot: for {waited:?} some transaction of its store was always open; end it, or wait longer (`SnapshotOptions::wait`)"
    )]
    SnapshotWaits {
        /// The pool's name.
        pool: String,
        /// How long that was.
        waited: std::time::Duration,
    },
    /// Readers were to read one of two copies, and the pool has not two, or is not open for that.
    #[error(
        "pool \"{pool}\": readers cannot read a copy of their own; make it with the Twin engine and open it with TwinMode::LeftRight"
    )]
    NoCopies {
        /// The pool's name.
        pool: String,
    },
    /// A transaction was to change a pool while its thread reads one of the pool's copies: it would wait for itself.
    #[error(
        "pool \"{pool}\": this thread is in `read_copy`, for whose end a change would have to wait; change the pool when it has returned"
    )]
    ReadsCopy {
        /// The pool's name.
        pool: String,
    },
    /// An update was asked for inside a read.
    #[error(
        "pool \"{pool}\": this thread is reading, and an update would wait for the read to end; end it first, or do all of it in an update"
    )]
    UpdateInRead {
        /// The pool's name.
        pool: String,
    },
    /// An update or a read was asked for inside a transaction that is no update of the pool.
    #[error(
        "pool \"{pool}\": a transaction that is no update of this pool runs on this thread, and others may wait for it while this would wait for them; end it first, or begin it as an update of this pool"
    )]
    InsideTransaction {
        /// The pool's name.
        pool: String,
    },
    /// The transaction of several updates could not be committed. None of them was kept.
    #[error("pool \"{pool}\": several updates that were combined could not be committed: {reason}")]
    CombinedUpdates {
        /// The pool's name.
        pool: String,
        /// Why, as the error of the commit says it.
        reason: String,
        /// Who can act on that.
        kind: ErrorKind,
    },
    /// The pool was made for another engine than the one that was asked for.
    #[error(
        "pool \"{pool}\": it was made for the engine {engine}, and {wanted} is asked for; open it without naming one, or make another pool"
    )]
    OtherEngine {
        /// The pool's name.
        pool: String,
        /// Its engine.
        engine: &'static str,
        /// The engine asked for.
        wanted: &'static str,
    },
    /// The engine is not built into this version.
    #[error(
        "pool \"{pool}\": the {engine} engine is not available in this version; open it with one that has it"
    )]
    EngineMissing {
        /// The pool's name.
        pool: String,
        /// The engine.
        engine: &'static str,
    },
    /// A transaction changes more than the log can tell of at once. It was rolled back.
    #[error(
        "a transaction has {bytes} bytes to be logged, and {max} is the most; split it into several"
    )]
    TransactionTooLarge {
        /// What its record would take.
        bytes: u64,
        /// The most that one may take.
        max: u64,
    },
    /// The checker found stores that no `add` announced.
    #[error("pool \"{pool}\": {} not announced by `add`; the first: {first}", stores(*.count))]
    Unannounced {
        /// The pool's name.
        pool: String,
        /// The number of changed ranges.
        count: usize,
        /// Where the first one is, with type and field.
        first: String,
    },
    /// The checker found a pointer that leads out of the store, to what is gone when the program has ended.
    #[error(
        "pool \"{pool}\": a pointer leads out of the store, to {target:#x}, which will be something else in the next run: {place}; copy what it leads to into a pool, or describe the field as volatile"
    )]
    PointerOutside {
        /// The pool's name.
        pool: String,
        /// Where it leads.
        target: usize,
        /// Where the pointer is, with type and field.
        place: String,
    },
    /// A low-level log was used in a way that it cannot be.
    #[error("the log cannot do this: {reason}")]
    LogMisuse {
        /// Why, as a clause.
        reason: &'static str,
    },

    // ---- the data ---------------------------------------------------------------------------
    /// Media could not be read or a sync failed: what is on the media is unknown until the store is closed and opened
    /// again.
    #[error("{file}: {reason} at offset {offset}; nothing of the store can be used until it is closed and opened again", file = .file.display())]
    Poisoned {
        /// The file.
        file: PathBuf,
        /// The offset in the file, in bytes.
        offset: u64,
        /// What happened.
        reason: &'static str,
    },
    /// Allocation data on the media contradicts itself.
    #[error("{file}: damaged heap: {reason}; run `durum check` on the store", file = .file.display())]
    DamagedHeap {
        /// The puddle's file.
        file: PathBuf,
        /// What is wrong, with offsets.
        reason: String,
    },

    // ---- the system -------------------------------------------------------------------------
    /// The disk is full, and a transaction has more to log than the logs hold that are kept for that case. It was
    /// rolled back.
    #[error("{path}: the disk is full, and the transaction has more to log than fits into the {bytes} bytes of logs that are there; make it smaller (100,000 deletes fit), or free some space", path = .path.display())]
    LogFull {
        /// The store.
        path: PathBuf,
        /// Bytes of the logs that it could have.
        bytes: u64,
    },
    /// A system call failed.
    #[error("{operation} failed: {source}")]
    System {
        /// What was tried.
        operation: &'static str,
        /// The system's error.
        source: std::io::Error,
    },
}

/// What has changed since the data was made.
fn differing(changes: &[String]) -> String {
    match changes.is_empty() {
        true => String::new(),
        false => format!(", as has changed since: {}", changes.join("; ")),
    }
}

fn in_the_way(obstacle: Option<&str>) -> String {
    obstacle.map_or_else(String::new, |obstacle| {
        format!(" (values would have to be written anew because of {obstacle})")
    })
}

/// How many stores were not announced.
fn stores(count: usize) -> String {
    match count {
        1 => "1 store was".into(),
        _ => format!("{count} stores were"),
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Error {
    /// Who can act on this error.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Error::Store(error) => error.kind(),
            Error::Poisoned { .. } | Error::DamagedHeap { .. } => ErrorKind::Data,
            Error::NothingToOpen { .. }
            | Error::NotMigrated { .. }
            | Error::RootType { .. }
            | Error::OldRootType { .. }
            | Error::OtherEngine { .. }
            | Error::EngineMissing { .. } => ErrorKind::User,
            Error::CombinedUpdates { kind, .. } => *kind,
            Error::System { .. } | Error::LogFull { .. } => ErrorKind::System,
            _ => ErrorKind::Caller,
        }
    }

    pub(crate) fn system(operation: &'static str, source: impl Into<std::io::Error>) -> Self {
        Self::System {
            operation,
            source: source.into(),
        }
    }
}
