//! Repair of what can be made good without guessing: a lost registry, copy or identity, orphans, leftovers.

use std::path::Path;

use durum_format::store::StoreHeader;
use durum_persist::Site;
use durum_persist::file::MediaFile;
use rustix::io::Errno;

use super::registered;
use crate::directory::{UNFINISHED_FILE, absolute};
use crate::error::{Error, ErrorKind, Result};
use crate::files::{self, grown};
use crate::identity;
use crate::liveness;
use crate::recovery::ensure_nothing_kept;
use crate::registry::contents::Contents;
use crate::registry::takeover;
use crate::registry::{self, Registry, Remains};
use crate::unregistered::{self, StrayState};

/// A registry that cannot be read is kept under this name.
const DAMAGED_REGISTRY_FILE: &str = "registry.damaged";

const REBUILD: Site = Site("rebuilt registry");
const ORPHAN: Site = Site("orphan removal");
const REMOVING: &str = "removing a file";

/// What a repair did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RepairReport {
    /// What was done, a sentence each. Empty when nothing had to be.
    pub actions: Vec<String>,
}

/// Repairs what is safe to repair in a store that nobody has open: rebuilds a registry that cannot be read from what is
/// left of it and of its copy, where that matches the puddle files; makes a copy that is missing, damaged or behind
/// anew, and `durum.store`; removes orphans and leftovers. Logs are left to recovery, objects are never touched. What
/// was done is durable on return.
///
/// # Errors
/// `StoreMissing`, `StoreBusy`; `PartsKept`; the registry's own error when it cannot be rebuilt; `Io`, `StorageFull`.
pub fn repair(path: &Path) -> Result<RepairReport> {
    let path = absolute(path)?;
    let (identity, lost) = registered::identity(&path)?;
    let _lock = liveness::acquire(&path)?;
    let mut report = RepairReport::default();
    unregistered::has_place(&path)?;
    registry::refuse_directories(&path)?;
    if files::repair_directories(&path)? {
        let action = "made the directory of quarantined logs anew".to_owned();
        report.actions.push(action);
    }
    let contents = match registry::read(&path, &identity) {
        Ok(found) => {
            if !found.has_copy() {
                Registry::open(&path, &found)?.close(&found.contents);
                report.actions.push(match found.is_before() {
                    true => "made the registry out of the catalog of the form before".to_owned(),
                    false => "made the registry's copy anew".to_owned(),
                });
            }
            found.contents
        }
        Err(error) if error.kind() == ErrorKind::Data || is_unreadable(&error) => {
            rebuild_registry(&path, &identity, error, &mut report)?
        }
        Err(error) => return Err(error),
    };
    ensure_nothing_kept(&path, &contents, "repaired")?;
    takeover::remove(&path)?;
    if let Some(error) = lost {
        identity::write(&path, &identity)?;
        let action = format!(
            "made {} anew from the registry ({error})",
            identity::path(&path).display()
        );
        report.actions.push(action);
    }
    remove_orphans(&path, &contents, &mut report)?;
    for name in registry::LEFTOVERS.iter().chain([&UNFINISHED_FILE]) {
        remove(&path.join(name), "a leftover of a crash", &mut report)?;
    }
    Ok(report)
}

/// Whether a disk has lost a part of a file.
fn is_unreadable(error: &Error) -> bool {
    matches!(error, Error::Io { source, .. } if Errno::from_io_error(source) == Some(Errno::IO))
}

/// Builds a new registry out of what is left of the old one and its copy, where that surely loses nothing: the puddle
/// files are exactly those that it names, and what nobody has used. (A commit that neither tells of then added or
/// removed no puddle.)
fn rebuild_registry(
    path: &Path,
    identity: &StoreHeader,
    cause: Error,
    report: &mut RepairReport,
) -> Result<Contents> {
    let remains = Remains::read(path);
    let Some(contents) = remains.salvage(Some(identity)) else {
        return Err(cause);
    };
    // What it does not name belongs to a commit that neither tells of. So may what was coming: an import that has ended
    // is nowhere else.
    let strays = unregistered::find(path, &contents)?;
    let may_be_named = |state| matches!(state, StrayState::Used | StrayState::Coming);
    if strays.iter().any(|stray| may_be_named(stray.state)) {
        return Err(cause);
    }
    for (uuid, record) in &contents.puddles {
        if !contents.is_quarantined_file(*uuid) {
            files::open(path, *uuid, record, false)?;
        }
    }
    // Of a registry that is gone nothing is left to keep.
    let has_remains = remains.registry_bytes() > 0;
    if has_remains {
        keep_damaged(path, &remains)?;
    }
    Registry::create(path, &contents)?.close(&contents);
    let commit = contents.sequence;
    report.actions.push(match has_remains {
        true => format!(
            "rebuilt the registry from what is left of it and of its copy, as of commit {commit}; the damaged one is kept as \
             {DAMAGED_REGISTRY_FILE} ({cause})"
        ),
        false => format!("rebuilt the registry from its copy, as of commit {commit} ({cause})"),
    });
    Ok(contents)
}

/// Keeps the bytes of a damaged registry for whoever wants to look at them.
fn keep_damaged(path: &Path, remains: &Remains) -> Result<()> {
    let damaged = path.join(DAMAGED_REGISTRY_FILE);
    let bytes = remains.registry_bytes();
    let failed = |error| grown("keeping the damaged registry", &damaged, bytes, error);
    files::remove_if_there(&damaged, ORPHAN, REMOVING)?;
    let file = MediaFile::create_new(&damaged).map_err(failed)?;
    remains.write_registry(&file).map_err(failed)?;
    // ORDER: the damaged bytes are kept durably before the rebuilt registry takes their place; else a crash leaves a
    // kept file of zeros.
    file.sync(REBUILD).map_err(failed)
}

/// Removes what a crash left of puddles that were being made or removed, and moves aside what the registry does not
/// name otherwise.
fn remove_orphans(path: &Path, contents: &Contents, report: &mut RepairReport) -> Result<()> {
    let strays = unregistered::find(path, contents)?;
    for stray in unregistered::move_used(path, &strays)? {
        let action = format!(
            "moved {} to {}: the registry does not name it",
            stray.file.display(),
            path.join(unregistered::DIRECTORY).display()
        );
        report.actions.push(action);
    }
    for stray in strays.iter().filter(|stray| stray.state.may_go()) {
        remove(&stray.file, "an orphan", report)?;
    }
    Ok(())
}

fn remove(path: &Path, what: &str, report: &mut RepairReport) -> Result<()> {
    if files::remove_if_there(path, ORPHAN, REMOVING)? {
        let action = format!("removed {what}: {}", path.display());
        report.actions.push(action);
    }
    Ok(())
}
