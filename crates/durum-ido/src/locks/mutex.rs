//! `pthread_mutex_*`. In the heap: the word of the lock, and at byte 16 its kind, where the initializers of the
//! system's header have it.

use std::ffi::c_int;
use std::ptr;

use libc::{pthread_mutex_t, pthread_mutexattr_t, timespec};

use super::claims;
use super::deadline::Deadline;
use super::native;
use super::taking::{self, Wish, is_ours, this_thread};
use super::word::LockWord;
use crate::fatal::fatal;
use crate::held::Mode;
use crate::section;

/// Where the kind lies.
const KIND: usize = 16;
const NORMAL: c_int = libc::PTHREAD_MUTEX_NORMAL;
const RECURSIVE: c_int = libc::PTHREAD_MUTEX_RECURSIVE;
const ERRORCHECK: c_int = libc::PTHREAD_MUTEX_ERRORCHECK;

const _: () = assert!(size_of::<pthread_mutex_t>() >= KIND + 4);

/// The word of a lock in the heap.
#[inline]
fn word<'a>(lock: *mut pthread_mutex_t) -> &'a LockWord {
    let address = lock.expose_provenance();
    if !address.is_multiple_of(align_of::<LockWord>()) {
        fatal!("the lock at {address:#x} does not lie at a multiple of 4");
    }
    // SAFETY: any aligned bytes in the heap are a word, and locks are used by these functions only.
    unsafe { &*ptr::with_exposed_provenance(address) }
}

/// # Safety
/// A lock in the heap.
unsafe fn kind(lock: *const pthread_mutex_t) -> c_int {
    // SAFETY: inside the lock, and changed when it is made only.
    unsafe { lock.byte_add(KIND).cast::<c_int>().read() }
}

/// As `pthread_mutex_init`. In the heap there are no robust locks, and none that processes share: `ENOTSUP`.
///
/// # Safety
/// As there.
pub(crate) unsafe fn init(
    lock: *mut pthread_mutex_t,
    attributes: *const pthread_mutexattr_t,
) -> c_int {
    if !is_ours(lock) {
        // SAFETY: as the caller promises.
        return unsafe { libc::pthread_mutex_init(lock, attributes) };
    }
    let (mut kind, mut shared, mut robust) = (NORMAL, 0, 0);
    if !attributes.is_null() {
        // SAFETY: as the caller promises.
        unsafe {
            native::pthread_mutexattr_gettype(attributes, &raw mut kind);
            libc::pthread_mutexattr_getpshared(attributes, &raw mut shared);
            libc::pthread_mutexattr_getrobust(attributes, &raw mut robust);
        }
    }
    if shared != libc::PTHREAD_PROCESS_PRIVATE || robust != libc::PTHREAD_MUTEX_STALLED {
        return libc::ENOTSUP;
    }
    // SAFETY: as the caller promises.
    unsafe { make(lock, kind) };
    0
}

/// # Safety
/// A place in the heap that nobody uses.
pub(super) unsafe fn make(lock: *mut pthread_mutex_t, kind: c_int) {
    let (start, size) = (lock.expose_provenance(), size_of::<pthread_mutex_t>());
    // SAFETY: as the caller promises.
    unsafe { taking::make(start, size, Some((KIND, kind as u32))) };
}

/// As `pthread_mutex_destroy`.
///
/// # Safety
/// As there.
pub(crate) unsafe fn destroy(lock: *mut pthread_mutex_t) -> c_int {
    match is_ours(lock) {
        true => 0,
        // SAFETY: as the caller promises.
        false => unsafe { libc::pthread_mutex_destroy(lock) },
    }
}

/// # Safety
/// A lock in the heap.
#[inline]
unsafe fn take(lock: *mut pthread_mutex_t, wish: Wish<'_>) -> c_int {
    // One that is free the thread does not hold.
    let address = lock.addr();
    if claims::is_free(address, Mode::Exclusive) && word(lock).try_lock() {
        section::taken_first(this_thread(), address, Mode::Exclusive);
        return 0;
    }
    // SAFETY: as the caller promises.
    unsafe { take_slowly(lock, wish) }
}

