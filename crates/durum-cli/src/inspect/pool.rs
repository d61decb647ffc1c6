//! Reading the objects of a pool out of its files.

use std::collections::{BTreeSet, HashMap};
use std::fmt::Display;
use std::sync::OnceLock;

use durum_format::content::{self, Object, Way};
use durum_format::extent::{self, ExtentKind, HeapBytes, Place};
use durum_format::types::{Meanings, Registry, Type, Value};
use durum_service::{PoolSummary, PuddleSummary, PuddleView, ReadOnlyStore};

use super::elsewhere::Elsewhere;
use super::names;
use crate::failure::Failure;

/// Objects above this size are shown by their first bytes.
pub(crate) const OBJECT_BYTES_MAX: u64 = 64 << 20;

/// Finds the way to an address in another pool of the store.
pub(crate) type WayFinder<'a> = Box<dyn Fn(&PoolSummary, u64) -> Option<Way> + Send + Sync + 'a>;

/// A pool of a store that is only read.
pub(crate) struct PoolView<'a> {
    pub(crate) store: &'a ReadOnlyStore,
    pub(crate) summary: PoolSummary,
    pub(crate) types: Registry,
    /// Its puddles, by address.
    pub(crate) puddles: Vec<PuddleView>,
    /// All puddles of the store, by address.
    all: Vec<PuddleSummary>,
    elsewhere: Elsewhere,
    /// Finds the ways to other pools, where people are told them.
    pub(crate) ways: Option<WayFinder<'a>>,
    /// Whether types of C++ go by the last parts of their names, where these are alone in the pool.
    pub(crate) has_short_names: bool,
    short_names: OnceLock<HashMap<String, String>>,
}

/// What lies at an address that a pointer holds.
pub(crate) enum Target {
    /// An object of this pool, and how far into it the pointer leads.
    Object { object: Object, offset: u64 },
    /// Something else, in words.
    Other(String),
    /// The heap is damaged there: why.
    Damaged(String),
}

/// An object that was read.
pub(crate) struct Found {
    pub(crate) address: u64,
    pub(crate) size: u64,
    pub(crate) type_name: String,
    pub(crate) value: Value,
}

impl<'a> PoolView<'a> {
    pub(crate) fn open(store: &'a ReadOnlyStore, name: &str) -> Result<Self, Failure> {
        let pools = store.pools();
        let Some(summary) = pools.into_iter().find(|pool| pool.name == name) else {
            return Err(durum_service::Error::PoolMissing {
                store: store.name().to_owned(),
                name: name.into(),
            }
            .into());
        };
        let mut types = Registry::new();
        for (id, text) in store.types() {
            types.register_text(text).map_err(|error| {
                Failure::Damaged(format!(
                    "{}: type {id:#018x}: {error}",
                    store.path().display()
                ))
            })?;
        }
        let all = store.puddles();
        let members = all
            .iter()
            .filter(|puddle| puddle.owner == summary.uuid && puddle.kind.holds_objects());
        let puddles = members
            .map(|puddle| store.puddle(puddle.uuid))
            .collect::<Result<Vec<_>, _>>()?;
        // All types of a directory are known; a service tells those that are asked for.
        if store.served().is_some() {
            // What is wrong with a heap is told where it is read.
            let extents = puddles
                .iter()
                .flat_map(|view| extent::extents(view, view.header()).flatten());
            let meanings = store.meanings_of(summary.uuid);
            let ids = extents
                .flat_map(|extent| extent.objects().map(|object| meanings.of(object.type_id)));
            store.learn_types(ids.collect(), &mut types)?;
        }
        Ok(Self {
            store,
            summary,
            types,
            puddles,
            all,
            elsewhere: Elsewhere::default(),
            ways: None,
            has_short_names: false,
            short_names: OnceLock::new(),
        })
    }

    /// The address of the root object, if there is one.
    pub(crate) fn root(&self) -> Result<Option<u64>, Failure> {
        let Some(view) = self.puddles.iter().find(|view| view.header().is_root) else {
            return Ok(None);
        };
        match extent::extents(view, view.header()).next() {
            None => Ok(None),
            Some(Err(error)) => Err(Failure::Damaged(damaged(view, error))),
            Some(Ok(extent)) => Ok(match extent.header().kind {
                // The root object, and nothing else, lies at the start of the root puddle's heap.
                ExtentKind::Object { data_offset, .. } if extent.granule() == 0 => {
                    Some(view.header().address + extent.offset() + data_offset)
                }
                _ => None,
            }),
        }
    }

