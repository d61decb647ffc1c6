//! What the two ways to stop stores share: protecting pages, and noticing that it does not help.

use std::cell::Cell;
use std::ops::Range;

use rustix::mm::{MprotectFlags, mprotect};

/// Async-signal-safe: one system call.
pub(super) fn protect(range: Range<usize>, flags: MprotectFlags) -> rustix::io::Result<()> {
    let start = std::ptr::with_exposed_provenance_mut(range.start);
    // SAFETY: pages of a puddle of ours. Stores to those that become read-only come to the handler.
    unsafe { mprotect(start, range.end - range.start, flags) }
}

/// Whether this thread has come here several times in a row with the same address.
pub(super) fn is_repeated(address: usize) -> bool {
    const TIMES: usize = 4;
    thread_local! {
        /// Const and without destructor: safe to touch in a signal handler.
        static LAST: Cell<(usize, usize)> = const { Cell::new((0, 0)) };
    }
    let (last, times) = LAST.get();
    let times = if last == address { times + 1 } else { 0 };
    LAST.set((address, times));
    times > TIMES
}
