//! Collections: freeing what neither the heap nor the program's memory leads to, while the program runs.
//!
//! Candidates are on the zero list. Threads are stopped while their memory is looked through ([`crate::roots`]); then,
//! with counts still locked, it is decided once and for all what is garbage: candidates that nothing names, and
//! allocations to which only garbage leads and that nothing names. No thread can get a pointer to those any more: not
//! from the heap, because nothing there leads to them, and not by a weak pointer, because these read null from here on.
//! What is decided stays true while other threads go on, and it is freed in as many transactions as it takes.

use std::sync::TryLockError;
use std::sync::atomic::Ordering;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::fatal::Location;
use crate::free;
use crate::heap::{Heap, LISTED_MIN};
use crate::layout::{Hidden, LISTED, field, word};
use crate::object::Object;
use crate::primitive::locked;
use crate::roots::{self, RootSet};
use crate::tx;

/// Collects if the zero list has become long.
#[inline]
pub(crate) fn under_pressure(heap: &Heap) {
    let is_due = {
        let counts = heap.counts();
        counts.listed >= counts.listed_max
    };
    if is_due {
        collect(heap);
    }
}

/// Frees what nothing leads to. How many allocations that were; 0 also where it cannot be known: in a transaction,
/// beside another collection, and where a thread does not stop.
pub(crate) fn collect(heap: &Heap) -> usize {
    if tx::is_running() {
        return 0;
    }
    let _one_at_a_time = match heap.collection.try_lock() {
        Ok(guard) => guard,
        Err(TryLockError::Poisoned(guard)) => guard.into_inner(),
        Err(TryLockError::WouldBlock) => return 0,
    };
    let candidates = decide(heap);
    let is_garbage = |start| locked(&heap.garbage).contains(&Hidden::new(start));
    let freed = free::all(heap, candidates, is_garbage);
    // ORDER: proxies say that their targets are gone before the set is empty; who reads weak pointers asks the set
    // first and the proxy then.
    *locked(&heap.garbage) = FxHashSet::default();
    heap.collecting.fetch_add(1, Ordering::AcqRel);
    let mut counts = heap.counts();
    counts.listed_max = LISTED_MIN.max(2 * counts.listed);
    freed
}

/// Decides what is garbage: the candidates among it. From here on until `collecting` changes weak pointers to garbage
/// are null.
fn decide(heap: &Heap) -> Vec<Hidden> {
    // No count changes from here on, so the list and what it leads to stay.
    let mut counts = heap.counts();
    // Nobody who reads a weak pointer is told anything before the decision.
    let mut garbage = locked(&heap.garbage);
    heap.collecting.fetch_add(1, Ordering::AcqRel);
    let listed = free::listed(heap);
    counts.listed = listed.len();
    if listed.is_empty() {
        return listed;
    }
    let info = heap.store.info();
    let Some(found) = roots::find(info.base as usize..(info.base + info.space_size) as usize)
    else {
        return Vec::new();
    };
    let is_named = |object: &Object| is_named(&found, object);
    let mut candidates = Vec::new();
    for hidden in listed {
        let object = heap.object_from(hidden.start());
        if !is_named(&object) {
            garbage.insert(hidden);
            candidates.push(hidden);
        }
    }
    let mut left: FxHashMap<Hidden, u64> = FxHashMap::default();
    let mut next: Vec<Hidden> = candidates.clone();
    while let Some(hidden) = next.pop() {
        let object = heap.object_from(hidden.start());
        object.pointers(|slot, is_weak| {
            // SAFETY: a pointer in garbage, which nobody changes.
            let value = unsafe { word(slot) } as usize;
            if is_weak || value == 0 {
                return;
            }
            let Some(target) = heap.object(value, Location::UNKNOWN) else {
                return;
            };
            // SAFETY: a header; counts are locked.
            let (strong, state) = unsafe {
                (
                    word(field!(target.start, Header, strong)),
                    word(field!(target.start, Header, state)),
                )
            };
            let hidden = Hidden::new(target.start);
            let left = left.entry(hidden).or_insert(strong);
            *left = left.saturating_sub(1);
            if *left == 0 && state & LISTED == 0 && !is_named(&target) && garbage.insert(hidden) {
                next.push(hidden);
            }
        });
    }
    candidates
}

fn is_named(found: &RootSet, object: &Object) -> bool {
    found.any_in(object.data(), object.data() + object.len())
}
