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
use crate::populate::{PAGE, make_pages};
use crate::reach;

pub(crate) const RECORD_WRITE: Site = Site("shadow.commit: write back the record");

/// How far a puddle of records may be used, before the first record behind what it said.
pub(crate) const REACH_WRITE: Site = Site("shadow.log: write back how far a puddle is used");

/// A segment is let be used in steps of so many bytes, as recovery reads all that may be used.
const STEP: usize = 16 << 10;

/// A part of a puddle of records.
#[derive(Clone, Debug)]
pub(crate) struct Segment {
    pub(crate) puddle: Arc<Puddle>,
    pub(crate) salt: RingSalt,
    /// Addresses.
    pub(crate) start: usize,
    end: usize,
    /// Up to here the thread that has it may write records: the reach says so.
    pub(crate) limit: usize,
    /// Up to here the reach is known to be durable.
    durable: usize,
    /// Its pages were made.
    has_pages: bool,
}

impl Segment {
    /// Whether its thread can be let write more of it.
    pub(super) fn has_more(&self) -> bool {
        self.limit < self.end
    }

    /// Records up to `cursor` were written, and are durable before the segment is free again: the reach is, too, that
    /// the last of them needed.
    pub(super) fn written_up_to(&mut self, cursor: usize) {
        if cursor > self.start {
            let raised = cursor.next_multiple_of(STEP).min(self.end);
            self.durable = self.durable.max(raised);
        }
    }
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
    /// Up to which offset in the puddle its segments may be used, or were; 0 if none was.
    used: usize,
}

impl Ring {
    fn new(puddle: Arc<Puddle>) -> Result<Ring> {
        let ring = Ring { puddle, used: 0 };
        // That none is used has to be said, too: a zero says nothing.
        ring.write_reach()?;
        Ok(ring)
    }

    /// Lets this thread use a segment up to this offset in the puddle.
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
        // ORDER: durable with the fence of the first record behind the last reach, which this thread writes; else
        // recovery does not read it. Where it writes none the segment does not count as raised, and the next thread
        // comes here, too. Who changes it has the lock of all segments.
        reach::write(puddle, RING_REACH_OFFSET, used, &mut barrier, REACH_WRITE)
    }
}

impl Segments {
    /// A segment that may be written, by this thread, if there is one: up to `bytes` bytes at the least, or all of it.
    pub(crate) fn take(&mut self, watermark: u64, bytes: usize) -> Result<Option<Segment>> {
        // What was freed last goes first: the fewer segments go round, the more of them stay in the processor's cache.
        self.free_up_to(watermark);
        let Some(mut segment) = self.free.pop() else {
            return Ok(None);
        };
        if !segment.has_pages {
            // In one go instead of one by one, each in a commit.
            let start = segment.start & !(PAGE - 1);
            make_pages(start, segment.end - start);
            segment.has_pages = true;
        }
        let start = segment.start;
        let raised = self.raise(&mut segment, start, bytes);
        if let Err(error) = raised {
            self.free.push(segment);
            return Err(error);
        }
        Ok(Some(segment))
    }

    /// Lets the thread that has this segment write `bytes` bytes behind `from`, as far as it has them.
    pub(super) fn raise(&mut self, segment: &mut Segment, from: usize, bytes: usize) -> Result<()> {
        let to = (from + bytes).next_multiple_of(STEP).min(segment.end);
        // Always found: `trim` takes a puddle out only when all of its segments are free.
        let its = |ring: &&mut Ring| ring.puddle.uuid == segment.puddle.uuid;
        if to > segment.durable
            && let Some(ring) = self.puddles.iter_mut().find(its)
        {
            ring.raise(to - segment.puddle.address)?;
        }
        segment.limit = to.max(segment.durable);
        Ok(())
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
    pub(crate) fn put(&mut self, last: u64, cost: u64, segment: Segment) {
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
            .map(|range| {
                let [start, end] = [range.start, range.end].map(|at| puddle.address + at as usize);
                Segment {
                    puddle: puddle.clone(),
                    salt,
                    start,
                    end,
                    limit: start,
                    durable: if puddle.private { end } else { start },
                    has_pages: puddle.private,
                }
            })
            .collect();
        fresh.reverse();
        self.puddles.push(Ring::new(puddle)?);
        self.free.splice(0..0, fresh);
        Ok(())
    }
}
