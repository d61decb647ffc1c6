//! What has changed in a program's types since a heap was made, as far as that is known: for a message.

use std::collections::{BTreeMap, BTreeSet};

use crate::fatal::Location;
use crate::heap::Heap;
use crate::types::{Declared, TypeInfo};

/// So many allocations are looked at, along pointers from the root.
const LOOKED_AT_MAX: usize = 10_000;

/// The end of a sentence: what differs between the types that a root leads to and those of the program, or nothing.
pub(crate) fn of_heap(heap: &Heap, root: usize, ty: &Declared) -> String {
    let found = types(heap, root);
    let mut changes = Vec::new();
    for (at, (name, wanted)) in ty.reached().into_iter().enumerate() {
        // The first one is the root's, whatever it is called.
        let is = match at {
            0 => type_at(heap, root),
            _ => found.get(&name).copied(),
        };
        let Some(is) = is.filter(|_| changes.len() < TOLD_MAX) else {
            continue;
        };
        if let Ok(wanted) = heap.pool.ensure_described(&wanted)
            && wanted != is
        {
            changes.extend(heap.pool.type_changes(is, wanted));
        }
    }
    match changes.is_empty() {
        true => String::new(),
        // Fields of a program's type are what it knows.
        false => format!(
            " (since then: {})",
            changes.join("; ").replace(".data[]", "")
        ),
    }
}

/// Changes beyond these are not told.
const TOLD_MAX: usize = 20;

/// Types of allocations that a root leads to, with their ids, by the names of their elements.
fn types(heap: &Heap, root: usize) -> BTreeMap<String, u64> {
    let mut found: BTreeMap<String, u64> = BTreeMap::new();
    let (mut seen, mut next) = (BTreeSet::new(), vec![root]);
    while let Some(address) = next.pop() {
        let Some(object) = heap.object(address, Location::UNKNOWN) else {
            continue;
        };
        if seen.len() >= LOOKED_AT_MAX || !seen.insert(object.start) {
            continue;
        }
        let TypeInfo { name, .. } = object.info;
        if !found.contains_key(name) {
            found.extend(type_at(heap, object.start).map(|id| (name.clone(), id)));
        }
        object.pointers(|slot, is_weak| {
            // SAFETY: a slot of a live allocation.
            let to = unsafe { crate::layout::word(slot) } as usize;
            // One with many pointers needs no room for all of them.
            if !is_weak && to != 0 && next.len() < LOOKED_AT_MAX {
                next.push(to);
            }
        });
    }
    found
}

/// The id of the type of the allocation that an address lies in, to which a pointer of the heap leads.
fn type_at(heap: &Heap, address: usize) -> Option<u64> {
    let address = std::ptr::with_exposed_provenance(address);
    // SAFETY: the pointer keeps it from being freed.
    let extent = unsafe { heap.pool.object_at(address) };
    Some(extent.ok()??.type_id)
}
