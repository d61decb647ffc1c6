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

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use durum_format::export::{ExportedPuddle, FILE_NAME, Manifest};
use durum_format::extent;
use durum_format::puddle::heap_offset;
use durum_format::{GRANULE, Uuid};
use durum_persist::Site;
use durum_persist::file::{self, MediaFile};

use super::commit::Commit;
use super::holders::Wish;
use super::puddles::Registered;
use super::{Embedded, Open};
use crate::descriptors;
use crate::error::{Error, Result};
use crate::files::{self, PUDDLE_DIRECTORY};
use crate::import::{
    self, Export, ExportedFile, ImportOptions, ImportReport, Ownable, names_of, refused,
};
use crate::model::{EngineKind, Progress, Stage};

use crate::names;
use crate::reading::HeapInFile;
use crate::registry::contents::{
    AddressRange, Change, Import, Origin, PoolRecord, PuddleRecord, Rights, looked_at,
};
use crate::rewrite::Moves;
use crate::sums::{ensure_sum, sum_of};

const FILES: Site = Site("imported puddle");
const FILE_NAMES: Site = Site("names of imported puddles");
const LEFT: Site = Site("export that was taken over");

/// Pools that are being imported. Dropped before it is finished, nothing of them is left.
#[derive(Debug)]
pub struct Importing {
    client: Embedded,
    options: ImportOptions,
    import: Uuid,
    moves: Moves,
    pools: Vec<Arriving>,
    /// The pool that the puddles join, and its engine.
    joins: Option<(Uuid, EngineKind)>,
    /// By their names in the export.
    puddles: BTreeMap<Uuid, Coming>,
    /// Types and those that they reach.
    types: Vec<(u64, String)>,
    rights: Rights,
    /// Where the search for addresses began.
    cursor: u64,
    is_finished: bool,
}

/// A pool on its way.
#[derive(Debug)]
struct Arriving {
    uuid: Uuid,
    record: PoolRecord,
}

/// A puddle on its way.
#[derive(Debug)]
struct Coming {
    /// Its name in the store, and what the registry is to say of it.
    puddle: Registered,
    is_here: bool,
    /// Its file, where somebody writes it.
    given: Option<MediaFile>,
    /// Its contents have the sum that was exported.
    is_verified: bool,
}

impl Embedded {
    /// As [`Service::import`](crate::Service::import).
    pub(super) fn take_in(&self, export: &Export, options: &ImportOptions) -> Result<ImportReport> {
        let store = &self.host.path;
        let mut copied = match options.copies {
            true => Some("as it was asked for".to_owned()),
            false => export.why_copied(store)?,
        };
        let mut importing = self.begin_import(export.place(), export.manifest(), options)?;
        let mut taken = Vec::new();
        let total = importing.puddles.len() as u64;
        let mut done = 0;
        export.each_puddle(|puddle, from| {
            if let ExportedFile::File(file) = &from {
                let ownable = Ownable::of(file)?;
                copied = copied.take().or(ownable.why_copied);
                if copied.is_none() {
                    importing.link(puddle, file, ownable.allocated)?;
                    taken.push(import::path_in(export.place(), puddle));
                }
            }
            if copied.is_some() {
                let to = importing.give(puddle)?;
                // Whoever has the export open can change it: what was copied is looked at, and not what is there.
                export.copy(puddle, from, &to)?;
                importing.was_looked_at(puddle);
            }
            done += 1;
            Progress::tell(&options.progress, Stage::Import, done, total);
            Ok(())
        })?;
        let report = importing.finish()?;
        if !taken.is_empty() {
            // The files that were copied before one could not be taken over stay with the export.
            remove_taken(export.place(), &taken, copied.is_none());
        }
        Ok(ImportReport { copied, ..report })
    }

