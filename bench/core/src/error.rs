//! Why a benchmark stopped.

use std::path::PathBuf;

/// Result with this crate's error.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a benchmark stopped. No row of a stopped run is reported.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The command line is not understood.
    #[error("{0} (see --help)")]
    Usage(String),
    /// A side gave a wrong answer: its time would mean nothing.
    #[error("{side}, {row}: wrong answer: expected {expected}, found {found}")]
    WrongAnswer {
        /// Which side.
        side: String,
        /// Which row.
        row: &'static str,
        /// What every side must find.
        expected: String,
        /// What this one found.
        found: String,
    },
    /// A side failed.
    #[error("{side}: {source}")]
    Side {
        /// Which side.
        side: String,
        /// What it said.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The system refused a file operation.
    #[error("{path}: {source}")]
    File {
        /// The file or directory.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The arena of the flush1 or volatile side is too small for the workload.
    #[error("the arena of {size} bytes is full: make `ARENA_SIZE` larger")]
    ArenaFull {
        /// Its size in bytes.
        size: usize,
    },
    /// A side was asked for a workload of a suite that it has no part in.
    #[error("{side} does not take part in this workload")]
    NotTaken {
        /// Which side.
        side: String,
    },
    /// The sides would not execute the same instructions.
    #[error("{0}")]
    Unfair(String),
}

impl Error {
    /// For `map_err` on file operations.
    pub fn file(path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Error {
        let path = path.into();
        move |source| Error::File { path, source }
    }

    /// What a side says to a workload of another suite.
    pub fn not_taken<T>(side: &str) -> Result<T> {
        Err(Error::NotTaken {
            side: side.to_owned(),
        })
    }

    /// For `map_err` on what a side says.
    pub fn side<E: std::error::Error + Send + Sync + 'static>(
        side: &'static str,
    ) -> impl FnOnce(E) -> Error {
        // The name is copied in the error case only: this closure is made in timed loops.
        move |source| Error::Side {
            side: side.to_owned(),
            source: Box::new(source),
        }
    }
}
