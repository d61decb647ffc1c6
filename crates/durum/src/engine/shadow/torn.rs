//! Large ranges that a crash may tear: what `persist` makes durable, and what a transaction has announced as clobbered.
//! They go home past the cache, once, and not through the log.
//!
//! The program goes on to read its private pages, so nobody misses what is not in the cache at home. Conditions:
//!
//! 1. The caller's fence covers home: it is mapped, and the transaction durable when its commit returns.
//! 2. No record about the range will ever be replayed, or brought home. Records that there may be were drawn before,
//!    because who has changed the range had its locks before us: so all that were drawn are home first, and the media
//!    say so. Who changes the range later draws a later one.
//! 3. No buffered transaction waits: what it has changed there has no stamp yet.
//! 4. They are durable before the record of their transaction is written, if it has one: a record that is whole by
//!    chance before its fence counts, and says nothing about them.
//!
//! What a transaction clobbers has no copy in memory. An abort takes it from home, so that memory holds what the media
//! do: a later transaction that leaves a word as it is does not log it. So when a range is announced no buffered
//! transaction may wait either, which may have changed it.

use std::ops::Range;

use durum_persist::{Site, line, record as recorder};

use super::pages::puddle::note_range;
use super::shared::state::Shared;
use super::thread::OfThread;
use crate::alloc::puddle_at;
use crate::announced::Ranges;
use crate::before_images::before_change;
use crate::error::Result;
use crate::fault::guarded;
use crate::media::Barrier;
use crate::opened::{StoreInner, TxState};

pub(super) const HOME_WRITE: Site = Site("shadow.torn: write large ranges that may be torn home");
pub(super) const HOME_FENCE: Site = Site("shadow.torn: fence after ranges that may be torn");
pub(super) const COMMIT_FENCE: Site =
    Site("shadow.torn: fence between such ranges of a transaction and its record");
/// Steps that a crash test leaves out, each in turn.
const SETTLE: Site = Site("shadow.torn: bring home what records may be about such a range");
const RESTORE: Site = Site("shadow.torn: take from home what an aborted transaction clobbered");
const QUEUE: Site = Site("shadow.torn: keep and log such a range where transactions are buffered");
const WORDS: Site = Site("shadow.torn: look for words that were announced in such a range");
/// Another one, of snapshots.
const KEEP: Site = Site("snapshot: keep a range that may be torn");

/// Fewer bytes go through the log, and smaller ranges are kept in memory for an abort.
pub(super) const BYTES_MIN: usize = 4 << 10;
/// So many are worth it to bring home what was logged.
const SETTLED_MIN: usize = 256 << 10;
/// So much is read at once, within one guard against pages that fail.
const AT_ONCE: usize = 1 << 20;

/// Whether so many bytes may go home now, and are to.
pub(super) fn may_go_home(bytes: usize, shared: &Shared) -> Result<bool> {
    if bytes < BYTES_MIN || !is_all_logged(shared) {
        return Ok(false);
    }
    let drawn = shared.stamps.drawn();
    if shared.stamps.watermark() < drawn && bytes >= SETTLED_MIN && !recorder::leaves_out(SETTLE) {
        shared.bring_home()?;
    }
    // Another thread may be about to write its record.
    Ok(shared.stamps.watermark() >= drawn || recorder::leaves_out(SETTLE))
}

/// Whether the running transaction may clobber a range without keeping what it holds. A part of one may not, because it
/// may be taken back alone, and then another one announces the range and needs what it held.
pub(super) fn may_tear(tx: &mut TxState, address: usize, len: usize) -> bool {
    if !recorder::leaves_out(WORDS) {
        // Words that were announced before have to come back, and are found among the lines only.
        tx.announced.settle();
    }
    tx.section.is_none()
        && tx.savepoint.is_none()
        && !tx.announced.overlaps(address, len)
        && (tx.kept.current()).is_some_and(|own: &mut OfThread| is_all_logged(&own.shared))
}

/// Whether home has, or gets by a record, what was changed in ranges that nobody else changes now: it is mapped, and no
/// buffered transaction waits.
pub(super) fn is_all_logged(shared: &Shared) -> bool {
    shared.group.is_none()
        && shared.home_offset != 0
        && (!shared.queue.is_in_use() || recorder::leaves_out(QUEUE))
}

/// Writes ranges home. They are durable after this thread's next fence.
pub(super) fn write<'r>(ranges: impl Iterator<Item = &'r Range<usize>> + Clone, shared: &Shared) {
    let offset = shared.home_offset;
    for range in ranges.clone() {
        // No home update will.
        note_range(range.clone());
        if let Some(puddle) = puddle_at(range.start) {
            // SAFETY: a puddle of the running transaction or of the caller's pool, which keeps it.
            before_change(unsafe { puddle.as_ref() }, range.start, range.len(), KEEP);
        }
        for part in ends(range) {
            let (source, home) = (part.start as *const u8, (part.start + offset) as *mut u8);
            // SAFETY: as below.
            guarded(|| unsafe { line::copy(home, source, part.len()) });
        }
    }
    for range in ranges.clone().map(whole_lines) {
        for from in range.clone().step_by(AT_ONCE) {
            let (source, len) = (from as *const u8, AT_ONCE.min(range.end - from));
            let home = (from + offset) as *mut u8;
            // ORDER: durable with the caller's fence. A crash before it may leave any part of the range old.
            // SAFETY: the range in its two mappings. Nobody else writes to either, as the program has promised, and no
            // record about it is left.
            guarded(|| unsafe { line::copy_streaming(home, source, len, HOME_WRITE) });
        }
    }
    // Behind all stores: one to a line that is on its way would wait until it has left.
    let mut last = None;
    for part in ranges.flat_map(ends) {
        let number = part.start / line::LINE;
        if last.replace(number) != Some(number) {
            let home = (part.start + offset) as *const u8;
            // ORDER: as above. SAFETY: stored to above.
            unsafe { line::write_back(home, part.len(), HOME_WRITE) };
        }
    }
}

/// The lines that lie in a range.
fn whole_lines(range: &Range<usize>) -> Range<usize> {
    let start = range.start.next_multiple_of(line::LINE).min(range.end);
    start..(range.end & !(line::LINE - 1)).max(start)
}

/// What it has of the lines before and behind these.
fn ends(range: &Range<usize>) -> impl Iterator<Item = Range<usize>> + use<> {
    let whole = whole_lines(range);
    let ends = [range.start..whole.start, whole.end..range.end];
    ends.into_iter().filter(|part| !part.is_empty())
}

/// After an abort memory holds what home does.
pub(super) fn restore(ranges: &Ranges, shared: &Shared, store: &StoreInner, barrier: &mut Barrier) {
    if ranges.is_empty() || recorder::leaves_out(RESTORE) {
        return;
    }
    // ORDER: a commit may have failed behind the stores to home. What memory gets from there is durable before anybody
    // finds that he does not change it. Home is mapped: nothing is synced, so nothing can fail.
    let _ = barrier.fence(false, HOME_FENCE);
    if let Err(error) = shared.apply_drawn(store) {
        // The store is poisoned: the next opener finds what is committed.
        tracing::error!(%error, "clobbered memory could not be put back");
        return;
    }
    for range in ranges.iter() {
        note_range(range.clone());
        let home = (range.start + shared.home_offset) as *const u8;
        // SAFETY: the range in its two mappings; nobody else has a right to either.
        guarded(|| unsafe { line::copy(range.start as *mut u8, home, range.len()) });
    }
}
