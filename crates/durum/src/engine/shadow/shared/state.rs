//! What all threads of a store share to commit, and what takes more than one part of it: home updates that are due, log
//! space that is found or given back.
//!
//! The parts know nothing of each other, nor of this.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use durum_format::record::{RingSalt, watermark_offset, watermark_words};
use durum_persist::{Site, line};

use super::super::home::checkpoint::Checkpoint;
use super::super::home::files::Files;
use super::super::home::mapped::Mapped;
use super::super::home::pending::Arrived;
use super::super::home::places::{Home, HomePages};
use super::super::log::segments::{Segment, Segments};
use super::super::log::stamps::Stamps;
use super::super::log::writer::{Log, Writer};
use super::super::pages::budget::Budget;
use super::super::pages::puddle::{LastStamp, is_large};
use super::background::{Next, Sleeper};
use super::checkpointer::{Checkpointer, FILE_BATCH_BYTES};
use super::group::Group;
use super::lanes::Lanes;
use super::queue::Queue;
use crate::asymmetric::Bias;
use crate::contention;
use crate::error::{Error, Result, Step};
use crate::fault::guarded;
use crate::media::Barrier;
use crate::opened::StoreInner;
use crate::poison::Poison;
use crate::primitive::locked;

pub(crate) const WATERMARK_WRITE: Site = Site("shadow.checkpoint: write back the watermark slot");
pub(crate) const WATERMARK_FENCE: Site = Site("shadow.checkpoint: fence after the watermark slot");

/// Log space for each thread that commits. Small enough to stay in the processor's cache, where a home update reads it
/// again.
const LOG_BYTES: u64 = 2 << 20;
/// Log space that there is in any case, for a full disk: what 100,000 deletes in one transaction take, 16 bytes to
/// change what leads to an object and 16 for its bit.
const KEPT_BYTES: u64 = 4 << 20;
/// Bytes of records that make a batch of home updates, if its lines do not make one before: unless the store's logs may
/// not hold several times as much.
const BATCH_BYTES: usize = 4 << 20;
const BATCH_BYTES_MIN: usize = 128 << 10;
/// Bytes of copies that make one where they wait, unless the store's logs may not hold several times as much.
const WAITING_BYTES: usize = 16 << 20;
/// On the `file` domain all threads share one log.
const FILE_LOG_BYTES: u64 = 8 << 20;

/// What a store's threads share.
pub(crate) struct Shared {
    pub(crate) stamps: Stamps,
    /// Up to this stamp records may be about any place: about space that was freed before their stamp was drawn, or
    /// that was free all the time.
    any_place: AtomicU64,
    pub(crate) lanes: Lanes,
    /// On files: records that are durable, for who works on the checkpoint of the one lane.
    pub(crate) arrived: Arc<Arrived>,
    segments: Mutex<Segments>,
    next_log: AtomicU32,
    /// The slot that the next watermark goes to.
    slot: Mutex<usize>,
    /// What to add to an address to get its home, where that is mapped.
    pub(crate) home_offset: usize,
    /// The store's.
    poison: Arc<Poison>,
    /// Logs grow up to this many bytes before a commit waits for home updates, and what is not home to as much
    /// [recovery cost](super::super::log::recovery_cost).
    log_max: u64,
    /// Transactions that have committed and are not durable yet.
    pub(crate) queue: Queue,
    checkpointer: Checkpointer,
    /// Makes pages ahead.
    page_maker: Sleeper,
    /// The private pages of the store.
    pub(crate) budget: Arc<Budget>,
    /// On the `file` domain: commits that share a sync.
    pub(crate) group: Option<Group>,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared")
            .field("stamps", &self.stamps)
            .finish_non_exhaustive()
    }
}

impl LastStamp for Shared {
    fn last_stamp(&self) -> u64 {
        self.stamps.drawn()
    }
}

impl Shared {
    /// That of this store.
    pub(crate) fn of(store: &StoreInner) -> Arc<Self> {
        store.kept.find_or_make(|| Self::new(store))
    }

