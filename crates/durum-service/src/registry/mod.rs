//! The registry: what the store holds, in a file that one writer changes and anyone reads.
//!
//! It is read once, when the store is opened. Each change is one record behind the last one and one sync ([`file`]);
//! when the changes outweigh the snapshot before them, a new file takes the place of the old one. A copy follows, so
//! that a damaged file costs nothing: `docs/reference/store.md`.

pub(crate) mod contents;
mod file;
mod read;
mod salvage;
pub(crate) mod takeover;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use durum_format::FormatError;
use durum_format::registry::{
    VERSION_RIGHTS, check_snapshot, encode_changes_within, encode_snapshot, parse_used,
    snapshot_version,
};

use self::contents::{Change, Contents};
use self::file::{COPY, Place, REGISTRY, Writer};
use crate::error::{Error, Result};
use crate::files::{grown, is_full};
use crate::reading;

use self::read::{CopyState, FoundFile};
pub(crate) use self::read::{Found, read};
pub(crate) use self::salvage::Remains;

/// The names of the two files.
pub(crate) const NAMES: [&str; 2] = [REGISTRY.name, COPY.name];
/// What a crash leaves while one of them is made.
pub(crate) const LEFTOVERS: [&str; 2] = [REGISTRY.temporary_name, COPY.temporary_name];

/// Whether anything lies in the place of one of them.
pub(crate) fn is_there(store: &Path) -> bool {
    NAMES
        .iter()
        .any(|name| fs::symlink_metadata(store.join(name)).is_ok())
}

/// Refuses a directory in the place of one of them, which no file can take.
pub(crate) fn refuse_directories(store: &Path) -> Result<()> {
    for place in [&REGISTRY, &COPY] {
        let found = fs::symlink_metadata(store.join(place.name));
        if found.is_ok_and(|found| found.is_dir()) {
            reading::open(store, place.name, place.role, false)?;
        }
    }
    Ok(())
}

/// What a registry file of these contents begins with, for those who do not read the file.
pub(crate) fn encode(store: &Path, contents: &Contents) -> Result<Vec<u8>> {
    encode_snapshot(contents).map_err(|source| refusal(store, &REGISTRY, source))
}

/// Reads what [`encode`] gave.
pub(crate) fn decode(store: &Path, bytes: &[u8]) -> Result<Contents> {
    let parsed = check_snapshot(bytes).and_then(|room| parse_used(bytes, room.end));
    let parsed = parsed.map_err(|source| refusal(store, &REGISTRY, source))?;
    Ok(Contents::of(parsed.state))
}

const CURE: &str =
    "restore a copy of the store, or rebuild the registry from its copy: `durum check --repair`";

/// The open registry.
#[derive(Debug)]
pub(crate) struct Registry {
    store: PathBuf,
    path: PathBuf,
    /// Of the file: it takes no changes that need a newer one.
    version: u32,
    file: Writer,
    /// Absent where it could not be written. It is made anew with the next snapshot, and when the registry is closed.
    copy: Option<Writer>,
    /// Whether the copy has records that were not synced.
    copy_is_behind: bool,
    /// Whether the copy's name was not synced.
    copy_has_new_name: bool,
    is_poisoned: bool,
}

/// What a commit is for. Removals may use room that is kept for them, so that they work on a full disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    Addition,
    Removal,
}

/// Why a commit failed.
#[derive(Debug)]
pub(crate) enum CommitFailure {
    /// There was no room. Nothing was committed, and the registry goes on.
    Full {
        /// The bytes wanted.
        bytes: u64,
    },
    /// What is on the media is unknown until the store is opened again.
    Unknown(Error),
}

impl CommitFailure {
    /// The error for a caller.
    pub(crate) fn into_error(self, registry: &Registry) -> Error {
        match self {
            CommitFailure::Full { bytes } => Error::StorageFull {
                path: registry.path.clone(),
                bytes,
            },
            CommitFailure::Unknown(error) => error,
        }
    }
}

