//! Pools as they are in memory, with what is needed to have their pointers lead elsewhere (Puddles, EuroSys'24, §3.5):
//! to another store, machine or user, or for a copy beside the original. `docs/format/export.md` tells the files.
//!
//! The store is closed and drained, or its service lets nobody write meanwhile. Nothing is translated: that is for the
//! import, and mostly for nobody. What types say to be volatile is zero.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use durum_format::Uuid;
use durum_format::export::{ExportedPool, ExportedPuddle, FILE_NAME, Manifest, sum};
use durum_format::puddle::{self, IMMUTABLE_SIZE, PuddleHeader};
use durum_persist::Site;

use crate::archive::{self, Archive, Compression};
use crate::copying::{self, Objects, Read, Source};
use crate::error::{Error, Result};
use crate::files::{self, grown};
use crate::inspect::ReadOnlyStore;
use crate::model::{Progress, ProgressFn, Stage};
use crate::picture::Picture;
use crate::reading;
use crate::registry::contents::{Contents, PuddleRecord};
use crate::shown_file::Kept;

const EXPORTED: Site = Site("exported puddle");
const MANIFEST: Site = Site("export's manifest");
const MANIFEST_NAME: Site = Site("name of an export's manifest");
const PLACE: Site = Site("export's place");
const ARCHIVE: Site = Site("export's archive");

/// The name of a manifest that is being written.
const TEMPORARY: &str = "durum.export.new";

/// How a pool is exported.
#[derive(Clone, Default)]
pub struct ExportOptions {
    /// Pools to which its pointers lead are exported with it, and those to which theirs lead; without it there must be
    /// none.
    pub with_referenced: bool,
    /// One file instead of a directory: a tar archive of the same contents.
    pub archive: Option<Compression>,
    /// A pool that another program writes by a service is shown by that program, as it is at one moment (a snapshot):
    /// for so long it is waited for. `None`: such a pool is refused.
    pub wait: Option<Duration>,
    /// Called as the export goes on.
    pub progress: Option<Arc<ProgressFn>>,
}

impl fmt::Debug for ExportOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExportOptions")
            .field("with_referenced", &self.with_referenced)
            .field("archive", &self.archive)
            .field("wait", &self.wait)
            .field("progress", &self.progress.is_some())
            .finish()
    }
}

/// What was exported.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExportReport {
    /// The names of the pools, that which was asked for first.
    pub pools: Vec<String>,
    /// Puddles.
    pub puddles: u64,
    /// Bytes of their files.
    pub bytes: u64,
    /// Objects.
    pub objects: u64,
    /// Pointers into the store's space that lead to none of its puddles: they are as they were.
    pub pointers_to_nowhere: u64,
    /// Objects without a type: pointers in them, if any, lead to where they led.
    pub untyped_objects: u64,
    /// Their bytes.
    pub untyped_bytes: u64,
    /// Types that objects have and that are not registered, with the number of objects: as those without a type.
    pub unknown_types: BTreeMap<u64, u64>,
}

/// Exports a pool of a closed, drained store: makes a directory with a manifest and the pool's puddles. Durable on
/// return.
///
/// # Errors
/// `PoolMissing`, `PointersLeave`, `ExportExists`; `StoreMissing`, `StoreBusy`, `StoreDirty`, `StoreMoving`,
/// `PartsKept`, `PoolQuarantined`; damage; `StorageFull`, `Io`. The store is never changed, and nothing is left behind.
pub fn export(
    store: &Path,
    pool: &str,
    place: &Path,
    options: &ExportOptions,
) -> Result<ExportReport> {
    copying::of_closed(store, "exported", |contents, from| {
        match place_at(store, &[pool], place, contents, from, None, options) {
            Err(Stopped::Error(error)) => Err(error),
            // Nobody has the store open.
            Err(Stopped::NotHeld(_)) => Err(Error::StoreDirty {
                path: store.to_owned(),
            }),
            Ok(report) => Ok(report),
        }
    })
}

