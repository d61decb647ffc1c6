//! What all threads of a store share to commit: stamps, the records that are durable, and how far home has come.
//!
//! Stamps are given without gaps, so "every record up to here" needs one number: `applied` (home holds it), `home`
//! (home holds it durably) and `watermark` (that this is so is durable itself, so that log space up to there may be
//! used again). A commit in flight holds up all three, because its stamp is drawn and its record is not there.

use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use crossbeam_utils::CachePadded;
use durum_format::record::{
    HEADER_WORDS, RingSalt, SEGMENT_SIZE, watermark_offset, watermark_words,
};
use durum_persist::{Site, line, record};

use super::blocks::Files;
use super::budget::Budget;
use super::checkpoint::Checkpoint;
use super::checkpointer::Checkpointer;
use super::group::Group;
use super::home::{Home, Mapped};
use super::latch::{Held, Latch};
use super::queue::{DRAIN, Queue};
use super::relief::Relief;
use super::segments::{Segment, Segments};
use crate::asymmetric::Bias;
use crate::contention;
use crate::error::{Error, Result, Step};
use crate::fault::guarded;
use crate::media::Barrier;
use crate::opened::{OfStore, StoreInner};
use crate::poison::Poison;

pub(super) const WATERMARK_WRITE: Site = Site("shadow.checkpoint: write back the watermark slot");
pub(super) const WATERMARK_FENCE: Site = Site("shadow.checkpoint: fence after the watermark slot");

/// Records that may be durable and not yet applied.
const SLOTS: usize = if cfg!(test) { 1 << 6 } else { 1 << 14 };
/// Lines of a record that are worth fetching ahead: most have no more, and of longer ones the processor fetches the
/// others by itself.
const PREFETCH_LINES: usize = 4;
/// The most that one transaction may log, in bytes: 3 GiB. Its parts, each of nearly a segment, need a slot each before
/// the first of them is applied.
pub(super) const TRANSACTION_MAX: u64 = SLOTS as u64 * SEGMENT_SIZE / 4 * 3;
/// With more records than this a thread that has not published them draws no further stamp: a transaction may take all
/// other slots.
pub(super) const UNPUBLISHED_MAX: usize = SLOTS / 4 - 1;
/// Log space for each thread that commits. Small enough to stay in the processor's cache, where a home update reads it
/// again.
const LOG_BYTES: u64 = 2 << 20;
/// Log space that there is in any case, for a full disk: what 100,000 deletes in one transaction take, 16 bytes to
/// change what leads to an object and 16 for its bit.
const KEPT_BYTES: u64 = 4 << 20;
/// Bytes of records that make a batch of home updates.
const BATCH_BYTES: usize = 128 << 10;
/// Bytes of copies that make one where they wait, unless the store's logs may not hold several times as much.
const WAITING_BYTES: usize = 16 << 20;
/// On the `file` domain all threads share one log, and a batch costs a sync of each file that it changes.
const FILE_LOG_BYTES: u64 = 8 << 20;
pub(super) const FILE_BATCH_BYTES: usize = 2 << 20;

/// The shared part.
pub(crate) struct Journal {
    /// The last stamp that was given.
    drawn: CachePadded<AtomicU64>,
    /// Stamp s, modulo the size: the address of its record once that is durable, 0 before, and again when it was
    /// applied.
    durable: Box<[AtomicUsize]>,
    applied: CachePadded<AtomicU64>,
    home: CachePadded<AtomicU64>,
    watermark: CachePadded<AtomicU64>,
    /// Up to this stamp records may be about any place: about space that was freed before their stamp was drawn, or
    /// that was free all the time.
    any_place: AtomicU64,
    checkpoint: CachePadded<Latch<Checkpoint>>,
    segments: Mutex<Segments>,
    next_log: AtomicU32,
    /// The slot that the next watermark goes to.
    slot: AtomicUsize,
    /// What to add to an address to get its home, where that is mapped.
    pub(super) home_offset: usize,
    /// The store's.
    poison: Arc<Poison>,
    /// Logs grow up to this many bytes before a commit waits for home updates, and what is not home to as much
    /// [`weight`](super::weight).
    log_max: u64,
    /// Transactions that have committed and are not durable yet.
    pub(super) queue: Queue,
    pub(super) checkpointer: Checkpointer,
    /// Gives private pages back.
    pub(super) relief: Mutex<Relief>,
    /// The private pages of the store.
    pub(super) budget: Arc<Budget>,
    /// On the `file` domain: commits that share a sync.
    pub(super) group: Option<Group>,
}

