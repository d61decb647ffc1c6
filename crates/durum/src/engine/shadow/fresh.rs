//! Fresh ranges, which go home with their commit instead of into its record: large objects, small ones side by side in
//! a new slab, and small ones that have lines of their own.
//!
//! Nobody knows a fresh object before its transaction is committed, so its place at home may be written before: ahead
//! of the one fence, which makes it durable with the record. The record says what lies there, and does not count
//! without it (`durum_format::record::fresh`). Conditions:
//!
//! 1. The commit has a fence of its own that covers home: a durable one, where home is mapped. What a buffered
//!    transaction made would have to wait for its record's fence, and on a file system it would take a second sync.
//! 2. No record that is about the place will ever be replayed, or brought home. Such a record is of a time when the
//!    space was in use, and then its stamp is not larger than the one at which the space was freed
//!    ([`OfPuddle::freed_at`]); or it may be about any place
//!    ([`Shared::is_about_any_place_until`]). The durable watermark has to have reached both. When an element of a slab
//!    was freed nobody notes: neighbours take this way only as long as no committed transaction has had any of their
//!    slab, and elements that have lines of their own as long as none of their slab was given back. For these a range
//!    counts, too, that was logged as a whole and may have reached beyond its object, over their place
//!    ([`note_logged`]).
//! 3. The record does not change what it says is there. Stores that `set` deferred were made before the commit where
//!    they lie in an object of their own transaction; it is the exception that some are left.

use std::ops::Range;

use durum_format::crc::Crc;
use durum_format::record::{COPY_MAX, push_fresh_sum};
use durum_persist::{Site, line, record as recorder};
use rustix::mm::Advice;
use zerocopy::IntoBytes;

use super::pages::puddle::{OfPuddle, note_in, note_range};
use super::shared::state::Shared;
use crate::alloc::{Puddle, puddle_at};
use crate::announced::{Announced, FRESH_LARGE, Ranges, SomeObjects};
use crate::before_images::before_change;
use crate::fault::guarded;
use crate::mapping::PAGE;

pub(super) const HOME_WRITE: Site = Site("shadow.fresh: write back large fresh objects at home");
/// So many bytes are summed and then written, while they are in the processor's nearest cache.
const AT_ONCE: usize = 8 << 10;
/// Steps that a crash test leaves out, each in turn.
const FREED: Site = Site("shadow.fresh: wait for records about what was there before");
const REACHED: Site = Site("shadow.fresh: wait for records that reach beyond their objects");
const ANY_PLACE: Site = Site("shadow.fresh: wait for records that may be about any place");
/// Others, of snapshots.
const KEEP: Site = Site("snapshot: keep the place of a large fresh object");
const KEEP_NOW: Site = Site("snapshot: keep the place of one that goes home at once");

/// A fresh range that goes home with its commit.
#[derive(Clone, Debug)]
pub(super) struct FreshRange {
    pub(super) range: Range<usize>,
    /// The CRC-32C of its bytes, if they are home already ([`write_now`]).
    pub(super) sum: Option<u32>,
}

impl FreshRange {
    pub(super) fn starts_before(&self, other: &FreshRange) -> bool {
        self.range.start < other.range.start
    }
}

/// Adds to `direct` what of the fresh ranges may go home with a commit, and what is there already (`written`); all in
/// order of address.
pub(super) fn choose(
    fresh: &Ranges,
    written: &[FreshRange],
    may_be_direct: bool,
    mut deferred: impl Iterator<Item = Range<usize>>,
    shared: &Shared,
    direct: &mut Vec<FreshRange>,
) {
    let is_in_fresh = |set: Range<usize>| {
        let mut fresh = fresh.ending_behind(set.start);
        fresh.next().is_some_and(|range| range.start < set.end)
    };
    let watermark = shared.stamps.watermark();
    let may_be_direct = may_be_direct
        && !fresh.is_empty()
        && !deferred.any(is_in_fresh)
        && is_free_of_any_place(shared, watermark);
    if !may_be_direct && written.is_empty() {
        return;
    }
    let push = |direct: &mut Vec<FreshRange>, range: Range<usize>| {
        let range = whole_lines(&range);
        if may_be_direct && range.len() >= FRESH_LARGE && is_free(&range, shared, watermark) {
            direct.push(FreshRange { range, sum: None });
        }
    };
    let mut written = written.iter().peekable();
    for range in fresh.iter() {
        let mut from = range.start;
        while let Some(written) = written.next_if(|written| written.range.start < range.end) {
            push(direct, from..written.range.start);
            direct.push(written.clone());
            from = written.range.end;
        }
        push(direct, from..range.end);
    }
}

