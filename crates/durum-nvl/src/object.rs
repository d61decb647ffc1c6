//! Allocations: from any pointer into one to its header.

use std::cell::Cell;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::fatal::{Location, OrFatal, fatal};
use crate::heap::{HEAPS_MAX, Heap};
use crate::layout::{FRESH, Hidden, field, word};
use crate::types::{self, TypeInfo};

/// An allocation of an open heap.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Object {
    /// Where its header is.
    pub(crate) start: usize,
    pub(crate) info: &'static TypeInfo,
}

impl Object {
    /// Where its data begin: what pointers to it mostly hold.
    #[inline]
    pub(crate) fn data(&self) -> usize {
        self.start + self.info.data
    }

    /// Its elements.
    #[inline]
    pub(crate) fn count(&self) -> usize {
        // SAFETY: a header of a live allocation; the count never changes.
        unsafe { word(field!(self.start, Header, count)) as usize }
    }

    /// Bytes of its data.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.count() * self.info.size
    }

    /// Visits its pointers: where each is, and whether it is weak.
    pub(crate) fn pointers(&self, mut visit: impl FnMut(usize, bool)) {
        let data = self.data();
        let visit = &mut |offset, is_weak| visit(data + offset, is_weak);
        self.info.pointers(self.count(), 0..self.len(), visit);
    }

    /// Whether there are pointers in these bytes of its data.
    pub(crate) fn has_pointers_in(&self, window: Range<usize>) -> bool {
        let mut found = false;
        let note = &mut |_, _| found = true;
        self.info.pointers(self.count(), window, note);
        found
    }

    /// Whether nothing durable has led to it yet.
    #[inline]
    pub(crate) fn is_fresh(&self) -> bool {
        // SAFETY: a header of a live allocation. It stops being fresh when it is linked, and who stores to it at that
        // very moment races with the program's own link.
        unsafe { word(field!(self.start, Header, state)) & FRESH != 0 }
    }
}

/// What threads remember of allocations holds for one epoch of the heap in a place of the table. It ends when
/// allocations do, and with the heap, so no two heaps have the same one.
static EPOCHS: [AtomicU64; HEAPS_MAX] = [const { AtomicU64::new(0) }; HEAPS_MAX];

#[inline]
fn epoch(index: usize) -> u64 {
    EPOCHS[index].load(Ordering::Acquire)
}

/// The allocation that a thread looked at last.
#[derive(Clone, Copy)]
struct Recent {
    /// The heap's place in the table of heaps, and its epoch then.
    index: usize,
    epoch: u64,
    start: Hidden,
    end: Hidden,
    info: &'static TypeInfo,
}

impl Recent {
    #[inline]
    fn holds(&self, address: usize) -> bool {
        (self.start.start() + self.info.data..self.end.start()).contains(&address)
    }

    /// Whether the heap is still open, and nothing in it has come to an end since.
    #[inline]
    fn is_so(&self) -> bool {
        self.epoch == epoch(self.index)
    }
}

/// Whether two addresses lie in the allocation that this thread looked at last. False says nothing.
#[inline]
pub(crate) fn are_in_recent(one: usize, other: usize) -> bool {
    RECENT
        .get()
        .is_some_and(|recent| recent.holds(one) && recent.holds(other) && recent.is_so())
}

thread_local! {
    static RECENT: Cell<Option<Recent>> = const { Cell::new(None) };
}

impl Heap {
    /// The allocation that a pointer leads to: into its data, or right behind them.
    #[inline]
    pub(crate) fn object(&self, address: usize, at: Location) -> Option<Object> {
        if let Some(recent) = RECENT.get()
            && recent.holds(address)
            && recent.index == self.index()
            && recent.is_so()
        {
            return Some(Object {
                start: recent.start.start(),
                info: recent.info,
            });
        }
        self.look_up(address, at)
    }

    /// Whether an address lies in an allocation that is committed and to which nothing durable leads.
    #[inline]
    pub(crate) fn is_fresh(&self, address: usize, at: Location) -> bool {
        self.fresh.load(Ordering::Acquire) > 0
            && self
                .object(address, at)
                .is_some_and(|object| object.is_fresh())
    }

    #[inline(never)]
    fn look_up(&self, address: usize, at: Location) -> Option<Object> {
        let epoch = epoch(self.index());
        let found = match self.object_over(address, at) {
            Some(object) if address >= object.data() => {
                (address <= object.data() + object.len()).then_some(object)
            }
            // No pointer leads into a header: this one may lead behind the allocation before it.
            _ => {
                let before = self.object_over(address.wrapping_sub(1), at);
                before.filter(|object| object.data() + object.len() == address)
            }
        }?;
        let recent = Recent {
            index: self.index(),
            epoch,
            start: Hidden::new(found.start),
            end: Hidden::new(found.data() + found.len()),
            info: found.info,
        };
        RECENT.set(Some(recent));
        Some(found)
    }

    /// The allocation whose bytes, header included, hold the address.
    fn object_over(&self, address: usize, at: Location) -> Option<Object> {
        let address = std::ptr::without_provenance::<u8>(address);
        // SAFETY: a pointer that the program has keeps its allocation from being freed.
        let extent = unsafe { self.pool.object_at(address) };
        let extent = extent.or_fatal(at, "looking up an allocation")?;
        let info = types::by_id(&self.store, extent.type_id)?;
        Some(Object {
            start: extent.start.addr(),
            info,
        })
    }

    /// The allocation whose header is there.
    pub(crate) fn object_from(&self, start: usize) -> Object {
        match self.object_over(start, Location::UNKNOWN) {
            Some(object) if object.start == start => object,
            _ => fatal!(
                Location::UNKNOWN,
                "heap {self}: no allocation begins at {start:#x}, to which its lists lead; the heap is damaged"
            ),
        }
    }

    /// Allocations have come to an end: what threads remember of them does not hold any more.
    pub(crate) fn forget_objects(&self) {
        EPOCHS[self.index()].fetch_add(1, Ordering::AcqRel);
    }
}
