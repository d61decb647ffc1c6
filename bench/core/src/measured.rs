//! What all sides measured, row by row.

use crate::measure::{Sample, Spread, percentile};
use crate::side::Role;
use crate::workload::Row;

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
    /// Of a side of which nothing but its times is known, in nanoseconds, one for each round.
    pub fn of_times(
        side: impl Into<String>,
        role: Role,
        domain: &str,
        ns: impl IntoIterator<Item = f64>,
    ) -> Column {
        let sample = |ns| Sample {
            ns,
            ..Sample::default()
        };
        Column {
            side: side.into(),
            role,
            domain: domain.to_owned(),
            samples: ns.into_iter().map(sample).collect(),
        }
    }

    /// With how long each operation took, in nanoseconds, in its first round.
    #[must_use]
    pub fn with_latencies(mut self, ns: Vec<u64>) -> Column {
        if let Some(sample) = self.samples.first_mut() {
            sample.latencies = ns;
        }
        self
    }

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
