//! Counts the syncs of everybody who calls the C library for them: peers in C, and the standard library.
//!
//! A peer that syncs less often than it promises looks fast. This program's definitions of the functions below take
//! precedence over the C library's, for shared libraries too, and do the same with one addition. durum makes its system
//! calls itself and has counters of its own, so nothing is counted twice.

use std::ffi::{c_int, c_long, c_void};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

static SYNCS: AtomicU64 = AtomicU64::new(0);

/// Syncs so far: calls of fdatasync, fsync and msync, and writes through a descriptor that syncs each write (`O_DSYNC`,
/// by which LMDB writes its meta pages).
pub fn count() -> u64 {
    SYNCS.load(Relaxed)
}

/// As the C library's.
///
/// # Safety
/// As for the C library's.
#[unsafe(no_mangle)]
unsafe extern "C" fn fdatasync(file: c_int) -> c_int {
    SYNCS.fetch_add(1, Relaxed);
    // SAFETY: as the caller promises; errors are left in `errno` by `syscall`, as they should be.
    unsafe { libc::syscall(libc::SYS_fdatasync, file) as c_int }
}

/// As the C library's.
///
/// # Safety
/// As for the C library's.
#[unsafe(no_mangle)]
unsafe extern "C" fn fsync(file: c_int) -> c_int {
    SYNCS.fetch_add(1, Relaxed);
    // SAFETY: as the caller promises.
    unsafe { libc::syscall(libc::SYS_fsync, file) as c_int }
}

/// As the C library's.
///
/// # Safety
/// As for the C library's.
#[unsafe(no_mangle)]
unsafe extern "C" fn msync(addr: *mut c_void, len: usize, flags: c_int) -> c_int {
    SYNCS.fetch_add(u64::from(flags & libc::MS_SYNC != 0), Relaxed);
    // SAFETY: as the caller promises.
    unsafe { libc::syscall(libc::SYS_msync, addr, len, flags) as c_int }
}

/// As the C library's.
///
/// # Safety
/// As for the C library's.
#[unsafe(no_mangle)]
unsafe extern "C" fn pwrite(
    file: c_int,
    bytes: *const c_void,
    len: usize,
    offset: c_long,
) -> isize {
    // SAFETY: asks for the flags of a descriptor.
    let flags = unsafe { libc::fcntl(file, libc::F_GETFL) };
    let syncs = flags != -1 && flags & libc::O_DSYNC != 0;
    SYNCS.fetch_add(u64::from(syncs), Relaxed);
    // SAFETY: as the caller promises.
    unsafe { libc::syscall(libc::SYS_pwrite64, file, bytes, len, offset) as isize }
}
