//! Large pages for files that are kept in memory.
//!
//! A file on tmpfs has small pages, each of which is allocated, cleared, charged and mapped by itself: 0.8 to 1.3 us
//! for 4 KiB, where large ones take 0.3 to 0.5 us. The mount option `huge=` that would give them is mostly off. What
//! the system does on request, whatever that option says, is to put one large page in the place of small ones
//! (MADV_COLLAPSE, Linux 6.1), and it does so for ranges that have hardly any page yet: holes become zeros.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::AsFd;
use std::ptr;
use std::time::Duration;

use rustix::fs::FallocateFlags;
use rustix::mm::{MapFlags, ProtFlags};

/// From linux/magic.h.
pub(crate) const TMPFS_MAGIC: u64 = 0x0102_1994;

/// The size of a large page, on x86-64 and on AArch64 with pages of 4 KiB. Where it is another one the request fails,
/// and nothing is lost.
const LARGE_PAGE: u64 = 2 << 20;

/// A large page that took longer than this was dearer than 512 small ones: a virtual machine has given the memory back
/// to its host, which happens to what was free in large pieces for some seconds, and gets it again by small pages, 5 us
/// each. Then the rest is left to small pages: they come from the pieces that are left over, which the host does not
/// take.
const TIME_MAX: Duration = Duration::from_micros(800);

/// From linux/mman.h.
const MADV_COLLAPSE: libc::c_int = 25;

/// Has the part of the file that it is about to grow by lie in large pages, as far as the system gives them, and
/// lengthens the file for that. What has no page when this returns is still to be allocated; so are errors still to be
/// met: here none counts.
pub(crate) fn make(file: &File, growth: Range<u64>) {
    let pages = growth.start.next_multiple_of(LARGE_PAGE)..growth.end / LARGE_PAGE * LARGE_PAGE;
    if pages.is_empty() || !is_tmpfs(file) || !has_room(file, growth.end - growth.start) {
        return;
    }
    // Where it fails, as on a kernel without it, small pages are left to make, or not even these.
    let _ = collapse(file, growth.end, pages);
}

/// Whether the file system says that it has as much room: if not, nothing should be taken of it before that is an
/// error.
fn has_room(file: &File, bytes: u64) -> bool {
    rustix::fs::fstatvfs(file).is_ok_and(|system| {
        // A file system without blocks is one without a limit.
        system.f_blocks == 0 || bytes <= system.f_bavail.saturating_mul(system.f_frsize)
    })
}

fn collapse(file: &File, file_len: u64, pages: Range<u64>) -> io::Result<()> {
    file.set_len(file_len)?;
    for start in pages.clone().step_by(LARGE_PAGE as usize) {
        // A range without any page is taken for one that was cut off.
        rustix::fs::fallocate(file, FallocateFlags::empty(), start, 1)?;
    }
    let len = (pages.end - pages.start) as usize;
    // Addresses for a mapping that begins where a large page may.
    let room = len + LARGE_PAGE as usize;
    // SAFETY: a new mapping at an address of the kernel's choice.
    let reserved = unsafe {
        rustix::mm::mmap_anonymous(
            ptr::null_mut(),
            room,
            ProtFlags::empty(),
            MapFlags::PRIVATE | MapFlags::NORESERVE,
        )
    }?;
    let offset = reserved.addr().next_multiple_of(LARGE_PAGE as usize) - reserved.addr();
    let start = reserved.wrapping_byte_add(offset);
    // SAFETY: replaces a part of the mapping made above, which nobody else knows.
    let mapped = unsafe {
        rustix::mm::mmap(
            start,
            len,
            ProtFlags::READ,
            MapFlags::SHARED | MapFlags::FIXED,
            file.as_fd(),
            pages.start,
        )
    };
    let made = mapped.map(|start| {
        let mut pages = (0..len).step_by(LARGE_PAGE as usize);
        pages.all(|at| {
            let before = thread_time();
            // SAFETY: the mapping made above. What the file says does not change.
            let code = unsafe {
                libc::madvise(
                    start.wrapping_byte_add(at),
                    LARGE_PAGE as usize,
                    MADV_COLLAPSE,
                )
            };
            code == 0 && thread_time() - before < TIME_MAX
        })
    });
    // SAFETY: both mappings are ours, and nobody uses them any more. An error would leave addresses taken, harmless.
    let _ = unsafe { rustix::mm::munmap(reserved, room) };
    made.map(drop).map_err(io::Error::from)
}

/// The processor's time that this thread has taken.
fn thread_time() -> Duration {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // The C library's clock: rustix reads the vdso by itself, which Valgrind hides.
    // SAFETY: the place is ours; the clock is there since Linux 2.6.12, and otherwise the time stays 0.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Whether a file is kept in memory by tmpfs.
pub(crate) fn is_tmpfs(file: &File) -> bool {
    rustix::fs::fstatfs(file).is_ok_and(|system| system.f_type as u64 == TMPFS_MAGIC)
}
