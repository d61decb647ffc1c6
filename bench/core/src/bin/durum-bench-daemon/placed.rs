//! Where a program runs, and those that it asks: on one processor, or on two. An answer from another processor takes
//! several times as long where that one has gone to sleep, so both sides of a row are in the same place.

use durum_bench_core::error::Result;
use durum_bench_core::measure::{Processors, stay_on};
use durum_bench_core::service::Durumd;

use crate::bare::Bare;

/// A service and bare programs in the same place, until drop.
pub(crate) struct Placed {
    pub(crate) service: Durumd,
    /// How the place is called.
    pub(crate) name: &'static str,
    _before: Processors,
}

/// Calls `measure` for each place that this machine has.
pub(crate) fn each(
    bare: &Bare,
    start: impl Fn() -> Result<Durumd>,
    mut measure: impl FnMut(&Placed) -> Result<()>,
) -> Result<()> {
    let before = Processors::usable();
    let [own, .., other] = before.numbers() else {
        // All is in one place, wherever it runs.
        let service = start()?;
        return measure(&Placed {
            service,
            name: "on one processor",
            _before: before,
        });
    };
    for (name, there) in [("on one processor", own), ("on two processors", other)] {
        let placed = {
            bare.stay_on(*there);
            // The service starts where this thread is, and stays there.
            stay_on(0, *there);
            let service = start()?;
            stay_on(0, *own);
            Placed {
                service,
                name,
                _before: before.clone(),
            }
        };
        measure(&placed)?;
    }
    Ok(())
}