    /// Begins to import pools: files are to follow, each by [`Importing::give`]. `place` is where the export is, for
    /// errors.
    ///
    /// # Errors
    /// `PoolExists`, `PoolName`, `PuddleSize`, `TypeRefused`, `ImportRefused`, `AddressesExhausted`, `QuotaExceeded`.
    pub fn begin_import(
        &self,
        place: &Path,
        manifest: &Manifest,
        options: &ImportOptions,
    ) -> Result<Importing> {
        let named = names_of(manifest, options);
        for (_, name) in &named {
            names::check_pool_name(name)?;
        }
        let engine = match (&options.into, manifest.pools.len()) {
            (None, _) => None,
            (Some(_), 1) if options.name.is_none() => {
                manifest.pools.values().next().map(|pool| pool.engine)
            }
            (Some(_), _) => {
                let reason = "one pool alone joins another one, and has no name of its own then";
                return Err(refused(place, reason.to_owned()));
            }
        };
        let mut types = Vec::new();
        for (id, text) in &manifest.types {
            types.extend(descriptors::check_type(*id, text)?);
        }
        types.sort_unstable();
        types.dedup();
        let mut exported: Vec<(Uuid, ExportedPuddle)> = manifest
            .puddles
            .iter()
            .map(|(uuid, puddle)| (*uuid, *puddle))
            .collect();
        exported.sort_unstable_by_key(|(_, puddle)| puddle.address);
        let mut importing = Importing {
            client: self.another(),
            options: options.clone(),
            import: names::random_uuid()?,
            moves: Moves::new(),
            pools: Vec::new(),
            joins: None,
            puddles: BTreeMap::new(),
            types,
            rights: self.own_rights(),
            cursor: 0,
            is_finished: false,
        };
        let mut new_names = Vec::new();
        for _ in &exported {
            new_names.push(names::random_uuid()?);
        }
        let mut new_pools = Vec::new();
        for _ in &named {
            new_pools.push(names::random_uuid()?);
        }
        let (away, ()) = self.host.leave(|open| {
            if let (Some(into), Some(engine)) = (&options.into, engine) {
                let pool = self.joined(open, into, engine, place)?;
                importing.joins = Some((pool, engine));
                importing.rights = self.rights_of(open, pool);
            }
            let joins = importing.joins.map(|(pool, _)| pool);
            importing.ensure_admitted(open, &named, &exported)?;
            importing.cursor = open.space.cursor();
            let places = self.places_of(open, &exported)?;
            for ((exported, uuid), address) in exported.iter().zip(&new_names).zip(places) {
                let (from, puddle) = exported;
                let to = AddressRange {
                    address,
                    size: puddle.size,
                };
                importing.moves.insert(puddle.address, to);
                let mut pools = named.iter().zip(&new_pools);
                let pool = pools.find(|((old, _), _)| *old == puddle.owner);
                let record = PuddleRecord {
                    owner: pool.map(|(_, new)| *new).or(joins).unwrap_or_default(),
                    address,
                    size: puddle.size,
                    kind: puddle.kind,
                    is_root: puddle.is_root && joins.is_none(),
                    is_stale: true,
                    origin: Some(Origin {
                        import: importing.import,
                        uuid: *from,
                        owner: puddle.owner,
                        address: puddle.address,
                        is_root: puddle.is_root,
                        sum: Some(puddle.sum),
                    }),
                };
                let coming = Coming {
                    puddle: (*uuid, record),
                    is_here: false,
                    given: None,
                    is_verified: false,
                };
                importing.puddles.insert(*from, coming);
            }
            Ok(())
        })?;
        for ((old, name), uuid) in named.iter().zip(&new_pools) {
            let Some(pool) = manifest.pools.get(old) else {
                continue;
            };
            let root = importing.puddles.get(&pool.root_puddle);
            importing.pools.push(Arriving {
                uuid: *uuid,
                record: PoolRecord {
                    name: name.clone(),
                    engine: pool.engine,
                    root_puddle: root.map(|root| root.puddle.0).unwrap_or_default(),
                    rights: Some(importing.rights),
                    damage: None,
                },
            });
        }
        let is_moved = importing.moved() > 0;
        if is_moved && manifest.untyped_objects > 0 && !options.untyped_hold_no_pointers {
            let reason = format!(
                "its addresses are taken here, so its pointers have to be rewritten, and nobody knows what pointers objects \
                 of unknown type hold ({} of them); say that they hold none (--untyped-hold-no-pointers), if that is so",
                manifest.untyped_objects
            );
            return Err(refused(place, reason));
        }
        // ORDER: the registry lists the new files before there are any; else a crash leaves used files that the
        // registry does not name, and nobody may remove these.
        let coming = importing
            .puddles
            .values()
            .flat_map(|coming| as_being_removed(&coming.puddle));
        let coming: Vec<Change> = coming.collect();
        away.request(|_| Ok(((), Commit::addition(coming.clone()))))?;
        Ok(importing)
    }

