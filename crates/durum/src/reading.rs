//! Which copies of pools a thread reads. It must not wait for its turn to change one meanwhile: whoever has that may
//! wait for the thread to leave the copy.

use std::cell::Cell;
use std::ptr;

/// Which copy of a pool a thread reads, on the stack of its `read_copy`.
#[derive(Debug)]
pub(crate) struct Frame {
    pub(crate) pool: u64,
    pub(crate) distance: usize,
    pub(crate) around: *const Frame,
}

thread_local! {
    /// The innermost of this thread's frames.
    pub(crate) static INNERMOST: Cell<*const Frame> = const { Cell::new(ptr::null()) };
}

/// This thread reads by a frame, until this is dropped.
#[derive(Debug)]
pub(crate) struct Entered<'f>(&'f Frame);

impl<'f> Entered<'f> {
    pub(crate) fn new(frame: &'f Frame) -> Self {
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
pub(crate) fn is_reading() -> bool {
    !INNERMOST.get().is_null()
}
