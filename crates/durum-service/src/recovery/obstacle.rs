//! Errors are told apart by whose they are: a log's, a pool's, or the system's.

use std::fmt;
use std::io;

use durum_format::Fault;
use rustix::io::Errno;

use crate::error::{Error, ErrorKind};

/// Why something could not be read.
pub(super) enum Obstacle {
    /// The bytes of a log are not what they must be: it must not be replayed.
    Invalid(String),
    /// The system or a newer format stands in the way: nothing can be said, and nothing may be done.
    Fatal(Error),
}

/// An obstacle that can be told.
pub(super) struct Why(pub(super) Obstacle);

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Obstacle::Invalid(reason) => f.write_str(reason),
            Obstacle::Fatal(error) => error.fmt(f),
        }
    }
}

impl Obstacle {
    /// An error met at a file of logs.
    pub(super) fn of_log(error: Error) -> Obstacle {
        let is_invalid = match &error {
            // A foreign file in the place of a log is damage; one of another version is not.
            Error::Format { source, .. } => source.fault() != Fault::OtherVersion,
            error => error.kind() == ErrorKind::Data,
        };
        match is_invalid {
            true => Obstacle::Invalid(error.to_string()),
            false => Obstacle::Fatal(error),
        }
    }
}

/// Whether an error met at a file of a pool is about that pool only. Otherwise it is the system's, and the next file
/// may meet it as well.
pub(super) fn is_of_pool(error: &Error) -> bool {
    match error {
        Error::FileMissing { .. }
        | Error::NotAFile { .. }
        | Error::Damaged { .. }
        | Error::Format { .. } => true,
        Error::Io { source, .. } => !is_of_system(source),
        _ => false,
    }
}

/// Descriptors, memory or room that are used up.
fn is_of_system(error: &io::Error) -> bool {
    let exhausted = [
        Errno::MFILE,
        Errno::NFILE,
        Errno::NOMEM,
        Errno::NOSPC,
        Errno::DQUOT,
        Errno::INTR,
        Errno::AGAIN,
    ];
    Errno::from_io_error(error).is_some_and(|error| exhausted.contains(&error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    #[test]
    fn what_is_used_up_is_no_pools_fault() {
        for (errno, is_pools) in [
            (Errno::IO, true),
            (Errno::ACCESS, true),
            (Errno::PERM, true),
            (Errno::MFILE, false),
            (Errno::NOMEM, false),
            (Errno::NOSPC, false),
        ] {
            let error = Error::Io {
                operation: "reading a puddle",
                path: PathBuf::from("p"),
                offset: None,
                source: io::Error::from(errno),
            };
            assert_eq!(is_of_pool(&error), is_pools, "{errno}");
        }
    }
}
