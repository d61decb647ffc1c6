//! What lies in other pools of the store, to which pointers of the one that is shown lead.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use durum_format::content::{At, Object, Objects, has_data_in_paths, part_at, type_name};
use durum_format::extent::{self, HeapBytes, Place};
use durum_format::types::{Descriptor, Meanings, Registry};
use durum_service::{PuddleSummary, PuddleView, ReadOnlyStore};

use super::names;

/// Puddles that are kept open. When there are more, all are closed.
const OPEN_MAX: usize = 64;

/// Puddles of other pools, by where they begin; nothing for those that cannot be looked at.
#[derive(Default)]
pub(super) struct Elsewhere(Mutex<BTreeMap<u64, Option<PuddleView>>>);

impl Elsewhere {
    /// The name of what lies at an address in such a puddle; `None` where no object lies there, or nobody can tell: of
    /// a store that a service serves, only the pool that is shown is held.
    pub(super) fn name(
        &self,
        types: &Registry,
        store: &ReadOnlyStore,
        puddle: &PuddleSummary,
        address: u64,
    ) -> Option<String> {
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if open.len() >= OPEN_MAX && !open.contains_key(&puddle.address) {
            open.clear();
        }
        let view = open.entry(puddle.address);
        let view = view.or_insert_with(|| store.puddle(puddle.uuid).ok());
        let there = There {
            view: view.as_ref()?,
            types,
            meanings: store.meanings_of(puddle.owner),
        };
        let At::Object(object) = there.at(address) else {
            return None;
        };
        let (name, offset) = (type_name(&there, &object), address - object.start);
        // Whoever has data redacted is told this, too.
        let descriptor = there.descriptor(object.type_id);
        let is_told = descriptor.is_some_and(|descriptor| !has_data_in_paths(descriptor));
        let part = is_told.then(|| part_at(&there, &object, offset));
        Some(match part.flatten() {
            _ if offset == 0 => name,
            Some(part) => name + &part,
            None => format!("{name} + {offset}"),
        })
    }
}

/// A puddle of another pool.
struct There<'a> {
    view: &'a PuddleView,
    types: &'a Registry,
    meanings: &'a Meanings,
}

impl Objects for There<'_> {
    fn at(&self, address: u64) -> At {
        let header = self.view.header();
        let found = extent::locate(self.view, header, address);
        match found.ok().flatten().map(|found| found.place) {
            Some(Place::Object { object, .. }) => At::Object(Object {
                start: header.address + object.offset,
                size: object.size,
                type_id: self.meanings.of(object.type_id),
                is_element: object.element.is_some(),
            }),
            _ => At::Other("no object".into()),
        }
    }

    fn read(&self, address: u64, buffer: &mut [u8]) -> Result<(), String> {
        let offset = address.checked_sub(self.view.header().address);
        let offset = offset.ok_or("it lies in another puddle")?;
        HeapBytes::read(self.view, offset, buffer).map_err(|error| error.to_string())
    }

    fn descriptor(&self, type_id: u64) -> Option<&Descriptor> {
        self.types.by_id(type_id)
    }

    fn name_for_people(&self, name: &str) -> String {
        names::for_people(name)
    }
}
