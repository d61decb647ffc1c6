//! A commit, from top to bottom: what has changed becomes one record, which one fence makes durable.
//!
//! ```text
//! compare_and_write   what the transaction has changed, as entries of a record
//! write_record        alone, which is the plain way, unless others wait or home is a file
//! write_alone         stamp | record to the log, written back | fence: durable | applied, or pending
//! make_visible        what was deferred to the commit happens in memory
//! ```

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use durum_format::record::{HEADER_WORDS, Operation, push_copy, push_word};
use durum_persist::{Site, line, record as recorder};
use zerocopy::IntoBytes;

use super::home::checkpoint::{Checkpoint, Unfenced};
use super::large::{self, Ways};
use super::log::entries::push_bytes;
use super::log::writer::{Log, STREAM_MIN, Writer};
use super::shared::lanes::Lane;
use super::shared::state::Shared;
use super::thread::OfThread;
use super::torn;
use super::wide::{Wide, Work};
use super::{compare, fresh};
use crate::alloc::{BitChange, Ground};
use crate::announced::{Announced, SomeObjects};
use crate::error::{Error, Result, Step};
use crate::fault::{Guard, media_failed};
use crate::media::Barrier;
use crate::opened::{Durability, PoolInner, StoreInner, TxState, WHATEVER};

pub(super) const COMMIT_FENCE: Site = Site("shadow.commit: fence after the record");
pub(super) const FLIGHT_FENCE: Site =
    Site("shadow.commit: fence after a record that was left in flight");
/// A step that keeps the order without being a write-back or a fence. A crash test leaves it out.
const APPLY: Site = Site("shadow.commit: apply the record before others can build on it");

/// Makes a transaction durable, or leaves it to the queue.
#[inline(always)]
pub(super) fn write_transaction(tx: &mut TxState) -> Step {
    match Wide::find() {
        Some(wide) => wide.run(WriteTransaction(tx)),
        None => write_narrow(tx),
    }
}

struct WriteTransaction<'t>(&'t mut TxState);

impl Work for WriteTransaction<'_> {
    type Result = Step;

    #[inline(always)]
    fn work(self, wide: Wide) -> Step {
        compare_and_write(self.0, |record, announced, home| {
            wide.push_lines(record, announced, home);
        })
    }
}

/// Out of line: so the way by whole lines needs no frame beside its own.
#[inline(never)]
fn write_narrow(tx: &mut TxState) -> Step {
    compare_and_write(tx, compare::push_lines)
}

#[inline(always)]
fn compare_and_write(
    tx: &mut TxState,
    push_lines: impl FnOnce(&mut Vec<u64>, &Announced, SomeObjects),
) -> Step {
    let _guard = Guard::new();
    let Some(OfThread {
        shared,
        log: Log { writer, lane },
        section,
        written,
        chosen,
    }) = tx.kept.current()
    else {
        return Err(Error::NoTransaction.into());
    };
    shared.stamps.fetch();
    let store = &tx.pools[0].store;
    if let Some(section) = section
        && let Err(error) = section.push_changes(shared, store, &tx.announced, &mut writer.record)
    {
        writer.clear();
        return Err(error.into());
    }
    let mut tears = false;
    compare::push_announced_words(&mut writer.record, &tx.announced, tx.recent_home);
    // Another thread's fence would not cover what goes home past the cache.
    let may_go_home = tx.durability == Durability::Durable && !tx.may_fly;
    if tx.announced.has_lines() {
        let mut home = SomeObjects::default();
        if tx.announced.has_objects_in_fresh_lines()
            && may_go_home
            && section.is_none()
            && tx.sets.is_empty()
        {
            home = fresh::write_small(&tx.announced, &mut writer.record, shared);
        }
        push_lines(&mut writer.record, &tx.announced, home);
    }
    if !tx.announced.large().is_empty() {
        tears = match may_go_home {
            true => large::write_torn(&tx.announced, lane, shared, writer)?,
            false => false,
        };
        let ways = Ways {
            torn: tears.then_some(tx.announced.torn()),
            written,
            chosen,
            may_go_home,
        };
        large::push(writer, &tx.announced, ways, &tx.sets, shared);
    }
    for change in &tx.bits {
        let operation = match change.set {
            true => Operation::SetBits,
            false => Operation::ClearBits,
        };
        push_word(
            &mut writer.record,
            operation,
            change.word as u64,
            change.mask,
        );
    }
    let is_deferred = !(tx.bitmaps.is_empty() && tx.sets.is_empty());
    if is_deferred {
        push_deferred(tx);
    }
    if media_failed() {
        check_media(tx)?;
    }
    if tears {
        // ORDER: durable before the record can be whole, of which they are a part that it does not hold.
        tx.barrier.fence(false, torn::COMMIT_FENCE)?;
    }
    write_record(tx)?;
    if tx.announced.has_logged_whole()
        && let Some(OfThread { shared, .. }) = tx.kept.current()
    {
        fresh::note_logged(tx.announced.logged_whole(), shared);
    }
    if media_failed() {
        check_media(tx)?;
    }
    if !tx.bits.is_empty() {
        make_bits_visible(&tx.bits, &tx.pools[0]);
    }
    if is_deferred {
        make_visible(tx);
    }
    Ok(())
}

