//! Group commit on the `file` domain: threads that commit at the same time share a sync.
//!
//! The first one to come leads: it appends the records of all who wait to the one log, writes them with one system call
//! and syncs once. Whoever comes meanwhile waits for the next group. A leader waits a little, up to half a sync, for
//! all who were in the last groups or came meanwhile: else threads would fall into two groups that take turns. A lone
//! thread never waits.
//!
//! Members sleep on a word of their group and go on without the lock when they are woken: with a condition variable all
//! of them would meet at the lock.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

use crossbeam_utils::CachePadded;
use rustix::thread::futex;

use super::super::log::writer::Writer;
use crate::contention;
use crate::error::{Error, Result};
use crate::opened::StoreInner;

/// The longest time that a leader waits for others.
const WAIT_MAX: Duration = Duration::from_micros(100);

#[derive(Debug, Default)]
struct GroupState {
    /// Records of the next group.
    waiting: Vec<Vec<u64>>,
    /// The number of the next group.
    group: u64,
    /// Records that ever came; the number of the last one is its ticket.
    came: u64,
    /// Tickets whose records could not be written, and why, until they are told.
    failed: Vec<(u64, Error)>,
    is_led: bool,
    /// The one log of the store.
    writer: Option<Box<Writer>>,
    /// For each of the last two groups, who was in it or came meanwhile; and how long the last sync took.
    companies: [usize; 2],
    sync_time: Duration,
}

/// The commits of a store that share syncs.
#[derive(Debug, Default)]
pub(crate) struct Group {
    state: Mutex<GroupState>,
    /// How many records wait, for a leader who waits for more.
    company: AtomicUsize,
    /// Tickets up to this are decided, and some record could not be written that is not told yet. Whoever is decided
    /// needs no lock to go on, unless one was not.
    done: AtomicU64,
    has_failed: AtomicBool,
    /// Where the members of groups of even and of odd numbers sleep; changed whenever any of them is to wake up.
    beds: [CachePadded<AtomicU32>; 2],
}

impl Group {
    fn lock(&self) -> MutexGuard<'_, GroupState> {
        contention::lock(&self.state)
    }

    fn bed(&self, group: u64) -> &AtomicU32 {
        &self.beds[(group % 2) as usize]
    }

    /// Wakes so many members of a group; under the lock.
    fn wake(&self, group: u64, count: u32) {
        let bed = self.bed(group);
        bed.fetch_add(1, Ordering::Release);
        // It fails only for a bad address.
        let _ = futex::wake(bed, futex::Flags::PRIVATE, count);
    }

    /// Makes a record durable, whose first words are left for its header; takes what is in `record`. Whoever leads has
    /// `write` make all records of a group durable: what it could not do for all of them, and for which of them, by
    /// their tickets from a first one on.
    pub(crate) fn write_together(
        &self,
        record: &mut Vec<u64>,
        store: &StoreInner,
        new_writer: impl Fn() -> Writer,
        write: impl Fn(&mut Writer, u64, Vec<Vec<u64>>) -> (Result<()>, Vec<(u64, Error)>),
    ) -> Result<()> {
        let mut state = self.lock();
        state.waiting.push(std::mem::take(record));
        self.company.store(state.waiting.len(), Ordering::Relaxed);
        state.came += 1;
        let (ticket, group) = (state.came, state.group);
        loop {
            // ORDER (of threads): what the leader did is seen.
            if self.done.load(Ordering::Acquire) >= ticket {
                break;
            }
            if state.is_led {
                // Read under the lock, so that no call comes in between.
                let bed = self.bed(group);
                let seen = bed.load(Ordering::Relaxed);
                drop(state);
                // It also returns where the word has changed, or for a signal.
                let _ = futex::wait(bed, futex::Flags::PRIVATE, seen, None);
                if self.is_durable(ticket) {
                    return Ok(());
                }
                state = self.lock();
                continue;
            }
            state.is_led = true;
            state = self.wait_for_company(state);
            state = self.lead(state, store, &new_writer, &write);
        }
        let told = state.failed.iter().position(|(other, _)| *other == ticket);
        let result = told.map_or(Ok(()), |at| Err(state.failed.swap_remove(at).1));
        self.has_failed
            .store(!state.failed.is_empty(), Ordering::Release);
        result
    }

    /// Whether that is so for sure.
    fn is_durable(&self, ticket: u64) -> bool {
        self.done.load(Ordering::Acquire) >= ticket && !self.has_failed.load(Ordering::Acquire)
    }

    /// How long the last group took: a commit waits for up to two.
    pub(crate) fn sync_time(&self) -> Duration {
        self.lock().sync_time
    }

    fn wait_for_company<'a>(
        &'a self,
        state: MutexGuard<'a, GroupState>,
    ) -> MutexGuard<'a, GroupState> {
        let expected = state.companies[0].min(state.companies[1]);
        if expected < 2 {
            return state;
        }
        let (began, limit) = (Instant::now(), (state.sync_time / 2).min(WAIT_MAX));
        drop(state);
        while self.company.load(Ordering::Relaxed) < expected && began.elapsed() < limit {
            std::thread::yield_now();
        }
        self.lock()
    }

    /// A group is decided: its members are told, and one of the next is to lead that, if nobody does who has just come.
    fn is_decided(&self, state: &mut GroupState, group: u64, last: u64) {
        self.has_failed
            .store(!state.failed.is_empty(), Ordering::Release);
        // ORDER (of threads): what was done for the group is seen by its members.
        self.done.store(last, Ordering::Release);
        state.is_led = false;
        self.wake(group, u32::MAX >> 1);
        if !state.waiting.is_empty() {
            self.wake(group + 1, 1);
        }
    }

    /// Makes everything that waits durable.
    fn lead<'a>(
        &'a self,
        mut state: MutexGuard<'a, GroupState>,
        store: &StoreInner,
        new_writer: &impl Fn() -> Writer,
        write: &impl Fn(&mut Writer, u64, Vec<Vec<u64>>) -> (Result<()>, Vec<(u64, Error)>),
    ) -> MutexGuard<'a, GroupState> {
        let records = std::mem::take(&mut state.waiting);
        self.company.store(0, Ordering::Relaxed);
        let group = state.group;
        state.group += 1;
        let (first, last) = (state.came + 1 - records.len() as u64, state.came);
        let count = records.len();
        let mut writer = match state.writer.take() {
            Some(writer) => writer,
            None => Box::new(new_writer()),
        };
        drop(state);
        let leading = Leading {
            group: self,
            number: group,
            store,
        };
        let began = Instant::now();
        let (synced, mut failed) = write(&mut writer, first, records);
        std::mem::forget(leading);
        let mut state = self.lock();
        if synced.is_err() {
            // It is poisoned already where a write or a sync has failed.
            store.set_poison("a log could not be written");
            failed = (first..=last)
                .filter_map(|ticket| Some((ticket, store.poison.check().err()?)))
                .collect();
        }
        state.failed.append(&mut failed);
        state.writer = Some(writer);
        state.companies = [count + state.waiting.len(), state.companies[0]];
        state.sync_time = began.elapsed();
        self.is_decided(&mut state, group, last);
        state
    }
}

