//! The words of this thread that say which heaps it uses ([`in_use`](crate::in_use)).

use std::cell::Cell;

use crate::fatal::Location;
use crate::in_use::{Presence, PresenceList};

/// Of all threads.
static ALL: PresenceList = PresenceList::new();

thread_local! {
    /// Const and without destructor, so cheap.
    static OWN: Cell<Option<&'static Presence>> = const { Cell::new(None) };
    static LEAVER: Leaver = const { Leaver };
}

/// Gives the thread's words back when it ends.
struct Leaver;

impl Drop for Leaver {
    fn drop(&mut self) {
        if let Some(own) = OWN.take() {
            own.give_back();
        }
    }
}

/// The words of this thread.
#[inline]
pub(crate) fn of_thread() -> &'static Presence {
    match OWN.get() {
        Some(own) => own,
        None => take(),
    }
}

#[cold]
fn take() -> &'static Presence {
    let own = ALL.take();
    OWN.set(Some(own));
    // In a destructor behind ours they stay this thread's for good.
    let _ = LEAVER.try_with(|_| ());
    own
}

/// The thread's transaction has ended.
pub(crate) fn end_transaction() {
    // None where the thread ends, and has given its words back.
    if let Some(own) = OWN.get() {
        own.end();
    }
}

/// What was kept is not used any more.
pub(crate) fn drop_kept() {
    if let Some(own) = OWN.get() {
        own.drop_kept();
    }
}

/// Waits until no other thread uses a heap, which nobody finds any more. `refuse` is called where one is in a
/// transaction on it, and told where that began.
pub(crate) fn wait_for_others(heap: u64, is_fenced: bool, refuse: impl Fn(String)) {
    ALL.wait_for_others(OWN.get(), heap, is_fenced, |other| {
        let (file, line) = other.began();
        // SAFETY: what another `Location` had.
        let place = unsafe { Location::new(file, line) }.place();
        refuse(place.map_or_else(String::new, |place| format!(" that began at {place}")));
    });
}
