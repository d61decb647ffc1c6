//! What the thread of a slot has taken of the heap, and what it has freed.
//!
//! *Taken* is a place in memory only, until a record tells of it. Then its bits are set, with the stores of the region
//! that follows.
//!
//! *Freed* it is at first by word of records. A section that a crash interrupts does a part of what it has done a
//! second time, and may read and write there. So nobody gets the place, and no bit is cleared, as long as a section is
//! under way that was when the one ended that has freed it. When the bits are cleared, durably, and a record that does
//! not tell of it any more is durable, others may have the place: what a record says of it would be wrong from then
//! on.
//!
//! *Taken again* it may be by the thread itself, in a section, once no other section needs it. Its bits stay set, and
//! its records do not tell of it any more. Some small objects are kept for that.

use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};

use durum::{Freed, Pool, Taking};
use durum_format::section::{BITS_MAX, Bits, RecordWriter};
use durum_persist::line;
use durum_persist::record;

use crate::sites::{FILL_BLANK, TELL_FREED, TELL_TAKEN, WAIT_FOR_SECTIONS};

/// Words of bitmaps that a thread may have taken between two records. The rest of a record is for what was freed.
pub(crate) const TAKEN_MAX: usize = 8;
/// So many objects that were freed last are looked through for a record. What it does not tell of, a crash leaves
/// taken.
const TOLD_MAX: usize = 64;

/// So many small objects that nobody needs any more are kept to be taken again, the last ones: each may take a part of
/// every record.
const KEPT_MAX: usize = 4;
/// So many that were freed last are looked at for one that fits.
const LOOKED_AT_MAX: usize = 16;

/// Sections that begin to record, and those that end and have freed something, are told apart by this.
static EPOCH: AtomicU64 = AtomicU64::new(1);

/// In no section that has recorded anything.
pub(crate) const IN_NONE: u64 = 0;
/// The epoch of what was freed by a section that has not ended.
const NOT_ENDED: u64 = u64::MAX;

/// The epoch of a section that is about to record for the first time.
pub(crate) fn epoch() -> u64 {
    EPOCH.load(Ordering::Acquire)
}

/// Whether no section needs what was freed by one that ended in an epoch, where `oldest` is that of the oldest one that
/// is under way.
fn is_over(ended: u64, oldest: u64) -> bool {
    ended < oldest || ended != NOT_ENDED && record::leaves_out(WAIT_FOR_SECTIONS)
}

/// What was taken and freed, and of which the slot's records tell.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    /// Once something was taken.
    pub(crate) taking: Option<Taking>,
    /// What was taken that has to be of zeros, from where on and how many bytes: its type has pointers, and what lay
    /// there before could look like some. Nobody has stored there since, as there was no record.
    pub(crate) blank: Vec<(usize, usize)>,
    /// With the epoch in which the section ended that has freed it.
    freed: Vec<(u64, Freed)>,
    /// Its bits are cleared, durably with the record that comes next.
    cleared: Vec<Freed>,
}

impl Memory {
    /// Whether the next record has anything to tell that the thread has done since the one before.
    #[inline]
    pub(crate) fn is_untold(&self) -> bool {
        self.has_taken()
            || self
                .freed
                .last()
                .is_some_and(|(ended, _)| *ended == NOT_ENDED)
    }

    /// Whether something was taken that no record tells of.
    #[inline]
    pub(crate) fn has_taken(&self) -> bool {
        self.taking.as_ref().is_some_and(Taking::is_any)
    }

    /// Whether something was freed that is not kept to be taken again.
    #[inline]
    pub(crate) fn has_freed(&self) -> bool {
        self.freed.len() > KEPT_MAX || self.freed.iter().any(|(_, freed)| !freed.is_small())
    }

    /// An object of this type and size that the thread has freed, if one fits that no section needs any more: `oldest`
    /// gives the epoch of the oldest one that is under way. The next record does not tell any more that it was freed.
    #[inline]
    pub(crate) fn take_again(
        &mut self,
        pool: &Pool,
        type_id: u64,
        layout: (usize, usize),
        is_blank: bool,
        oldest: impl FnOnce() -> u64,
    ) -> Option<*mut u8> {
        let taking = self.taking.as_mut()?;
        if self.freed.is_empty() || taking.words() >= TAKEN_MAX {
            return None;
        }
        let oldest = oldest();
        let from = self.freed.len().saturating_sub(LOOKED_AT_MAX);
        for at in (from..self.freed.len()).rev() {
            let (ended, freed) = &self.freed[at];
            if is_over(*ended, oldest)
                && let Some(made) = pool.take_again(taking, freed, type_id, layout, is_blank)
            {
                self.freed.remove(at);
                return Some(made);
            }
        }
        None
    }

    /// Whether something was taken again that the last record says was freed.
    #[inline]
    pub(crate) fn has_again(&self) -> bool {
        self.taking.as_ref().is_some_and(Taking::has_again)
    }

    /// A record is durable, or the next one will be, that does not say so any more.
    #[inline]
    pub(crate) fn note_told(&mut self) {
        if let Some(taking) = &mut self.taking {
            taking.note_told();
        }
    }

