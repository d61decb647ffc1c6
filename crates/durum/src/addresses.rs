//! Ranges of addresses that nobody else in this process gets: reserved whole where the process may have so many, and
//! where it may not, as far as they are needed.
//!
//! A reservation takes no memory: nothing in it can be read or written, and the kernel commits none for it, whatever
//! `vm.overcommit_memory` says. It counts for the limit of address space (`RLIMIT_AS`), which is what makes the second
//! way necessary.

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::path::Path;
use std::ptr;
use std::sync::{Mutex, PoisonError};

use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags};
use rustix::process::{Resource, getrlimit};

use crate::error::Error;
use crate::primitive::locked;

/// A range of addresses of this process.
#[derive(Debug)]
pub(crate) struct Addresses {
    start: usize,
    size: usize,
    is_whole: bool,
    /// What is needed of it can be read and written; else it is only reserved, until somebody maps something there.
    is_memory: bool,
    /// What was needed so far: start and end. Parts do not overlap.
    parts: Mutex<BTreeMap<usize, usize>>,
}

/// Why addresses were refused.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Refused {
    errno: Errno,
    start: usize,
    size: usize,
    what: MappingKind,
}

/// What a mapping counts for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MappingKind {
    /// For address space only.
    Addresses,
    /// For data, too: private pages that can be written.
    Data,
}

impl Addresses {
    /// The range at a place of its own, in which others map their files.
    pub(crate) fn at(start: usize, size: usize) -> Result<Addresses, Refused> {
        Self::new(start, size, false)
    }

    /// `size` bytes of memory anywhere, zero at first; where the process may not have so many, those at `place`.
    pub(crate) fn memory(size: usize, place: usize) -> Result<Addresses, Refused> {
        match reserve(0, size, MapFlags::empty()) {
            Ok(start) => Ok(Self::over(start, size, true, true)),
            Err(_) => Self::new(place, size, true),
        }
    }

    fn new(start: usize, size: usize, is_memory: bool) -> Result<Addresses, Refused> {
        match reserve(start, size, MapFlags::FIXED_NOREPLACE) {
            Ok(_) => Ok(Self::over(start, size, true, is_memory)),
            // More than the process may have.
            Err(Refused { errno, .. }) if errno == Errno::NOMEM => {
                Ok(Self::over(start, size, false, is_memory))
            }
            Err(refused) => Err(refused),
        }
    }

    fn over(start: usize, size: usize, is_whole: bool, is_memory: bool) -> Self {
        Self {
            start,
            size,
            is_whole,
            is_memory,
            parts: Mutex::default(),
        }
    }

    /// Whether all of it is reserved.
    pub(crate) fn is_whole(&self) -> bool {
        self.is_whole
    }

    /// Makes sure of a part, until it is given back.
    pub(crate) fn need(&self, part: Range<usize>) -> Result<(), Refused> {
        if self.is_whole && !self.is_memory {
            return Ok(());
        }
        let mut parts = locked(&self.parts);
        let mut at = part.start;
        while at < part.end {
            // Only the last part that starts at or before an address can hold it.
            let held = parts.range(..=at).next_back().map(|(_, &end)| end);
            if let Some(end) = held.filter(|&end| end > at) {
                at = end;
                continue;
            }
            let next = parts.range(at..).next().map_or(part.end, |(&next, _)| next);
            let end = next.min(part.end);
            self.take(at..end)?;
            parts.insert(at, end);
            at = end;
        }
        Ok(())
    }

    /// Ends what is mapped in a part. Nobody else gets the addresses of a range that is reserved whole.
    pub(crate) fn give_back(&self, part: Range<usize>) {
        if self.is_whole {
            // Failing leaves the old mapping, which harms nobody: the next one replaces it.
            let _ = map(part.start, part.len(), ProtFlags::empty(), MapFlags::FIXED);
            return;
        }
        let mut parts = locked(&self.parts);
        let met: Vec<_> = parts
            .range(..part.end)
            .map(|(&start, &end)| start..end)
            .filter(|held| held.end > part.start)
            .collect();
        for held in met {
            parts.remove(&held.start);
            let (start, end) = (held.start.max(part.start), held.end.min(part.end));
            unmap(start..end);
            if held.start < start {
                parts.insert(held.start, start);
            }
            if end < held.end {
                parts.insert(end, held.end);
            }
        }
    }

    fn take(&self, part: Range<usize>) -> Result<(), Refused> {
        let how = match self.is_whole {
            true => MapFlags::FIXED,
            false => MapFlags::FIXED_NOREPLACE,
        };
        let access = match self.is_memory {
            true => ProtFlags::READ | ProtFlags::WRITE,
            false => ProtFlags::empty(),
        };
        map(part.start, part.len(), access, how).map(drop)
    }
}