/// Whether no record above the watermark may be about just any place.
fn is_free_of_any_place(shared: &Shared, watermark: u64) -> bool {
    // What waits in the queue has no stamp yet. What comes there from now on is not about this space, which is ours.
    let until = shared.is_about_any_place_until();
    shared.group.is_none()
        && (until.is_some_and(|until| until <= watermark) || recorder::leaves_out(ANY_PLACE))
}

/// Whether no record above the watermark is about what was in this range before, or reached over it. Where it was
/// freed, home updates make haste: space that is used again and again shall soon be.
fn is_free(range: &Range<usize>, shared: &Shared, watermark: u64) -> bool {
    // SAFETY: a puddle of the running transaction, which keeps it.
    let puddle = puddle_at(range.start).map(|puddle| unsafe { puddle.as_ref() });
    let Some(kept) = puddle.and_then(|puddle| OfPuddle::of(puddle)) else {
        return false;
    };
    let freed_at = kept.freed_at.latest(range);
    if freed_at > watermark {
        shared.stamps.want_home(freed_at);
    }
    is_untouched(kept, range, watermark)
}

/// Whether no record above the watermark is about a range, as its puddle knows.
fn is_untouched(kept: &OfPuddle, range: &Range<usize>, watermark: u64) -> bool {
    let is_freed = kept.freed_at.latest(range) > watermark && !recorder::leaves_out(FREED);
    // What a section logs, which may be about any place, is noted there, too.
    let is_reached = kept.logged_at.latest(range) > watermark
        && !recorder::leaves_out(REACHED)
        && !recorder::leaves_out(ANY_PLACE);
    !is_freed && !is_reached
}

/// Writes what pages of a fresh object are to hold home now, so that no private page need be made for them: the program
/// reads them from home. `None`: not here.
///
/// The range is of whole pages, in one puddle. `parts` are its bytes, one behind the other. Its transaction is durable.
pub(super) fn write_now(
    range: Range<usize>,
    parts: &mut dyn Iterator<Item = &[u8]>,
    puddle: &Puddle,
    shared: &Shared,
) -> Option<FreshRange> {
    let watermark = shared.stamps.watermark();
    let kept = OfPuddle::of(puddle)?;
    if kept
        .private
        .has_large(range.start - puddle.address..range.end - puddle.address)
        || range.len() > COPY_MAX
        || puddle.home_offset() == 0
        || !is_free_of_any_place(shared, watermark)
        || !is_free(&range, shared, watermark)
    {
        return None;
    }
    if kept.freed_at.latest(&range) > 0 {
        // Somebody has had this space before: the program would read that.
        // SAFETY: whole pages of a fresh object, in the mapping that the program stores to, which is private and copied
        // from the file where it has no pages.
        let dropped = unsafe {
            rustix::mm::madvise(range.start as *mut _, range.len(), Advice::LinuxDontNeed)
        };
        dropped.ok()?;
    }
    before_change(puddle, range.start, range.len(), KEEP_NOW);
    let mut home = (range.start + puddle.home_offset()) as *mut u8;
    let mut sum = Crc::new();
    for part in parts {
        sum.update(part);
        // ORDER: durable with the record, by the commit's fence. One that a crash leaves without these bytes does not
        // count. SAFETY: whole pages of a fresh object in its home mapping; parts end where the range does.
        guarded(|| unsafe {
            line::copy_streaming(home, part.as_ptr(), part.len(), HOME_WRITE);
            home = home.add(part.len());
        });
    }
    debug_assert_eq!(home.addr(), range.end + puddle.home_offset());
    Some(FreshRange {
        range,
        sum: Some(sum.value()),
    })
}

/// The lines that lie in a range. Its ends may share theirs with something that records are about.
fn whole_lines(range: &Range<usize>) -> Range<usize> {
    range.start.next_multiple_of(line::LINE)..range.end & !(line::LINE - 1)
}

