//! The files of a pool that is made of lines: an export, which is imported as any other.
//!
//! Lines name objects by numbers, and an object may be named before its line: its address is known when all have their
//! places. Until then the number stands in the pointer's place; what has no room there is kept apart.

use std::collections::BTreeMap;
use std::path::Path;

use durum_format::content::Object;
use durum_format::dump::line::{read_value, says_pointers};
use durum_format::dump::{ObjectHead, Plan, Reference, Refused};
use durum_format::export::{ExportedPool, ExportedPuddle, FILE_NAME, Manifest, sum};
use durum_format::extent::UNTYPED;
use durum_format::puddle::{IMMUTABLE_SIZE, PuddleHeader};
use durum_format::store::StoreHeader;
use durum_format::types::{Descriptor, Type};
use durum_format::{EngineKind, UNIT, Uuid};
use durum_persist::Site;
use durum_persist::file::MediaFile;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::heap::{Image, Wanted, next_size};
use super::rows::Rows;
use crate::copying;
use crate::error::{Error, Result};
use crate::files::{self, grown};
use crate::names::random_uuid;
use crate::reading;

const LOADED: Site = Site("loaded puddle");
const MANIFEST: Site = Site("manifest of what was loaded");
const MANIFEST_NAME: Site = Site("name of the manifest of what was loaded");
const TEMPORARY: &str = "durum.export.new";

/// Bits of a pointer's place for how far it leads into the object; the number stands above them.
pub(super) const OFFSET_BITS: u32 = 24;
/// Set where the place says where among those that are kept apart.
pub(super) const APART: u64 = 1 << 63;
/// Objects of one dump.
pub(super) const OBJECTS_MAX: u64 = 1 << 38;
/// Bytes of an object.
const SIZE_MAX: u64 = 1 << 40;

/// A type of the objects.
pub(super) struct LoadedType {
    pub(super) id: u64,
    pub(super) text: String,
    pub(super) descriptor: Descriptor,
    pub(super) plan: Plan,
}

/// Where an object lies.
#[derive(Clone, Copy, Default, FromBytes, Immutable, IntoBytes, KnownLayout)]
#[repr(C)]
pub(super) struct Place {
    pub(super) address: u64,
    pub(super) size: u64,
}

/// A pointer of an object without a type.
#[derive(Clone, Copy, Default, FromBytes, Immutable, IntoBytes, KnownLayout)]
#[repr(C)]
pub(super) struct Word {
    /// Where it lies.
    pub(super) address: u64,
    /// The object that it leads to.
    pub(super) number: u64,
    /// How far into it.
    pub(super) offset: u64,
}

/// A pool, as it is to be.
pub(super) struct MadePool {
    pub(super) name: String,
    pub(super) engine: EngineKind,
    pub(super) has_root: bool,
    /// How many objects it will have.
    pub(super) objects: u64,
}

/// What pools are to be.
pub(super) struct Made<'m> {
    pub(super) directory: &'m Path,
    /// At least one.
    pub(super) pools: Vec<MadePool>,
    /// The store that it is for; the first puddle lies at `start`.
    pub(super) store: StoreHeader,
    /// Where no address leads anywhere.
    pub(super) old_space: (u64, u64),
}

/// A pool of which all objects have a place.
struct Ended {
    uuid: Uuid,
    root_puddle: Uuid,
}

/// The pool that objects belong to.
struct Current {
    uuid: Uuid,
    root_puddle: Option<Uuid>,
    /// How many objects there were before.
    before: u64,
    bytes: u64,
}

/// Pools on the way.
pub(super) struct Making<'m> {
    pub(super) made: Made<'m>,
    /// The first pools, each of which is one of `made`.
    ended: Vec<Ended>,
    pool: Current,
    pub(super) types: Vec<LoadedType>,
    /// Pointers of objects without a type, which are zero until all objects have their places.
    pub(super) words: Rows<Word>,
    image: Option<(PuddleHeader, Image)>,
    puddles: Vec<PuddleHeader>,
    /// In a file without a name: memory does not grow with them.
    pub(super) places: Rows<Place>,
    pub(super) apart: Vec<Reference>,
    bytes: u64,
    pub(super) untyped_objects: u64,
}

