//! The directory of a store: where it is, and whether one may be made there.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};

/// The mark of a store that is being made.
pub(crate) const UNFINISHED_FILE: &str = "unfinished";

/// The absolute path of a store directory that is there.
pub(crate) fn absolute(path: &Path) -> Result<PathBuf> {
    fs::canonicalize(path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Error::StoreMissing {
            path: path.to_owned(),
            missing: "the directory",
            can_be_made: !path.exists(),
        },
        _ => Error::io("finding the absolute path", path, error),
    })
}

/// Whether a store may be made in a directory: it is empty, or holds an unfinished store.
pub(crate) fn is_free(path: &Path) -> Result<bool> {
    let entries =
        fs::read_dir(path).map_err(|error| Error::io("listing the directory", path, error));
    let Ok(entries) = entries else {
        // A file, or a directory that is not ours.
        return match path.is_dir() {
            true => entries.map(|_| false),
            false => Ok(false),
        };
    };
    let mut is_empty = true;
    let mut is_marked = false;
    for entry in entries {
        let entry = entry.map_err(|error| Error::io("listing the directory", path, error))?;
        is_empty = false;
        if entry.file_name() == durum_format::store::FILE_NAME {
            return Ok(false);
        }
        is_marked |= entry.file_name() == UNFINISHED_FILE;
    }
    Ok(is_empty || is_marked)
}
