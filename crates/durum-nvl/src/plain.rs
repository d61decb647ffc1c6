//! Plain stores: announced before they are made, in a transaction; made durable behind them, outside of one.

use std::ptr;

use crate::fatal::Location;
use crate::handles::Here;
use crate::noted::Noted;
use crate::tx::{self, heap_of, with_running};

/// Before a plain store in a transaction.
pub(crate) fn log(here: &Here, start: usize, len: usize, at: Location) {
    if len == 0 || !tx::is_running() {
        return;
    }
    let heap = heap_of(here, start, at);
    with_running(|running| running.announce(heap, start, len, running.default_kind(), at));
}

/// Notes plain stores that have to become durable: not in a fresh allocation, which becomes so as a whole when
/// something durable leads to it.
fn note(noted: &mut Noted, here: &Here, start: usize, len: usize, at: Location) {
    if len == 0 {
        return;
    }
    // Mostly the heap of the last ones, which is kept already.
    let place = ptr::without_provenance(start);
    let known = noted.last_heap().filter(|heap| heap.pool.holds(place, 1));
    let heap = known.unwrap_or_else(|| heap_of(here, start, at));
    if !heap.is_fresh(start, at) {
        // SAFETY: what is noted is forgotten before the heap may go.
        noted.add(unsafe { here.keep(heap) }, start..start + len);
    }
}

/// After plain stores that the next [`persist`] makes durable.
pub(crate) fn write_back(here: &Here, start: usize, len: usize, at: Location) {
    with_running(|running| {
        note(&mut running.noted, here, start, len, at);
        if running.noted.is_full() {
            running.noted.make_durable(at);
        }
    });
}

/// After plain stores: they, and what was noted, are durable when this returns.
pub(crate) fn persist(here: &Here, start: usize, len: usize, at: Location) {
    with_running(|running| {
        note(&mut running.noted, here, start, len, at);
        running.noted.make_durable(at);
    });
}