    /// That of a store, whose puddles have their home places behind the places where programs see them, or in
    /// files.
    fn new(store: &StoreInner) -> Self {
        let home_offset = (!store.private).then_some(store.info.space_size as usize);
        let options = &store.options;
        let log_max = options.log_max;
        let base = store.info.base as usize;
        let space = base..base + store.info.space_size as usize;
        let batch_max = match home_offset {
            Some(_) => (log_max as usize / 8).clamp(BATCH_BYTES_MIN, BATCH_BYTES),
            None => FILE_BATCH_BYTES,
        };
        Self {
            stamps: Stamps::new(batch_max),
            any_place: AtomicU64::new(0),
            lanes: Lanes::new(batch_max, space),
            arrived: Arc::default(),
            segments: Mutex::default(),
            next_log: AtomicU32::new(1),
            slot: Mutex::new(0),
            home_offset: home_offset.unwrap_or(0),
            poison: store.poison.clone(),
            log_max,
            queue: Queue::new(options.buffered_window),
            checkpointer: Checkpointer::new(options.checkpoint_thread),
            budget: Budget::new(
                options.private_max,
                options.pages_ahead && home_offset.is_some(),
                store.upkeep.clone(),
            ),
            page_maker: Sleeper::default(),
            group: home_offset.is_none().then(Group::default),
        }
    }

    /// A new log, for a thread that has a part in what all commit to from now on.
    pub(crate) fn new_log(&self) -> Log {
        let new = |home| Checkpoint::new(home, self.arrived.clone());
        let lane = match self.group {
            None => {
                let batch_max = self.lanes.batch_max();
                let waiting_max = WAITING_BYTES.min(self.log_max as usize / 4);
                let home = Mapped::new(self.home_offset, batch_max, waiting_max);
                self.lanes.join(|| new(Home::Mapped(home)), &self.stamps)
            }
            Some(_) => {
                let checkpoint = || new(Home::Files(Files::default()));
                self.lanes.share(checkpoint)
            }
        };
        Log {
            writer: self.new_writer(),
            lane,
        }
    }

    /// The writing end of the log of a store on files.
    pub(crate) fn new_writer(&self) -> Writer {
        Writer::new(self.next_log.fetch_add(1, Ordering::Relaxed))
    }

    /// The thread ends: its segment goes to others.
    pub(crate) fn give_back(&self, mut log: Log) {
        log.writer.exchange_segment(&self.segments, None);
        match self.group {
            None => self.lanes.leave(log.lane, &self.stamps),
            Some(_) => self.lanes.leave_shared(),
        }
    }

    /// What lets a thread alone commit.
    pub(crate) fn bias(&self) -> &Bias {
        self.lanes.bias()
    }

    /// The records that were drawn so far may be about any place.
    ///
    /// - The queue's are drawn after the transactions in it have let go of what they freed.
    /// - A section logs what differs from home, also in free memory, where an aborted transaction left it.
    pub(crate) fn may_be_about_any_place(&self) {
        self.any_place
            .fetch_max(self.stamps.drawn(), Ordering::AcqRel);
    }

