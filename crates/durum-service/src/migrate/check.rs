//! Goes over all objects before anything is written: what stands in the way, where each object goes, and how many
//! pointers lead to it.

use std::cell::Cell;
use std::collections::HashMap;
use std::collections::hash_map::DefaultHasher;
use std::hash::Hasher;

use durum_format::UNIT;
use durum_format::extent::{self, element_size};
use durum_format::migrate::{Conversion, Gone, Program, Refusal, Wrong};
use durum_format::types::{Descriptor, PointerAt, Strength, ValueError};

use super::old::{Old, OldType};
use super::others::of_others;
use super::program::{Asking, begin};
use super::rebuild::Room;
use super::table::{Place, Table};
use super::{MigrateOptions, MigrateReport, MigratedType, Migration, Refusals};
use crate::dump::align_of;
use crate::dump::heap::{Image, Wanted, next_size};
use crate::dump::window::Window;
use crate::error::{Error, Result};
use crate::inspect::PuddleView;
use crate::model::{Progress, Stage};
use crate::roles::{Role, Tally};

/// Objects between two words of progress.
const TELL_EACH: u64 = 1 << 16;
/// How types are aligned at most that may lie among others of their size.
const SLAB_ALIGN_MAX: u64 = 64;
/// How the heap of a puddle is aligned, where the root object begins.
const ROOT_ALIGN_MAX: u64 = 4096;

/// How names of types begin that NVL-C has made.
const NVL_PREFIX: &str = "nvl ";

const CURE: &str = "`durum check` looks at everything";

/// What was found.
pub(super) struct Checked {
    pub(super) report: MigrateReport,
    /// Bytes of the new puddles of each pool, the root puddle's first.
    pub(super) sizes: Vec<Vec<u64>>,
    /// All pointers that were found.
    pub(super) seen: Seen,
    /// Bytes in which the largest map is built anew.
    pub(super) room: u64,
}

/// All pointers that a pass finds, where, of which strength and to where: two passes that find others are told apart.
#[derive(Clone, Debug, Default)]
pub(super) struct Seen(DefaultHasher);

impl Seen {
    pub(super) fn see(&mut self, index: u64, pointers: &[(PointerAt, u64)]) {
        if pointers.is_empty() {
            return;
        }
        self.0.write_u64(index);
        self.0.write_usize(pointers.len());
        for (pointer, address) in pointers {
            self.0.write_u64(pointer.offset);
            self.0.write_u64(*address);
            self.0.write_u8((pointer.strength == Strength::Weak).into());
        }
    }

    pub(super) fn is_same(&self, other: &Seen) -> bool {
        self.0.finish() == other.0.finish()
    }
}

/// An object as it is.
pub(super) struct Visit<'v> {
    /// Which of the pools it is in.
    pub(super) pool: usize,
    pub(super) view: &'v PuddleView,
    /// Its number, from 0.
    pub(super) index: u64,
    pub(super) ty: &'v OldType,
    pub(super) conversion: Option<&'v Conversion>,
    /// What the new one is, beyond what its fields say.
    pub(super) new_role: Role,
    pub(super) object: &'v extent::Object,
    /// Its bytes by its type.
    pub(super) bytes: &'v [u8],
    pub(super) wanted: Wanted,
    /// The bytes of the new one by its type.
    pub(super) new_size: u64,
}

impl Visit<'_> {
    /// Whether the value of a counted object is gone.
    pub(super) fn is_husk(&self) -> bool {
        self.ty.role == Role::Counted && Tally::read(self.bytes).is_some_and(|it| it.is_husk())
    }

    pub(super) fn damaged(&self, wrong: &Wrong) -> Error {
        Error::Damaged {
            file: self.view.path().to_owned(),
            structure: "object",
            offset: self.object.offset + wrong.at,
            problem: format!("it does not fit its type: {}", wrong.what),
            cure: CURE.into(),
        }
    }
}

