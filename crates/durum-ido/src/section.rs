//! Sections begin with a lock and end with a lock; or with a call, where no lock guards them.

use crate::fatal::fatal;
use crate::held::{HeldLock, Mode};
use crate::reach;
use crate::record;
use crate::slots;
use crate::thread::Thread;

/// What becomes of a lock that is let go.
#[derive(Debug)]
pub(crate) enum Release {
    /// It is to be free.
    Free(HeldLock),
    /// It was taken more often.
    Held,
    /// The thread does not hold it.
    Unknown,
}

/// The thread has taken a lock that it did not hold.
#[inline]
pub(crate) fn taken_first(thread: &mut Thread, address: usize, mode: Mode) {
    enter(thread);
    thread.held.add(address, mode);
}

/// The thread has taken a lock.
pub(crate) fn taken(thread: &mut Thread, address: usize, mode: Mode) {
    enter(thread);
    match thread.held.find(address) {
        Some(lock) => lock.count += 1,
        None => thread.held.add(address, mode),
    }
}

/// A region begins that no lock guards.
pub(crate) fn begin(thread: &mut Thread) {
    enter(thread);
    thread.unguarded += 1;
}

#[inline]
fn enter(thread: &mut Thread) {
    if thread.depth == 0 {
        thread.stack.begin_section();
        thread.is_published = false;
        thread.is_word = false;
        thread.hands_over = false;
    }
    thread.depth += 1;
    thread.is_stale = true;
}

/// A region ends that no lock guards. If that ends the section, it is over durably when this returns; else nobody can
/// tell yet, and the last record counts as it is.
pub(crate) fn end(thread: &mut Thread) {
    if thread.unguarded == 0 {
        fatal!("durum_durable_end without durum_durable_begin");
    }
    if thread.depth == 1 {
        record::settle(thread);
        record::end(thread);
    }
    thread.unguarded -= 1;
    thread.depth -= 1;
    thread.is_stale = true;
}

/// The thread lets a lock go, and nothing has to be done for that: it has taken the lock once, holds others, and its
/// section has neither recorded nor taken anything. Whether that is so.
#[inline]
pub(crate) fn release_at_once(thread: &mut Thread, address: usize) -> bool {
    if thread.depth < 2 || thread.is_published || record::has_taken(thread) {
        return false;
    }
    let is_let_go = thread.held.remove_plain(address);
    if is_let_go {
        thread.depth -= 1;
        thread.is_stale = true;
    }
    is_let_go
}

/// The thread lets a lock go. If that ends the section, it is over durably when this returns; the lock is not free
/// yet.
#[inline]
pub(crate) fn release(thread: &mut Thread, address: usize) -> Release {
    let is_last = thread.depth == 1;
    let Some(lock) = thread.held.find(address) else {
        return Release::Unknown;
    };
    if lock.count > 1 {
        lock.count -= 1;
        thread.depth -= 1;
        thread.is_stale = true;
        return Release::Held;
    }
    let lock = *lock;
    // Whoever takes the lock next may be told of what was taken, and record that something leads there.
    record::settle(thread);
    if is_last {
        record::end(thread);
    } else if thread.is_published && thread.releasing != address {
        fatal!(
            "the lock at {address:#x} is let go, and no record says so: its code was not compiled by durumcc"
        );
    }
    thread.held.remove(address);
    thread.releasing = 0;
    thread.depth -= 1;
    thread.is_stale = true;
    Release::Free(lock)
}

/// The program has written `size` bytes at `start` outside of sections, and will link them in one. They are durable
/// before the thread's next record, or the word that needs none.
///
/// # Safety
/// They are mapped.
pub(crate) unsafe fn own(thread: &mut Thread, start: usize, size: usize) {
    if size > 0 && reach::holds(start) && reach::holds(start + (size - 1)) {
        // SAFETY: as the caller promises.
        unsafe { thread.lines.add(start, size) };
    }
}

/// A store to `size` bytes at `start` has been made.
#[inline]
pub(crate) fn wrote(thread: &mut Thread, start: usize, size: usize) {
    if thread.depth == 0 || !reach::holds(start) {
        return;
    }
    let has_record = thread.is_published && !thread.is_stale || thread.is_word;
    if cfg!(debug_assertions) && !has_record {
        fatal!("a store to {start:#x} has no record");
    }
    thread.region.note_store();
    // SAFETY: compiled code has just stored there.
    unsafe {
        match slots::may_hold(start) {
            // Recovery writes to pools only.
            true => thread.lines.add(start, size),
            false => thread.lines.add_store(start, size),
        }
    }
}