impl Registry {
    /// Makes the two files, in the place of any that are there. They are durable on return, but for the copy's name.
    pub(crate) fn create(store: &Path, contents: &Contents) -> Result<Registry> {
        let snapshot =
            encode_snapshot(contents).map_err(|source| refusal(store, &REGISTRY, source))?;
        let make = |place: &'static Place| {
            Writer::make(store, place, &snapshot).map_err(|(error, bytes)| {
                grown("making the registry", &store.join(place.name), bytes, error)
            })
        };
        let file = make(&REGISTRY)?;
        // ORDER: the registry before its copy, which is never ahead of it.
        file.sync_name(store)
            .map_err(|error| Error::io("syncing the directory", store, error))?;
        let version = snapshot_version(contents);
        let mut registry = Registry::over(store, version, file, Some(make(&COPY)?));
        registry.copy_has_new_name = true;
        Ok(registry)
    }

    /// Opens the registry for writing, as it was found. A copy that does not say the same is made anew; a store of the
    /// form before gets its files now, and one of an older version new ones.
    pub(crate) fn open(store: &Path, found: &Found) -> Result<Registry> {
        // A copy that is made anew has the version that its contents need, and both files have the same one.
        let copy_version = snapshot_version(&found.contents);
        let current = |file: &&FoundFile| {
            let version = file.parsed.version;
            version >= VERSION_RIGHTS && (found.has_copy() || version == copy_version)
        };
        // An older durum would take a record that it cannot read for one that a crash tore.
        let Some(found_file) = found.file.as_ref().filter(current) else {
            return Registry::create(store, &found.contents);
        };
        let file = Writer::open(store, &REGISTRY, &found_file.parsed)?;
        let copy = match &found.copy {
            // All that it has was durable in the registry before.
            CopyState::Same(copy) => Some(Writer::open(store, &COPY, copy)?),
            CopyState::Behind | CopyState::Lost(_) => {
                file.make_durable(&found_file.image.bytes)
                    .map_err(|error| {
                        Error::io("a registry commit", &store.join(REGISTRY.name), error)
                    })?;
                None
            }
        };
        let mut registry = Registry::over(store, found_file.parsed.version, file, copy);
        registry.renew_copy(&found.contents);
        Ok(registry)
    }

    fn over(store: &Path, version: u32, file: Writer, copy: Option<Writer>) -> Registry {
        Registry {
            store: store.to_owned(),
            path: store.join(REGISTRY.name),
            version,
            file,
            copy,
            copy_is_behind: false,
            copy_has_new_name: false,
            is_poisoned: false,
        }
    }

    /// Commits `changes` and applies them to the copy in memory. Durable on return.
    ///
    /// On failure the copy in memory is as before.
    pub(crate) fn commit(
        &mut self,
        contents: &mut Contents,
        changes: &[Change],
        purpose: Purpose,
    ) -> Result<(), CommitFailure> {
        let sequence = contents.sequence.wrapping_add(1);
        let store = contents.store.uuid;
        let record_before =
            |limit| encode_changes_within(store, sequence, changes, self.file.room_before(limit));
        // An older durum would take a record that it cannot read for one that a crash tore.
        let is_understood = changes
            .iter()
            .all(|change| change.version_needed() <= self.version);
        let record = is_understood.then(|| record_before(self.file.room.additions_end));
        let record = match record.flatten() {
            Some(record) => record,
            None => {
                let of_removal = match purpose {
                    Purpose::Removal => record_before(self.file.room.end),
                    Purpose::Addition => None,
                };
                match (self.fold(contents, changes), of_removal) {
                    (Err(CommitFailure::Full { .. }), Some(record)) => record,
                    (result, _) => return result,
                }
            }
        };
        // ORDER: the record is durable before anybody acts on it, and before the copy has it: the copy is never ahead.
        let written = self.file.append(&record).and_then(|()| self.file.sync());
        written.map_err(|error| self.poison(error))?;
        contents.commit(changes);
        self.copy_record(contents, &record);
        Ok(())
    }

    /// Hands a record that was committed on to the copy, which is synced later.
    fn copy_record(&mut self, contents: &Contents, record: &[u8]) {
        let Some(copy) = &mut self.copy else {
            return;
        };
        if record.len() > copy.room_before(copy.room.end) {
            self.copy = None;
            return self.renew_copy(contents);
        }
        self.copy_is_behind = true;
        if let Err(error) = copy.append(record) {
            self.lose_copy(&error);
        }
    }

    /// Commits `changes` by a new snapshot, in a new file.
    fn fold(&mut self, contents: &mut Contents, changes: &[Change]) -> Result<(), CommitFailure> {
        let mut next = contents.clone();
        next.commit(changes);
        let snapshot = encode_snapshot(&next)
            .map_err(|source| CommitFailure::Unknown(refusal(&self.store, &REGISTRY, source)))?;
        let file = match Writer::make(&self.store, &REGISTRY, &snapshot) {
            Err((error, bytes)) if is_full(&error) => return Err(CommitFailure::Full { bytes }),
            Err((error, _)) => return Err(self.poison(error)),
            Ok(file) => file,
        };
        // ORDER: the new name is durable before anybody acts on the commit, before a record goes to the new file, and
        // before the copy's; else a crash finds the old file without them.
        file.sync_name(&self.store)
            .map_err(|error| self.poison(error))?;
        self.version = snapshot_version(&next);
        self.file = file;
        *contents = next;
        self.make_copy(&snapshot);
        Ok(())
    }

    fn poison(&mut self, error: io::Error) -> CommitFailure {
        self.is_poisoned = true;
        CommitFailure::Unknown(Error::io("a registry commit", &self.path, error))
    }

    /// Makes the copy anew where there is none, as far as possible: the registry is whole without it.
    fn renew_copy(&mut self, contents: &Contents) {
        if self.copy.is_some() {
            return;
        }
        match encode_snapshot(contents) {
            Ok(snapshot) => {
                self.make_copy(&snapshot);
                // What it cannot say needs new files.
                self.version = self.version.min(snapshot_version(contents));
            }
            Err(error) => self.lose_copy(&io::Error::other(error)),
        }
    }

    /// Makes the copy anew, as far as possible.
    fn make_copy(&mut self, snapshot: &[u8]) {
        match Writer::make(&self.store, &COPY, snapshot) {
            Ok(copy) => {
                self.copy_is_behind = false;
                self.copy_has_new_name = true;
                self.copy = Some(copy);
            }
            Err((error, _)) => self.lose_copy(&error),
        }
    }

    fn lose_copy(&mut self, error: &io::Error) {
        tracing::warn!(store = %self.store.display(), %error, "the registry's copy could not be written");
        self.copy = None;
    }

    /// Makes the copy durable. The registry itself is.
    pub(crate) fn close(&mut self, contents: &Contents) {
        if self.is_poisoned {
            return;
        }
        self.renew_copy(contents);
        let Some(copy) = &self.copy else {
            return;
        };
        let mut synced = Ok(());
        if self.copy_is_behind {
            // ORDER: the copy is whole before the store counts as closed; else one bad sector after a crash costs what
            // was committed.
            synced = copy.sync();
        }
        if self.copy_has_new_name {
            synced = synced.and_then(|()| copy.sync_name(&self.store));
        }
        match synced {
            Ok(()) => (self.copy_is_behind, self.copy_has_new_name) = (false, false),
            Err(error) => self.lose_copy(&error),
        }
    }

    /// Whether a commit failed and what is on the media is unknown. Then nothing more may be committed.
    pub(crate) fn is_poisoned(&self) -> bool {
        self.is_poisoned
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

fn refusal(store: &Path, place: &Place, source: FormatError) -> Error {
    Error::format(&store.join(place.name), 0, source, CURE)
}
