//! What threads announce: something to run in a transaction, of which this module knows nothing.

use std::cell::Cell;

use crate::error::Error;

/// Runs with its context, and with the transaction that it is a part of: whether its changes are to be kept.
pub(crate) type Run = unsafe fn(*mut (), *const ()) -> bool;

/// What to run for a thread, and how it went.
pub(crate) struct Job {
    /// Run once. `None`: the thread wants to lead, and runs what it wants by
    /// itself.
    pub(crate) run: Option<Run>,
    pub(crate) context: *mut (),
    /// Why its changes were not kept, if that was not its own doing.
    pub(crate) refused: Cell<Option<Error>>,
}

impl std::fmt::Debug for Job {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Job").finish_non_exhaustive()
    }
}

// SAFETY: used by the leader from when it is announced until it is done, and by its own thread before and after. What
// `context` points to may be sent to another thread, as `Job::new` demands.
unsafe impl Sync for Job {}
// SAFETY: what `context` points to may be sent to another thread, as `Job::new` demands; the rest is owned.
unsafe impl Send for Job {}

impl Job {
    /// # Safety
    /// `run` may be called once with `context`, on any thread, until the job is done.
    pub(crate) unsafe fn new(run: Run, context: *mut ()) -> Self {
        Self {
            run: Some(run),
            context,
            refused: Cell::new(None),
        }
    }

    /// The wish to lead.
    pub(crate) fn lead() -> Self {
        Self {
            run: None,
            context: std::ptr::null_mut(),
            refused: Cell::new(None),
        }
    }

    /// Why its changes were not kept, if that was not its own doing.
    pub(crate) fn refused(&self) -> Option<Error> {
        self.refused.take()
    }
}
