//! The versions of a key: which of them a reader sees, and which are needed.

use crate::media::Record;

/// The sequence numbers that somebody reads by.
#[derive(Debug, Default)]
pub(crate) struct Readers {
    /// Those of snapshots and iterators, ascending.
    pub(crate) pinned: Vec<u64>,
    /// That of readers who come while the commit goes on. It is over for them when the commit is.
    pub(crate) beside: Option<u64>,
}

impl Readers {
    /// Whether one of them sees what came with commit `from` and was superseded by commit `until`.
    pub(crate) fn need(&self, from: u64, until: u64) -> bool {
        let is_seen_beside = |sequence| from <= sequence && sequence < until;
        self.beside.is_some_and(is_seen_beside) || self.need_pinned(from, until)
    }

    /// The same of those who read by a number for longer than the commit takes.
    pub(crate) fn need_pinned(&self, from: u64, until: u64) -> bool {
        let at = self.pinned.partition_point(|&sequence| sequence < from);
        self.pinned
            .get(at)
            .is_some_and(|&sequence| sequence < until)
    }

    /// The smallest one.
    pub(crate) fn oldest(&self) -> Option<u64> {
        self.pinned.first().copied().or(self.beside)
    }
}

/// All versions of a key, from this record on.
///
/// # Safety
/// The record is live, and so are those that it leads to, as long as nobody writes.
pub(crate) unsafe fn versions<'a>(record: *const Record) -> impl Iterator<Item = &'a Record> {
    // SAFETY: as the caller promises.
    let first = unsafe { record.as_ref() };
    // SAFETY: a live record leads to live ones, as the caller promises.
    std::iter::successors(first, |version| unsafe { version.previous.as_ref() })
}

/// The version that a reader by `sequence` sees, if that is a value.
///
/// # Safety
/// The record is live, and so are those that it leads to, as long as nobody writes.
#[inline]
pub(crate) unsafe fn visible(mut record: *const Record, sequence: u64) -> Option<*const Record> {
    loop {
        // SAFETY: as the caller promises.
        let version = unsafe { record.as_ref() }?;
        if version.sequence() <= sequence {
            return (!version.is_deletion()).then_some(record);
        }
        record = version.previous;
    }
}
