//! Pages of memory that are made before they are needed, many in one go.

use std::ptr::with_exposed_provenance_mut as pointer;

use rustix::mm::Advice;

/// Bytes of a page.
pub(crate) const PAGE: usize = 4096;

/// Has these pages made now, in memory that is this process's. Page by page, at the first stores, takes three times as
/// long.
pub(crate) fn make_pages(start: usize, len: usize) {
    // SAFETY: pages change nothing. Kernels before 5.14 do not know the advice, and nothing is lost.
    let _ = unsafe { rustix::mm::madvise(pointer(start), len, Advice::LinuxPopulateWrite) };
}
