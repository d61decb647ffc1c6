//! What a run is to do.

use std::path::PathBuf;

use crate::measure::Clock;

/// What a run is to do.
#[derive(Debug)]
pub struct Plan {
    /// Where durumcc and libdurum are installed.
    pub prefix: PathBuf,
    /// The repository.
    pub repository: PathBuf,
    /// For programs, and files that are compiled.
    pub work_dir: PathBuf,
    /// Where heaps are made, and how many times each side has its turn there.
    pub places: Vec<(PathBuf, usize)>,
    /// Only these rows, or all of them.
    pub rows: Vec<String>,
    /// Of the rows in memory; on a disk it is elapsed time.
    pub clock: Clock,
    /// Nanoseconds that each fence takes more, where a side can do that; others are left out.
    pub fence_ns: Option<u64>,
    /// The least work, for tests.
    pub quick: bool,
}

impl Plan {
    pub(super) fn wants(&self, row: &str) -> bool {
        self.rows.is_empty()
            || self
                .rows
                .iter()
                .any(|wanted| row.starts_with(wanted.as_str()))
    }
}