impl std::fmt::Debug for Journal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Journal")
            .field("drawn", &self.drawn)
            .field("home", &self.home)
            .finish_non_exhaustive()
    }
}

impl OfStore for Journal {
    fn upkeep(&self, store: &StoreInner) {
        self.give_pages_back(store);
    }

    fn give_log_back(&self, store: &StoreInner) -> Result<()> {
        self.bring_home()?;
        self.trim(store);
        Ok(())
    }

    fn stop(&self) {
        self.lock_checkpoint().stop();
    }

    fn pages_given_back(&self) -> u64 {
        self.budget.given_back()
    }
}

impl StoreInner {
    /// What the threads share that use pools of this engine.
    pub(crate) fn journal(&self) -> Arc<Journal> {
        self.kept.find_or_make(|| Journal::new(self))
    }
}

impl Journal {
    /// The journal of a store, whose puddles have their home places behind the places where programs see them, or in
    /// files.
    fn new(store: &StoreInner) -> Self {
        let home_offset = (!store.private).then_some(store.info.space_size as usize);
        let options = &store.options;
        let log_max = options.log_max;
        let checkpoint = match home_offset {
            Some(offset) => {
                let waiting_max = WAITING_BYTES.min(log_max as usize / 4);
                let shift = (waiting_max / BATCH_BYTES).max(1).ilog2();
                Checkpoint::new(Home::Mapped(Mapped::new(offset, shift)), BATCH_BYTES)
            }
            None => Checkpoint::new(Home::Files(Files::default()), FILE_BATCH_BYTES),
        };
        Self {
            drawn: CachePadded::default(),
            durable: (0..SLOTS).map(|_| AtomicUsize::new(0)).collect(),
            applied: CachePadded::default(),
            home: CachePadded::default(),
            watermark: CachePadded::default(),
            any_place: AtomicU64::new(0),
            checkpoint: CachePadded::new(Latch::new(checkpoint)),
            segments: Mutex::default(),
            next_log: AtomicU32::new(1),
            slot: AtomicUsize::new(0),
            home_offset: home_offset.unwrap_or(0),
            poison: store.poison.clone(),
            log_max,
            queue: Queue::new(options.buffered_window),
            checkpointer: Checkpointer::new(options.checkpoint_thread),
            budget: Budget::new(options.private_max, store.upkeep.clone()),
            relief: Mutex::default(),
            group: home_offset.is_none().then(Group::default),
        }
    }

    /// A number for a new log.
    pub(super) fn join(&self) -> u32 {
        self.checkpoint.join(self.group.is_none());
        self.next_log.fetch_add(1, Ordering::Relaxed)
    }

    pub(super) fn leave(&self) {
        self.checkpoint.leave();
    }

    /// Draws `count` stamps; the first of them. Every one has to be published. An error has poisoned the store.
    #[inline]
    pub(super) fn draw(&self, count: u64) -> Step<u64> {
        // ORDER (of threads): the caller still holds the locks of what it changed, so whoever changes it next draws a
        // larger stamp.
        let first = self.drawn.fetch_add(count, Ordering::AcqRel) + 1;
        if !self.has_slots(first + count) {
            self.wait_for_slots(first + count)?;
        }
        Ok(first)
    }

    /// Whether there are slots for stamps before `end`.
    #[inline]
    fn has_slots(&self, end: u64) -> bool {
        end - self.applied.load(Ordering::Acquire) <= SLOTS as u64
    }

