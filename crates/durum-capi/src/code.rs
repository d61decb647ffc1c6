//! Codes that a C program can branch on, grouped by who can act: the hundreds digit is the group.

use std::ffi::c_int;

use client::{Error, ErrorKind, StoreError};

/// No error.
pub const DURUM_OK: c_int = 0;

/// Misuse that has no code of its own.
pub const DURUM_E_CALLER: c_int = 100;
/// A pointer is NULL that must not be, a string is not UTF-8, or a number is out of its range.
pub const DURUM_E_ARGUMENT: c_int = 101;
/// The range does not lie in an open pool of the store.
pub const DURUM_E_NOT_IN_POOL: c_int = 102;
/// No live object starts at the address: it was freed before, or never allocated.
pub const DURUM_E_NOT_ALLOCATED: c_int = 103;
/// The range has a pending redo set in this transaction.
pub const DURUM_E_PENDING_SET: c_int = 104;
/// Pools that cannot commit together.
pub const DURUM_E_MIXED_ENGINES: c_int = 105;
/// A transaction on another store runs on this thread.
pub const DURUM_E_OTHER_STORE: c_int = 106;
/// The transaction was aborted by the program; nothing of it was kept.
pub const DURUM_E_ABORTED: c_int = 107;
/// No transaction runs on this thread.
pub const DURUM_E_NO_TRANSACTION: c_int = 108;
/// This process was forked while a store was open.
pub const DURUM_E_FORKED: c_int = 109;
/// An object too large or with too large an alignment.
pub const DURUM_E_OBJECT_SIZE: c_int = 110;
/// The checker found stores that were not announced.
pub const DURUM_E_UNANNOUNCED: c_int = 111;
/// A low-level log was used in a way that it cannot be.
pub const DURUM_E_LOG_MISUSE: c_int = 112;
/// A type declaration that contradicts itself or another one of the same name.
pub const DURUM_E_TYPE: c_int = 113;
/// The pool is open and the operation needs it closed.
pub const DURUM_E_POOL_OPEN: c_int = 114;
/// A DURUM_TX_BEGIN block was left by return, break, continue or goto; its transaction was aborted.
pub const DURUM_E_BLOCK_LEFT: c_int = 115;
/// Begin and end of transactions do not match.
pub const DURUM_E_UNBALANCED: c_int = 116;
/// The operation cannot be done while a transaction runs on this thread.
pub const DURUM_E_IN_TRANSACTION: c_int = 117;
/// Another thread's transaction is making the pool's root: ask for it after that one.
pub const DURUM_E_ROOT_PENDING: c_int = 118;
/// The pool's engine has no sections: announce what changes, or use DURUM_ENGINE_SHADOW.
pub const DURUM_E_SECTION_ENGINE: c_int = 119;
/// The transaction changes more than can be logged at once: split it into several.
pub const DURUM_E_TX_SIZE: c_int = 120;
/// The thread reads, and an update would wait for that to end.
pub const DURUM_E_UPDATE_IN_READ: c_int = 121;
/// The pool has no copies that readers may read: it needs DURUM_ENGINE_TWIN and DURUM_POOL_LEFT_RIGHT.
pub const DURUM_E_NO_COPIES: c_int = 122;
/// The thread reads a copy, and a change would wait for that to end.
pub const DURUM_E_READS_COPY: c_int = 123;
/// The pool's root was to be freed, which lives as long as the pool.
pub const DURUM_E_ROOT_FREED: c_int = 124;
/// The checker found a pointer that leads out of the store.
pub const DURUM_E_POINTER_OUTSIDE: c_int = 125;
/// The service does not know this process any more, because it took it for gone and recovered its pools: close pools
/// and store, and open them again.
pub const DURUM_E_CLIENT_UNKNOWN: c_int = 126;
/// The pool is open for reading only (DURUM_POOL_READ_ONLY). Nothing was changed.
pub const DURUM_E_READ_ONLY: c_int = 127;

/// A refusal that has no code of its own.
pub const DURUM_E_USER: c_int = 200;
/// There is no store at the path.
pub const DURUM_E_STORE_MISSING: c_int = 201;
/// Something is already at the path where a store was to be made.
pub const DURUM_E_STORE_EXISTS: c_int = 202;
/// Another opener holds the store.
pub const DURUM_E_STORE_BUSY: c_int = 203;
/// The store was not closed in order and the operation needs that.
pub const DURUM_E_STORE_DIRTY: c_int = 204;
/// The store has no pool of this name.
pub const DURUM_E_POOL_MISSING: c_int = 205;
/// The store has a pool of this name already.
pub const DURUM_E_POOL_EXISTS: c_int = 206;
/// A name that a pool cannot have.
pub const DURUM_E_POOL_NAME: c_int = 207;
/// Options that a store or a pool cannot be made with.
pub const DURUM_E_OPTIONS: c_int = 208;
/// The store's addresses are taken in this process, and it cannot be moved to others: the message says why.
pub const DURUM_E_ADDRESS_CONFLICT: c_int = 209;
/// The store has no free addresses left.
pub const DURUM_E_ADDRESSES_EXHAUSTED: c_int = 210;
/// The pool's root is of another type or size.
pub const DURUM_E_ROOT_TYPE: c_int = 211;
/// This version does not have the pool's engine.
pub const DURUM_E_ENGINE_MISSING: c_int = 212;
/// The files are of another kind or of another version of durum.
pub const DURUM_E_FORMAT: c_int = 213;
/// Another program has the pool of the service's store: it is free when that has closed it, or is gone.
pub const DURUM_E_POOL_BUSY: c_int = 214;
/// The service of the store has ended, and a client of it lives, which the message names. Nobody opens the directory
/// meanwhile: start the service again, or end that program.
pub const DURUM_E_STORE_SERVED: c_int = 215;
/// A pool cannot be exported or imported so, and the message says why. Nothing was changed.
pub const DURUM_E_SHIPPING: c_int = 216;
/// A pool cannot be migrated so, and the message says everything that stands in the way. Nothing was changed.
pub const DURUM_E_MIGRATION: c_int = 217;

