//! Recording of stores, write-backs and fences.

use std::ops::Range;
use std::sync::atomic::Ordering::Relaxed;

use super::Active;
use crate::Site;
use crate::key::FileKey;
use crate::processor::{self, LINE};
use crate::recording::region::Region;
use crate::recording::watcher::{Watcher, WatchesMemory};
use crate::recording::{Data, EventKind, FileId, PAGE};

impl WatchesMemory for Active {
    fn mapped(&mut self, region: Region) {
        if self.files.contains_key(&region.file) {
            self.regions.insert(region);
        } else {
            self.regions.remove(region.addr, region.end());
        }
    }

    fn unmapped(&mut self, addr: usize, len: usize) {
        self.look_for_stores(addr, len);
        self.regions.remove(addr, addr + len);
    }

    fn look_for_stores(&mut self, addr: usize, len: usize) {
        if len == 0 {
            return;
        }
        let (start, end) = (addr / LINE * LINE, (addr + len).next_multiple_of(LINE));
        for (region, id) in self.regions_in(start, end) {
            if region.watch
                && let Some((start, end)) = region.overlap(start, end)
            {
                self.compare(&region, id, start, end);
            }
        }
    }

    fn stored(&mut self, addr: usize, bytes: &[u8]) {
        self.in_regions(addr, bytes.len(), |active, file, offset, part| {
            let data = active.keep(&bytes[part.clone()]);
            active.current[file.index()].write(offset, &bytes[part]);
            active.push_stored(file, offset, data, false);
        });
    }

    fn zeroed(&mut self, addr: usize, len: usize) {
        self.in_regions(addr, len, |active, file, offset, part| {
            active.current[file.index()].zero(offset, part.len());
            let data = Data::zeros(part.len());
            active.push_stored(file, offset, data, false);
        });
    }

    fn streamed(&mut self, addr: usize, bytes: &[u8], site: Site) {
        if bytes.is_empty() || self.regions_in(addr, addr + bytes.len()).is_empty() {
            return;
        }
        self.join();
        if !self.admits(site) {
            return self.stored(addr, bytes);
        }
        let (start, middle, _) = processor::split_at_lines(addr, bytes.len());
        for ends in [0..start, start + middle..bytes.len()] {
            self.stored(addr + ends.start, &bytes[ends.clone()]);
            let (addr, len) = (addr + ends.start, ends.len());
            self.in_regions(addr, len, |active, file, offset, part| {
                active.push_write_back(file, offset, part.len(), site);
            });
        }
        self.in_regions(addr + start, middle, |active, file, offset, part| {
            let data = active.keep(&bytes[start..][part.clone()]);
            active.current[file.index()].write(offset, &bytes[start..][part]);
            active.push(EventKind::Streamed {
                file,
                offset,
                data,
                site,
            });
        });
    }

    fn written_back(&mut self, addr: usize, len: usize, site: Site) {
        self.in_regions(addr, len, |active, file, offset, part| {
            active.join();
            if active.admits(site) {
                active.push_write_back(file, offset, part.len(), site);
            }
        });
    }

    fn fenced(&mut self, site: Site) {
        if self.takes_part() && self.admits(site) {
            self.push(EventKind::Fence { site });
        }
    }
}

impl Active {
    /// The regions that `addr..end` meets, with their files.
    fn regions_in(&self, addr: usize, end: usize) -> Vec<(Region, FileId)> {
        let regions = self.regions.overlapping(addr, end).into_iter();
        regions
            .filter_map(|region| Some((region, *self.files.get(&region.file)?)))
            .collect()
    }

    /// Calls `emit` with file, offset and the covered part of `addr..addr + len` for each region that it meets.
    fn in_regions(
        &mut self,
        addr: usize,
        len: usize,
        mut emit: impl FnMut(&mut Active, FileId, u64, Range<usize>),
    ) {
        if len == 0 {
            return;
        }
        for (region, id) in self.regions_in(addr, addr + len) {
            if let Some((start, end)) = region.overlap(addr, addr + len) {
                emit(self, id, region.offset_of(start), start - addr..end - addr);
            }
        }
    }

    pub(super) fn look_for_stores_everywhere(&mut self) {
        self.look_for_stores_where(|_| true);
    }

    pub(super) fn look_for_stores_to(&mut self, file: FileKey) {
        self.look_for_stores_where(|region| region.file == file);
    }

    fn look_for_stores_where(&mut self, wanted: impl Fn(&Region) -> bool) {
        let watched: Vec<_> = self
            .regions
            .iter()
            .filter(|region| region.watch && wanted(region))
            .copied()
            .collect();
        for region in watched {
            if let Some(id) = self.files.get(&region.file).copied() {
                region.touched_pages(|start, end| self.compare(&region, id, start, end));
            }
        }
    }

    /// Records each run of words that differ from what the trace says.
    fn compare(&mut self, region: &Region, id: FileId, start: usize, end: usize) {
        let mut runs: Vec<(u64, Vec<u8>)> = Vec::new();
        let current = &self.current[id.index()];
        let mut addr = start;
        while addr < end {
            let offset = region.offset_of(addr);
            let within = offset as usize % PAGE;
            let part = (PAGE - within).min(end - addr);
            let known = &current.page((offset / PAGE as u64) as usize)[within..within + part];
            for (index, known) in known.chunks_exact(8).enumerate() {
                // SAFETY: watched regions are mapped and readable, and may be read atomically, by the contract of
                // `mapped`; the address is a multiple of 8 since regions begin on pages and lines.
                let word = unsafe { line_word(addr + index * 8) }.to_ne_bytes();
                if word == known {
                    continue;
                }
                let offset = offset + index as u64 * 8;
                match runs.last_mut() {
                    Some((start, run)) if *start + run.len() as u64 == offset => run.extend(word),
                    _ => runs.push((offset, word.to_vec())),
                }
            }
            addr += part;
        }
        for (offset, run) in runs {
            let data = self.keep(&run);
            self.current[id.index()].write(offset, &run);
            self.push_stored(id, offset, data, true);
        }
    }

    fn push_stored(&mut self, file: FileId, offset: u64, data: Data, found: bool) {
        self.push(EventKind::Stored {
            file,
            offset,
            data,
            found,
        });
    }

    /// Of the lines that hold these bytes.
    fn push_write_back(&mut self, file: FileId, offset: u64, len: usize, site: Site) {
        let first = offset / LINE as u64;
        let lines = (offset + len as u64).div_ceil(LINE as u64) - first;
        self.push(EventKind::WriteBack {
            file,
            offset: first * LINE as u64,
            lines,
            site,
        });
    }
}

/// # Safety
/// `addr` is a mapped, readable word on an 8-byte boundary, and everybody else writes to it by word-sized stores.
unsafe fn line_word(addr: usize) -> u64 {
    let word = std::ptr::with_exposed_provenance_mut::<u64>(addr);
    // SAFETY: the word is mapped, readable and aligned, and others store to it by whole words.
    unsafe { std::sync::atomic::AtomicU64::from_ptr(word) }.load(Relaxed)
}
