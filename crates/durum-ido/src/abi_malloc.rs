//! What calls of the system's allocator become with `-fdurable-malloc` (docs/reference/ido-ir.md).
//!
//! What is given back may be of either: files without that option, and the C library, allocate as ever.

use std::ffi::c_void;

use crate::abi::{nv_free, nv_malloc, nv_realloc};
use crate::fatal::fatal;
use crate::reach;
use crate::thread;

/// Where memory lies, which tells who gave it.
enum From {
    Heap,
    System,
    /// The system of the program that a crash has ended: the section that goes on has it from there.
    Gone,
}

fn from(object: *mut c_void) -> From {
    if reach::holds(object.addr()) {
        return From::Heap;
    }
    // SAFETY: the thread's own, and nobody else here has it.
    match unsafe { (*thread::current()).is_resuming } {
        0 => From::System,
        _ => From::Gone,
    }
}

/// As `free`, of memory of the heap or the system's.
///
/// # Safety
/// As there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __durum_ido_free(object: *mut c_void) {
    match from(object) {
        // SAFETY: as the caller promises.
        From::Heap => unsafe { nv_free(object) },
        // SAFETY: as the caller promises.
        From::System => unsafe { libc::free(object) },
        From::Gone => {}
    }
}

/// The same, of memory whose size is known.
///
/// # Safety
/// As for [`__durum_ido_free`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __durum_ido_free_sized(object: *mut c_void, _size: usize) {
    // SAFETY: as the caller promises.
    unsafe { __durum_ido_free(object) };
}

/// The same, where a constructor has thrown for which [`__durum_ido_new_nothrow`] gave it.
///
/// # Safety
/// As for [`__durum_ido_free`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __durum_ido_free_nothrow(object: *mut c_void, _tag: *const c_void) {
    // SAFETY: as the caller promises.
    unsafe { __durum_ido_free(object) };
}

/// As `realloc`: in the heap, unless it is memory of the system's.
///
/// # Safety
/// As there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __durum_ido_realloc(object: *mut c_void, size: usize) -> *mut c_void {
    match (object.is_null(), from(object)) {
        (true, _) => nv_malloc(size),
        // SAFETY: as the caller promises.
        (_, From::Heap) => unsafe { nv_realloc(object, size) },
        // SAFETY: as the caller promises.
        (_, From::System) => unsafe { libc::realloc(object, size) },
        (_, From::Gone) => fatal!(
            "a section that goes on wants {size} bytes in the place of memory that is gone: it was not the heap's"
        ),
    }
}

/// As `operator new`; the program ends where there is no room, as no exception comes from here.
#[unsafe(no_mangle)]
pub extern "C" fn __durum_ido_new(size: usize) -> *mut c_void {
    let made = nv_malloc(size);
    if made.is_null() {
        fatal!("operator new: the heap has no room for {size} bytes");
    }
    made
}

/// As `operator new` that gives NULL where there is no room.
#[unsafe(no_mangle)]
pub extern "C" fn __durum_ido_new_nothrow(size: usize, _tag: *const c_void) -> *mut c_void {
    nv_malloc(size)
}
