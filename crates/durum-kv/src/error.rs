//! What can go wrong in a database, grouped by who can act on it.

use std::fmt;
use std::path::PathBuf;

pub use durum::ErrorKind;

/// The result of an operation on a database.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error of a database.
///
/// A write that fails has changed nothing, except where the variant says that the outcome is unknown.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The store, the pool or the transaction below refused or failed; see the message.
    #[error(transparent)]
    Durum(#[from] durum::Error),

    // ---- the caller -------------------------------------------------------------------------
    /// A write inside a transaction of this thread: one of this database, which it would wait for, or one of the pool's
    /// store, whose outcome it would depend on.
    #[error(
        "a transaction is running on this thread; write through it, or end it before the database is written to"
    )]
    InTransaction,
    /// A key whose length does not fit.
    #[error("a key has {len} bytes, and {max} is the most", max = u32::MAX)]
    KeyTooLong {
        /// The length of the key in bytes.
        len: usize,
    },
    /// A snapshot of another database.
    #[error("the snapshot was taken of another database; read that one by it")]
    OtherSnapshot,

    // ---- the user ---------------------------------------------------------------------------
    /// There is no database.
    #[error(
        "{path}: there is no database; set create_if_missing to make one", path = .path.display()
    )]
    Missing {
        /// The store's directory.
        path: PathBuf,
    },
    /// There is a database already.
    #[error("{path}: there is a database, and error_if_exists is set; name another directory, or destroy that one", path = .path.display())]
    Exists {
        /// The store's directory.
        path: PathBuf,
    },
    /// The keys are in the order of another comparator.
    #[error(
        "{path}: its keys are ordered by the comparator \"{stored}\", not by \"{given}\"; open it with that one", path = .path.display()
    )]
    Comparator {
        /// The store's directory.
        path: PathBuf,
        /// The name in the database.
        stored: String,
        /// The name in the options.
        given: String,
    },
    /// The database was made by a version that this one does not know.
    #[error("{path}: its layout is {found}, which this version does not know; use a newer version of durum", path = .path.display())]
    Newer {
        /// The store's directory.
        path: PathBuf,
        /// The layout found.
        found: u64,
    },
    /// A database was to be made in a directory that holds something else.
    #[error("{path}: what lies here is no store of durum's, so no database is made among it; choose another directory", path = .path.display())]
    Occupied {
        /// The directory.
        path: PathBuf,
    },
    /// A database was to be destroyed in a directory that holds something that is no store.
    #[error("{path}: this is not a store of durum's, so it is left alone; remove it by other means", path = .path.display())]
    NotAStore {
        /// The directory.
        path: PathBuf,
    },

    // ---- the data ---------------------------------------------------------------------------
    /// What lies in the pool contradicts itself.
    #[error(
        "damaged database at {address:#x}: {reason}; run `durum check` on the store, and restore it from a copy"
    )]
    Damaged {
        /// The address of the object.
        address: usize,
        /// What is wrong.
        reason: &'static str,
    },
    /// A write failed, and the database could not be read again after it.
    #[error(
        "after a failed write the database could not be read again; close it and open it anew: {reason}"
    )]
    Broken {
        /// What failed.
        reason: String,
    },

    // ---- the system -------------------------------------------------------------------------
    /// A system call failed.
    #[error("{path}: {operation} failed: {source}", path = .path.display())]
    System {
        /// The path.
        path: PathBuf,
        /// What was tried.
        operation: &'static str,
        /// The system's error.
        source: std::io::Error,
    },
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
            Error::Durum(error) => error.kind(),
            Error::InTransaction | Error::KeyTooLong { .. } | Error::OtherSnapshot => {
                ErrorKind::Caller
            }
            Error::Missing { .. }
            | Error::Exists { .. }
            | Error::Comparator { .. }
            | Error::Newer { .. }
            | Error::Occupied { .. }
            | Error::NotAStore { .. } => ErrorKind::User,
            Error::Damaged { .. } | Error::Broken { .. } => ErrorKind::Data,
            Error::System { .. } => ErrorKind::System,
        }
    }

    #[cold]
    pub(crate) fn damaged(address: usize, reason: &'static str) -> Self {
        Self::Damaged { address, reason }
    }
}

impl From<durum_service::Error> for Error {
    fn from(error: durum_service::Error) -> Self {
        Self::Durum(error.into())
    }
}
