//! A copy of a store at other addresses: the cure for two stores that meet in one process.
//!
//! The source is closed and drained. Every puddle is copied to a new place with a new name, and every pointer that
//! a type descriptor shows is translated; what it shows as volatile is zero in the copy. The copy is made in a hidden
//! directory beside its place and appears by one rename, whole.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use durum_format::Uuid;
use durum_format::puddle::PuddleHeader;
use durum_format::store::StoreHeader;
use durum_persist::Site;
use durum_persist::file;

use crate::copying::{self, Objects, Source};
use crate::error::{Error, Result};
use crate::files::{self, PUDDLE_DIRECTORY, grown};
use crate::host::CreateOptions;
use crate::host::create::{check_options, draw, fill};
use crate::inspect::ReadOnlyStore;
use crate::model::{Progress, ProgressFn, Stage};
use crate::names;
use crate::registry::contents::{Contents, PoolRecord, PuddleRecord};
use crate::space::{Elsewhere, Space};

const COPY: Site = Site("cloned puddle");
const PLACE: Site = Site("clone's place");

/// How a store is cloned.
#[derive(Clone, Default)]
pub struct CloneOptions {
    /// The first address of the clone's puddle space; that of the source when absent.
    pub base: Option<u64>,
    /// Where the clone's first puddle goes; drawn at random when absent.
    pub start: Option<u64>,
    /// Called as the clone goes on.
    pub progress: Option<Arc<ProgressFn>>,
}

impl fmt::Debug for CloneOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CloneOptions")
            .field("base", &self.base)
            .field("start", &self.start)
            .field("progress", &self.progress.is_some())
            .finish()
    }
}

/// What was cloned.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CloneReport {
    /// Puddles copied.
    pub puddles: u64,
    /// Objects copied.
    pub objects: u64,
    /// Pointers translated.
    pub pointers: u64,
    /// Pointers into the source's space that lead to none of its puddles: they were copied as they are.
    pub pointers_to_nowhere: u64,
    /// Objects without a type, copied as they are: pointers in them, if any, still lead into the source's space.
    pub untyped_objects: u64,
    /// Their bytes.
    pub untyped_bytes: u64,
    /// Types that objects have and that are not registered, with the number of objects: they were copied as they are.
    pub unknown_types: BTreeMap<u64, u64>,
}

/// Copies a closed, drained store to new addresses and new names. What types say to be volatile is zero in the clone,
/// which is durable on return.
///
/// # Errors
/// `StoreMissing`, `StoreBusy`, `StoreDirty`, `StoreMoving`, `PartsKept` for the source; `StoreExists` for the target;
/// `PoolQuarantined`; damage of the source; `Options`, `StorageFull`, `Io`. The source is never changed, and the target
/// is not there then.
pub fn clone_store(source: &Path, target: &Path, options: &CloneOptions) -> Result<CloneReport> {
    copying::of_closed(source, "cloned", |contents, from| {
        for (uuid, pool) in &contents.pools {
            if let Some(note) = contents.quarantine_of(*uuid) {
                return Err(Error::quarantined(source, pool.name.clone(), note));
            }
        }
        place_at(target, contents, from, options)
    })
}

/// Copies the pools of a store that a service serves, or the one of this name, to a store at `target`, as
/// [`clone_store`] does. This process makes all files of the copy.
///
/// # Errors
/// `PoolMissing`; `PoolBusy` for a pool that somebody writes; those of the service, and of [`clone_store`].
pub fn clone_served(
    reader: &mut ReadOnlyStore,
    pool: Option<&str>,
    target: &Path,
    options: &CloneOptions,
) -> Result<CloneReport> {
    let store = reader.name().to_owned();
    copying::of_served(reader, pool, |contents, from| {
        place_at(target, &contents.only(&store, pool)?, from, options)
    })
}

fn place_at(
    target: &Path,
    contents: &Contents,
    from: &Source<'_>,
    options: &CloneOptions,
) -> Result<CloneReport> {
    if fs::symlink_metadata(target).is_ok() {
        return Err(Error::StoreExists {
            path: target.to_owned(),
        });
    }
    copying::appear(target, PLACE, |place| make(contents, from, place, options))
}

fn make(
    contents: &Contents,
    from: &Source<'_>,
    place: &Path,
    options: &CloneOptions,
) -> Result<CloneReport> {
    let identity = &contents.store;
    let made = CreateOptions {
        domain: None,
        base: options.base.unwrap_or(identity.base),
        space_size: identity.size,
        start: options.start,
    };
    check_options(&made)?;
    let domain = durum_persist::domain::detect(place)
        .map_err(|error| Error::io("detecting the persistence domain", place, error))?;
    // Both are opened beside each other: a clone whose start nobody has chosen has no address of its source.
    let mut beside = Space::new(identity.base, identity.size, contents.cursor);
    for record in contents.puddles.values() {
        // The registry was validated: no two of them meet.
        let _ = beside.insert(record.address, record.size);
    }
    let source = beside.open_here();
    let (new_identity, empty, _drawn) = draw(&made, domain)?;
    drop(source);
    let mut spaces = vec![Space::new(
        new_identity.base,
        new_identity.size,
        new_identity.start,
    )];
    if options.start.is_none() && new_identity.base == identity.base {
        spaces.push(beside.beginning_at(new_identity.start));
    }
    let moves = Moves::draw(place, identity, spaces, contents)?;
    let objects = Objects::of(contents)?;
    let directory = place.join(PUDDLE_DIRECTORY);
    file::create_dir(&directory, COPY)
        .map_err(|error| grown("making a directory", &directory, 0, error))?;
    let mut copier = Copier {
        moves: &moves,
        objects,
        report: CloneReport::default(),
    };
    let total = moves.by_address.len() as u64;
    for (done, step) in (1..).zip(moves.by_address.values()) {
        copier.copy(from, place, step, contents)?;
        Progress::tell(&options.progress, Stage::Clone, done, total);
    }
    let Objects { learned, seen, .. } = copier.objects;
    let contents = moves.translate(contents, learned, empty);
    drop(fill(place, &new_identity, &contents)?);
    Ok(CloneReport {
        objects: seen.objects,
        untyped_objects: seen.untyped_objects,
        untyped_bytes: seen.untyped_bytes,
        unknown_types: seen.unknown_types,
        ..copier.report
    })
}