impl Drop for Addresses {
    fn drop(&mut self) {
        if self.is_whole {
            return unmap(self.start..self.start + self.size);
        }
        let parts = self.parts.get_mut().unwrap_or_else(PoisonError::into_inner);
        for (&start, &end) in parts.iter() {
            unmap(start..end);
        }
    }
}

/// Memory beside a pool: a byte for each byte of its puddles, at the same distance from all of them, zero when the pool
/// is opened.
#[derive(Debug)]
pub(crate) struct Beside {
    memory: Addresses,
    /// What to add to an address in a puddle.
    distance: usize,
}

impl Beside {
    /// For puddles in the space of `space_size` bytes at `base`. It takes addresses and memory as puddles are mapped.
    pub(crate) fn new(base: usize, space_size: usize) -> Result<Beside, Refused> {
        // The space and the second range are followed by nothing of a store's.
        let memory = Addresses::memory(space_size, base + 2 * space_size)?;
        let distance = memory.start.wrapping_sub(base);
        Ok(Beside { memory, distance })
    }

    pub(crate) fn distance(&self) -> usize {
        self.distance
    }

    /// A puddle is mapped: makes sure of its memory, which stays until this is dropped.
    pub(crate) fn need(&self, address: usize, size: usize) -> Result<(), Refused> {
        let start = address.wrapping_add(self.distance);
        self.memory.need(start..start + size)
    }
}

/// Ends a mapping of ours that nobody uses any more.
fn unmap(range: Range<usize>) {
    let start = ptr::with_exposed_provenance_mut(range.start);
    // SAFETY: as the callers know.
    let _ = unsafe { rustix::mm::munmap(start, range.len()) };
}

fn reserve(start: usize, size: usize, how: MapFlags) -> Result<usize, Refused> {
    map(start, size, ProtFlags::empty(), how)
}

fn map(start: usize, size: usize, access: ProtFlags, how: MapFlags) -> Result<usize, Refused> {
    let what = match access.contains(ProtFlags::WRITE) {
        true => MappingKind::Data,
        false => MappingKind::Addresses,
    };
    let refused = |errno| Refused {
        errno,
        start,
        size,
        what,
    };
    // SAFETY: a mapping where nothing is, or over a reservation of ours in which nothing is mapped.
    let mapped = unsafe {
        rustix::mm::mmap_anonymous(
            ptr::with_exposed_provenance_mut(start),
            size,
            access,
            MapFlags::PRIVATE | MapFlags::NORESERVE | how,
        )
    }
    .map_err(refused)?;
    let found = mapped.expose_provenance();
    if start != 0 && found != start {
        // A kernel that does not know the flag takes the address as a hint.
        unmap(found..found + size);
        return Err(refused(Errno::EXIST));
    }
    Ok(found)
}

impl Refused {
    /// The range belongs to somebody else already.
    pub(crate) fn taken(start: usize, size: usize) -> Self {
        Self {
            errno: Errno::EXIST,
            start,
            size,
            what: MappingKind::Addresses,
        }
    }

    /// The error for who opens `store`.
    pub(crate) fn error(self, store: &Path) -> Error {
        use durum_service::Error::{AddressConflict, AddressSpace, Io};
        let path = store.to_owned();
        Error::Store(match self.errno {
            Errno::EXIST => AddressConflict {
                path,
                other: None,
                address: self.start as u64,
                size: self.size as u64,
            },
            Errno::NOMEM | Errno::AGAIN => AddressSpace {
                path,
                size: self.size as u64,
                reason: reason(self.errno, self.size as u64, self.what),
            },
            errno => Io {
                operation: "reserving addresses",
                path,
                offset: None,
                source: errno.into(),
            },
        })
    }
}

/// The error of a system call that makes mappings for the store at `path`.
pub(crate) fn mapping_failed(
    operation: &'static str,
    errno: Errno,
    size: usize,
    what: MappingKind,
    path: &Path,
) -> Error {
    match errno {
        Errno::NOMEM | Errno::AGAIN => Refused {
            errno,
            start: 0,
            size,
            what,
        }
        .error(path),
        errno => Error::system(operation, errno),
    }
}

