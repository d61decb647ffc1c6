//! Errors are told apart by whose they are: a log's, a pool's, or the system's.

use std::fmt;
use std::io;

use rustix::io::Errno;

use crate::error::{Error, ErrorKind};

/// Why something could not be read.
pub(super) enum Obstacle {
    /// The bytes of a log are not what they must be: it must not be replayed.
    Invalid(String),
    /// The system stands in the way: nothing can be said, and nothing may be done. Nothing that a client can write
    /// leads here, for it would keep all others from their pools.
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
    /// An error met at a file of logs, whose bytes and length are its client's.
    pub(super) fn of_log(error: Error) -> Obstacle {
        let is_its = match &error {
            // A version, too: whoever writes it could otherwise keep everybody from the store. The log is kept whole,
            // for a durum that knows it.
            Error::Format { .. } => true,
            Error::Io { source, .. } => is_of_file(source),
            error => error.kind() == ErrorKind::Data,
        };
        match is_its {
            true => Obstacle::Invalid(error.to_string()),
            false => Obstacle::Fatal(error),
        }
    }
}

/// Whether an error says that the media fail at a file, or that somebody cut it short.
fn is_of_file(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::UnexpectedEof || Errno::from_io_error(error) == Some(Errno::IO)
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

/// Descriptors or memory that are used up. Room is not among them: puddles have all of theirs from the start, so a file
/// that needs more has holes, which its client made.
fn is_of_system(error: &io::Error) -> bool {
    let exhausted = [
        Errno::MFILE,
        Errno::NFILE,
        Errno::NOMEM,
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
    fn what_is_used_up_is_the_systems_and_what_a_client_can_cause_is_not() {
        let met = |source| Error::Io {
            operation: "reading a puddle",
            path: PathBuf::from("p"),
            offset: None,
            source,
        };
        for (errno, is_pools, is_logs) in [
            (Errno::IO, true, true),
            (Errno::ACCESS, true, false),
            (Errno::PERM, true, false),
            (Errno::NOSPC, true, false),
            (Errno::DQUOT, true, false),
            (Errno::MFILE, false, false),
            (Errno::NOMEM, false, false),
        ] {
            let error = || met(io::Error::from(errno));
            assert_eq!(is_of_pool(&error()), is_pools, "{errno}");
            let is_invalid = matches!(Obstacle::of_log(error()), Obstacle::Invalid(_));
            assert_eq!(is_invalid, is_logs, "{errno}");
        }
        let cut = || met(io::ErrorKind::UnexpectedEof.into());
        assert!(is_of_pool(&cut()));
        assert!(matches!(Obstacle::of_log(cut()), Obstacle::Invalid(_)));
    }
}
