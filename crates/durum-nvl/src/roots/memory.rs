//! Memory that is reserved ahead and takes room only as far as it is used: for what is written while no allocator may
//! be asked.

use std::ops::Range;
use std::ptr::{self, NonNull};

use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};

/// A list of plain values with a place of its own.
pub(super) struct Reserved<T: Copy> {
    start: NonNull<T>,
    capacity: usize,
    len: usize,
}

impl<T: Copy> Reserved<T> {
    /// Room for as many values.
    pub(super) fn new(capacity: usize) -> Option<Self> {
        let bytes = capacity * size_of::<T>();
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
        // SAFETY: a new mapping anywhere.
        let mapped = unsafe { mmap_anonymous(ptr::null_mut(), bytes, protection, flags) };
        Some(Self {
            start: NonNull::new(mapped.ok()?.cast())?,
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
    /// Replaces the contents by those that `read` puts into the rest of the place, piece by piece until it gives
    /// nothing. `None` where it fails or there is no room.
    pub(super) fn fill(&mut self, read: impl Fn(&mut [u8]) -> Option<usize>) -> Option<&[u8]> {
        self.len = 0;
        loop {
            let room = self.capacity - self.len;
            // SAFETY: mapped bytes, which nobody else has.
            let rest =
                unsafe { std::slice::from_raw_parts_mut(self.start.add(self.len).as_ptr(), room) };
            match read(rest)? {
                0 if room == 0 => return None,
                0 => return Some(self.as_slice()),
                more => self.len += more,
            }
        }
    }
}

impl<T: Copy> Drop for Reserved<T> {
    fn drop(&mut self) {
        // SAFETY: our own mapping, of which nothing is borrowed any more.
        let _ = unsafe { munmap(self.start.as_ptr().cast(), self.capacity * size_of::<T>()) };
    }
}
