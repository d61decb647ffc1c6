//! What an engine is: how announced ranges become durable all at once.

#[cfg(feature = "test-engines")]
mod direct;
mod hybrid;
mod in_place;
#[cfg(feature = "test-engines")]
mod sample;
mod shadow;
mod twin;

use std::ops::Range;

use durum_service::EngineKind;

use crate::alloc::Puddle;
use crate::error::{Result, Step};
use crate::fault::guarded;
use crate::opened::{Engine, TxState};

pub use twin::{LrRef, View};

/// The sites of all engines.
pub(crate) const SITES: &[&[durum_persist::Site]] = &[
    hybrid::SITES,
    hybrid::PRIVATE_SITES,
    shadow::SITES,
    twin::SITES,
];

/// The error of a page that failed in one of the puddles, if any.
fn check_failed(ranges: &[(&Puddle, Range<usize>)]) -> Result<()> {
    ranges
        .iter()
        .try_for_each(|(puddle, _)| puddle.check_failed())
}

/// Announces a range and keeps in memory what it holds, so that an abort can put it back.
///
/// `Clobber` ranges too: what an abort left in memory and not on the media would be lost by a later transaction that
/// announces it and leaves it as it is.
fn keep_old(tx: &mut TxState, puddle: &Puddle, address: usize, len: usize) -> Step {
    if !tx.announced.covers(address, len) {
        // SAFETY: the range lies in a mapped puddle, and the caller of `add` promised that nobody changes it.
        guarded(|| unsafe { tx.backups.save(address, len) });
        tx.announced.insert(address, len);
    }
    puddle.check_failed()?;
    Ok(())
}

/// The engines that are in no product, by their names: `direct` for benchmarks, `sample` for tests.
pub(crate) fn test_engine(name: &str) -> Option<&'static dyn Engine> {
    match name {
        #[cfg(feature = "test-engines")]
        "direct" => Some(&direct::Direct),
        #[cfg(feature = "test-engines")]
        "sample" => Some(&sample::Sample),
        _ => None,
    }
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
