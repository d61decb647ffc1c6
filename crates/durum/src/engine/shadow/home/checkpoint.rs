//! Home updates: committed records are brought to their home places.
//!
//! Each log has a checkpoint, which its own thread steps while it commits. It has the lock from before the stamp of a
//! record is drawn until its fence is through: so a fence always covers the write-backs of its own thread, and whoever
//! takes the lock finds no record half way. Home bytes come from records only: the program's memory may hold what is
//! not committed.
//!
//! *When a record is applied.* Of two transactions that change one word the later one must be applied later. While one
//! thread commits alone, its records wait, in their order, and are applied while the fence of a later one is under way.
//! As soon as there are others, each record is applied before its commit returns, and so before its locks are let go.
//! On files all threads share one log, whose records are applied in their order.
//!
//! *When it is home.* Lines gather in a batch. When the batch is full, by the bytes of its records or by its lines, its
//! lines are written back, each once, while the next batch fills. When a fence has covered the last of them, every
//! record of the batch is home. So a line that is written again and again goes home once for megabytes of records, and
//! what many records change that meet no line twice goes home in small batches, which a recovery has soon written.

use std::sync::Arc;

use durum_format::record::HEADER_WORDS;
use durum_persist::{Site, line, record as recorder};

use super::super::log::entries::entries_at;
use super::super::log::stamps::Stamps;
use super::super::wide::Wide;
use super::files::DRAIN_FENCE;
use super::mapped::Records;
use super::pending::{Arrived, Pending, Span, Unfenced};
use super::places::Home;
use crate::error::Result;
use crate::fault::Guard;

/// Where somebody waits for records to be home, a batch is full with so many times fewer bytes of them.
const WANTED_FACTOR: usize = 32;
/// Pages that wait in a batch are written while so many bytes are logged, or before.
const PAGES_PACE: usize = 1 << 20;

pub(crate) const LAND_WRITE: Site =
    Site("shadow.land: write back again what another thread has left in flight");
pub(crate) const LAND_FENCE: Site =
    Site("shadow.land: fence after what another thread has left in flight");
/// The step as a whole. A crash test leaves it out.
const LAND: Site = Site("shadow.land: make durable what is in flight before it is applied");

/// Whether records may be applied by whole lines.
#[inline(always)]
fn wide() -> Option<Wide> {
    Wide::find().filter(|_| !line::is_recorded())
}

/// What is kept of a log between the steps of its checkpoint.
#[derive(Debug)]
pub(crate) struct Checkpoint {
    home: Home,
    pub(crate) pending: Pending,
    /// On files: where pending records come from.
    arrived: Arc<Arrived>,
    /// The last record that was applied.
    applied: u64,
    /// The records of the batch, and their bytes.
    batch: Span,
    batch_bytes: usize,
    /// Those of the batch that is being written.
    writing: Span,
    /// Nothing is applied any more: memory may be gone.
    stopped: bool,
    /// Records count as home without having been brought there.
    skips_home: bool,
}

impl Checkpoint {
    pub(crate) fn new(home: Home, arrived: Arc<Arrived>) -> Self {
        Self {
            home,
            pending: Pending::default(),
            arrived,
            applied: 0,
            batch: Span::default(),
            batch_bytes: 0,
            writing: Span::default(),
            stopped: false,
            skips_home: false,
        }
    }

    /// The first half of a step for so many bytes, before the fence of the caller, which then calls
    /// [`Checkpoint::fenced`]: writes lines back, so that all of a batch are when a third of the next one has come. How
    /// many.
    #[inline(never)]
    pub(crate) fn write_back(&mut self, stamps: &Stamps, bytes: usize) -> usize {
        let batch = self.fill(stamps) * 3;
        if let Home::Mapped(home) = &mut self.home
            && !home.is_written()
        {
            // ORDER: durable with the caller's fence, before their records count as home.
            let lines =
                home.write_back_up_to(home.writing() * (batch + bytes) / stamps.batch_max());
            home.write_pages(1 + home.leaving() * 3 * bytes / PAGES_PACE);
            return lines;
        }
        0
    }

    /// How full the batch is: as many bytes of [`Stamps::batch_max`].
    #[inline]
    fn fill(&self, stamps: &Stamps) -> usize {
        let fill = self.home.fill(self.batch_bytes);
        match stamps.is_home_wanted() {
            true => fill.max(self.batch_bytes * WANTED_FACTOR),
            false => fill,
        }
    }

    /// After the caller's fence: whether the batch that was being written is home now.
    #[inline(always)]
    pub(crate) fn fenced(&mut self) -> bool {
        let is_home = !self.writing.is_empty() && self.home.is_written();
        if is_home {
            self.writing = Span::default();
        }
        is_home
    }

