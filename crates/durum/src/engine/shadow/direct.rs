//! Large fresh ranges, which go home with their commit instead of into its record.
//!
//! Nobody knows a fresh object before its transaction is committed, so its place at home may be written before: ahead of the one fence, which makes
//! it durable with the record. The record says what lies there, and does not count without it (`durum_format::record::fresh`).
//! Conditions:
//!
//! 1. The commit has a fence of its own that covers home: a durable one, where home is mapped. What a buffered transaction made would have to wait for
//!    its record's fence, and on a file system it would take a second sync.
//! 2. No record that is about the place will ever be replayed, or brought home. Such a record is of a time when the space was in use, and then its
//!    stamp is not larger than the one at which the space was freed ([`FreedAt`](super::FreedAt)); or it may be about any place
//!    ([`Journal::is_about_any_place_until`]). The durable watermark has to have reached both.
//! 3. The record does not change what it says is there. Stores that `set` deferred were made before the commit where they lie in an
//!    object of their own transaction; it is the exception that some are left.

use std::ops::Range;

use durum_persist::{Site, line, record};

use super::home::note_range;
use super::journal::Journal;
use crate::fault::guarded;
use crate::space::puddle_at;

/// Steps that a crash test leaves out, each in turn.
const WRITE_BACK: Site = Site("shadow.fresh: write back large fresh objects at home");
const FREED: Site = Site("shadow.fresh: wait for records about what was there before");
const ANY_PLACE: Site = Site("shadow.fresh: wait for records that may be about any place");

/// Adds to `direct` the fresh ranges that may go home with a durable commit; all in order of address.
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
    if fresh.is_empty() || journal.group.is_some() || deferred.any(is_in_fresh) {
        return;
    }
    let watermark = journal.watermark();
    // What waits in the queue has no stamp yet. What comes there from now on is not about this space, which is ours.
    let until = journal.is_about_any_place_until();
    if until.is_none_or(|until| until > watermark) && !record::leaves_out(ANY_PLACE) {
        return;
    }
    let is_free = |range: &&Range<usize>| {
        // SAFETY: a puddle of the running transaction, which keeps it.
        puddle_at(range.start)
            .is_some_and(|puddle| unsafe { puddle.as_ref() }.freed_at.latest(range) <= watermark)
            || record::leaves_out(FREED)
    };
    direct.extend(fresh.iter().filter(is_free).cloned());
}

/// Writes these ranges home. They are durable after this thread's next fence.
pub(super) fn write(direct: &[Range<usize>], journal: &Journal) {
    for range in direct {
        // No home update will.
        note_range(range.clone());
        let home = (range.start + journal.home_offset) as *mut u8;
        let source = range.start as *const u8;
        // ORDER: durable with the record, by the commit's fence. One that a crash leaves without these bytes does not count.
        // SAFETY: an object of this transaction, in its two mappings; nobody else writes to either, and no record about this space is left.
        guarded(|| unsafe {
            match record::leaves_out(WRITE_BACK) {
                true => line::copy(home, source, range.len()),
                false => line::copy_streaming(home, source, range.len()),
            }
        });
    }
}
