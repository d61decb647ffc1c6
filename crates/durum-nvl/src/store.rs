//! Stores of pointers and copies: where counts change.

use std::ops::Range;

use durum::{Durability, Result};

use crate::fatal::{Location, OrFatal, fatal};
use crate::handles::{self, Guard};
use crate::heap::Heap;
use crate::layout::word;
use crate::object::{Object, are_in_recent};
use crate::pending::PendingCounts;
use crate::store_tx::StoreTx;
use crate::tx::{self, ClauseKind, heap_of, with_running};
use crate::weak;

/// What kind of pointer is stored.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Strength {
    Strong,
    Weak,
}

/// What a pointer is that is stored as the program's own, for messages.
const POINTER: &str = "a pointer in";

/// A pointer leads to where it may not: the message says where that is.
#[cold]
fn foreign(heap: &Heap, target: usize, what: &str, at: Location) -> ! {
    match Guard::enter().holding(target) {
        Some(other) if !std::ptr::eq(other, heap) => fatal!(
            at,
            "a pointer into heap {other} was to be stored as {what} heap {heap}; pointers from heap to heap are not allowed, because the other one may not be open when it is read"
        ),
        Some(_) => fatal!(
            at,
            "a pointer to {target:#x} was to be stored as {what} heap {heap}, where nothing is allocated"
        ),
        None => fatal!(
            at,
            "a pointer to {target:#x}, which is in no open heap, was to be stored as {what} heap {heap}{}",
            handles::was_in(target)
        ),
    }
}

/// The allocation that a pointer leads to which is stored in `heap` as `what`; `None` for null.
pub(crate) fn target(heap: &Heap, value: usize, what: &str, at: Location) -> Option<Object> {
    let found = || heap.object(value, at);
    (value != 0).then(|| found().unwrap_or_else(|| foreign(heap, value, what, at)))
}

/// How durable an implicit transaction has to be that stores to `slot`.
fn durability(heap: &Heap, slot: usize, at: Location) -> Durability {
    // What nothing durable leads to cannot be found after a crash; the store is durable with whatever leads there.
    match heap.is_fresh(slot, at) {
        true => Durability::Buffered,
        false => Durability::Durable,
    }
}

/// `*slot = value`, where both are in a heap or `value` is null.
pub(crate) fn pointer(guard: &Guard, slot: usize, value: usize, strength: Strength, at: Location) {
    let heap = heap_of(guard, slot, at);
    let store = PointerStore {
        slot,
        // SAFETY: a slot that the program stores to, so no other thread does.
        old: unsafe { word(slot) } as usize,
        value,
        new: target(heap, value, POINTER, at),
        strength,
    };
    if strength == Strength::Strong && store.old == value {
        return;
    }
    if tx::is_running() {
        with_running(|running| {
            // Here, where nothing has to be handed out of the closure. What can fail is a new proxy.
            store
                .make(running, heap, at)
                .or_fatal(at, "storing a weak pointer");
        });
        return;
    }
    let durability = durability(heap, slot, at);
    let stored = tx::implicit(heap, durability, at, |own| store.make(own, heap, at));
    stored.or_fatal(at, "storing a pointer");
}

/// A store of a pointer.
struct PointerStore {
    slot: usize,
    /// What the slot holds: for a weak pointer a proxy.
    old: usize,
    /// What the program stores, and the allocation that it leads to.
    value: usize,
    new: Option<Object>,
    strength: Strength,
}

impl PointerStore {
    /// Stores it in a transaction, and counts what the slot leads to no more, and from now on.
    #[inline]
    fn make(&self, tx: &mut impl StoreTx, heap: &Heap, at: Location) -> Result<()> {
        tx.announce_words(heap, self.slot, 1, at);
        let stored = match self.strength {
            Strength::Strong => {
                count_strong(heap, tx.pending(), self.old, self.new, at);
                self.value
            }
            Strength::Weak => {
                let proxy = weak::proxy(heap, tx, self.value, self.new)?;
                weak::count(heap, tx.pending(), self.old, proxy);
                proxy
            }
        };
        tx.write(self.slot, stored as u64)
    }
}

/// A slot that held `old` will lead to `new`, or nowhere.
pub(crate) fn count_strong(
    heap: &Heap,
    pending: &mut PendingCounts,
    old: usize,
    new: Option<Object>,
    at: Location,
) {
    if let Some(old) = (old != 0).then(|| heap.object(old, at)).flatten() {
        pending.count(heap, old, -1);
    }
    if let Some(new) = new {
        pending.count(heap, new, 1);
    }
}

/// Where the bytes of a copy come from.
#[derive(Clone, Copy)]
pub(crate) enum Source {
    /// Memory, in a heap or not.
    Memory(usize),
    /// The same byte again and again.
    Byte(u8),
}

