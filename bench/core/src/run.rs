//! Rounds: every side runs every row in each round, row by row, in rotated order.
//!
//! So two sides that are compared run the same row within moments of each other, and neither always comes first. Where
//! a second is too long for a moment, because a disk changes its mind, the sides take turns several times within a row.
//! A ratio is taken within a round; what is reported is the median over the rounds.

use std::path::Path;

use crate::error::Result;
use crate::inputs::Scale;
use crate::measure::{Meter, Sample, Spread, percentile};
use crate::side::{Role, Side};
use crate::workload::{Row, Suite};

/// What one side measured in one row.
#[derive(Clone, Debug)]
pub struct Column {
    /// The side's name.
    pub side: String,
    /// What it stands for.
    pub role: Role,
    /// Its persistence domain.
    pub domain: String,
    /// One sample for each round.
    pub samples: Vec<Sample>,
}

impl Column {
    /// Nanoseconds per operation.
    pub fn ns(&self) -> Spread {
        self.spread(|sample| sample.ns)
    }

    /// Median of a count per operation.
    pub fn median(&self, of: impl Fn(&Sample) -> f64) -> f64 {
        self.spread(of).median
    }

    fn spread(&self, of: impl Fn(&Sample) -> f64) -> Spread {
        let nothing = Spread {
            median: f64::NAN,
            min: f64::NAN,
            max: f64::NAN,
        };
        Spread::of(self.samples.iter().map(of)).unwrap_or(nothing)
    }

    /// The nanoseconds within which the given shares of the operations of all rounds were done, where each was timed.
    pub fn percentiles<const N: usize>(&self, shares: [f64; N]) -> [Option<f64>; N] {
        let each = self.samples.iter().flat_map(|sample| &sample.latencies);
        let mut each: Vec<u64> = each.copied().collect();
        shares.map(|share| percentile(&mut each, share).map(|ns| ns as f64))
    }

    /// How many times the rate with one thread, where the row asks for it.
    pub fn scaling(&self) -> Option<f64> {
        Spread::of(self.samples.iter().filter_map(|sample| sample.scaling))
            .map(|spread| spread.median)
    }

    /// The time of this side as a multiple of the other's, round by round.
    pub fn ratio_to(&self, other: &Column) -> Option<Spread> {
        Spread::of(
            self.samples
                .iter()
                .zip(&other.samples)
                .map(|(own, other)| own.ns / other.ns),
        )
    }
}

/// What all sides measured in one row.
#[derive(Clone, Debug)]
pub struct Measured {
    /// The suite's name.
    pub suite: &'static str,
    /// The row.
    pub row: Row,
    /// One entry for each side.
    pub columns: Vec<Column>,
}

impl Measured {
    /// The side with this role, if it took part (of several, the first).
    pub fn role(&self, role: Role) -> Option<&Column> {
        self.roles(role).next()
    }

    /// All sides with this role.
    pub fn roles(&self, role: Role) -> impl Iterator<Item = &Column> {
        self.columns
            .iter()
            .filter(move |column| column.role == role)
    }

    /// The peer with the smallest median.
    pub fn fastest_peer(&self) -> Option<&Column> {
        self.roles(Role::Peer)
            .min_by(|left, right| left.ns().median.total_cmp(&right.ns().median))
    }
}

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
