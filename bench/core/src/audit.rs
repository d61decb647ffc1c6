//! What every side really executes per operation, found by stepping it: do peers flush as we do, and do our counters
//! tell the truth?

use durum_persist::line;

use crate::error::{Error, Result};
use crate::measure::{Clock, Meter};
use crate::report::short;
use crate::report::table::Table;
use crate::run::Plan;
use crate::side::{Role, Side};
use crate::step::{Executed, step};
use crate::workload::Row;

const HEADERS: [&str; 7] = [
    "row",
    "side",
    "fences",
    "clwb",
    "other flushes",
    "streamed lines",
    "instructions",
];

/// Steps through one small batch of each row on each side. The table, per operation.
///
/// # Errors
/// `Unfair` where a side uses another write-back instruction than durum, or where durum's counters differ from what was
/// executed.
pub fn run(
    plan: &Plan<'_>,
    sides: &[Box<dyn Side>],
    progress: &mut dyn FnMut(&str),
) -> Result<String> {
    let mut table = Table::new(HEADERS.map(|name| (name, "")));
    for workload in (plan.suite.workloads)(&plan.scale) {
        let rows = workload.rows();
        let wanted: Vec<Row> = rows.iter().filter(|row| plan.wants(row)).copied().collect();
        let Some(first) = wanted.first() else {
            continue;
        };
        let mut columns = Vec::new();
        for side in sides {
            progress(&format!("stepping from {} on, {}", first.name, side.name()));
            columns.push(step(|marks| {
                let mut stepped = Meter::stepped(marks);
                let mut unwatched = Meter::new(Clock::Wall);
                let mut session = workload.open(side.as_ref(), plan.dir)?;
                rows.iter().try_for_each(|row| {
                    let watched = plan.wants(row);
                    let meter = if watched {
                        &mut stepped
                    } else {
                        &mut unwatched
                    };
                    session.run(row.name, meter).map(drop)
                })
            })?);
        }
        for (index, row) in wanted.iter().enumerate() {
            for (side, batches) in sides.iter().zip(&columns) {
                check(row, side.as_ref(), &batches[index])?;
                table
                    .lines
                    .push(line_of(row, side.as_ref(), &batches[index]));
            }
        }
    }
    Ok(table.to_string())
}

fn check(row: &Row, side: &dyn Side, batch: &Executed) -> Result<()> {
    let unfair = |text: String| {
        Err(Error::Unfair(format!(
            "{}, {}: {text}",
            row.name,
            side.name()
        )))
    };
    if line::instruction() == line::Instruction::Clwb && batch.other_flushes > 0 {
        return unfair(format!(
            "durum uses CLWB, but {} other write-backs were executed",
            batch.other_flushes
        ));
    }
    let (executed, counted) = (
        (batch.fences, batch.lines()),
        (batch.fences_counted, batch.lines_counted),
    );
    if side.role() != Role::Peer && executed != counted {
        return unfair(format!(
            "(fences, lines) executed {executed:?}, counted {counted:?}"
        ));
    }
    Ok(())
}

fn line_of(row: &Row, side: &dyn Side, batch: &Executed) -> Vec<String> {
    let per_op = |amount: u64| short(amount as f64 / batch.ops as f64);
    vec![
        row.name.to_owned(),
        side.name().to_owned(),
        per_op(batch.fences),
        per_op(batch.clwb),
        per_op(batch.other_flushes),
        per_op(batch.streamed_bytes / 64),
        per_op(batch.instructions),
    ]
}
