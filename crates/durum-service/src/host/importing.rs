//! An export becomes pools of the store, whole or not at all.
//!
//! ```text
//! begin    addresses, new names | the registry lists the new files as such that go at the next open
//! take     each file: a further name in the store, or a copy
//! finish   directory | the registry: pools, puddles, types | the export's own names go
//! ```
//!
//! A file has its name in the export until the registry says that it is the store's: a crash leaves the export whole,
//! or the pools. Behind that, a file that still has both names is copied by whoever imports it once more.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use durum_format::export::{FILE_NAME, Manifest};
use durum_format::extent;
use durum_format::puddle::heap_offset;
use durum_format::{GRANULE, Uuid};
use durum_persist::Site;
use durum_persist::beneath::Directory;
use durum_persist::file::{self, MediaFile};

use super::Embedded;
use super::commit::Commit;
use super::planned::Plan;
use super::puddles::Registered;
use crate::error::{Error, Result};
use crate::files::{self, PUDDLE_DIRECTORY};
use crate::import::{Export, ExportedFile, ImportOptions, ImportReport, Ownable, refused};
use crate::model::{Progress, Stage};
use crate::reading::HeapInFile;
use crate::registry::contents::PuddleRecord;
use crate::sums::{ensure_sum, sum_of};

const FILES: Site = Site("imported puddle");
const FILE_NAMES: Site = Site("names of imported puddles");
const LEFT: Site = Site("export that was taken over");

/// Pools that are being imported. Dropped before it is finished, nothing of them is left.
#[derive(Debug)]
pub struct Importing {
    client: Embedded,
    /// Where the store's puddles are.
    directory: Directory,
    plan: Plan,
    /// The puddles that are here, by their names in the export.
    here: BTreeMap<Uuid, Here>,
    is_finished: bool,
}

/// A puddle that is here.
#[derive(Debug, Default)]
struct Here {
    /// Its file, where somebody writes it.
    given: Option<MediaFile>,
    /// Its contents have the sum that was exported.
    is_verified: bool,
}

impl Embedded {
    /// As [`Service::import`](crate::Service::import).
    pub(super) fn take_in(&self, export: &Export, options: &ImportOptions) -> Result<ImportReport> {
        let mut copied = match options.copies {
            true => Some("as it was asked for".to_owned()),
            false => export.why_copied(&self.host.path)?,
        };
        let mut importing = self.begin_import(export.place(), export.manifest(), options)?;
        let mut taken = Vec::new();
        let total = export.manifest().puddles.len() as u64;
        let mut done = 0;
        export.each_puddle(|puddle, from| {
            match (from, export.directory()) {
                (ExportedFile::File(file), Some(directory)) if copied.is_none() => {
                    match importing.link(puddle, &file, directory)? {
                        None => {
                            if options.verifies {
                                importing.verify(puddle, &file)?;
                            }
                            taken.push(puddle);
                        }
                        Some(reason) if taken.is_empty() => {
                            importing.copy(export, puddle, ExportedFile::File(file))?;
                            copied = Some(reason);
                        }
                        Some(reason) => {
                            let reason = format!(
                                "some of its files cannot be taken over ({reason}); import copies of them (--copy)"
                            );
                            return Err(refused(export.place(), reason));
                        }
                    }
                }
                (from, _) => importing.copy(export, puddle, from)?,
            }
            done += 1;
            Progress::tell(&options.progress, Stage::Import, done, total);
            Ok(())
        })?;
        let report = importing.finish()?;
        if let (None, Some(directory)) = (&copied, export.directory()) {
            remove_taken(directory, &taken);
        }
        Ok(ImportReport { copied, ..report })
    }

    /// Begins to import pools: files are to follow, each by [`Importing::give`]. `place` is where the export is, for
    /// errors.
    ///
    /// # Errors
    /// `PoolExists`, `PoolName`, `PoolMissing`, `TypeRefused`, `ImportRefused`, `AddressesExhausted`, `QuotaExceeded`,
    /// `StorageFull`.
    pub fn begin_import(
        &self,
        place: &Path,
        manifest: &Manifest,
        options: &ImportOptions,
    ) -> Result<Importing> {
        let plan = Plan::new(self, place, manifest, options)?;
        if self.caller.is_some() {
            ensure_disk(&self.host.path, manifest)?;
        }
        let mut importing = Importing {
            client: self.another(),
            directory: files::puddle_directory(&self.host.path)?,
            plan,
            here: BTreeMap::new(),
            is_finished: false,
        };
        let plan = &mut importing.plan;
        let (away, ()) = self.host.leave(|open| plan.place(self, open))?;
        if plan.moved() > 0 && manifest.untyped_objects > 0 && !options.untyped_hold_no_pointers {
            let reason = format!(
                "its addresses are taken here, so its pointers have to be rewritten, and nobody knows what pointers objects \
                 of unknown type hold ({} of them); say that they hold none (--untyped-hold-no-pointers), if that is so",
                manifest.untyped_objects
            );
            return Err(refused(place, reason));
        }
        // ORDER: the registry lists the new files before there are any; else a crash leaves used files that the
        // registry does not name, and nobody may remove these.
        away.request(|_| Ok(((), Commit::addition(plan.listing()))))?;
        Ok(importing)
    }
}