/// As [`export()`], for a pool of a store that a service serves. Of the pools that are exported nobody writes any
/// meanwhile; or its program is asked for a snapshot ([`ExportOptions::wait`]), which is of that pool alone. This
/// process makes the files.
///
/// # Errors
/// As [`export()`]; `PoolBusy` for a pool that somebody writes; those of the service.
pub fn export_served(
    reader: &mut ReadOnlyStore,
    pool: &str,
    place: &Path,
    options: &ExportOptions,
) -> Result<ExportReport> {
    match (export_held(reader, pool, place, options), options.wait) {
        (Err(Error::PoolBusy { name }), Some(wait)) if name == pool => {
            let picture = reader.show(pool, wait)?;
            export_picture(reader, &[pool], &*picture, place, options)
        }
        (exported, _) => exported,
    }
}

fn export_held(
    reader: &mut ReadOnlyStore,
    pool: &str,
    place: &Path,
    options: &ExportOptions,
) -> Result<ExportReport> {
    let store = reader.name().to_owned();
    let mut held = BTreeSet::from([pool.to_owned()]);
    let mut last = pool.to_owned();
    loop {
        let exported = copying::of_served(reader, Some(&last), |contents, from| {
            place_at(&store, &[pool], place, contents, from, Some(&held), options)
        });
        match exported {
            Err(Stopped::NotHeld(other)) => {
                held.insert(other.clone());
                last = other;
            }
            Err(Stopped::Error(error)) => return Err(error),
            Ok(report) => return Ok(report),
        }
    }
}

/// As [`export()`], for pools that the caller has open and shows as they were; the first names the export.
///
/// # Errors
/// As [`export()`], and those of the picture; `PointersLeave` for all pools that are not among these.
pub fn export_picture(
    reader: &ReadOnlyStore,
    pools: &[&str],
    picture: &dyn Picture,
    place: &Path,
    options: &ExportOptions,
) -> Result<ExportReport> {
    let store = reader.name();
    let contents = reader.contents();
    // An archive reads all puddles twice.
    let kept = match options.archive {
        Some(_) => Some(Kept::new(picture, place)?),
        None => None,
    };
    let picture = kept.as_ref().map_or(picture, |kept| kept);
    let named = pools.iter().filter_map(|name| contents.pool_named(name));
    let shown: BTreeSet<Uuid> = named.map(|(uuid, _)| uuid).collect();
    // What they have grown by since is not in it.
    let mut state = contents.clone().into_state();
    state
        .puddles
        .retain(|uuid, record| !shown.contains(&record.owner) || picture.has(*uuid));
    let contents = Contents::of(state);
    // Pools that are not among these are of another moment.
    let options = ExportOptions {
        with_referenced: false,
        ..options.clone()
    };
    let from = Source {
        read: &|uuid, record| {
            let path = store.join(uuid.to_string());
            let mut bytes = reading::room(&path, record.size)?;
            picture.read(uuid, &mut bytes)?;
            Ok(Read { path, bytes })
        },
        is_done: &|uuid| picture.is_done(uuid),
        type_text: &|id| reader.type_text(id),
    };
    let held = pools.iter().map(|name| (*name).to_owned()).collect();
    match place_at(store, pools, place, &contents, &from, Some(&held), &options) {
        Err(Stopped::Error(error)) => Err(error),
        Err(Stopped::NotHeld(name)) => Err(Error::PoolBusy { name }),
        Ok(report) => Ok(report),
    }
}

/// Why an export was not made.
enum Stopped {
    Error(Error),
    /// Somebody may be writing this pool, which is to be exported, too.
    NotHeld(String),
}

impl From<Error> for Stopped {
    fn from(error: Error) -> Stopped {
        Stopped::Error(error)
    }
}