/// Bad data that has no code of its own.
pub const DURUM_E_DATA: c_int = 300;
/// A file is damaged, cut short or missing. Nothing was changed.
pub const DURUM_E_DAMAGED: c_int = 301;
/// A log that concerns this pool failed validation.
pub const DURUM_E_QUARANTINED: c_int = 302;
/// Media could not be read or written: the outcome is unknown until the store is closed and opened again.
pub const DURUM_E_POISONED: c_int = 303;
/// A file is in the way of the pool's recovery: bring it back. What recovery would write to the pool is kept.
pub const DURUM_E_POOL_REFUSED: c_int = 304;
/// What recovery would write to some pool is kept: the operation has to wait for it. Nothing was changed.
pub const DURUM_E_PARTS_KEPT: c_int = 305;
/// The registry is older than the store's puddles. Nothing was changed.
pub const DURUM_E_REGISTRY_OLDER: c_int = 306;

/// A failure of the system that has no code of its own.
pub const DURUM_E_SYSTEM: c_int = 400;
/// The file system is full. What exists is as before.
pub const DURUM_E_STORAGE_FULL: c_int = 401;
/// An operation of the system failed.
pub const DURUM_E_IO: c_int = 402;
/// The process gets no addresses or private memory for the store: a limit (`ulimit -v`, `ulimit -d`, the number of
/// mappings), which the message names with the cure.
pub const DURUM_E_ADDRESS_SPACE: c_int = 403;
/// The service cannot be reached, or does not answer. Transactions on pools that are open go on; what needs the service
/// has waited some seconds for it to come back.
pub const DURUM_E_SERVICE_GONE: c_int = 404;

/// durum itself is wrong; please report it with the message.
pub const DURUM_E_INTERNAL: c_int = 500;

/// The code of an error.
pub(crate) fn of(error: &Error) -> c_int {
    match error {
        Error::Store(error) => of_store(error),
        Error::NotInPool { .. } => DURUM_E_NOT_IN_POOL,
        Error::NotAllocated { .. } => DURUM_E_NOT_ALLOCATED,
        Error::RootFreed { .. } => DURUM_E_ROOT_FREED,
        Error::PendingSet { .. } => DURUM_E_PENDING_SET,
        Error::MixedEngines { .. } => DURUM_E_MIXED_ENGINES,
        Error::OtherStore { .. } => DURUM_E_OTHER_STORE,
        Error::Aborted => DURUM_E_ABORTED,
        Error::NoTransaction => DURUM_E_NO_TRANSACTION,
        Error::ReadOnly { .. } => DURUM_E_READ_ONLY,
        Error::Forked => DURUM_E_FORKED,
        Error::ObjectSize { .. } => DURUM_E_OBJECT_SIZE,
        Error::RootType { .. } | Error::OldRootType { .. } => DURUM_E_ROOT_TYPE,
        Error::RootPending { .. } => DURUM_E_ROOT_PENDING,
        Error::SectionEngine { .. } => DURUM_E_SECTION_ENGINE,
        Error::TransactionTooLarge { .. } => DURUM_E_TX_SIZE,
        Error::LogFull { .. } => DURUM_E_STORAGE_FULL,
        Error::SnapshotRefused { .. } | Error::SnapshotWaits { .. } => DURUM_E_SHIPPING,
        Error::SectionInside { .. } => DURUM_E_IN_TRANSACTION,
        Error::InsideTransaction { .. } => DURUM_E_IN_TRANSACTION,
        Error::UpdateInRead { .. } => DURUM_E_UPDATE_IN_READ,
        Error::NoCopies { .. } => DURUM_E_NO_COPIES,
        Error::ReadsCopy { .. } => DURUM_E_READS_COPY,
        Error::EngineMissing { .. } => DURUM_E_ENGINE_MISSING,
        Error::Unannounced { .. } => DURUM_E_UNANNOUNCED,
        Error::PointerOutside { .. } => DURUM_E_POINTER_OUTSIDE,
        Error::LogMisuse { .. } => DURUM_E_LOG_MISUSE,
        Error::Poisoned { .. } => DURUM_E_POISONED,
        Error::DamagedHeap { .. } => DURUM_E_DAMAGED,
        Error::System { .. } => DURUM_E_IO,
        other => of_kind(other.kind()),
    }
}

