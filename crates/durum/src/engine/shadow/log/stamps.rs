//! Stamps: the order of all records of a store, and how far each step has come with them.
//!
//! Stamps are given without gaps, so "every record up to here" needs one number: `applied` (home holds it), `home`
//! (home holds it durably) and `watermark` (that this is so is durable itself, so that log space up to there may be
//! used again). A commit in flight holds up all three, because its stamp is drawn and its record is not there.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use crossbeam_utils::CachePadded;
use durum_format::record::HEADER_WORDS;
use durum_persist::line;

/// Records that may be durable and not yet applied.
pub(crate) const SLOTS: usize = if cfg!(test) { 1 << 6 } else { 1 << 14 };
/// Lines of a record that are worth fetching ahead: most have no more, and of longer ones the processor fetches the
/// others by itself.
const PREFETCH_LINES: usize = 4;

#[derive(Debug)]
pub(crate) struct Stamps {
    /// The last stamp that was given.
    drawn: CachePadded<AtomicU64>,
    /// Stamp s, modulo the size: the address of its record once that is durable, 0 before, and again when it was
    /// applied.
    durable: Box<[AtomicUsize]>,
    applied: CachePadded<AtomicU64>,
    home: CachePadded<AtomicU64>,
    watermark: CachePadded<AtomicU64>,
    /// Up to this stamp somebody would rather have records home.
    wanted: CachePadded<AtomicU64>,
}

impl Default for Stamps {
    fn default() -> Self {
        Self {
            drawn: CachePadded::default(),
            durable: (0..SLOTS).map(|_| AtomicUsize::new(0)).collect(),
            applied: CachePadded::default(),
            home: CachePadded::default(),
            watermark: CachePadded::default(),
            wanted: CachePadded::default(),
        }
    }
}

impl Stamps {
    /// Draws `count` stamps; the first of them. Every one has to be published, after there [is
    /// room](Self::have_slots).
    #[inline]
    pub(crate) fn draw(&self, count: u64) -> u64 {
        // ORDER (of threads): the caller still holds the locks of what it changed, so whoever changes it next draws a
        // larger stamp.
        self.drawn.fetch_add(count, Ordering::AcqRel) + 1
    }

    /// The same for one stamp, where nobody else draws; `None`: there is no room.
    #[inline(always)]
    pub(crate) fn draw_alone(&self) -> Option<u64> {
        let stamp = self.drawn.load(Ordering::Relaxed) + 1;
        if !self.have_slots(stamp + 1) {
            return None;
        }
        self.drawn.store(stamp, Ordering::Release);
        Some(stamp)
    }

    /// Whether there are slots for stamps before `end`.
    #[inline]
    pub(crate) fn have_slots(&self, end: u64) -> bool {
        end - self.applied.load(Ordering::Acquire) <= SLOTS as u64
    }

    /// The record with this stamp is durable; it lies at `address`.
    #[inline]
    pub(crate) fn publish(&self, stamp: u64, address: usize) {
        self.durable[stamp as usize % SLOTS].store(address, Ordering::Release);
    }

    /// The entries of the record with this stamp, if it is durable.
    #[inline]
    pub(crate) fn durable_record(&self, stamp: u64) -> Option<&[u64]> {
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
    pub(crate) fn prefetch_next(&self) {
        self.prefetch(self.applied.load(Ordering::Relaxed) + 1);
    }

    /// Fetches the record with this stamp, if it is to be applied. A line that was written back has left the nearest
    /// caches: to read it takes as long as a hundred instructions.
    #[inline]
    pub(crate) fn prefetch(&self, stamp: u64) {
        let address = self.durable[stamp as usize % SLOTS].load(Ordering::Relaxed);
        for index in 0..PREFETCH_LINES {
            line::prefetch(address + index * line::LINE);
        }
    }

    #[inline]
    pub(crate) fn was_applied(&self, stamp: u64) {
        self.durable[stamp as usize % SLOTS].store(0, Ordering::Relaxed);
        self.applied.store(stamp, Ordering::Release);
    }

    /// The last stamp whose record was applied, as all before it.
    pub(crate) fn applied(&self) -> u64 {
        self.applied.load(Ordering::Acquire)
    }

    pub(crate) fn is_home(&self, stamp: u64) {
        self.home.store(stamp, Ordering::Release);
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
}
