//! Stamps: the order of all records of a store, and how far each step has come with them.
//!
//! "Every record up to here" is one number: `home` (home holds it durably) and `watermark` (that this is so is durable
//! itself, so that log space up to there may be used again). No stamp up to there is given any more.
//!
//! Each log brings home its own records. Before it draws the first stamp of those that are not home it says from which
//! stamp on some may be missing. So a stamp that somebody sees is one that its log has spoken of before, and a commit
//! in flight holds up home:
//!
//! ```text
//! who commits                            who asks how far all are home
//! 1  missing: from the next stamp on     1  the last stamp that was drawn
//! 2  draws                               2  what each log says: home up to there, and before all of these
//! ```
//!
//! That is so where a counter gives the stamps; where logs count for themselves [`owners`](super::owners) tells.

use std::ops::Range;

use crossbeam_utils::CachePadded;
use durum_persist::{Site, record as recorder};

use super::missing::Missing;
use super::owners::Owners;
use crate::asymmetric::can_fence_all;
use crate::primitive::{AtomicU64, AtomicUsize, Ordering};

/// A step that keeps the order. A crash test leaves it out.
const GO_ON: Site = Site("shadow.owners: the counter goes on from the last stamp of all logs");

#[derive(Debug)]
pub(crate) struct Stamps {
    /// The last stamp that the counter gave.
    drawn: CachePadded<AtomicU64>,
    /// What orders records where the counter does not.
    pub(crate) owners: Owners,
    home: CachePadded<AtomicU64>,
    watermark: CachePadded<AtomicU64>,
    /// Up to this stamp somebody would rather have records home.
    wanted: CachePadded<AtomicU64>,
    /// Bytes of records that make a batch of home updates of one log.
    batch_max: CachePadded<AtomicUsize>,
}

impl Stamps {
    pub(crate) fn new(batch_max: usize) -> Self {
        let zero = || CachePadded::new(AtomicU64::new(0));
        Self {
            drawn: zero(),
            owners: Owners::new(),
            home: zero(),
            watermark: zero(),
            wanted: zero(),
            batch_max: CachePadded::new(AtomicUsize::new(batch_max)),
        }
    }

    /// A stamp is drawn soon: by then its line is here, which another thread may have had last.
    #[inline(always)]
    pub(crate) fn fetch(&self) {
        if !self.owners.order() {
            durum_persist::line::prefetch_to_write((&raw const self.drawn).addr());
        }
    }

    /// Draws `count` stamps for records of a log, which says so before; the first of them. `is_alone`: nobody else
    /// draws. Where the counter orders.
    #[inline(always)]
    pub(crate) fn draw_for(&self, log: &Missing, count: u64, is_alone: bool) -> u64 {
        if !log.is_said() {
            log.begin_with(self.drawn() + 1);
        }
        // ORDER (of threads): behind what the log has said; who sees the stamp sees that.
        self.draw(count, is_alone)
    }

    /// Draws `count` stamps; the first of them. With `is_alone` nobody else draws.
    #[inline(always)]
    pub(crate) fn draw(&self, count: u64, is_alone: bool) -> u64 {
        // ORDER (of threads): the caller still holds the locks of what it changed, so whoever changes it next draws a
        // larger stamp. And its log has said so before: whoever sees the stamp sees that.
        match is_alone {
            true => {
                let before = self.drawn.load(Ordering::Relaxed);
                self.drawn.store(before + count, Ordering::Release);
                before + 1
            }
            false => self.drawn.fetch_add(count, Ordering::AcqRel) + 1,
        }
    }

    /// For who is about to bring records home: those that are drawn later are behind all that were drawn so far. The
    /// order does not change meanwhile.
    pub(crate) fn raise_floor(&self) {
        if self.owners.order() {
            self.owners.raise_floor(self.drawn());
        }
    }

    /// Finds out how far all records are home, from what all logs say: where owners order, up to the
    /// [floor](Stamps::raise_floor) at most. The order does not change meanwhile.
    pub(crate) fn find_home<'m>(&self, logs: impl Iterator<Item = &'m Missing>) {
        // ORDER (of threads): the stamp first. Who has drawn it, or one before it, has spoken before.
        let drawn = match self.owners.order() {
            true => self.owners.floor(),
            false => self.drawn(),
        };
        let missing = logs.map(Missing::from).filter(|from| *from > 0);
        self.is_home(missing.map(|from| from - 1).fold(drawn, u64::min));
    }

    /// Every record up to this stamp is home.
    pub(crate) fn is_home(&self, stamp: u64) {
        self.home.fetch_max(stamp, Ordering::AcqRel);
    }

    /// The watermark that a new record may carry.
    #[inline]
    pub(crate) fn home(&self) -> u64 {
        self.home.load(Ordering::Acquire)
    }

    /// It would be cheaper if the records up to this stamp were home.
    pub(crate) fn want_home(&self, stamp: u64) {
        self.wanted.fetch_max(stamp, Ordering::Relaxed);
    }

    /// Whether somebody waits for records that are not home.
    #[inline]
    pub(crate) fn is_home_wanted(&self) -> bool {
        self.wanted.load(Ordering::Relaxed) > self.home.load(Ordering::Relaxed)
    }

    /// Records up to this stamp are home, and the media say so: they are never replayed.
    #[inline]
    pub(crate) fn watermark(&self) -> u64 {
        self.watermark.load(Ordering::Acquire)
    }

    /// A record or a slot with this watermark is durable.
    pub(crate) fn watermark_is_durable(&self, watermark: u64) {
        self.watermark.fetch_max(watermark, Ordering::AcqRel);
    }

    /// The last stamp that was given.
    pub(crate) fn drawn(&self) -> u64 {
        // ORDER (of threads): when the counter orders again it has what owners had.
        let owners_order = self.owners.order();
        let drawn = self.drawn.load(Ordering::Acquire);
        match owners_order {
            true => drawn.max(self.owners.last()),
            false => drawn,
        }
    }

    /// From now on owners of lines order records. The caller has locked all checkpoints. Whether it is so: not where
    /// the system has no means for it.
    #[must_use]
    pub(crate) fn order_by_owner(&self, space: Range<usize>) -> bool {
        can_fence_all() && self.owners.begin(self.drawn(), space)
    }

    /// From now on the counter does. The caller has locked all checkpoints.
    pub(crate) fn order_by_counter(&self) {
        if !recorder::leaves_out(GO_ON) {
            self.drawn.store(self.drawn(), Ordering::Release);
        }
        self.owners.end();
    }

    /// Bytes of records that make a batch of home updates of one log.
    #[inline]
    pub(crate) fn batch_max(&self) -> usize {
        self.batch_max.load(Ordering::Relaxed)
    }

    pub(crate) fn set_batch_max(&self, bytes: usize) {
        self.batch_max.store(bytes, Ordering::Relaxed);
    }
}
