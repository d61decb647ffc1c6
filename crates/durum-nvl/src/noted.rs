//! Plain stores outside of transactions: noted as they are made, and made durable with one fence.

use std::ops::Range;
use std::ptr;
use std::sync::atomic::Ordering;

use crate::fatal::{Location, OrFatal};
use crate::handles::Here;
use crate::heap::Heap;
use crate::presence;
use crate::store::heap_of;
use crate::tx::with_running;

/// So many ranges are made durable before there are more.
const MAX: usize = 4096;

/// What a thread has stored, and is not durable yet.
#[derive(Default)]
pub(crate) struct Noted(Vec<(&'static Heap, Range<usize>)>);

impl Noted {
    fn add(&mut self, heap: &'static Heap, range: Range<usize>) {
        match self.0.last_mut() {
            Some((last_heap, last)) if last.end == range.start && ptr::eq(*last_heap, heap) => {
                last.end = range.end;
            }
            _ => self.0.push((heap, range)),
        }
    }

    pub(crate) fn make_durable(&mut self, at: Location) {
        let doing = "making stores durable";
        self.0.sort_by_key(|(heap, _)| ptr::from_ref(*heap));
        for of_heap in self.0.chunk_by(|one, next| ptr::eq(one.0, next.0)) {
            let pool = &of_heap[0].0.pool;
            match of_heap {
                [(_, range)] => {
                    let start = ptr::with_exposed_provenance::<u8>(range.start);
                    // SAFETY: the program's own memory.
                    unsafe { pool.persist(start, range.len()) }.or_fatal(at, doing);
                }
                _ => {
                    let ranges: Vec<_> = of_heap.iter().map(|(_, range)| range.clone()).collect();
                    // SAFETY: the same.
                    unsafe { pool.persist_all(&ranges) }.or_fatal(at, doing);
                }
            }
        }
        self.0.clear();
        presence::drop_kept();
    }
}

/// Notes plain stores that have to become durable: not in a fresh allocation, which becomes so as a whole when
/// something durable leads to it.
fn note(noted: &mut Noted, here: &Here, start: usize, len: usize, at: Location) {
    if len == 0 {
        return;
    }
    // Mostly the heap of the last ones, which is kept already.
    let place = ptr::without_provenance(start);
    let known = noted.0.last().map(|(heap, _)| *heap);
    let known = known.filter(|heap| heap.pool.holds(place, 1));
    let heap = known.unwrap_or_else(|| heap_of(here, start, at));
    let is_fresh = heap.fresh.load(Ordering::Acquire) > 0
        && heap
            .object(start, at)
            .is_some_and(|object| object.is_fresh());
    if !is_fresh {
        // SAFETY: what is noted is forgotten before the heap may go.
        noted.add(unsafe { here.keep(heap) }, start..start + len);
    }
}

/// After plain stores that the next [`persist`] makes durable.
pub(crate) fn write_back(here: &Here, start: usize, len: usize, at: Location) {
    with_running(|running| {
        note(&mut running.noted, here, start, len, at);
        if running.noted.0.len() == MAX {
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
