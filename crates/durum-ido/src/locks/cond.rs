//! `pthread_cond_*`. In the heap: a number that grows with each signal, on which threads wait, and at byte 8 which
//! clock `pthread_cond_timedwait` means. Whatever a crash has left there is a number like any other.
//!
//! A wait with a lock in the heap, on a condition elsewhere, cannot be the system's. There threads wait on one of few
//! numbers, by the address of the condition, and are woken a little too often.

use std::ffi::c_int;
use std::ptr;
use std::sync::atomic::{AtomicU32, Ordering};

use durum::primitive::{futex_wait, futex_wait_for, futex_wake, futex_wake_all};
use libc::{clockid_t, pthread_cond_t, pthread_condattr_t, pthread_mutex_t, timespec};

use super::deadline::Deadline;
use super::taking::{self, is_ours, this_thread};
use super::{mutex, native};
use crate::alloc;
use crate::fatal::fatal;
use crate::held::Mode;
use crate::section::{self, Release};

/// Where the clock lies.
const CLOCK: usize = 8;

const _: () = assert!(size_of::<pthread_cond_t>() >= CLOCK + 4);

/// Numbers for conditions elsewhere.
const ELSEWHERE: usize = 64;
static NUMBERS: [AtomicU32; ELSEWHERE] = [const { AtomicU32::new(0) }; ELSEWHERE];
/// How many threads wait on them.
static WAITING: AtomicU32 = AtomicU32::new(0);

fn number(cond: *mut pthread_cond_t) -> &'static AtomicU32 {
    let address = cond.expose_provenance();
    if !is_ours(cond) {
        return &NUMBERS[address / size_of::<pthread_cond_t>() % ELSEWHERE];
    }
    if !address.is_multiple_of(align_of::<AtomicU32>()) {
        fatal!("the condition at {address:#x} does not lie at a multiple of 4");
    }
    // SAFETY: any aligned bytes in the heap are a number, and conditions are used by these functions only.
    unsafe { &*ptr::with_exposed_provenance(address) }
}

/// As `pthread_cond_init`. In the heap there are none that processes share: `ENOTSUP`.
///
/// # Safety
/// As there.
pub(crate) unsafe fn init(
    cond: *mut pthread_cond_t,
    attributes: *const pthread_condattr_t,
) -> c_int {
    if !is_ours(cond) {
        // SAFETY: as the caller promises.
        return unsafe { libc::pthread_cond_init(cond, attributes) };
    }
    let (mut clock, mut shared) = (libc::CLOCK_REALTIME, 0);
    if !attributes.is_null() {
        // SAFETY: as the caller promises.
        unsafe {
            libc::pthread_condattr_getclock(attributes, &raw mut clock);
            libc::pthread_condattr_getpshared(attributes, &raw mut shared);
        }
    }
    if shared != libc::PTHREAD_PROCESS_PRIVATE {
        return libc::ENOTSUP;
    }
    let (start, size) = (cond.expose_provenance(), size_of::<pthread_cond_t>());
    // SAFETY: as the caller promises.
    unsafe { taking::make(start, size, Some((CLOCK, clock as u32))) };
    0
}

/// As `pthread_cond_destroy`.
///
/// # Safety
/// As there.
pub(crate) unsafe fn destroy(cond: *mut pthread_cond_t) -> c_int {
    match is_ours(cond) {
        true => 0,
        // SAFETY: as the caller promises.
        false => unsafe { libc::pthread_cond_destroy(cond) },
    }
}

/// How long a wait lasts.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Until {
    /// Somebody signals.
    Signal,
    /// The same, or this moment on the condition's own clock.
    Time(*const timespec),
    /// The same on another clock.
    Clock(clockid_t, *const timespec),
}

