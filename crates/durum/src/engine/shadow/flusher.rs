//! The flusher: a thread that writes the queue of buffered transactions in time.
//!
//! The work is a step, [`Journal::flush_if_due`], which says when it is to be done next; a test may do it instead of
//! the thread. The thread sleeps for half a window at a time, so that a commit need not wake it, and without end when
//! nothing has come for some time.

use std::sync::Arc;
use std::time::{Duration, Instant};

use durum_persist::record;

use super::background::{Background, Next};
use super::journal::Journal;
use crate::error::Result;
use crate::opened::StoreInner;

/// After so many rounds with nothing to do the thread sleeps until it is woken.
const IDLE_ROUNDS: u32 = 8;

/// A flusher that runs.
#[derive(Debug)]
pub(super) struct Flusher {
    thread: Background,
    /// It sleeps until it is woken.
    is_asleep: bool,
}

impl Flusher {
    /// Sees to it that a flusher runs, and looks at the queue within `half` a window from now. False if the system
    /// gives no thread.
    pub(super) fn is_awake(
        flusher: &mut Option<Self>,
        store: &Arc<StoreInner>,
        half: Duration,
    ) -> bool {
        match flusher {
            Some(running) => {
                running.wake();
                true
            }
            None => {
                *flusher = Self::start(store, half);
                flusher.is_some()
            }
        }
    }

    fn start(store: &Arc<StoreInner>, half: Duration) -> Option<Self> {
        let (mut idle_rounds, mut has_failed) = (0, false);
        let step = move |store: &StoreInner| {
            let journal = store.journal();
            match journal.flush_if_due(store, Instant::now()) {
                Ok(Some(time)) => {
                    (idle_rounds, has_failed) = (0, false);
                    Next::After(time)
                }
                Err(error) => {
                    if !std::mem::replace(&mut has_failed, true) {
                        tracing::warn!(%error, "buffered transactions could not be written");
                    }
                    // A store that is poisoned stays so. A disk that is full may not; meanwhile commits that find the
                    // window exceeded tell their callers.
                    match store.poison.check() {
                        Ok(()) => Next::After(half),
                        Err(_) => Next::WhenWoken,
                    }
                }
                Ok(None) => {
                    idle_rounds += 1;
                    // Under the queue's lock: whatever comes from then on wakes the thread.
                    let goes_to_sleep = idle_rounds >= IDLE_ROUNDS
                        && journal.queue.age(Instant::now(), true).is_none();
                    match goes_to_sleep {
                        true => Next::WhenWoken,
                        false => Next::After(half),
                    }
                }
            }
        };
        Some(Self {
            thread: Background::start("durum-flusher", store, Next::After(half), step)?,
            is_asleep: false,
        })
    }

    /// Something waits.
    pub(super) fn wake(&mut self) {
        if std::mem::take(&mut self.is_asleep) {
            self.thread.wake();
        }
    }

    /// The thread is about to sleep until it is woken.
    pub(super) fn sleeps(&mut self) {
        self.is_asleep = true;
    }

    /// Ends the thread, and waits for that.
    pub(super) fn stop(self) {
        self.thread.stop();
    }
}

impl Journal {
    /// Makes the queue durable if its oldest entry has waited for half of the window at `now`. When to look next;
    /// `None`: nothing waits.
    pub(crate) fn flush_if_due(
        &self,
        store: &StoreInner,
        now: Instant,
    ) -> Result<Option<Duration>> {
        store.poison.check()?;
        let half = self.queue.half();
        let Some(age) = self.queue.age(now, false) else {
            return Ok(None);
        };
        if age < half {
            return Ok(Some(half - age));
        }
        // In a recording, what this thread writes is a part of it.
        record::join_thread();
        self.flush(store)?;
        Ok(Some(half))
    }

    /// Makes every buffered transaction durable that has committed before.
    pub(crate) fn flush(&self, store: &StoreInner) -> Result<()> {
        if !self.queue.is_in_use() {
            return store.poison.check();
        }
        match &self.group {
            Some(group) => group.flush(self, store),
            None => Ok(self.queue.flush(self, store)?),
        }
    }
}
