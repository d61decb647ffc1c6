//! The large ranges of a transaction: into its record, or home.

use std::ops::Range;

use durum_format::record::push_fresh_sum;

use super::fresh::{self, FreshRange};
use super::log::writer::Writer;
use super::shared::lanes::Lane;
use super::shared::state::Shared;
use super::torn;
use crate::announced::{Announced, Ranges};
use crate::deferred::Set;
use crate::error::Step;

/// Writes what may be torn home, if it may go there. Whether it did; after an error there is no record in the making.
pub(super) fn write_torn(
    announced: &Announced,
    lane: &Lane,
    shared: &Shared,
    writer: &mut Writer,
) -> Step<bool> {
    match torn::may_go_home(announced.torn().bytes(), shared) {
        Ok(true) => {}
        Ok(false) => return Ok(false),
        Err(error) => {
            writer.clear();
            return Err(error.into());
        }
    }
    // No snapshot begins meanwhile.
    let _held = lane.checkpoint.lock_as_member();
    torn::write(announced.torn().iter(), shared);
    Ok(true)
}

/// Which large ranges do not go through the log.
pub(super) struct Ways<'t> {
    /// Ranges that may be torn, if they are home.
    pub(super) torn: Option<&'t Ranges>,
    /// Fresh ones that are.
    pub(super) written: &'t [FreshRange],
    /// Other fresh ones, if they may go home: where to put them down.
    pub(super) chosen: &'t mut Vec<FreshRange>,
    pub(super) may_go_home: bool,
}

/// Puts large ranges into the record, or leaves them to it; fresh ones of a durable transaction go home, as far as they
/// may.
#[inline(never)]
pub(super) fn push(
    writer: &mut Writer,
    announced: &Announced,
    ways: Ways<'_>,
    sets: &[Set],
    shared: &Shared,
) {
    let Ways {
        torn,
        written,
        chosen,
        may_go_home,
    } = ways;
    let deferred = sets.iter().map(|set| set.target..set.target + set.len);
    fresh::choose(
        announced.fresh(),
        written,
        may_go_home,
        deferred,
        shared,
        chosen,
    );
    // A transaction that waits for others, or that they wait for, is put together first.
    let may_stay = may_go_home && shared.group.is_none();
    let mut direct = chosen.iter().peekable();
    let large = announced.large().iter();
    for range in large.flat_map(|range| without(range, torn)) {
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

/// What is left of a range beside those.
fn without<'t>(
    range: &Range<usize>,
    others: Option<&'t Ranges>,
) -> impl Iterator<Item = Range<usize>> + use<'t> {
    let (mut from, end) = (range.start, range.end);
    let others = others.map(|others| others.ending_behind(from));
    let others = others.into_iter().flatten().cloned();
    others
        .take_while(move |other| other.start < end)
        .chain(std::iter::once(end..end))
        .map(move |other| std::mem::replace(&mut from, other.end)..other.start)
        .filter(|left| !left.is_empty())
}
