//! Hybrid: undo and redo logs, changes in place (Puddles §4.1).
//!
//! ```text
//! undo only    entry | entry | ...  data |                       word |      n + 2 fences
//! redo only    entries, fresh, seal |   home |                   word |      3
//! both         entry | ...  data, redo entries | seal | home |   word |      n + 4
//! both, small  entry | ...  data, redo entries, seal | home |    word |      n + 3
//! one word     fresh | home |                                                2, without fresh objects 1
//! ```
//!
//! `|` is a fence. *Small*: all announced ranges together are at most 256 bytes, so the seal carries a checksum of
//! their contents and proves by itself that they reached the media. That is also how fresh objects cost an allocation
//! no fence.
//!
//! *One word*: all that changes at the commit is one aligned 8-byte word, as when one object is allocated or freed, or
//! one pointer is set. The media change such a word whole or not at all, so no log is needed.
//!
//! On `file`, stores stay private to the process until they are written back: see [`private`].

mod private;

use std::ops::Range;
use std::sync::Arc;

use durum_persist::{Site, line};

use super::check_failed;
use super::in_place::{apply, check_media, write_back_announced};
use crate::alloc::{Puddle, puddle_at};
use crate::announced::Announced;
use crate::before_images::before_store;
use crate::error::{Error, Result, Step};
use crate::fault::guarded;
use crate::log::{LogWriter, MoreLog};
use crate::media::Barrier;
use crate::opened::{self, Announce, ByThread, Engine, Facts, PoolInner, StoreInner, TxState};
use crate::sites::sites;

pub(super) use private::SITES as PRIVATE_SITES;

sites! {
    ADD_WRITE = "hybrid.add: write back the undo entry";
    ADD_FENCE = "hybrid.add: fence after the undo entry";
    DATA_WRITE = "hybrid.commit: write back announced ranges";
    DATA_FENCE = "hybrid.commit: fence after announced ranges";
    REDO_WRITE = "hybrid.commit: write back redo entries";
    SEAL_WRITE = "hybrid.commit: write back the seal";
    SEAL_FENCE = "hybrid.commit: fence after the seal";
    HOME_WRITE = "hybrid.commit: write back home places of redo entries";
    HOME_FENCE = "hybrid.commit: fence after home places";
    WORD_DATA_WRITE = "hybrid.word: write back fresh ranges";
    WORD_DATA_FENCE = "hybrid.word: fence after fresh ranges";
    WORD_WRITE = "hybrid.word: write back the word";
    WORD_FENCE = "hybrid.word: fence after the word";
    RETIRE_WRITE = "hybrid.commit: write back the range word";
    RETIRE_FENCE = "hybrid.commit: fence after the range word";
    ABORT_WRITE = "hybrid.abort: write back restored ranges";
    ABORT_FENCE = "hybrid.abort: fence after restored ranges";
    ABORT_RETIRE_WRITE = "hybrid.abort: write back the range word";
    ABORT_RETIRE_FENCE = "hybrid.abort: fence after the range word";
    PERSIST_WRITE = "persist: write back";
    PERSIST_FENCE = "persist: fence";
}

/// A step that a test leaves out.
const KEEP: Site = Site("snapshot: keep what a program is about to change");

/// What the engine keeps of a thread.
#[derive(Debug, Default)]
struct OfThread {
    /// Taken from the store at the first need.
    log: Option<LogWriter>,
    /// Announced ranges whose old contents are not kept in the log (`file` domain).
    backed: Announced,
}

impl opened::OfThread for OfThread {
    fn end(&mut self, pool: Option<&PoolInner>) {
        if let (Some(log), Some(pool)) = (&mut self.log, pool) {
            // What a failed transaction left in its log is for the next opener.
            if pool.poison.check().is_ok() {
                log.trim(&*pool.store);
            }
        }
        if !self.backed.is_empty() {
            self.backed.clear();
        }
    }

    fn leave(self: Box<Self>, store: &Arc<StoreInner>) {
        if let Some(log) = self.log {
            store.release_log(log);
        }
    }
}

