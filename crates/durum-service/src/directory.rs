//! The directory of a store: where it is, and whether one may be made there.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use rustix::io::Errno;

use crate::error::{Error, Result};
use crate::files;
use crate::names;

/// The mark of a store that is being made.
pub(crate) const UNFINISHED_FILE: &str = "unfinished";

/// The absolute path of a store directory that is there.
///
/// # Errors
/// `StoreMissing`, `PathRefused`, `Io`.
pub(crate) fn absolute(path: &Path) -> Result<PathBuf> {
    let found = match fs::canonicalize(path) {
        Ok(found) => found,
        Err(error) if is_empty(path) => return Err(empty(path, error)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(Error::StoreMissing {
                path: path.to_owned(),
                missing: "the directory",
                can_be_made: !path.exists(),
            });
        }
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            return Err(refused(
                path,
                "no right to look for it",
                "let this user search the directories on the way to it (`chmod`, `chown`)",
                error,
            ));
        }
        Err(error) => return Err(through_file(path, "finding the absolute path", error)),
    };
    if found.metadata().is_ok_and(|metadata| !metadata.is_dir()) {
        let problem = "this is not a directory, so no store is here";
        let cure = "name the directory of a store";
        return Err(refused(path, problem, cure, Errno::NOTDIR.into()));
    }
    Ok(found)
}

/// The error of a directory that could not be made for a store.
pub(crate) fn not_made(path: &Path, error: io::Error) -> Error {
    if is_empty(path) {
        return empty(path, error);
    }
    let parent = parent(path);
    match error.kind() {
        io::ErrorKind::NotFound => refused(
            path,
            &format!("the directory for it, {}, is missing", parent.display()),
            &format!("make that first: `mkdir -p {}`", parent.display()),
            error,
        ),
        io::ErrorKind::PermissionDenied => refused(
            path,
            "no right to make it",
            &format!(
                "choose a place where this user may write, or let it write to {} (`chmod`, `chown`)",
                parent.display()
            ),
            error,
        ),
        io::ErrorKind::NotADirectory => through_file(path, "making the directory", error),
        _ => files::grown("making the directory", path, 0, error),
    }
}

/// The directory in which a path has its name.
pub(crate) fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

fn is_empty(path: &Path) -> bool {
    path.as_os_str().is_empty()
}

fn empty(path: &Path, error: io::Error) -> Error {
    let cure = "name the directory of a store; `.` is the current one";
    refused(path, "the path is empty", cure, error)
}

/// An error of an operation on a path, which may be that a file lies on the way.
fn through_file(path: &Path, operation: &'static str, error: io::Error) -> Error {
    if error.kind() != io::ErrorKind::NotADirectory {
        return Error::io(operation, path, error);
    }
    let file = path.ancestors().find(|on_the_way| on_the_way.is_file());
    let file = file.unwrap_or(path).display();
    let problem = format!("{file}, which is on the way to it, is not a directory");
    refused(path, &problem, "name another path", error)
}

fn refused(path: &Path, problem: &str, cure: &str, source: io::Error) -> Error {
    Error::PathRefused {
        path: path.to_owned(),
        problem: problem.to_owned(),
        cure: cure.to_owned(),
        source,
    }
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

/// A name beside the target that nobody uses.
pub(crate) fn hidden_beside(target: &Path) -> Result<PathBuf> {
    let Some(name) = target.file_name() else {
        return Err(Error::Options {
            reason: format!("{} names nothing that can be made", target.display()),
        });
    };
    let mut hidden = OsString::from(".");
    hidden.push(name);
    hidden.push(format!(".durum-{:016x}", names::random_u64()?));
    Ok(target.with_file_name(hidden))
}

/// What was begun under a hidden name: gone with this, also where whoever is told of progress panics.
pub(crate) struct Unfinished<'p>(pub(crate) &'p Path);

impl Drop for Unfinished<'_> {
    fn drop(&mut self) {
        // Should this fail as well, the hidden file or directory stays; it is nobody's.
        let _ = match self.0.is_dir() {
            true => fs::remove_dir_all(self.0),
            false => fs::remove_file(self.0),
        };
    }
}
