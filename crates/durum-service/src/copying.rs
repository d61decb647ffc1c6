//! What a clone and an export do alike: pools of a store that nobody writes are read, object by object, and written to
//! files elsewhere, which appear whole.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

use durum_format::Uuid;
use durum_format::extent::{self, UNTYPED};
use durum_format::puddle::{self, IMMUTABLE_SIZE, PuddleHeader, PuddleKind};
use durum_format::twin::SEAL_SIZE;
use durum_format::types::{Descriptor, Meanings, Registry as Types};
use durum_persist::Site;
use durum_persist::file::{self, MediaFile};

use crate::descriptors::register;
use crate::directory::{Unfinished, absolute, hidden_beside, not_made, parent};
use crate::error::{Error, Result};
use crate::files::{self, grown};
use crate::host::open::validate;
use crate::identity;
use crate::inspect::ReadOnlyStore;
use crate::liveness;
use crate::reading;
use crate::recovery::ensure_nothing_kept;
use crate::registry::contents::{Contents, PuddleRecord};
use crate::translate::Translator;

/// Bytes written at a time; runs of zeros of this size are left out, because a new puddle is zero.
const CHUNK_BYTES: usize = 64 << 10;
/// A part of them. It is in each program, and in code that is deposited: no larger than need be.
static ZEROS: [u8; 4 << 10] = [0; 4 << 10];

/// Where a copy comes from.
pub(crate) struct Source<'s> {
    /// What a puddle holds, from its beginning on.
    pub(crate) read: &'s dyn Fn(Uuid, &PuddleRecord) -> Result<Read>,
    /// A puddle is not read any more.
    pub(crate) is_done: &'s dyn Fn(Uuid),
    /// The text of a type that the registry, as far as it was told, does not have.
    pub(crate) type_text: &'s dyn Fn(u64) -> Result<Option<String>>,
}

/// What a puddle holds.
pub(crate) struct Read {
    /// Where it lies, for errors.
    pub(crate) path: PathBuf,
    pub(crate) bytes: Vec<u8>,
}

impl Read {
    fn of(file: &MediaFile, record: &PuddleRecord) -> Result<Read> {
        Ok(Read {
            path: file.path().to_owned(),
            bytes: reading::bytes(file, 0, record.size)?,
        })
    }
}