/// Gives the thread a log, if it has none.
#[inline]
fn take_log(tx: &mut TxState) -> Result<()> {
    tx.wants_end = true;
    match log_of(&mut tx.kept) {
        Some(_) => Ok(()),
        None => take_new_log(tx),
    }
}

#[cold]
fn take_new_log(tx: &mut TxState) -> Result<()> {
    let own: &mut OfThread = tx.kept.current().ok_or(Error::NoTransaction)?;
    own.log = Some(tx.pools[0].store.acquire_log(&mut tx.barrier)?);
    Ok(())
}

/// The thread's log, if it has one.
#[inline]
fn log_of(kept: &mut ByThread) -> Option<&mut LogWriter> {
    kept.current::<OfThread>()?.log.as_mut()
}

/// Makes the undo entries durable that were written for ranges which the program is about to change.
#[inline]
fn make_undo_durable(tx: &mut TxState) -> Step {
    let Some(log) = log_of(&mut tx.kept) else {
        return Err(Error::NoTransaction.into());
    };
    // ORDER: the old bytes are durable before the program stores new ones, which may reach the media at any time; a
    // crash in between would find new bytes and nothing to undo them with.
    log.make_durable(&mut tx.barrier, ADD_WRITE, ADD_FENCE)?;
    // A page of the log may have failed as well as one of the range.
    check_media(&tx.pools)?;
    Ok(())
}

/// The engine without state: everything is in the transaction and its log.
#[derive(Debug)]
pub(super) struct Hybrid;

impl Engine for Hybrid {
    fn facts(&self) -> Facts {
        Facts {
            commits_with_others: true,
            works_in_place: true,
            ..Facts::default()
        }
    }

    fn enter(&self, tx: &mut TxState, _pool: &Arc<PoolInner>) -> Result<()> {
        tx.kept.turn_to(OfThread::default);
        Ok(())
    }

    #[inline]
    fn announce(
        &self,
        tx: &mut TxState,
        puddle: &Puddle,
        address: usize,
        len: usize,
        announce: Announce,
    ) -> Step {
        if tx.announced.covers(address, len) {
            return Ok(());
        }
        before_store(puddle, address, len, KEEP);
        if announce == Announce::Clobber {
            tx.announced.insert(address, len);
            return Ok(());
        }
        if puddle.private {
            private::announce(tx, puddle, address, len)?;
            tx.announced.insert(address, len);
            return Ok(());
        }
        take_log(tx)?;
        let Some(log) = log_of(&mut tx.kept) else {
            return Err(Error::NoTransaction.into());
        };
        let (more, barrier) = (&*tx.pools[0].store, &mut tx.barrier);
        // SAFETY: the range lies in a mapped puddle, and the caller of `add` promised that nobody changes it.
        guarded(|| unsafe { log.append_undo(address, len, more, barrier) })?;
        if let Some(gathered) = &mut tx.gathered {
            gathered.push((address, len));
            return Ok(());
        }
        make_undo_durable(tx)?;
        tx.announced.insert(address, len);
        Ok(())
    }

    fn announce_gathered(&self, tx: &mut TxState, gathered: &[(usize, usize)]) -> Step {
        make_undo_durable(tx)?;
        for (address, len) in gathered {
            tx.announced.insert(*address, *len);
        }
        Ok(())
    }

    fn commit(&self, tx: &mut TxState) -> Step {
        let log = log_of(&mut tx.kept);
        let (has_log, undo) = (log.is_some(), log.is_some_and(|log| log.has_undo()));
        // At its end the log gives back what others may need.
        tx.wants_end |= has_log;
        if tx.pools[0].store.private {
            private::commit(tx)?;
            return Ok(());
        }
        let redo = !tx.sets.is_empty() || !tx.bits.is_empty() || !tx.bitmaps.is_empty();
        if redo {
            match changes_one_word(tx) && !undo {
                true => commit_word(tx)?,
                false => {
                    take_log(tx)?;
                    commit_redo(tx)?;
                }
            }
            return Ok(());
        }
        if !tx.announced.is_empty() {
            write_back_announced(&tx.announced, DATA_WRITE);
            // ORDER: the new contents are durable before the undo entries that protect them lose their effect.
            tx.barrier.fence(false, DATA_FENCE)?;
        }
        check_media(&tx.pools)?;
        if undo {
            retire(tx, RETIRE_WRITE, RETIRE_FENCE)?;
        }
        Ok(())
    }

