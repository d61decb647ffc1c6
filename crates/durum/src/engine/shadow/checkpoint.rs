//! Home updates: committed records are brought to their home places, in the order of their stamps.
//!
//! One thread at a time applies records and writes lines back; it keeps the lock until its own fence is through, so
//! that a fence always covers the write-backs of its own thread. Home bytes come from records only: the program's
//! memory may hold what is not committed.
//!
//! Lines gather in a batch. When the records of a batch amount to `batch_max`, its lines are written back, each once,
//! while the next batch fills. When a fence has covered the last of them, every record of the batch is home.

use durum_format::record::HEADER_WORDS;
use durum_persist::line;

use super::home::{DRAIN_FENCE, Home};
use super::journal::Journal;
use crate::error::Result;
use crate::fault::Guard;

/// Small commits leave what they owe to a later one, up to so many bytes of records: what a step takes by itself it
/// then takes once for several.
const STEP_BYTES: usize = 1 << 10;
/// Pages that wait in a batch are written while so many bytes are logged, or before.
const PAGES_PACE: usize = 1 << 20;

/// What the checkpointer keeps between its steps.
#[derive(Debug)]
pub(super) struct Checkpoint {
    home: Home,
    /// What was logged since the last step, in bytes.
    owed: usize,
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
    pub(super) fn new(home: Home, batch_max: usize) -> Self {
        Self {
            home,
            owed: 0,
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
    pub(super) fn is_due_after(&mut self, bytes: usize) -> Option<usize> {
        self.owed += bytes;
        if self.owed < STEP_BYTES || self.stopped || !self.home.is_mapped() {
            return None;
        }
        Some(std::mem::take(&mut self.owed))
    }

    /// The first part of a step: writes lines back, at the pace at which batches fill.
    #[inline(never)]
    pub(super) fn write_back(&mut self, bytes: usize) {
        if let Home::Mapped(home) = &mut self.home
            && !home.is_written()
        {
            // ORDER: durable with the caller's fence, before their records count as home.
            home.write_back(2 + home.writing() * 3 * bytes / self.batch_max);
            home.write_pages(1 + home.leaving() * 3 * bytes / PAGES_PACE);
        }
    }

    /// The second part: applies twice as much as was logged.
    #[inline(never)]
    pub(super) fn advance(&mut self, journal: &Journal, bytes: usize) {
        self.apply(journal, 2 * bytes);
    }

    /// After the caller's fence: a batch whose lines are all written back is home.
    #[inline(always)]
    pub(super) fn fenced(&mut self, journal: &Journal) {
        if self.home.is_written()
            && let Some(to) = self.writing_to.take()
        {
            journal.is_home(to);
        }
    }

    /// Brings home everything that can be, durably. After an error nothing counts as home any more, whatever succeeds
    /// later.
    pub(super) fn advance_fully(&mut self, journal: &Journal) -> Result<()> {
        if self.stopped {
            return Ok(());
        }
        let result = self.write_fully(journal);
        self.settle(journal, result)
    }

    fn settle(&mut self, journal: &Journal, result: Result<()>) -> Result<()> {
        match &result {
            Ok(()) => self.fenced(journal),
            // What was to be written home may be there or not, and is not written again.
            Err(_) => {
                self.stopped = true;
                self.writing_to = None;
            }
        }
        result
    }

    fn write_fully(&mut self, journal: &Journal) -> Result<()> {
        loop {
            self.apply(journal, usize::MAX);
            // Also what this has turned.
            self.home.write()?;
            if self.batch_bytes == 0 && self.home.is_batch_empty() {
                break;
            }
            // What the fence covers is all of both batches then.
            self.turn();
        }
        // ORDER: home places are durable before their records count as home.
        self.home.fence()
    }

    /// Applies every record that is durable, however much that is: what home holds then, here and not yet on the media,
    /// is what was committed.
    pub(super) fn apply_all(&mut self, journal: &Journal) {
        if !self.stopped {
            let streamed = self.home.streamed();
            let batch_max = std::mem::replace(&mut self.batch_max, usize::MAX);
            self.apply(journal, usize::MAX);
            self.batch_max = batch_max;
            self.home.write_waiting();
            if self.home.streamed() != streamed {
                // ORDER: durable before another thread's commit finds these records home. No batch names these places,
                // and its fence would not cover them.
                line::fence(DRAIN_FENCE);
            }
        }
    }

    pub(super) fn home(&self) -> &Home {
        &self.home
    }

    /// Brings a batch home, durably, or as much as there is. For files; in between others may be applying.
    pub(super) fn advance_batch(&mut self, journal: &Journal) -> Result<()> {
        if self.stopped {
            return Ok(());
        }
        self.apply(journal, usize::MAX);
        if self.writing_to.is_none() {
            self.turn();
        }
        let result = self.home.write().and_then(|()| {
            // ORDER: home places are durable before their records count as home.
            self.home.fence()
        });
        self.settle(journal, result)
    }

    /// Merges what is durable into the batch; whether that is full.
    pub(super) fn is_due(&mut self, journal: &Journal) -> bool {
        if !self.stopped {
            self.apply(journal, usize::MAX);
        }
        self.writing_to.is_some()
    }

    /// From now on nothing is brought home, and counts as if it were.
    pub(super) fn skip_home(&mut self) {
        self.skips_home = true;
    }

    pub(super) fn stop(&mut self) {
        self.stopped = true;
    }

    fn turn(&mut self) {
        debug_assert!(self.home.is_written(), "no line is forgotten");
        self.home.turn();
        self.batch_bytes = 0;
        self.writing_to = Some(self.applied);
    }

    fn apply(&mut self, journal: &Journal, bytes: usize) {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        if durum_persist::wide::is_there() && !durum_persist::line::is_recorded() {
            // SAFETY: the processor has what the function needs.
            return unsafe { self.apply_wide(journal, bytes) };
        }
        self.apply_by(journal, bytes, Home::apply);
    }

    #[cfg(all(target_arch = "x86_64", not(miri)))]
    #[target_feature(enable = "avx512f,avx512bw,popcnt")]
    fn apply_wide(&mut self, journal: &Journal, bytes: usize) {
        self.apply_by(journal, bytes, |home, record| home.apply_wide(record));
    }

    #[inline(always)]
    fn apply_by(&mut self, journal: &Journal, mut bytes: usize, apply: impl Fn(&mut Home, &[u64])) {
        let _guard = Guard::new();
        while bytes > 0 {
            if self.home.fill(self.batch_bytes) >= self.batch_max {
                if self.writing_to.is_some() {
                    return;
                }
                self.turn();
            }
            let Some(record) = journal.durable_record(self.applied + 1) else {
                return;
            };
            journal.prefetch(self.applied + 2);
            let size = (HEADER_WORDS + record.len()) * 8;
            if !self.skips_home {
                apply(&mut self.home, record);
            }
            self.applied += 1;
            journal.was_applied(self.applied);
            self.batch_bytes += size;
            bytes = bytes.saturating_sub(size);
        }
    }
}
