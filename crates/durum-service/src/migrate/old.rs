//! A pool as it is, and what becomes of each of its types.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use durum_format::Uuid;
use durum_format::content::Object;
use durum_format::extent::{self, Extent, UNTYPED};
use durum_format::migrate::{Conversion, Pairs};
use durum_format::nvl::{Header, HeapRoot, Kind};
use durum_format::types::{Descriptor, Meanings, Registry};

use super::{Migration, NewHeap};
use crate::dump::numbers::Numbers;
use crate::error::{Error, Result};
use crate::inspect::ReadOnlyStore;
use crate::names::ensure_descriptors;
use crate::puddle_view::PuddleView;
use crate::recovery::ensure_not_interrupted;
use crate::registry::contents::PoolRecord;
use crate::roles::{Role, word_at};

/// The pool, and those that are made anew with it.
pub(super) struct Old<'o> {
    pub(super) reader: &'o ReadOnlyStore,
    /// At least one: the pool is the first.
    pub(super) pools: Vec<OldPool>,
    /// Which object an address is, and of which of the types, by its place among these.
    pub(super) numbers: Numbers,
    /// The first one is of what has no known type.
    pub(super) types: Vec<OldType>,
    by_id: BTreeMap<u64, u32>,
    pub(super) pairs: Pairs,
    /// Pointers of new objects lead to nothing but what their types say.
    pub(super) pointers_are_typed: bool,
    /// It is a heap of NVL-C.
    pub(super) heap: Option<Arc<NewHeap>>,
}

/// A pool.
pub(super) struct OldPool {
    pub(super) uuid: Uuid,
    pub(super) record: PoolRecord,
    /// The root puddle's first.
    pub(super) views: Vec<PuddleView>,
    pub(super) meanings: Meanings,
}

impl OldPool {
    fn of(reader: &ReadOnlyStore, name: &str) -> Result<Self> {
        let contents = reader.contents();
        let (uuid, record) = contents
            .pool_named(name)
            .ok_or_else(|| Error::no_pool(reader.name(), name))?;
        if let Some(note) = contents.quarantine_of(uuid) {
            return Err(Error::quarantined(reader.name(), name.to_owned(), note));
        }
        ensure_not_interrupted(reader.name(), &reader.pending().interrupted, name)?;
        let mut records = contents.puddles_of(uuid);
        records.sort_unstable_by_key(|(_, record)| (!record.is_root, record.address));
        let views = records
            .iter()
            .map(|(uuid, _)| reader.puddle_unguarded(*uuid))
            .collect::<Result<Vec<PuddleView>>>()?;
        Ok(Self {
            uuid,
            record: record.clone(),
            views,
            meanings: reader.meanings_of(uuid).clone(),
        })
    }
}

/// A type of the pools' objects.
pub(super) struct OldType {
    pub(super) id: u64,
    pub(super) objects: u64,
    /// Absent where it is not known.
    pub(super) descriptor: Option<Descriptor>,
    pub(super) role: Role,
    /// What its objects are in a heap of NVL-C.
    pub(super) kinds: Option<Kinds>,
}

impl OldType {
    /// The bytes of an object up to the end of its elements, if it is an allocation of a heap: what is behind them, as
    /// it was rounded up, is nobody's.
    pub(super) fn without_slack<'b>(&self, bytes: &'b [u8]) -> &'b [u8] {
        let kind = self.kinds.map(|kinds| kinds.was);
        let (Some(Kind::Allocation(elements)), Some(descriptor)) = (kind, &self.descriptor) else {
            return bytes;
        };
        let count = word_at(bytes, std::mem::offset_of!(Header, count) as u64).unwrap_or(0);
        let end = count.saturating_mul(elements.size);
        let end = end
            .saturating_add(elements.data)
            .max(descriptor.layout().size);
        // One that counts more than there is room for is damaged, and told where it is converted.
        let own = usize::try_from(end).ok().and_then(|end| bytes.get(..end));
        own.unwrap_or(bytes)
    }
}

/// What heaps have objects of, before and now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Kinds {
    pub(super) was: Kind,
    pub(super) is: Kind,
}

impl Kinds {
    pub(super) fn of(old: &Descriptor, conversion: Option<&Conversion>) -> Option<Self> {
        let was = Kind::of(old)?;
        let is = conversion.map_or(Some(was), |it| Kind::of(it.new_type()))?;
        let is_same = std::mem::discriminant(&was) == std::mem::discriminant(&is);
        is_same.then_some(Self { was, is })
    }
}