    /// Up to which stamp records may be about any place; `None`: some of them are not drawn yet.
    pub(crate) fn is_about_any_place_until(&self) -> Option<u64> {
        // ORDER (of threads): the stamps of what was in the queue are there before it is out of use.
        match self.queue.is_in_use() {
            true => None,
            false => Some(self.any_place.load(Ordering::Acquire)),
        }
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

    /// For a commit that has come to the end of what it may use of a segment, when it is durable: where a recovery
    /// would take too long by now, brings home what is logged. Mostly it is this commit itself that has logged so much.
    ///
    /// Not on files: there the checkpointer starts with each batch, and a commit would wait for its syncs.
    pub(crate) fn keep_recovery_short(&self) -> Result<()> {
        if self.group.is_some()
            || self.lock_segments().recovery_cost(self.stamps.watermark()) <= self.log_max
        {
            return Ok(());
        }
        self.bring_home()
    }

    /// A segment that may be written, up to `bytes` bytes if it has so many. The caller has drawn no stamp that it has
    /// not published.
    pub(crate) fn take_segment(&self, store: &StoreInner, bytes: usize) -> Result<Segment> {
        {
            let mut segments = self.lock_segments();
            if let Some(segment) = segments.take(self.stamps.watermark(), bytes)? {
                return Ok(segment);
            }
            // On a full disk what there is has to do.
            if segments.bytes() < self.log_max
                && segments.grow(store).is_ok()
                && let Some(segment) = segments.take(0, bytes)?
            {
                return Ok(segment);
            }
        }
        self.bring_home()?;
        let mut segments = self.lock_segments();
        loop {
            if let Some(segment) = segments.take(self.stamps.watermark(), bytes)? {
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

    /// The checkpointer's step: on the `file` domain brings a batch home, or as much as there is.
    pub(crate) fn bring_batch_home(&self) -> Result<()> {
        let _span = tracing::debug_span!("checkpoint").entered();
        match self.lanes.shared() {
            None => self.lanes.bring_home(&self.stamps),
            Some(lane) => {
                let mut checkpoint = lane.checkpoint.lock();
                let result = checkpoint.advance_batch(&self.stamps);
                self.stamps.is_home(checkpoint.home_up_to());
                result
            }
        }
    }

    /// On the `file` domain: brings records home when enough have gathered that a sync of the files is worth it, and
    /// nobody does so.
    pub(crate) fn bring_home_if_due(&self) -> Result<()> {
        let lane = self.lanes.shared();
        let Some(mut checkpoint) = lane.as_ref().and_then(|lane| lane.checkpoint.try_lock()) else {
            return Ok(());
        };
        match checkpoint.is_due(&self.stamps) {
            true => self.write_home(&mut checkpoint),
            false => Ok(()),
        }
    }

    /// On the `file` domain: brings every record home that can be.
    fn write_home(&self, checkpoint: &mut Checkpoint) -> Result<()> {
        let result = checkpoint.advance_fully(&self.stamps);
        self.stamps.is_home(checkpoint.home_up_to());
        result
    }

    /// Brings every record home that can be. The media need not know.
    pub(crate) fn write_all_home(&self) -> Result<()> {
        match self.lanes.shared() {
            None => self.lanes.bring_home(&self.stamps),
            Some(lane) => self.write_home(&mut lane.checkpoint.lock()),
        }
    }

    /// Brings home every record that can be, and makes that known on the media. For when no record will carry the
    /// watermark in time.
    pub(crate) fn bring_home(&self) -> Result<()> {
        let _span = tracing::debug_span!("checkpoint").entered();
        self.write_all_home()?;
        self.poison.check()?;
        let mut slot = locked(&self.slot);
        let home = self.stamps.home();
        match self.stamps.watermark() < home {
            true => self.write_watermark(home, &mut slot),
            false => Ok(()),
        }
    }

    fn write_watermark(&self, watermark: u64, slot: &mut usize) -> Result<()> {
        let Some(puddle) = self.lock_segments().first_puddle() else {
            return Ok(());
        };
        *slot = slot.wrapping_add(1);
        let offset = watermark_offset(puddle.size as u64, *slot);
        let words = watermark_words(watermark, &RingSalt::new(puddle.uuid), offset);
        let address = puddle.address + offset as usize;
        let mut barrier = Barrier::default();
        guarded(|| {
            // SAFETY: a slot of a mapped puddle, which only the holder of `slot` writes.
            unsafe { line::copy(address as *mut u8, words.as_ptr().cast(), 16) };
            barrier.write_back(&puddle, address, 16, WATERMARK_WRITE)
        })?;
        // ORDER: the watermark is durable before anybody writes over the records that it covers.
        barrier.fence(puddle.private, WATERMARK_FENCE)?;
        puddle.check_failed()?;
        self.stamps.watermark_is_durable(watermark);
        Ok(())
    }

    /// Log space that is kept.
    fn kept_bytes(&self) -> u64 {
        match self.group {
            Some(_) => FILE_LOG_BYTES,
            None => (LOG_BYTES * u64::from(self.lanes.members())).max(KEPT_BYTES),
        }
    }

    /// Applies every record whose stamp was drawn.
    pub(crate) fn apply_drawn(&self, store: &StoreInner) -> Result<()> {
        let target = self.stamps.drawn();
        loop {
            store.poison.check()?;
            let mut applied = 0;
            self.lanes.visit(|mut checkpoint| {
                checkpoint.apply_all();
                applied = checkpoint.applied();
            });
            // Who draws for a lane of its own holds its checkpoint until the record is there.
            if self.group.is_none() || applied >= target {
                return Ok(());
            }
            // A record has not arrived although its commit is over: it has failed, and the poison is on its way.
            std::thread::yield_now();
        }
    }

    /// Has `work` look at home while nobody commits.
    pub(crate) fn with_home<R>(&self, work: impl FnOnce(&HomePages<'_>) -> R) -> R {
        self.lanes.with_all(|checkpoints| {
            let homes = checkpoints.iter().map(|checkpoint| checkpoint.home());
            work(&HomePages::new(self.home_offset, homes.collect()))
        })
    }

    /// Gives log space back that large transactions took.
    pub(crate) fn trim(&self, store: &StoreInner) {
        let watermark = self.stamps.watermark();
        let unneeded = self.lock_segments().trim(watermark, self.kept_bytes());
        for puddle in unneeded {
            store.remove_log_puddle(&puddle);
        }
    }

    /// Waits until every record that was drawn before is home, durably, and the media say so: then nothing will be
    /// written to any puddle for them, now or in a recovery.
    pub(crate) fn drain(&self, store: &StoreInner) -> Result<()> {
        let target = self.stamps.drawn();
        while self.stamps.watermark() < target {
            store.poison.check()?;
            self.bring_home()?;
            if self.stamps.home() < target {
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
        self.checkpointer.stop();
        self.page_maker.stop();
    }

    /// Has a thread make the pages that are wanted ahead. Without one they are made when they are needed.
    pub(crate) fn make_pages_ahead(&self, store: &Arc<StoreInner>) {
        let is_awake = self.page_maker.wake("durum-pages", store, |store| {
            let shared = Self::of(store);
            shared.budget.make_piece(is_large);
            match shared.budget.has_work() {
                // In between it may be stopped.
                true => Next::After(Duration::ZERO),
                false => Next::WhenWoken,
            }
        });
        if !is_awake {
            self.budget.make_nothing_ahead();
        }
    }

    /// A commit has logged so many bytes. On the `file` domain: with each batch somebody brings it home.
    pub(crate) fn logged(
        &self,
        bytes: usize,
        store: &Arc<StoreInner>,
        step: fn(&StoreInner) -> Next,
    ) -> Result<()> {
        match self.checkpointer.is_left_with(bytes, store, step) {
            true => self.bring_home_if_due(),
            false => Ok(()),
        }
    }

    /// The work of the checkpointer's thread: batches, as long as there is enough for one.
    pub(crate) fn bring_batches_home(&self, store: &StoreInner) -> Next {
        loop {
            self.checkpointer.begins();
            // An error has poisoned the store, and is told to the next who uses it.
            let result = store.poison.check().and_then(|()| self.bring_batch_home());
            if result.is_err() || !self.checkpointer.has_batch() {
                return Next::WhenWoken;
            }
        }
    }

    /// Writes a record that does not fit where the writer's cursor is, or is not all in one piece. `draw` draws so many
    /// stamps, when all room for it is there.
    #[cold]
    pub(crate) fn put_in_parts(
        &self,
        writer: &mut Writer,
        store: &StoreInner,
        draw: impl FnOnce(u64) -> u64,
        barrier: &mut Barrier,
    ) -> Step {
        let take = |bytes| self.take_segment(store, bytes);
        writer.put_in_parts(&self.stamps, &self.segments, take, draw, barrier)
    }
}
