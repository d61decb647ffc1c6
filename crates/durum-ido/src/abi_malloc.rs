//! What calls of the system's allocator become with `-fdurable-malloc` (docs/reference/ido-ir.md).
//!
//! What is given back may be of either: files without that option, and the C library, allocate as ever.

use std::ffi::c_void;
use std::ptr;

use crate::abi::{nv_free, nv_malloc};
use crate::abi_typed::{__durum_ido_typed_malloc, __durum_ido_typed_nv_realloc};
use crate::fatal::fatal;
use crate::reach;
use crate::thread;
use crate::types::AllocatedType;

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
    // SAFETY: as the caller promises.
    unsafe { __durum_ido_typed_realloc(object, size, ptr::null()) }
}

/// The same for an object of this type; null: nobody knows.
///
/// # Safety
/// As there; a type that stays as long as the program runs.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __durum_ido_typed_realloc(
    object: *mut c_void,
    size: usize,
    ty: *const AllocatedType,
) -> *mut c_void {
    match (object.is_null(), from(object)) {
        // SAFETY: as the caller promises.
        (true, _) => unsafe { __durum_ido_typed_malloc(size, ty) },
        // SAFETY: as the caller promises.
        (_, From::Heap) => unsafe { __durum_ido_typed_nv_realloc(object, size, ty) },
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
    // SAFETY: no type.
    unsafe { __durum_ido_typed_new(size, ptr::null()) }
}

/// The same for an object of this type; null: nobody knows.
///
/// # Safety
/// A type that stays as long as the program runs.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __durum_ido_typed_new(
    size: usize,
    ty: *const AllocatedType,
) -> *mut c_void {
    // SAFETY: as the caller promises.
    let made = unsafe { __durum_ido_typed_malloc(size, ty) };
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

/// The same for an object of this type; null: nobody knows.
///
/// # Safety
/// As for [`__durum_ido_typed_new`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __durum_ido_typed_new_nothrow(
    size: usize,
    _tag: *const c_void,
    ty: *const AllocatedType,
) -> *mut c_void {
    // SAFETY: as the caller promises.
    unsafe { __durum_ido_typed_malloc(size, ty) }
}
