//! Records of a log that are durable and not applied yet, in their order; and when the next step of the checkpoint is
//! due, which applies them. This is what a commit that makes no step asks of home.
//!
//! Small ones are kept here as they were put together: the line that a record was written to has left the nearest
//! caches. Large ones are read where they lie in the log.

use std::collections::VecDeque;
use std::sync::Mutex;

use durum_format::record::HEADER_WORDS;

use super::super::log::entries::new_record;
use crate::contention;
use crate::mapping::PAGE;

/// A longer record is not kept in memory a second time.
const WORDS_MAX: usize = (64 << 10) / 8;
/// Small commits leave what they owe to a later one, up to so many bytes of records: what a step takes by itself it
/// then takes once for several.
const STEP_BYTES: usize = 256;

/// Some records that follow each other in a log, by their stamps.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Span {
    /// 0: none.
    first: u64,
    last: u64,
}

impl Span {
    /// One record.
    #[inline(always)]
    pub(crate) fn of(stamp: u64) -> Self {
        Self {
            first: stamp,
            last: stamp,
        }
    }

    #[inline(always)]
    pub(crate) fn add(&mut self, stamp: u64) {
        if self.first == 0 {
            self.first = stamp;
        }
        self.last = stamp;
    }

    /// Adds later records.
    #[inline(always)]
    pub(crate) fn join(&mut self, later: Self) {
        if !later.is_empty() {
            self.add(later.first);
            self.last = later.last;
        }
    }

    #[inline(always)]
    pub(crate) fn is_empty(&self) -> bool {
        self.first == 0
    }

    pub(crate) fn first(self) -> Option<u64> {
        (self.first > 0).then_some(self.first)
    }

    #[inline(always)]
    pub(crate) fn last(self) -> u64 {
        self.last
    }
}

/// A record that was written and written back, and whose fence is left to whoever needs it durable.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unfenced {
    pub(crate) stamp: u64,
    /// Where it lies in the log.
    pub(crate) address: usize,
    pub(crate) bytes: usize,
    /// Home lines that were written back with it.
    pub(crate) lines: usize,
}

/// The records that wait.
#[derive(Debug)]
pub(crate) struct Pending {
    /// What was logged since the last step, in bytes.
    owed: usize,
    /// From so many on there is a step.
    step_bytes: usize,
    /// The last record, if no fence has covered it yet. It is not applied before.
    pub(crate) in_flight: Option<Unfenced>,
    /// Entries of those that are kept here, behind room for a header.
    words: Vec<u64>,
    /// Their stamps, and their size in the log.
    pub(super) span: Span,
    pub(super) bytes: usize,
    /// Where the first of them has its entries in the log: the only one, if any is larger than a page.
    pub(super) in_log: usize,
    /// Stamps and addresses of those that follow.
    pub(super) logged: VecDeque<(u64, usize)>,
}

impl Default for Pending {
    fn default() -> Self {
        Self {
            owed: 0,
            step_bytes: STEP_BYTES,
            in_flight: None,
            words: new_record(),
            span: Span::default(),
            bytes: 0,
            in_log: 0,
            logged: VecDeque::new(),
        }
    }
}

impl Pending {
    /// A commit logs `bytes`: whether it is to make a step of the checkpoint, and for how many bytes.
    #[inline(always)]
    pub(crate) fn is_due_after(&mut self, bytes: usize) -> Option<usize> {
        self.owed += bytes;
        match self.owed < self.step_bytes {
            true => None,
            false => Some(std::mem::take(&mut self.owed)),
        }
    }

    /// What a step changes is kept for a snapshot before: then each commit makes a small one, and none a large one.
    pub(super) fn set_shown(&mut self, is_shown: bool) {
        self.step_bytes = if is_shown { 1 } else { STEP_BYTES };
    }

    /// No commit makes a step any more.
    pub(super) fn make_no_steps(&mut self) {
        self.step_bytes = usize::MAX;
    }

