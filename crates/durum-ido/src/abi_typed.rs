//! What takes memory of the heap in compiled code that says what it will hold (docs/reference/ido-ir.md). A null type:
//! nobody knows.

use std::ffi::c_void;

use crate::alloc::{self, Contents};
use crate::types::AllocatedType;
use crate::{heap, open};

/// As [`crate::abi::nv_root`].
///
/// # Safety
/// A type that stays as long as the program runs.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __durum_ido_typed_root(
    size: usize,
    ty: *const AllocatedType,
) -> *mut c_void {
    open::open_of_environment();
    // SAFETY: as the caller promises.
    unsafe { heap::root(size, ty) }.cast()
}

/// As [`crate::abi::nv_malloc`].
///
/// # Safety
/// As for [`__durum_ido_typed_root`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __durum_ido_typed_malloc(
    size: usize,
    ty: *const AllocatedType,
) -> *mut c_void {
    open::open_of_environment();
    // SAFETY: as the caller promises.
    unsafe { alloc::allocate(size, Contents::Any, ty) }.cast()
}

/// As [`crate::abi::nv_calloc`].
///
/// # Safety
/// As for [`__durum_ido_typed_root`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __durum_ido_typed_calloc(
    count: usize,
    size: usize,
    ty: *const AllocatedType,
) -> *mut c_void {
    // What is too large has no room.
    let size = count.checked_mul(size).unwrap_or(usize::MAX >> 1);
    open::open_of_environment();
    // SAFETY: as the caller promises.
    unsafe { alloc::allocate(size, Contents::Zeros, ty) }.cast()
}

/// As [`crate::abi::nv_realloc`]. Without a type the object has the one that it had.
///
/// # Safety
/// As there, and for [`__durum_ido_typed_root`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __durum_ido_typed_nv_realloc(
    object: *mut c_void,
    size: usize,
    ty: *const AllocatedType,
) -> *mut c_void {
    open::open_of_environment();
    // SAFETY: as the caller promises.
    unsafe { alloc::reallocate(object.cast(), size, ty) }.cast()
}