/// Has `copy` copy from a closed, drained store, which is not changed and not opened meanwhile. `operation` is what
/// happens to it, for errors.
///
/// # Errors
/// `StoreMissing`, `StoreBusy`, `StoreDirty`, `StoreMoving`, `PartsKept`; damage; those of `copy`.
pub(crate) fn of_closed<T>(
    store: &Path,
    operation: &'static str,
    copy: impl FnOnce(&Contents, &Source<'_>) -> Result<T>,
) -> Result<T> {
    let store = absolute(store)?;
    let identity = identity::read(&store)?;
    let _lock = liveness::share(&store)?;
    let contents = validate(&store, &identity)?.contents;
    ensure_nothing_kept(&store, &contents, operation)?;
    contents.ensure_rewritten(&store)?;
    if !contents.is_clean() {
        return Err(Error::StoreDirty { path: store });
    }
    let from = Source {
        is_done: &|_| (),
        read: &|uuid, record| Read::of(&files::open(&store, uuid, record, false)?, record),
        type_text: &|_| Ok(None), // The registry has all that are registered.
    };
    copy(&contents, &from)
}

/// Has `copy` copy from a store that a service serves; nobody writes the pools, or the one of this name, from here on,
/// until the reader is dropped.
///
/// # Errors
/// `PoolMissing`; `PoolBusy` for a pool that somebody writes; those of the service, and of `copy`.
pub(crate) fn of_served<T, E: From<Error>>(
    reader: &mut ReadOnlyStore,
    pool: Option<&str>,
    copy: impl FnOnce(&Contents, &Source<'_>) -> Result<T, E>,
) -> Result<T, E> {
    if let Some((_, error)) = reader.hold(pool)?.into_iter().next() {
        return Err(error.into());
    }
    let reader = &*reader;
    let from = Source {
        is_done: &|_| (),
        read: &|uuid, record| Read::of(&reader.file(uuid, record)?, record),
        type_text: &|id| reader.type_text(id),
    };
    copy(reader.contents(), &from)
}

/// Has `make` make files in a hidden directory, which then gets the name `target`. All of it is durable on return.
/// Nothing is left behind on an error.
///
/// Every file, and every name in a directory in it, is durable when `make` returns.
pub(crate) fn appear<T, E: From<Error>>(
    target: &Path,
    site: Site,
    make: impl FnOnce(&Path) -> Result<T, E>,
) -> Result<T, E> {
    let place = hidden_beside(target)?;
    file::create_dir(&place, site).map_err(|error| not_made(target, error))?;
    let unfinished = Unfinished(&place);
    let made = make(&place).and_then(|made| {
        // ORDER: every file and name in it is durable (`make`) before its own name is; else a crash leaves a copy that
        // is not whole.
        file::rename(&place, target, site)
            .map_err(|error| Error::io("moving the copy into its place", target, error))?;
        // ORDER: its own name is durable before anybody is told of it.
        files::sync_dir(parent(target), site)?;
        Ok(made)
    })?;
    std::mem::forget(unfinished);
    Ok(made)
}

/// The objects that are copied, and what is known of their types.
pub(crate) struct Objects {
    types: Types,
    /// What ids mean in pools whose programs have changed their types.
    meanings: BTreeMap<Uuid, Meanings>,
    /// Types that the registry was not told to have, and objects do.
    pub(crate) learned: BTreeMap<u64, String>,
    pub(crate) seen: Seen,
}

/// What was seen of objects.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seen {
    pub(crate) objects: u64,
    /// Objects without a type, and their bytes.
    pub(crate) untyped_objects: u64,
    pub(crate) untyped_bytes: u64,
    /// Types that objects have and that are not registered, with the number of objects.
    pub(crate) unknown_types: BTreeMap<u64, u64>,
    /// Types that objects have and that are registered.
    pub(crate) known_types: BTreeSet<u64>,
}

impl Objects {
    /// None yet, of types among those of the store and others.
    pub(crate) fn of(contents: &Contents) -> Result<Objects> {
        let mut known = Types::new();
        for (id, text) in &contents.types {
            register(&mut known, *id, text)?;
        }
        let pools = contents.pools.iter();
        let meanings = pools.filter(|(_, pool)| !pool.meanings.is_empty());
        Ok(Objects {
            types: known,
            meanings: meanings
                .map(|(uuid, pool)| (*uuid, pool.meanings.clone()))
                .collect(),
            learned: BTreeMap::new(),
            seen: Seen::default(),
        })
    }

    /// Reads a puddle of the source. `elsewhere` is asked for each pointer of its objects where it is to lead in the
    /// copy. What means nothing to the next program is zero.
    ///
    /// # Errors
    /// `Damaged`; those of the source.
    pub(crate) fn read(
        &mut self,
        source: &Source<'_>,
        uuid: Uuid,
        record: &PuddleRecord,
        mut elsewhere: impl FnMut(u64) -> Option<u64>,
    ) -> Result<Vec<u8>> {
        let Read { path, mut bytes } = (source.read)(uuid, record)?;
        let header = &files::header_of(uuid, record);
        let mut objects = Vec::new();
        for object in extent::objects(bytes.as_slice(), header) {
            objects.push(object.map_err(|error| Error::damaged_heap(&path, &error))?);
        }
        let meanings = self.meanings.get(&record.owner).cloned();
        let meanings = meanings.unwrap_or_default();
        for object in objects {
            self.seen.objects += 1;
            let type_id = meanings.of(object.type_id);
            self.learn(source, type_id)?;
            let start = usize::try_from(object.offset).unwrap_or(usize::MAX);
            let end = start.saturating_add(usize::try_from(object.size).unwrap_or(usize::MAX));
            match self.types.by_id(type_id) {
                Some(descriptor) => {
                    self.seen.known_types.insert(type_id);
                    if let Some(object) = bytes.get_mut(start..end) {
                        let place = (path.as_path(), start as u64);
                        copied(descriptor, object, place, &mut elsewhere)?;
                    }
                }
                None if type_id == UNTYPED => {
                    self.seen.untyped_objects += 1;
                    self.seen.untyped_bytes += object.size;
                }
                None => *self.seen.unknown_types.entry(type_id).or_default() += 1,
            }
        }
        if header.kind == PuddleKind::Twin && header.is_root {
            // Seals are about addresses, and both copies are to be whole.
            let end = usize::try_from(puddle::header_size(header.size)).unwrap_or(usize::MAX);
            if let Some(seals) = bytes.get_mut(end - 2 * SEAL_SIZE..end) {
                seals.fill(0);
            }
        }
        Ok(bytes)
    }

    /// Asks for a type that is not known. Without it, nobody knows the pointers of its objects.
    fn learn(&mut self, source: &Source<'_>, id: u64) -> Result<()> {
        let is_known = id == UNTYPED
            || self.types.by_id(id).is_some()
            || self.seen.unknown_types.contains_key(&id);
        if !is_known && let Some(text) = (source.type_text)(id)? {
            register(&mut self.types, id, &text)?;
            self.learned.insert(id, text);
        }
        Ok(())
    }
}

/// Makes the pointers of an object lead elsewhere, and what means nothing to the next program zero.
fn copied(
    descriptor: &Descriptor,
    object: &mut [u8],
    place: (&Path, u64),
    mut elsewhere: impl FnMut(u64) -> Option<u64>,
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
    translator.pointers(object, place, |_, address| elsewhere(address))?;
    for part in volatile {
        let [start, size] =
            [part.offset, part.size].map(|at| usize::try_from(at).unwrap_or(usize::MAX));
        if let Some(part) = object.get_mut(start..start.saturating_add(size)) {
            part.fill(0);
        }
    }
    Ok(())
}

/// What follows in a puddle's file behind the part that nobody but its maker writes: `bytes`, which are those of the
/// puddle from its beginning on, without that part, in each copy.
///
/// The source is drained: the main copy is whole, and all copies are to be the same.
pub(crate) fn contents(bytes: &[u8], copies: u64) -> impl Iterator<Item = &[u8]> {
    const NOTHING: &[u8] = &[0; IMMUTABLE_SIZE as usize];
    let contents = bytes.get(IMMUTABLE_SIZE as usize..).unwrap_or_default();
    let further = (1..copies).flat_map(move |_| [NOTHING, contents]);
    std::iter::once(contents).chain(further)
}

/// Writes the contents of a puddle, `bytes` from its beginning on, to each copy in a new file of its header. Not
/// synced.
pub(crate) fn write(to: &MediaFile, header: &PuddleHeader, bytes: &[u8]) -> Result<()> {
    let failed = |error| {
        grown(
            "writing the copy of a puddle",
            to.path(),
            header.size,
            error,
        )
    };
    let mut at = IMMUTABLE_SIZE;
    for part in contents(bytes, header.kind.copies()) {
        write_at(to, part, at).map_err(failed)?;
        at += part.len() as u64;
    }
    Ok(())
}

/// Writes bytes to where a file has none: zeros may stay holes.
pub(crate) fn write_at(to: &MediaFile, bytes: &[u8], at: u64) -> io::Result<()> {
    for (chunk, at) in bytes.chunks(CHUNK_BYTES).zip((at..).step_by(CHUNK_BYTES)) {
        // Compared with zeros, which is a good deal faster than to look at each byte.
        let mut parts = chunk.chunks(ZEROS.len());
        if !parts.all(|part| ZEROS.get(..part.len()) == Some(part)) {
            to.write_all_at(chunk, at)?;
        }
    }
    Ok(())
}
