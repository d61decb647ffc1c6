//! A commit, from top to bottom: what has changed becomes one record, which one fence makes durable.
//!
//! ```text
//! compare_and_write   what the transaction has changed, as entries of a record
//! write_record        alone, which is the plain way, unless others wait or home is a file
//! write_alone         stamp | record to the log, written back | fence: durable | known; some of the log goes home
//! make_visible        what was deferred to the commit happens in memory
//! ```

use std::sync::Arc;
use std::time::{Duration, Instant};

use durum_format::record::{HEADER_WORDS, Operation, push_copy, push_fresh_sum, push_word};
use durum_persist::{Site, line, record as recorder};
use zerocopy::IntoBytes;

use super::biased_lock::Held;
use super::compare;
use super::fresh::{self, FreshRange};
use super::home::checkpoint::Checkpoint;
use super::log::entries::push_bytes;
use super::log::writer::Writer;
use super::shared::state::{Shared, UNPUBLISHED_MAX};
use super::thread::OfThread;
use super::wide::Wide;
use crate::alloc::{BitChange, Ground};
use crate::announced::Announced;
use crate::deferred::Set;
use crate::error::{Error, Result, Step};
use crate::fault::{Guard, media_failed};
use crate::media::Barrier;
use crate::opened::{Durability, PoolInner, StoreInner, TxState};

pub(super) const COMMIT_FENCE: Site = Site("shadow.commit: fence after the record");

/// Makes a transaction durable, or leaves it to the queue.
#[inline(always)]
pub(super) fn write_transaction(tx: &mut TxState) -> Step {
    match Wide::find() {
        Some(wide) => wide
            .run(|| compare_and_write(tx, |record, announced| wide.push_lines(record, announced))),
        None => compare_and_write(tx, compare::push_lines),
    }
}