/// Where each puddle goes.
struct Moves {
    base: u64,
    size: u64,
    /// By the old address.
    by_address: BTreeMap<u64, Move>,
    pools: BTreeMap<Uuid, Uuid>,
    cursor: u64,
}

struct Move {
    old: Uuid,
    header: PuddleHeader,
}

impl Moves {
    /// Places the puddles in the last of the spaces in which there is room for all.
    fn draw(
        place: &Path,
        identity: &StoreHeader,
        mut spaces: Vec<Space>,
        contents: &Contents,
    ) -> Result<Moves> {
        let mut pools = BTreeMap::new();
        for uuid in contents.pools.keys() {
            pools.insert(*uuid, names::random_uuid()?);
        }
        let mut old: Vec<(&Uuid, &PuddleRecord)> = contents
            .puddles
            .iter()
            .filter(|(_, record)| pools.contains_key(&record.owner))
            .collect();
        old.sort_unstable_by_key(|(_, record)| record.address);
        let (addresses, cursor) = loop {
            let Some(mut space) = spaces.pop() else {
                return Err(Error::AddressesExhausted {
                    store: place.to_owned(),
                    size: old.iter().map(|(_, record)| record.size).sum(),
                    space: identity.size,
                });
            };
            let addresses = old
                .iter()
                .map(|(_, record)| space.place(record.size, &Elsewhere::NOTHING));
            if let Some(addresses) = addresses.collect::<Option<Vec<u64>>>() {
                break (addresses, space.cursor());
            }
        };
        let mut by_address = BTreeMap::new();
        for ((uuid, record), address) in old.into_iter().zip(addresses) {
            let header = PuddleHeader {
                owner: pools.get(&record.owner).copied().unwrap_or_default(),
                address,
                ..files::header_of(names::random_uuid()?, record)
            };
            by_address.insert(record.address, Move { old: *uuid, header });
        }
        Ok(Moves {
            base: identity.base,
            size: identity.size,
            by_address,
            pools,
            cursor,
        })
    }

    /// Whether an address is one of the source's space.
    fn concerns(&self, address: u64) -> bool {
        address >= self.base && address - self.base < self.size
    }

    /// The new address of an old one; `None` where no puddle is.
    fn translate_address(&self, address: u64) -> Option<u64> {
        let (old, step) = self.by_address.range(..=address).next_back()?;
        (address - old < step.header.size).then(|| step.header.address + (address - old))
    }

    fn translate(
        &self,
        contents: &Contents,
        learned: BTreeMap<u64, String>,
        empty: Contents,
    ) -> Contents {
        let mut new = empty.into_state();
        new.cursor = self.cursor;
        new.types.clone_from(&contents.types);
        new.types.extend(learned);
        let mut names = BTreeMap::new();
        for step in self.by_address.values() {
            let header = &step.header;
            names.insert(step.old, header.uuid);
            let record = files::record_of(header);
            new.puddles.insert(header.uuid, record);
        }
        for (uuid, pool) in &contents.pools {
            if let (Some(new_uuid), Some(root)) =
                (self.pools.get(uuid), names.get(&pool.root_puddle))
            {
                let root_puddle = *root;
                let pool = pool.clone();
                new.pools.insert(
                    *new_uuid,
                    PoolRecord {
                        root_puddle,
                        ..pool
                    },
                );
            }
        }
        Contents::of(new)
    }
}

struct Copier<'a> {
    moves: &'a Moves,
    objects: Objects,
    report: CloneReport,
}

impl Copier<'_> {
    fn copy(
        &mut self,
        source: &Source<'_>,
        place: &Path,
        step: &Move,
        contents: &Contents,
    ) -> Result<()> {
        let Some(record) = contents.puddles.get(&step.old) else {
            return Ok(());
        };
        let (moves, report) = (self.moves, &mut self.report);
        let bytes = self.objects.read(source, step.old, record, |address| {
            if !moves.concerns(address) {
                return None;
            }
            let translated = moves.translate_address(address);
            match translated {
                Some(_) => report.pointers += 1,
                None => report.pointers_to_nowhere += 1,
            }
            translated
        })?;
        report.puddles += 1;
        let to = files::create(place, &step.header)?;
        copying::write(&to, &step.header, &bytes)?;
        // ORDER: all puddles are durable before the clone appears in its place.
        to.sync(COPY).map_err(|error| {
            grown(
                "writing a cloned puddle",
                to.path(),
                step.header.size,
                error,
            )
        })
    }
}