/// Gives each object to `visit`, in the order in which they get places.
pub(super) fn go_over(
    old: &Old<'_>,
    options: &MigrateOptions,
    before: u64,
    mut visit: impl FnMut(&Visit<'_>) -> Result<()>,
) -> Result<()> {
    let mut index = 0;
    let total = 2 * old.numbers.objects();
    let views = old.pools.iter().enumerate();
    let views = views.flat_map(|(at, pool)| pool.views.iter().map(move |view| (at, pool, view)));
    for (at, pool, view) in views {
        let mut window = Window::of(view);
        for extent in extent::extents(view, view.header()) {
            let extent = extent.map_err(|error| Error::damaged_heap(view.path(), &error))?;
            let (ty, conversion) = old.of_extent(pool, &extent);
            let aligned = |of: Option<&Descriptor>| of.map_or(1, |it| it.layout().align);
            let new_role = conversion.map_or(Role::Plain, |it| Role::of(it.new_type()));
            let align = align_of(&extent, aligned(ty.descriptor.as_ref()));
            let is_root = view.header().is_root && extent.granule() == 0;
            for object in extent.objects() {
                let size = Old::size(ty, &object);
                let bytes = window.bytes(object.offset, object.size)?;
                let bytes = bytes.get(..size as usize).unwrap_or(bytes);
                let new_size = conversion.map_or(object.size, |conversion| conversion.size(size));
                let new_type = conversion.map(Conversion::new_type);
                let wanted = wanted(ty, new_type, (&object, new_size), align, is_root);
                visit(&Visit {
                    pool: at,
                    view,
                    index,
                    ty,
                    conversion,
                    new_role,
                    object: &object,
                    bytes,
                    wanted,
                    new_size,
                })?;
                index += 1;
                if index.is_multiple_of(TELL_EACH) {
                    Progress::tell(&options.progress, Stage::Migrate, before + index, total);
                }
            }
        }
    }
    Progress::tell(&options.progress, Stage::Migrate, before + index, total);
    Ok(())
}

/// The place that a new object needs.
fn wanted(
    ty: &OldType,
    new: Option<&Descriptor>,
    (object, new_size): (&extent::Object, u64),
    align: Option<u64>,
    is_root: bool,
) -> Wanted {
    let type_align = new.map_or(1, |new| new.layout().align);
    let is_same = new.is_none_or(|new| new.id() == ty.id);
    let own = (type_align > SLAB_ALIGN_MAX).then_some(type_align);
    let align = align.max(own).map(|align| align.max(type_align));
    let size = match (is_same, align, is_root) {
        (true, ..) => object.size,
        (false, None, false) => element_size(new_size).unwrap_or(new_size),
        _ => new_size,
    };
    Wanted {
        type_id: new.map_or(ty.id, Descriptor::id),
        size: size.max(1),
        type_align,
        align,
        is_root,
    }
}

/// New puddles, of which one is being filled. Asked twice for the same objects it gives the same places.
#[derive(Default)]
pub(super) struct Places {
    /// Bytes of the puddles of each pool, up to the one whose objects come.
    pub(super) pools: Vec<Vec<u64>>,
    /// Puddles of all of them.
    count: usize,
    pub(super) image: Option<Image>,
}

impl Places {
    /// A place in a pool, which is the last one or one behind; `filled` gets a puddle that is full, by its number.
    pub(super) fn place(
        &mut self,
        pool: usize,
        wanted: &Wanted,
        mut filled: impl FnMut(usize, Image) -> Result<()>,
    ) -> Result<Option<Place>> {
        self.go_to(pool, &mut filled)?;
        let mut offset = self.image.as_mut().and_then(|image| image.place(wanted));
        if offset.is_none() {
            self.give(&mut filled)?;
            let Some(sizes) = self.pools.last_mut() else {
                return Ok(None);
            };
            let Some(size) = next_size(sizes.iter().sum(), wanted) else {
                return Ok(None);
            };
            let Some(mut image) = Image::new(size, sizes.is_empty()) else {
                return Ok(None);
            };
            offset = image.place(wanted);
            sizes.push(size);
            self.count += 1;
            self.image = Some(image);
        }
        let puddle = self.count.saturating_sub(1) as u32;
        Ok(offset.map(|offset| Place { puddle, offset }))
    }

    /// No more objects come, of so many pools.
    pub(super) fn end(
        &mut self,
        pools: usize,
        mut filled: impl FnMut(usize, Image) -> Result<()>,
    ) -> Result<()> {
        self.go_to(pools.saturating_sub(1), &mut filled)?;
        self.leave(&mut filled)
    }

    /// The objects of this pool come.
    fn go_to(
        &mut self,
        pool: usize,
        filled: &mut impl FnMut(usize, Image) -> Result<()>,
    ) -> Result<()> {
        while self.pools.len() <= pool {
            self.leave(filled)?;
            self.pools.push(Vec::new());
        }
        Ok(())
    }

    /// No more objects of the pool come. One without objects has a root puddle.
    fn leave(&mut self, filled: &mut impl FnMut(usize, Image) -> Result<()>) -> Result<()> {
        self.give(filled)?;
        if let Some(sizes) = self.pools.last_mut()
            && sizes.is_empty()
            && let Some(image) = Image::new(UNIT, true)
        {
            sizes.push(UNIT);
            self.count += 1;
            filled(self.count - 1, image)?;
        }
        Ok(())
    }

    fn give(&mut self, filled: &mut impl FnMut(usize, Image) -> Result<()>) -> Result<()> {
        match self.image.take() {
            Some(image) => filled(self.count - 1, image),
            None => Ok(()),
        }
    }
}

/// Where pointers lead to that are known.
#[derive(Default)]
pub(super) struct Leads {
    /// By the type whose pointer it is, the type that it is to lead to, and that of the object there.
    starts: HashMap<Start, std::result::Result<u64, Gone>>,
    /// Those that led somewhere, which most pointers do as others before them.
    recent: Vec<Option<(Start, u64)>>,
}

type Start = (u64, Option<usize>, u32);

/// So many are found at once.
const RECENT: usize = 64;

/// What a pointer in a new object, which is the old one yet, leads to.
pub(super) enum Lead {
    /// So far into the new object of this number.
    Object { index: u64, offset: u64, tag: u32 },
    /// Nothing of the pool: it stays as it is.
    Elsewhere,
    /// What stands in the way.
    Refused(Refusal),
}

impl Leads {
    pub(super) fn of(
        &mut self,
        old: &Old<'_>,
        new: &Descriptor,
        pointer: &PointerAt,
        address: u64,
    ) -> Lead {
        let Some(found) = old.numbers.object(address) else {
            return match old.has(address) {
                true => Lead::Refused(Refusal::new(
                    new.called(),
                    "a pointer of it leads to no object of the pool",
                )),
                false => Lead::Elsewhere,
            };
        };
        let tag = found.tag;
        let start: Start = (new.id(), pointer.target, tag);
        let slot = (start.0 as usize ^ start.1.unwrap_or(RECENT) ^ tag as usize) % RECENT;
        if found.offset == 0
            && let Some(Some((known, offset))) = self.recent.get(slot)
            && *known == start
        {
            let (index, offset) = (found.index, *offset);
            return Lead::Object { index, offset, tag };
        }
        let Some(ty) = old.types.get(tag as usize) else {
            return Lead::Elsewhere;
        };
        let Some(conversion) = old.pairs.of(ty.id) else {
            // What nobody knows stays as it is.
            let (index, offset) = (found.index, found.offset);
            return Lead::Object { index, offset, tag };
        };
        let wanted = pointer.target.map(|line| (new, line));
        let asks = Cell::new(false);
        let follow = || {
            let mut bytes = || {
                asks.set(true);
                object_at(old, address - found.offset).unwrap_or_default()
            };
            let followed = conversion.follow(found.offset, wanted, &mut bytes)?;
            let leads_to = wanted.and_then(|(new, line)| new.target(line).ok());
            let is_another = |is: Descriptor| is.id() != conversion.new_type().id();
            // What a function has made of a pointer is its own affair where types do not tell.
            match old.pointers_are_typed && leads_to.is_some_and(is_another) {
                true => Err(Gone {
                    path: conversion.new_type().called(),
                    why: "a pointer leads to it whose type says something else",
                }),
                false => Ok(followed),
            }
        };
        let followed = match self.starts.get(&start).filter(|_| found.offset == 0) {
            Some(known) => known.clone(),
            None => follow(),
        };
        // What depends on the object is another one's affair no more.
        let is_the_types = found.offset == 0 && !asks.get();
        if is_the_types && !self.starts.contains_key(&start) {
            self.starts.insert(start, followed.clone());
        }
        match followed {
            Ok(offset) => {
                if is_the_types {
                    self.recent.resize(RECENT, None);
                    self.recent[slot] = Some((start, offset));
                }
                let index = found.index;
                Lead::Object { index, offset, tag }
            }
            Err(gone) => {
                let why = format!("{} (that of a {})", gone.why, new.called());
                Lead::Refused(Refusal::new(gone.path, why))
            }
        }
    }
}

/// The bytes of the object that begins at an address.
fn object_at(old: &Old<'_>, address: u64) -> Option<Vec<u8>> {
    let view = old.view_at(address)?;
    let located = extent::locate(view, view.header(), address).ok()??;
    let extent::Place::Object { object, .. } = located.place else {
        return None;
    };
    view.bytes(object.offset, object.size).ok()
}

/// Goes over all objects. `table` gets to know where each goes; without it nothing but the report is wanted.
///
/// # Errors
/// `Damaged`, `Io`, `StorageFull`.
pub(super) fn check(
    old: &Old<'_>,
    migration: &mut Migration<'_>,
    options: &MigrateOptions,
    mut table: Option<&mut Table>,
) -> Result<Checked> {
    let mut refusals = Refusals::default();
    of_types(old, options, &mut refusals);
    of_others(old, options, &mut refusals)?;
    begin(old, migration)?;
    let mut asking = Asking::of(migration, Some(refusals));
    let (mut places, mut leads) = (Places::default(), Leads::default());
    let (mut new, mut found, mut seen) = (Vec::new(), Vec::new(), Seen::default());
    let (mut rebuilt_maps, mut room) = (0, 0);
    let most = old.views().map(|view| view.header().size).sum();
    go_over(old, options, 0, |visit| {
        let place = places.place(visit.pool, &visit.wanted, |_, _| Ok(()))?;
        match (place, &mut table) {
            (Some(place), Some(table)) => table.put(visit.index, place),
            (Some(_), None) => {}
            (None, _) => {
                asking.refuse(no_room("no puddle has", visit));
                return Ok(());
            }
        }
        if visit.wanted.is_root && visit.wanted.align.is_some_and(|it| it > ROOT_ALIGN_MAX) {
            let why = format!("a root is aligned to {ROOT_ALIGN_MAX} bytes at most");
            asking.refuse(Refusal::new(title(visit.ty), why));
        }
        let Some(conversion) = visit.conversion else {
            return Ok(());
        };
        if visit.is_husk() || !conversion.refusals.is_empty() {
            return Ok(());
        }
        new.clear();
        let size = usize::try_from(visit.new_size).unwrap_or(usize::MAX);
        if new.try_reserve(size).is_err() {
            asking.refuse(no_room("the memory has no", visit));
            return Ok(());
        }
        new.resize(size, 0);
        asking.address = visit.view.header().address + visit.object.offset;
        conversion
            .convert(visit.bytes, &mut new, &mut asking)
            .map_err(|wrong| visit.damaged(&wrong))?;
        pointers(conversion.new_type(), &new, visit, &mut found)?;
        let counted = conversion.visit_rebuilt(&new, |offset, function| {
            rebuilt_maps += 1;
            let map = new.get(offset as usize..).unwrap_or_default();
            room = asking.room(function, map, most).max(room);
        });
        counted.map_err(|error| not_new(visit, &error))?;
        seen.see(visit.index, &found);
        for (pointer, address) in &found {
            match leads.of(old, conversion.new_type(), pointer, *address) {
                Lead::Object {
                    index,
                    offset: 0,
                    tag,
                } if old.types[tag as usize].role == Role::Counted => {
                    if let Some(table) = &mut table {
                        table.count(index, pointer.strength == Strength::Weak);
                    }
                }
                Lead::Refused(refusal) => asking.refuse(refusal),
                Lead::Object { .. } | Lead::Elsewhere => {}
            }
        }
        Ok(())
    })?;
    places.end(old.pools.len(), |_, _| Ok(()))?;
    let refusals = asking.refusals.take().unwrap_or_default();
    let mut report = told(old, &places.pools);
    report.rebuilt_maps = rebuilt_maps;
    let room = match rebuilt_maps {
        0 => 0,
        _ => Room::bytes(room),
    };
    report.scratch_bytes = report.scratch_bytes.saturating_add(room);
    refusals.told(&mut report);
    Ok(Checked {
        report,
        sizes: places.pools,
        seen,
        room,
    })
}

/// The pointers of a new object that are not null.
pub(super) fn pointers(
    new: &Descriptor,
    bytes: &[u8],
    visit: &Visit<'_>,
    found: &mut Vec<(PointerAt, u64)>,
) -> Result<()> {
    found.clear();
    if !new.has_pointers() {
        return Ok(());
    }
    let role = visit.new_role;
    let walked = new.visit_pointers(bytes, |pointer| {
        let at = pointer.offset as usize;
        let word = bytes.get(at..).and_then(|rest| rest.first_chunk::<8>());
        let address = word.map_or(0, |word| u64::from_le_bytes(*word));
        if address != 0 {
            let strength = role.strength(&pointer, bytes);
            found.push((
                PointerAt {
                    strength,
                    ..pointer
                },
                address,
            ));
        }
    });
    walked.map_err(|error| not_new(visit, &error))
}

fn not_new(visit: &Visit<'_>, error: &ValueError) -> Error {
    visit.damaged(&Wrong {
        at: 0,
        what: format!("its new value: {error}"),
    })
}

fn no_room(what: &str, visit: &Visit<'_>) -> Refusal {
    let why = format!("{what} room for {} bytes", visit.wanted.size);
    Refusal::new(title(visit.ty), why)
}

fn title(ty: &OldType) -> String {
    let unknown = || "objects of unknown type".to_owned();
    ty.descriptor
        .as_ref()
        .map_or_else(unknown, Descriptor::called)
}

/// What stands in the way whatever the objects hold.
fn of_types(old: &Old<'_>, options: &MigrateOptions, refusals: &mut Refusals) {
    let pairs = old.pairs.refusals.iter();
    pairs.for_each(|refusal| refusals.of_types(refusal.clone()));
    for ty in old.types.iter().filter(|ty| ty.objects > 0) {
        if title(ty).starts_with(NVL_PREFIX) {
            let why =
                "heaps of NVL-C, whose objects say more than their types do, are not migrated";
            refusals.of_types(Refusal::new(title(ty), why));
        }
        match (&ty.descriptor, old.pairs.of(ty.id)) {
            (Some(_), Some(conversion)) => conversion
                .refusals
                .iter()
                .for_each(|refusal| refusals.of_types(refusal.clone())),
            (Some(descriptor), None) => refusals.of_types(Refusal::new(
                descriptor.called(),
                "nobody says what becomes of it",
            )),
            (None, _) if options.untyped_hold_no_pointers => {}
            (None, _) => refusals.of_types(Refusal::new(
                title(ty),
                format!(
                    "there are {}, and nobody knows whether they hold pointers, which would lead nowhere; say that they hold none, if so",
                    ty.objects
                ),
            )),
        }
    }
}

fn told(old: &Old<'_>, sizes: &[Vec<u64>]) -> MigrateReport {
    let bytes = old.pools.iter().zip(sizes).map(|(pool, sizes)| {
        let copies = pool.record.engine.puddle_kind().copies();
        sizes.iter().sum::<u64>() * copies
    });
    let mut types = Vec::new();
    for ty in old.types.iter().filter(|ty| ty.objects > 0) {
        let Some(descriptor) = &ty.descriptor else {
            continue;
        };
        let new = old.pairs.of(ty.id).map_or(descriptor, Conversion::new_type);
        types.push(MigratedType {
            name: descriptor.called(),
            now: new.called(),
            id: ty.id,
            new_id: new.id(),
            objects: ty.objects,
            size: descriptor.layout().size,
            new_size: new.layout().size,
        });
    }
    let unknown = old.types.iter().filter(|ty| ty.descriptor.is_none());
    MigrateReport {
        pool: old.name().to_owned(),
        with: old
            .pools
            .iter()
            .skip(1)
            .map(|pool| pool.record.name.clone())
            .collect(),
        objects: old.numbers.objects(),
        types,
        untyped_objects: unknown.map(|ty| ty.objects).sum(),
        rebuilt_maps: 0,
        old_bytes: old.views().map(|view| view.header().file_size()).sum(),
        bytes: bytes.sum(),
        puddles: sizes.iter().flatten().count() as u64,
        scratch_bytes: old.numbers.objects() * Table::EACH + old.numbers.bytes(),
        refusals: Vec::new(),
        more_refusals: 0,
    }
}