fn place_at(
    store: &Path,
    pools: &[&str],
    place: &Path,
    contents: &Contents,
    from: &Source<'_>,
    held: Option<&BTreeSet<String>>,
    options: &ExportOptions,
) -> Result<ExportReport, Stopped> {
    let named = pools.iter().map(|name| match contents.pool_named(name) {
        Some((uuid, _)) => Ok(uuid),
        None => Err(Error::no_pool(store, name)),
    });
    let named = named.collect::<Result<Vec<Uuid>>>()?;
    if fs::symlink_metadata(place).is_ok() {
        return Err(Stopped::Error(Error::ExportExists {
            place: place.to_owned(),
        }));
    }
    let puddles = contents.puddles.iter();
    let by_address = puddles.filter(|(_, record)| record.kind.holds_objects());
    let mut exporter = Exporter {
        store,
        contents,
        from,
        options,
        by_address: by_address
            .map(|(_, record)| (record.address, *record))
            .collect(),
        pools: named,
        puddles: BTreeMap::new(),
        objects: Objects::of(contents)?,
        report: ExportReport::default(),
    };
    if let Some(compression) = options.archive {
        return archive::appear(place, ARCHIVE, compression, |to| {
            exporter.export_into(to, held)
        });
    }
    copying::appear(place, PLACE, |place| {
        // It is only this user's, as its pools may be.
        fs::set_permissions(place, fs::Permissions::from_mode(0o700))
            .map_err(|error| Error::io("making the export private", place, error))?;
        exporter.export_all(held, &mut |uuid, header, bytes| {
            let to = files::create_at(&place.join(uuid.to_string()), header)?;
            copying::write(&to, header, bytes)?;
            (from.is_done)(uuid);
            // ORDER: all puddles are durable before the export appears in its place.
            to.sync(EXPORTED)
                .map_err(|error| grown("writing an exported puddle", to.path(), header.size, error))
        })?;
        let bytes = exporter.manifest()?;
        files::replace_file(place, FILE_NAME, TEMPORARY, &bytes, MANIFEST, MANIFEST_NAME)?;
        Ok(exporter.report())
    })
}

struct Exporter<'e> {
    store: &'e Path,
    contents: &'e Contents,
    from: &'e Source<'e>,
    options: &'e ExportOptions,
    /// All puddles of the store.
    by_address: BTreeMap<u64, PuddleRecord>,
    /// Pools that are exported, that which was asked for first.
    pools: Vec<Uuid>,
    puddles: BTreeMap<Uuid, ExportedPuddle>,
    objects: Objects,
    report: ExportReport,
}

/// What is done with a puddle that was read.
type Take<'t> = dyn FnMut(Uuid, &PuddleHeader, &[u8]) -> Result<()> + 't;