/// As `pthread_cond_wait` and those with a time. The section has ended, durably, when the thread begins to wait, and
/// another one begins when it has the lock again.
///
/// # Safety
/// As there.
pub(crate) unsafe fn wait(
    cond: *mut pthread_cond_t,
    lock: *mut pthread_mutex_t,
    until: Until,
) -> c_int {
    let (thread, address) = (this_thread(), lock.addr());
    if thread.held.find(address).is_none() {
        return match thread.is_resuming {
            0 => taking::not_held(address),
            _ => 0,
        };
    }
    if thread.depth > 1 {
        fatal!(
            "a thread waits on a condition with the lock at {address:#x}, and holds {} more, or that one several times, or is in a region of durum_durable_begin; let them go before",
            thread.depth - 1
        );
    }
    // SAFETY: as the caller promises.
    let deadline = unsafe { deadline_of(cond, until) };
    let Ok(deadline) = deadline else {
        return libc::EINVAL;
    };
    if thread.is_resuming != 0 {
        // SAFETY: as the caller promises.
        return unsafe { mutex::unlock(lock) };
    }
    if !is_ours(cond) && !is_ours(lock) {
        // SAFETY: as the caller promises.
        return unsafe { wait_in_system(cond, lock, until) };
    }
    let number = number(cond);
    // ORDER (of threads): before the lock is free, so that whoever signals once they have it is noticed.
    let seen = number.load(Ordering::SeqCst);
    WAITING.fetch_add(1, Ordering::SeqCst);
    // SAFETY: as the caller promises.
    unsafe { mutex::unlock(lock) };
    let result = match deadline.map(|deadline| deadline.left()) {
        None => {
            futex_wait(number, seen);
            0
        }
        Some(Some(left)) => {
            futex_wait_for(number, seen, left);
            let is_over = deadline.is_some_and(|deadline| deadline.left().is_none());
            let is_signalled = number.load(Ordering::SeqCst) != seen;
            if is_over && !is_signalled {
                libc::ETIMEDOUT
            } else {
                0
            }
        }
        Some(None) => libc::ETIMEDOUT,
    };
    WAITING.fetch_sub(1, Ordering::SeqCst);
    // SAFETY: as the caller promises.
    unsafe { mutex::lock(lock) };
    result
}

/// # Safety
/// As for [`wait`].
unsafe fn deadline_of(cond: *mut pthread_cond_t, until: Until) -> Result<Option<Deadline>, ()> {
    let (clock, at) = match until {
        Until::Signal => return Ok(None),
        Until::Clock(clock, at) => (clock, at),
        Until::Time(at) if is_ours(cond) => {
            // SAFETY: inside the condition, and changed when it is made only.
            let clock = unsafe { cond.byte_add(CLOCK).cast::<clockid_t>().read() };
            (clock, at)
        }
        // Which clock the system's condition means, the system knows; with a lock of ours it is the usual one.
        Until::Time(at) => (libc::CLOCK_REALTIME, at),
    };
    // SAFETY: as the caller promises.
    let deadline = Deadline::new(clock, unsafe { *at });
    deadline.map(Some).ok_or(())
}

/// # Safety
/// As for [`wait`]; both lie elsewhere.
unsafe fn wait_in_system(
    cond: *mut pthread_cond_t,
    lock: *mut pthread_mutex_t,
    until: Until,
) -> c_int {
    let address = lock.addr();
    let Release::Free(_) = section::release(this_thread(), address) else {
        return taking::not_held(address);
    };
    alloc::end_section(this_thread());
    // SAFETY: as the caller promises.
    let result = unsafe {
        match until {
            Until::Signal => libc::pthread_cond_wait(cond, lock),
            Until::Time(at) => libc::pthread_cond_timedwait(cond, lock, at),
            Until::Clock(clock, at) => native::pthread_cond_clockwait(cond, lock, clock, at),
        }
    };
    section::taken(this_thread(), address, Mode::Exclusive);
    result
}

/// As `pthread_cond_signal`.
///
/// # Safety
/// As there.
pub(crate) unsafe fn signal(cond: *mut pthread_cond_t) -> c_int {
    if !is_ours(cond) {
        wake_elsewhere(cond);
        // SAFETY: as the caller promises.
        return unsafe { libc::pthread_cond_signal(cond) };
    }
    let number = number(cond);
    number.fetch_add(1, Ordering::SeqCst);
    futex_wake(number);
    0
}

/// As `pthread_cond_broadcast`.
///
/// # Safety
/// As there.
pub(crate) unsafe fn broadcast(cond: *mut pthread_cond_t) -> c_int {
    if !is_ours(cond) {
        wake_elsewhere(cond);
        // SAFETY: as the caller promises.
        return unsafe { libc::pthread_cond_broadcast(cond) };
    }
    let number = number(cond);
    number.fetch_add(1, Ordering::SeqCst);
    futex_wake_all(number);
    0
}

/// Wakes those who wait with a lock in the heap, and others whose number is the same.
fn wake_elsewhere(cond: *mut pthread_cond_t) {
    let number = number(cond);
    number.fetch_add(1, Ordering::SeqCst);
    if WAITING.load(Ordering::SeqCst) > 0 {
        futex_wake_all(number);
    }
}
