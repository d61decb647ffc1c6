//! A copy of a store at other addresses: the cure for two stores that meet in one process.
//!
//! The source is closed and drained. Every puddle is copied to a new place with a new name, and every pointer that
//! a type descriptor shows is translated; what it shows as volatile is zero in the copy. The copy is made in a hidden
//! directory beside its place and appears by one rename, whole.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use durum_format::Uuid;
use durum_format::extent::{self, UNTYPED};
use durum_format::puddle::{self, IMMUTABLE_SIZE, PuddleHeader, PuddleKind};
use durum_format::store::StoreHeader;
use durum_format::twin::SEAL_SIZE;
use durum_format::types::{Descriptor, Registry as Types};
use durum_persist::Site;
use durum_persist::file::{self, MediaFile};

use crate::descriptors::register;
use crate::directory::{absolute, not_made, parent};
use crate::error::{Error, Result};
use crate::files::{self, PUDDLE_DIRECTORY, grown};
use crate::host::CreateOptions;
use crate::host::create::{check_options, draw, fill};
use crate::host::open::validate;
use crate::identity;
use crate::inspect::ReadOnlyStore;
use crate::liveness;
use crate::model::{Progress, ProgressFn, Stage};
use crate::names;
use crate::reading;
use crate::recovery::ensure_nothing_kept;
use crate::registry::contents::{Contents, PoolRecord, PuddleRecord};
use crate::space::{Elsewhere, Space};
use crate::translate::Translator;

/// Bytes written at a time; runs of zeros of this size are left out, because a new puddle is zero.
const CHUNK_BYTES: usize = 64 << 10;

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
    let source = absolute(source)?;
    let identity = identity::read(&source)?;
    let _lock = liveness::share(&source)?;
    let contents = validate(&source, &identity)?.contents;
    ensure_nothing_kept(&source, &contents, "cloned")?;
    contents.ensure_rewritten(&source)?;
    if !contents.is_clean() {
        return Err(Error::StoreDirty { path: source });
    }
    for (uuid, pool) in &contents.pools {
        if let Some(note) = contents.quarantine_of(*uuid) {
            return Err(Error::quarantined(&source, pool.name.clone(), note));
        }
    }
    let from = Source {
        open: &|uuid, record| files::open(&source, uuid, record, false),
        type_text: &|_| Ok(None), // The registry has all that are registered.
    };
    place_at(target, &contents, &from, options)
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
    if let Some((_, error)) = reader.hold(pool)?.into_iter().next() {
        return Err(error);
    }
    let reader = &*reader;
    let contents = reader.contents().only(reader.name(), pool)?;
    let from = Source {
        open: &|uuid, record| reader.file(uuid, record),
        type_text: &|id| reader.type_text(id),
    };
    place_at(target, &contents, &from, options)
}

/// Where a copy comes from.
struct Source<'s> {
    /// Opens the file of a puddle.
    open: &'s dyn Fn(Uuid, &PuddleRecord) -> Result<MediaFile>,
    /// The text of a type that the registry, as far as it was told, does not have.
    type_text: &'s dyn Fn(u64) -> Result<Option<String>>,
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
    let place = hidden_place(target)?;
    file::create_dir(&place, PLACE).map_err(|error| not_made(target, error))?;
    let made = make(contents, from, &place, options).and_then(|report| {
        move_into_place(&place, target)?;
        Ok(report)
    });
    if made.is_err() {
        // Should this fail as well, the hidden directory stays; it is no store's.
        let _ = fs::remove_dir_all(&place);
    }
    made
}

/// A name beside the target that nobody uses.
fn hidden_place(target: &Path) -> Result<PathBuf> {
    let Some(name) = target.file_name() else {
        return Err(Error::Options {
            reason: format!("{} names no directory to be made", target.display()),
        });
    };
    let mut hidden = OsString::from(".");
    hidden.push(name);
    hidden.push(format!(".durum-clone-{:016x}", names::random_u64()?));
    Ok(target.with_file_name(hidden))
}

