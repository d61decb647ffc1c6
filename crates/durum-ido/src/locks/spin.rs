//! `pthread_spin_*`.

use std::ffi::c_int;
use std::ptr;

use libc::pthread_spinlock_t;

use super::taking::{self, Wish, is_ours, this_thread};
use super::word::LockWord;
use crate::fatal::fatal;
use crate::held::Mode;

/// The word of a lock in the heap: it is one.
fn word<'a>(lock: *mut pthread_spinlock_t) -> &'a LockWord {
    // SAFETY: any aligned bytes in the heap are a word, and locks are used by these functions only.
    unsafe { &*ptr::with_exposed_provenance(lock.expose_provenance()) }
}

/// As `pthread_spin_init`. In the heap there are none that processes share: `ENOTSUP`.
///
/// # Safety
/// As there.
pub(crate) unsafe fn init(lock: *mut pthread_spinlock_t, shared: c_int) -> c_int {
    if !is_ours(lock) {
        // SAFETY: as the caller promises.
        return unsafe { libc::pthread_spin_init(lock, shared) };
    }
    if shared != libc::PTHREAD_PROCESS_PRIVATE {
        return libc::ENOTSUP;
    }
    let (start, size) = (lock.expose_provenance(), size_of::<pthread_spinlock_t>());
    // SAFETY: as the caller promises.
    unsafe { taking::make(start, size, None) };
    0
}

/// As `pthread_spin_destroy`.
///
/// # Safety
/// As there.
pub(crate) unsafe fn destroy(lock: *mut pthread_spinlock_t) -> c_int {
    match is_ours(lock) {
        true => 0,
        // SAFETY: as the caller promises.
        false => unsafe { libc::pthread_spin_destroy(lock) },
    }
}

fn take(lock: *mut pthread_spinlock_t, wish: Wish<'_>) -> c_int {
    let address = lock.addr();
    if this_thread().held.find(address).is_some() {
        return match wish {
            Wish::Try => libc::EBUSY,
            _ => fatal!("a thread waits for the lock at {address:#x}, which it holds itself"),
        };
    }
    let word = word(lock);
    taking::take(address, Mode::Exclusive, wish, || match wish {
        Wish::Try => word.try_lock(),
        _ => {
            word.lock_awake();
            true
        }
    })
}

/// As `pthread_spin_lock`.
///
/// # Safety
/// As there.
pub(crate) unsafe fn lock(lock: *mut pthread_spinlock_t) -> c_int {
    match is_ours(lock) {
        true => take(lock, Wish::Wait),
        // SAFETY: as the caller promises.
        false => taking::take_native(lock.addr(), Mode::Exclusive, None, || unsafe {
            libc::pthread_spin_lock(lock)
        }),
    }
}

/// As `pthread_spin_trylock`.
///
/// # Safety
/// As there.
pub(crate) unsafe fn try_lock(lock: *mut pthread_spinlock_t) -> c_int {
    match is_ours(lock) {
        true => take(lock, Wish::Try),
        // SAFETY: as the caller promises.
        false => taking::take_native(lock.addr(), Mode::Exclusive, Some(libc::EBUSY), || unsafe {
            libc::pthread_spin_trylock(lock)
        }),
    }
}

/// As `pthread_spin_unlock`. When it returns, what the section has stored is durable if it has ended.
///
/// # Safety
/// As there.
pub(crate) unsafe fn unlock(lock: *mut pthread_spinlock_t) -> c_int {
    let (address, is_ours) = (lock.addr(), is_ours(lock));
    let unknown = || match is_ours {
        true => taking::not_held(address),
        // SAFETY: as the caller promises.
        false => unsafe { libc::pthread_spin_unlock(lock) },
    };
    taking::release(address, unknown, |_| match is_ours {
        true => {
            word(lock).unlock();
            0
        }
        // SAFETY: as the caller promises.
        false => unsafe { libc::pthread_spin_unlock(lock) },
    })
}