    /// The pool that puddles are to join.
    fn joined(&self, open: &Open, name: &str, engine: EngineKind, place: &Path) -> Result<Uuid> {
        let pool = self.host.pool_named(&open.contents, name)?;
        self.ensure_may(open, pool, Wish::Write)?;
        self.ensure_usable(open, pool, Wish::Write)?;
        match open.contents.pools.get(&pool).map(|pool| pool.engine) {
            Some(own) if own != engine => Err(refused(
                place,
                format!(
                    "pool \"{name}\" is of the engine {}, and this one of {}; only those of one engine can be \
                     joined",
                    own.name(),
                    engine.name()
                ),
            )),
            _ => Ok(pool),
        }
    }

    /// Where the puddles go: to where they were, or elsewhere, and then to where none of them was.
    fn places_of(&self, open: &mut Open, exported: &[(Uuid, ExportedPuddle)]) -> Result<Vec<u64>> {
        let elsewhere = open.in_use_of(self.id).elsewhere.clone();
        let before = exported.iter().map(|(_, puddle)| AddressRange {
            address: puddle.address,
            size: puddle.size,
        });
        let mut space = open.space.clone();
        let kept = exported.iter().map(|(_, puddle)| {
            let is_free = !elsewhere.meets(puddle.address, puddle.size)
                && space.insert(puddle.address, puddle.size).is_ok();
            is_free.then_some(puddle.address)
        });
        let kept: Vec<Option<u64>> = kept.collect();
        let elsewhere = elsewhere.with(before);
        let placed = exported.iter().zip(kept).map(|((_, puddle), kept)| {
            let placed = kept.or_else(|| space.place(puddle.size, &elsewhere));
            placed.ok_or_else(|| Error::AddressesExhausted {
                store: self.host.path.clone(),
                size: puddle.size,
                space: self.host.identity.size,
            })
        });
        let placed = placed.collect::<Result<Vec<u64>>>()?;
        open.space = space;
        Ok(placed)
    }
}

/// The changes that leave a puddle listed as being removed, and nothing else: its file goes at the next open, unless
/// the registry says otherwise by then.
fn as_being_removed((uuid, record): &Registered) -> [Change; 2] {
    let record = PuddleRecord {
        is_stale: false,
        origin: None,
        ..*record
    };
    [
        Change::PutPuddle(*uuid, record),
        Change::RemovePuddle(*uuid),
    ]
}

/// Removes an export whose files are the store's: what names them there first.
fn remove_taken(place: &Path, taken: &[PathBuf], is_whole: bool) {
    let manifest = is_whole.then(|| place.join(FILE_NAME));
    let removed = manifest.iter().chain(taken).try_for_each(|path| {
        files::remove_if_there(path, LEFT, "removing a file of the export").map(drop)
    });
    let removed = removed.and_then(|()| match is_whole {
        true => files::remove_if_there(place, LEFT, "removing the export").map(drop),
        false => Ok(()),
    });
    if let Err(error) = removed {
        // It was imported all the same.
        tracing::warn!(place = %place.display(), %error, "the export was imported, and its names cannot be removed");
    }
}

impl Importing {
    /// Refuses what the store cannot have.
    fn ensure_admitted(
        &self,
        open: &Open,
        named: &[(Uuid, String)],
        exported: &[(Uuid, ExportedPuddle)],
    ) -> Result<()> {
        let store = &self.client.host.path;
        for (_, name) in named {
            // The new name of the one may be that of another one that comes with it.
            let alike = named.iter().filter(|(_, other)| other == name).count();
            if alike > 1 || open.contents.pool_named(name).is_some() {
                return Err(Error::PoolExists {
                    store: store.clone(),
                    name: name.clone(),
                });
            }
        }
        let sizes = exported.iter().map(|(_, puddle)| puddle.size);
        let bytes = sizes.fold(0, u64::saturating_add);
        let count = exported.len() as u64;
        self.client
            .ensure_room_for(open, Some(&self.rights), count, bytes)?;
        if self.client.caller.is_some() {
            ensure_disk(store, bytes)?;
        }
        for (id, text) in &self.types {
            if let Some(known) = open.contents.types.get(id).filter(|known| *known != text) {
                return Err(Error::TypeRefused {
                    id: *id,
                    reason: self.client.same_id(known, text),
                });
            }
        }
        Ok(())
    }