impl<'o> Old<'o> {
    /// Finds the objects of pools, and what their types become. What is known of extents is kept in the directory
    /// `scratch`, or in memory.
    ///
    /// # Errors
    /// As [`plan_migration`](super::plan_migration).
    pub(super) fn of(
        reader: &'o ReadOnlyStore,
        names: &[&str],
        migration: &Migration<'_>,
        scratch: Option<&Path>,
    ) -> Result<Self> {
        if let Some(twice) = (1..names.len()).find(|at| names[..*at].contains(&names[*at])) {
            let reason = format!("pool \"{}\" is named twice", names[twice]);
            return Err(Error::Options { reason });
        }
        if migration.types.as_ref().is_some_and(|it| it.heap.is_some()) && names.len() > 1 {
            let reason = "heaps of NVL-C are made anew one by one".to_owned();
            return Err(Error::Options { reason });
        }
        if let Some(types) = &migration.types
            && types.roots.len() != names.len()
        {
            let reason = format!(
                "{} pools are migrated, and there are {} types of roots",
                names.len(),
                types.roots.len()
            );
            return Err(Error::Options { reason });
        }
        reader.contents().ensure_rewritten(reader.name())?;
        // All stay open, with those of other pools where functions look at them.
        ensure_descriptors(reader.path(), reader.contents().puddles.len())?;
        let pools = names.iter().map(|name| OldPool::of(reader, name));
        let pools = pools.collect::<Result<Vec<OldPool>>>()?;
        let nothing = OldType {
            id: UNTYPED,
            objects: 0,
            descriptor: None,
            role: Role::Plain,
            kinds: None,
        };
        let mut old = Old {
            reader,
            pools: Vec::new(),
            numbers: match scratch {
                Some(directory) => Numbers::in_files(directory)?,
                None => Numbers::default(),
            },
            types: vec![nothing],
            by_id: BTreeMap::from([(UNTYPED, 0)]),
            pairs: Pairs::default(),
            pointers_are_typed: migration
                .types
                .as_ref()
                .is_some_and(|it| it.pointers_are_typed),
            heap: migration.types.as_ref().and_then(|it| it.heap.clone()),
        };
        let mut roots = vec![None; pools.len()];
        for (at, pool) in pools.iter().enumerate() {
            for view in &pool.views {
                old.numbers.begin(view.header());
                for extent in extent::extents(view, view.header()) {
                    let extent =
                        extent.map_err(|error| Error::damaged_heap(view.path(), &error))?;
                    // What its program has changed is what it is now.
                    let id = pool.meanings.of(extent.type_id());
                    let mut tag = 0;
                    // A slab without elements is no object's.
                    if extent.allocated() > 0 {
                        tag = old.learn(id)?;
                        old.types[tag as usize].objects += extent.allocated();
                    }
                    if view.header().is_root && extent.granule() == 0 {
                        roots[at] = Some(id);
                    }
                    old.numbers.add(view.header(), &extent, tag)?;
                }
            }
        }
        old.pools = pools;
        let known: Vec<Descriptor> = old
            .types
            .iter()
            .filter_map(|ty| ty.descriptor.clone())
            .collect();
        old.pairs = match &migration.types {
            Some(types) => {
                let of_heap = old.root_of_heap(roots.first().copied().flatten())?;
                let mut roots: Vec<_> = roots.into_iter().zip(&types.roots).collect();
                roots.extend(types.heap.as_ref().map(|heap| (of_heap, &heap.root)));
                Pairs::of_program(&known, &roots, &types.others, &migration.rules)
            }
            None => Pairs::of_rules(&known, &migration.rules),
        };
        for ty in &mut old.types {
            let descriptor = ty.descriptor.as_ref();
            ty.kinds = descriptor.and_then(|it| Kinds::of(it, old.pairs.of(ty.id)));
        }
        Ok(old)
    }

    /// The place of a type among all.
    fn learn(&mut self, id: u64) -> Result<u32> {
        if let Some(known) = self.by_id.get(&id) {
            return Ok(*known);
        }
        let mut descriptor = None;
        if let Some(text) = self.reader.type_text(id)? {
            let mut types = Registry::new();
            crate::descriptors::register(&mut types, id, &text)?;
            descriptor = types.by_id(id).cloned();
        }
        let tag = self.types.len() as u32;
        self.by_id.insert(id, tag);
        self.types.push(OldType {
            id,
            objects: 0,
            role: descriptor.as_ref().map_or(Role::Plain, Role::of),
            kinds: None,
            descriptor,
        });
        Ok(tag)
    }

