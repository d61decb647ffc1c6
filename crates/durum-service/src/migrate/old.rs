//! A pool as it is, and what becomes of each of its types.

use std::collections::BTreeMap;
use std::path::Path;

use durum_format::Uuid;
use durum_format::content::Object;
use durum_format::extent::{self, Extent, UNTYPED};
use durum_format::migrate::{Conversion, Pairs};
use durum_format::types::{Descriptor, Meanings, Registry};

use super::Migration;
use crate::dump::numbers::Numbers;
use crate::error::{Error, Result};
use crate::inspect::{PuddleView, ReadOnlyStore};
use crate::recovery::ensure_not_interrupted;
use crate::registry::contents::PoolRecord;
use crate::roles::Role;

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
        let pools = names.iter().map(|name| OldPool::of(reader, name));
        let pools = pools.collect::<Result<Vec<OldPool>>>()?;
        let nothing = OldType {
            id: UNTYPED,
            objects: 0,
            descriptor: None,
            role: Role::Plain,
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
                let roots: Vec<_> = roots.into_iter().zip(&types.roots).collect();
                Pairs::of_program(&known, &roots, &types.others, &migration.rules)
            }
            None => Pairs::of_rules(&known, &migration.rules),
        };
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

    /// How many objects there are.
    pub(super) fn objects(&self) -> u64 {
        self.numbers.objects()
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
