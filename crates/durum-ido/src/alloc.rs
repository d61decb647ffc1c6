//! Memory of the heap.
//!
//! Each call is a transaction of its own, durable when it returns, and no part of the section that it is made in: a
//! crash may leave what was taken and not linked yet, which nobody finds then. That records tell of it is the next
//! step. What a section frees is freed when it has ended, as a crash may make it do so again.

use durum::{Result, StoreError, Tx};
use durum_persist::line;

use crate::fatal::{OrFatal, fatal};
use crate::heap;
use crate::reach;
use crate::thread::{self, Thread};

/// As of `malloc`.
const ALIGN: usize = 16;

/// What new memory holds.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Contents {
    /// Anything.
    Any,
    Zeros,
    /// A copy of as many bytes from there; the rest is anything.
    Copy(*const u8, usize),
}

/// `size` bytes, durably taken and filled. Null, and `ENOMEM`, where there is no room.
pub(crate) fn allocate(size: usize, contents: Contents) -> *mut u8 {
    let heap = heap::current();
    let size = size.max(1);
    let fill = |tx: &Tx| -> Result<*mut u8> {
        let made = tx.alloc_bytes(&heap.pool, 0, size, ALIGN)?;
        // SAFETY: was just allocated; the source is the caller's.
        unsafe {
            match contents {
                Contents::Any => {}
                Contents::Zeros => line::zero(made, size),
                Contents::Copy(source, len) => line::copy(made, source, len.min(size)),
            }
        }
        Ok(made)
    };
    let made = heap.pool.transaction(fill);
    with_thread(|thread| thread.is_stale = true);
    match made {
        Ok(made) => made,
        Err(error) if is_full(&error) => {
            // SAFETY: the thread's own.
            unsafe { *libc::__errno_location() = libc::ENOMEM };
            std::ptr::null_mut()
        }
        Err(error) => fatal!("taking {size} bytes of the heap: {error}"),
    }
}

fn is_full(error: &durum::Error) -> bool {
    matches!(
        error,
        durum::Error::Store(StoreError::StorageFull { .. } | StoreError::AddressesExhausted { .. })
            | durum::Error::ObjectSize { .. }
    )
}

/// Frees an object; null is allowed. In a section that becomes true when it has ended.
pub(crate) fn free(object: *mut u8) {
    if object.is_null() {
        return;
    }
    check(object, "nv_free");
    let is_later = with_thread(|thread| {
        thread.is_stale = true;
        if thread.depth > 0 {
            thread.freed.push(object.expose_provenance());
        }
        thread.depth > 0
    });
    if !is_later {
        free_now(object);
    }
}

/// The same contents in `size` bytes elsewhere; the old object is freed. Null, and `ENOMEM`, where there is no room:
/// the old one is as it was.
///
/// # Safety
/// Null, or an object that nobody else uses.
pub(crate) unsafe fn reallocate(object: *mut u8, size: usize) -> *mut u8 {
    if object.is_null() {
        return allocate(size, Contents::Any);
    }
    check(object, "nv_realloc");
    // SAFETY: as the caller promises.
    let found = unsafe { heap::current().pool.object_at(object) };
    let Some(extent) = found.or_fatal("nv_realloc") else {
        fatal!("nv_realloc({object:p}): no object begins there");
    };
    let made = allocate(size, Contents::Copy(object, extent.len));
    if !made.is_null() {
        free(object);
    }
    made
}

fn check(object: *mut u8, function: &str) {
    if !reach::holds(object.addr()) {
        fatal!("{function}({object:p}): does not lie in the heap; what malloc gave takes free");
    }
}

fn free_now(object: *mut u8) {
    let heap = heap::current();
    let freed = heap.pool.transaction(|tx| {
        // SAFETY: the program says that nobody uses it any more.
        unsafe { tx.free(object) }
    });
    freed.or_fatal("nv_free");
}

/// Frees what the thread's section has freed, which has ended.
#[inline]
pub(crate) fn free_what_was_freed(thread: &mut Thread) {
    if thread.depth == 0 && !thread.freed.is_empty() {
        for object in std::mem::take(&mut thread.freed) {
            free_now(std::ptr::with_exposed_provenance_mut(object));
        }
    }
}

fn with_thread<R>(body: impl FnOnce(&mut Thread) -> R) -> R {
    // SAFETY: the thread's own, and no one here has another reference to it.
    body(unsafe { &mut *thread::current() })
}
