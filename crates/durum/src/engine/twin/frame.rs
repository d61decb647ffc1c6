//! Which copies a thread reads.

use std::cell::Cell;
use std::ptr;

/// Which copy of a pool a thread reads, on the stack of its `read_copy`.
pub(super) struct Frame {
    pub(super) pool: u64,
    pub(super) distance: usize,
    pub(super) around: *const Frame,
}

thread_local! {
    /// The innermost of this thread's frames.
    pub(super) static INNERMOST: Cell<*const Frame> = const { Cell::new(ptr::null()) };
}

/// This thread reads by a frame, until this is dropped.
pub(super) struct Entered<'f>(&'f Frame);

impl<'f> Entered<'f> {
    pub(super) fn new(frame: &'f Frame) -> Self {
        INNERMOST.set(frame);
        Self(frame)
    }
}

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        INNERMOST.set(self.0.around);
    }
}

/// Whether this thread reads a copy of any pool.
#[inline]
pub(super) fn is_reading() -> bool {
    !INNERMOST.get().is_null()
}
