//! Opening a store: validate, recover, clear up.
//!
//! Nothing is written before everything that will be built on has been read and found sound: identity and registry.
//! Then each client that did not end in order is recovered: nothing is written for it before its logs were read.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use durum_format::Uuid;
use durum_format::store::StoreHeader;
use durum_persist::Site;
use durum_persist::domain::{self, Domain};
use durum_persist::file;

use super::{Host, Open, OpenOptions, recover};
use crate::directory::{UNFINISHED_FILE, absolute};
use crate::error::{Error, Result};
use crate::files::{self, PUDDLE_DIRECTORY, Puddles, QUARANTINE_DIRECTORY};
use crate::identity;
use crate::liveness;
use crate::lock::StoreLock;
use crate::model::{Listener, Progress, RecoveryReport, Stage};
use crate::recovery::{being_completed, interruption};
use crate::registry::contents::Contents;
use crate::registry::takeover;
use crate::registry::{self, Found, Registry};
use crate::space::Space;
use crate::unregistered;

const ORPHAN: Site = Site("orphan removal");
const QUARANTINE: Site = Site("quarantined log");

impl Host {
    /// Opens a store as its one writer. After an unclean end its logs are replayed first.
    ///
    /// What recovery did is durable on return; see [`Host::recovery_report`].
    ///
    /// # Errors
    /// `StoreMissing`, `StoreBusy`, `StoreServed`; `Format`, `Damaged`, `FileMissing` for a foreign, newer, damaged or
    /// truncated store. The store is then byte for byte as it was. `Io` during recovery leaves the logs whole: the
    /// next attempt replays them again.
    pub fn open(path: &Path, options: OpenOptions) -> Result<Arc<Host>> {
        let path = absolute(path)?;
        let identity = identity::read(&path)?;
        let lock = match options.is_service {
            true => StoreLock::acquire(&path)?,
            false => liveness::acquire(&path)?,
        };
        // Asked once: who lives now may write to its logs, and is recovered when it is gone.
        let living = liveness::living(&path)?;
        let found = validate(&path, &identity)?;
        let mut contents = found.contents.clone();
        let progress = |stage, done, total| Progress::tell(&options.progress, stage, done, total);
        let strays = unregistered::find(&path, &contents)?;
        // Of a store of the form before nobody can tell: there a puddle that was being removed is listed nowhere.
        if !found.is_before() {
            unregistered::refuse_used(&path, &strays)?;
        }
        // From here on the store is written.
        let mut registry = Registry::open(&path, &found)?;
        if found.is_before() {
            unregistered::move_used(&path, &strays)?;
        }
        takeover::remove(&path)?;
        let completed = being_completed(&contents, |client| living.contains_key(client));
        // ORDER: the registry that was read is durable (`Registry::open`) before home is written as it says.
        let replayed =
            recover::replay(
                &path,
                &contents,
                contents.clients.iter().copied().filter(|client| {
                    !living.contains_key(client) && !completed.contains_key(client)
                }),
                &progress,
            )?;
        let is_dirty = !contents.is_clean();
        let recover::Recovered {
            report: mut recovery,
            refused,
            interrupted,
            ..
        } = replayed.end(&path, &mut registry, &mut contents)?;
        if is_dirty {
            progress(Stage::Registry, 1, 1);
        }
        clear_up(&path, &contents, |_| false, &mut recovery)?;
        let mut space = Space::new(identity.base, identity.size, contents.cursor);
        for record in contents.puddles.values() {
            // Validated: they do not overlap.
            let _ = space.insert(record.address, record.size);
        }
        for (from, to) in &contents.moves {
            let _ = space.insert(*from, to.size);
        }
        let domain = domain(&path, options.domain)?;
        let mut open = Open::new(registry, contents, space, lock);
        open.refused = refused;
        open.interrupted = interrupted;
        open.note_being_completed(&path, completed)?;
        open.at_work.extend(living.keys());
        let readers = Host::take_over_readers(&path, &open.contents, living.keys().copied())?;
        open.readers.extend(readers);
        liveness::forget_others(&path, &living)?;
        let kept = (options.quotas.clone(), Listener(options.progress.clone()));
        Host::over(path, identity, domain, recovery, open, kept)
    }
}

