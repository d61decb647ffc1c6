//! Plain stores outside of transactions: noted as they are made, and made durable with one fence.

use std::ops::Range;
use std::ptr;

use crate::fatal::{Location, OrFatal};
use crate::heap::Heap;
use crate::presence;

/// So many ranges are made durable before there are more.
const MAX: usize = 4096;

/// So many of the last ranges may grow: a loop stores to several arrays by turns, or to the same place again.
const OPEN_MAX: usize = 4;

/// What a thread has stored, and is not durable yet.
#[derive(Default)]
pub(crate) struct DirtyRanges(Vec<(&'static Heap, Range<usize>)>);

impl DirtyRanges {
    /// Takes a range down. The heap is kept until it is durable.
    #[inline]
    pub(crate) fn add(&mut self, heap: &'static Heap, range: Range<usize>) {
        for (last_heap, last) in self.0.iter_mut().rev().take(OPEN_MAX) {
            if last.start <= range.end && range.start <= last.end && ptr::eq(*last_heap, heap) {
                *last = last.start.min(range.start)..last.end.max(range.end);
                return;
            }
        }
        self.0.push((heap, range));
    }

    /// The heap of the range that was noted last.
    #[inline]
    pub(crate) fn last_heap(&self) -> Option<&'static Heap> {
        self.0.last().map(|(heap, _)| *heap)
    }

    /// Whether the ranges have to become durable before there are more.
    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.0.len() == MAX
    }

    /// Makes all of it durable.
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
                    // SAFETY: the program's own memory.
                    unsafe { pool.persist_all(&ranges) }.or_fatal(at, doing);
                }
            }
        }
        self.0.clear();
        presence::drop_kept();
    }
}
