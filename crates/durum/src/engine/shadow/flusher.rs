//! The flusher: a thread that writes the queue of buffered transactions in time.
//!
//! The work is a step, [`Journal::flush_if_due`], which says when it is to be done next; a test may do it instead of the thread. The thread sleeps for half a
//! window at a time, so that a commit need not wake it, and without end when nothing has come for some time.

use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use durum_persist::{count, record};

use super::journal::Journal;
use crate::error::Result;
use crate::store::StoreInner;

/// After so many rounds with nothing to do the thread sleeps until it is woken.
const IDLE_ROUNDS: u32 = 8;

/// A flusher that runs.
#[derive(Debug)]
pub(super) struct Flusher {
    /// Not dropped but joined: in a forked child the thread is not there, and its handle may already mean another one.
    thread: ManuallyDrop<JoinHandle<()>>,
    stopped: Arc<AtomicBool>,
    /// It sleeps until it is woken.
    is_asleep: bool,
}

impl Flusher {
    /// Sees to it that a flusher runs, and looks at the queue within `half` a window from now. False if the system gives no thread.
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
        let stopped = Arc::new(AtomicBool::new(false));
        let (store, told) = (Arc::downgrade(store), stopped.clone());
        let thread = thread::Builder::new()
            .name("durum-flusher".into())
            .spawn(move || run(&store, &told, half))
            .inspect_err(
                |error| tracing::warn!(%error, "no flusher: transactions are durable at once"),
            )
            .ok()?;
        Some(Self {
            thread: ManuallyDrop::new(thread),
            stopped,
            is_asleep: false,
        })
    }

    /// Something waits.
    pub(super) fn wake(&mut self) {
        if std::mem::take(&mut self.is_asleep) {
            self.thread.thread().unpark();
        }
    }

    /// The thread is about to sleep until it is woken.
    pub(super) fn sleeps(&mut self) {
        self.is_asleep = true;
    }

    /// Ends the thread, and waits for that.
    pub(super) fn stop(self) {
        self.stopped.store(true, Ordering::Release);
        self.thread.thread().unpark();
        // A panic in it has poisoned the store, if the queue was at stake.
        let _ = ManuallyDrop::into_inner(self.thread).join();
    }
}

/// The thread. Between its steps it does not hold the store, so that the store can close.
fn run(store: &Weak<StoreInner>, stopped: &AtomicBool, half: Duration) {
    count::mark_background_thread();
    let (mut idle_rounds, mut has_failed) = (0, false);
    let mut sleep = Some(half);
    loop {
        match sleep {
            Some(time) => thread::park_timeout(time),
            None => thread::park(),
        }
        if stopped.load(Ordering::Acquire) {
            return;
        }
        // Whoever stops this thread holds the store until it has ended: this is never the last handle.
        let Some(store) = store.upgrade() else {
            return;
        };
        let journal = store.journal();
        match journal.flush_if_due(&store, Instant::now()) {
            Ok(Some(time)) => (idle_rounds, has_failed, sleep) = (0, false, Some(time)),
            Err(error) => {
                if !has_failed {
                    tracing::warn!(%error, "buffered transactions could not be written");
                }
                has_failed = true;
                // A store that is poisoned stays so. A disk that is full may not; meanwhile commits that find the window exceeded tell their callers.
                sleep = store.poison.check().is_ok().then_some(half);
            }
            Ok(None) => {
                idle_rounds += 1;
                // Under the queue's lock: whatever comes from then on wakes the thread.
                let goes_to_sleep =
                    idle_rounds >= IDLE_ROUNDS && journal.queue.age(Instant::now(), true).is_none();
                sleep = (!goes_to_sleep).then_some(half);
            }
        }
    }
}

impl Journal {
    /// Makes the queue durable if its oldest entry has waited for half of the window at `now`. When to look next; `None`: nothing waits.
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
            None => self.queue.flush(self, store),
        }
    }
}
