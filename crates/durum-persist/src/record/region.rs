//! Mapped regions, and which pages of them were ever touched.

use std::fs::File;
use std::os::unix::fs::FileExt;

use super::content::PAGE;
use crate::file::MediaFile;

/// A shared mapping of a file.
#[derive(Clone, Debug)]
pub(crate) struct Region {
    pub(crate) addr: usize,
    /// Bytes.
    pub(crate) len: usize,
    pub(crate) file: MediaFile,
    pub(crate) file_offset: u64,
    /// The program's own stores are looked for.
    pub(crate) watch: bool,
}

impl Region {
    pub(crate) fn end(&self) -> usize {
        self.addr + self.len
    }

    /// The part of `addr..end` inside this region, as an address range.
    pub(crate) fn overlap(&self, addr: usize, end: usize) -> Option<(usize, usize)> {
        let (start, end) = (addr.max(self.addr), end.min(self.end()));
        (start < end).then_some((start, end))
    }

    pub(crate) fn offset_of(&self, addr: usize) -> u64 {
        self.file_offset + (addr - self.addr) as u64
    }

    /// What remains of the region without `addr..end`.
    pub(crate) fn without(&self, addr: usize, end: usize) -> Vec<Region> {
        let part = |start: usize, end: usize| Region {
            addr: start,
            len: end - start,
            file: self.file.clone(),
            file_offset: self.offset_of(start),
            watch: self.watch,
        };
        let mut rest = Vec::new();
        if self.addr < addr {
            rest.push(part(self.addr, addr.min(self.end())));
        }
        if end < self.end() {
            rest.push(part(end.max(self.addr), self.end()));
        }
        rest
    }

    /// Calls `visit` with each page of the region that this process has touched; with all pages if that cannot be
    /// learned. A page without an entry in the page table was never stored to through this mapping.
    pub(crate) fn touched_pages(&self, mut visit: impl FnMut(usize, usize)) {
        const ENTRIES: usize = 512;
        /// Documentation/admin-guide/mm/pagemap.rst: bit 63 is "page present", bit 62 "page swapped".
        const PRESENT_OR_SWAPPED: u64 = 0b11 << 62;
        let mut buffer = [0u8; ENTRIES * 8];
        // Opened each time: an open one would show the parent's memory after a fork.
        let pagemap = File::open("/proc/self/pagemap").ok();
        let mut page = self.addr / PAGE;
        let last = (self.end() - 1) / PAGE;
        while page <= last {
            let count = ENTRIES.min(last - page + 1);
            let entries = &mut buffer[..count * 8];
            let known = pagemap
                .as_ref()
                .is_some_and(|file| file.read_exact_at(entries, page as u64 * 8).is_ok());
            for (index, entry) in entries.chunks_exact(8).enumerate() {
                let entry = u64::from_ne_bytes(entry.try_into().unwrap_or([0xff; 8]));
                if !known || entry & PRESENT_OR_SWAPPED != 0 {
                    let start = ((page + index) * PAGE).max(self.addr);
                    let end = ((page + index + 1) * PAGE).min(self.end());
                    visit(start, end);
                }
            }
            page += count;
        }
    }
}
