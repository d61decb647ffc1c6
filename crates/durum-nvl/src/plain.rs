//! Plain stores: announced before they are made, in a transaction; made durable behind them, outside of one.

use std::ptr;

use crate::dirty::DirtyRanges;
use crate::fatal::Location;
use crate::handles::Guard;
use crate::tx::{self, heap_of, with_running};

/// Before a plain store in a transaction.
pub(crate) fn log(guard: &Guard, start: usize, len: usize, at: Location) {
    if len == 0 || !tx::is_running() || tx::is_named(start, len) {
        return;
    }
    let heap = heap_of(guard, start, at);
    with_running(|running| running.announce(heap, start, len, running.default_kind(), at));
}

/// Notes plain stores that have to become durable: not in a fresh allocation, which becomes so as a whole when
/// something durable leads to it.
fn note(dirty: &mut DirtyRanges, guard: &Guard, start: usize, len: usize, at: Location) {
    if len == 0 {
        return;
    }
    // Mostly the heap of the last ones, which is kept already.
    let place = ptr::without_provenance(start);
    let known = dirty.last_heap().filter(|heap| heap.pool.holds(place, 1));
    let heap = known.unwrap_or_else(|| heap_of(guard, start, at));
    if !heap.is_fresh(start, at) {
        // SAFETY: what is noted is forgotten before the heap may go.
        dirty.add(unsafe { guard.keep(heap) }, start..start + len);
    }
}

/// After plain stores that the next [`persist`] makes durable.
pub(crate) fn write_back(guard: &Guard, start: usize, len: usize, at: Location) {
    with_running(|running| {
        note(&mut running.dirty, guard, start, len, at);
        if running.dirty.is_full() {
            running.dirty.make_durable(at);
        }
    });
}

/// After plain stores: they, and what was noted, are durable when this returns.
pub(crate) fn persist(guard: &Guard, start: usize, len: usize, at: Location) {
    with_running(|running| {
        note(&mut running.dirty, guard, start, len, at);
        running.dirty.make_durable(at);
    });
}
