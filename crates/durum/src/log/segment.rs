//! One puddle of a log: its header, and how far it was ever used.

use std::sync::Arc;

use durum_format::log::{LOG_AREA_OFFSET, LogHeader, REACH_OFFSET};
use durum_format::puddle::heap_offset;
use durum_format::reach::Reach;
use durum_format::{LINE, Uuid};
use durum_persist::line;

use super::{CREATE_WRITE, REACH_WRITE};
use crate::alloc::Puddle;
use crate::error::Result;
use crate::media::Barrier;
use crate::reach;

/// Bytes for entries that a puddle may hold from its beginning on: what most transactions need.
const REACH_FIRST: u64 = 4096;
/// When that does not do it may hold four times as much, but no more than this at a time: recovery reads it.
const REACH_STEP_MAX: u64 = 256 << 10;

/// A puddle of a log.
#[derive(Debug)]
pub(super) struct Segment {
    pub(super) puddle: Arc<Puddle>,
    reach: Reach,
    /// It was changed, and is not known to be durable.
    is_raised: bool,
}

impl Segment {
    /// A puddle for which [`write_header`] was called.
    pub(super) fn new(puddle: Arc<Puddle>) -> Segment {
        let reach = first_reach(&puddle);
        Segment {
            puddle,
            reach,
            is_raised: false,
        }
    }

    /// Where its entries begin.
    pub(super) fn area(&self) -> usize {
        area(&self.puddle)
    }

    /// Where the entries that it may hold end.
    pub(super) fn reach(&self) -> usize {
        self.area() + self.reach.bytes as usize
    }

    /// Lets it hold entries up to `end`, which it has room for.
    pub(super) fn raise(&mut self, end: usize) {
        let needed = (end - self.area()) as u64;
        let step = (3 * self.reach.bytes).min(REACH_STEP_MAX);
        let bytes = needed.max(self.reach.bytes + step);
        let bytes = bytes.next_multiple_of(LINE);
        self.reach.bytes = bytes.min(capacity(&self.puddle) as u64);
        self.is_raised = true;
    }

    /// The log goes on in another puddle.
    pub(super) fn note_chained(&mut self) {
        self.is_raised |= !self.reach.is_chained;
        self.reach.is_chained = true;
    }

    /// Writes the reach, if it was changed. Durable with the caller's fence.
    pub(super) fn write_raised(&mut self, barrier: &mut Barrier) -> Result<()> {
        match std::mem::take(&mut self.is_raised) {
            true => write_reach(&self.puddle, self.reach, barrier),
            false => Ok(()),
        }
    }
}

/// Bytes for entries in a puddle of a log.
pub(super) fn capacity(puddle: &Puddle) -> usize {
    puddle.address + puddle.size - area(puddle)
}

/// Where the entries in a puddle of a log begin.
fn area(puddle: &Puddle) -> usize {
    puddle.address + (heap_offset(puddle.size as u64) + LOG_AREA_OFFSET) as usize
}

fn first_reach(puddle: &Puddle) -> Reach {
    Reach {
        bytes: REACH_FIRST.min(capacity(puddle) as u64),
        is_chained: false,
    }
}

/// Makes a fresh puddle one of a log.
pub(super) fn write_header(
    puddle: &Puddle,
    log_id: u64,
    client: Uuid,
    continuation: bool,
    barrier: &mut Barrier,
) -> Result<()> {
    let bytes = LogHeader::new(log_id, client, puddle.size as u64, continuation).encode();
    let offset = heap_offset(puddle.size as u64) as usize;
    // SAFETY: the header's place in a fresh puddle that only this thread knows.
    unsafe { line::copy(puddle.at(offset).as_ptr(), bytes.as_ptr(), bytes.len()) };
    write_reach(puddle, first_reach(puddle), barrier)?;
    // ORDER: durable with the caller's fence, before anything names this puddle as a log.
    barrier.write_back(puddle, puddle.address + offset, bytes.len(), CREATE_WRITE)
}

fn write_reach(puddle: &Puddle, to: Reach, barrier: &mut Barrier) -> Result<()> {
    // ORDER: durable with the fence that makes the entries durable which need it; else recovery does not read these.
    reach::write(puddle, REACH_OFFSET, to, barrier, REACH_WRITE)
}