    fn abort(&self, tx: &mut TxState) {
        let result = match tx.pools[0].store.private {
            true => private::roll_back(tx),
            false => roll_back(tx),
        };
        if let Err(error) = result {
            // Nobody can be told here. The log keeps its undo entries, so the next opener rolls back; until then the
            // pools are closed to everybody.
            tracing::error!(%error, "a transaction could not be rolled back");
            for pool in &tx.pools {
                pool.store
                    .set_poison("a transaction could not be rolled back");
            }
        }
    }

    fn persist(
        &self,
        tx: &mut TxState,
        _pool: &PoolInner,
        ranges: &[(&Puddle, Range<usize>)],
    ) -> Result<()> {
        let mut is_private = false;
        for (puddle, range) in ranges {
            is_private |= puddle.private;
            let write = |barrier: &mut Barrier, range: Range<usize>| {
                // ORDER: durable with the fence below.
                guarded(|| barrier.write_back(puddle, range.start, range.len(), PERSIST_WRITE))
            };
            if puddle.private {
                // What the transaction that runs has announced may not be in the file before the entries that undo it.
                let mut gaps = Vec::new();
                tx.announced
                    .for_each_gap(range.start, range.len(), |gap| gaps.push(gap));
                for gap in gaps {
                    write(&mut tx.barrier, gap)?;
                }
            } else {
                write(&mut tx.barrier, range.clone())?;
            }
        }
        // ORDER: durable on return; that is what the caller asked for.
        tx.barrier.fence(is_private, PERSIST_FENCE)?;
        check_failed(ranges)
    }

    fn prepare_log(&self, store: &StoreInner) {
        if store.prepare_first_log() {
            store.prepare_spares();
        }
    }
}

/// Whether all that changes at the commit is one aligned 8-byte word.
#[inline]
fn changes_one_word(tx: &TxState) -> bool {
    match (&tx.bits[..], &tx.sets[..]) {
        ([_], []) => tx.bitmaps.is_empty(),
        ([], [set]) => tx.bitmaps.is_empty() && set.len == 8 && set.target.is_multiple_of(8),
        _ => false,
    }
}

fn commit_word(tx: &mut TxState) -> Result<()> {
    if !tx.announced.is_empty() {
        write_back_announced(&tx.announced, WORD_DATA_WRITE);
        // ORDER: fresh objects are durable before the word that makes them exist.
        tx.barrier.fence(false, WORD_DATA_FENCE)?;
    }
    check_media(&tx.pools)?;
    guarded(|| apply(tx, WORD_WRITE))?;
    // ORDER: the word is durable before the commit returns. The media hold its old or its new value, so a crash before
    // leaves the transaction done or not begun.
    tx.barrier.fence(false, WORD_FENCE)?;
    check_media(&tx.pools)
}