impl Made<'_> {
    fn objects(&self) -> u64 {
        let objects = self.pools.iter().map(|pool| pool.objects);
        objects.fold(0, u64::saturating_add)
    }
}

impl Current {
    fn begin(before: u64) -> Result<Current> {
        Ok(Current {
            uuid: random_uuid()?,
            root_puddle: None,
            before,
            bytes: 0,
        })
    }
}

impl<'m> Making<'m> {
    pub(super) fn begin(made: Made<'m>) -> Result<Self> {
        let places = Rows::in_file(made.directory)?;
        let words = Rows::in_file(made.directory)?;
        Ok(Self {
            made,
            ended: Vec::new(),
            pool: Current::begin(0)?,
            types: Vec::new(),
            words,
            image: None,
            puddles: Vec::new(),
            places,
            apart: Vec::new(),
            bytes: 0,
            untyped_objects: 0,
        })
    }

    pub(super) fn objects(&self) -> u64 {
        self.places.len() as u64
    }

    pub(super) fn puddles(&self) -> u64 {
        self.puddles.len() as u64
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Adds an object, the value of which begins at `value` in its line.
    pub(super) fn add(
        &mut self,
        head: &ObjectHead,
        line: &[u8],
        value: usize,
    ) -> Result<Result<(), String>> {
        self.come_to_pool()?;
        let known = match head.ty {
            0 => None,
            number => match self.types.get(number as usize - 1) {
                Some(known) => Some(known),
                None => return Ok(Err(format!("there was no type {number} before"))),
            },
        };
        let has_root = self.current().is_some_and(|pool| pool.has_root);
        let is_root = has_root && self.objects() == self.pool.before;
        let type_id = known.map_or(UNTYPED, |known| known.id);
        let type_align = known.map_or(1, |known| known.descriptor.layout().align);
        let wanted = Wanted {
            type_id,
            size: head.size,
            type_align,
            align: head.align,
            is_root,
        };
        if let Err(problem) = ensure_possible(&wanted) {
            return Ok(Err(problem));
        }
        let found = match &mut self.image {
            Some((_, image)) => image.place(&wanted),
            None => None,
        };
        let offset = match found {
            Some(offset) => offset,
            None => match self.next_puddle(&wanted)? {
                Some(offset) => offset,
                None => return Ok(Err(format!("no puddle has room for {} bytes", head.size))),
            },
        };
        let Some((puddle, image)) = &mut self.image else {
            return Ok(Err("there is no puddle for it".to_owned()));
        };
        let known = match head.ty {
            0 => None,
            number => self.types.get(number as usize - 1),
        };
        let by_type = Object {
            start: 0,
            size: head.size,
            type_id,
            is_element: head.align.is_none()
                && !is_root
                && durum_format::dump::line::is_in_slab(head.size),
        };
        // One that is no array may be a row of several all the same, and its line says so.
        let says_row = line
            .get(value..)
            .is_some_and(|it| it.trim_ascii_start().starts_with(b"["));
        let size = known.map_or(head.size, |known| {
            let descriptor = &known.descriptor;
            match says_row && !matches!(descriptor.root(), Type::Array { .. }) {
                true => by_type.row_by(descriptor),
                false => by_type.size_by(descriptor),
            }
        });
        let range = offset as usize..(offset + size) as usize;
        let Some(bytes) = image.bytes.get_mut(range) else {
            return Ok(Err("it lies beyond its puddle".to_owned()));
        };
        let objects = self.made.objects();
        let (apart, space) = (&mut self.apart, self.made.old_space);
        let store = &self.made.store;
        let mut pointer = |_, reference| match reference {
            Reference::Object { number, .. } if number == 0 || number > objects => {
                Err(format!("there is no object {number}"))
            }
            Reference::Object { number, offset } if offset >> OFFSET_BITS == 0 => {
                Ok(number << OFFSET_BITS | offset)
            }
            Reference::Address(address) if is_in(space, address) => Err(format!(
                "{address:#x} led to another pool of its store, which is dumped with this one by `durum dump --with`, or to nothing (`durum check` tells)"
            )),
            Reference::Address(address) if is_in((store.base, store.size), address) => Err(
                format!("{address:#x} would lead to the store, where it led elsewhere before"),
            ),
            apart_reference => {
                apart.push(apart_reference);
                Ok(APART | (apart.len() as u64 - 1))
            }
        };
        let address = puddle.address + offset;
        let read = match known {
            Some(known) => read_value(line, value, &known.plan, bytes, &mut pointer),
            None => read_untyped((line, value), bytes, (address, objects), &mut self.words)?,
        };
        if let Err(refused) = read {
            return Ok(Err(refused.to_string()));
        }
        self.untyped_objects += u64::from(known.is_none());
        self.places.push(&Place {
            address,
            size: head.size,
        })?;
        Ok(Ok(()))
    }

    /// The pool that objects belong to.
    fn current(&self) -> Option<&MadePool> {
        self.made.pools.get(self.ended.len())
    }

    /// Goes on to the pool that the next object belongs to.
    fn come_to_pool(&mut self) -> Result<()> {
        while self.ended.len() + 1 < self.made.pools.len()
            && self.current().map(|pool| pool.objects) == Some(self.objects() - self.pool.before)
        {
            self.end_pool()?;
        }
        Ok(())
    }

    /// All objects of a pool have their places.
    fn end_pool(&mut self) -> Result<()> {
        if self.pool.root_puddle.is_none() {
            // A pool without objects has a root puddle.
            let nothing = Wanted {
                type_id: UNTYPED,
                size: 1,
                type_align: 1,
                align: None,
                is_root: false,
            };
            self.next_puddle(&nothing)?;
            if let (Some((_, image)), Some(empty)) = (&mut self.image, Image::new(UNIT, true)) {
                *image = empty;
            }
        }
        self.write_image()?;
        let next = Current::begin(self.objects())?;
        let ended = std::mem::replace(&mut self.pool, next);
        self.ended.push(Ended {
            uuid: ended.uuid,
            root_puddle: ended.root_puddle.unwrap_or(ended.uuid),
        });
        Ok(())
    }

    /// Begins the next puddle, with a place for this object.
    fn next_puddle(&mut self, wanted: &Wanted) -> Result<Option<u64>> {
        self.write_image()?;
        let (Some(size), Some(pool)) = (next_size(self.pool.bytes, wanted), self.current()) else {
            return Ok(None);
        };
        let is_root = self.pool.root_puddle.is_none();
        let store = &self.made.store;
        let end = store.base + store.size;
        let after = |header: &PuddleHeader| header.address + header.size;
        let mut address = self.puddles.last().map_or(store.start, after);
        if size > store.size {
            return Ok(None);
        }
        if address + size > end {
            address = store.base;
        }
        let header = PuddleHeader {
            kind: pool.engine.puddle_kind(),
            uuid: random_uuid()?,
            owner: self.pool.uuid,
            address,
            size,
            is_root,
        };
        let Some(mut image) = Image::new(size, is_root) else {
            return Ok(None);
        };
        let place = image.place(wanted);
        self.bytes += size;
        self.pool.bytes += size;
        self.pool.root_puddle.get_or_insert(header.uuid);
        self.puddles.push(header);
        self.image = Some((header, image));
        Ok(place)
    }

    /// Writes the puddle that is filled as it is, with numbers in the place of pointers.
    fn write_image(&mut self) -> Result<()> {
        let Some((header, image)) = self.image.take() else {
            return Ok(());
        };
        let path = self.made.directory.join(header.uuid.to_string());
        let to = files::create_at(&path, &header)?;
        let contents = image.bytes.get(IMMUTABLE_SIZE as usize..);
        copying::write_at(&to, contents.unwrap_or_default(), IMMUTABLE_SIZE)
            .map_err(|error| grown("writing a puddle", to.path(), header.size, error))
    }

    /// Has all pointers lead to where their objects are, and writes the manifest. All is durable on return. The error
    /// in words is one of the lines.
    pub(super) fn finish(mut self, mut tell: impl FnMut(u64, u64)) -> Result<Result<Self, String>> {
        while self.ended.len() < self.made.pools.len() {
            self.end_pool()?;
        }
        let by_id: BTreeMap<u64, &Plan> = (self.types.iter())
            .map(|known| (known.id, &known.plan))
            .collect();
        let mut exported = BTreeMap::new();
        let mut words = 0;
        for (done, header) in (1..).zip(&self.puddles) {
            let name = header.uuid.to_string();
            let file = MediaFile::open(self.made.directory, &name, true)
                .map_err(|error| Error::io("opening it", self.made.directory, error))?;
            let mut bytes = reading::bytes(&file, 0, header.size)?;
            if let Err(problem) = self.replace_pointers(header, &mut bytes, &by_id)? {
                return Ok(Err(problem));
            }
            if let Err(problem) = self.put_words(header, &mut bytes, &mut words) {
                return Ok(Err(problem));
            }
            write_all(&file, header, &bytes)?;
            // ORDER: all puddles are durable before the export appears in its place.
            file.sync(LOADED)
                .map_err(|error| grown("writing a puddle", file.path(), header.size, error))?;
            let puddle = ExportedPuddle {
                owner: header.owner,
                address: header.address,
                size: header.size,
                kind: header.kind,
                is_root: header.is_root,
                sum: sum(copying::contents(&bytes, header.kind.copies())),
            };
            exported.insert(header.uuid, puddle);
            tell(done, self.puddles());
        }
        let pools = self.made.pools.iter().zip(&self.ended);
        let pools = pools.map(|(pool, ended)| {
            let pool = ExportedPool {
                name: pool.name.clone(),
                engine: pool.engine,
                root_puddle: ended.root_puddle,
                meanings: Default::default(),
            };
            (ended.uuid, pool)
        });
        let types = self.types.iter();
        let manifest = Manifest {
            store: self.made.store.clone(),
            pool: self
                .ended
                .first()
                .map_or(self.pool.uuid, |first| first.uuid),
            pools: pools.collect(),
            puddles: exported,
            types: types.map(|known| (known.id, known.text.clone())).collect(),
            untyped_objects: self.untyped_objects,
        };
        let bytes = match manifest.encode() {
            Ok(bytes) => bytes,
            Err(error) => return Ok(Err(error.to_string())),
        };
        files::replace_file(
            self.made.directory,
            FILE_NAME,
            TEMPORARY,
            &bytes,
            MANIFEST,
            MANIFEST_NAME,
        )?;
        Ok(Ok(self))
    }
}

/// As [`copying::write`], over what was written before: zeros, too.
fn write_all(to: &MediaFile, header: &PuddleHeader, bytes: &[u8]) -> Result<()> {
    let mut at = IMMUTABLE_SIZE;
    for part in copying::contents(bytes, header.kind.copies()) {
        to.write_all_at(part, at)
            .map_err(|error| grown("writing a puddle", to.path(), header.size, error))?;
        at += part.len() as u64;
    }
    Ok(())
}

fn is_in((base, size): (u64, u64), address: u64) -> bool {
    address >= base && address - base < size
}

/// Reads an object without a type, which has this address, of a dump of so many objects. Pointers that its line tells
/// are zero in it, and go to `words`.
fn read_untyped(
    (line, value): (&[u8], usize),
    bytes: &mut [u8],
    (address, objects): (u64, u64),
    words: &mut Rows<Word>,
) -> Result<std::result::Result<(), Refused>> {
    let plan = match says_pointers(line, value) {
        true => Plan::untyped_with_pointers(),
        false => Plan::untyped(),
    };
    let mut kept = Ok(());
    let mut pointer = |at, reference| match reference {
        Reference::Object { number, offset } if (1..=objects).contains(&number) => {
            let address = address + at as u64;
            let word = Word {
                address,
                number,
                offset,
            };
            if kept.is_ok() {
                kept = words.push(&word);
            }
            Ok(0)
        }
        Reference::Object { number, .. } => Err(format!("there is no object {number}")),
        Reference::Address(_) => {
            Err("a word that leads to no object is among the bytes".to_owned())
        }
    };
    let read = read_value(line, value, &plan, bytes, &mut pointer);
    kept.map(|()| read)
}

/// Whether there can be such an object.
fn ensure_possible(wanted: &Wanted) -> Result<(), String> {
    if wanted.size == 0 || wanted.size > SIZE_MAX {
        return Err(format!("an object of {} bytes", wanted.size));
    }
    match wanted.align {
        Some(align) if !align.is_power_of_two() || !(16..=UNIT).contains(&align) => {
            Err(format!("an alignment of {align}"))
        }
        _ => Ok(()),
    }
}
