//! Weak pointers. What is stored is the address of a proxy, one for each address that weak pointers of a heap lead to;
//! when the allocation is freed its proxies are told, and its memory is free at once, however many weak pointers there
//! are.

use std::sync::atomic::{Ordering, fence};

use durum::Result;

use crate::fatal::Location;
use crate::handles::{Guard, in_no_heap};
use crate::heap::Heap;
use crate::layout::{Hidden, Proxy, field, word};
use crate::object::Object;
use crate::pending::PendingCounts;
use crate::primitive::locked;
use crate::store_tx::StoreTx;
use crate::types;

/// The proxy for an address in `object`, made in the transaction if there is none; 0 for null.
pub(crate) fn proxy<C: StoreTx>(
    heap: &Heap,
    tx: &mut C,
    value: usize,
    object: Option<Object>,
) -> Result<usize> {
    let Some(object) = object else {
        return Ok(0);
    };
    let known = {
        // Others enter theirs at the front of the list.
        let _counts = (!C::HAS_COUNTS).then(|| heap.counts());
        find(object, value)
    };
    if let Some(known) = known.or_else(|| tx.pending().proxy_of(value)) {
        return Ok(known);
    }
    let id = heap.pool.ensure_described(types::proxy_type())?;
    let made = tx.with_core(|core| core.alloc_bytes(&heap.pool, id, size_of::<Proxy>(), 8))?;
    let fresh = Proxy {
        target: value as u64,
        count: 0,
        next: 0,
    };
    // SAFETY: just allocated with that size.
    unsafe { made.cast::<Proxy>().write(fresh) };
    let made = made.expose_provenance();
    tx.pending().made_proxy(heap, made, object, value);
    Ok(made)
}

/// A proxy stays as long as its target does, so what is found here is there until the target is freed, which is not
/// while the caller has a pointer to it.
fn find(object: Object, value: usize) -> Option<usize> {
    // SAFETY: header and proxies of a live allocation, locked by the caller.
    unsafe {
        let mut proxy = word(field!(object.start, Header, weak)) as usize;
        while proxy != 0 {
            if word(field!(proxy, Proxy, target)) as usize == value {
                return Some(proxy);
            }
            proxy = word(field!(proxy, Proxy, next)) as usize;
        }
    }
    None
}

/// A slot that held the proxy `old` will hold `new`.
pub(crate) fn count(heap: &Heap, pending: &mut PendingCounts, old: usize, new: usize) {
    if old == new {
        return;
    }
    if old != 0 {
        pending.count_weak(heap, old, -1);
    }
    if new != 0 {
        pending.count_weak(heap, new, 1);
    }
}

/// What a weak pointer leads to, or 0 if that is gone.
#[inline]
pub(crate) fn load(guard: &Guard, slot: usize, at: Location) -> usize {
    let heap = guard
        .glance(slot)
        .unwrap_or_else(|| in_no_heap("a weak pointer is read", slot, at));
    // SAFETY: a slot that the program reads.
    let proxy = unsafe { word(slot) } as usize;
    if proxy == 0 {
        return 0;
    }
    let before = heap.collecting.load(Ordering::Acquire);
    if before.is_multiple_of(2) {
        // SAFETY: a weak pointer leads to the proxy, so it is there.
        let target = unsafe { word(field!(proxy, Proxy, target)) } as usize;
        fence(Ordering::Acquire);
        // A collection that begins from now on finds the pointer in this thread; one that began in between may not
        // have.
        if heap.collecting.load(Ordering::Relaxed) == before {
            return target;
        }
    }
    load_beside_collection(heap, proxy, at)
}

#[cold]
fn load_beside_collection(heap: &Heap, proxy: usize, at: Location) -> usize {
    let garbage = locked(&heap.garbage);
    // SAFETY: as in `load`.
    let target = unsafe { word(field!(proxy, Proxy, target)) } as usize;
    // Empty where the collection has ended meanwhile: then all proxies of what it has freed say so.
    let is_gone = target != 0
        && !garbage.is_empty()
        && heap
            .object(target, at)
            .is_none_or(|object| garbage.contains(&Hidden::new(object.start)));
    drop(garbage);
    if is_gone { 0 } else { target }
}
