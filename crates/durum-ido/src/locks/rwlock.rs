//! `pthread_rwlock_*`.

use std::ffi::c_int;
use std::ptr;

use libc::{clockid_t, pthread_rwlock_t, pthread_rwlockattr_t, timespec};

use super::deadline::Deadline;
use super::native;
use super::read_write::ReadWriteLock;
use super::taking::{self, Wish, is_ours, this_thread};
use crate::fatal::fatal;
use crate::held::Mode;
use crate::section;

const _: () = assert!(size_of::<ReadWriteLock>() <= size_of::<pthread_rwlock_t>());

/// What a lock in the heap begins with.
fn word<'a>(lock: *mut pthread_rwlock_t) -> &'a ReadWriteLock {
    let address = lock.expose_provenance();
    if !address.is_multiple_of(align_of::<ReadWriteLock>()) {
        fatal!("the lock at {address:#x} does not lie at a multiple of 8");
    }
    // SAFETY: any aligned bytes in the heap are a word, and locks are used by these functions only.
    unsafe { &*ptr::with_exposed_provenance(address) }
}

/// As `pthread_rwlock_init`. In the heap there are none that processes share: `ENOTSUP`.
///
/// # Safety
/// As there.
pub(crate) unsafe fn init(
    lock: *mut pthread_rwlock_t,
    attributes: *const pthread_rwlockattr_t,
) -> c_int {
    if !is_ours(lock) {
        // SAFETY: as the caller promises.
        return unsafe { libc::pthread_rwlock_init(lock, attributes) };
    }
    let mut shared = 0;
    if !attributes.is_null() {
        // SAFETY: as the caller promises.
        unsafe { libc::pthread_rwlockattr_getpshared(attributes, &raw mut shared) };
    }
    if shared != libc::PTHREAD_PROCESS_PRIVATE {
        return libc::ENOTSUP;
    }
    let (start, size) = (lock.expose_provenance(), size_of::<pthread_rwlock_t>());
    // SAFETY: as the caller promises.
    unsafe { taking::make(start, size, None) };
    0
}

/// As `pthread_rwlock_destroy`.
///
/// # Safety
/// As there.
pub(crate) unsafe fn destroy(lock: *mut pthread_rwlock_t) -> c_int {
    match is_ours(lock) {
        true => 0,
        // SAFETY: as the caller promises.
        false => unsafe { libc::pthread_rwlock_destroy(lock) },
    }
}

fn take(lock: *mut pthread_rwlock_t, mode: Mode, wish: Wish<'_>) -> c_int {
    let address = lock.addr();
    let word = word(lock);
    let thread = this_thread();
    if let Some(held) = thread.held.find(address) {
        // Whether readers had one that a crash has left held, nobody knows.
        let may_be_shared = held.mode == Mode::Shared || held.is_claimed;
        return match (may_be_shared, mode, wish) {
            (true, Mode::Shared, _) => {
                section::taken(thread, address, mode);
                0
            }
            (_, _, Wish::Try) => libc::EBUSY,
            _ => libc::EDEADLK,
        };
    }
    taking::take(address, mode, wish, || match wish {
        Wish::Try => word.try_lock(mode),
        _ => word.lock(mode, wish.deadline()),
    })
}

/// As `pthread_rwlock_rdlock` and `pthread_rwlock_wrlock`.
///
/// # Safety
/// As there.
pub(crate) unsafe fn lock(lock: *mut pthread_rwlock_t, mode: Mode) -> c_int {
    if is_ours(lock) {
        return take(lock, mode, Wish::Wait);
    }
    // SAFETY: as the caller promises.
    taking::take_native(lock.addr(), mode, None, || unsafe {
        match mode {
            Mode::Shared => libc::pthread_rwlock_rdlock(lock),
            Mode::Exclusive => libc::pthread_rwlock_wrlock(lock),
        }
    })
}

/// As `pthread_rwlock_tryrdlock` and `pthread_rwlock_trywrlock`.
///
/// # Safety
/// As there.
pub(crate) unsafe fn try_lock(lock: *mut pthread_rwlock_t, mode: Mode) -> c_int {
    if is_ours(lock) {
        return take(lock, mode, Wish::Try);
    }
    // SAFETY: as the caller promises.
    taking::take_native(lock.addr(), mode, Some(libc::EBUSY), || unsafe {
        match mode {
            Mode::Shared => libc::pthread_rwlock_tryrdlock(lock),
            Mode::Exclusive => libc::pthread_rwlock_trywrlock(lock),
        }
    })
}

/// As `pthread_rwlock_clockrdlock` and `pthread_rwlock_clockwrlock`; with no clock as the ones with `timed`.
///
/// # Safety
/// As there.
pub(crate) unsafe fn lock_until(
    lock: *mut pthread_rwlock_t,
    mode: Mode,
    clock: Option<clockid_t>,
    at: *const timespec,
) -> c_int {
    if !is_ours(lock) {
        // SAFETY: as the caller promises.
        return taking::take_native(lock.addr(), mode, None, || unsafe {
            match (mode, clock) {
                (Mode::Shared, None) => native::pthread_rwlock_timedrdlock(lock, at),
                (Mode::Exclusive, None) => native::pthread_rwlock_timedwrlock(lock, at),
                (Mode::Shared, Some(clock)) => native::pthread_rwlock_clockrdlock(lock, clock, at),
                (Mode::Exclusive, Some(clock)) => {
                    native::pthread_rwlock_clockwrlock(lock, clock, at)
                }
            }
        });
    }
    // SAFETY: as the caller promises.
    let at = unsafe { *at };
    match Deadline::new(clock.unwrap_or(libc::CLOCK_REALTIME), at) {
        Some(deadline) => take(lock, mode, Wish::Until(&deadline)),
        None => libc::EINVAL,
    }
}

/// As `pthread_rwlock_unlock`. When it returns, what the section has stored is durable if it has ended.
///
/// # Safety
/// As there.
pub(crate) unsafe fn unlock(lock: *mut pthread_rwlock_t) -> c_int {
    let (address, is_ours) = (lock.addr(), is_ours(lock));
    let unknown = || match is_ours {
        true => taking::not_held(address),
        // SAFETY: as the caller promises.
        false => unsafe { libc::pthread_rwlock_unlock(lock) },
    };
    taking::release(address, unknown, |held| match is_ours {
        true => {
            word(lock).unlock(held.mode);
            0
        }
        // SAFETY: as the caller promises.
        false => unsafe { libc::pthread_rwlock_unlock(lock) },
    })
}