/// Removes an export whose files are the store's: what names them there first.
fn remove_taken(export: &Directory, taken: &[Uuid]) {
    let names = taken.iter().map(Uuid::to_string);
    let removed = [FILE_NAME.to_owned()]
        .into_iter()
        .chain(names)
        .try_for_each(|name| match export.remove(&name, LEFT) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        })
        .and_then(|()| file::remove(export.path(), LEFT));
    if let Err(error) = removed {
        // It was imported all the same.
        let place = export.path().display();
        tracing::warn!(%place, %error, "the export was imported, and its names cannot be removed");
    }
}

impl Importing {
    /// A puddle that is not here yet.
    fn coming(&self, puddle: Uuid) -> Result<&Registered> {
        let store = &self.client.host.path;
        let coming = self.plan.puddles().get(&puddle);
        let coming = coming.filter(|_| !self.here.contains_key(&puddle));
        coming.ok_or_else(|| Error::PuddleUnknown {
            store: store.clone(),
            uuid: puddle.to_string(),
        })
    }

    /// Takes a file of an export over, if it is this user's alone; else tells why it is not, and nothing has changed.
    fn link(
        &mut self,
        puddle: Uuid,
        from: &MediaFile,
        export: &Directory,
    ) -> Result<Option<String>> {
        let (uuid, record) = self.coming(puddle)?;
        let (name, new) = (puddle.to_string(), uuid.to_string());
        let linked = export.link(&name, &self.directory, &new, FILES);
        // What was opened has the new name now, too. If its path leads to another file meanwhile, it has not.
        let found = Ownable::of(from)?;
        let has_others = linked.is_ok() && found.names.is_gt();
        let reason = has_others.then(|| "its files have other names, too".to_owned());
        if let Some(reason) = found.why_copied.or(reason) {
            if linked.is_ok() {
                let left = self.directory.remove(&new, FILES);
                left.map_err(|error| {
                    Error::io("leaving a file to the export", from.path(), error)
                })?;
            }
            return Ok(Some(reason));
        }
        linked
            .map_err(|error| Error::io("taking over a file of the export", from.path(), error))?;
        if found.names.is_lt() {
            let reason = "somebody changes it meanwhile; come again".to_owned();
            return Err(refused(from.path(), reason));
        }
        let size = file_size(record);
        if found.allocated < size {
            // Who maps it must not find holes on a full disk.
            let here = files::open(&self.client.host.path, *uuid, record, true)?;
            here.allocate(size, FILES).map_err(|error| {
                files::grown("making room for a puddle", here.path(), size, error)
            })?;
        }
        // ORDER: contents are durable before the registry names the puddle: whoever copied the export may not have
        // seen to that.
        from.sync(FILES)
            .map_err(|error| Error::io("making it durable", from.path(), error))?;
        self.here.insert(puddle, Here::default());
        Ok(None)
    }

    /// Compares the contents of a puddle that was taken over with their sum.
    fn verify(&mut self, puddle: Uuid, file: &MediaFile) -> Result<()> {
        let registered = self.plan.puddles().get(&puddle);
        let sum = registered.and_then(|(_, record)| record.origin?.sum);
        ensure_sum(file.path(), sum_of(file)?, sum)?;
        self.here.entry(puddle).or_default().is_verified = true;
        Ok(())
    }

    /// Copies a file of the export. Whoever has that open can change it: what was copied is looked at, and not what is
    /// there.
    fn copy(&mut self, export: &Export, puddle: Uuid, from: ExportedFile<'_>) -> Result<()> {
        export.copy(puddle, from, &self.give(puddle)?)?;
        self.here.entry(puddle).or_default().is_verified = true;
        Ok(())
    }

