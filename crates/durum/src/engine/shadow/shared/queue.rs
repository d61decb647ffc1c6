//! Buffered transactions: what they changed waits in a queue, in the order of their commits, until somebody writes all
//! of it.
//!
//! ```text
//! buffered commit     entries -> queue                              0 fences
//! durable commit      queue + its own entries, one record | done    1 fence
//! flusher, sync       queue, one record                   | done    1 fence
//! ```
//!
//! A buffered transaction lets go of its locks before it is durable, so others may build on it. Three rules keep the
//! order:
//!
//! 1. Entries are put into the queue while the caller holds its locks. What builds on them comes behind them, in the
//!    queue or in a record.
//! 2. A durable commit that finds the queue in use takes all of it into its own record. The record is whole or absent,
//!    and its stamp is drawn afterwards, so that it is larger than that of any record which the queue builds on.
//! 3. The queue is written by one thread at a time. Who needs it meanwhile, for what waits or for a record of its own,
//!    waits until that is durable, and draws no stamp before: an SFENCE does not make another core's lines durable.
//!
//! So the buffered transactions that a crash leaves are the first ones in the order of the queue, and among them are
//! all that a durable one builds on. Whoever waits here holds no stamp and no other lock of the store, and the writer
//! waits for nobody who does.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use crossbeam_utils::CachePadded;
use durum_format::record::HEADER_WORDS;
use durum_persist::{Site, record as recorder};

use super::super::log::writer::{Log, Writer};
use super::coalesce::LastEntries;
use super::flusher::{FlushIfDue, Flusher};
use crate::contention;
use crate::error::{Result, Step};
use crate::fault::media_failed;
use crate::opened::StoreInner;
use crate::primitive::{locked, waited};

/// Steps that keep the order without being a write-back or a fence. A crash test leaves each out.
pub(crate) const TAKE: Site = Site("shadow.buffered: a durable commit takes the queue");
pub(crate) const WAIT: Site =
    Site("shadow.buffered: wait for the queue that another thread writes");
pub(crate) const DRAIN: Site = Site("shadow.buffered: write the queue before puddles go");

/// When so much waits, the committing thread writes it.
const WORDS_MAX: usize = (128 << 10) / 8;
/// Once in so many commits the clock is read: a thread that commits without end, on the only core, does the work of a
/// flusher that does not get to run.
const LOOK_EVERY: u32 = 32;
/// A flusher that wakes up more often has no time for anything else.
const HALF_MIN: Duration = Duration::from_micros(50);
/// So often a thread that has to wait tries again before it sleeps: a record is written in a microsecond or two.
const TRIES: usize = 20;

#[derive(Debug)]
struct QueueState {
    /// The record in the making: room for its header, then the entries of all that wait.
    record: Vec<u64>,
    last_entries: LastEntries,
    /// When the first of them was put there.
    oldest: Option<Instant>,
    /// What was taken is being written.
    is_taken: bool,
    /// Threads that sleep until it is durable.
    sleeping: usize,
    /// Commits since the clock was read.
    unlooked: u32,
    /// An empty record for when this one is taken.
    spare: Vec<u64>,
    flusher: Option<Flusher>,
}

/// The buffered transactions of a store that are not durable yet.
#[derive(Debug)]
pub(crate) struct Queue {
    /// Something waits, or is being written. Set before the locks of a buffered transaction are let go.
    pub(crate) in_use: CachePadded<AtomicBool>,
    state: Mutex<QueueState>,
    written: Condvar,
    /// What a crash may lose. Nothing waits if it is zero.
    window: Duration,
    /// The flusher writes what has waited so long: half of the window is for itself and the scheduler.
    half: Duration,
    log: Mutex<Option<Log>>,
}

/// The right to write the queue, and when its oldest entry was put there. Entries that were not written go back.
#[derive(Debug)]
struct Batch {
    oldest: Option<Instant>,
    /// Where in the record they end.
    end: usize,
}

