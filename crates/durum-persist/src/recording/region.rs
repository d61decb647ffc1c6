//! Mapped regions, and which pages of them were ever touched.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt;

use super::content::PAGE;
use crate::key::FileKey;

/// Regions that do not overlap, by address.
#[derive(Default)]
pub(crate) struct Regions {
    by_addr: BTreeMap<usize, Region>,
}

impl Regions {
    pub(crate) const fn new() -> Regions {
        Regions {
            by_addr: BTreeMap::new(),
        }
    }

    /// Adds a region, in place of what was there: memory can be mapped over.
    pub(crate) fn insert(&mut self, region: Region) {
        self.remove(region.addr, region.end());
        self.by_addr.insert(region.addr, region);
    }

    /// Removes `addr..end`, which may be part of a region or of several.
    pub(crate) fn remove(&mut self, addr: usize, end: usize) {
        for region in self.overlapping(addr, end) {
            self.by_addr.remove(&region.addr);
            for rest in region.without(addr, end) {
                self.by_addr.insert(rest.addr, rest);
            }
        }
    }

    pub(crate) fn overlapping(&self, addr: usize, end: usize) -> Vec<Region> {
        let before = self.by_addr.range(..addr).next_back();
        let candidates = before
            .into_iter()
            .chain(self.by_addr.range(addr..end.max(addr)));
        candidates
            .filter(|(_, region)| region.overlap(addr, end).is_some())
            .map(|(_, region)| *region)
            .collect()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Region> {
        self.by_addr.values()
    }
}

/// A shared mapping of a file. It keeps no descriptor open: a mapped file keeps its inode number to itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Region {
    pub(crate) addr: usize,
    /// Bytes.
    pub(crate) len: usize,
    pub(crate) file: FileKey,
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
    fn without(&self, addr: usize, end: usize) -> Vec<Region> {
        let part = |start: usize, end: usize| Region {
            addr: start,
            len: end - start,
            file: self.file,
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

#[cfg(test)]
mod tests {
    use super::*;

    fn region(addr: usize, len: usize, inode: u64) -> Region {
        let file = FileKey { device: 1, inode };
        Region {
            addr,
            len,
            file,
            file_offset: addr as u64 * 10,
            watch: false,
        }
    }

    fn regions_after(remove: (usize, usize)) -> Vec<(usize, usize, u64)> {
        let mut regions = Regions::new();
        regions.insert(region(100, 50, 1));
        regions.insert(region(150, 50, 2));
        regions.remove(remove.0, remove.1);
        regions
            .iter()
            .map(|region| (region.addr, region.len, region.file_offset))
            .collect()
    }

    #[test]
    fn any_part_of_regions_can_be_removed() {
        assert_eq!(regions_after((0, 100)), [(100, 50, 1000), (150, 50, 1500)]);
        assert_eq!(regions_after((0, 110)), [(110, 40, 1010), (150, 50, 1500)]);
        assert_eq!(
            regions_after((120, 130)),
            [(100, 20, 1000), (130, 20, 1030), (150, 50, 1500)]
        );
        assert_eq!(
            regions_after((120, 160)),
            [(100, 20, 1000), (160, 40, 1510)]
        );
        assert_eq!(regions_after((100, 150)), [(150, 50, 1500)]);
        assert_eq!(regions_after((90, 300)), []);
        assert_eq!(
            regions_after((120, 120)),
            [(100, 50, 1000), (150, 50, 1500)]
        );
    }

    #[test]
    fn a_region_replaces_what_it_covers() {
        let mut regions = Regions::new();
        regions.insert(region(100, 50, 1));
        regions.insert(region(120, 100, 2));
        let found: Vec<_> = regions
            .iter()
            .map(|region| (region.addr, region.len, region.file.inode))
            .collect();
        assert_eq!(found, [(100, 20, 1), (120, 100, 2)]);
        assert_eq!(regions.overlapping(119, 121).len(), 2);
        assert_eq!(regions.overlapping(220, 300).len(), 0);
    }
}
