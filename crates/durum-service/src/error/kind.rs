//! Who can act on an error.

use std::io;
use std::path::Path;

use durum_format::error::Fault;

use super::Error;

/// Who can act on an error. The command's exit codes follow these groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// The program called in a way it must not: a bug in the caller.
    Caller,
    /// The input was refused: a name, a path, a store that is busy or already there (exit code 2).
    User,
    /// Data on the media is damaged or was quarantined (exit code 3).
    Data,
    /// The system refused: I/O, permission, a full disk.
    System,
}

/// Whether the file is the one by which a directory counts as a store.
fn is_identity(file: &Path) -> bool {
    file.file_name() == Some(durum_format::store::FILE_NAME.as_ref())
}

impl Error {
    /// Who can act on this error.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Error::Closed { .. }
            | Error::ClientUnknown { .. }
            | Error::Forked { .. }
            | Error::PoolNotOpen { .. }
            | Error::PoolOpen { .. }
            | Error::PuddleUnknown { .. }
            | Error::PuddleRefused { .. }
            | Error::PuddleSize { .. }
            | Error::TypeRefused { .. } => ErrorKind::Caller,
            Error::StoreMissing { .. }
            | Error::StoreExists { .. }
            | Error::StoreBusy { .. }
            | Error::StoreServed { .. }
            | Error::StoreDirty { .. }
            | Error::PoolBusy { .. }
            | Error::ModeRefused { .. }
            | Error::PoolMissing { .. }
            | Error::PoolExists { .. }
            | Error::PoolName { .. }
            | Error::Options { .. }
            | Error::AddressConflict { .. }
            | Error::Unmovable { .. }
            | Error::StoreMoving { .. }
            | Error::ExportExists { .. }
            | Error::PointersLeave { .. }
            | Error::ImportRefused { .. }
            | Error::LoadRefused { .. }
            | Error::MigrationRefused { .. }
            | Error::AddressesExhausted { .. }
            | Error::NothingKept { .. }
            | Error::PoolNotQuarantined { .. }
            | Error::PoolWaits { .. }
            | Error::Stopped { .. }
            | Error::GarbageUnjudged { .. } => ErrorKind::User,
            Error::Told { kind, .. } => *kind,
            Error::Format { file, source, .. } => match source.fault() {
                // A store of ours whose other files are foreign was damaged.
                Fault::Foreign if !is_identity(file) => ErrorKind::Data,
                Fault::Foreign | Fault::OtherVersion => ErrorKind::User,
                Fault::Damaged => ErrorKind::Data,
            },
            Error::PathRefused { source, .. } => match source.kind() {
                io::ErrorKind::PermissionDenied => ErrorKind::System,
                _ => ErrorKind::User,
            },
            Error::Damaged { .. }
            | Error::FileMissing { .. }
            | Error::NotAFile { .. }
            | Error::RegistryOlder { .. }
            | Error::PoolQuarantined { .. }
            | Error::PoolRefused { .. }
            | Error::PoolInterrupted { .. }
            | Error::PartsKept { .. }
            | Error::GarbageDamaged { .. } => ErrorKind::Data,
            Error::ProcessorLacks { .. }
            | Error::NotPermitted { .. }
            | Error::QuotaExceeded { .. }
            | Error::StorageFull { .. }
            | Error::AddressSpace { .. }
            | Error::ServiceGone { .. }
            | Error::Io { .. }
            | Error::Poisoned { .. } => ErrorKind::System,
        }
    }
}
