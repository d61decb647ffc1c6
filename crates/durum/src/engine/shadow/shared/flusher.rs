//! The flusher: a thread that writes the queue of buffered transactions in time.
//!
//! The work is a step, which says when it is to be done next; a test may do it instead of the thread. The thread sleeps
//! for half a window at a time, so that a commit need not wake it, and without end when nothing has come for some time.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::background::{Background, Next};
use crate::error::Result;
use crate::opened::StoreInner;

/// After so many rounds with nothing to do the thread sleeps until it is woken.
const IDLE_ROUNDS: u32 = 8;

/// The step: makes the queue durable if its oldest entry has waited for half of the window at that time. When to look
/// next; `None`: nothing waits, and where the flag says so, the thread sleeps until it is woken.
pub(crate) type FlushIfDue = fn(&StoreInner, Instant, bool) -> Result<Option<Duration>>;

/// A flusher that runs.
#[derive(Debug)]
pub(crate) struct Flusher {
    thread: Background,
    /// It sleeps until it is woken.
    is_asleep: bool,
}

impl Flusher {
    /// Sees to it that a flusher runs, and looks at the queue within `half` a window from now. False if the system
    /// gives no thread.
    pub(crate) fn is_awake(
        flusher: &mut Option<Self>,
        store: &Arc<StoreInner>,
        half: Duration,
        flush: FlushIfDue,
    ) -> bool {
        match flusher {
            Some(running) => {
                running.wake();
                true
            }
            None => {
                *flusher = Self::start(store, half, flush);
                flusher.is_some()
            }
        }
    }

    fn start(store: &Arc<StoreInner>, half: Duration, flush: FlushIfDue) -> Option<Self> {
        let (mut idle_rounds, mut has_failed) = (0, false);
        let step = move |store: &StoreInner| {
            let may_sleep = idle_rounds + 1 >= IDLE_ROUNDS;
            match flush(store, Instant::now(), may_sleep) {
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
                Ok(None) if may_sleep => Next::WhenWoken,
                Ok(None) => {
                    idle_rounds += 1;
                    Next::After(half)
                }
            }
        };
        Some(Self {
            thread: Background::start("durum-flusher", store, Next::After(half), step)?,
            is_asleep: false,
        })
    }

    /// Something waits.
    pub(crate) fn wake(&mut self) {
        if std::mem::take(&mut self.is_asleep) {
            self.thread.wake();
        }
    }

    /// The thread is about to sleep until it is woken.
    pub(crate) fn sleeps(&mut self) {
        self.is_asleep = true;
    }

    /// Ends the thread, and waits for that.
    pub(crate) fn stop(self) {
        self.thread.stop();
    }
}