    /// Makes the file of a puddle, as long as it is to be and with nothing in it, for whoever copies it from the
    /// export. Length and header are looked at when the import is finished, contents when the puddle is first opened.
    ///
    /// # Errors
    /// `PuddleUnknown` for one that the manifest does not name, or that is here already; `StorageFull`, `Io`.
    pub fn give(&mut self, puddle: Uuid) -> Result<MediaFile> {
        let (uuid, record) = self.coming(puddle)?;
        let to = files::puddle_path(&self.client.host.path, *uuid);
        let size = file_size(record);
        let failed = |error| files::grown("making room for a puddle", &to, size, error);
        let file = MediaFile::create_new(&to).map_err(failed)?;
        file.set_len(size).map_err(failed)?;
        let here = Here {
            given: Some(file.clone()),
            is_verified: false,
        };
        self.here.insert(puddle, here);
        Ok(file)
    }

    /// Makes the pools the store's. They are durable on return.
    ///
    /// # Errors
    /// As [`Embedded::begin_import`]; `ImportRefused` where files are missing; `Format`, `Damaged` for those that are
    /// not what the manifest says.
    pub fn finish(mut self) -> Result<ImportReport> {
        let host = &self.client.host.clone();
        for (from, (uuid, record)) in self.plan.puddles() {
            let Some(here) = self.here.get(from) else {
                let reason = format!("puddle {from} of it was not sent");
                return Err(refused(&host.path, reason));
            };
            if let Some(file) = &here.given {
                files::ensure_is(file, *uuid, record)?;
                let size = file_size(record);
                let failed =
                    |error| files::grown("making room for a puddle", file.path(), size, error);
                file.allocate(size, FILES).map_err(failed)?;
                // ORDER: as in `link`: whoever has written it may not have made it durable.
                file.sync(FILES).map_err(failed)?;
            }
        }
        // ORDER: the names are durable before the registry names the puddles; else a crash leaves registered puddles
        // without files.
        files::sync_dir(&host.path.join(PUDDLE_DIRECTORY), FILE_NAMES)?;
        let is_verified = |from| self.here.get(&from).is_some_and(|here| here.is_verified);
        host.request(|open| {
            self.plan.ensure_admitted(&self.client, open)?;
            let changes = self.plan.changes(open, is_verified);
            Ok(((), Commit::addition(changes)))
        })?;
        self.is_finished = true;
        let puddles = self.plan.puddles().values();
        if let Some(open) = &mut host.state().open {
            puddles
                .clone()
                .for_each(|(uuid, _)| _ = open.coming.remove(uuid));
        }
        Ok(ImportReport {
            pools: self.plan.names(),
            puddles: puddles.len() as u64,
            bytes: puddles.map(|(_, record)| file_size(record)).sum(),
            moved: self.plan.moved(),
            root: self.root(),
            copied: None,
        })
    }

    /// Where the root object is of what has joined a pool, if it has one.
    fn root(&self) -> Option<u64> {
        let (uuid, record) = self.plan.former_root()?;
        // What is wrong with it they are told who open it.
        let file = files::open(&self.client.host.path, *uuid, record, false).ok()?;
        let header = files::header_of(*uuid, record);
        let heap = HeapInFile {
            file: &file,
            start: 0,
        };
        let first = extent::objects(&heap, &header).next()?.ok()?;
        let is_in_its_place = first.offset < heap_offset(record.size) + GRANULE;
        is_in_its_place.then_some(record.address + first.offset)
    }
}

impl Drop for Importing {
    fn drop(&mut self) {
        let host = &self.client.host;
        if self.is_finished || host.state().poisoned.is_some() {
            return;
        }
        let mut gone = Vec::new();
        for (uuid, _) in self.plan.puddles().values() {
            // The next opener removes what cannot be removed now.
            if files::remove(&host.path, *uuid).is_ok() {
                gone.push(*uuid);
            }
        }
        if let Some(open) = &mut host.state().open {
            open.unlinked.extend(gone);
            self.plan.take_back(open);
        }
    }
}

/// Bytes of a puddle's file.
fn file_size(record: &PuddleRecord) -> u64 {
    record.size * record.kind.copies()
}

/// Refuses more than there is room for: addresses are taken before files are made, and nobody is to have all of them by
/// a manifest alone.
fn ensure_disk(store: &Path, manifest: &Manifest) -> Result<()> {
    let found = rustix::fs::statvfs(store)
        .map_err(|errno| Error::io("asking for room", store, errno.into()))?;
    let puddles = manifest.puddles.iter();
    let sizes = puddles.map(|(uuid, puddle)| puddle.header(*uuid).file_size());
    let bytes = sizes.fold(0, u64::saturating_add);
    match bytes > found.f_bavail.saturating_mul(found.f_frsize) {
        true => Err(Error::StorageFull {
            path: store.to_owned(),
            bytes,
        }),
        false => Ok(()),
    }
}
