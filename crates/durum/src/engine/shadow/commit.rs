//! A commit from top to bottom, as most are: all that has changed are words, and no other thread commits.
//!
//! ```text
//! commit_words     is it plain? | words that differ -> the record | alone: written | the record is empty again
//! push_words       the words as they are now are compared with what they were
//! write_if_alone   others are kept out
//! write            stamp | record to the log, written back | fence: durable | pending, or applied
//! ```
//!
//! What is not plain is found out before anything is done, and commits another way ([`changes`](super::changes)). That
//! one ends in [`write`], too: as long as a record lies in one piece in a log of its own, it is written here.

use std::sync::atomic::Ordering;

use durum_format::record::{store_head, words_before};
use durum_persist::line::{self, LINE};
use durum_persist::{Site, record as recorder};

use super::biased_lock::Held;
use super::home::checkpoint::Checkpoint;
use super::home::pending::Unfenced;
use super::log::writer::{Log, STREAM_MIN, Writer};
use super::shared::lanes::Lane;
use super::shared::state::Shared;
use super::thread::OfThread;
use crate::error::Step;
use crate::fault::{Guard, media_failed};
use crate::media::Barrier;
use crate::opened;
use crate::window::AnnouncedWord;

pub(super) const COMMIT_FENCE: Site = Site("shadow.commit: fence after the record");
/// A step that keeps the order without being a write-back or a fence. A crash test leaves it out.
pub(super) const APPLY: Site =
    Site("shadow.commit: apply the record before others can build on it");

/// See [`Facts::commit_words`](opened::Facts::commit_words). After an error nothing was written, or the store is
/// poisoned.
#[inline(never)]
pub(super) fn commit_words(
    kept: &mut dyn opened::OfThread,
    words: &[AnnouncedWord],
    home_offset: usize,
    barrier: &mut Barrier,
) -> Step<bool> {
    let OfThread { shared, log, .. } = OfThread::of(kept);
    let Log { writer, lane } = log;
    // ORDER (of threads): whoever builds on a buffered transaction has taken a lock after it, and so sees that it is in
    // the queue.
    let waits = shared.queue.in_use.load(Ordering::Acquire);
    // On files somebody else always counts as there.
    let others = shared.lanes.bias().word.load(Ordering::Relaxed);
    if waits || others > 0 {
        return Ok(false);
    }
    let _guard = Guard::new();
    shared.stamps.fetch();
    // Before anything is locked: a page of the program's may have to be waited for.
    push_words(&mut writer.record, words, home_offset, |_| false);
    let is_done = match writer.is_empty() {
        true => Ok(!media_failed()),
        false if media_failed() || !writer.fits() => Ok(false),
        false => write_if_alone(writer, lane, shared, barrier),
    };
    writer.clear();
    is_done
}

/// Writes the record, if no other thread commits. Whether it has.
#[inline(always)]
fn write_if_alone(
    writer: &mut Writer,
    lane: &Lane,
    shared: &Shared,
    barrier: &mut Barrier,
) -> Step<bool> {
    // Stamp and locks come before any write-back: an atomic read-modify-write waits for those under way as a fence
    // does.
    let Some(alone) = shared.lanes.try_alone() else {
        return Ok(false);
    };
    let Some(checkpoint) = lane.checkpoint.try_alone() else {
        return Ok(false);
    };
    debug_assert!(checkpoint.pending.in_flight.is_none());
    let alone = Some(alone);
    write(writer, lane, shared, barrier, alone, checkpoint, false)?;
    Ok(true)
}