impl Open {
    /// Whoever completes sections goes on with that: the logs of these clients were retired before, and what they have
    /// recorded is being written.
    fn note_being_completed(
        &mut self,
        store: &Path,
        completed: BTreeMap<Uuid, Uuid>,
    ) -> Result<()> {
        if completed.is_empty() {
            return Ok(());
        }
        let puddles = Puddles::of(store)?;
        for client in completed.keys() {
            let found = interruption(&puddles, &self.contents, *client)?;
            self.interrupted
                .put(*client, Some(found.unwrap_or_default()));
        }
        self.taken_over = completed;
        Ok(())
    }
}

/// The domain of the store, or the one that was chosen.
pub(super) fn domain(path: &Path, chosen: Option<Domain>) -> Result<Domain> {
    match chosen {
        Some(domain) => Ok(domain),
        None => domain::detect(path)
            .map_err(|error| Error::io("detecting the persistence domain", path, error)),
    }
}

/// Reads the registry and checks that it belongs to the store. Writes nothing.
pub(crate) fn validate(path: &Path, identity: &StoreHeader) -> Result<Found> {
    files::check_directories(path)?;
    registry::read(path, identity)
}

/// Removes files that a crash left, of puddles that were being made or removed and are not coming, and moves
/// quarantined ones to their place. The removals are not synced: should a name come back, the next opener removes it
/// again.
pub(super) fn clear_up(
    path: &Path,
    contents: &Contents,
    is_coming: impl Fn(Uuid) -> bool,
    report: &mut RecoveryReport,
) -> Result<()> {
    for stray in unregistered::find(path, contents)? {
        if stray.state.may_go() && !is_coming(stray.uuid) {
            file::remove(&stray.file, ORPHAN)
                .map_err(|error| Error::io("removing an orphan", &stray.file, error))?;
            report.orphans_removed.push(stray.file);
        }
    }
    let directory = path.join(PUDDLE_DIRECTORY);
    let failed = |error| Error::io("listing the puddles", &directory, error);
    let mut quarantined = Vec::new();
    for entry in fs::read_dir(&directory).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        // Only names that we give: anything else is somebody's, and `check` reports it.
        let name = entry.file_name();
        let Some(uuid) = name.to_str().and_then(|name| name.parse::<Uuid>().ok()) else {
            continue;
        };
        if contents.is_quarantined_file(uuid) {
            quarantined.push(uuid);
        }
    }
    move_into_quarantine(path, &quarantined)?;
    for name in registry::LEFTOVERS.iter().chain([&UNFINISHED_FILE]) {
        files::remove_if_there(&path.join(name), ORPHAN, "removing a leftover")?;
    }
    Ok(())
}

/// Moves the files of puddles to the directory of what failed validation.
pub(super) fn move_into_quarantine(path: &Path, puddles: &[Uuid]) -> Result<()> {
    if puddles.is_empty() {
        return Ok(());
    }
    for uuid in puddles {
        let from = files::puddle_path(path, *uuid);
        file::rename(&from, &files::quarantine_path(path, *uuid), QUARANTINE)
            .map_err(|error| Error::io("moving a log into quarantine", &from, error))?;
    }
    let directory = path.join(QUARANTINE_DIRECTORY);
    // ORDER: the new names are durable before anybody is told of them; else a crash may lose the log that a person is
    // to inspect. (Should an old name come back, the next opener moves or removes it.)
    file::sync_dir(&directory, QUARANTINE)
        .map_err(|error| Error::io("syncing the directory", &directory, error))
}
