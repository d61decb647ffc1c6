//! A commit of whatever a transaction can change, as one record: words and lines, large ranges, bits of the allocator,
//! stores that waited for the commit.
//!
//! ```text
//! compare_and_write   what the transaction has changed, as entries of a record
//! write_record        alone or among others, with what waits in the queue, or into the queue
//! make_visible        what was deferred to the commit happens in memory
//! ```

use durum_format::record::{Operation, push_copy, push_word};
use durum_persist::line;
use zerocopy::IntoBytes;

use super::commit::push_words;
use super::large::{self, Ways};
use super::log::entries::push_bytes;
use super::log::writer::Log;
use super::rare_writes::write_alone;
use super::thread::OfThread;
use super::torn;
use super::wide::{Wide, Work};
use super::with_others::{put_into_queue, write_with_others};
use super::{compare, fresh};
use crate::alloc::{BitChange, Ground};
use crate::announced::{Announced, SomeObjects};
use crate::error::{Error, Step};
use crate::fault::{Guard, media_failed};
use crate::opened::{Durability, PoolInner, TxState, WHATEVER};

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
    // What lies in a fresh object is logged with that.
    let (announced, has_objects) = (&tx.announced, tx.announced.has_objects());
    let is_left_out = |address| has_objects && announced.is_in_object(address, 8);
    push_words(
        &mut writer.record,
        announced.words(),
        tx.recent_home,
        is_left_out,
    );
    writer.words_end = writer.record.len();
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

/// Writes the record of a transaction, by itself or with what else waits; or leaves it to the queue, if it is to be
/// buffered.
#[inline(always)]
fn write_record(tx: &mut TxState) -> Step {
    let Some(OfThread {
        shared,
        log,
        section,
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
    // What a section has found comes before them.
    let words = match section.is_none() {
        true => tx.announced.words(),
        false => &[],
    };
    let result = write_alone(writer, lane, shared, store, &mut tx.barrier, may_fly, words);
    writer.clear();
    if tx.may_fly {
        tx.in_flight = *result.as_ref().unwrap_or(&0);
    }
    result.map(drop)
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