/// Appends the words that differ from what they were, but for those at addresses that are left out; those of a line
/// that come one after the other as one entry.
///
/// Their homes, which lie `home_offset` behind, are asked for, as a later commit changes them. While the program still
/// reads and changes the words themselves, the homes would be in their way in the cache.
#[inline(always)]
pub(super) fn push_words(
    record: &mut Vec<u64>,
    words: &[AnnouncedWord],
    home_offset: usize,
    is_left_out: impl Fn(usize) -> bool,
) {
    // An entry for each at most.
    record.reserve(2 * words.len());
    let start = record.as_mut_ptr();
    // SAFETY: the words behind the last one, for which there is room. What is read are words of mapped puddles,
    // announced by this thread.
    unsafe {
        let mut end = start.add(record.len());
        // Where the last entry begins, its first word, and the number of its line.
        let (mut first, mut head, mut number) = (end, 0, 0);
        for word in words {
            let address = word.address();
            let now = (address as *const u64).read();
            if now == word.old() || is_left_out(address) {
                continue;
            }
            line::prefetch_to_write(address.wrapping_add(home_offset));
            let of_word = store_head(address as u64);
            let mut place = end.add(1);
            if address / LINE != number {
                (first, head, number) = (end, of_word, address / LINE);
                end = place;
            } else if head & of_word != of_word {
                place = first.add(1 + words_before(head, of_word));
                place.copy_to(place.add(1), end.offset_from_unsigned(place));
                head |= of_word;
            } else {
                continue;
            }
            first.write(head);
            place.write(now.to_le());
            end = end.add(1);
        }
        record.set_len(end.offset_from_unsigned(start));
    }
}

/// Writes a record that fits where the log's writer is, and makes it durable, for a thread that has locked its
/// checkpoint; `alone` if no other one commits. After an error nothing was written, or the store is poisoned.
///
/// With `may_fly` its fence may be left to whoever needs it: then this gives its stamp, and otherwise 0.
#[inline(always)]
pub(super) fn write(
    writer: &mut Writer,
    lane: &Lane,
    shared: &Shared,
    barrier: &mut Barrier,
    alone: Option<Held<'_, ()>>,
    mut checkpoint: Held<'_, Checkpoint>,
    may_fly: bool,
) -> Step<u64> {
    // Drawn before any write-back: an atomic read-modify-write waits for those under way as a fence does.
    let stamp = match alone {
        Some(_) => shared.stamps.draw_for(&lane.missing, 1, true),
        None => lane.draw_among_others(&shared.stamps, 1, writer.claimed.above),
    };
    let size = writer.record.len() * 8;
    let (step, streamed) = (
        checkpoint.pending.is_due_after(size),
        checkpoint.home().streamed(),
    );
    let mut lines = 0;
    if let Some(bytes) = step {
        // ORDER: durable with the commit's fence, before their records count as home.
        lines = checkpoint.write_back(&shared.stamps, bytes);
    }
    let address = writer.cursor;
    let leaves = may_fly && alone.is_some() && size < STREAM_MIN;
    writer.put(&shared.stamps, stamp, leaves, barrier)?;
    if step.is_some() && alone.is_some() {
        // While the media take what was written back, which the fence waits for.
        checkpoint.apply(&shared.stamps, true);
    }
    // What went by non-temporal stores only a fence of this thread makes durable.
    if leaves && checkpoint.home().streamed() == streamed {
        checkpoint.pending.push(&mut writer.record, stamp, address);
        lane.flies.store(true, Ordering::Release);
        checkpoint.pending.leave_in_flight(Unfenced {
            stamp,
            address,
            bytes: size,
            lines,
        });
        return Ok(stamp);
    }
    // ORDER: the record is durable before the commit returns. One fence is enough: a record that is not whole does
    // not count.
    barrier.fence(false, COMMIT_FENCE)?;
    if step.is_some() && checkpoint.fenced() {
        lane.batch_is_home(&checkpoint, stamp);
        shared.lanes.advance_home(lane, &shared.stamps);
    }
    if step.is_some() && alone.is_none() && lane.is_to_be_judged(writer.claimed.meets_others, size)
    {
        shared.lanes.judge(lane, &shared.stamps);
    }
    if alone.is_none() && !recorder::leaves_out(APPLY) {
        // ORDER (of threads): before the caller lets go of its locks.
        checkpoint.apply_one_among_others(&shared.stamps, &mut writer.record, stamp, address);
    } else {
        checkpoint.pending.push(&mut writer.record, stamp, address);
    }
    drop(checkpoint);
    drop(alone);
    writer.fenced(&shared.stamps);
    Ok(0)
}
