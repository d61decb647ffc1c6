//! Making a store.
//!
//! The directory is filled in place (it may be a mount point), under the mark of a file `unfinished`; `durum.store`
//! comes last. A crash before that leaves the mark, and the next attempt begins anew. Without the mark nothing is ever
//! removed: a store that lost its identity is not taken for an unfinished one.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use durum_format::UNIT;
use durum_format::store::StoreHeader;
use durum_persist::Site;
use durum_persist::domain::Domain;
use durum_persist::file;

use super::{CreateOptions, Host, Open};
use crate::directory::{UNFINISHED_FILE, is_free, not_made, parent};
use crate::error::{Error, Result};
use crate::files::{self, PUDDLE_DIRECTORY, QUARANTINE_DIRECTORY};
use crate::identity;
use crate::lock::{LOCK_FILE, StoreLock};
use crate::model::RecoveryReport;
use crate::names;
use crate::registry::contents::Contents;
use crate::registry::takeover;
use crate::registry::{self, Registry};
use crate::space::{self, OpenHere, Space};

const REMOVING: &str = "removing an unfinished store";

const MAKING: Site = Site("new store");
const MARK: Site = Site("new store's mark");
const NAME: Site = Site("new store's name");

impl Host {
    /// Makes a store in a directory that does not exist, is empty, or holds an unfinished store, and opens it.
    ///
    /// The store is durable on return, its directory's name included.
    ///
    /// ```
    /// use durum_service::{CreateOptions, Embedded, EngineKind, OpenOptions, PoolSpec, Service};
    /// # let directory = tempfile::tempdir()?;
    /// # let path = directory.path().join("store");
    /// let store = Embedded::create(&path, &CreateOptions::default())?;
    /// let pool = store.create_pool("words", &PoolSpec::new(EngineKind::Hybrid))?;
    /// assert!(pool.others.is_empty());
    /// store.close()?;
    ///
    /// let store = Embedded::open(&path, OpenOptions::default())?;
    /// assert_eq!(store.open_pool("words")?.root.uuid, pool.root.uuid);
    /// store.close()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `StoreExists`, `StoreBusy`, `PathRefused`, `Options`, `StorageFull`, `Io`. What was made before the error is
    /// removed again; where that fails too, or after a crash, an unfinished store is left, which the next attempt
    /// replaces.
    pub fn create(path: &Path, options: &CreateOptions) -> Result<Arc<Host>> {
        check_options(options)?;
        let is_new = !path.exists();
        let path = prepare_directory(path).inspect_err(|_| {
            if is_new {
                // Empty, or not ours to remove: then this fails.
                let _ = file::remove(path, MAKING);
            }
        })?;
        let lock = StoreLock::acquire(&path).inspect_err(|error| {
            if is_new && !matches!(error, Error::StoreBusy { .. }) {
                let _ = file::remove(&path.join(UNFINISHED_FILE), MAKING);
                let _ = file::remove(&path, MAKING);
            }
        })?;
        let make = || {
            remove_unfinished(&path)?;
            let domain = super::open::domain(&path, options.domain)?;
            let (identity, contents, drawn) = draw(options, domain)?;
            let registry = fill(&path, &identity, &contents)?;
            Ok((domain, identity, contents, registry, drawn))
        };
        let (domain, identity, contents, registry, _drawn) =
            make().inspect_err(|_| abandon(&path, is_new))?;
        unmark(&path)?;
        let space = Space::new(identity.base, identity.size, contents.cursor);
        let report = RecoveryReport {
            was_clean: true,
            ..RecoveryReport::default()
        };
        let open = Open::new(registry, contents, space, lock);
        Host::over(path, identity, domain, report, open, Default::default())
    }
}

/// Checks the address range before anything is made.
pub(crate) fn check_options(options: &CreateOptions) -> Result<()> {
    let refuse = |reason| Err(Error::Options { reason });
    let CreateOptions {
        base,
        space_size,
        start,
        ..
    } = *options;
    if base == 0 || !base.is_multiple_of(UNIT) {
        return refuse(format!(
            "the base {base:#x} is not a multiple of {UNIT} above zero"
        ));
    }
    if space_size == 0 || !space_size.is_multiple_of(UNIT) {
        return refuse(format!(
            "the space of {space_size} bytes is not a multiple of {UNIT} above zero"
        ));
    }
    let end = space_size
        .checked_mul(2)
        .and_then(|both| base.checked_add(both));
    if end.is_none_or(|end| end > durum_format::ADDRESS_END) {
        return refuse(format!(
            "two ranges of {space_size} bytes at {base:#x} do not fit below {:#x}",
            durum_format::ADDRESS_END
        ));
    }
    if let Some(start) = start
        && (start < base || start >= base + space_size || !start.is_multiple_of(UNIT))
    {
        return refuse(format!(
            "the start {start:#x} is not a multiple of {UNIT} in the space of {space_size} bytes at {base:#x}"
        ));
    }
    Ok(())
}