/// Writes small objects home that have lines of their own, as far as they may go there, and says in the record what is
/// there: which ones. They are durable after this thread's next fence. Called within a [`Guard`](crate::fault::Guard).
#[inline(never)]
pub(super) fn write_small(
    announced: &Announced,
    record: &mut Vec<u64>,
    shared: &Shared,
) -> SomeObjects {
    let mut home = SomeObjects::default();
    let watermark = shared.stamps.watermark();
    if !is_free_of_any_place(shared, watermark) {
        return home;
    }
    for (at, object) in announced.objects_in_fresh_lines() {
        // SAFETY: a puddle of the running transaction, which keeps it.
        let puddle = puddle_at(object.start).map(|puddle| unsafe { puddle.as_ref() });
        let Some((puddle, kept)) = puddle.and_then(|puddle| Some((puddle, OfPuddle::of(puddle)?)))
        else {
            continue;
        };
        if !is_untouched(kept, object, watermark) {
            continue;
        }
        // No home update will.
        note_in(puddle, object.start);
        if object.start / PAGE != (object.end - 1) / PAGE {
            note_in(puddle, object.end - 1);
        }
        before_change(puddle, object.start, object.len(), KEEP);
        // Whole lines, so that home is as memory is behind the object, too.
        let (source, lines) = (
            object.start as *const u64,
            object.len().div_ceil(line::LINE),
        );
        let mut sum = Crc::new();
        // ORDER: durable with the record, by the commit's fence. One that a crash leaves without these bytes does not
        // count.
        // SAFETY: words of an object of this transaction, in its two mappings; nobody else has anything in its lines.
        unsafe {
            sum.update(std::slice::from_raw_parts(source, object.len() / 8).as_bytes());
            let target = (object.start + shared.home_offset) as *mut u64;
            line::stream_words(target, source, lines * line::LINE / 8, HOME_WRITE);
        }
        push_fresh_sum(record, object.start as u64, object.len(), sum.value());
        home.insert(at);
    }
    home
}

/// Records that were drawn hold all of these ranges, whatever lies there: also places that nobody has had, where a
/// range reaches beyond its object. To be called before who has written them lets go of the ranges.
#[inline(never)]
pub(super) fn note_logged(ranges: impl Iterator<Item = Range<usize>>, shared: &Shared) {
    if shared.group.is_some() {
        return;
    }
    let stamp = shared.stamps.drawn();
    for range in ranges {
        let mut start = range.start;
        // Neighbours of two puddles may have become one range.
        while start < range.end
            && let Some(puddle) = puddle_at(start)
        {
            // SAFETY: a puddle of the running transaction or of the caller's pool, which keeps it.
            let puddle = unsafe { puddle.as_ref() };
            let end = range.end.min(puddle.address + puddle.size);
            if let Some(kept) = OfPuddle::of(puddle) {
                kept.logged_at.note(start..end, stamp);
            }
            start = end;
        }
    }
}

/// Writes a range home, and says in the record what is there. It is durable after this thread's next fence.
pub(super) fn write(range: &Range<usize>, record: &mut Vec<u64>, shared: &Shared) {
    // No home update will.
    note_range(range.clone());
    if let Some(puddle) = puddle_at(range.start) {
        // SAFETY: a puddle of the running transaction, which keeps it.
        before_change(unsafe { puddle.as_ref() }, range.start, range.len(), KEEP);
    }
    for start in range.clone().step_by(COPY_MAX) {
        let end = range.end.min(start.saturating_add(COPY_MAX));
        let mut sum = Crc::new();
        for from in (start..end).step_by(AT_ONCE) {
            let (source, len) = (from as *const u8, AT_ONCE.min(end - from));
            let home = (from + shared.home_offset) as *mut u8;
            // ORDER: durable with the record, by the commit's fence. One that a crash leaves without these bytes does
            // not count.
            // SAFETY: an object of this transaction, in its two mappings; nobody else writes to either, and no record
            // about this space is left.
            guarded(|| unsafe {
                sum.update(std::slice::from_raw_parts(source, len));
                line::copy_streaming(home, source, len, HOME_WRITE);
            });
        }
        push_fresh_sum(record, start as u64, end - start, sum.value());
    }
}
