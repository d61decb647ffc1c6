//! Home updates: committed records are brought to their home places, in the order of their stamps.
//!
//! One thread at a time applies records and writes lines back; it keeps the lock until its own fence is through, so
//! that a fence always covers the write-backs of its own thread. Home bytes come from records only: the program's
//! memory may hold what is not committed.
//!
//! Lines gather in a batch. When the batch is full, by the bytes of its records or by its lines, its lines are written
//! back, each once, while the next batch fills. When a fence has covered the last of them, every record of the batch is
//! home. So a line that is written again and again goes home once for megabytes of records, and what many records
//! change that meet no line twice goes home in small batches, which a recovery has soon written.

use durum_format::record::HEADER_WORDS;
use durum_persist::line;

use super::super::log::stamps::Stamps;
use super::super::wide::Wide;
use super::files::DRAIN_FENCE;
use super::places::Home;
use crate::error::Result;
use crate::fault::Guard;

/// Small commits leave what they owe to a later one, up to so many bytes of records: what a step takes by itself it
/// then takes once for several.
const STEP_BYTES: usize = 256;
/// Where somebody waits for records to be home, a batch is full with so many times fewer bytes of them.
const WANTED_FACTOR: usize = 32;
/// Pages that wait in a batch are written while so many bytes are logged, or before.
const PAGES_PACE: usize = 1 << 20;

/// What the checkpointer keeps between its steps.
#[derive(Debug)]
pub(crate) struct Checkpoint {
    home: Home,
    /// What was logged since the last step, in bytes.
    owed: usize,
    /// From so many on there is a step.
    step_bytes: usize,
    /// Every record up to this stamp is applied.
    applied: u64,
    /// Bytes of the records of the batch.
    batch_bytes: usize,
    batch_max: usize,
    /// The last stamp of the batch that is being written, if that is not home yet.
    writing_to: Option<u64>,
    /// Nothing is applied any more: memory may be gone.
    stopped: bool,
    /// Records count as home without having been brought there.
    skips_home: bool,
}

impl Checkpoint {
    pub(crate) fn new(home: Home, batch_max: usize) -> Self {
        Self {
            home,
            owed: 0,
            step_bytes: STEP_BYTES,
            applied: 0,
            batch_bytes: 0,
            batch_max,
            writing_to: None,
            stopped: false,
            skips_home: false,
        }
    }

    /// A commit logs `bytes`: whether it is to make a step, and for how many bytes. Then it calls
    /// [`Checkpoint::write_back`] and [`Checkpoint::advance`], fences, and calls [`Checkpoint::fenced`], before it lets
    /// go of the lock.
    ///
    /// Only where the commit's fence covers home places too; on files a step would cost a sync of its own.
    #[inline(always)]
    pub(crate) fn is_due_after(&mut self, bytes: usize) -> Option<usize> {
        self.owed += bytes;
        if self.owed < self.step_bytes || self.stopped || !self.home.is_mapped() {
            return None;
        }
        Some(std::mem::take(&mut self.owed))
    }

    /// The first part of a step: writes lines back, so that all of a batch are when a third of the next one has come.
    #[inline(never)]
    pub(crate) fn write_back(&mut self, stamps: &Stamps, bytes: usize) {
        let batch = self.fill(stamps) * 3;
        if let Home::Mapped(home) = &mut self.home
            && !home.is_written()
        {
            // ORDER: durable with the caller's fence, before their records count as home.
            home.write_back_up_to(home.writing() * (batch + bytes) / self.batch_max);
            home.write_pages(1 + home.leaving() * 3 * bytes / PAGES_PACE);
        }
    }

    /// How full the batch is: as many bytes of `batch_max`.
    #[inline]
    fn fill(&self, stamps: &Stamps) -> usize {
        let fill = self.home.fill(self.batch_bytes);
        match stamps.is_home_wanted() {
            true => fill.max(self.batch_bytes * WANTED_FACTOR),
            false => fill,
        }
    }

    /// The second part: applies twice as much as was logged.
    #[inline(never)]
    pub(crate) fn advance(&mut self, stamps: &Stamps, bytes: usize) {
        self.apply(stamps, 2 * bytes);
    }

    /// After the caller's fence: a batch whose lines are all written back is home.
    #[inline(always)]
    pub(crate) fn fenced(&mut self, stamps: &Stamps) {
        if self.home.is_written()
            && let Some(to) = self.writing_to.take()
        {
            stamps.is_home(to);
        }
    }