fn move_into_place(place: &Path, target: &Path) -> Result<()> {
    let parent = parent(target);
    // ORDER: every file and name of the clone is durable before its own name is (`make`); else a crash leaves a clone
    // that is not whole.
    file::rename(place, target, PLACE)
        .map_err(|error| Error::io("moving the clone into its place", target, error))?;
    files::sync_dir(parent, PLACE)
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
    let mut types = Types::new();
    for (id, text) in &contents.types {
        register(&mut types, *id, text)?;
    }
    let directory = place.join(PUDDLE_DIRECTORY);
    file::create_dir(&directory, COPY)
        .map_err(|error| grown("making a directory", &directory, 0, error))?;
    let mut copier = Copier {
        moves: &moves,
        types,
        learned: BTreeMap::new(),
        report: CloneReport::default(),
    };
    let total = moves.by_address.len() as u64;
    for (done, step) in (1..).zip(moves.by_address.values()) {
        copier.copy(from, place, step, contents)?;
        Progress::tell(&options.progress, Stage::Clone, done, total);
    }
    let contents = moves.translate(contents, copier.learned, empty);
    drop(fill(place, &new_identity, &contents)?);
    Ok(copier.report)
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
    types: Types,
    /// Types that the registry was not told to have, and objects do.
    learned: BTreeMap<u64, String>,
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
        let from = (source.open)(step.old, record)?;
        let mut bytes = reading::bytes(&from, 0, record.size)?;
        let old_header = files::header_of(step.old, record);
        let mut objects = Vec::new();
        for object in extent::objects(bytes.as_slice(), &old_header) {
            objects.push(object.map_err(|error| Error::damaged_heap(&from, &error))?);
        }
        for object in objects {
            self.report.objects += 1;
            self.learn(source, object.type_id)?;
            let start = usize::try_from(object.offset).unwrap_or(usize::MAX);
            let end = start.saturating_add(usize::try_from(object.size).unwrap_or(usize::MAX));
            match self.types.by_id(object.type_id) {
                Some(descriptor) => {
                    if let Some(object) = bytes.get_mut(start..end) {
                        let report = &mut self.report;
                        translate_object(
                            self.moves,
                            report,
                            descriptor,
                            object,
                            (from.path(), start as u64),
                        )?;
                    }
                }
                None if object.type_id == UNTYPED => {
                    self.report.untyped_objects += 1;
                    self.report.untyped_bytes += object.size;
                }
                None => *self.report.unknown_types.entry(object.type_id).or_default() += 1,
            }
        }
        if step.header.kind == PuddleKind::Twin && step.header.is_root {
            // Seals are about addresses, and both copies of a clone are whole.
            let header = usize::try_from(puddle::header_size(record.size)).unwrap_or(usize::MAX);
            if let Some(seals) = bytes.get_mut(header - 2 * SEAL_SIZE..header) {
                seals.fill(0);
            }
        }
        self.report.puddles += 1;
        self.write(place, &step.header, &bytes)
    }

    /// Asks for a type that is not known. Without it, pointers of its objects would lead into the source.
    fn learn(&mut self, source: &Source<'_>, id: u64) -> Result<()> {
        let is_known = id == UNTYPED
            || self.types.by_id(id).is_some()
            || self.report.unknown_types.contains_key(&id);
        if !is_known && let Some(text) = (source.type_text)(id)? {
            register(&mut self.types, id, &text)?;
            self.learned.insert(id, text);
        }
        Ok(())
    }

    fn write(&self, place: &Path, header: &PuddleHeader, bytes: &[u8]) -> Result<()> {
        let to = files::create(place, header)?;
        let failed = |error| grown("writing a cloned puddle", to.path(), header.size, error);
        let immutable = usize::try_from(IMMUTABLE_SIZE).unwrap_or(usize::MAX);
        let mut offset = immutable;
        while let Some(rest) = bytes.get(offset..).filter(|rest| !rest.is_empty()) {
            // Up to the next multiple, so that only the first chunk is shorter.
            let length = (CHUNK_BYTES - offset % CHUNK_BYTES).min(rest.len());
            let (chunk, _) = rest.split_at(length);
            if chunk.iter().any(|byte| *byte != 0) {
                // The source is clean: the main copy is whole, and all copies are to be the same.
                for copy in 0..header.kind.copies() {
                    let start = copy * header.size;
                    to.write_all_at(chunk, start + offset as u64)
                        .map_err(failed)?;
                }
            }
            offset += length;
        }
        // ORDER: all puddles are durable before the clone appears in its place.
        to.sync(COPY).map_err(failed)
    }
}

/// Makes the pointers of an object lead into the clone, and what means nothing to the next program zero.
fn translate_object(
    moves: &Moves,
    report: &mut CloneReport,
    descriptor: &Descriptor,
    object: &mut [u8],
    place: (&Path, u64),
) -> Result<()> {
    let mut translator = Translator::new(descriptor);
    if translator.is_husk(object) {
        return Ok(());
    }
    let mut volatile = Vec::new();
    let fits = descriptor.visit_volatile(object, |part| volatile.push(part));
    if fits.is_err() {
        // What does not fit holds no pointers, and `check` does not look at it: it is copied as it is.
        volatile.clear();
    }
    translator.pointers(object, place, |_, address| {
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
    for part in volatile {
        let [start, size] =
            [part.offset, part.size].map(|at| usize::try_from(at).unwrap_or(usize::MAX));
        if let Some(part) = object.get_mut(start..start.saturating_add(size)) {
            part.fill(0);
        }
    }
    Ok(())
}
