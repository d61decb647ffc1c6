//! Large fresh ranges, which go home with their commit instead of into its record.
//!
//! Nobody knows a fresh object before its transaction is committed, so its place at home may be written before: ahead of the one fence, which makes
//! it durable with the record. The record says what lies there, and does not count without it (`durum_format::record::fresh`). Two
//! conditions:
//!
//! - No record that is about the place will ever be replayed: the space was freed at a stamp that the durable watermark has
//!   reached ([`FreedAt`](super::FreedAt)).
//! - The record does not change what it says is there. Stores that `set` deferred were made before the commit where they lie in an
//!   object of their own transaction; it is the exception that some are left.

use std::ops::Range;

use super::journal::Journal;
use crate::space::puddle_at;

/// Adds to `direct` the fresh ranges that may go home; all in order of address.
pub(super) fn choose(
    fresh: &[Range<usize>],
    mut deferred: impl Iterator<Item = Range<usize>>,
    journal: &Journal,
    direct: &mut Vec<Range<usize>>,
) {
    let is_in_fresh = |set: Range<usize>| {
        let at = fresh.partition_point(|range| range.end <= set.start);
        fresh.get(at).is_some_and(|range| range.start < set.end)
    };
    if deferred.any(is_in_fresh) {
        return;
    }
    let watermark = journal.watermark();
    let is_free = |range: &&Range<usize>| {
        // SAFETY: a puddle of the running transaction, which keeps it.
        puddle_at(range.start)
            .is_some_and(|puddle| unsafe { puddle.as_ref() }.freed_at.latest(range) <= watermark)
    };
    direct.extend(fresh.iter().filter(is_free).cloned());
}