    /// Brings home everything that can be, durably. After an error nothing counts as home any more, whatever succeeds
    /// later.
    pub(crate) fn advance_fully(&mut self, stamps: &Stamps) -> Result<()> {
        if self.stopped {
            return Ok(());
        }
        let result = self.write_fully(stamps);
        self.settle(stamps, result)
    }

    fn settle(&mut self, stamps: &Stamps, result: Result<()>) -> Result<()> {
        match &result {
            Ok(()) => self.fenced(stamps),
            // What was to be written home may be there or not, and is not written again.
            Err(_) => {
                self.stopped = true;
                self.writing_to = None;
            }
        }
        result
    }

    fn write_fully(&mut self, stamps: &Stamps) -> Result<()> {
        loop {
            self.apply(stamps, usize::MAX);
            // Also what this has turned.
            self.home.write()?;
            if self.batch_bytes == 0 && self.home.is_batch_empty() {
                break;
            }
            // What the fence covers is all of both batches then.
            self.next_batch();
        }
        // ORDER: home places are durable before their records count as home.
        self.home.fence()
    }

    /// Applies every record that is durable, however much that is: what home holds then, here and not yet on the media,
    /// is what was committed.
    pub(crate) fn apply_all(&mut self, stamps: &Stamps) {
        if !self.stopped {
            let streamed = self.home.streamed();
            let batch_max = std::mem::replace(&mut self.batch_max, usize::MAX);
            self.apply(stamps, usize::MAX);
            self.batch_max = batch_max;
            self.home.write_waiting();
            if self.home.streamed() != streamed {
                // ORDER: durable before another thread's commit finds these records home. No batch names these places,
                // and its fence would not cover them.
                line::fence(DRAIN_FENCE);
            }
        }
    }

    pub(crate) fn home(&self) -> &Home {
        &self.home
    }

    /// Brings a batch home, durably, or as much as there is. For files; in between others may be applying.
    pub(crate) fn advance_batch(&mut self, stamps: &Stamps) -> Result<()> {
        if self.stopped {
            return Ok(());
        }
        self.apply(stamps, usize::MAX);
        if self.writing_to.is_none() {
            self.next_batch();
        }
        let result = self.home.write().and_then(|()| {
            // ORDER: home places are durable before their records count as home.
            self.home.fence()
        });
        self.settle(stamps, result)
    }

    /// Merges what is durable into the batch; whether that is full.
    pub(crate) fn is_due(&mut self, stamps: &Stamps) -> bool {
        if !self.stopped {
            self.apply(stamps, usize::MAX);
        }
        self.writing_to.is_some()
    }

    /// Whether a snapshot may show what home holds.
    pub(crate) fn set_shown(&mut self, is_shown: bool) {
        self.home.set_shown(is_shown);
        // What a step changes is kept before: then each commit makes a small one, and none a large one.
        self.step_bytes = if is_shown { 1 } else { STEP_BYTES };
    }

    /// From now on nothing is brought home, and counts as if it were.
    pub(crate) fn skip_home(&mut self) {
        self.skips_home = true;
    }

    pub(crate) fn stop(&mut self) {
        self.stopped = true;
    }

    fn next_batch(&mut self) {
        debug_assert!(self.home.is_written(), "no line is forgotten");
        self.home.next_batch();
        self.batch_bytes = 0;
        self.writing_to = Some(self.applied);
    }

    fn apply(&mut self, stamps: &Stamps, bytes: usize) {
        match Wide::find().filter(|_| !line::is_recorded()) {
            Some(wide) => wide.run(|| self.apply_by(stamps, bytes, Some(wide))),
            None => self.apply_by(stamps, bytes, None),
        }
    }

    #[inline(always)]
    fn apply_by(&mut self, stamps: &Stamps, mut bytes: usize, wide: Option<Wide>) {
        let _guard = Guard::new();
        while bytes > 0 {
            if self.fill(stamps) >= self.batch_max {
                if self.writing_to.is_some() {
                    return;
                }
                self.next_batch();
            }
            let Some(record) = stamps.durable_record(self.applied + 1) else {
                return;
            };
            stamps.prefetch(self.applied + 2);
            let size = (HEADER_WORDS + record.len()) * 8;
            if !self.skips_home {
                self.home.apply(record, wide);
            }
            self.applied += 1;
            stamps.was_applied(self.applied);
            self.batch_bytes += size;
            bytes = bytes.saturating_sub(size);
        }
    }
}