    /// The puddles that are not here yet, by their names in the export.
    pub fn wanted(&self) -> Vec<Uuid> {
        let missing = self.puddles.iter().filter(|(_, coming)| !coming.is_here);
        missing.map(|(from, _)| *from).collect()
    }

    /// Puddles that are not where they were.
    fn moved(&self) -> u64 {
        let moves = self.moves.iter();
        moves.filter(|(from, to)| **from != to.address).count() as u64
    }

    fn coming(&mut self, puddle: Uuid) -> Result<&mut Coming> {
        let coming = self.puddles.get_mut(&puddle);
        let coming = coming.filter(|coming| !coming.is_here);
        coming.ok_or_else(|| Error::PuddleUnknown {
            store: self.client.host.path.clone(),
            uuid: puddle.to_string(),
        })
    }

    /// Takes a file over, which is this user's alone and of which so many bytes have their place.
    fn link(&mut self, puddle: Uuid, from: &MediaFile, allocated: u64) -> Result<()> {
        let verifies = self.options.verifies;
        let store = self.client.host.path.clone();
        let coming = self.coming(puddle)?;
        let (uuid, record) = &mut coming.puddle;
        let to = files::puddle_path(&store, *uuid);
        file::link(from.path(), &to, FILES)
            .map_err(|error| Error::io("taking over a file of the export", from.path(), error))?;
        coming.is_here = true;
        // What was looked at may have another name by now.
        let is_same = from.is_at(&to);
        if !is_same.map_err(|error| Error::io("looking at it", &to, error))? {
            let reason = "somebody changes it meanwhile; come again".to_owned();
            return Err(refused(from.path(), reason));
        }
        let size = files::header_of(*uuid, record).file_size();
        if allocated < size {
            // Who maps it must not find holes on a full disk.
            let here = files::open(&store, *uuid, record, true)?;
            here.allocate(size, FILES)
                .map_err(|error| files::grown("making room for a puddle", &to, size, error))?;
        }
        // ORDER: contents are durable before the registry names the puddle: whoever copied the export may not have
        // seen to that.
        from.sync(FILES)
            .map_err(|error| Error::io("making it durable", from.path(), error))?;
        if verifies {
            ensure_sum(from.path(), sum_of(from)?, expected(record))?;
            coming.is_verified = true;
        }
        Ok(())
    }

    /// Makes the file of a puddle, as long as it is to be and with nothing in it, for whoever copies it from the
    /// export. Length and header are looked at when the import is finished, contents when the puddle is first opened.
    ///
    /// # Errors
    /// `PuddleUnknown` for one that the manifest does not name, or that is here already; `StorageFull`, `Io`.
    pub fn give(&mut self, puddle: Uuid) -> Result<MediaFile> {
        let store = self.client.host.path.clone();
        let coming = self.coming(puddle)?;
        let (uuid, record) = &coming.puddle;
        let to = files::puddle_path(&store, *uuid);
        let size = files::header_of(*uuid, record).file_size();
        let failed = |error| files::grown("making room for a puddle", &to, size, error);
        let here = MediaFile::create_new(&to).map_err(failed)?;
        coming.is_here = true;
        here.set_len(size).map_err(failed)?;
        coming.given = Some(here.clone());
        Ok(here)
    }

    /// The contents of a puddle are those that were exported.
    fn was_looked_at(&mut self, puddle: Uuid) {
        if let Some(coming) = self.puddles.get_mut(&puddle) {
            coming.is_verified = true;
        }
    }

