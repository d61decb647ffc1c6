//! Where records are written: the segments of the store's puddles of records.

use std::collections::VecDeque;
use std::sync::Arc;

use durum_format::UNIT;
use durum_format::puddle::PuddleKind;
use durum_format::record::{RING_REACH_OFFSET, RingSalt, ring_reach, segments};
use durum_persist::Site;

use crate::alloc::Puddle;
use crate::error::Result;
use crate::media::Barrier;
use crate::opened::StoreInner;
use crate::reach;

pub(crate) const RECORD_WRITE: Site = Site("shadow.commit: write back the record");

/// How far a puddle of records is used, before the first record there.
pub(crate) const REACH_WRITE: Site = Site("shadow.log: write back how far a puddle is used");

/// A part of a puddle of records.
#[derive(Clone, Debug)]
pub(crate) struct Segment {
    pub(crate) puddle: Arc<Puddle>,
    pub(crate) salt: RingSalt,
    /// Addresses.
    pub(crate) start: usize,
    pub(crate) end: usize,
    /// It had no record yet: whoever writes the first one says that it is used.
    is_fresh: bool,
}

/// A segment with records.
#[derive(Debug)]
struct Full {
    segment: Segment,
    /// The last stamp in it.
    last: u64,
    cost: u64,
}

/// All segments that no writer holds.
#[derive(Debug, Default)]
pub(crate) struct Segments {
    free: Vec<Segment>,
    /// They are free when a durable watermark has reached the last stamp in them.
    full: VecDeque<Full>,
    /// The store's puddles of records.
    puddles: Vec<Ring>,
}

/// A puddle of records.
#[derive(Debug)]
struct Ring {
    puddle: Arc<Puddle>,
    /// Where in the puddle the last segment ends that was ever used; 0 if none was.
    used: usize,
}

impl Ring {
    fn new(puddle: Arc<Puddle>) -> Result<Ring> {
        let ring = Ring { puddle, used: 0 };
        // That none is used has to be said, too: a zero says nothing.
        ring.write_reach()?;
        Ok(ring)
    }

    /// Lets this thread use a fresh segment that ends here in the puddle.
    fn raise(&mut self, end: usize) -> Result<()> {
        self.used = self.used.max(end);
        self.write_reach()
    }

    fn write_reach(&self) -> Result<()> {
        let puddle = &self.puddle;
        // A file was written with zeros, and is read faster than it is synced.
        if puddle.private {
            return Ok(());
        }
        let used = ring_reach(puddle.size as u64, self.used as u64);
        let mut barrier = Barrier::default();
        // ORDER: durable with the fence of the first record in the segment, which this thread writes; else recovery
        // does not read it. A thread that writes none gives the segment back as fresh, and the next one comes here,
        // too. Who changes it has the lock of all segments.
        reach::write(puddle, RING_REACH_OFFSET, used, &mut barrier, REACH_WRITE)
    }
}

impl Segments {
    /// A segment that may be written, by this thread, if there is one.
    pub(crate) fn take(&mut self, watermark: u64) -> Result<Option<Segment>> {
        // What was freed last goes first: the fewer segments go round, the more of them stay in the processor's cache.
        self.free_up_to(watermark);
        let Some(segment) = self.free.last() else {
            return Ok(None);
        };
        let is_its = |ring: &&mut Ring| ring.puddle.uuid == segment.puddle.uuid;
        if segment.is_fresh
            && let Some(ring) = self.puddles.iter_mut().find(is_its)
        {
            ring.raise(segment.end - segment.puddle.address)?;
        }
        Ok(self.free.pop())
    }

    fn free_up_to(&mut self, watermark: u64) {
        let mut still_full = VecDeque::with_capacity(self.full.len());
        for full in self.full.drain(..) {
            if full.last <= watermark {
                self.free.push(full.segment);
            } else {
                still_full.push_back(full);
            }
        }
        self.full = still_full;
    }

    /// Takes puddles out that are free as a whole, as long as `kept` bytes are left.
    pub(crate) fn trim(&mut self, watermark: u64, kept: u64) -> Vec<Arc<Puddle>> {
        let mut unneeded = Vec::new();
        if self.bytes() <= kept {
            return unneeded;
        }
        self.free_up_to(watermark);
        let puddles = self.puddles.iter().map(|ring| ring.puddle.clone());
        for puddle in puddles.skip(1).collect::<Vec<_>>().into_iter().rev() {
            let of_it = |segment: &Segment| segment.puddle.uuid == puddle.uuid;
            let free = self.free.iter().filter(|segment| of_it(segment)).count();
            if self.bytes() > kept && free == segments(UNIT).count() {
                self.free.retain(|segment| !of_it(segment));
                self.puddles.retain(|ring| ring.puddle.uuid != puddle.uuid);
                unneeded.push(puddle);
            }
        }
        unneeded
    }

    /// Takes a segment back whose last record has the stamp `last`, and whose records cost a recovery so much
    /// ([`recovery_cost`](super::recovery_cost)).
    pub(crate) fn put(&mut self, last: u64, cost: u64, mut segment: Segment) {
        segment.is_fresh &= cost == 0;
        self.full.push_back(Full {
            segment,
            last,
            cost,
        });
    }

    /// The cost of the records that a recovery would replay, but for those in segments that writers hold.
    pub(crate) fn recovery_cost(&self, watermark: u64) -> u64 {
        let live = self.full.iter().filter(|full| full.last > watermark);
        live.map(|full| full.cost).sum()
    }

    pub(crate) fn bytes(&self) -> u64 {
        let rings = self.puddles.iter();
        rings.map(|ring| ring.puddle.size as u64).sum()
    }

    /// A puddle of records, to keep a watermark in.
    pub(crate) fn first_puddle(&self) -> Option<Arc<Puddle>> {
        self.puddles.first().map(|ring| ring.puddle.clone())
    }

    /// Adds a puddle.
    pub(crate) fn grow(&mut self, store: &StoreInner) -> Result<()> {
        let puddle = store.log_puddle(PuddleKind::Records)?;
        let salt = RingSalt::new(puddle.uuid);
        // The lowest ones are taken first: what was used last is still in the cache.
        let mut fresh: Vec<Segment> = segments(UNIT)
            .map(|range| Segment {
                puddle: puddle.clone(),
                salt,
                start: puddle.address + range.start as usize,
                end: puddle.address + range.end as usize,
                is_fresh: true,
            })
            .collect();
        fresh.reverse();
        self.puddles.push(Ring::new(puddle)?);
        self.free.splice(0..0, fresh);
        Ok(())
    }
}