    /// Draws a stamp, and takes the checkpoint if nobody works on it.
    #[inline(always)]
    pub(super) fn draw_and_take(&self) -> Step<(u64, Option<Held<'_, Checkpoint>>)> {
        if let Some(checkpoint) = self.checkpoint.try_alone() {
            // Nobody else draws.
            let stamp = self.drawn.load(Ordering::Relaxed) + 1;
            if self.has_slots(stamp + 1) {
                self.drawn.store(stamp, Ordering::Release);
                return Ok((stamp, Some(checkpoint)));
            }
        }
        self.draw_and_take_among_others()
    }

    #[inline(never)]
    fn draw_and_take_among_others(&self) -> Step<(u64, Option<Held<'_, Checkpoint>>)> {
        Ok((self.draw(1)?, self.take_checkpoint()))
    }

    /// What lets a thread alone commit, and keeps others from the checkpoint meanwhile.
    pub(super) fn bias(&self) -> &Bias {
        self.checkpoint.bias()
    }

    /// The checkpoint, for the thread of a [`Writer`](super::Writer), if nobody works on it.
    pub(super) fn take_checkpoint(&self) -> Option<Held<'_, Checkpoint>> {
        self.checkpoint.try_among_others()
    }

    /// Others have committed so much that the records could not be told apart: helps until there is room.
    #[cold]
    fn wait_for_slots(&self, end: u64) -> Result<()> {
        while !self.has_slots(end) {
            self.poison.check()?;
            match self.take_checkpoint() {
                Some(mut checkpoint) => checkpoint.advance_fully(self)?,
                None => std::thread::yield_now(),
            }
        }
        Ok(())
    }

    /// The record with this stamp is durable; it lies at `address`.
    #[inline]
    pub(super) fn publish(&self, stamp: u64, address: usize) {
        self.durable[stamp as usize % SLOTS].store(address, Ordering::Release);
    }

    /// The entries of the record with this stamp, if it is durable.
    #[inline]
    pub(super) fn durable_record(&self, stamp: u64) -> Option<&[u64]> {
        let address = self.durable[stamp as usize % SLOTS].load(Ordering::Acquire);
        if address == 0 {
            return None;
        }
        // SAFETY: a record that was published and not yet applied; its segment is not written again before it is home.
        unsafe {
            let head = address as *const u64;
            let words = (u64::from_le(head.read()) >> 32) as usize / 8;
            Some(std::slice::from_raw_parts(head.add(HEADER_WORDS), words))
        }
    }

    /// Fetches the record that is to be applied next.
    #[inline]
    pub(super) fn prefetch_next(&self) {
        self.prefetch(self.applied.load(Ordering::Relaxed) + 1);
    }

    /// Fetches the record with this stamp, if it is to be applied. A line that was written back has left the nearest
    /// caches: to read it takes as long as a hundred instructions.
    #[inline]
    pub(super) fn prefetch(&self, stamp: u64) {
        let address = self.durable[stamp as usize % SLOTS].load(Ordering::Relaxed);
        for index in 0..PREFETCH_LINES {
            line::prefetch(address + index * line::LINE);
        }
    }

    #[inline]
    pub(super) fn was_applied(&self, stamp: u64) {
        self.durable[stamp as usize % SLOTS].store(0, Ordering::Relaxed);
        self.applied.store(stamp, Ordering::Release);
    }

    pub(super) fn is_home(&self, stamp: u64) {
        self.home.store(stamp, Ordering::Release);
    }

    /// The watermark that a new record may carry.
    #[inline]
    pub(super) fn home(&self) -> u64 {
        self.home.load(Ordering::Acquire)
    }

    /// Records up to this stamp are home, and the media say so: they are never replayed.
    #[inline]
    pub(super) fn watermark(&self) -> u64 {
        self.watermark.load(Ordering::Acquire)
    }

    /// The last stamp that was given.
    pub(crate) fn drawn(&self) -> u64 {
        self.drawn.load(Ordering::Acquire)
    }

    /// The records that were drawn so far may be about any place.
    ///
    /// - The queue's are drawn after the transactions in it have let go of what they freed.
    /// - A section logs what differs from home, also in free memory, where an aborted transaction left it.
    pub(super) fn may_be_about_any_place(&self) {
        self.any_place.fetch_max(self.drawn(), Ordering::AcqRel);
    }

    /// Up to which stamp records may be about any place; `None`: some of them are not drawn yet.
    pub(super) fn is_about_any_place_until(&self) -> Option<u64> {
        // ORDER (of threads): the stamps of what was in the queue are there before it is out of use.
        match self.queue.is_in_use() {
            true => None,
            false => Some(self.any_place.load(Ordering::Acquire)),
        }
    }

    /// A record or a slot with this watermark is durable.
    pub(super) fn watermark_is_durable(&self, watermark: u64) {
        self.watermark.fetch_max(watermark, Ordering::AcqRel);
    }

    /// The checkpoint, for others, if nobody works on it.
    pub(super) fn try_checkpoint(&self) -> Option<Held<'_, Checkpoint>> {
        self.checkpoint.try_lock()
    }

    /// Sees to it that there is log space. Without room the first commit reports it.
    pub(crate) fn prepare(&self, store: &StoreInner) {
        let mut segments = self.lock_segments();
        while segments.bytes() < KEPT_BYTES {
            if let Err(error) = segments.grow(store) {
                tracing::warn!(%error, "no log could be made ahead");
                return;
            }
        }
    }

    fn lock_segments(&self) -> MutexGuard<'_, Segments> {
        contention::lock(&self.segments)
    }

    /// Gives back a segment whose last record has the stamp `last`, and whose records weigh so much.
    pub(super) fn put_segment(&self, last: u64, weight: u64, segment: Segment) {
        self.lock_segments().put(last, weight, segment);
    }

    /// For a commit that has come to the end of a segment, when it is durable: where a recovery would take too long by
    /// now, brings home what is logged. Mostly it is this commit itself that has logged so much.
    ///
    /// Not on files: there the checkpointer starts with each batch, and a commit would wait for its syncs.
    pub(super) fn keep_recovery_short(&self) -> Result<()> {
        if self.group.is_some()
            || self.lock_segments().live_weight(self.watermark()) <= self.log_max
        {
            return Ok(());
        }
        self.bring_home()
    }

    /// A segment that may be written. The caller has drawn no stamp that it has not published.
    pub(super) fn take_segment(&self, store: &StoreInner) -> Result<Segment> {
        {
            let mut segments = self.lock_segments();
            if let Some(segment) = segments.take(self.watermark()) {
                return Ok(segment);
            }
            // On a full disk what there is has to do.
            if segments.bytes() < self.log_max
                && segments.grow(store).is_ok()
                && let Some(segment) = segments.take(0)
            {
                return Ok(segment);
            }
        }
        self.bring_home()?;
        let mut segments = self.lock_segments();
        loop {
            if let Some(segment) = segments.take(self.watermark()) {
                return Ok(segment);
            }
            // All of it is in flight: transactions larger than the log, or threads that were put aside in a commit.
            match segments.grow(store) {
                Err(full @ Error::Store(durum_service::Error::StorageFull { .. })) => {
                    return Err(store.log_full(full));
                }
                grown => grown?,
            }
        }
    }

    /// The checkpointer's step on the `file` domain: brings a batch home, or as much as there is.
    pub(crate) fn bring_batch_home(&self) -> Result<()> {
        self.lock_checkpoint().advance_batch(self)
    }

    /// On the `file` domain: brings records home when enough have gathered that a sync of the files is worth it.
    pub(super) fn bring_home_if_due(&self) -> Result<()> {
        let Some(mut checkpoint) = self.try_checkpoint() else {
            return Ok(());
        };
        match checkpoint.is_due(self) {
            true => checkpoint.advance_fully(self),
            false => Ok(()),
        }
    }

    /// Brings home every record that can be, and makes that known on the media. For when no record will carry the
    /// watermark in time.
    pub(super) fn bring_home(&self) -> Result<()> {
        let mut checkpoint = self.lock_checkpoint();
        checkpoint.advance_fully(self)?;
        self.poison.check()?;
        let home = self.home();
        if self.watermark() < home {
            self.write_watermark(home)?;
        }
        Ok(())
    }

    /// Under the checkpoint's lock.
    fn write_watermark(&self, watermark: u64) -> Result<()> {
        let Some(puddle) = self.lock_segments().first_puddle() else {
            return Ok(());
        };
        let slot = self.slot.fetch_add(1, Ordering::Relaxed);
        let offset = watermark_offset(puddle.size as u64, slot);
        let words = watermark_words(watermark, &RingSalt::new(puddle.uuid), offset);
        let address = puddle.address + offset as usize;
        let mut barrier = Barrier::default();
        guarded(|| {
            // SAFETY: a slot of a mapped puddle, which the holder of the checkpoint's lock writes only.
            unsafe { line::copy(address as *mut u8, words.as_ptr().cast(), 16) };
            barrier.write_back(&puddle, address, 16, WATERMARK_WRITE)
        })?;
        // ORDER: the watermark is durable before anybody writes over the records that it covers.
        barrier.fence(puddle.private, WATERMARK_FENCE)?;
        puddle.check_failed()?;
        self.watermark_is_durable(watermark);
        Ok(())
    }

    /// Log space that is kept.
    fn kept_bytes(&self) -> u64 {
        match self.group {
            Some(_) => FILE_LOG_BYTES,
            None => (LOG_BYTES * u64::from(self.checkpoint.members())).max(KEPT_BYTES),
        }
    }

    /// Applies what was committed, so that home shows it ([`Checkpoint::home`]). The caller has closed the store's
    /// gate: nothing is committed meanwhile.
    pub(super) fn apply_all(&self, store: &StoreInner) -> Result<()> {
        self.flush(store)?;
        self.apply_drawn(store)
    }

    /// Applies every record whose stamp was drawn.
    pub(super) fn apply_drawn(&self, store: &StoreInner) -> Result<()> {
        let target = self.drawn();
        loop {
            store.poison.check()?;
            self.lock_checkpoint().apply_all(self);
            if self.applied.load(Ordering::Acquire) >= target {
                return Ok(());
            }
            // A record is not published although its commit is over: it has failed, and the poison is on its way.
            std::thread::yield_now();
        }
    }

    pub(super) fn lock_checkpoint(&self) -> Held<'_, Checkpoint> {
        self.checkpoint.lock()
    }

    pub(crate) fn skip_home_updates(&self) {
        self.lock_checkpoint().skip_home();
    }

    /// Gives log space back that large transactions took.
    fn trim(&self, store: &StoreInner) {
        let watermark = self.watermark();
        let unneeded = self.lock_segments().trim(watermark, self.kept_bytes());
        for puddle in unneeded {
            store.remove_log_puddle(puddle);
        }
    }

    /// Writes the queue, and waits until every record that was drawn before is home, durably, and the media say so:
    /// then nothing will be written to any puddle for them, now or in a recovery.
    pub(crate) fn drain(&self, store: &StoreInner) -> Result<()> {
        if !record::leaves_out(DRAIN) {
            self.flush(store)?;
        }
        let target = self.drawn();
        while self.watermark() < target {
            store.poison.check()?;
            self.bring_home()?;
            if self.home() < target {
                // A commit that is in flight in another thread.
                std::thread::yield_now();
            }
        }
        self.trim(store);
        Ok(())
    }

    /// Ends the threads that write the queue and home places; a store that is used on starts others.
    pub(crate) fn stop_threads(&self) {
        self.queue.stop_flusher();
        self.stop_checkpointer();
    }
}
