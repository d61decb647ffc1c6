//! Which log has changed a line of data: a byte for each line, in a table beside the space of the store.

use std::ops::Range;
use std::ptr;

use durum_persist::line::LINE;
use rustix::mm::{Advice, MapFlags, MprotectFlags, ProtFlags};
use rustix::process::{Resource, getrlimit};

use crate::primitive::AtomicU8;

/// The table. Its pages come as they are used: a 64th of the data that is changed.
#[derive(Debug)]
pub(crate) struct LineOwners {
    /// The first address of the space.
    base: usize,
    bytes: &'static [AtomicU8],
}

impl LineOwners {
    /// Of a space. `None` where the system has no memory for it, or counts what is never used.
    pub(crate) fn new(space: Range<usize>) -> Option<Self> {
        let is_limited = |what| getrlimit(what).current.is_some();
        if is_limited(Resource::As) || is_limited(Resource::Data) {
            return None;
        }
        let len = space.len() / LINE;
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
        // SAFETY: a fresh anonymous mapping anywhere, all zero.
        let table =
            unsafe { rustix::mm::mmap_anonymous(ptr::null_mut(), len, ProtFlags::empty(), flags) };
        let table = table.ok()?;
        // SAFETY: the mapping, which this has until it is dropped.
        let this = unsafe {
            Self {
                base: space.start,
                bytes: std::slice::from_raw_parts(table.cast(), len),
            }
        };
        // SAFETY: that mapping, which nobody uses yet.
        unsafe {
            // In a program that locks all its memory pages would come at once.
            let _ = rustix::mm::munlock(table, len);
            // Nothing there says what a program has done wrong; and few of its pages are used.
            let _ = rustix::mm::madvise(table, len, Advice::LinuxDontDump);
            let _ = rustix::mm::madvise(table, len, Advice::LinuxNoHugepage);
            rustix::mm::mprotect(table, len, MprotectFlags::READ | MprotectFlags::WRITE).ok()?;
        }
        Some(this)
    }

    /// That of the line with this address, which lies in the space.
    #[inline(always)]
    pub(crate) fn of(&self, address: usize) -> &AtomicU8 {
        &self.bytes[(address - self.base) / LINE]
    }

    /// No line has an owner any more, if the system does what it is told; nobody looks meanwhile.
    pub(crate) fn clear(&self) {
        let table = self.bytes.as_ptr().cast_mut().cast();
        // SAFETY: the mapping of this, which is private and anonymous: its bytes become 0.
        let _ = unsafe { rustix::mm::madvise(table, self.bytes.len(), Advice::LinuxDontNeed) };
    }
}

impl Drop for LineOwners {
    fn drop(&mut self) {
        // SAFETY: the mapping of this, and nobody looks any more.
        let _ =
            unsafe { rustix::mm::munmap(self.bytes.as_ptr().cast_mut().cast(), self.bytes.len()) };
    }
}
