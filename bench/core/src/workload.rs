//! Rows, the workloads they belong to, and the suites of workloads.

use std::path::Path;

use crate::error::{Error, Result};
use crate::inputs::{Scale, Walk};
use crate::measure::{Meter, Sample};
use crate::side::Side;

mod cells;
mod list;
mod map;
mod swap;
mod tree;

/// One line of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// Its name in the CSV.
    pub name: &'static str,
    /// What one operation is.
    pub one_op: &'static str,
}

/// Rows that run one after the other on the same store.
pub trait Workload {
    /// In the order in which they run.
    fn rows(&self) -> &[Row];
    /// Sets a side up for one round, below `dir`.
    fn open<'w>(&'w self, side: &dyn Side, dir: &Path) -> Result<Box<dyn Session + 'w>>;
}

/// One side in one round.
pub trait Session {
    /// Runs a row and verifies the answer. Rows come in the workload's order, each once.
    fn run(&mut self, row: &'static str, meter: &mut Meter) -> Result<Sample>;
}

/// A named list of workloads.
pub struct Suite {
    /// Its name on the command line and in the CSV.
    pub name: &'static str,
    /// Makes its workloads, inputs included.
    pub workloads: fn(&Scale) -> Vec<Box<dyn Workload>>,
}

/// All suites.
pub const SUITES: &[Suite] = &[Suite {
    name: "core",
    workloads: core,
}];

fn core(scale: &Scale) -> Vec<Box<dyn Workload>> {
    vec![
        Box::new(cells::CellsWorkload::new(scale)),
        Box::new(swap::SwapWorkload::new(scale)),
        Box::new(list::ListWorkload::new(scale)),
        Box::new(tree::TreeWorkload::new(scale)),
        Box::new(map::MapWorkload::new(scale)),
    ]
}

/// Who answers a question, for the error message.
struct Asked<'s> {
    side: &'s str,
    row: &'static str,
}

impl Asked<'_> {
    fn expect<T: PartialEq + std::fmt::Debug>(&self, expected: T, found: T) -> Result<()> {
        if expected == found {
            return Ok(());
        }
        Err(Error::WrongAnswer {
            side: self.side.to_owned(),
            row: self.row,
            expected: format!("{expected:?}"),
            found: format!("{found:?}"),
        })
    }

    fn expect_walk(&self, expected: Walk, found: Walk) -> Result<()> {
        self.expect(expected, found)
    }
}
