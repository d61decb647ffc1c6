//! Records that become durable together with those of other transactions: what waits in the queue, and on files
//! whatever comes at the same time.

use std::sync::Arc;
use std::time::{Duration, Instant};

use durum_format::record::HEADER_WORDS;
use durum_persist::record as recorder;

use super::commit::COMMIT_FENCE;
use super::log::writer::Writer;
use super::rare_writes::write_alone;
use super::shared::lanes::Lane;
use super::shared::state::Shared;
use crate::error::{Result, Step};
use crate::fault::Guard;
use crate::media::Barrier;
use crate::opened::StoreInner;

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
        None => write_alone(writer, lane, shared, store, barrier, false, &[]).map(drop),
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
    let write = |writer: &mut Writer| {
        write_alone(writer, lane, shared, store, barrier, false, &[]).map(drop)
    };
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
pub(super) fn put_into_queue(
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