    /// Makes the record durable that is in flight, for another thread than the one that has written it, or the same: a
    /// fence covers the write-backs of its own thread only, so all is written back again.
    #[inline(always)]
    fn land(&mut self) {
        if let Some(record) = self.pending.in_flight.take() {
            self.write_back_again(&record);
        }
    }

    #[cold]
    fn write_back_again(&mut self, record: &Unfenced) {
        if !recorder::leaves_out(LAND) {
            // ORDER: durable before it is applied, and before anybody builds on it.
            // SAFETY: a record of a log, whose segment is not written again before it is home.
            unsafe { line::write_back(record.address as *const u8, record.bytes, LAND_WRITE) };
            if let Home::Mapped(home) = &self.home {
                home.write_back_again(record.lines);
            }
            line::fence(LAND_FENCE);
        }
    }

    /// For who needs what has committed durable.
    pub(crate) fn land_now(&mut self) {
        let _guard = Guard::new();
        self.land();
    }

    /// The first record here that is not home, if there is one.
    pub(crate) fn first_not_home(&self) -> Option<u64> {
        let spans = [self.writing, self.batch].into_iter();
        spans
            .filter_map(Span::first)
            .chain(self.pending.first())
            .next()
    }

    /// For the one log of a store on files: every record up to this one is home.
    pub(crate) fn home_up_to(&self) -> u64 {
        let not_home = [self.writing, self.batch].into_iter().find_map(Span::first);
        not_home.map_or(self.applied, |first| first - 1)
    }

    /// The last record that was applied.
    pub(crate) fn applied(&self) -> u64 {
        self.applied
    }

    /// Brings home everything that can be, durably. After an error nothing counts as home any more, whatever succeeds
    /// later.
    pub(crate) fn advance_fully(&mut self, stamps: &Stamps) -> Result<()> {
        if self.stopped {
            return Ok(());
        }
        let result = self.write_fully(stamps);
        self.settle(result)
    }

    fn settle(&mut self, result: Result<()>) -> Result<()> {
        match &result {
            Ok(()) => _ = self.fenced(),
            // What was to be written home may be there or not, and is not written again.
            Err(_) => self.stop(),
        }
        result
    }

    fn write_fully(&mut self, stamps: &Stamps) -> Result<()> {
        loop {
            self.apply(stamps, false);
            // Also what this has turned.
            self.home.write()?;
            if self.batch.is_empty() && self.home.is_batch_empty() {
                break;
            }
            // What the fence covers is all of both batches then.
            self.next_batch();
        }
        // ORDER: home places are durable before their records count as home.
        self.home.fence()
    }

    /// Applies every record that is durable, however much that is, while others commit: what home holds then, here and
    /// not yet on the media, is what was committed.
    pub(crate) fn apply_all(&mut self) {
        self.apply_and_settle(|_| false);
    }

    /// Applies what a commit has made durable while others commit.
    #[inline]
    pub(crate) fn apply_among_others(&mut self, stamps: &Stamps) {
        self.apply_and_settle(|this| this.fill(stamps) >= stamps.batch_max());
    }

    /// The same for one record, which lies at `address` in the log. Where nothing waits before it, it need not wait
    /// either.
    #[inline(always)]
    pub(crate) fn apply_one_among_others(
        &mut self,
        stamps: &Stamps,
        record: &mut Vec<u64>,
        stamp: u64,
        address: usize,
    ) {
        if !self.pending.is_empty() {
            self.pending.push(record, stamp, address);
            return self.apply_among_others(stamps);
        }
        debug_assert!(self.pending.in_flight.is_none());
        let _guard = Guard::new();
        let bytes = record.len() * 8;
        let (entries, in_log) = (&record[HEADER_WORDS..], address + HEADER_WORDS * 8);
        let is_full = |this: &Self| this.fill(stamps) >= stamps.batch_max();
        self.settled(|this| {
            if this.stopped {
                return;
            }
            this.turn(&is_full);
            this.bring(entries, in_log, wide(), false);
            this.were_applied(Span::of(stamp), bytes);
        });
    }

    #[inline(always)]
    fn apply_and_settle(&mut self, is_full: impl Fn(&Self) -> bool) {
        self.settled(|this| this.apply_by(is_full, false));
    }

    /// Applies something while others commit. What went home by non-temporal stores is durable then.
    #[inline(always)]
    fn settled(&mut self, apply: impl FnOnce(&mut Self)) {
        let streamed = self.home.streamed();
        apply(self);
        self.home.write_waiting();
        if self.home.streamed() != streamed {
            // ORDER: durable before another thread finds these records home. No batch names these places, and its fence
            // would not cover them.
            line::fence(DRAIN_FENCE);
        }
    }

