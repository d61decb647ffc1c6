//! Holding stores up: a few pages are read-only for a moment, and a thread that stores there waits.
//!
//! Its store sends SIGSEGV; the handler waits until the pages are writable again and lets the store be tried once more.
//! Whoever holds pages is not stopped by anything that such a thread may have locked: between the two system calls it
//! takes no lock, allocates nothing and logs nothing.

use std::ops::Range;
use std::sync::atomic::Ordering;
use std::time::Duration;

use rustix::mm::MprotectFlags;

use super::protect::{is_repeated, protect};
use crate::mapping::Mapping;
use crate::tracking::Hold;

/// Runs `look` while nobody can store to `range`, which is `None` where the pages could not be protected.
///
/// The caller has seen to it that the handler is installed ([`super::Held::begin`]).
pub(super) fn hold<R>(
    puddle: &Mapping,
    range: Range<usize>,
    look: impl FnOnce() -> R,
) -> Option<R> {
    struct Release<'p>(&'p Mapping, Range<usize>);
    impl Drop for Release<'_> {
        fn drop(&mut self) {
            // What was mapped in its place is writable anyway. Where it cannot be undone, and nothing should make that
            // so, the next store ends the process instead of being lost.
            let _ = protect(self.1.clone(), MprotectFlags::READ | MprotectFlags::WRITE);
            self.0.tracking.hold.end.store(0, Ordering::Release);
        }
    }
    // A section's protection could not be taken away: the handler lets stores happen that should wait.
    if puddle.tracking.trap.is_armed.load(Ordering::Acquire) {
        return None;
    }
    let held = &puddle.tracking.hold;
    held.start.store(range.start, Ordering::Relaxed);
    held.times.fetch_add(1, Ordering::Relaxed);
    // Before the first store can fault.
    held.end.store(range.end, Ordering::Release);
    let _release = Release(puddle, range.clone());
    protect(range, MprotectFlags::READ).ok()?;
    Some(look())
}

/// Waits until a store is possible; false if it is none of ours. Async-signal-safe: reads atomics, and makes system
/// calls that leave `errno` alone.
pub(super) fn admit(hold: &Hold, address: usize) -> bool {
    const YIELDS: usize = 100;
    if crate::fault::forked() {
        // The thread that held it is in the parent.
        return false;
    }
    let times = hold.times.load(Ordering::Acquire);
    let mut tries = 0;
    loop {
        let end = hold.end.load(Ordering::Acquire);
        if end == 0 || address >= end || address < hold.start.load(Ordering::Acquire) {
            break;
        }
        tries += 1;
        if tries < YIELDS {
            rustix::thread::sched_yield();
        } else {
            // Also where this thread has a higher priority.
            let pause = Duration::from_micros(20);
            let _ = rustix::thread::nanosleep(&rustix::fs::Timespec {
                tv_sec: 0,
                tv_nsec: i64::from(pause.subsec_nanos()),
            });
        }
    }
    // A store that faulted just before the end gets here after it. What comes again and again has another reason.
    tries > 0 || times > 0 && !is_repeated(address ^ times << 48)
}