/// A new store's identity and empty registry; and what keeps its start for it until it is open, if that was drawn.
pub(crate) fn draw(
    options: &CreateOptions,
    domain: Domain,
) -> Result<(StoreHeader, Contents, Option<OpenHere>)> {
    let (start, drawn) = match options.start {
        Some(start) => (start, None),
        None => {
            let random = names::random_u64()?;
            let (start, drawn) = space::random_start(options.base, options.space_size, random);
            (start, Some(drawn))
        }
    };
    let identity = StoreHeader {
        uuid: names::random_uuid()?,
        base: options.base,
        size: options.space_size,
        start,
        domain: identity::domain_name(domain).to_owned(),
    };
    let contents = Contents::new(identity.clone());
    Ok((identity, contents, drawn))
}

/// Makes the files of a store in an empty directory, the identity last. All are durable on return. Puddles may be there
/// already, in their directory.
pub(crate) fn fill(path: &Path, identity: &StoreHeader, contents: &Contents) -> Result<Registry> {
    for name in [PUDDLE_DIRECTORY, QUARANTINE_DIRECTORY] {
        files::ensure_directory(&path.join(name), MAKING)?;
    }
    // ORDER: everything else is durable before the identity says that there is a store; else a crash leaves a store
    // without a registry.
    let registry = Registry::create(path, contents)?;
    identity::write(path, identity)?;
    Ok(registry)
}

/// Removes what was made of a store that cannot be finished, because there is no room for one. The lock is held.
fn abandon(path: &Path, is_new: bool) {
    // What cannot be removed is left under the mark.
    let mut removed = remove_unfinished(path);
    for name in [LOCK_FILE, UNFINISHED_FILE] {
        removed = removed.and_then(|()| remove_if_there(&path.join(name)));
    }
    if removed.is_ok() && is_new {
        let _ = file::remove(path, MAKING);
    }
}

/// Removes the mark of a store that is finished.
fn unmark(path: &Path) -> Result<()> {
    let mark = path.join(UNFINISHED_FILE);
    // Not synced: where there is an identity, the mark means nothing, and the next opener removes it.
    file::remove(&mark, MARK).map_err(|error| Error::io("removing the mark", &mark, error))
}

/// Makes the directory if need be, and the mark in it. Returns the absolute path.
fn prepare_directory(path: &Path) -> Result<PathBuf> {
    match file::create_dir(path, NAME) {
        Ok(()) => {
            let parent = parent(path);
            // ORDER: the directory's name is durable before the store in it is; else a store that was said to be
            // made is gone after a crash.
            files::sync_dir(parent, NAME)?;
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            if !is_free(path)? {
                return Err(exists(path));
            }
        }
        Err(error) => return Err(not_made(path, error)),
    }
    let path = fs::canonicalize(path)
        .map_err(|error| Error::io("finding the absolute path", path, error))?;
    let mark = path.join(UNFINISHED_FILE);
    files::ensure_file(&mark, "making the mark")?;
    // ORDER: the mark is durable before anything else is made; else a crash leaves a directory that is neither
    // empty nor a store, and nobody may clear it.
    files::sync_dir(&path, MARK)?;
    Ok(path)
}

/// Removes what an earlier attempt left, except for the mark and the lock. The lock is held.
fn remove_unfinished(path: &Path) -> Result<()> {
    // Another process may have finished its store between our look and our lock.
    if identity::path(path).exists() {
        return Err(exists(path));
    }
    let failed = |error| Error::io(REMOVING, path, error);
    for name in [PUDDLE_DIRECTORY, QUARANTINE_DIRECTORY] {
        // Nothing is put in them before the store is finished.
        remove_if_there(&path.join(name))?;
    }
    for entry in fs::read_dir(path).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let name = entry.file_name();
        let ours = registry::NAMES.iter().any(|ours| name == *ours)
            || registry::LEFTOVERS.iter().any(|ours| name == *ours)
            || takeover::FILES.iter().any(|ours| name == *ours)
            || identity::is_ours(&name)
            || name == UNFINISHED_FILE
            || name == LOCK_FILE;
        if !ours {
            return Err(exists(path));
        }
        if name != UNFINISHED_FILE && name != LOCK_FILE {
            remove_if_there(&entry.path())?;
        }
    }
    Ok(())
}

fn remove_if_there(path: &Path) -> Result<()> {
    files::remove_if_there(path, MAKING, REMOVING).map(drop)
}

fn exists(path: &Path) -> Error {
    Error::StoreExists {
        path: path.to_owned(),
    }
}
