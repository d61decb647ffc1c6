//! Stamps: the order of all records of a store, and how far each step has come with them.
//!
//! Stamps are given without gaps, so "every record up to here" needs one number: `home` (home holds it durably) and
//! `watermark` (that this is so is durable itself, so that log space up to there may be used again). A commit in flight
//! holds up both: its log has said that it would draw ([`Lane`](super::super::shared::lanes::Lane)).

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use crossbeam_utils::CachePadded;

#[derive(Debug)]
pub(crate) struct Stamps {
    /// The last stamp that was given.
    drawn: CachePadded<AtomicU64>,
    home: CachePadded<AtomicU64>,
    watermark: CachePadded<AtomicU64>,
    /// Up to this stamp somebody would rather have records home.
    wanted: CachePadded<AtomicU64>,
    /// Bytes of records that make a batch of home updates of one log.
    batch_max: CachePadded<AtomicUsize>,
}

impl Stamps {
    pub(crate) fn new(batch_max: usize) -> Self {
        Self {
            drawn: CachePadded::default(),
            home: CachePadded::default(),
            watermark: CachePadded::default(),
            wanted: CachePadded::default(),
            batch_max: CachePadded::new(AtomicUsize::new(batch_max)),
        }
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
        self.drawn.load(Ordering::Acquire)
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
