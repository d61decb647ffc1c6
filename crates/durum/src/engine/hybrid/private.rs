//! Hybrid on the `file` domain, where a store reaches no media before it is written back.
//!
//! Nothing can leak to the disk before the commit, so nothing has to be undone after a crash: the log gets the *new*
//! contents of announced ranges, and abort restores memory from volatile copies. With k puddle files changed, a
//! transaction of any size takes k + 2 syncs:
//!
//! ```text
//! redo entries of all that changed, seal |   home places, k files |   word |
//! ```
//!
//! A transaction whose commit changes one aligned word takes no log: one sync, and one before it for fresh objects.
//! Otherwise large fresh objects do not go through the log: they are written home and synced before the seal.

use super::{OfThread, append_changes, changes_one_word, log_of, retire, take_log};
use crate::alloc::Puddle;
use crate::engine::in_place::{apply, check_media, write_file};
use crate::error::{Error, Result};
use crate::fault::guarded;
use crate::log::MoreLog;
use crate::opened::TxState;
use crate::sites::sites;

sites! {
    FRESH_WRITE = "hybrid.file: write large fresh ranges home";
    FRESH_SYNC = "hybrid.file: sync large fresh ranges";
    LOG_WRITE = "hybrid.file: write entries and seal";
    LOG_SYNC = "hybrid.file: sync entries and seal";
    HOME_WRITE = "hybrid.file: write home places";
    HOME_SYNC = "hybrid.file: sync home places";
    RETIRE_WRITE = "hybrid.file: write the range word";
    RETIRE_SYNC = "hybrid.file: sync the range word";
    WORD_WRITE = "hybrid.file, one word: write it home";
    WORD_SYNC = "hybrid.file, one word: sync it";
    ABORT_WRITE = "hybrid.file, abort: write the range word";
    ABORT_SYNC = "hybrid.file, abort: sync the range word";
}

/// Up to this many announced bytes all go through the log, which saves a sync; above, fresh ones do not.
const LOGGED_MAX: usize = 64 << 10;

/// Keeps the old contents in volatile memory.
pub(super) fn announce(
    tx: &mut TxState,
    puddle: &Puddle,
    address: usize,
    len: usize,
) -> Result<()> {
    // SAFETY: the range lies in a mapped puddle, and the caller of `add` promised that nobody changes it.
    guarded(|| unsafe { tx.backups.save(address, len) });
    tx.wants_end = true;
    let own: &mut OfThread = tx.kept.current().ok_or(Error::NoTransaction)?;
    own.backed.insert(address, len);
    puddle.check_failed()
}

pub(super) fn commit(tx: &mut TxState) -> Result<()> {
    if tx.announced.is_empty() && tx.sets.is_empty() && tx.bits.is_empty() && tx.bitmaps.is_empty()
    {
        return Ok(());
    }
    let own: &mut OfThread = tx.kept.current().ok_or(Error::NoTransaction)?;
    if own.backed.is_empty() && changes_one_word(tx) {
        if !tx.announced.is_empty() {
            tx.announced.try_for_each(false, |address, len| {
                write_file(&mut tx.barrier, address, len, FRESH_WRITE)
            })?;
            // ORDER: fresh objects are durable before the word that makes them exist.
            tx.barrier.fence(true, FRESH_SYNC)?;
        }
        check_media(&tx.pools)?;
        apply(tx, WORD_WRITE)?;
        // ORDER: durable before the commit returns. A sector is old or new, so the word is.
        return tx.barrier.fence(true, WORD_SYNC);
    }
    take_log(tx)?;
    let through_log_all = tx.announced.bytes() <= LOGGED_MAX;
    let mut fresh_home = false;
    let Some(OfThread {
        log: Some(log),
        backed,
    }) = tx.kept.current()
    else {
        return Err(Error::NoTransaction);
    };
    let (more, barrier): (&dyn MoreLog, _) = (&*tx.pools[0].store, &mut tx.barrier);
    tx.announced.try_for_each(false, |address, len| {
        if through_log_all || backed.overlaps(address, len) {
            // SAFETY: announced ranges lie in mapped puddles, and only this thread changes them.
            let bytes = unsafe { std::slice::from_raw_parts(address as *const u8, len) };
            guarded(|| log.append_redo(address, bytes, more, barrier))
        } else {
            fresh_home = true;
            write_file(barrier, address, len, FRESH_WRITE)
        }
    })?;
    append_changes(tx)?;
    check_media(&tx.pools)?;
    if fresh_home {
        // ORDER: fresh objects are durable before the seal that makes them exist.
        tx.barrier.fence(true, FRESH_SYNC)?;
    }
    let log = log_of(&mut tx.kept).ok_or(Error::NoTransaction)?;
    let (more, barrier) = (&*tx.pools[0].store, &mut tx.barrier);
    log.append_seal(false, &[], log.salt().crc().value(), more, barrier)?;
    // ORDER: entries and seal are durable before any home place is written: from here on a crash rolls forward.
    log.make_durable(barrier, LOG_WRITE, LOG_SYNC)?;
    let OfThread { backed, .. } = tx.kept.current().ok_or(Error::NoTransaction)?;
    tx.announced.try_for_each(false, |address, len| {
        match through_log_all || backed.overlaps(address, len) {
            true => write_file(barrier, address, len, HOME_WRITE),
            false => Ok(()),
        }
    })?;
    apply(tx, HOME_WRITE)?;
    // ORDER: home places are durable before the entries that could write them again lose their effect.
    tx.barrier.fence(true, HOME_SYNC)?;
    retire(tx, RETIRE_WRITE, RETIRE_SYNC)
}

pub(super) fn roll_back(tx: &mut TxState) -> Result<()> {
    guarded(|| {
        tx.backups.restore(|target, saved| {
            // SAFETY: the range was saved by `announce`; it is still mapped, and nobody else changes it.
            unsafe {
                std::ptr::copy_nonoverlapping(saved.as_ptr(), target as *mut u8, saved.len())
            };
        });
    });
    let usable = tx.pools.iter().all(|pool| pool.check_usable().is_ok());
    // What a failed write or sync left on the media nobody knows. The log stays as it is for the next opener.
    let Some(log) = log_of(&mut tx.kept).filter(|log| log.entries() > 0 && usable) else {
        return Ok(());
    };
    if !log.reached_media() {
        log.reset();
        return Ok(());
    }
    // ORDER: entries that reached the log are out of effect before the next transaction writes others of their
    // generation.
    retire(tx, ABORT_WRITE, ABORT_SYNC)
}
