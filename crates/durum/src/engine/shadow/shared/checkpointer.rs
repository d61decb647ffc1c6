//! On the `file` domain: a thread that brings home what was logged, so that no commit waits for it.
//!
//! There a batch costs a sync of each file that it changes, milliseconds; on mapped memory commits do it themselves, a
//! little each.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::background::{Next, Sleeper};
use crate::opened::StoreInner;

/// Bytes of records that make a batch: it costs a sync of each file that it changes.
pub(super) const FILE_BATCH_BYTES: usize = 2 << 20;

/// How much waits to be brought home, and who does it.
#[derive(Debug)]
pub(crate) struct Checkpointer {
    /// Commits leave it to a thread.
    wanted: bool,
    /// Bytes that were logged since the thread has last begun.
    behind: AtomicUsize,
    thread: Sleeper,
}

impl Checkpointer {
    pub(crate) fn new(wanted: bool) -> Self {
        Self {
            wanted,
            behind: AtomicUsize::new(0),
            thread: Sleeper::default(),
        }
    }

    /// So many bytes were logged. Whether the caller has to bring home what is due: no thread does.
    pub(super) fn is_left_with(
        &self,
        bytes: usize,
        store: &Arc<StoreInner>,
        step: fn(&StoreInner) -> Next,
    ) -> bool {
        if !self.wanted {
            return true;
        }
        let before = self.behind.fetch_add(bytes, Ordering::Relaxed);
        let is_due = before < FILE_BATCH_BYTES && before + bytes >= FILE_BATCH_BYTES;
        let is_left = is_due && !self.thread.wake("durum-checkpointer", store, step);
        if is_left {
            self.begins();
        }
        is_left
    }

    /// Somebody is about to bring home what was logged.
    pub(super) fn begins(&self) {
        self.behind.store(0, Ordering::Relaxed);
    }

    /// Whether enough for a batch was logged since then.
    pub(super) fn has_batch(&self) -> bool {
        self.behind.load(Ordering::Relaxed) >= FILE_BATCH_BYTES
    }

    /// Ends the thread; the next batch starts another one.
    pub(crate) fn stop(&self) {
        self.thread.stop();
        // It may have ended without the step that it was woken for. Whoever logs next wakes another one when that is
        // due.
        self.begins();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A thread that is woken and stopped at once makes no step.
    #[test]
    fn what_a_thread_has_left_does_not_keep_the_next_one_asleep() {
        let checkpointer = Checkpointer::new(true);
        checkpointer
            .behind
            .store(FILE_BATCH_BYTES + 5, Ordering::Relaxed);
        checkpointer.stop();
        assert!(checkpointer.behind.load(Ordering::Relaxed) < FILE_BATCH_BYTES);
    }
}
