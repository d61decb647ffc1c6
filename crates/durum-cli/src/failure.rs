//! How a command can fail, and the exit codes.

use std::io;
use std::path::Path;

use durum::ErrorKind;

/// The system failed, or durum has a bug.
pub const SYSTEM: u8 = 1;
/// The input was refused: arguments, a path, a store that is busy or already there.
pub const REFUSED: u8 = 2;
/// Data is damaged or in quarantine.
pub const DAMAGED: u8 = 3;
/// Ended by SIGINT, as shells report it.
pub const INTERRUPTED: u8 = 130;

/// Why a command failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Failure {
    /// A store refused or failed.
    #[error(transparent)]
    Store(#[from] durum_service::Error),
    /// The client refused or failed.
    #[error(transparent)]
    Client(#[from] durum::Error),
    /// A database refused or failed.
    #[error(transparent)]
    Database(#[from] durum_kv::Error),
    /// Input that no error of a store describes.
    #[error("{0}")]
    Refused(String),
    /// Damaged data that no error of a store describes.
    #[error("{0}")]
    Damaged(String),
    /// A file that the system does not let us read.
    #[error("{0}")]
    Unreadable(String),
    /// The system failed.
    #[error("{operation}: {source}")]
    System {
        /// What was tried.
        operation: String,
        /// The system's error.
        source: io::Error,
    },
    /// A process that this one started failed; its own message was printed.
    #[error("the {process} failed with exit code {code}")]
    Child {
        /// What it was.
        process: &'static str,
        /// Its exit code.
        code: u8,
    },
    /// The user ended it; the text says in which state.
    #[error("{0}")]
    Interrupted(String),
    /// Whoever read the output does not want more of it, as `head` does. No failure.
    #[error("the output was closed")]
    OutputClosed,
}

impl Failure {
    /// The exit code that tells who can act on it.
    pub fn exit_code(&self) -> u8 {
        let kind = match self {
            Failure::Store(error) => error.kind(),
            Failure::Client(error) => error.kind(),
            Failure::Database(error) => error.kind(),
            Failure::Refused(_) => ErrorKind::User,
            Failure::Damaged(_) => ErrorKind::Data,
            Failure::Unreadable(_) | Failure::System { .. } => ErrorKind::System,
            Failure::Child { code, .. } => return *code,
            Failure::Interrupted(_) => return INTERRUPTED,
            Failure::OutputClosed => return 0,
        };
        match kind {
            ErrorKind::User => REFUSED,
            ErrorKind::Data => DAMAGED,
            // A caller's error here is a bug of this command.
            ErrorKind::System | ErrorKind::Caller => SYSTEM,
        }
    }

    pub(crate) fn system(operation: impl Into<String>, source: io::Error) -> Self {
        Failure::System {
            operation: operation.into(),
            source,
        }
    }

    /// A file operation that failed.
    pub(crate) fn file(operation: &str, path: &Path, source: io::Error) -> Self {
        Failure::system(format!("{}: {operation} failed", path.display()), source)
    }
}

impl From<io::Error> for Failure {
    /// Errors without a context are those of the output.
    fn from(source: io::Error) -> Self {
        match source.kind() {
            io::ErrorKind::BrokenPipe => Failure::OutputClosed,
            _ => Failure::system("writing the output", source),
        }
    }
}
