//! Which log has changed a line of data: a byte for each line, in a table beside the space of the store.

use std::ops::Range;
use std::ptr;

use durum_persist::line::LINE;
use rustix::mm::{Advice, MapFlags, ProtFlags};

use crate::primitive::AtomicU8;

/// The table. Its pages come as they are used: a 64th of the data that is changed.
#[derive(Debug)]
pub(crate) struct LineOwners {
    /// The first address of the space.
    base: usize,
    bytes: &'static [AtomicU8],
}

impl LineOwners {
    /// Of a space. `None` where the system has no addresses for it.
    pub(crate) fn new(space: Range<usize>) -> Option<Self> {
        let len = space.len() / LINE;
        // SAFETY: a fresh anonymous mapping anywhere, all zero.
        let table = unsafe {
            rustix::mm::mmap_anonymous(
                ptr::null_mut(),
                len,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::PRIVATE | MapFlags::NORESERVE,
            )
        };
        let table = table.ok()?;
        // SAFETY: the mapping, which this has until it is dropped.
        unsafe {
            // Nothing there says what a program has done wrong.
            let _ = rustix::mm::madvise(table, len, Advice::LinuxDontDump);
            Some(Self {
                base: space.start,
                bytes: std::slice::from_raw_parts(table.cast(), len),
            })
        }
    }

    /// That of the line with this address, which lies in the space.
    #[inline(always)]
    pub(crate) fn of(&self, address: usize) -> &AtomicU8 {
        &self.bytes[(address - self.base) / LINE]
    }

    /// No line has an owner any more; nobody looks meanwhile. Whether the system has done it.
    pub(crate) fn clear(&self) -> bool {
        // SAFETY: the mapping of this, which is private and anonymous: its bytes become 0.
        let cleared = unsafe {
            rustix::mm::madvise(
                self.bytes.as_ptr().cast_mut().cast(),
                self.bytes.len(),
                Advice::LinuxDontNeed,
            )
        };
        cleared.is_ok()
    }
}

impl Drop for LineOwners {
    fn drop(&mut self) {
        // SAFETY: the mapping of this, and nobody looks any more.
        let _ =
            unsafe { rustix::mm::munmap(self.bytes.as_ptr().cast_mut().cast(), self.bytes.len()) };
    }
}
