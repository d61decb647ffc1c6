//! What compiled code calls (docs/reference/nvl-runtime.md). Functions that need a place for their message have a form
//! with `_at` that is told file and line.
//!
//! None of them fails: whatever cannot be done ends the program with a message. A panic does, too: these functions do
//! not unwind.

use std::ffi::{c_char, c_int, c_longlong, c_uint, c_void};
use std::sync::atomic::Ordering;

use crate::alloc::Lifetime;
use crate::fatal::Location;
use crate::handles::{Guard, Handle};
use crate::heap::Heap;
use crate::store::{Source, Strength};
use crate::tx::ClauseKind;
use crate::{alloc, collect, plain, store, tx, types, weak};

/// `struct __nvl_tx` of nvl.h.
#[derive(Debug)]
#[repr(C)]
pub struct TxBlock {
    state: [*mut c_void; 8],
}

/// The two forms of a function: without and with file and line.
macro_rules! located {
    ($(#[$doc:meta])* $name:ident, $at_name:ident, ($($arg:ident: $ty:ty),*) $(-> $out:ty)?, |$guard:ident, $at:ident| $body:expr) => {
        $(#[$doc])*
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($arg: $ty),*) $(-> $out)? {
            let ($guard, $at) = (&Guard::enter(), Location::UNKNOWN);
            $body
        }

        #[doc = concat!("[`", stringify!($name), "`], told where in the program it is called.")]
        ///
        /// # Safety
        /// As there; `file` is a string that lasts as long as the program.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $at_name($($arg: $ty,)* file: *const c_char, line: c_uint) $(-> $out)? {
            // SAFETY: as the caller promises.
            let ($guard, $at) = unsafe { (&Guard::enter(), Location::new(file, line)) };
            $body
        }
    };
}

located! {
    /// Closes a heap; null is allowed. Not in a transaction of any thread on it.
    ///
    /// # Safety
    /// Nobody uses pointers into it any more.
    nvl_close, nvl_close_at, (heap: *mut Handle),
    |_guard, at| {
        if !heap.is_null() {
            Heap::close(heap, at);
        }
    }
}

located! {
    /// Frees what neither the heap nor the program's memory leads to. How many allocations that were.
    ///
    /// # Safety
    /// Threads keep pointers where a collection finds them.
    nvl_collect, nvl_collect_at, (heap: *mut Handle) -> usize,
    |guard, at| collect::collect(guard.heap(heap, at))
}

located! {
    /// Whether clauses of transactions lock their segments: 1 from now on, 0 no more. While no transaction is open.
    ///
    /// # Safety
    /// None is.
    nvl_set_concurrent, nvl_set_concurrent_at, (heap: *mut Handle, concurrent: c_int),
    |guard, at| guard.heap(heap, at).is_concurrent.store(concurrent != 0, Ordering::Relaxed)
}

located! {
    /// Allocates `count` elements of the type, zeroed.
    ///
    /// # Safety
    /// An open heap; a descriptor that does not change.
    __nvl_alloc, __nvl_alloc_at, (heap: *mut Handle, count: usize, size: usize, descriptor: *const c_char) -> *mut c_void,
    |guard, at| {
        let heap = guard.heap(heap, at);
        // SAFETY: as the caller promises.
        let ty = unsafe { types::declared(descriptor, at) };
        std::ptr::with_exposed_provenance_mut(alloc::allocate(heap, count, size, ty, Lifetime::Counted, at))
    }
}

located! {
    /// The same for code that stores pointers without counting them: the allocation stays as long as the heap.
    ///
    /// # Safety
    /// As for `__nvl_alloc`.
    __nvl_alloc_pinned, __nvl_alloc_pinned_at, (heap: *mut Handle, count: usize, size: usize, descriptor: *const c_char) -> *mut c_void,
    |guard, at| {
        let heap = guard.heap(heap, at);
        // SAFETY: as the caller promises.
        let ty = unsafe { types::declared(descriptor, at) };
        std::ptr::with_exposed_provenance_mut(alloc::allocate(heap, count, size, ty, Lifetime::Pinned, at))
    }
}

