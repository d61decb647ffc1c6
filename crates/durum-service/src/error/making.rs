//! Errors as this crate makes them in many places.

use std::io;
use std::path::Path;

use durum_format::error::FormatError;
use durum_persist::file::MediaFile;

use super::Error;
use crate::model::QuarantineNote;

impl Error {
    pub(crate) fn io(operation: &'static str, path: &Path, source: io::Error) -> Error {
        Error::Io {
            operation,
            path: path.to_owned(),
            offset: None,
            source,
        }
    }

    pub(crate) fn io_at(
        operation: &'static str,
        file: &MediaFile,
        offset: u64,
        source: io::Error,
    ) -> Error {
        Error::Io {
            operation,
            path: file.path().to_owned(),
            offset: Some(offset),
            source,
        }
    }

    /// The refusal of a structure that begins at `base` of a file.
    pub(crate) fn format(file: &Path, base: u64, source: FormatError, cure: &'static str) -> Error {
        Error::Format {
            file: file.to_owned(),
            base,
            source: Box::new(source),
            cure: cure.into(),
        }
    }

    /// The refusal of a heap over which nobody can go.
    pub(crate) fn damaged_heap(file: &Path, problem: &impl ToString) -> Error {
        Error::Damaged {
            file: file.to_owned(),
            structure: "heap",
            offset: 0,
            problem: problem.to_string(),
            cure: "`durum check` tells more; restore a copy of the store".into(),
        }
    }

    /// The refusal of a pool that must not be opened because of a log in quarantine.
    pub(crate) fn quarantined(store: &Path, pool: String, note: QuarantineNote) -> Error {
        Error::PoolQuarantined {
            store: store.to_owned(),
            pool,
            log: store.join(note.log),
            reason: note.reason,
        }
    }

    pub(crate) fn no_pool(store: &Path, name: &str) -> Error {
        Error::PoolMissing {
            store: store.to_owned(),
            name: name.to_owned(),
        }
    }
}
