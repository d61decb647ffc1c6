//! What an engine is: how announced ranges become durable all at once.

mod hybrid;
mod shadow;
mod twin;

use std::ops::Range;
use std::sync::Arc;

use durum_service::EngineKind;

use crate::alloc::Puddle;
use crate::error::{Result, Step};
use crate::fault::guarded;
use crate::mapping::Kept;
use crate::pool::PoolInner;
use crate::store::StoreInner;
use crate::tx::{Announce, TxState};

pub(crate) use shadow::{Direct, Journal, Section, Writer, write_now};
pub(crate) use twin::{Copies, Staged, Turn, reads_copy};
pub use twin::{LrRef, TwinMode, View};

/// The sites of all engines.
pub(crate) const SITES: &[&[durum_persist::Site]] = &[
    hybrid::SITES,
    hybrid::PRIVATE_SITES,
    shadow::SITES,
    twin::SITES,
];

/// A way to make transactions failure-atomic. A property of a pool, chosen when it is made.
///
/// The transaction tells it each range before the program stores there, and leaves it the order of everything that
/// reaches the media.
pub(crate) trait Engine: Sync + std::fmt::Debug {
    /// Called once the transaction has a pool and is about to announce in it, before anything that was there changes.
    /// For pools with [`Copies`].
    fn before_store(&self, _tx: &mut TxState) -> Step {
        Ok(())
    }

    /// Called before stores to a range, which may have been announced before. Enters it in `tx.announced`. Not for
    /// ranges that are [kept by line](Engine::keeps_lines).
    fn announce(
        &self,
        tx: &mut TxState,
        puddle: &Puddle,
        address: usize,
        len: usize,
        announce: Announce,
    ) -> Step;

    /// Makes the transaction durable. After an error the caller calls `abort`.
    fn commit(&self, tx: &mut TxState) -> Step;

    /// Puts announced memory back as it was.
    fn abort(&self, tx: &mut TxState);

    /// Makes ranges durable outside of any transaction, with one fence. The puddles are the pool's.
    fn persist(
        &self,
        tx: &mut TxState,
        pool: &PoolInner,
        ranges: &[(&Puddle, Range<usize>)],
    ) -> Result<()>;

    /// What it keeps about a puddle of its pools, which is about to be mapped.
    fn keep_puddle(
        &self,
        _store: &Arc<StoreInner>,
        _address: usize,
        _size: usize,
    ) -> Option<Box<dyn Kept>> {
        None
    }

    /// A puddle of its pools is mapped.
    fn puddle_is_mapped(&self, _store: &StoreInner, _puddle: &Arc<Puddle>) {}

    /// Whether one transaction may span several pools of this engine.
    fn commits_with_others(&self) -> bool;

    /// Whether old contents of ranges shorter than [`LARGE`](crate::announced::LARGE) are kept in `tx.announced`, by
    /// line. Then these need not be announced here.
    fn keeps_lines(&self) -> bool {
        false
    }

    /// Whether fresh objects are noted apart from announced bytes
    /// ([`Announced::insert_object`](crate::announced::Announced::insert_object)).
    fn keeps_objects(&self) -> bool {
        false
    }
}

/// The error of a page that failed in one of the puddles, if any.
fn check_failed(ranges: &[(&Puddle, Range<usize>)]) -> Result<()> {
    ranges
        .iter()
        .try_for_each(|(puddle, _)| puddle.check_failed())
}

/// Announces a range and keeps in memory what it holds, for an engine whose smaller ranges are kept by line.
///
/// `Clobber` ranges too: what an abort left in memory and not on the media would be lost by a later transaction that
/// announces it and leaves it as it is.
fn keep_large(tx: &mut TxState, puddle: &Puddle, address: usize, len: usize) -> Step {
    if !tx.announced.covers(address, len) {
        // SAFETY: the range lies in a mapped puddle, and the caller of `add` promised that nobody changes it.
        guarded(|| unsafe { tx.backups.save(address, len) });
        tx.announced.insert(address, len);
    }
    puddle.check_failed()?;
    Ok(())
}

/// The engine of a kind, if this version has it.
pub(crate) fn engine(kind: EngineKind) -> Option<&'static dyn Engine> {
    match kind {
        EngineKind::Hybrid => Some(&hybrid::Hybrid),
        EngineKind::Twin => Some(&twin::Twin),
        EngineKind::Shadow => Some(&shadow::Shadow),
        _ => None,
    }
}

/// Makes a transaction of pools of this engine durable: [`Engine::commit`], in line where that pays.
#[inline(always)]
pub(crate) fn commit(engine: &dyn Engine, kind: EngineKind, tx: &mut TxState) -> Step {
    match kind {
        EngineKind::Shadow => shadow::Shadow.commit(tx),
        _ => engine.commit(tx),
    }
}