    /// Whether durum-kv has made it, whose entries its own commands show.
    pub(crate) fn is_database(&self) -> bool {
        let root = self.root().ok().flatten().map(|root| self.target(root));
        match root {
            Some(Target::Object { object, .. }) => self.type_name(object.type_id) == "kv database",
            _ => false,
        }
    }

    /// What people call a type, by its name in the store.
    pub(crate) fn name_for_people(&self, name: &str) -> String {
        let whole = names::for_people(name);
        // Only those of C++ are long; what the library keeps values in is told apart by the whole name.
        if !self.has_short_names || whole == name || whole.starts_with("durum::") {
            return whole;
        }
        let short = self.short_names.get_or_init(|| names::short(&self.names()));
        short.get(&whole).cloned().unwrap_or(whole)
    }

    /// The names of the types that the root leads to.
    fn names(&self) -> BTreeSet<String> {
        let mut found = BTreeSet::new();
        let root = self.root().ok().flatten();
        let mut waiting: Vec<u64> = root.into_iter().collect();
        let id_at = |address| match self.target(address) {
            Target::Object { object, .. } => Some(object.type_id),
            _ => None,
        };
        // What the table of a pool of C++ leads to is in no descriptor.
        if let Some(Ok(root)) = root.map(|root| self.read(root, usize::MAX)) {
            add_pointers(&root.value, &mut waiting);
        }
        let ids: BTreeSet<u64> = waiting.into_iter().filter_map(id_at).collect();
        for descriptor in ids.into_iter().filter_map(|id| self.types.by_id(id)) {
            for line in 0..descriptor.lines() {
                if let Some(ty) = descriptor.line(line) {
                    add_names(ty, &mut found);
                }
            }
        }
        found
    }

    /// What ids of objects mean that are not those of their types any more.
    pub(crate) fn meanings(&self) -> &Meanings {
        self.store.meanings_of(self.summary.uuid)
    }

    /// What the id of an object means.
    pub(crate) fn meaning(&self, id: u64) -> u64 {
        self.meanings().of(id)
    }

    pub(crate) fn view_at(&self, address: u64) -> Option<&PuddleView> {
        let after = self
            .puddles
            .partition_point(|view| view.header().address <= address);
        let before = self.puddles.get(after.checked_sub(1)?)?;
        (address < before.header().end()).then_some(before)
    }

    /// Each object of the pool, in the order of their addresses.
    pub(crate) fn each_object(
        &self,
        damages: &mut Vec<String>,
        mut visit: impl FnMut(Object) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        for view in &self.puddles {
            for object in extent::objects(view, view.header()) {
                match object {
                    Ok(object) => visit(Object {
                        start: view.header().address + object.offset,
                        size: object.size,
                        type_id: self.meaning(object.type_id),
                        is_element: object.element.is_some(),
                    })?,
                    Err(error) => damages.push(damaged(view, error)),
                }
            }
        }
        Ok(())
    }

    /// What lies at an address.
    pub(crate) fn target(&self, address: u64) -> Target {
        let Some(view) = self.view_at(address) else {
            return Target::Other(self.outside(address));
        };
        match extent::locate(view, view.header(), address) {
            Err(error) => Target::Damaged(damaged(view, error)),
            Ok(None) => Target::Other("free memory".into()),
            Ok(Some(location)) => match location.place {
                Place::Object { object, offset } => Target::Object {
                    object: Object {
                        start: view.header().address + object.offset,
                        size: object.size,
                        type_id: self.meaning(object.type_id),
                        is_element: object.element.is_some(),
                    },
                    offset,
                },
                Place::FreeElement { .. } | Place::Tail => Target::Other("free memory".into()),
                Place::Header => Target::Other("allocation data".into()),
            },
        }
    }

    /// The puddle of the store that an address lies in, whatever pool it is of.
    fn puddle_at(&self, address: u64) -> Option<&PuddleSummary> {
        let mut all = self.all.iter();
        all.find(|puddle| (puddle.address..puddle.address + puddle.size).contains(&address))
    }