#[inline(always)]
fn compare_and_write(tx: &mut TxState, push_lines: impl FnOnce(&mut Vec<u64>, &Announced)) -> Step {
    let _guard = Guard::new();
    let Some(OfThread {
        shared,
        writer,
        section,
        written,
        chosen,
    }) = tx.kept.current()
    else {
        return Err(Error::NoTransaction.into());
    };
    let store = &tx.pools[0].store;
    if let Some(section) = section
        && let Err(error) = section.push_changes(shared, store, &tx.announced, &mut writer.record)
    {
        writer.clear();
        return Err(error.into());
    }
    shared.stamps.prefetch_next();
    compare::push_announced_words(&mut writer.record, tx.announced.words());
    push_lines(&mut writer.record, &tx.announced);
    if !tx.announced.large().is_empty() {
        let may_be_direct = tx.durability == Durability::Durable;
        let announced = &tx.announced;
        let fresh = (&**written, chosen);
        push_large(writer, announced, fresh, &tx.sets, may_be_direct, shared);
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
    write_record(tx)?;
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
    let Some(OfThread { shared, writer, .. }) = tx.kept.current() else {
        return Ok(());
    };
    let store = &tx.pools[0].store;
    let is_buffered = tx.durability == Durability::Buffered;
    if is_buffered || writer.is_empty() || shared.group.is_some() || shared.queue.is_in_use() {
        writer.gather();
        return match is_buffered {
            true => put_into_queue(writer, shared, store, &mut tx.barrier),
            false => write_with_others(writer, shared, store, &mut tx.barrier),
        };
    }
    let result = write_alone(writer, shared, store, &mut tx.barrier);
    writer.clear();
    result
}

/// Makes the record durable. After an error nothing was written, or the store is poisoned.
#[inline(always)]
fn write_alone(
    writer: &mut Writer,
    shared: &Shared,
    store: &StoreInner,
    barrier: &mut Barrier,
) -> Step {
    let fits = writer.fits();
    let bytes = writer.bytes();
    if !fits {
        // Waits for home updates where the log is full, so before the lock below.
        shared.put_in_parts(writer, store, barrier)?;
    }
    // Stamp and lock come before any write-back: an atomic read-modify-write waits for those under way as a fence
    // does.
    let (stamp, mut checkpoint) = match fits {
        true => draw_and_take(shared)?,
        false => (0, shared.checkpoint.try_among_others()),
    };
    let step = checkpoint
        .as_mut()
        .and_then(|checkpoint| checkpoint.is_due_after(bytes));
    if let (Some(checkpoint), Some(bytes)) = (&mut checkpoint, step) {
        // ORDER: durable with the commit's fence, before their records count as home.
        checkpoint.write_back(&shared.stamps, bytes);
    }
    let address = writer.cursor;
    if fits {
        writer.put(&shared.stamps, stamp, barrier)?;
    }
    if let (Some(checkpoint), Some(bytes)) = (&mut checkpoint, step) {
        // While the media take what was written back, which the fence waits for.
        checkpoint.advance(&shared.stamps, bytes);
    }
    // ORDER: the record is durable before the commit returns. One fence is enough: a record that is not whole does
    // not count.
    barrier.fence(false, COMMIT_FENCE)?;
    if let (Some(checkpoint), Some(_)) = (&mut checkpoint, step) {
        checkpoint.fenced(&shared.stamps);
    }
    drop(checkpoint);
    if fits {
        shared.stamps.publish(stamp, address);
    }
    writer.publish(&shared.stamps);
    if !fits {
        // The transaction is durable whatever comes of this. An error has poisoned the store, and is told to the
        // next who uses it.
        let _ = shared.keep_recovery_short();
    }
    Ok(())
}

/// Draws a stamp, and takes the checkpoint if nobody works on it.
#[inline(always)]
fn draw_and_take(shared: &Shared) -> Step<(u64, Option<Held<'_, Checkpoint>>)> {
    if let Some(checkpoint) = shared.checkpoint.try_alone()
        && let Some(stamp) = shared.stamps.draw_alone()
    {
        return Ok((stamp, Some(checkpoint)));
    }
    draw_and_take_among_others(shared)
}

#[inline(never)]
fn draw_and_take_among_others(shared: &Shared) -> Step<(u64, Option<Held<'_, Checkpoint>>)> {
    Ok((shared.draw(1)?, shared.checkpoint.try_among_others()))
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

/// Puts large ranges into the record, or leaves them to it; fresh ones of a durable transaction go home, as far as they
/// may.
#[inline(never)]
fn push_large(
    writer: &mut Writer,
    announced: &Announced,
    (written, chosen): (&[FreshRange], &mut Vec<FreshRange>),
    sets: &[Set],
    may_be_direct: bool,
    shared: &Shared,
) {
    let deferred = sets.iter().map(|set| set.target..set.target + set.len);
    fresh::choose(
        announced.fresh(),
        written,
        may_be_direct,
        deferred,
        shared,
        chosen,
    );
    // A transaction that waits for others, or that they wait for, is put together first.
    let may_stay = may_be_direct && shared.group.is_none();
    let mut direct = chosen.iter().peekable();
    for range in announced.large().iter() {
        let mut from = range.start;
        // Both are in order of address, and each of these lies in one of those.
        while let Some(FreshRange { range: direct, sum }) =
            direct.next_if(|direct| direct.range.start < range.end)
        {
            writer.push_range(from..direct.start, may_stay);
            let record = &mut writer.record;
            match *sum {
                Some(sum) => push_fresh_sum(record, direct.start as u64, direct.len(), sum),
                None => fresh::write(direct, record, shared),
            }
            from = direct.end;
        }
        writer.push_range(from..range.end, may_stay);
    }
    chosen.clear();
}

/// Puts into the record what a transaction changes when it commits, and not before; bits of words are there already.
#[inline(never)]
fn push_deferred(tx: &mut TxState) {
    let Some(OfThread {
        writer: Writer { record, .. },
        ..
    }) = tx.kept.current()
    else {
        return;
    };
    for bitmap in &tx.bitmaps {
        let words = bitmap.words[..bitmap.len].as_bytes();
        push_copy(record, bitmap.address as u64, words);
    }
    for set in &tx.sets {
        let bytes = set.bytes(&tx.set_bytes);
        push_bytes(record, set.target, bytes);
    }
}

/// The error of a page that failed in any of the transaction's pools. There is no record in the making then.
#[cold]
fn check_media(tx: &mut TxState) -> Step {
    let result = tx.pools.iter().try_for_each(|pool| pool.check_media());
    if let (Err(_), Some(OfThread { writer, .. })) = (&result, tx.kept.current()) {
        writer.clear();
    }
    Ok(result?)
}

/// Makes the record that the writer holds durable, and what waits in the queue before it; on files together with other
/// threads'.
#[inline(never)]
pub(super) fn write_with_others(
    writer: &mut Writer,
    shared: &Shared,
    store: &Arc<StoreInner>,
    barrier: &mut Barrier,
) -> Step {
    let _guard = Guard::new();
    let result = match shared.group {
        // What it leaves as it was may wait in the queue.
        _ if writer.is_empty() && !shared.queue.is_in_use() => Ok(()),
        None if shared.queue.is_in_use() => write_with_queue(writer, shared, store, barrier),
        None => write_alone(writer, shared, store, barrier),
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
    shared: &Shared,
    store: &StoreInner,
    barrier: &mut Barrier,
) -> Step {
    let write = |writer: &mut Writer| write_alone(writer, shared, store, barrier);
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
        let mut synced = Ok(());
        for (ticket, record) in (first..).zip(records) {
            // Stamps are only free again when what they were given to is published; nobody else can do that.
            if writer.unpublished() > UNPUBLISHED_MAX {
                synced = finish_group(writer, &mut barrier, shared);
                if synced.is_err() {
                    break;
                }
            }
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
        let synced = synced.and_then(|()| finish_group(writer, &mut barrier, shared));
        shared.queue.appended_is_decided(synced.is_err());
        (synced, failed)
    })
}

/// Makes durable, and known, what was appended.
fn finish_group(writer: &mut Writer, barrier: &mut Barrier, shared: &Shared) -> Result<()> {
    writer.write_out(barrier)?;
    // ORDER: the records are durable before any of their commits returns.
    barrier.fence(true, COMMIT_FENCE)?;
    writer.publish(&shared.stamps);
    Ok(())
}

/// Makes every buffered transaction durable that has committed before.
pub(super) fn flush(shared: &Shared, store: &StoreInner) -> Result<()> {
    if !shared.queue.is_in_use() {
        return store.poison.check();
    }
    if shared.group.is_some() {
        // With the next group.
        return write_in_group(&mut vec![0; HEADER_WORDS], shared, store);
    }
    let mut kept = shared.queue.lock_writer();
    let mut writer = kept.take().unwrap_or_else(|| shared.new_writer());
    writer.clear();
    let result = write_with_queue(&mut writer, shared, store, &mut Barrier::default());
    match shared.queue.is_in_use() {
        true => *kept = Some(writer),
        // While there is another writer, no thread commits alone.
        false => shared.give_back(writer),
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
    shared: &Shared,
    store: &Arc<StoreInner>,
    barrier: &mut Barrier,
) -> Step {
    if writer.is_empty() {
        return Ok(());
    }
    match shared.queue.push(&writer.record, store, flush_if_due) {
        Ok(false) => write_with_others(writer, shared, store, barrier),
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
    if writer.fits() {
        let stamp = shared.draw(1)?;
        let address = writer.cursor;
        writer.put(&shared.stamps, stamp, barrier)?;
        writer.wrote(stamp, address);
    } else {
        shared.put_in_parts(writer, store, barrier)?;
    }
    writer.clear();
    Ok(())
}