impl Queue {
    pub(crate) fn new(window: Duration) -> Self {
        Self {
            in_use: CachePadded::default(),
            state: Mutex::new(QueueState {
                record: vec![0; HEADER_WORDS],
                last_entries: LastEntries::default(),
                oldest: None,
                is_taken: false,
                sleeping: 0,
                unlooked: 0,
                spare: Vec::new(),
                flusher: None,
            }),
            written: Condvar::new(),
            window,
            half: (window / 2).max(HALF_MIN),
            log: Mutex::new(None),
        }
    }

    fn lock(&self) -> MutexGuard<'_, QueueState> {
        contention::lock(&self.state)
    }

    /// Whether a durable commit has to look closer.
    #[inline]
    pub(crate) fn is_in_use(&self) -> bool {
        // ORDER (of threads): whoever builds on a buffered transaction has taken a lock after it, and so sees what it
        // has set.
        self.in_use.load(Ordering::Acquire)
    }

    /// Puts the entries of a transaction behind those that wait. False: not now; the caller has to commit durably, with
    /// all that waits.
    ///
    /// # Errors
    /// The store is poisoned: nothing will be written any more.
    pub(crate) fn push(
        &self,
        record: &[u64],
        store: &Arc<StoreInner>,
        flush: FlushIfDue,
    ) -> Result<bool> {
        let body = &record[HEADER_WORDS..];
        let mut guard = self.lock();
        let state = &mut *guard;
        store.poison.check()?;
        if self.window.is_zero() || state.record.len() + body.len() > WORDS_MAX {
            return Ok(false);
        }
        match state.oldest {
            None => {
                if !Flusher::is_awake(&mut state.flusher, store, self.half, flush) {
                    return Ok(false);
                }
                state.oldest = Some(Instant::now());
                state.unlooked = 0;
            }
            Some(oldest) => {
                state.unlooked += 1;
                if state.unlooked == LOOK_EVERY {
                    state.unlooked = 0;
                    if oldest.elapsed() > self.window {
                        return Ok(false);
                    }
                }
            }
        }
        state.last_entries.append(&mut state.record, body);
        // ORDER (of threads): before the caller lets go of its locks.
        self.in_use.store(true, Ordering::Release);
        Ok(true)
    }

    /// Waits until what another thread writes is durable.
    fn lock_untaken(&self) -> MutexGuard<'_, QueueState> {
        let mut state = self.lock();
        for _ in 0..TRIES {
            if !state.is_taken {
                return state;
            }
            drop(state);
            std::thread::yield_now();
            state = self.lock();
        }
        while state.is_taken {
            state.sleeping += 1;
            state = waited(&self.written, state);
            state.sleeping -= 1;
        }
        state
    }

    /// Puts all that waits before the entries of `record`. `None`: nothing waits.
    fn take(state: &mut QueueState, record: &mut Vec<u64>) -> Option<Batch> {
        let oldest = state.oldest.take()?;
        let mut taken = std::mem::take(&mut state.spare);
        taken.resize(HEADER_WORDS, 0);
        std::mem::swap(&mut taken, &mut state.record);
        state.last_entries.clear();
        state.is_taken = true;
        let end = taken.len();
        taken.extend_from_slice(&record[HEADER_WORDS..]);
        std::mem::swap(record, &mut taken);
        state.spare = taken;
        state.spare.clear();
        Some(Batch {
            oldest: Some(oldest),
            end,
        })
    }

    /// What was taken into `record` could not be written, and is not on the media: it goes back to where it was.
    fn put_back(&self, batch: Batch, record: &mut Vec<u64>) {
        let mut guard = self.lock();
        let state = &mut *guard;
        let mut first = std::mem::take(record);
        first.truncate(batch.end);
        // What came meanwhile comes behind it.
        first.extend_from_slice(&state.record[HEADER_WORDS..]);
        state.record = first;
        state.last_entries.clear();
        state.oldest = batch.oldest;
        if let Some(flusher) = &mut state.flusher {
            flusher.wake();
        }
        drop(guard);
        self.is_decided(false);
    }

    /// What was taken is durable, or waits again; or else `is_lost`, and the store is poisoned.
    fn is_decided(&self, is_lost: bool) {
        let mut state = self.lock();
        state.is_taken = false;
        // What is lost stays: a transaction that builds on it and began before must look closer, and find the poison.
        if !is_lost {
            self.in_use.store(state.oldest.is_some(), Ordering::Release);
        }
        if state.sleeping > 0 {
            self.written.notify_all();
        }
    }

    /// Has `write` make the writer's record durable, with everything that waits before it; then calls `written`.
    #[cold]
    pub(crate) fn write_with(
        &self,
        writer: &mut Writer,
        store: &StoreInner,
        write: impl FnOnce(&mut Writer) -> Step,
        written: impl FnOnce(),
    ) -> Step {
        let batch = {
            let mut state = match recorder::leaves_out(WAIT) {
                true => self.lock(),
                false => self.lock_untaken(),
            };
            store.poison.check()?;
            match recorder::leaves_out(TAKE) {
                true => None,
                false => Self::take(&mut state, &mut writer.record),
            }
        };
        let Some(batch) = batch else {
            // Another thread has just written what waited.
            return match writer.is_empty() {
                true => Ok(()),
                false => write(writer),
            };
        };
        let on_panic = PoisonOnPanic { queue: self, store };
        let result = write(writer).and_then(|()| match media_failed() {
            true => store.check_logs().map_err(Box::new),
            false => Ok(()),
        });
        std::mem::forget(on_panic);
        // ORDER (of threads): before the queue is out of use.
        written();
        match &result {
            Err(_) if store.poison.check().is_ok() => self.put_back(batch, &mut writer.record),
            result => self.is_decided(result.is_err()),
        }
        result
    }

    /// On the `file` domain, for the leader of a group, who is alone: has `append` put all that waits into the one log,
    /// before the records that may build on it.
    pub(crate) fn append_with(
        &self,
        writer: &mut Writer,
        store: &StoreInner,
        append: impl FnOnce(&mut Writer) -> Step,
    ) -> Step {
        if !self.is_in_use() || recorder::leaves_out(TAKE) {
            return Ok(());
        }
        store.poison.check()?;
        writer.clear();
        let Some(batch) = Self::take(&mut self.lock(), &mut writer.record) else {
            return Ok(());
        };
        let result = append(writer);
        if result.is_err() && store.poison.check().is_ok() {
            self.put_back(batch, &mut writer.record);
        }
        result
    }

    /// On the `file` domain: what was appended is durable; or else `is_lost`, and the store is poisoned.
    pub(crate) fn appended_is_decided(&self, is_lost: bool) {
        if self.is_in_use() {
            self.is_decided(is_lost);
        }
    }

    /// The log that the queue goes to when no durable commit takes it. Locked while one waits for the queue.
    pub(crate) fn lock_log(&self) -> MutexGuard<'_, Option<Log>> {
        locked(&self.log)
    }

    /// How long the oldest entry has waited at `now`, if one waits. Where none has for some time, the flusher is told
    /// that it may sleep.
    pub(crate) fn age(&self, now: Instant, idle: bool) -> Option<Duration> {
        let mut state = self.lock();
        let age = state
            .oldest
            .map(|oldest| now.saturating_duration_since(oldest));
        if let (None, true, Some(flusher)) = (age, idle, &mut state.flusher) {
            flusher.sleeps();
        }
        age
    }

    /// How long something waits before the flusher writes it.
    pub(crate) fn half(&self) -> Duration {
        self.half
    }

    /// Ends the flusher. The next transaction that is put into the queue starts another one.
    pub(crate) fn stop_flusher(&self) {
        let flusher = self.lock().flusher.take();
        if let Some(flusher) = flusher {
            flusher.stop();
        }
    }
}

/// While the queue is being written. A panic then leaves nobody waiting, and nobody believing that it was written.
struct PoisonOnPanic<'q> {
    queue: &'q Queue,
    store: &'q StoreInner,
}

impl Drop for PoisonOnPanic<'_> {
    fn drop(&mut self) {
        self.store
            .set_poison("a panic kept buffered transactions from being written");
        self.queue.is_decided(true);
    }
}
