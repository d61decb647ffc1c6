//! What a contestant does, and where its time went.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use durum_bench_core::error::{Error, Result};

use crate::expected::Expected;

/// A contestant.
pub(crate) trait Side {
    fn name(&self) -> &'static str;

    /// Of a library.
    fn version(&self) -> Option<String> {
        None
    }

    /// Has the nodes do their work, in the directory.
    fn prepare(&self, directory: &Path, expected: &Expected) -> Result<()>;

    /// Has their results come together, and compares what is there with what has to be. As often as is wanted.
    fn aggregate(&self, directory: &Path, expected: &Expected) -> Result<Times>;
}

/// Where the time of one aggregation went (Figure 14).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Times {
    /// Results become the home node's; for libpmemobj, their pools are opened and closed.
    pub(crate) import: Duration,
    /// Pointers are made to lead to where things are now; for libpmemobj, everything is allocated anew.
    pub(crate) rewriting: Duration,
    /// All else: the pool is mapped, states are linked, and values summed up.
    pub(crate) rest: Duration,
}

impl Times {
    pub(crate) fn total(&self) -> Duration {
        self.import + self.rewriting + self.rest
    }
}

/// Calls it, and tells how long that took.
pub(crate) fn timed<T>(f: impl FnOnce() -> T) -> (Duration, T) {
    let began = Instant::now();
    let result = f();
    (began.elapsed(), result)
}

/// A file or directory of a node.
pub(crate) fn of_node(directory: &Path, what: &str, node: u64) -> PathBuf {
    directory.join(format!("{what}-{node}"))
}

/// A wrong answer, whose time would mean nothing.
pub(crate) fn check<T: PartialEq + std::fmt::Debug>(
    side: &str,
    expected: T,
    found: T,
) -> Result<()> {
    if expected == found {
        return Ok(());
    }
    Err(Error::WrongAnswer {
        side: side.to_owned(),
        row: "sensors",
        expected: format!("{expected:?}"),
        found: format!("{found:?}"),
    })
}