fn commit_redo(tx: &mut TxState) -> Result<()> {
    // A seal may vouch for ranges only if nothing changes them between seal and word: a `set` on them would.
    let coverable = !(tx.sets.iter()).any(|set| tx.announced.overlaps(set.target, set.len));
    if !tx.announced.is_empty() {
        write_back_announced(&tx.announced, DATA_WRITE);
    }
    // Before the seal, because nothing may fail after it.
    check_media(&tx.pools)?;
    append_changes(tx)?;
    let Some(log) = log_of(&mut tx.kept) else {
        return Err(Error::NoTransaction);
    };
    let (more, barrier): (&dyn MoreLog, _) = (&*tx.pools[0].store, &mut tx.barrier);
    match tx.announced.few().filter(|_| coverable) {
        Some(ranges) => {
            let mut contents = log.salt().crc();
            for &(address, len) in ranges {
                // SAFETY: announced ranges lie in mapped puddles, and only this thread changes them.
                let bytes = unsafe { std::slice::from_raw_parts(address as *const u8, len) };
                guarded(|| contents.update(bytes));
            }
            log.append_seal(false, ranges, contents.value(), more, barrier)?;
        }
        None => {
            // ORDER: announced ranges and redo entries are durable before the seal that declares them so.
            log.make_durable(barrier, REDO_WRITE, DATA_FENCE)?;
            log.append_seal(true, &[], log.salt().crc().value(), more, barrier)?;
        }
    }
    // ORDER: the seal is durable before any home place changes: from here on a crash rolls forward, and needs every
    // redo entry; before, it rolls back, and needs home places untouched.
    log.make_durable(barrier, SEAL_WRITE, SEAL_FENCE)?;
    guarded(|| apply(tx, HOME_WRITE))?;
    // ORDER: home places are durable before the entries that could write them again lose their effect.
    tx.barrier.fence(false, HOME_FENCE)?;
    // A page that failed keeps its entries: they are not retired, and the store is poisoned.
    check_media(&tx.pools)?;
    retire(tx, RETIRE_WRITE, RETIRE_FENCE)
}

/// Appends the entries for what changes at the commit only: allocation bits and `set`s.
fn append_changes(tx: &mut TxState) -> Result<()> {
    let Some(log) = log_of(&mut tx.kept) else {
        return Err(Error::NoTransaction);
    };
    let (more, barrier): (&dyn MoreLog, _) = (&*tx.pools[0].store, &mut tx.barrier);
    for bitmap in &tx.bitmaps {
        let mut bytes = [0; 64];
        for (place, word) in bytes.as_chunks_mut::<8>().0.iter_mut().zip(bitmap.words) {
            *place = word.to_le_bytes();
        }
        log.append_redo(bitmap.address, &bytes[..bitmap.len * 8], more, barrier)?;
    }
    for bits in &tx.bits {
        log.append_bits(bits.set, bits.word, bits.mask, more, barrier)?;
    }
    for set in &tx.sets {
        log.append_redo(set.target, set.bytes(&tx.set_bytes), more, barrier)?;
    }
    Ok(())
}

fn retire(tx: &mut TxState, write: Site, fence: Site) -> Result<()> {
    let Some(log) = log_of(&mut tx.kept) else {
        return Ok(());
    };
    log.retire(&mut tx.barrier, write)?;
    // ORDER: the entries are out of effect before the commit returns: from then on others may change the same places,
    // and an old entry replayed over them would undo that.
    tx.barrier.fence(log.private(), fence)
}

fn roll_back(tx: &mut TxState) -> Result<()> {
    let Some(log) = log_of(&mut tx.kept) else {
        return Ok(());
    };
    if log.entries() == 0 {
        return Ok(());
    }
    if tx.pools.iter().any(|pool| pool.poison.check().is_err()) {
        // The log may hold a seal, and pages may be gone: the next opener decides, from what is on the media.
        return Ok(());
    }
    let mut result = Ok(());
    guarded(|| {
        log.undo_in_reverse(|target, saved| {
            // SAFETY: the entry was made from this range, which is still mapped; nobody else changes it.
            unsafe { line::copy(target as *mut u8, saved.as_ptr(), saved.len()) };
            if result.is_ok()
                && let Some(puddle) = puddle_at(target)
            {
                // SAFETY: puddles live while their store is open.
                let puddle = unsafe { puddle.as_ref() };
                // ORDER: durable with the fence below, before the entry that holds these bytes is retired.
                result = tx
                    .barrier
                    .write_back(puddle, target, saved.len(), ABORT_WRITE);
            }
        });
    });
    result?;
    check_media(&tx.pools)?;
    if log.has_undo() {
        // ORDER: the old contents are durable before the entries that hold them lose their effect.
        tx.barrier.fence(false, ABORT_FENCE)?;
    }
    retire(tx, ABORT_RETIRE_WRITE, ABORT_RETIRE_FENCE)
}
