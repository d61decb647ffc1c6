//! Group commit on the `file` domain: threads that commit at the same time share a sync.
//!
//! The first one to come leads: it appends the records of all who wait to the one log, writes them with one system call and
//! syncs once. Whoever comes meanwhile waits for the next group. A leader that had company in the last two groups waits
//! a little for the same company, up to half a sync; a lone thread never waits.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use durum_format::record::HEADER_WORDS;

use super::journal::Journal;
use super::writer::{COMMIT_FENCE, Writer};
use crate::error::{Error, Result};
use crate::media::Barrier;
use crate::store::StoreInner;

/// The longest time that a leader waits for others.
const WAIT_MAX: Duration = Duration::from_micros(100);

#[derive(Debug, Default)]
struct State {
    /// Records of the next group.
    waiting: Vec<Vec<u64>>,
    /// Records that ever came; the number of the last one is its ticket.
    came: u64,
    /// Records that are decided.
    done: u64,
    /// Tickets whose records could not be written, and why, until they are told.
    failed: Vec<(u64, Error)>,
    is_led: bool,
    /// The one log of the store.
    writer: Option<Box<Writer>>,
    /// Sizes of the last two groups, and how long the last sync took.
    sizes: [usize; 2],
    sync_time: Duration,
}

/// The commits of a store that share syncs.
#[derive(Debug, Default)]
pub(super) struct Group {
    state: Mutex<State>,
    decided: Condvar,
}

impl Group {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes a record durable, whose first words are left for its header; takes what is in `record`.
    pub(super) fn commit(
        &self,
        record: &mut Vec<u64>,
        journal: &Journal,
        store: &StoreInner,
    ) -> Result<()> {
        let mut state = self.lock();
        state.waiting.push(std::mem::take(record));
        state.came += 1;
        let ticket = state.came;
        while state.done < ticket {
            if state.is_led {
                state = self
                    .decided
                    .wait(state)
                    .unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            state.is_led = true;
            state = self.wait_for_company(state);
            state = self.lead(state, journal, store);
        }
        match state.failed.iter().position(|(other, _)| *other == ticket) {
            Some(at) => Err(state.failed.swap_remove(at).1),
            None => Ok(()),
        }
    }

    /// How long the last group took: a commit waits for up to two.
    pub(super) fn sync_time(&self) -> Duration {
        self.lock().sync_time
    }

    /// Makes durable what waits in the queue, with the next group.
    pub(super) fn flush(&self, journal: &Journal, store: &StoreInner) -> Result<()> {
        self.commit(&mut vec![0; HEADER_WORDS], journal, store)
    }

    fn wait_for_company<'a>(&'a self, mut state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        let expected = state.sizes[0].min(state.sizes[1]);
        if expected < 2 {
            return state;
        }
        let (began, limit) = (Instant::now(), (state.sync_time / 2).min(WAIT_MAX));
        while state.waiting.len() < expected && began.elapsed() < limit {
            drop(state);
            std::thread::yield_now();
            state = self.lock();
        }
        state
    }

    /// Makes everything that waits durable.
    fn lead<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        journal: &Journal,
        store: &StoreInner,
    ) -> MutexGuard<'a, State> {
        let records = std::mem::take(&mut state.waiting);
        let (first, last) = (state.came + 1 - records.len() as u64, state.came);
        let count = records.len();
        let mut writer = match state.writer.take() {
            Some(writer) => writer,
            None => Box::new(Writer::new(journal)),
        };
        drop(state);
        let leading = Leading { group: self, store };
        let began = Instant::now();
        let mut failed = Vec::new();
        let mut barrier = Barrier::default();
        for (ticket, record) in (first..).zip(records) {
            // Each record may build on what waits in the queue. Without that it must not be written.
            let appended = journal
                .queue
                .append(&mut writer, journal, store, &mut barrier)
                .and_then(|()| {
                    writer.record = record;
                    match writer.is_empty() {
                        true => Ok(()),
                        false => writer.append(journal, store, &mut barrier),
                    }
                });
            if let Err(error) = appended {
                failed.push((ticket, *error));
            }
        }
        let synced = writer
            .write_out(&mut barrier)
            // ORDER: the records are durable before any of their commits returns.
            .and_then(|()| barrier.fence(true, COMMIT_FENCE));
        if synced.is_ok() {
            writer.publish(journal);
        }
        journal.queue.appended_is_decided(synced.is_err());
        std::mem::forget(leading);
        let mut state = self.lock();
        if synced.is_err() {
            // It is poisoned already where a write or a sync has failed.
            store
                .poison
                .set(&store.info.path, 0, "a log could not be written");
            failed = (first..=last)
                .filter_map(|ticket| Some((ticket, store.poison.check().err()?)))
                .collect();
        }
        state.failed.append(&mut failed);
        state.writer = Some(writer);
        state.sizes = [count, state.sizes[0]];
        state.sync_time = began.elapsed();
        state.done = last;
        state.is_led = false;
        self.decided.notify_all();
        state
    }
}

/// Tells those who wait, if a panic comes in between.
struct Leading<'g> {
    group: &'g Group,
    store: &'g StoreInner,
}

impl Drop for Leading<'_> {
    fn drop(&mut self) {
        let reason = "a panic kept a group of commits from being written";
        self.store.poison.set(&self.store.info.path, 0, reason);
        let mut state = self.group.lock();
        let undecided = state.done + 1..=state.came;
        let failed: Vec<_> = undecided
            .filter_map(|ticket| Some((ticket, self.store.poison.check().err()?)))
            .collect();
        state.failed.extend(failed);
        state.waiting.clear();
        state.done = state.came;
        state.is_led = false;
        self.group.decided.notify_all();
    }
}