/// # Safety
/// As for [`take`].
#[cold]
unsafe fn take_slowly(lock: *mut pthread_mutex_t, wish: Wish<'_>) -> c_int {
    let address = lock.addr();
    let word = word(lock);
    let thread = this_thread();
    if thread.held.find(address).is_some() {
        // SAFETY: as the caller promises.
        return match (unsafe { kind(lock) }, wish) {
            (RECURSIVE, _) => {
                section::taken(thread, address, Mode::Exclusive);
                0
            }
            (_, Wish::Try) => libc::EBUSY,
            (ERRORCHECK, _) => libc::EDEADLK,
            _ => fatal!("a thread waits for the lock at {address:#x}, which it holds itself"),
        };
    }
    taking::take(address, Mode::Exclusive, wish, || match wish {
        Wish::Try => word.try_lock(),
        _ => word.lock(wish.deadline()),
    })
}

/// As `pthread_mutex_lock`.
///
/// # Safety
/// As there.
pub(crate) unsafe fn lock(lock: *mut pthread_mutex_t) -> c_int {
    // SAFETY: as the caller promises.
    unsafe {
        match is_ours(lock) {
            true => take(lock, Wish::Wait),
            false => taking::take_native(lock.addr(), Mode::Exclusive, None, || {
                libc::pthread_mutex_lock(lock)
            }),
        }
    }
}

/// As `pthread_mutex_trylock`.
///
/// # Safety
/// As there.
pub(crate) unsafe fn try_lock(lock: *mut pthread_mutex_t) -> c_int {
    // SAFETY: as the caller promises.
    unsafe {
        match is_ours(lock) {
            true => take(lock, Wish::Try),
            false => taking::take_native(lock.addr(), Mode::Exclusive, Some(libc::EBUSY), || {
                libc::pthread_mutex_trylock(lock)
            }),
        }
    }
}

/// As `pthread_mutex_clocklock`, and with the usual clock as `pthread_mutex_timedlock`.
///
/// # Safety
/// As there.
pub(crate) unsafe fn lock_until(
    lock: *mut pthread_mutex_t,
    clock: libc::clockid_t,
    at: *const timespec,
) -> c_int {
    // SAFETY: as the caller promises.
    unsafe {
        if !is_ours(lock) {
            return taking::take_native(lock.addr(), Mode::Exclusive, None, || {
                native::pthread_mutex_clocklock(lock, clock, at)
            });
        }
        match Deadline::new(clock, *at) {
            Some(deadline) => take(lock, Wish::Until(&deadline)),
            None => libc::EINVAL,
        }
    }
}

/// As `pthread_mutex_unlock`. When it returns, what the section has stored is durable if it has ended.
///
/// # Safety
/// As there.
pub(crate) unsafe fn unlock(lock: *mut pthread_mutex_t) -> c_int {
    let address = lock.addr();
    if is_ours(lock) && section::release_at_once(this_thread(), address) {
        word(lock).unlock();
        return 0;
    }
    // SAFETY: as the caller promises.
    unsafe { unlock_slowly(lock) }
}

/// # Safety
/// As for [`unlock`].
unsafe fn unlock_slowly(lock: *mut pthread_mutex_t) -> c_int {
    let address = lock.addr();
    if !is_ours(lock) {
        return taking::release(
            address,
            // SAFETY: as the caller promises.
            || unsafe { libc::pthread_mutex_unlock(lock) },
            // SAFETY: as the caller promises.
            |_| unsafe { libc::pthread_mutex_unlock(lock) },
        );
    }
    let unknown = || {
        // SAFETY: as the caller promises.
        match unsafe { kind(lock) } {
            RECURSIVE | ERRORCHECK => libc::EPERM,
            _ => taking::not_held(address),
        }
    };
    taking::release(address, unknown, |_| {
        word(lock).unlock();
        0
    })
}