/// Writes the record of a transaction: alone, which is the plain way, or with others; or leaves it to the queue, if it
/// is to be buffered.
#[inline(always)]
fn write_record(tx: &mut TxState) -> Step {
    let Some(OfThread {
        shared,
        log,
        written,
        ..
    }) = tx.kept.current()
    else {
        return Ok(());
    };
    let Log { writer, lane } = log;
    let store = &tx.pools[0].store;
    let is_buffered = tx.durability == Durability::Buffered;
    if is_buffered || writer.is_empty() || shared.group.is_some() || shared.queue.is_in_use() {
        if tx.may_fly && writer.is_empty() {
            tx.in_flight = WHATEVER;
        }
        writer.gather();
        return match is_buffered {
            true => put_into_queue(writer, lane, shared, store, &mut tx.barrier),
            false => write_with_others(writer, lane, shared, store, &mut tx.barrier),
        };
    }
    let may_fly = tx.may_fly && written.is_empty();
    let result = write_alone(writer, lane, shared, store, &mut tx.barrier, may_fly);
    writer.clear();
    if tx.may_fly {
        tx.in_flight = *result.as_ref().unwrap_or(&0);
    }
    result.map(drop)
}

/// Makes the record durable. After an error nothing was written, or the store is poisoned. With `may_fly` its fence may
/// be left to whoever needs it, if no other thread commits: then this gives its stamp, and otherwise 0.
#[inline(always)]
fn write_alone(
    writer: &mut Writer,
    lane: &Lane,
    shared: &Shared,
    store: &StoreInner,
    barrier: &mut Barrier,
    may_fly: bool,
) -> Step<u64> {
    if !writer.fits() {
        return write_in_parts(writer, lane, shared, store, barrier).map(|()| 0);
    }
    // Stamp and lock come before any write-back: an atomic read-modify-write waits for those under way as a fence
    // does.
    let alone = shared.lanes.try_alone();
    let mut checkpoint = lane.checkpoint.lock_as_member();
    if checkpoint.in_flight().is_some() {
        land(&mut checkpoint, writer, shared, barrier)?;
    }
    let stamp = lane.draw(&shared.stamps, 1, alone.is_some());
    let size = writer.record.len() * 8;
    let (step, streamed) = (checkpoint.is_due_after(size), checkpoint.home().streamed());
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
        checkpoint.leave_in_flight(Unfenced {
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
    checkpoint.has_landed();
    writer.fenced(&shared.stamps);
    Ok(())
}

/// Makes the record with this stamp durable, if this thread has left it in flight.
pub(super) fn wait(thread: &mut OfThread, barrier: &mut Barrier, stamp: u64) -> Result<()> {
    let Log { writer, lane } = &mut thread.log;
    let mut checkpoint = lane.checkpoint.lock_as_member();
    match checkpoint.in_flight() {
        Some(in_flight) if in_flight <= stamp => {
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
    // Others' work at home is waited for before these are held, where the log is full.
    let mut held = None;
    let draw = |count| {
        let alone = shared.lanes.try_alone();
        let mut checkpoint = lane.checkpoint.lock_as_member();
        // ORDER: nothing that was built on it is durable before it.
        checkpoint.land_now();
        let first = lane.draw(&shared.stamps, count, alone.is_some());
        held = Some((alone, checkpoint, first));
        first
    };
    shared.put_in_parts(writer, store, draw, barrier)?;
    let Some((alone, mut checkpoint, first)) = held else {
        return Ok(());
    };
    let step = checkpoint.is_due_after(bytes);
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

/// The transaction is durable: its bits change in memory.
#[inline(always)]
fn make_bits_visible(bits: &[BitChange], pool: &PoolInner) {
    let alone = pool.try_alone();
    for change in bits {
        let word = change.word as *mut u64;
        // SAFETY: a bitmap word in a puddle of this transaction; all threads change such words by atomic operations,
        // unless there is only one.
        unsafe {
            match (change.set, alone.is_some()) {
                (true, true) => line::store_u64(word, word.read() | change.mask),
                (false, true) => line::store_u64(word, word.read() & !change.mask),
                (true, false) => drop(line::fetch_or_u64(word, change.mask)),
                (false, false) => drop(line::fetch_and_u64(word, !change.mask)),
            }
        }
    }
    drop(alone);
}

/// The transaction is durable: what else it deferred happens in memory.
#[inline(never)]
fn make_visible(tx: &mut TxState) {
    for bitmap in &tx.bitmaps {
        // SAFETY: the bitmap of a slab that only this thread knows, in a puddle that its transaction keeps.
        unsafe {
            line::copy(
                bitmap.address as *mut u8,
                bitmap.words.as_ptr().cast(),
                bitmap.len * 8,
            );
        }
    }
    for set in &tx.sets {
        // SAFETY: `set` checked the range; the caller of `set` promised that only this thread changes it.
        unsafe { set.make(&tx.set_bytes) };
    }
}

/// Puts into the record what a transaction changes when it commits, and not before; bits of words are there already.
#[inline(never)]
fn push_deferred(tx: &mut TxState) {
    let Some(OfThread { log, .. }) = tx.kept.current() else {
        return;
    };
    for bitmap in &tx.bitmaps {
        let words = bitmap.words[..bitmap.len].as_bytes();
        push_copy(&mut log.writer.record, bitmap.address as u64, words);
    }
    for set in &tx.sets {
        let bytes = set.bytes(&tx.set_bytes);
        push_bytes(&mut log.writer.record, set.target, bytes);
    }
}

/// The error of a page that failed in any of the transaction's pools. There is no record in the making then.
#[cold]
fn check_media(tx: &mut TxState) -> Step {
    let result = tx.pools.iter().try_for_each(|pool| pool.check_media());
    if let (Err(_), Some(OfThread { log, .. })) = (&result, tx.kept.current()) {
        log.writer.clear();
    }
    Ok(result?)
}

/// Makes the record that the writer holds durable, and what waits in the queue before it; on files together with other
/// threads'.
#[inline(never)]
pub(super) fn write_with_others(
    writer: &mut Writer,
    lane: &Lane,
    shared: &Shared,
    store: &Arc<StoreInner>,
    barrier: &mut Barrier,
) -> Step {
    let _guard = Guard::new();
    let result = match shared.group {
        // What it leaves as it was may wait in the queue.
        _ if writer.is_empty() && !shared.queue.is_in_use() => Ok(()),
        None if shared.queue.is_in_use() => write_with_queue(writer, lane, shared, store, barrier),
        None => write_alone(writer, lane, shared, store, barrier, false).map(drop),
        Some(_) => {
            let bytes = writer.record.len() * 8;
            let result = write_in_group(&mut writer.record, shared, store);
            if result.is_ok() {
                let step = |store: &StoreInner| Shared::of(store).bring_batches_home(store);
                // The transaction is durable whatever comes of this. An error has poisoned the store, and is told to
                // the next who uses it.
                let _ = shared.logged(bytes, store, step);
            }
            result.map_err(Box::new)
        }
    };
    writer.clear();
    result
}

/// Makes the writer's record durable, with everything that waits in the queue before it.
#[cold]
fn write_with_queue(
    writer: &mut Writer,
    lane: &Lane,
    shared: &Shared,
    store: &StoreInner,
    barrier: &mut Barrier,
) -> Step {
    let write =
        |writer: &mut Writer| write_alone(writer, lane, shared, store, barrier, false).map(drop);
    let written = || shared.may_be_about_any_place();
    shared.queue.write_with(writer, store, write, written)
}

/// On the `file` domain: makes a record durable together with those of all who come at the same time.
fn write_in_group(record: &mut Vec<u64>, shared: &Shared, store: &StoreInner) -> Result<()> {
    let Some(group) = &shared.group else {
        return Ok(());
    };
    let new_writer = || shared.new_writer();
    group.write_together(record, store, new_writer, |writer, first, records| {
        let mut failed = Vec::new();
        let mut barrier = Barrier::default();
        for (ticket, record) in (first..).zip(records) {
            // Each record may build on what waits in the queue. Without that it must not be written.
            let append_queue = |writer: &mut Writer| append(writer, shared, store, &mut barrier);
            let appended = (shared.queue)
                .append_with(writer, store, append_queue)
                .and_then(|()| {
                    writer.record = record;
                    match writer.is_empty() {
                        true => Ok(()),
                        false => append(writer, shared, store, &mut barrier),
                    }
                });
            if let Err(error) = appended {
                failed.push((ticket, *error));
            }
        }
        let synced = finish_group(writer, &mut barrier, shared);
        shared.queue.appended_is_decided(synced.is_err());
        (synced, failed)
    })
}

/// Makes durable, and known, what was appended.
fn finish_group(writer: &mut Writer, barrier: &mut Barrier, shared: &Shared) -> Result<()> {
    writer.write_out(barrier)?;
    // ORDER: the records are durable before any of their commits returns.
    barrier.fence(true, COMMIT_FENCE)?;
    shared.arrived.push(writer.take_written());
    writer.fenced(&shared.stamps);
    Ok(())
}

/// Makes every buffered transaction durable that has committed before.
pub(super) fn flush(shared: &Shared, store: &StoreInner) -> Result<()> {
    shared.lanes.land();
    if !shared.queue.is_in_use() {
        return store.poison.check();
    }
    if shared.group.is_some() {
        // With the next group.
        return write_in_group(&mut vec![0; HEADER_WORDS], shared, store);
    }
    let mut kept = shared.queue.lock_log();
    let mut log = kept.take().unwrap_or_else(|| shared.new_log());
    log.writer.clear();
    let result = write_with_queue(
        &mut log.writer,
        &log.lane,
        shared,
        store,
        &mut Barrier::default(),
    );
    match shared.queue.is_in_use() {
        true => *kept = Some(log),
        // While there is another log, no thread commits alone.
        false => shared.give_back(log),
    }
    Ok(result?)
}

/// Makes the queue durable if its oldest entry has waited for half of the window at `now`. When to look next; `None`:
/// nothing waits. Then the flusher sleeps until it is woken, if it says so by `sleeps`.
pub(super) fn flush_if_due(
    store: &StoreInner,
    now: Instant,
    sleeps: bool,
) -> Result<Option<Duration>> {
    store.poison.check()?;
    let shared = Shared::of(store);
    let half = shared.queue.half();
    let Some(age) = shared.queue.age(now, sleeps) else {
        return Ok(None);
    };
    if age < half {
        return Ok(Some(half - age));
    }
    // In a recording, what this thread writes is a part of it.
    recorder::join_thread();
    flush(&shared, store)?;
    Ok(Some(half))
}

/// Leaves the record that the writer holds to the queue; or makes it durable, if that takes no more.
#[inline(never)]
fn put_into_queue(
    writer: &mut Writer,
    lane: &Lane,
    shared: &Shared,
    store: &Arc<StoreInner>,
    barrier: &mut Barrier,
) -> Step {
    if writer.is_empty() {
        return Ok(());
    }
    match shared.queue.push(&writer.record, store, flush_if_due) {
        Ok(false) => write_with_others(writer, lane, shared, store, barrier),
        pushed => {
            writer.clear();
            pushed?;
            Ok(())
        }
    }
}

/// Writes the record to the log. After an error nothing was written, or the store is poisoned.
#[inline]
fn append(writer: &mut Writer, shared: &Shared, store: &StoreInner, barrier: &mut Barrier) -> Step {
    let _guard = Guard::new();
    let draw = |count| shared.stamps.draw(count, false);
    if writer.fits() {
        let stamp = draw(1);
        let address = writer.cursor;
        writer.put(&shared.stamps, stamp, false, barrier)?;
        writer.wrote(stamp, address);
    } else {
        shared.put_in_parts(writer, store, draw, barrier)?;
    }
    writer.clear();
    Ok(())
}
