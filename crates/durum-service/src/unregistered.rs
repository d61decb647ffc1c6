//! Puddle files that the registry does not name.
//!
//! A crash leaves three kinds: a puddle that was being made, in which nobody has written yet, one that was being
//! removed, which the registry lists, and a copy that was to take a puddle's place. All go at the next open. Any other
//! one was handed out once, so the registry is older than it: nothing with objects or logs in it is removed because of
//! that.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use durum_format::Uuid;
use durum_format::puddle::IMMUTABLE_SIZE;
use durum_persist::Site;
use durum_persist::file;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::files::{self, PUDDLE_DIRECTORY};
use crate::reading::{self, Role};
use crate::registry::contents::Contents;
use crate::sparse;

/// Where such puddles are moved when somebody asks for a repair.
pub(crate) const DIRECTORY: &str = "unregistered";

const ASIDE: Site = Site("puddles moved aside");

const PLACE: Role = Role {
    structure: "the directory of puddles that were moved aside",
    cure: "try again",
};

/// What the name of a copy ends with that is to take the place of a puddle's file.
const COPY_SUFFIX: &str = ".new";

/// The name of such a copy.
pub(crate) fn copy_path(store: &Path, uuid: Uuid) -> PathBuf {
    let name = format!("{uuid}{COPY_SUFFIX}");
    store.join(PUDDLE_DIRECTORY).join(name)
}

/// A puddle file that the registry does not name.
#[derive(Clone, Debug)]
pub(crate) struct Stray {
    pub(crate) uuid: Uuid,
    pub(crate) file: PathBuf,
    pub(crate) state: StrayState,
}

/// What may be done with a puddle's file that the registry does not name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum StrayState {
    /// The registry lists it as being removed.
    Removing,
    /// A copy that was to take a puddle's place, when a pool was given new files.
    Copy,
    /// Nobody has written in it, nor does a log.
    Unfinished,
    /// Nobody has written in it; but what was to be in it may stand in a log: one that is not replayed, or kept, or in
    /// quarantine, or that the registry does not name either.
    Waiting,
    /// It holds, or held, something.
    Used,
    /// Of an import that was not finished, as far as the registry tells.
    Coming,
}

impl StrayState {
    /// Whether it goes without a question.
    pub(crate) fn may_go(self) -> bool {
        matches!(
            self,
            StrayState::Removing | StrayState::Copy | StrayState::Unfinished | StrayState::Coming
        )
    }
}

/// All of them, in order of name. Writes nothing.
pub(crate) fn find(store: &Path, contents: &Contents) -> Result<Vec<Stray>> {
    let directory = store.join(PUDDLE_DIRECTORY);
    let failed = |error| Error::io("listing the puddles", &directory, error);
    let mut strays = Vec::new();
    for entry in fs::read_dir(&directory).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        // Only names that we give, and files: anything else is somebody's, and `check` reports it.
        let name = entry.file_name();
        let name = name.to_str().unwrap_or_default();
        let (name, is_copy) = match name.strip_suffix(COPY_SUFFIX) {
            Some(of) => (of, true),
            None => (name, false),
        };
        let Ok(uuid) = name.parse::<Uuid>() else {
            continue;
        };
        let is_file = entry.file_type().is_ok_and(|kind| kind.is_file());
        if !is_file || !is_copy && contents.puddles.contains_key(&uuid) {
            continue;
        }
        let state = if is_copy {
            StrayState::Copy
        } else if contents.coming.contains(&uuid) {
            StrayState::Coming
        } else if contents.removing.contains(&uuid) {
            StrayState::Removing
        } else if !is_unfinished(store, uuid)? {
            StrayState::Used
        } else if contents.is_clean() && contents.quarantine.is_empty() && contents.kept.is_empty()
        {
            StrayState::Unfinished
        } else {
            StrayState::Waiting
        };
        strays.push(Stray {
            uuid,
            file: entry.path(),
            state,
        });
    }
    // One that is used may be a log, and so may be what was moved.
    if are_used(&strays) || was_moved(store) {
        for stray in &mut strays {
            if stray.state == StrayState::Unfinished {
                stray.state = StrayState::Waiting;
            }
        }
    }
    strays.sort_unstable_by_key(|stray| stray.uuid);
    Ok(strays)
}

/// Refuses to go on where the registry is older than the puddles.
pub(crate) fn refuse_used(store: &Path, strays: &[Stray]) -> Result<()> {
    let used = |stray: &&Stray| stray.state == StrayState::Used;
    let used = strays.iter().filter(used);
    let files: Vec<PathBuf> = used.map(|stray| stray.file.clone()).collect();
    match files.is_empty() {
        true => Ok(()),
        false => Err(Error::RegistryOlder {
            store: store.to_owned(),
            files,
        }),
    }
}

/// Where any holds something, moves them out of the way, for a person to decide, and with them those that they may be
/// about. Durable on return. Tells which were moved.
pub(crate) fn move_used<'a>(store: &Path, strays: &'a [Stray]) -> Result<Vec<&'a Stray>> {
    let is_due = are_used(strays) || was_moved(store);
    let moved = strays.iter().filter(|stray| !stray.state.may_go());
    let moved: Vec<&Stray> = moved.filter(|_| is_due).collect();
    if moved.is_empty() {
        return Ok(moved);
    }
    let directory = store.join(DIRECTORY);
    files::ensure_directory(&directory, ASIDE)?;
    reading::find_directory(store, DIRECTORY, PLACE)?;
    // ORDER: the directory is durable before anything is moved into it; else a crash takes it away with what it holds.
    files::sync_dir(store, ASIDE)?;
    for stray in &moved {
        tracing::warn!(file = %stray.file.display(), "the registry does not name this puddle; it is moved to {DIRECTORY}");
        file::rename(&stray.file, &directory.join(stray.uuid.to_string()), ASIDE)
            .map_err(|error| Error::io("moving a puddle aside", &stray.file, error))?;
    }
    // ORDER: the new names are durable before anybody is told of them; else a crash shows the files where they were,
    // and whoever was told that the store opens is refused.
    files::sync_dir(&directory, ASIDE)?;
    Ok(moved)
}

/// Whether there is a place of theirs in the store itself.
///
/// # Errors
/// `NotAFile` where something else lies there: a link leads out of the store.
pub(crate) fn has_place(store: &Path) -> Result<bool> {
    match reading::find_directory(store, DIRECTORY, PLACE) {
        Ok(_) => Ok(true),
        Err(Error::FileMissing { .. }) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Whether any holds something.
fn are_used(strays: &[Stray]) -> bool {
    strays.iter().any(|stray| stray.state == StrayState::Used)
}

/// Whether puddles lie where they are moved. They may, where nobody can look.
fn was_moved(store: &Path) -> bool {
    match fs::read_dir(store.join(DIRECTORY)) {
        Ok(mut entries) => entries.next().is_some(),
        Err(error) => error.kind() != io::ErrorKind::NotFound,
    }
}

/// Whether nobody has written in a puddle: it is handed out after the registry names it, and then its user writes
/// behind the part of the header that never changes. Before that a crash may leave any part of the header, and zeros.
pub(crate) fn is_unfinished(store: &Path, uuid: Uuid) -> Result<bool> {
    let role = Role {
        structure: "a puddle",
        cure: "restore a copy of the store",
    };
    let file = reading::open(store, files::relative_path(uuid, false), role, false)?;
    sparse::is_zero_from(&file, IMMUTABLE_SIZE)
}