impl Exporter<'_> {
    /// Writes an archive, whose manifest comes first: puddles are read twice, because it has their sums.
    fn export_into(
        mut self,
        to: &mut Archive,
        held: Option<&BTreeSet<String>>,
    ) -> Result<ExportReport, Stopped> {
        self.export_all(held, &mut |_, _, _| Ok(()))?;
        to.add(FILE_NAME, vec![&self.manifest()?])?;
        let mut again = Objects::of(self.contents)?;
        for (uuid, exported) in &self.puddles {
            let record = self.contents.puddle(self.store, *uuid)?;
            let header = files::header_of(*uuid, record);
            let bytes = again.read(self.from, *uuid, record, |_| None)?;
            let contents = || copying::contents(&bytes, header.kind.copies());
            if sum(contents()) != exported.sum {
                // Nobody who keeps to the rules writes it meanwhile.
                let error = Error::PoolBusy {
                    name: self.contents.name_of(record.owner),
                };
                return Err(Stopped::Error(error));
            }
            (self.from.is_done)(*uuid);
            let mut head = [0; IMMUTABLE_SIZE as usize];
            let encoded = puddle::encode(&header);
            head[..encoded.len()].copy_from_slice(&encoded);
            let parts = std::iter::once(head.as_slice()).chain(contents());
            to.add(&uuid.to_string(), parts.collect())?;
        }
        Ok(self.report())
    }

    /// Reads all puddles, those of pools that are found on the way, too.
    fn export_all(
        &mut self,
        held: Option<&BTreeSet<String>>,
        take: &mut Take<'_>,
    ) -> Result<(), Stopped> {
        self.tell_progress();
        let mut done = 0;
        while let Some(pool) = self.pools.get(done).copied() {
            done += 1;
            let name = self.contents.name_of(pool);
            if let Some(note) = self.contents.quarantine_of(pool) {
                let error = Error::quarantined(self.store, name, note);
                return Err(Stopped::Error(error));
            }
            let mut leaving = BTreeMap::new();
            for (uuid, record) in self.contents.puddles_of(pool) {
                self.export_puddle(uuid, &record, &mut leaving, take)
                    .map_err(|error| files::of_pool(error, self.store, &name))?;
            }
            let new = leaving.keys().filter(|other| !self.pools.contains(other));
            let new: Vec<Uuid> = new.copied().collect();
            let others = new.iter().map(|pool| self.contents.name_of(*pool));
            let others: Vec<String> = others.collect();
            if !new.is_empty() && !self.options.with_referenced {
                return Err(Stopped::Error(Error::PointersLeave {
                    pool: name,
                    pointers: leaving.values().sum(),
                    others,
                }));
            }
            let is_held = |other: &String| held.is_none_or(|held| held.contains(other));
            if let Some(other) = others.into_iter().find(|other| !is_held(other)) {
                return Err(Stopped::NotHeld(other));
            }
            self.pools.extend(new);
        }
        Ok(())
    }

    /// Reads a puddle; `leaving` counts pointers to other pools.
    fn export_puddle(
        &mut self,
        uuid: Uuid,
        record: &PuddleRecord,
        leaving: &mut BTreeMap<Uuid, u64>,
        take: &mut Take<'_>,
    ) -> Result<()> {
        let header = files::header_of(uuid, record);
        let (by_address, report) = (&self.by_address, &mut self.report);
        let (base, size) = (self.contents.store.base, self.contents.store.size);
        let bytes = self.objects.read(self.from, uuid, record, |address| {
            let found = by_address.range(..=address).next_back();
            let found = found.filter(|(start, target)| address - **start < target.size);
            match found {
                Some((_, target)) if target.owner == record.owner => {}
                Some((_, target)) => *leaving.entry(target.owner).or_default() += 1,
                None if address >= base && address - base < size => {
                    report.pointers_to_nowhere += 1;
                }
                None => {}
            }
            None
        })?;
        take(uuid, &header, &bytes)?;
        let exported = ExportedPuddle {
            owner: record.owner,
            address: record.address,
            size: record.size,
            kind: record.kind,
            is_root: record.is_root,
            sum: sum(copying::contents(&bytes, header.kind.copies())),
        };
        self.puddles.insert(uuid, exported);
        self.report.puddles += 1;
        self.report.bytes += header.file_size();
        self.tell_progress();
        Ok(())
    }

    fn tell_progress(&self) {
        let pools = self.pools.iter();
        let total = pools.map(|pool| self.contents.puddles_of(*pool).len());
        let total = total.sum::<usize>() as u64;
        let done = self.report.puddles;
        Progress::tell(&self.options.progress, Stage::Export, done, total);
    }

    /// The manifest's file, once all is read.
    fn manifest(&self) -> Result<Vec<u8>> {
        let Objects { learned, seen, .. } = &self.objects;
        let text = |id: u64| {
            let text = learned.get(&id).or(self.contents.types.get(&id));
            Some((id, text?.clone()))
        };
        let meant = self.pools.iter().flat_map(|pool| {
            let meanings = self.contents.meanings_of(*pool).iter();
            meanings
                .flat_map(|(old, new)| [old, new])
                .collect::<Vec<_>>()
        });
        let pools = self.pools.iter().filter_map(|uuid| {
            let pool = self.contents.pools.get(uuid)?;
            let exported = ExportedPool {
                name: pool.name.clone(),
                engine: pool.engine,
                root_puddle: pool.root_puddle,
                meanings: pool.meanings.clone(),
            };
            Some((*uuid, exported))
        });
        let manifest = Manifest {
            store: self.contents.store.clone(),
            pool: self.pools.first().copied().unwrap_or_default(),
            pools: pools.collect(),
            puddles: self.puddles.clone(),
            types: (seen.known_types.iter().copied())
                .chain(meant)
                .filter_map(text)
                .collect(),
            untyped_objects: seen.untyped_objects + seen.unknown_types.values().sum::<u64>(),
        };
        let file = Path::new(FILE_NAME);
        let encoded = manifest.encode();
        encoded.map_err(|source| Error::format(file, 0, source, "report this with the message"))
    }

    /// What was exported.
    fn report(&self) -> ExportReport {
        let names = self.pools.iter().map(|pool| self.contents.name_of(*pool));
        let seen = &self.objects.seen;
        ExportReport {
            pools: names.collect(),
            objects: seen.objects,
            untyped_objects: seen.untyped_objects,
            untyped_bytes: seen.untyped_bytes,
            unknown_types: seen.unknown_types.clone(),
            ..self.report.clone()
        }
    }
}