/// `memmove` and `memset` to a heap: pointers in the destination are counted by the descriptor of its allocation.
pub(crate) fn copy(guard: &Guard, destination: usize, source: Source, len: usize, at: Location) {
    if len == 0 {
        return;
    }
    let heap = heap_of(guard, destination, at);
    let Some(object) = heap.object(destination, at) else {
        foreign(heap, destination, "a copy in", at);
    };
    let offset = destination - object.data();
    if offset + len > object.len() {
        fatal!(
            at,
            "a copy of {len} bytes to offset {offset} of an allocation of type {} in heap {heap}, which has {}",
            object.info.name,
            object.len()
        );
    }
    let window = offset..offset + len;
    let has_pointers = object.has_pointers_in(window.clone());
    if tx::is_running() {
        with_running(|running| {
            let kind = match has_pointers {
                true => ClauseKind::Backup,
                false => running.default_kind(),
            };
            running.announce(heap, destination, len, kind, at);
            if has_pointers {
                count_window(heap, object, window, source, &mut running.pending, at);
            }
            // SAFETY: announced, and the program says that it may be copied.
            unsafe { fill(destination, source, len) };
        });
        return;
    }
    if !has_pointers {
        // SAFETY: the program says that it may be copied. A plain store: compiled code makes it durable if it wants to.
        unsafe { fill(destination, source, len) };
        return;
    }
    let durability = durability(heap, destination, at);
    let copied = tx::implicit(heap, durability, at, |own| {
        let target = std::ptr::with_exposed_provenance::<u8>(destination);
        count_window(heap, object, window, source, own.pending, at);
        // SAFETY: the program stores there, and no other thread does.
        unsafe {
            if object.is_fresh() {
                // What was stored there before may not be durable, so a comparison would not tell what has to become
                // so. The pointers are in it.
                own.words.tx().add_contents(target, len)?;
            } else {
                own.words.tx().add_bytes(target, len, Default::default())?;
            }
            fill(destination, source, len);
        }
        Ok(())
    });
    copied.or_fatal(at, "copying pointers");
}

/// # Safety
/// The destination may be stored to, the source read.
unsafe fn fill(destination: usize, source: Source, len: usize) {
    let target = std::ptr::with_exposed_provenance_mut::<u8>(destination);
    // SAFETY: as the caller promises.
    unsafe {
        match source {
            Source::Memory(from) => {
                std::ptr::copy(std::ptr::with_exposed_provenance::<u8>(from), target, len);
            }
            Source::Byte(byte) => target.write_bytes(byte, len),
        }
    }
}

/// Counts what goes and what comes with a copy, before it is made.
fn count_window(
    heap: &Heap,
    object: Object,
    window: Range<usize>,
    source: Source,
    pending: &mut PendingCounts,
    at: Location,
) {
    let from = window.start;
    if let Source::Byte(1..) = source {
        fatal!(
            at,
            "bytes that are not zero are stored over pointers of an allocation of type {} in heap {heap}",
            object.info.name
        );
    }
    let count = &mut |offset, is_weak| {
        if offset < window.start || offset + 8 > window.end {
            fatal!(
                at,
                "a copy cuts the pointer at offset {offset} of an allocation of type {} in heap {heap}",
                object.info.name
            );
        }
        // SAFETY: a slot of the destination.
        let old = unsafe { word(object.data() + offset) } as usize;
        let new = match source {
            // SAFETY: its bytes in the source.
            Source::Memory(memory) => unsafe {
                std::ptr::with_exposed_provenance::<usize>(memory + offset - from).read_unaligned()
            },
            Source::Byte(byte) => usize::from_ne_bytes([byte; 8]),
        };
        if is_weak {
            weak::count(heap, pending, old, new);
        } else if old != new {
            let new = target(heap, new, POINTER, at);
            count_strong(heap, pending, old, new, at);
        }
    };
    object.info.pointers(object.count(), window.clone(), count);
}

/// Ends the program if two pointers do not lead into the same allocation.
pub(crate) fn check_same(guard: &Guard, one: usize, other: usize, at: Location) {
    if one == other || one == 0 || other == 0 || are_in_recent(one, other) {
        return;
    }
    let find = |address| {
        guard
            .glance(address)
            .and_then(|heap| Some((heap, heap.object(address, at)?)))
    };
    let found = (find(one), find(other));
    if let (Some((one, a)), Some((other, b))) = found
        && std::ptr::eq(one, other)
        && a.start == b.start
    {
        return;
    }
    let tell = |found: Option<(&Heap, Object)>, address: usize| match found {
        Some((heap, object)) => format!(
            "offset {} of {} x {} at {:#x} in heap {heap}",
            address.wrapping_sub(object.data()),
            object.count(),
            object.info.name,
            object.data()
        ),
        None => format!(
            "{address:#x}, which is in no allocation of an open heap{}",
            handles::was_in(address)
        ),
    };
    fatal!(
        at,
        "pointers to different allocations are compared or subtracted: {} and {}",
        tell(found.0, one),
        tell(found.1, other)
    )
}