    /// The type of the objects of a pool's extent, and what it becomes.
    pub(super) fn of_extent(
        &self,
        pool: &OldPool,
        extent: &Extent,
    ) -> (&OldType, Option<&Conversion>) {
        let id = pool.meanings.of(extent.type_id());
        let ty = self.by_id.get(&id).map_or(0, |tag| *tag as usize);
        // The first one is always there.
        let ty = self.types.get(ty).unwrap_or(&self.types[0]);
        (ty, self.pairs.of(id))
    }

    /// The type of what the root of a heap of NVL-C leads to, where the pool's root, of this type, is one.
    ///
    /// # Errors
    /// `Damaged`, `Io`.
    fn root_of_heap(&self, root: Option<u64>) -> Result<Option<u64>> {
        let is_it = |ty: &&OldType| Some(ty.id) == root;
        let ty = self.types.iter().find(is_it);
        let descriptor = ty.and_then(|ty| ty.descriptor.as_ref());
        let is_heap = descriptor.is_some_and(|it| Kind::of(it) == Some(Kind::Heap));
        let Some(view) = self.views().next().filter(|_| is_heap) else {
            return Ok(None);
        };
        for extent in extent::extents(view, view.header()) {
            let extent = extent.map_err(|error| Error::damaged_heap(view.path(), &error))?;
            let object = extent.objects().next().filter(|_| extent.granule() == 0);
            let Some(object) = object else {
                continue;
            };
            let bytes = view.bytes(object.offset, object.size)?;
            let root = word_at(&bytes, std::mem::offset_of!(HeapRoot, root) as u64)
                .filter(|root| *root != 0);
            let found = root.and_then(|root| {
                let found = self.numbers.object(root)?;
                let ty = self.types.get(found.tag as usize)?;
                let Kind::Allocation(elements) = Kind::of(ty.descriptor.as_ref()?)? else {
                    return None;
                };
                (found.offset >= elements.data).then_some(ty.id)
            });
            return Ok(found);
        }
        Ok(None)
    }

    /// What objects of the type at this place are in a heap of NVL-C.
    pub(super) fn kinds(&self, tag: u32) -> Option<Kinds> {
        self.types.get(tag as usize)?.kinds
    }

    /// What becomes of them.
    pub(super) fn conversion(&self, tag: u32) -> Option<&Conversion> {
        self.pairs.of(self.types.get(tag as usize)?.id)
    }

    /// What the elements of such allocations are, with what their pointers lead to.
    pub(super) fn typed(&self, allocation: u64) -> Option<&Descriptor> {
        self.heap.as_ref()?.elements.get(&allocation)
    }

    /// What becomes of the types of its objects.
    pub(super) fn pairs_of_objects(&self) -> impl Iterator<Item = (u64, &Conversion)> {
        let types = self.types.iter().filter(|ty| ty.objects > 0);
        types.filter_map(|ty| Some((ty.id, self.pairs.of(ty.id)?)))
    }

    /// All puddles.
    pub(super) fn views(&self) -> impl Iterator<Item = &PuddleView> {
        self.pools.iter().flat_map(|pool| &pool.views)
    }

    /// The puddle that an address is in.
    pub(super) fn view_at(&self, address: u64) -> Option<&PuddleView> {
        // They began in this order.
        self.views().nth(self.numbers.puddle_at(address)?)
    }

    /// The name of the pool that the others are made anew with.
    pub(super) fn name(&self) -> &str {
        self.pools.first().map_or("", |pool| &pool.record.name)
    }

    /// Whether an address is one of the pools' puddles'.
    pub(super) fn has(&self, address: u64) -> bool {
        self.numbers.has(address)
    }

    /// The bytes of an object by its type: where it lies among others of one size, it may have more.
    pub(super) fn size(ty: &OldType, object: &extent::Object) -> u64 {
        let by_type = Object {
            start: 0,
            size: object.size,
            type_id: object.type_id,
            is_element: object.element.is_some(),
        };
        let descriptor = ty.descriptor.as_ref();
        descriptor.map_or(object.size, |descriptor| by_type.row_by(descriptor))
    }
}
