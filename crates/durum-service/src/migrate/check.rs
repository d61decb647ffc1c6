//! Goes over all objects before anything is written: what stands in the way, where each object goes, and how many
//! pointers lead to it.

use std::collections::hash_map::DefaultHasher;
use std::hash::Hasher;

use durum_format::UNIT;
use durum_format::migrate::{Conversion, Program, Refusal, Wrong};
use durum_format::types::{Descriptor, PointerAt, Strength, ValueError};

use super::counting::Counting;
use super::heap::{self, Hanging, Led};
use super::leads::{Lead, Leads};
use super::old::{Old, OldType};
use super::others::of_others;
use super::program::{Asking, begin};
use super::rebuild::Room;
use super::runs::{Place, Runs};
use super::table::Table;
use super::visit::{Visit, go_over};
use super::{MigrateOptions, MigrateReport, MigratedType, Migration, Refusals};
use crate::dump::heap::{Image, Wanted, next_size};
use crate::error::{Error, Result};
use crate::roles::Role;

/// How the heap of a puddle is aligned, where the root object begins.
const ROOT_ALIGN_MAX: u64 = 4096;

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
    let mut runs = Runs::default();
    let mut hanging = Hanging::default();
    let most = old.views().map(|view| view.header().size).sum();
    go_over(old, options, 0, |visit| {
        let place = places.place(visit.pool, &visit.wanted, |_, _| Ok(()))?;
        let Some(place) = place else {
            asking.refuse(no_room("no puddle has", visit));
            return Ok(());
        };
        let runs = table.as_deref_mut().map_or(&mut runs, Table::runs_mut);
        runs.put(visit.index, place)?;
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
        pointers(old, visit, &new, &mut found)?;
        let counted = conversion.visit_rebuilt(&new, |offset, function| {
            rebuilt_maps += 1;
            let map = new.get(offset as usize..).unwrap_or_default();
            room = asking.room(function, map, most).max(room);
        });
        counted.map_err(|error| not_new(visit, &error))?;
        seen.see(visit.index, &found);
        hanging.see(visit, &found);
        if let Some(kind) = visit.new_kind {
            if let Some(refusal) = heap::of_object(visit, kind) {
                asking.refuse(refusal);
            }
            if let Some(table) = &mut table
                && heap::may_be_listed(visit, kind)
            {
                table.may_be_listed(visit.index);
            }
        }
        for (pointer, address) in &found {
            let Led { lead, counted } = led(old, &mut leads, visit, &new, pointer, *address)?;
            if let Lead::Refused(refusal) = lead {
                asking.refuse(refusal);
                continue;
            }
            if let (Some((index, is_weak)), Some(table)) = (counted, &mut table) {
                table.count(index, is_weak);
            }
            if let Some(refusal) = heap::of_proxy(old, visit, pointer, *address)? {
                asking.refuse(refusal);
            }
        }
        Ok(())
    })?;
    places.end(old.pools.len(), |_, _| Ok(()))?;
    if let Some(refusal) = hanging.refusal() {
        asking.refuse(refusal);
    }
    let refusals = asking.refusals.take().unwrap_or_default();
    let mut report = told(old, &places.pools);
    report.rebuilt_maps = rebuilt_maps;
    let room = match rebuilt_maps {
        0 => 0,
        _ => Room::bytes(room),
    };
    let known = match &table {
        Some(table) => table.runs().bytes() + Table::bytes_for(table.counting()),
        None => runs.bytes() + Table::bytes_for(&Counting::of(old, None)?),
    };
    report.scratch_bytes = (report.scratch_bytes + known).saturating_add(room);
    refusals.told(&mut report);
    Ok(Checked {
        report,
        sizes: places.pools,
        seen,
        room,
    })
}

/// Where a pointer of a new object, of which these are the bytes, leads to, and what it counts there. It is the old one
/// yet.
///
/// # Errors
/// `Io`.
pub(super) fn led(
    old: &Old<'_>,
    leads: &mut Leads,
    visit: &Visit<'_>,
    bytes: &[u8],
    pointer: &PointerAt,
    address: u64,
) -> Result<Led> {
    let Some(new) = visit.conversion.map(Conversion::new_type) else {
        // Nobody asks of what has no known type.
        let (lead, counted) = (Lead::Elsewhere, None);
        return Ok(Led { lead, counted });
    };
    if let Some(kind) = visit.new_kind {
        return heap::follow(old, (new, kind), bytes, pointer, address);
    }
    let lead = leads.of(old, new, pointer, address);
    let counted = match lead {
        Lead::Object {
            index,
            offset: 0,
            tag,
        } if old.types[tag as usize].role == Role::Counted => {
            Some((index, pointer.strength == Strength::Weak))
        }
        _ => None,
    };
    Ok(Led { lead, counted })
}

/// The pointers of a new object that are not null.
pub(super) fn pointers(
    old: &Old<'_>,
    visit: &Visit<'_>,
    bytes: &[u8],
    found: &mut Vec<(PointerAt, u64)>,
) -> Result<()> {
    found.clear();
    let Some(new) = visit.conversion.map(Conversion::new_type) else {
        return Ok(());
    };
    if !new.has_pointers() {
        return Ok(());
    }
    let role = visit.new_role;
    let mut see = |pointer: PointerAt| {
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
    };
    let walked = match visit.new_kind {
        Some(kind) => heap::visit_pointers(new, kind, old.typed(new.id()), bytes, &mut see),
        None => new.visit_pointers(bytes, see),
    };
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
        if ty.kinds.is_some() && old.heap.is_none() {
            let why = "heaps of NVL-C are made anew by the program, by nvl_migrate, which knows the new root's checksum";
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
        scratch_bytes: old.numbers.bytes(),
        refusals: Vec::new(),
        more_refusals: 0,
    }
}
