//! Whether the files of pools are there: what the system says of them, without a look at their contents.

use std::borrow::Cow;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::files;
use crate::reading::{self, Role};
use crate::registry::contents::Contents;

/// A file of a pool that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LostFile {
    /// The pool's name.
    pub pool: String,
    /// The file.
    pub file: PathBuf,
    /// What is wrong with it.
    pub problem: FileProblem,
}

/// Why a file of a pool cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum FileProblem {
    /// It is not there.
    Missing,
    /// It has another length than it was made with.
    Length {
        /// Its length in bytes.
        found: u64,
        /// The length that it was made with.
        expected: u64,
    },
    /// Something else than a file lies in its place: what, with an article.
    NotAFile(Cow<'static, str>),
    /// The system does not let us read it, and says so.
    Unreadable(String),
}

impl FileProblem {
    /// In a word or two, for lists and programs.
    pub fn name(&self) -> &'static str {
        match self {
            FileProblem::Missing => "missing",
            FileProblem::Length { found, expected } if found < expected => "cut",
            FileProblem::Length { .. } => "too long",
            FileProblem::NotAFile(_) => "not a file",
            FileProblem::Unreadable(_) => "unreadable",
        }
    }
}

impl fmt::Display for LostFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.problem.name(), self.file.display())?;
        match &self.problem {
            FileProblem::Missing => Ok(()),
            FileProblem::Length { found, expected } => {
                write!(f, " ({found} bytes instead of {expected})")
            }
            FileProblem::NotAFile(found) => write!(f, " ({found})"),
            FileProblem::Unreadable(reason) => write!(f, " ({reason})"),
        }
    }
}

/// Looks at each file of each pool. Writes nothing.
pub(crate) fn lost_files(store: &Path, contents: &Contents) -> Result<Vec<LostFile>> {
    let mut lost = Vec::new();
    for (uuid, record) in &contents.puddles {
        let Some(pool) = contents.pools.get(&record.owner) else {
            continue;
        };
        let expected = files::header_of(*uuid, record).file_size();
        let role = Role {
            structure: files::kind_name(record.kind),
            cure: files::BRING_BACK,
        };
        let name = files::relative_path(*uuid, false);
        let problem = match reading::open(store, name, role, false) {
            Err(Error::FileMissing { .. }) => FileProblem::Missing,
            Err(Error::NotAFile { found, .. }) => FileProblem::NotAFile(found.into()),
            Err(Error::Io { source, .. }) if source.kind() == io::ErrorKind::PermissionDenied => {
                FileProblem::Unreadable("no right to read it".into())
            }
            Err(Error::Io { source, .. }) if Errno::from_io_error(&source) == Some(Errno::IO) => {
                FileProblem::Unreadable(source.to_string())
            }
            Err(error) => return Err(error),
            Ok(file) => match file.len() {
                Ok(found) if found == expected => continue,
                Ok(found) => FileProblem::Length { found, expected },
                Err(error) => FileProblem::Unreadable(error.to_string()),
            },
        };
        lost.push(LostFile {
            pool: pool.name.clone(),
            file: files::puddle_path(store, *uuid),
            problem,
        });
    }
    lost.sort_by(|left, right| (&left.pool, &left.file).cmp(&(&right.pool, &right.file)));
    Ok(lost)
}