    /// Leaves the fence of a record to whoever needs it. Its thread has written it back, and it is the last one that is
    /// pending.
    pub(crate) fn leave_in_flight(&mut self, record: Unfenced) {
        debug_assert!(self.in_flight.is_none());
        self.in_flight = Some(record);
    }

    /// Adds a record, which lies at `address` in the log. What is left in `record` is of no use.
    #[inline(always)]
    pub(crate) fn push(&mut self, record: &mut Vec<u64>, stamp: u64, address: usize) {
        let bytes = record.len() * 8;
        if self.logged.is_empty() && self.span.is_empty() && record.len() <= WORDS_MAX {
            std::mem::swap(&mut self.words, record);
            self.in_log = address + HEADER_WORDS * 8;
        } else if self.logged.is_empty() && bytes < PAGE {
            self.words.extend_from_slice(&record[HEADER_WORDS..]);
        } else {
            return self.push_logged(stamp, address);
        }
        self.span.add(stamp);
        self.bytes += bytes;
    }

    /// The same for a record that is to be read from the log.
    pub(crate) fn push_logged(&mut self, stamp: u64, address: usize) {
        self.logged.push_back((stamp, address));
    }

    #[inline(always)]
    pub(crate) fn is_empty(&self) -> bool {
        self.span.is_empty() && self.logged.is_empty()
    }

    /// The entries of those that are kept here.
    #[inline(always)]
    pub(super) fn entries(&self) -> &[u64] {
        &self.words[HEADER_WORDS..]
    }

    /// Those that are kept here were applied.
    #[inline(always)]
    pub(super) fn clear_words(&mut self) {
        self.words.truncate(HEADER_WORDS);
        self.span = Span::default();
        self.bytes = 0;
    }

    pub(crate) fn clear(&mut self) {
        self.clear_words();
        self.logged.clear();
    }

    /// The first stamp of all.
    pub(crate) fn first(&self) -> Option<u64> {
        let logged = self.logged.front();
        self.span.first().or(logged.map(|(stamp, _)| *stamp))
    }
}

/// Records of the one log of a store on files, which became durable while somebody else may work on its checkpoint.
#[derive(Debug, Default)]
pub(crate) struct Arrived(Mutex<Vec<(u64, usize)>>);

impl Arrived {
    /// Adds stamps and addresses, in their order.
    pub(crate) fn push(&self, records: impl Iterator<Item = (u64, usize)>) {
        contention::lock(&self.0).extend(records);
    }

    pub(super) fn move_to(&self, pending: &mut Pending) {
        pending.logged.extend(contention::lock(&self.0).drain(..));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(words: usize, fill: u64) -> Vec<u64> {
        vec![fill; HEADER_WORDS + words]
    }

    /// Small records gather in one piece; what comes behind one that does not is read from the log.
    #[test]
    fn records_stay_in_order() {
        let mut pending = Pending::default();
        assert_eq!(pending.first(), None);
        pending.push(&mut record(2, 7), 3, 640);
        pending.push(&mut record(1, 8), 5, 768);
        assert_eq!(pending.entries(), [7, 7, 8]);
        assert_eq!(
            (pending.bytes, pending.in_log),
            ((3 + 2 * HEADER_WORDS) * 8, 640 + 32)
        );
        pending.push(&mut record(PAGE / 8, 9), 6, 832);
        pending.push(&mut record(1, 10), 9, 8192);
        assert_eq!(pending.entries(), [7, 7, 8]);
        assert_eq!(pending.logged, [(6, 832), (9, 8192)]);
        assert_eq!((pending.first(), pending.span.last()), (Some(3), 5));
        pending.clear_words();
        assert_eq!(pending.first(), Some(6));
        pending.push(&mut record(1, 11), 10, 8256);
        assert_eq!(pending.logged.len(), 3);
        pending.clear();
        pending.push(&mut record(PAGE / 8, 12), 11, 9000);
        assert_eq!(pending.entries(), vec![12; PAGE / 8]);
        assert!(pending.logged.is_empty());
        pending.clear();
        pending.push(&mut record(WORDS_MAX, 13), 12, 20_000);
        assert_eq!(pending.logged, [(12, 20_000)]);
    }
}