    /// The pool of the store that an address lies in.
    pub(crate) fn pool_at(&self, address: u64) -> Option<PoolSummary> {
        let owner = self.puddle_at(address)?.owner;
        let mut pools = self.store.pools().into_iter();
        pools.find(|pool| pool.uuid == owner)
    }

    /// The way to what lies at an address in another pool, for people.
    pub(crate) fn way_elsewhere(&self, address: u64) -> Option<Way> {
        let find = self.ways.as_ref()?;
        let pool = self.pool_at(address)?;
        let is_other = pool.uuid != self.summary.uuid;
        is_other.then(|| find(&pool, address))?
    }

    /// Where an address leads that is not in this pool.
    fn outside(&self, address: u64) -> String {
        let Some(puddle) = self.puddle_at(address) else {
            let base = self.store.base();
            return if (base..base + self.store.space_size()).contains(&address) {
                "no puddle of the store".into()
            } else {
                "outside of the store".into()
            };
        };
        let mut pools = self.store.pools().into_iter();
        match pools.find(|pool| pool.uuid == puddle.owner) {
            Some(pool) => {
                let name = self
                    .elsewhere
                    .name(&self.types, self.store, puddle, address);
                let name = name.map_or_else(String::new, |name| format!("{name} "));
                format!("{name}in pool \"{}\"", pool.name)
            }
            None => "in a log".into(),
        }
    }

    /// Reads the object that begins at `start`, with at most `elements` elements of each array.
    pub(crate) fn read(&self, start: u64, elements: usize) -> Result<Found, Failure> {
        let missing = || Failure::Damaged(format!("no object begins at {start:#x}"));
        let view = self.view_at(start).ok_or_else(missing)?;
        let object = match self.target(start) {
            Target::Object { object, offset: 0 } => object,
            Target::Damaged(why) => return Err(Failure::Damaged(why)),
            _ => return Err(missing()),
        };
        let mut bytes = vec![0; object.size.min(OBJECT_BYTES_MAX) as usize];
        HeapBytes::read(view, start - view.header().address, &mut bytes)?;
        let descriptor = self.types.by_id(object.type_id);
        let value = match descriptor {
            Some(descriptor) if bytes.len() as u64 == object.size => {
                bytes.truncate(object.size_by(descriptor) as usize);
                descriptor.value(&bytes, elements)
            }
            _ => {
                let shown = bytes.len().min(elements);
                Value::Bytes {
                    bytes: bytes[..shown].to_vec(),
                    omitted: object.size - shown as u64,
                }
            }
        };
        Ok(Found {
            address: start,
            size: object.size,
            type_name: match descriptor {
                Some(descriptor) => descriptor.title().to_owned(),
                None => self.type_name(object.type_id),
            },
            value,
        })
    }

    /// What objects with this id are called.
    pub(crate) fn type_name(&self, id: u64) -> String {
        let object = Object {
            start: 0,
            size: 0,
            type_id: self.meaning(id),
            is_element: false,
        };
        content::type_name(self, &object)
    }
}

/// Adds where the pointers of a value lead.
fn add_pointers(value: &Value, found: &mut Vec<u64>) {
    match value {
        Value::Struct { fields, .. } => {
            fields.iter().for_each(|(_, it)| add_pointers(it, found));
        }
        Value::Array { elements, .. } => {
            elements.iter().for_each(|it| add_pointers(it, found));
        }
        Value::Pointer { address, .. } if *address != 0 => found.push(*address),
        _ => {}
    }
}

/// Adds the names of a type and of those in it.
fn add_names(ty: &Type<usize>, found: &mut BTreeSet<String>) {
    if let Some(name) = ty.name() {
        found.insert(names::for_people(name));
    }
    match ty {
        Type::Struct(it) => it
            .fields
            .iter()
            .for_each(|field| add_names(&field.ty, found)),
        Type::Variants(it) => {
            let fields = it.cases.iter().flat_map(|case| &case.fields);
            fields.for_each(|field| add_names(&field.ty, found));
        }
        Type::Array { element, .. } => add_names(element, found),
        _ => {}
    }
}

/// What is wrong with the heap of a puddle, with the name of its file.
pub(crate) fn damaged(view: &PuddleView, error: impl Display) -> String {
    format!("{}: {error}", view.path().display())
}
