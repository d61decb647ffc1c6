//! On the `file` domain: a thread that brings home what was logged, so that no commit waits for it.
//!
//! There a batch costs a sync of each file that it changes, milliseconds; on mapped memory commits do it themselves, a
//! little each.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::background::{Background, Next};
use super::journal::{FILE_BATCH_BYTES, Journal};
use crate::error::Result;
use crate::opened::StoreInner;

/// How much waits to be brought home, and who does it.
#[derive(Debug)]
pub(super) struct Checkpointer {
    /// Commits leave it to a thread.
    wanted: bool,
    /// Bytes that were logged since the thread has last begun.
    behind: AtomicUsize,
    thread: Mutex<Option<Background>>,
}

impl Checkpointer {
    pub(super) fn new(wanted: bool) -> Self {
        Self {
            wanted,
            behind: AtomicUsize::new(0),
            thread: Mutex::default(),
        }
    }

    fn wake(&self, store: &Arc<StoreInner>) -> bool {
        let mut thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        if thread.is_none() {
            let step = |store: &StoreInner| store.journal().bring_batches_home(store);
            *thread = Background::start("durum-checkpointer", store, Next::WhenWoken, step);
        }
        if let Some(thread) = &*thread {
            thread.wake();
        }
        thread.is_some()
    }

    pub(super) fn stop(&self) {
        let thread = self
            .thread
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(thread) = thread {
            thread.stop();
        }
        // It may have ended without the step that it was woken for. Whoever logs next wakes another one when that is
        // due.
        self.behind.store(0, Ordering::Relaxed);
    }
}

impl Journal {
    /// A commit has logged so many bytes.
    pub(super) fn logged(&self, bytes: usize, store: &Arc<StoreInner>) -> Result<()> {
        if !self.checkpointer.wanted {
            return self.bring_home_if_due();
        }
        let before = self.checkpointer.behind.fetch_add(bytes, Ordering::Relaxed);
        let is_due = before < FILE_BATCH_BYTES && before + bytes >= FILE_BATCH_BYTES;
        match is_due && !self.checkpointer.wake(store) {
            true => {
                self.checkpointer.behind.store(0, Ordering::Relaxed);
                self.bring_home_if_due()
            }
            false => Ok(()),
        }
    }

    /// The work of the thread: batches, as long as there is enough for one.
    fn bring_batches_home(&self, store: &StoreInner) -> Next {
        loop {
            self.checkpointer.behind.store(0, Ordering::Relaxed);
            // An error has poisoned the store, and is told to the next who uses it.
            let result = store.poison.check().and_then(|()| self.bring_batch_home());
            if result.is_err()
                || self.checkpointer.behind.load(Ordering::Relaxed) < FILE_BATCH_BYTES
            {
                return Next::WhenWoken;
            }
        }
    }

    /// Ends the thread; the next batch starts another one.
    pub(super) fn stop_checkpointer(&self) {
        self.checkpointer.stop();
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