fn of_store(error: &StoreError) -> c_int {
    match error {
        StoreError::Forked { .. } => DURUM_E_FORKED,
        StoreError::PoolOpen { .. } => DURUM_E_POOL_OPEN,
        StoreError::ClientUnknown { .. } => DURUM_E_CLIENT_UNKNOWN,
        StoreError::PuddleSize { .. } | StoreError::Options { .. } => DURUM_E_OPTIONS,
        StoreError::TypeRefused { .. } => DURUM_E_TYPE,
        StoreError::StoreMissing { .. } => DURUM_E_STORE_MISSING,
        StoreError::StoreExists { .. } => DURUM_E_STORE_EXISTS,
        StoreError::StoreBusy { .. } => DURUM_E_STORE_BUSY,
        StoreError::StoreServed { .. } => DURUM_E_STORE_SERVED,
        StoreError::PoolBusy { .. } => DURUM_E_POOL_BUSY,
        StoreError::StoreDirty { .. } => DURUM_E_STORE_DIRTY,
        StoreError::PoolMissing { .. } => DURUM_E_POOL_MISSING,
        StoreError::PoolExists { .. } => DURUM_E_POOL_EXISTS,
        StoreError::PoolName { .. } => DURUM_E_POOL_NAME,
        StoreError::AddressConflict { .. } | StoreError::Unmovable { .. } => {
            DURUM_E_ADDRESS_CONFLICT
        }
        StoreError::ExportExists { .. }
        | StoreError::PointersLeave { .. }
        | StoreError::ImportRefused { .. }
        | StoreError::LoadRefused { .. } => DURUM_E_SHIPPING,
        StoreError::MigrationRefused { .. } => DURUM_E_MIGRATION,
        StoreError::AddressesExhausted { .. } => DURUM_E_ADDRESSES_EXHAUSTED,
        StoreError::Format { .. } => match error.kind() {
            ErrorKind::User => DURUM_E_FORMAT,
            _ => DURUM_E_DAMAGED,
        },
        StoreError::PathRefused { .. } => match error.kind() {
            ErrorKind::User => DURUM_E_USER,
            _ => DURUM_E_IO,
        },
        StoreError::Damaged { .. }
        | StoreError::FileMissing { .. }
        | StoreError::NotAFile { .. } => DURUM_E_DAMAGED,
        StoreError::PoolQuarantined { .. } => DURUM_E_QUARANTINED,
        StoreError::PoolRefused { .. } => DURUM_E_POOL_REFUSED,
        StoreError::PartsKept { .. } => DURUM_E_PARTS_KEPT,
        StoreError::RegistryOlder { .. } => DURUM_E_REGISTRY_OLDER,
        StoreError::Poisoned { .. } => DURUM_E_POISONED,
        StoreError::StorageFull { .. } => DURUM_E_STORAGE_FULL,
        StoreError::AddressSpace { .. } => DURUM_E_ADDRESS_SPACE,
        StoreError::ServiceGone { .. } => DURUM_E_SERVICE_GONE,
        StoreError::Io { .. } => DURUM_E_IO,
        other => of_kind(other.kind()),
    }
}

fn of_kind(kind: ErrorKind) -> c_int {
    match kind {
        ErrorKind::Caller => DURUM_E_CALLER,
        ErrorKind::User => DURUM_E_USER,
        ErrorKind::Data => DURUM_E_DATA,
        ErrorKind::System => DURUM_E_SYSTEM,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The hundreds digit of a code says who can act, as `Error::kind` does.
    #[test]
    fn codes_follow_the_groups_of_errors() {
        let group = |error: Error| (of(&error) / 100, error.kind());
        assert_eq!(group(Error::Forked), (1, ErrorKind::Caller));
        let missing = StoreError::StoreMissing {
            path: "x".into(),
            missing: "durum.store",
            can_be_made: false,
        };
        assert_eq!(group(missing.into()), (2, ErrorKind::User));
        let poisoned = Error::Poisoned {
            file: "x".into(),
            offset: 0,
            reason: "gone",
        };
        assert_eq!(group(poisoned), (3, ErrorKind::Data));
        let full = StoreError::StorageFull {
            path: "x".into(),
            bytes: 1,
        };
        assert_eq!(group(full.into()), (4, ErrorKind::System));
        let unknown = StoreError::ClientUnknown { client: "x".into() };
        assert_eq!(group(unknown.into()), (1, ErrorKind::Caller));
        let busy = StoreError::PoolBusy { name: "x".into() };
        assert_eq!(group(busy.into()), (2, ErrorKind::User));
        let served = StoreError::StoreServed {
            path: "x".into(),
            pid: None,
        };
        assert_eq!(group(served.into()), (2, ErrorKind::User));
        let gone = StoreError::ServiceGone {
            socket: "x".into(),
            problem: "is away".into(),
            cure: "",
        };
        assert_eq!(group(gone.into()), (4, ErrorKind::System));
    }
}
