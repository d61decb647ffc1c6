//! Rounds: every side runs every row in each round, row by row, in rotated order.
//!
//! So two sides that are compared run the same row within moments of each other, and neither always comes first. Where
//! a second is too long for a moment, because a disk changes its mind, the sides take turns several times within a row.
//! A ratio is taken within a round; what is reported is the median over the rounds.

use std::path::Path;

use crate::error::Result;
use crate::inputs::Scale;
use crate::measure::{Meter, Sample};
use crate::measured::{Column, Measured};
use crate::side::Side;
use crate::suite::Suite;
use crate::workload::Row;

/// What to run.
pub struct Plan<'p> {
    /// The suite.
    pub suite: &'p Suite,
    /// Only rows of these names, or whose names begin with one of these and an underscore; all if empty. The other rows
    /// of their workloads run, too, since rows build on each other, but are not reported.
    pub filter: Vec<String>,
    /// Rounds, at least one.
    pub rounds: usize,
    /// The amount of work.
    pub scale: Scale,
    /// Where stores are made; must exist.
    pub dir: &'p Path,
}

impl Plan<'_> {
    /// Whether the row is to be reported.
    pub fn wants(&self, row: &Row) -> bool {
        let names = |name: &String| {
            let rest = row.name.strip_prefix(name.as_str());
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('_'))
        };
        self.filter.is_empty() || self.filter.iter().any(names)
    }
}

/// Runs the plan. `progress` is told what is about to run.
pub fn run(
    plan: &Plan<'_>,
    sides: &[Box<dyn Side>],
    meter: &mut Meter,
    progress: &mut dyn FnMut(&str),
) -> Result<Vec<Measured>> {
    let (suite, mut all) = (plan.suite, Vec::new());
    for workload in (suite.workloads)(&plan.scale) {
        if !workload.rows().iter().any(|row| plan.wants(row)) {
            continue;
        }
        let begin = all.len();
        all.extend(
            workload
                .rows()
                .iter()
                .map(|row| measured(suite.name, *row, sides)),
        );
        for round in 0..plan.rounds {
            let open = sides
                .iter()
                .map(|side| workload.open(side.as_ref(), plan.dir));
            let mut sessions = open.collect::<Result<Vec<_>>>()?;
            for (index, row) in workload.rows().iter().enumerate() {
                let mut parts = vec![Vec::new(); sides.len()];
                for part in 0..workload.parts() {
                    for turn in 0..sides.len() {
                        let side = (turn + round + index + part) % sides.len();
                        let (number, of) = (round + 1, plan.rounds);
                        progress(&format!(
                            "{} {}: {}, round {number} of {of}",
                            suite.name,
                            row.name,
                            sides[side].name()
                        ));
                        parts[side].push(sessions[side].run(row.name, meter)?);
                    }
                }
                for (column, parts) in all[begin + index].columns.iter_mut().zip(parts) {
                    column.samples.push(Sample::mean_of(parts));
                }
            }
            if let Some(lone) = workload.lone() {
                scale(&mut all[begin..], lone);
            }
        }
    }
    all.retain(|measured: &Measured| plan.wants(&measured.row));
    Ok(all)
}

/// Tells the last round's rates as multiples of the rates in the row `lone`.
fn scale(rows: &mut [Measured], lone: usize) {
    for side in 0..rows[lone].columns.len() {
        let last_ns = |row: &Measured| row.columns[side].samples.last().map(|sample| sample.ns);
        let lone_ns = last_ns(&rows[lone]);
        for row in &mut *rows {
            if let Some(sample) = row.columns[side].samples.last_mut() {
                sample.scaling = lone_ns.map(|lone_ns| lone_ns / sample.ns);
            }
        }
    }
}

fn measured(suite: &'static str, row: Row, sides: &[Box<dyn Side>]) -> Measured {
    let column = |side: &dyn Side| Column {
        side: side.name().to_owned(),
        role: side.role(),
        domain: side.domain().to_owned(),
        samples: Vec::new(),
    };
    Measured {
        suite,
        row,
        columns: sides.iter().map(|side| column(side.as_ref())).collect(),
    }
}
