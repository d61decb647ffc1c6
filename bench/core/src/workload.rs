//! Rows, and the workloads they belong to.

use std::path::Path;

use crate::error::{Error, Result};
use crate::inputs::Walk;
use crate::measure::{Meter, Sample};
use crate::side::Side;

pub(crate) mod cells;
pub(crate) mod commits;
pub(crate) mod disjoint;
pub(crate) mod euler;
pub(crate) mod list;
pub(crate) mod map;
pub(crate) mod puts;
pub(crate) mod scan;
pub(crate) mod shared;
pub(crate) mod store;
pub(crate) mod swap;
pub(crate) mod tree;
pub(crate) mod words;

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
    /// How many parts a row's work is done in; between them the other sides have their turn.
    fn parts(&self) -> usize {
        1
    }
    /// The place of the row with one thread, of whose rate the others' are multiples (`scaling`).
    fn lone(&self) -> Option<usize> {
        None
    }
    /// Sets a side up for one round, below `dir`.
    fn open<'w>(&'w self, side: &'w dyn Side, dir: &'w Path) -> Result<Box<dyn Session + 'w>>;
}

/// One side in one round.
pub trait Session {
    /// Runs a part of a row and verifies the answer. Rows come in the workload's order, each with all its parts.
    fn run(&mut self, row: &'static str, meter: &mut Meter) -> Result<Sample>;
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
