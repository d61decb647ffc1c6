//! Memory that is reserved ahead and takes room only as far as it is used: for what is written while no allocator may
//! be asked.

use std::ops::Range;
use std::ptr::{self, NonNull};

/// A list of plain values with a place of its own.
pub(super) struct Reserved<T: Copy> {
    start: NonNull<T>,
    capacity: usize,
    len: usize,
}

impl<T: Copy> Reserved<T> {
    /// Room for as many values.
    pub(super) fn new(capacity: usize) -> Option<Self> {
        // SAFETY: a new mapping anywhere.
        let mapped = unsafe {
            libc::mmap(
                ptr::null_mut(),
                capacity * size_of::<T>(),
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                -1,
                0,
            )
        };
        (mapped != libc::MAP_FAILED).then_some(())?;
        Some(Self {
            start: NonNull::new(mapped.cast())?,
            capacity,
            len: 0,
        })
    }

    /// Appends a value; false if there is no room.
    #[inline]
    pub(super) fn push(&mut self, value: T) -> bool {
        if self.len == self.capacity {
            return false;
        }
        // SAFETY: below the capacity.
        unsafe { self.start.add(self.len).write(value) };
        self.len += 1;
        true
    }

    pub(super) fn last(&self) -> Option<T> {
        self.as_slice().last().copied()
    }

    pub(super) fn as_slice(&self) -> &[T] {
        // SAFETY: so many were written.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }

    pub(super) fn as_mut_slice(&mut self) -> &mut [T] {
        // SAFETY: so many were written, and nobody else has them.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }

    /// Its addresses.
    pub(super) fn range(&self) -> Range<usize> {
        let start = self.start.addr().get();
        start..start + self.capacity * size_of::<T>()
    }
}

impl Reserved<u8> {
    /// Replaces the contents by those that `read` puts into a buffer, piece by piece until it gives nothing. `None`
    /// where it fails or there is no room.
    pub(super) fn fill(&mut self, mut read: impl FnMut(*mut u8, usize) -> isize) -> Option<&[u8]> {
        self.len = 0;
        loop {
            // SAFETY: within the mapping.
            let place = unsafe { self.start.add(self.len) }.as_ptr();
            match usize::try_from(read(place, self.capacity - self.len)).ok()? {
                0 if self.len == self.capacity => return None,
                0 => return Some(self.as_slice()),
                more => self.len += more,
            }
        }
    }
}

impl<T: Copy> Drop for Reserved<T> {
    fn drop(&mut self) {
        // SAFETY: our own mapping, of which nothing is borrowed any more.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.capacity * size_of::<T>()) };
    }
}
