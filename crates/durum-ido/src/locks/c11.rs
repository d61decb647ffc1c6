//! `mtx_*` and `cnd_*` of C11: the same locks, whose functions have other results.

use std::ffi::c_int;

use libc::{pthread_cond_t, pthread_mutex_t, timespec};

use super::cond::{self, Until};
use super::taking::is_ours;
use super::{mutex, native};
use crate::held::Mode;
use crate::locks::taking;

const BUSY: c_int = 1;
const ERROR: c_int = 2;
const TIMED_OUT: c_int = 4;
/// A bit of the kind.
const RECURSIVE: c_int = 1;

fn result_of(error: c_int) -> c_int {
    match error {
        0 => 0,
        libc::EBUSY => BUSY,
        libc::ETIMEDOUT => TIMED_OUT,
        _ => ERROR,
    }
}

/// As `mtx_init`.
///
/// # Safety
/// As there.
pub(crate) unsafe fn mtx_init(lock: *mut pthread_mutex_t, kind: c_int) -> c_int {
    // SAFETY: as the caller promises.
    unsafe {
        if !is_ours(lock) {
            return native::mtx_init(lock, kind);
        }
        let kind = match kind & RECURSIVE {
            0 => libc::PTHREAD_MUTEX_NORMAL,
            _ => libc::PTHREAD_MUTEX_RECURSIVE,
        };
        mutex::make(lock, kind);
    }
    0
}

/// As `mtx_destroy`.
///
/// # Safety
/// As there.
pub(crate) unsafe fn mtx_destroy(lock: *mut pthread_mutex_t) {
    if !is_ours(lock) {
        // SAFETY: as the caller promises.
        unsafe { native::mtx_destroy(lock) };
    }
}

/// As `mtx_lock`.
///
/// # Safety
/// As there.
pub(crate) unsafe fn mtx_lock(lock: *mut pthread_mutex_t) -> c_int {
    // SAFETY: as the caller promises.
    unsafe {
        match is_ours(lock) {
            true => result_of(mutex::lock(lock)),
            false => taking::take_native(lock.addr(), Mode::Exclusive, None, || {
                native::mtx_lock(lock)
            }),
        }
    }
}

/// As `mtx_trylock`.
///
/// # Safety
/// As there.
pub(crate) unsafe fn mtx_trylock(lock: *mut pthread_mutex_t) -> c_int {
    // SAFETY: as the caller promises.
    unsafe {
        match is_ours(lock) {
            true => result_of(mutex::try_lock(lock)),
            false => taking::take_native(lock.addr(), Mode::Exclusive, Some(BUSY), || {
                native::mtx_trylock(lock)
            }),
        }
    }
}

/// As `mtx_timedlock`.
///
/// # Safety
/// As there.
pub(crate) unsafe fn mtx_timedlock(lock: *mut pthread_mutex_t, at: *const timespec) -> c_int {
    // SAFETY: as the caller promises.
    unsafe {
        if is_ours(lock) {
            return result_of(mutex::lock_until(lock, libc::CLOCK_REALTIME, at));
        }
        taking::take_native(lock.addr(), Mode::Exclusive, None, || {
            native::mtx_timedlock(lock, at)
        })
    }
}

/// As `mtx_unlock`. When it returns, what the section has stored is durable if it has ended.
///
/// # Safety
/// As there.
pub(crate) unsafe fn mtx_unlock(lock: *mut pthread_mutex_t) -> c_int {
    if is_ours(lock) {
        // SAFETY: as the caller promises.
        return result_of(unsafe { mutex::unlock(lock) });
    }
    // SAFETY: as the caller promises.
    let free = || unsafe { native::mtx_unlock(lock) };
    taking::release(lock.addr(), free, |_| free())
}

/// As `cnd_init`.
///
/// # Safety
/// As there.
pub(crate) unsafe fn cnd_init(cond: *mut pthread_cond_t) -> c_int {
    // SAFETY: as the caller promises.
    unsafe {
        match is_ours(cond) {
            true => result_of(cond::init(cond, std::ptr::null())),
            false => native::cnd_init(cond),
        }
    }
}

/// As `cnd_wait` and `cnd_timedwait`: a C11 condition is one of the system's threads.
///
/// # Safety
/// As there.
pub(crate) unsafe fn cnd_wait(
    cond: *mut pthread_cond_t,
    lock: *mut pthread_mutex_t,
    until: Until,
) -> c_int {
    // SAFETY: as the caller promises.
    result_of(unsafe { cond::wait(cond, lock, until) })
}
