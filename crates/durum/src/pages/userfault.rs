//! The kernel notes which pages were written: userfaultfd with asynchronous write protection.
//!
//! A mapping is registered once. Scanning it (`PAGEMAP_SCAN`) tells the pages that are not protected, which are those
//! written since they were, and protects them again. A write to a protected page lifts its protection, without a
//! message to anybody. Documented in Linux: Documentation/admin-guide/mm/userfaultfd.rst,
//! Documentation/admin-guide/mm/pagemap.rst.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::sync::atomic::Ordering;

use crate::error::{Error, Result};
use crate::fault::OnceInProcess;
use crate::mapping::Mapping;
use crate::userfaultfd::{Accesses, Mode, Userfaultfd, ioctl};

/// include/uapi/linux/userfaultfd.h: holes in a mapping are protected, too.
const UFFD_FEATURE_WP_UNPOPULATED: u64 = 1 << 13;
const UFFD_FEATURE_WP_ASYNC: u64 = 1 << 15;

/// include/uapi/linux/fs.h
mod uapi {
    pub(super) const PAGEMAP_SCAN: libc::Ioctl = 0xc060_6610_u32 as libc::Ioctl;
    pub(super) const PAGE_IS_WRITTEN: u64 = 1 << 1;
    /// Protects what was found.
    pub(super) const PM_SCAN_WP_MATCHING: u64 = 1 << 0;
    /// Fails where pages are not watched.
    pub(super) const PM_SCAN_CHECK_WPASYNC: u64 = 1 << 1;

    #[repr(C)]
    #[derive(Clone, Copy, Default)]
    pub(super) struct Region {
        pub(super) start: u64,
        pub(super) end: u64,
        pub(super) categories: u64,
    }

    #[repr(C)]
    #[derive(Default)]
    pub(super) struct Scan {
        pub(super) size: u64,
        pub(super) flags: u64,
        pub(super) start: u64,
        pub(super) end: u64,
        pub(super) walk_end: u64,
        pub(super) vec: u64,
        pub(super) vec_len: u64,
        pub(super) max_pages: u64,
        pub(super) category_inverted: u64,
        pub(super) category_mask: u64,
        pub(super) category_anyof_mask: u64,
        pub(super) return_mask: u64,
    }

    const _: () = assert!(size_of::<Region>() == 24);
    const _: () = assert!(size_of::<Scan>() == 96);
}

use uapi::{Region, Scan};

/// Regions that one system call can tell.
const REGIONS: usize = 256;

/// What a process has, for all its stores.
struct Kernel {
    faults: Userfaultfd,
    pagemap: File,
}

impl Kernel {
    fn open() -> io::Result<Self> {
        // Asynchronous protection handles the kernel's own writes all the same.
        let features = UFFD_FEATURE_WP_ASYNC | UFFD_FEATURE_WP_UNPOPULATED;
        let faults = Userfaultfd::open(Accesses::Program, features)?;
        let pagemap = File::open("/proc/self/pagemap")?;
        Ok(Self { faults, pagemap })
    }

    fn get() -> Result<&'static Self> {
        // Both descriptors are about the memory of the process that opened them.
        static KERNEL: OnceInProcess<io::Result<Kernel>> = OnceInProcess::new();
        KERNEL.get_or_init(Self::open).as_ref().map_err(|error| {
            let source = match error.raw_os_error() {
                Some(code) => io::Error::from_raw_os_error(code),
                None => error.kind().into(),
            };
            Error::system("opening a userfaultfd for write protection", source)
        })
    }

    /// Protects all pages of a range, and adds those to `found` that were not.
    fn scan(
        &self,
        range: Range<usize>,
        mut found: Option<&mut Vec<Range<usize>>>,
    ) -> io::Result<()> {
        let mut regions = [Region::default(); REGIONS];
        let mut scan = Scan {
            size: size_of::<Scan>() as u64,
            flags: uapi::PM_SCAN_WP_MATCHING | uapi::PM_SCAN_CHECK_WPASYNC,
            start: range.start as u64,
            end: range.end as u64,
            category_mask: uapi::PAGE_IS_WRITTEN,
            return_mask: uapi::PAGE_IS_WRITTEN,
            ..Scan::default()
        };
        if found.is_some() {
            scan.vec = regions.as_mut_ptr().expose_provenance() as u64;
            scan.vec_len = REGIONS as u64;
        }
        while scan.start < scan.end {
            let count = ioctl(self.pagemap.as_raw_fd(), uapi::PAGEMAP_SCAN, &mut scan)?;
            if let Some(found) = &mut found {
                found.extend(
                    regions[..count as usize]
                        .iter()
                        .map(|region| region.start as usize..region.end as usize),
                );
            }
            if scan.walk_end <= scan.start {
                return Err(io::Error::other("the scan does not go on"));
            }
            scan.start = scan.walk_end;
        }
        Ok(())
    }
}

pub(super) fn start(puddle: &Mapping, heap: Range<usize>, is_quiet: bool) -> Result<()> {
    let kernel = Kernel::get()?;
    // A mapping stays registered until the puddle is unmapped, and with that this struct is gone. Only who closed the
    // gate comes here.
    let is_registered = &puddle.tracking.is_registered;
    let is_new = !is_registered.load(Ordering::Relaxed);
    if is_new {
        kernel
            .faults
            .register(&heap, Mode::WriteProtection)
            .map_err(|error| Error::system("watching a puddle's pages", error))?;
        is_registered.store(true, Ordering::Relaxed);
    }
    if is_new || !is_quiet {
        kernel
            .scan(heap, None)
            .map_err(|error| Error::system("protecting a puddle's pages", error))?;
    }
    Ok(())
}

pub(super) fn stop(heap: Range<usize>, found: &mut Vec<Range<usize>>) -> Result<()> {
    Kernel::get()?
        .scan(heap, Some(found))
        .map_err(|error| Error::system("finding the pages that changed", error))
}