located! {
    /// The root, or null.
    ///
    /// # Safety
    /// An open heap; a descriptor that does not change.
    __nvl_get_root, __nvl_get_root_at, (heap: *mut Handle, descriptor: *const c_char) -> *mut c_void,
    |guard, at| {
        let heap = guard.heap(heap, at);
        // SAFETY: as the caller promises.
        let ty = unsafe { types::declared(descriptor, at) };
        std::ptr::with_exposed_provenance_mut(alloc::root(heap, ty, at))
    }
}

located! {
    /// Makes an allocation the root, or none.
    ///
    /// # Safety
    /// An open heap; a descriptor that does not change.
    __nvl_set_root, __nvl_set_root_at, (heap: *mut Handle, root: *const c_void, descriptor: *const c_char),
    |guard, at| {
        let heap = guard.heap(heap, at);
        // SAFETY: as the caller promises.
        let ty = unsafe { types::declared(descriptor, at) };
        alloc::set_root(heap, root.expose_provenance(), ty, at);
    }
}

located! {
    /// Begins a level of an explicit transaction.
    ///
    /// # Safety
    /// `tx` stays where it is until `__nvl_tx_end`; `heaps` are so many open heaps.
    __nvl_tx_begin, __nvl_tx_begin_at, (tx: *mut TxBlock, default_kind: c_int, heap_count: c_int, heaps: *const *const Handle),
    |guard, at| {
        let frame = 0u8;
        let heaps = match usize::try_from(heap_count) {
            Ok(count) if count > 0 && !heaps.is_null() => {
                // SAFETY: as the caller promises.
                unsafe { std::slice::from_raw_parts(heaps, count) }
            }
            _ => &[],
        };
        let (block, frame, kind) = (tx.addr(), (&raw const frame).addr(), ClauseKind::from_c(default_kind, at));
        tx::with_running(|running| running.begin(guard, block, frame, kind, heaps, at));
    }
}

located! {
    /// A clause of the innermost level: before its body.
    ///
    /// # Safety
    /// Inside the level of `tx`; no other thread stores to the segment, but for those that lock it.
    __nvl_tx_range, __nvl_tx_range_at, (_tx: *mut TxBlock, kind: c_int, start: *const c_void, count: c_longlong, size: usize),
    |guard, at| {
        let (kind, start) = (ClauseKind::from_c(kind, at), start.expose_provenance());
        tx::with_running(|running| running.clause(guard, kind, start, count, size, at));
    }
}

located! {
    /// Ends a level; the outermost one commits.
    ///
    /// # Safety
    /// `tx` was begun on this thread.
    __nvl_tx_end, __nvl_tx_end_at, (tx: *mut TxBlock),
    |_guard, at| tx::with_running(|running| running.end(tx.addr(), at))
}

/// Rolls back the levels above `depth`: control came back to a place where so many were open, by a jump that left the
/// others.
#[unsafe(no_mangle)]
pub extern "C" fn __nvl_tx_unwind(depth: c_int) {
    tx::unwind(depth);
}

/// Where this thread's number of open levels is. The same as long as the thread lives.
#[unsafe(no_mangle)]
pub extern "C" fn __nvl_tx_depth() -> *const c_int {
    tx::depth_place()
}

located! {
    /// Before a plain store to `len` bytes in a transaction.
    ///
    /// # Safety
    /// The range lies in an open heap; no other thread stores there until the transaction has ended.
    __nvl_log, __nvl_log_at, (start: *const c_void, len: usize),
    |guard, at| plain::log(guard, start.expose_provenance(), len, at)
}

