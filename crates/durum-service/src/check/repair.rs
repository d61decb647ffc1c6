//! Repair of what can be made good without guessing: the catalog, orphans, leftovers, and a lost registry.

use std::collections::BTreeSet;
use std::io;
use std::path::Path;

use durum_format::Uuid;
use durum_format::store::StoreHeader;
use durum_persist::Site;
use durum_persist::file;

use super::{names_in, read_catalog, read_registry};
use crate::catalog;
use crate::embedded::UNFINISHED_FILE;
use crate::embedded::open::absolute;
use crate::error::{Error, ErrorKind, Result};
use crate::files::{self, PUDDLE_DIRECTORY};
use crate::identity;
use crate::lock::StoreLock;
use crate::registry::contents::Contents;
use crate::registry::{REGISTRY_FILE, Registry};

/// A registry that cannot be read is kept under this name.
const DAMAGED_REGISTRY_FILE: &str = "registry.redb.damaged";
/// A registry that is being rebuilt.
const REBUILT_REGISTRY_FILE: &str = "registry.redb.new";

const REBUILD: Site = Site("rebuilt registry");
const ORPHAN: Site = Site("orphan removal");

/// What a repair did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RepairReport {
    /// What was done, a sentence each. Empty when nothing had to be.
    pub actions: Vec<String>,
}

/// Repairs what is safe to repair in a store that nobody has open: rewrites a catalog that is missing, damaged or stale;
/// rebuilds a registry that cannot be read out of a catalog that matches the puddle files; removes
/// orphans and leftovers. Logs are left to recovery, objects are never touched. What was done is durable on return.
///
/// # Errors
/// `StoreMissing`, `StoreBusy`; the registry's own error when neither registry nor catalog will do; `Io`, `StorageFull`.
pub fn repair(path: &Path) -> Result<RepairReport> {
    let path = absolute(path)?;
    let identity = identity::read(&path)?;
    let _lock = StoreLock::acquire(&path)?;
    let mut report = RepairReport::default();
    let contents = match read_registry(&path.join(REGISTRY_FILE), &identity) {
        Ok(contents) => contents,
        Err(error) if error.kind() == ErrorKind::Data => {
            rebuild_registry(&path, &identity, error, &mut report)?
        }
        Err(error) => return Err(error),
    };
    repair_catalog(&path, &identity, &contents, &mut report)?;
    remove_orphans(&path, &contents, &mut report)?;
    for name in [UNFINISHED_FILE, "catalog.new", REBUILT_REGISTRY_FILE] {
        remove(&path.join(name), "a leftover of a crash", &mut report)?;
    }
    Ok(report)
}

/// Builds a new registry out of the catalog, where that surely loses nothing: the puddle files are exactly the
/// catalog's. (It may be one commit older than the registry was; that commit then added or removed no puddle.)
fn rebuild_registry(
    path: &Path,
    identity: &StoreHeader,
    cause: Error,
    report: &mut RepairReport,
) -> Result<Contents> {
    let Ok((_, contents)) = read_catalog(path, identity) else {
        return Err(cause);
    };
    let found: BTreeSet<Uuid> = names_in(&path.join(PUDDLE_DIRECTORY))?
        .iter()
        .filter_map(|name| name.parse().ok())
        .collect();
    let puddles = contents.puddles.iter();
    let expected: BTreeSet<Uuid> = puddles
        .filter(|(uuid, _)| !contents.is_quarantined_file(**uuid))
        .map(|(uuid, _)| *uuid)
        .collect();
    if found != expected {
        return Err(cause);
    }
    for (uuid, record) in contents
        .puddles
        .iter()
        .filter(|(uuid, _)| expected.contains(uuid))
    {
        files::open(path, *uuid, record, false)?;
    }
    let registry = path.join(REGISTRY_FILE);
    let rebuilt = path.join(REBUILT_REGISTRY_FILE);
    remove_quietly(&rebuilt)?;
    drop(Registry::create(&rebuilt, &contents)?);
    let damaged = path.join(DAMAGED_REGISTRY_FILE);
    match file::rename(&registry, &damaged, REBUILD) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            return Err(Error::io("renaming the damaged registry", &registry, error));
        }
        _ => {}
    }
    // ORDER: the new registry is durable (`Registry::create`) before it takes the name; else a crash leaves a torn one
    // in its place. A crash between the two renames leaves no registry, and the next repair begins anew.
    file::rename(&rebuilt, &registry, REBUILD)
        .map_err(|error| Error::io("renaming the rebuilt registry", &rebuilt, error))?;
    file::sync_dir(path, REBUILD)
        .map_err(|error| Error::io("syncing the directory", path, error))?;
    report.actions.push(format!(
        "rebuilt the registry from the catalog as of commit {}; the damaged one is kept as {DAMAGED_REGISTRY_FILE} ({cause})",
        contents.sequence
    ));
    Ok(contents)
}

fn repair_catalog(
    path: &Path,
    identity: &StoreHeader,
    contents: &Contents,
    report: &mut RepairReport,
) -> Result<()> {
    let action = match read_catalog(path, identity) {
        Ok((_, mut found)) => {
            found.cursor = contents.cursor;
            if found == *contents {
                return Ok(());
            }
            format!(
                "rewrote the catalog: it was as of commit {}, the registry is at {}",
                found.sequence, contents.sequence
            )
        }
        Err(error) if matches!(error.kind(), ErrorKind::Data | ErrorKind::User) => {
            format!("rewrote the catalog ({error})")
        }
        Err(error) => return Err(error),
    };
    catalog::replace(path, identity, contents)?;
    report.actions.push(action);
    Ok(())
}

fn remove_orphans(path: &Path, contents: &Contents, report: &mut RepairReport) -> Result<()> {
    let directory = path.join(PUDDLE_DIRECTORY);
    for name in names_in(&directory)? {
        // Other names are not ours, and what is on its way into quarantine is recovery's.
        let Ok(uuid) = name.parse::<Uuid>() else {
            continue;
        };
        if !contents.puddles.contains_key(&uuid) {
            remove(&directory.join(name), "an orphan", report)?;
        }
    }
    Ok(())
}

fn remove(path: &Path, what: &str, report: &mut RepairReport) -> Result<()> {
    if remove_quietly(path)? {
        let action = format!("removed {what}: {}", path.display());
        report.actions.push(action);
    }
    Ok(())
}

fn remove_quietly(path: &Path) -> Result<bool> {
    match file::remove(path, ORPHAN) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(Error::io("removing a file", path, error)),
    }
}
