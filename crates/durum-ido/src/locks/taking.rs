//! What taking a lock and letting it go has to do with sections, whichever kind it is of.

use std::ffi::c_int;

use durum_persist::line;

use super::claims;
use super::deadline::Deadline;
use crate::alloc;
use crate::fatal::fatal;
use crate::held::{HeldLock, Mode};
use crate::reach;
use crate::section::{self, Release};
use crate::sites::{LOCK_FENCE, LOCK_WRITE};
use crate::thread::{self, Thread};

/// The calling thread, for as long as nobody else here uses it.
pub(super) fn this_thread<'a>() -> &'a mut Thread {
    // SAFETY: the thread's own, which no one else has a reference to: functions that compiled code calls come one
    // after the other, and none of them calls compiled code while it uses it.
    unsafe { &mut *thread::current() }
}

/// How a thread wants a lock.
#[derive(Clone, Copy, Debug)]
pub(super) enum Wish<'a> {
    /// Now or not at all.
    Try,
    /// As soon as it is free.
    Wait,
    /// The same, or not at all.
    Until(&'a Deadline),
}

impl<'a> Wish<'a> {
    pub(super) fn deadline(self) -> Option<&'a Deadline> {
        match self {
            Self::Until(deadline) => Some(deadline),
            Self::Try | Self::Wait => None,
        }
    }
}

/// Takes a lock in the heap, by `take`, which says whether it has. 0, or why not.
pub(super) fn take(
    address: usize,
    mode: Mode,
    wish: Wish<'_>,
    take: impl FnOnce() -> bool,
) -> c_int {
    let is_free = match wish {
        Wish::Try if claims::is_free(address, mode) => take(),
        Wish::Try => false,
        _ => claims::wait(address, mode, wish.deadline()) && take(),
    };
    match (is_free, wish) {
        (true, _) => {
            section::taken(this_thread(), address, mode);
            0
        }
        (false, Wish::Try) => libc::EBUSY,
        (false, _) => libc::ETIMEDOUT,
    }
}

/// Takes a lock elsewhere, which the system has: by `take`. `busy` is what a function says that does not wait.
pub(super) fn take_native(
    address: usize,
    mode: Mode,
    busy: Option<c_int>,
    take: impl FnOnce() -> c_int,
) -> c_int {
    let thread = this_thread();
    if thread
        .held
        .find(address)
        .is_some_and(|held| held.is_claimed)
    {
        // Once more: the system knows nothing of it.
        section::taken(thread, address, mode);
        return 0;
    }
    let result = match busy {
        Some(busy) if !claims::is_free(address, mode) => busy,
        _ => {
            claims::wait(address, mode, None);
            take()
        }
    };
    if result == 0 {
        section::taken(this_thread(), address, mode);
    }
    result
}

/// Lets a lock go, whose word `free` makes free. 0, or `unknown` if the thread does not hold it.
#[inline]
pub(super) fn release(
    address: usize,
    unknown: impl FnOnce() -> c_int,
    free: impl FnOnce(&HeldLock) -> c_int,
) -> c_int {
    let thread = this_thread();
    match section::release(thread, address) {
        Release::Free(lock) => {
            let result = let_go(&lock, free);
            alloc::end_section(this_thread());
            result
        }
        Release::Held => 0,
        // The record that the section goes on from may be without it.
        Release::Unknown if thread.is_resuming != 0 => 0,
        Release::Unknown => unknown(),
    }
}

/// Makes a lock free.
#[inline]
pub(super) fn let_go(lock: &HeldLock, free: impl FnOnce(&HeldLock) -> c_int) -> c_int {
    if lock.is_claimed {
        claims::release(lock.address);
        return 0;
    }
    free(lock)
}

/// Who lets go what it does not hold.
pub(super) fn not_held(address: usize) -> c_int {
    fatal!("the lock at {address:#x} is let go by a thread that does not hold it")
}

/// Whether a lock is one of ours.
#[inline]
pub(super) fn is_ours<T>(lock: *const T) -> bool {
    reach::holds(lock.addr())
}

/// Makes a lock in the heap: its bytes are 0, but for the words of `kind`. They are durable when this returns, or, in
/// a section, with what it stores.
///
/// # Safety
/// `size` bytes at `start` are a lock that nobody uses.
pub(super) unsafe fn make(start: usize, size: usize, kind: Option<(usize, u32)>) {
    let place: *mut u8 = std::ptr::with_exposed_provenance_mut(start);
    // SAFETY: as the caller promises; the word lies inside.
    unsafe {
        line::zero(place, size);
        if let Some((offset, kind)) = kind {
            place.add(offset).cast::<u32>().write(kind);
        }
    }
    let thread = this_thread();
    if thread.depth > 0 {
        // SAFETY: the lock lies in the heap.
        return unsafe { thread.lines.add(start, size) };
    }
    // SAFETY: the same.
    unsafe { line::write_back(place, size, LOCK_WRITE) };
    // ORDER: whoever links the lock does so behind this; else what lay there before may count as its kind.
    line::fence(LOCK_FENCE);
}