/// Tells those who wait, if a panic comes in between.
struct Leading<'g> {
    group: &'g Group,
    number: u64,
    store: &'g StoreInner,
}

impl Drop for Leading<'_> {
    fn drop(&mut self) {
        self.store
            .set_poison("a panic kept a group of commits from being written");
        let mut state = self.group.lock();
        let undecided = self.group.done.load(Ordering::Relaxed) + 1..=state.came;
        let failed: Vec<_> = undecided
            .filter_map(|ticket| Some((ticket, self.store.poison.check().err()?)))
            .collect();
        state.failed.extend(failed);
        state.waiting.clear();
        let last = state.came;
        self.group.is_decided(&mut state, self.number, last);
        // Those of the next group are decided, too.
        self.group.wake(self.number + 1, u32::MAX >> 1);
    }
}

#[cfg(test)]
mod tests {
    use crate::{Announce, Domain, Error, PoolOptions, Store, StoreOptions};

    /// Transactions of nearly the largest size in one group: together they have more records than there are stamps at a
    /// time, which in tests are few.
    #[test]
    fn a_group_may_have_more_records_than_there_are_stamps() {
        const BYTES: usize = 8 << 20;
        let dir = tempfile::tempdir().unwrap();
        let options = StoreOptions::new().domain(Domain::File);
        let store = Store::create(dir.path().join("store"), options).unwrap();
        let pool = store.create_pool("pool", PoolOptions::new()).unwrap();
        std::thread::scope(|scope| {
            for thread in 0..4u8 {
                let pool = &pool;
                scope.spawn(move || {
                    let alloc = pool.transaction(|tx| tx.alloc_bytes(pool, 0, BYTES, 8));
                    let object = alloc.unwrap();
                    for round in 0..3 {
                        let changed = pool.transaction(|tx| {
                            // SAFETY: an object that only this thread knows.
                            unsafe {
                                tx.add_bytes(object, BYTES, Announce::Backup)?;
                                object.write_bytes(thread * 4 + round, BYTES);
                            }
                            Ok::<_, Error>(())
                        });
                        changed.unwrap();
                    }
                });
            }
        });
    }
}