    /// Applies what is pending, and begins batches where one is full. With `is_alone` no other thread commits, and a
    /// fence of this one follows.
    #[inline(always)]
    pub(crate) fn apply(&mut self, stamps: &Stamps, is_alone: bool) {
        self.apply_by(|this| this.fill(stamps) >= stamps.batch_max(), is_alone);
    }

    pub(crate) fn home(&self) -> &Home {
        &self.home
    }

    /// Brings a batch home, durably, or as much as there is. For files; in between others may be applying.
    pub(crate) fn advance_batch(&mut self, stamps: &Stamps) -> Result<()> {
        if self.stopped {
            return Ok(());
        }
        self.apply(stamps, false);
        if self.writing.is_empty() {
            self.next_batch();
        }
        let result = self.home.write().and_then(|()| {
            // ORDER: home places are durable before their records count as home.
            self.home.fence()
        });
        self.settle(result)
    }

    /// Merges what is durable into the batch; whether that is full.
    pub(crate) fn is_due(&mut self, stamps: &Stamps) -> bool {
        self.apply(stamps, false);
        !self.writing.is_empty()
    }

    /// Whether a snapshot may show what home holds.
    pub(crate) fn set_shown(&mut self, is_shown: bool) {
        self.home.set_shown(is_shown);
        if !self.stopped {
            self.pending.set_shown(is_shown);
        }
    }

    /// From now on nothing is brought home, and counts as if it were.
    pub(crate) fn skip_home(&mut self) {
        self.skips_home = true;
    }

    /// From now on nothing is applied.
    pub(crate) fn stop(&mut self) {
        self.stopped = true;
        self.pending.make_no_steps();
    }

    fn next_batch(&mut self) {
        debug_assert!(self.home.is_written(), "no line is forgotten");
        self.home.next_batch();
        self.batch_bytes = 0;
        self.writing.join(std::mem::take(&mut self.batch));
    }

    #[inline(always)]
    fn apply_by(&mut self, is_full: impl Fn(&Self) -> bool, is_alone: bool) {
        // ORDER: a record is durable before home has what it says.
        self.land();
        self.apply_with(is_full, wide(), is_alone);
    }

    /// Makes the changes of entries, which lie in the log as well.
    #[inline(always)]
    fn bring(&mut self, entries: &[u64], in_log: usize, wide: Option<Wide>, is_alone: bool) {
        if !self.skips_home {
            let records = Records {
                entries,
                in_log,
                is_alone,
            };
            self.home.apply(records, wide);
        }
    }

    #[inline(always)]
    fn apply_with(&mut self, is_full: impl Fn(&Self) -> bool, wide: Option<Wide>, is_alone: bool) {
        let _guard = Guard::new();
        if self.stopped {
            return self.pending.clear();
        }
        if !self.home.is_mapped() {
            self.arrived.move_to(&mut self.pending);
        }
        if !self.pending.span.is_empty() {
            self.turn(&is_full);
            if !self.skips_home {
                let records = Records {
                    entries: self.pending.entries(),
                    in_log: self.pending.in_log,
                    is_alone,
                };
                self.home.apply(records, wide);
            }
            self.were_applied(self.pending.span, self.pending.bytes);
            self.pending.clear_words();
        }
        while let Some((stamp, address)) = self.pending.logged.front().copied() {
            // What is written to files is bounded by a batch; of mapped places a batch takes what comes.
            if !self.turn(&is_full) && !self.home.is_mapped() {
                return;
            }
            // SAFETY: a record that is not home, so its segment is not written again.
            let entries = unsafe { entries_at(address) };
            let in_log = entries.as_ptr().expose_provenance();
            self.bring(entries, in_log, wide, is_alone);
            self.were_applied(Span::of(stamp), (HEADER_WORDS + entries.len()) * 8);
            self.pending.logged.pop_front();
        }
    }

    #[inline(always)]
    fn were_applied(&mut self, records: Span, bytes: usize) {
        self.batch.join(records);
        self.batch_bytes += bytes;
        self.applied = records.last();
    }

    /// Begins a batch if this one is full. False: the one before is not home.
    #[inline(always)]
    fn turn(&mut self, is_full: &impl Fn(&Self) -> bool) -> bool {
        if !is_full(self) {
            return true;
        }
        let is_home = self.writing.is_empty();
        if is_home {
            self.next_batch();
        }
        is_home
    }
}