located! {
    /// Stores a strong pointer to a heap.
    ///
    /// # Safety
    /// A slot that the descriptor of its allocation shows; no other thread uses it.
    __nvl_store_ptr, __nvl_store_ptr_at, (slot: *mut c_void, value: *const c_void),
    |guard, at| store::pointer(guard, slot.expose_provenance(), value.expose_provenance(), Strength::Strong, at)
}

located! {
    /// Stores a weak pointer to a heap.
    ///
    /// # Safety
    /// As for `__nvl_store_ptr`.
    __nvl_store_weak, __nvl_store_weak_at, (slot: *mut c_void, value: *const c_void),
    |guard, at| store::pointer(guard, slot.expose_provenance(), value.expose_provenance(), Strength::Weak, at)
}

located! {
    /// Loads a weak pointer: a strong one, or null if what it led to was freed.
    ///
    /// # Safety
    /// As for `__nvl_store_ptr`.
    __nvl_load_weak, __nvl_load_weak_at, (slot: *const c_void) -> *mut c_void,
    |guard, at| std::ptr::with_exposed_provenance_mut(weak::load(guard, slot.expose_provenance(), at))
}

located! {
    /// `memmove` to a heap.
    ///
    /// # Safety
    /// As for `memmove`; pointers lie in the source where the descriptor of the destination's allocation shows them.
    __nvl_copy, __nvl_copy_at, (destination: *mut c_void, source: *const c_void, len: usize),
    |guard, at| store::copy(guard, destination.expose_provenance(), Source::Memory(source.expose_provenance()), len, at)
}

located! {
    /// `memset` to a heap: where there are pointers, only with 0.
    ///
    /// # Safety
    /// As for `memset`.
    __nvl_fill, __nvl_fill_at, (destination: *mut c_void, byte: c_int, len: usize),
    |guard, at| store::copy(guard, destination.expose_provenance(), Source::Byte(byte as u8), len, at)
}

located! {
    /// Notes `len` bytes for the thread's next `__nvl_persist`, outside of transactions.
    ///
    /// # Safety
    /// The range lies in an open heap, which stays open till then; no other thread stores there meanwhile.
    __nvl_write_back, __nvl_write_back_at, (start: *const c_void, len: usize),
    // ORDER: none yet; durable with the next `__nvl_persist`, before anybody else may see the stores.
    |guard, at| plain::write_back(guard, start.expose_provenance(), len, at)
}

located! {
    /// Makes `len` bytes durable as they are, outside of transactions, and with the same fence what `__nvl_write_back`
    /// has noted. 0 bytes may begin anywhere.
    ///
    /// # Safety
    /// The range lies in an open heap; no other thread stores there meanwhile.
    __nvl_persist, __nvl_persist_at, (start: *const c_void, len: usize),
    |guard, at| plain::persist(guard, start.expose_provenance(), len, at)
}

located! {
    /// Ends the program if two pointers lead into different allocations. Null leads nowhere and may be compared.
    ///
    /// # Safety
    /// Nobody closes a heap meanwhile.
    __nvl_check_same, __nvl_check_same_at, (one: *const c_void, other: *const c_void),
    |guard, at| store::check_same(guard, one.expose_provenance(), other.expose_provenance(), at)
}

/// Whether [`__nvl_get_root`] would give the root, or null as there is none, and not end the program: 1 or 0.
///
/// # Safety
/// An open heap; a descriptor that does not change.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __nvl_root_is(heap: *mut Handle, descriptor: *const c_char) -> c_int {
    let (guard, at) = (&Guard::enter(), Location::UNKNOWN);
    let heap = guard.heap(heap, at);
    // SAFETY: as the caller promises.
    let ty = unsafe { types::declared(descriptor, at) };
    alloc::root_is(heap, ty).into()
}

/// A descriptor that the program keeps.
#[unsafe(no_mangle)]
pub extern "C" fn __nvl_type(descriptor: *const c_char) -> *const c_char {
    descriptor
}