    /// Makes the pools the store's. They are durable on return.
    ///
    /// # Errors
    /// As [`Embedded::begin_import`]; `ImportRefused` where files are missing.
    pub fn finish(mut self) -> Result<ImportReport> {
        let host = &self.client.host.clone();
        if let Some(missing) = self.wanted().first() {
            let reason = format!("puddle {missing} of it was not sent");
            return Err(refused(&host.path, reason));
        }
        for coming in self.puddles.values() {
            let (uuid, record) = &coming.puddle;
            if let Some(file) = &coming.given {
                files::ensure_is(file, *uuid, record)?;
                let size = files::header_of(*uuid, record).file_size();
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
        let import = Import {
            moves: self.moves.clone(),
            untyped_hold_no_pointers: self.options.untyped_hold_no_pointers,
        };
        host.request(|open| {
            if let (Some((pool, engine)), Some(into)) = (self.joins, &self.options.into)
                && self.client.joined(open, into, engine, &host.path)? != pool
            {
                return Err(Error::no_pool(&host.path, into));
            }
            for pool in &self.pools {
                if open.contents.pool_named(&pool.record.name).is_some() {
                    return Err(Error::PoolExists {
                        store: host.path.clone(),
                        name: pool.record.name.clone(),
                    });
                }
            }
            let mut changes = vec![Change::PutImport(self.import, import.clone())];
            for (id, text) in &self.types {
                match open.contents.types.get(id) {
                    Some(known) if known == text => {}
                    Some(known) => {
                        return Err(Error::TypeRefused {
                            id: *id,
                            reason: self.client.same_id(known, text),
                        });
                    }
                    None => changes.push(Change::PutType(*id, text.clone())),
                }
            }
            let pools = self.pools.iter();
            changes.extend(pools.map(|pool| Change::PutPool(pool.uuid, pool.record.clone())));
            for coming in self.puddles.values() {
                let (uuid, record) = &coming.puddle;
                // It is no file any more that goes.
                changes.push(Change::FileGone(*uuid));
                let record = match coming.is_verified {
                    true => looked_at(record),
                    false => *record,
                };
                changes.push(Change::PutPuddle(*uuid, record));
            }
            changes.push(Change::Cursor(open.space.cursor()));
            Ok(((), Commit::addition(changes)))
        })?;
        self.is_finished = true;
        let names = self.pools.iter().map(|pool| pool.record.name.clone());
        let names = names.chain(self.options.into.clone());
        let sizes = self.puddles.values().map(|coming| {
            let (uuid, record) = &coming.puddle;
            files::header_of(*uuid, record).file_size()
        });
        Ok(ImportReport {
            pools: names.collect(),
            puddles: self.puddles.len() as u64,
            bytes: sizes.sum(),
            moved: self.moved(),
            root: self.root(),
            copied: None,
        })
    }

    /// Where the root object is of what has joined a pool, if it has one.
    fn root(&self) -> Option<u64> {
        self.joins?;
        let is_root = |coming: &&Coming| {
            let origin = coming.puddle.1.origin;
            origin.is_some_and(|origin| origin.is_root)
        };
        let (uuid, record) = &self.puddles.values().find(is_root)?.puddle;
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
        let host = &self.client.host.clone();
        if self.is_finished || host.state().poisoned.is_some() {
            return;
        }
        let mut gone = BTreeSet::new();
        for coming in self.puddles.values() {
            let (uuid, _) = coming.puddle;
            // The next opener removes what cannot be removed now.
            if files::remove(&host.path, uuid).is_ok() {
                gone.insert(uuid);
            }
        }
        if let Some(open) = &mut host.state().open {
            open.unlinked.extend(gone);
            for coming in self.puddles.values().rev() {
                let (_, record) = &coming.puddle;
                open.space
                    .take_back(record.address, record.size, self.cursor);
            }
        }
    }
}

/// Refuses more than there is room for: addresses are taken before files are made, and nobody is to have all of them by
/// a manifest alone.
fn ensure_disk(store: &Path, bytes: u64) -> Result<()> {
    let found = rustix::fs::statvfs(store)
        .map_err(|errno| Error::io("asking for room", store, errno.into()))?;
    match bytes > found.f_bavail.saturating_mul(found.f_frsize) {
        true => Err(Error::StorageFull {
            path: store.to_owned(),
            bytes,
        }),
        false => Ok(()),
    }
}

fn expected(record: &PuddleRecord) -> Option<u32> {
    record.origin.and_then(|origin| origin.sum)
}
