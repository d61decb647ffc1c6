//! The ways of a record to its log that are seldom gone: among others who commit, in several parts, and left in flight.

use super::commit::{APPLY, COMMIT_FENCE, write};
use super::home::checkpoint::Checkpoint;
use super::log::owners::Claimed;
use super::log::writer::{Log, Writer};
use super::shared::lanes::Lane;
use super::shared::state::Shared;
use super::thread::OfThread;
use crate::error::{Result, Step};
use crate::media::Barrier;
use crate::opened::StoreInner;
use crate::window::AnnouncedWord;
use durum_persist::{Site, record as recorder};

pub(super) const FLIGHT_FENCE: Site =
    Site("shadow.commit: fence after a record that was left in flight");

/// Makes the record durable. After an error nothing was written, or the store is poisoned. With `may_fly` its fence may
/// be left to whoever needs it, if no other thread commits: then this gives its stamp, and otherwise 0.
#[inline(always)]
pub(super) fn write_alone(
    writer: &mut Writer,
    lane: &Lane,
    shared: &Shared,
    store: &StoreInner,
    barrier: &mut Barrier,
    may_fly: bool,
    words: &[AnnouncedWord],
) -> Step<u64> {
    if !writer.fits() {
        return write_in_parts(writer, lane, shared, store, barrier).map(|()| 0);
    }
    if shared.stamps.owners.order() && writer.has_many_lines(words) {
        shared.lanes.order_by_counter(&shared.stamps);
    }
    // Stamp and lock come before any write-back: an atomic read-modify-write waits for those under way as a fence
    // does.
    let alone = shared.lanes.try_alone();
    let mut checkpoint = lane.checkpoint.lock_as_member();
    if checkpoint.pending.in_flight.is_some() {
        land(&mut checkpoint, writer, shared, barrier)?;
    }
    if alone.is_none() && shared.stamps.owners.order() {
        let are_all = !words.is_empty() && writer.has_words_only();
        let others = (!are_all).then(|| writer.lines(!words.is_empty()));
        writer.claimed = lane.claim(&shared.stamps, words, others);
    } else {
        writer.claimed = Claimed::default();
    }
    write(writer, lane, shared, barrier, alone, checkpoint, may_fly)
}

/// Makes the record durable that this thread has left in flight: before the next one of its log is written, and before
/// what it has changed goes home.
#[cold]
fn land(
    checkpoint: &mut Checkpoint,
    writer: &mut Writer,
    shared: &Shared,
    barrier: &mut Barrier,
) -> Step {
    // ORDER: durable before anything that was built on it can be.
    barrier.fence(false, FLIGHT_FENCE)?;
    // By the thread that has written it.
    checkpoint.pending.in_flight = None;
    writer.fenced(&shared.stamps);
    Ok(())
}

/// Makes the record with this stamp durable, if this thread has left it in flight.
pub(super) fn wait(thread: &mut OfThread, barrier: &mut Barrier, stamp: u64) -> Result<()> {
    let Log { writer, lane } = &mut thread.log;
    let mut checkpoint = lane.checkpoint.lock_as_member();
    match checkpoint.pending.in_flight {
        Some(in_flight) if in_flight.stamp <= stamp => {
            Ok(land(&mut checkpoint, writer, &thread.shared, barrier)?)
        }
        _ => Ok(()),
    }
}

/// The same for a record that does not fit where the writer's cursor is, or is not all in one piece.
#[cold]
fn write_in_parts(
    writer: &mut Writer,
    lane: &Lane,
    shared: &Shared,
    store: &StoreInner,
    barrier: &mut Barrier,
) -> Step {
    let bytes = writer.bytes();
    // What owners are asked about. Of a larger one the counter draws.
    let asks_owners = shared.stamps.owners.order() && !writer.has_many_lines(&[]);
    let lines: Option<Vec<usize>> = asks_owners.then(|| writer.lines(false).collect());
    // Others' work at home is waited for before these are held, where the log is full.
    let mut held = None;
    let draw = |count| {
        let (alone, mut checkpoint, lines) = loop {
            let alone = shared.lanes.try_alone();
            let checkpoint = lane.checkpoint.lock_as_member();
            let by_owner = alone.is_none() && shared.stamps.owners.order();
            match &lines {
                _ if !by_owner => break (alone, checkpoint, None),
                Some(lines) if count == 1 => break (alone, checkpoint, Some(lines)),
                // Stamps of several parts follow each other, and those of owners do not.
                _ => {
                    drop((alone, checkpoint));
                    shared.lanes.order_by_counter(&shared.stamps);
                }
            }
        };
        // ORDER: nothing that was built on it is durable before it.
        checkpoint.land_now();
        let first = match (&alone, lines) {
            (Some(_), _) => shared.stamps.draw_for(&lane.missing, count, true),
            (None, None) => lane.draw_among_others(&shared.stamps, count, 0),
            (None, Some(lines)) => {
                let above = lane
                    .claim(&shared.stamps, &[], Some(lines.iter().copied()))
                    .above;
                lane.draw_among_others(&shared.stamps, count, above)
            }
        };
        held = Some((alone, checkpoint, first));
        first
    };
    shared.put_in_parts(writer, store, draw, barrier)?;
    let Some((alone, mut checkpoint, first)) = held else {
        return Ok(());
    };
    let step = checkpoint.pending.is_due_after(bytes);
    if let Some(bytes) = step {
        // ORDER: durable with the commit's fence, before their records count as home.
        checkpoint.write_back(&shared.stamps, bytes);
        if alone.is_some() {
            checkpoint.apply(&shared.stamps, true);
        }
    }
    // ORDER: all parts are durable before the commit returns.
    barrier.fence(false, COMMIT_FENCE)?;
    if step.is_some() && checkpoint.fenced() {
        lane.batch_is_home(&checkpoint, first);
        shared.lanes.advance_home(lane, &shared.stamps);
    }
    for (stamp, address) in writer.take_written() {
        checkpoint.pending.push_logged(stamp, address);
    }
    if alone.is_none() && !recorder::leaves_out(APPLY) {
        // ORDER (of threads): before the caller lets go of its locks.
        checkpoint.apply_among_others(&shared.stamps);
    }
    drop((alone, checkpoint));
    writer.fenced(&shared.stamps);
    // The transaction is durable whatever comes of this. An error has poisoned the store, and is told to the next who
    // uses it.
    let _ = shared.keep_recovery_short();
    Ok(())
}