    /// The section that is under way has freed it.
    pub(crate) fn free(&mut self, freed: Freed) {
        self.freed.push((NOT_ENDED, freed));
    }

    /// Nobody has any use for it.
    pub(crate) fn free_unused(&mut self, freed: Vec<Freed>) {
        let unused = freed.into_iter().map(|freed| (0, freed));
        self.freed.splice(0..0, unused);
    }

    /// Adds what was freed before the section that is under way to a record that there is none: it has stored nothing,
    /// and frees what it has freed when it ends.
    pub(crate) fn tell_before<'a>(&self, record: RecordWriter<'a>) -> RecordWriter<'a> {
        self.tell_freed(record, BITS_MAX, |ended| ended != NOT_ENDED)
    }

    /// Adds what there is to tell to a record.
    #[inline]
    pub(crate) fn tell<'a>(&self, mut record: RecordWriter<'a>) -> RecordWriter<'a> {
        let mut room = BITS_MAX;
        if let Some(taking) = &self.taking
            && taking.is_any()
        {
            for bits in taking.bits() {
                room -= 1;
                if !record::leaves_out(TELL_TAKEN) {
                    record = record.bits(bits);
                }
            }
        }
        match self.freed.is_empty() {
            true => record,
            false => self.tell_freed(record, room, |_| true),
        }
    }

    /// Adds what sections have freed of which the epochs are told.
    fn tell_freed<'a>(
        &self,
        record: RecordWriter<'a>,
        room: usize,
        is_told: impl Fn(u64) -> bool,
    ) -> RecordWriter<'a> {
        if record::leaves_out(TELL_FREED) {
            return record;
        }
        let mut told: Vec<Bits> = Vec::with_capacity(room);
        // The last ones first: those that are kept are few, and are not to take the room of many.
        let freed = self.freed.iter().rev();
        let freed = freed.filter(|(ended, _)| is_told(*ended));
        for (_, freed) in freed.take(TOLD_MAX) {
            let bits = freed.bits();
            let beside = told.iter_mut().find(|told| told.address == bits.address);
            if let Some(beside) = beside {
                beside.mask |= bits.mask;
            } else if told.len() < room {
                told.push(bits);
            }
        }
        told.into_iter().fold(record, RecordWriter::bits)
    }

    /// A record is durable that tells what was taken, or nobody can tell yet: it is made of zeros where it has to be.
    /// What changes is given to `wrote`, as addresses and sizes.
    #[inline]
    pub(crate) fn fill_blank(&mut self, mut wrote: impl FnMut(usize, usize)) {
        for (start, size) in self.blank.drain(..) {
            if record::leaves_out(FILL_BLANK) {
                continue;
            }
            // SAFETY: was taken, and is not anybody's yet.
            unsafe { line::zero(ptr::with_exposed_provenance_mut(start), size) };
            wrote(start, size);
        }
    }

    /// A record is durable that tells what was taken: its bits are set. Each word that changes is given to `wrote`.
    #[inline]
    pub(crate) fn set_bits(&mut self, wrote: impl FnMut(usize)) {
        if let Some(taking) = &mut self.taking
            && taking.is_any()
        {
            taking.set(wrote);
        }
    }

    /// Clears the bits of what no section can need any more, where `oldest` is the epoch of the oldest one that is
    /// under way. Each word that changes is given to `wrote`.
    pub(crate) fn clear_bits(&mut self, oldest: u64, mut wrote: impl FnMut(usize)) {
        let is_over = |(ended, _): &(u64, Freed)| is_over(*ended, oldest);
        let small = self
            .freed
            .iter()
            .filter(|it| is_over(it) && it.1.is_small());
        let mut too_many = small.count().saturating_sub(KEPT_MAX);
        let goes = |it: &mut (u64, Freed)| {
            let is_kept = it.1.is_small() && too_many == 0;
            let goes = is_over(it) && !is_kept;
            too_many -= usize::from(goes && it.1.is_small());
            goes
        };
        for (_, freed) in self.freed.extract_if(.., goes) {
            wrote(freed.clear());
            self.cleared.push(freed);
        }
    }

    /// The thread's section has ended, durably.
    pub(crate) fn note_ended(&mut self) {
        if self.is_untold() {
            let now = EPOCH.fetch_add(1, Ordering::AcqRel);
            for (ended, _) in &mut self.freed {
                *ended = now.min(*ended);
            }
        }
    }

    /// Whether there is something that others may have, if a record is durable behind [`Memory::clear_bits`].
    #[inline]
    pub(crate) fn has_cleared(&self) -> bool {
        !self.cleared.is_empty()
    }

    /// That.
    pub(crate) fn take_cleared(&mut self) -> Vec<Freed> {
        std::mem::take(&mut self.cleared)
    }

    /// All that was freed, by a thread that records no more.
    pub(crate) fn into_freed(self) -> impl Iterator<Item = Freed> {
        let freed = self.freed.into_iter().map(|(_, freed)| freed);
        freed.chain(self.cleared)
    }
}