/// Which limit it is that a process has met, and what to do.
fn reason(errno: Errno, size: u64, what: MappingKind) -> String {
    let used = Used::of_process();
    let passes = |limit: Resource, used: u64| {
        let limit = getrlimit(limit).current?;
        (used.saturating_add(size) > limit).then_some(limit)
    };
    if let Some(limit) = passes(Resource::As, used.addresses) {
        return format!(
            "this process may have {limit} bytes of address space (RLIMIT_AS: `ulimit -v`, LimitAS= of systemd) and has {}; raise that, \
             or use smaller pools",
            used.addresses
        );
    }
    if what == MappingKind::Data
        && let Some(limit) = passes(Resource::Data, used.data)
    {
        return format!(
            "this process may have {limit} bytes of private memory (RLIMIT_DATA: `ulimit -d`, LimitDATA= of systemd) and has {}; raise \
             that, or use smaller pools",
            used.data
        );
    }
    let setting = |name: &str| {
        let text = std::fs::read_to_string(format!("/proc/sys/vm/{name}")).ok()?;
        text.trim().parse::<u64>().ok()
    };
    // The last ones cannot be had where one mapping would become three.
    if let Some(max) = setting("max_map_count")
        && used.mappings + 2 >= max
    {
        return format!(
            "this process has {} mappings, and the kernel allows {max} (vm.max_map_count); raise that, or open fewer pools",
            used.mappings
        );
    }
    if setting("overcommit_memory") == Some(2) {
        return "the kernel promises no more memory than it has (vm.overcommit_memory=2); raise vm.overcommit_ratio, or set \
                vm.overcommit_memory to 0 or 1"
            .into();
    }
    format!(
        "{}; the machine has too few addresses for the store's base: see `durum init --base --space`",
        io::Error::from(errno)
    )
}

/// What a process has of what limits count.
#[derive(Default)]
struct Used {
    /// Bytes.
    addresses: u64,
    /// Bytes of private pages that can be written, without stacks.
    data: u64,
    mappings: u64,
}

impl Used {
    /// Zeros where /proc does not tell.
    fn of_process() -> Self {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let bytes = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            let number =
                line.and_then(|rest| rest.trim().trim_end_matches(" kB").parse::<u64>().ok());
            number.unwrap_or(0) << 10
        };
        let mappings = std::fs::read("/proc/self/maps").unwrap_or_default();
        Self {
            addresses: bytes("VmSize:"),
            data: bytes("VmData:"),
            mappings: mappings.iter().filter(|byte| **byte == b'\n').count() as u64,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    const PAGE: usize = 4096;

    /// A range that nobody has, and how it looks when the process may not have it whole. It is far from where the
    /// system puts what other tests map meanwhile.
    fn in_parts(is_memory: bool) -> Addresses {
        static NEXT: AtomicUsize = AtomicUsize::new(0x1000_0000_0000);
        let start = NEXT.fetch_add(64 * PAGE, Ordering::Relaxed);
        Addresses::over(start, 64 * PAGE, false, is_memory)
    }

    #[test]
    fn parts_that_meet_and_overlap_are_taken_once() {
        let range = in_parts(true);
        let at = |page: usize| range.start + page * PAGE;
        for part in [(3, 5), (8, 9), (0, 20), (4, 8), (10, 64)] {
            range.need(at(part.0)..at(part.1)).unwrap();
        }
        for page in 0..64 {
            let word: *mut u8 = ptr::with_exposed_provenance_mut(at(page));
            // SAFETY: memory of the range.
            unsafe { word.write(word.read() + 1) };
        }
    }

    #[test]
    fn what_is_given_back_is_free_and_can_be_had_again() {
        let range = in_parts(true);
        let at = |page: usize| range.start + page * PAGE;
        range.need(at(0)..at(10)).unwrap();
        range.need(at(20)..at(30)).unwrap();
        range.give_back(at(5)..at(25));
        let parts = range.parts.lock().unwrap().clone();
        assert_eq!(parts, BTreeMap::from([(at(0), at(5)), (at(25), at(30))]));
        reserve(at(6), PAGE, MapFlags::FIXED_NOREPLACE).unwrap();
        assert!(range.need(at(0)..at(30)).is_err());
        unmap(at(6)..at(7));
        range.need(at(0)..at(30)).unwrap();
    }

    #[test]
    fn a_part_that_somebody_else_has_is_a_conflict() {
        let range = in_parts(false);
        let start = range.start + 8 * PAGE;
        reserve(start, PAGE, MapFlags::FIXED_NOREPLACE).unwrap();
        range.need(range.start..range.start + PAGE).unwrap();
        let refused = range.need(range.start..range.start + 64 * PAGE);
        assert_eq!(refused.unwrap_err().errno, Errno::EXIST);
        unmap(start..start + PAGE);
    }
}
