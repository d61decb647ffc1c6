//! What engines have in common whose programs work in the media.

use durum_persist::{Site, line};

use crate::alloc::puddle_at;
use crate::announced::Announced;
use crate::before_images::before_store;
use crate::deferred::Set;
use crate::error::Result;
use crate::fault::{guarded, media_failed};
use crate::media::Barrier;
use crate::opened::{PoolRef, TxState};

/// A step that a test leaves out.
const KEEP: Site = Site("snapshot: keep what a commit is about to change in place");

/// Makes what the transaction has deferred to its commit: bits of allocations, and stores. The caller fences.
///
/// # Errors
/// Those of writing to a file (`file` domain).
pub(super) fn apply(tx: &mut TxState, site: Site) -> Result<()> {
    let barrier = &mut tx.barrier;
    for bitmap in &tx.bitmaps {
        let len = bitmap.len * 8;
        // SAFETY: a puddle of this transaction, which keeps it.
        let puddle = unsafe { bitmap.puddle.as_ref() };
        before_store(puddle, bitmap.address, len, KEEP);
        // SAFETY: the bitmap of a slab that only this thread knows.
        unsafe { line::copy(bitmap.address as *mut u8, bitmap.words.as_ptr().cast(), len) };
        // ORDER: here and below: durable with the caller's fence, before the entries that could write it again are
        // retired.
        barrier.write_back(puddle, bitmap.address, len, site)?;
    }
    for (at, change) in tx.bits.iter().enumerate() {
        // SAFETY: a puddle of this transaction, which keeps it.
        let puddle = unsafe { change.puddle.as_ref() };
        before_store(puddle, change.word, 8, KEEP);
        let word = change.word as *mut u64;
        // SAFETY: a bitmap word in a puddle of this transaction; all threads change such words by atomic operations.
        unsafe {
            if change.set {
                line::fetch_or_u64(word, change.mask);
            } else {
                line::fetch_and_u64(word, !change.mask);
            }
        }
        // Words of one line come one after the other; the last one takes the line along.
        let same_line =
            (tx.bits.get(at + 1)).is_some_and(|next| next.word / 64 == change.word / 64);
        if !same_line || puddle.private {
            barrier.write_back_word(puddle, change.word, site)?;
        }
    }
    for (at, set) in tx.sets.iter().enumerate() {
        let source = set.bytes(&tx.set_bytes);
        // SAFETY: a puddle of this transaction, which keeps it.
        let puddle = unsafe { set.puddle.as_ref() };
        before_store(puddle, set.target, set.len, KEEP);
        // SAFETY: `set` checked the range; the caller of `set` promised that only this thread changes it.
        unsafe {
            match source.first_chunk::<8>() {
                // One store, so that no crash finds a part of it: Hybrid relies on that.
                Some(word) if set.len == 8 && set.target.is_multiple_of(8) => {
                    line::store_u64(set.target as *mut u64, u64::from_ne_bytes(*word));
                }
                _ => line::copy(set.target as *mut u8, source.as_ptr(), set.len),
            }
        }
        let one_line = |set: &Set| set.target / 64 == (set.target + set.len - 1) / 64;
        let same_line = one_line(set)
            && (tx.sets.get(at + 1))
                .is_some_and(|next| one_line(next) && next.target / 64 == set.target / 64);
        if !same_line || puddle.private {
            // ORDER: as for the bitmaps above.
            barrier.write_back(puddle, set.target, set.len, site)?;
        }
    }
    Ok(())
}

/// Writes back every line with an announced byte, each once.
pub(super) fn write_back_announced(announced: &Announced, site: Site) {
    guarded(|| {
        // SAFETY: whole lines around announced ranges, inside mapped puddles.
        announced.for_each(true, |address, len| unsafe {
            line::write_back(address as *const u8, len, site)
        });
    });
}

/// The error of a page that failed since the transaction began, if any.
pub(super) fn check_media(pools: &[PoolRef]) -> Result<()> {
    if media_failed() {
        pools.iter().try_for_each(|pool| pool.check_media())
    } else {
        Ok(())
    }
}

/// Writes exactly these bytes of a puddle to its file (`file` domain): a neighbour may belong to a transaction that is
/// not committed. They are durable with the barrier's next fence.
///
/// # Errors
/// The write failed: the store is poisoned.
pub(super) fn write_file(
    barrier: &mut Barrier,
    address: usize,
    len: usize,
    site: Site,
) -> Result<()> {
    let Some(puddle) = puddle_at(address) else {
        return Ok(());
    };
    // SAFETY: puddles live while their store is open.
    let puddle = unsafe { puddle.as_ref() };
    // ORDER: durable with the caller's next sync; the caller says why.
    guarded(|| barrier.write_back(puddle, address, len, site))
}
