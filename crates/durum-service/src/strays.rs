//! Files in the store's directory that are no part of the store. Nothing is written.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use durum_format::Uuid;
use serde::{Deserialize, Serialize};

use crate::directory::UNFINISHED_FILE;
use crate::error::{Error, ErrorKind, Result};
use crate::files::{PUDDLE_DIRECTORY, QUARANTINE_DIRECTORY};
use crate::liveness::CLIENTS_DIRECTORY;
use crate::lock::LOCK_FILE;
use crate::registry;
use crate::registry::contents::Contents;
use crate::registry::takeover;
use crate::unregistered::{self, StrayState};

/// A file in the store's directory that is no part of the store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StrayFile {
    /// The file.
    pub file: PathBuf,
    /// Its length; `None` where it is no file.
    pub bytes: Option<u64>,
    /// What it is.
    pub kind: StrayKind,
}

/// What a file is that is no part of the store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum StrayKind {
    /// Somebody else's.
    Foreign,
    /// A crash left it behind. The next opener removes it.
    Leftover,
    /// One of the form before, which the next opener removes.
    Before,
    /// A puddle's that the registry does not name.
    Puddle(StrayState),
    /// A puddle that the registry did not name, and that was moved out of the way.
    Aside,
    /// Something else lies where such puddles are moved to: what is wrong, as a sentence.
    NoPlace(String),
    /// A log whose quarantine was lifted.
    Lifted,
}

/// All of them, each directory by itself. Nobody makes or removes files of the store meanwhile.
pub(crate) fn find(store: &Path, contents: &Contents) -> Result<Vec<StrayFile>> {
    let mut found = Vec::new();
    let mut add = |file: PathBuf, kind| {
        let of_file = fs::symlink_metadata(&file).ok();
        let of_file = of_file.filter(|file| file.is_file());
        found.push(StrayFile {
            bytes: of_file.map(|file| file.len()),
            file,
            kind,
        });
    };
    let known: BTreeSet<&str> = BTreeSet::from([
        durum_format::store::FILE_NAME,
        registry::NAMES[0],
        registry::NAMES[1],
        LOCK_FILE,
        PUDDLE_DIRECTORY,
        QUARANTINE_DIRECTORY,
        CLIENTS_DIRECTORY,
        unregistered::DIRECTORY,
    ]);
    for name in names_in(store)? {
        if known.contains(name.as_str()) {
            continue;
        }
        let is_leftover = registry::LEFTOVERS.contains(&name.as_str()) || name == UNFINISHED_FILE;
        let kind = if is_leftover {
            StrayKind::Leftover
        } else if takeover::FILES.contains(&name.as_str()) {
            StrayKind::Before
        } else {
            StrayKind::Foreign
        };
        add(store.join(name), kind);
    }
    let puddles = unregistered::find(store, contents)?;
    let is_puddle = |file: &Path| puddles.iter().any(|stray| stray.file == file);
    for name in names_in(&store.join(PUDDLE_DIRECTORY))? {
        let file = store.join(PUDDLE_DIRECTORY).join(&name);
        let uuid = name.parse::<Uuid>().ok();
        let is_registered = uuid.is_some_and(|uuid| contents.puddles.contains_key(&uuid));
        if !is_registered && !is_puddle(&file) {
            add(file, StrayKind::Foreign);
        }
    }
    for stray in puddles {
        add(stray.file, StrayKind::Puddle(stray.state));
    }
    let aside = store.join(unregistered::DIRECTORY);
    match unregistered::has_place(store) {
        Ok(false) => {}
        Ok(true) => {
            for name in names_in(&aside)? {
                add(aside.join(name), StrayKind::Aside);
            }
        }
        Err(error) if matches!(error.kind(), ErrorKind::Data | ErrorKind::User) => {
            add(aside, StrayKind::NoPlace(error.to_string()));
        }
        Err(error) => return Err(error),
    }
    let quarantine = store.join(QUARANTINE_DIRECTORY);
    for name in names_in(&quarantine)? {
        let uuid = name.parse::<Uuid>().ok();
        if !uuid.is_some_and(|uuid| contents.is_quarantined_file(uuid)) {
            add(quarantine.join(name), StrayKind::Lifted);
        }
    }
    Ok(found)
}

/// In order. A name that is no text is shown as far as it is one.
fn names_in(directory: &Path) -> Result<Vec<String>> {
    let failed = |error| Error::io("listing the directory", directory, error);
    let mut names = Vec::new();
    for entry in fs::read_dir(directory).map_err(failed)? {
        let name = entry.map_err(failed)?.file_name();
        names.push(name.to_string_lossy().into_owned());
    }
    names.sort();
    Ok(names)
}
