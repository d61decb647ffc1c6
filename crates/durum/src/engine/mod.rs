//! What an engine is: how announced ranges become durable all at once.

#[cfg(feature = "test-engines")]
mod direct;
mod hybrid;
mod in_place;
mod read_only;
#[cfg(feature = "test-engines")]
mod sample;
mod shadow;
mod twin;

use std::ops::Range;

use durum_persist::line;
use durum_service::EngineKind;

use crate::alloc::Puddle;
use crate::checker::{self, Check};
use crate::error::Result;
use crate::opened::{Engine, OnMismatch};
use crate::root_type;
use crate::saved::Saved;

pub use twin::{LrRef, View};

/// The sites of all engines.
pub(crate) const SITES: &[&[durum_persist::Site]] = &[
    hybrid::SITES,
    hybrid::PRIVATE_SITES,
    shadow::SITES,
    twin::SITES,
    twin::COPIES_SITES,
];

/// The error of a page that failed in one of the puddles, if any.
fn check_failed(ranges: &[(&Puddle, Range<usize>)]) -> Result<()> {
    ranges
        .iter()
        .try_for_each(|(puddle, _)| puddle.check_failed())
}

/// Puts back what was kept in memory of announced ranges, what was saved last first. `note` is told of each before.
fn put_back(backups: &Saved, note: impl Fn(Range<usize>)) {
    backups.restore(|target, saved| {
        note(target..target + saved.len());
        // SAFETY: the range was saved when it was announced; it is still mapped, and nobody else changes it.
        unsafe { line::copy(target as *mut u8, saved.as_ptr(), saved.len()) };
    });
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

/// The engine of pools that are open for reading only.
pub(crate) fn read_only() -> &'static dyn Engine {
    &read_only::ReadOnly
}

/// What works on a pool that is opened. Whoever names [`OF_SECTIONS`] has no code of all else.
#[derive(Clone, Copy)]
pub(crate) struct Engines {
    /// Which engine there is for a kind.
    pub(crate) of: fn(EngineKind) -> Option<&'static dyn Engine>,
    /// What looks for stores that nobody announced.
    pub(crate) checker: Option<fn() -> Box<dyn Check>>,
    /// What compares types.
    pub(crate) on_mismatch: OnMismatch,
}

/// All that this version has.
pub(crate) const ALL: Engines = Engines {
    of: engine,
    checker: Some(checker::begin),
    on_mismatch: root_type::compare,
};

/// What pools need whose sections can be completed.
pub(crate) const OF_SECTIONS: Engines = Engines {
    of: |kind| match kind {
        EngineKind::Hybrid => Some(&hybrid::Hybrid),
        _ => None,
    },
    checker: None,
    on_mismatch: root_type::refuse,
};

/// The engine of a kind, if this version has it.
pub(crate) fn engine(kind: EngineKind) -> Option<&'static dyn Engine> {
    match kind {
        EngineKind::Hybrid => Some(&hybrid::Hybrid),
        EngineKind::Twin => Some(&twin::Twin),
        EngineKind::Shadow => Some(&shadow::Shadow),
        _ => None,
    }
}
