//! Rows, the workloads they belong to, and the suites of workloads.

use std::path::Path;

use crate::error::{Error, Result};
use crate::inputs::{Scale, Walk};
use crate::measure::{Meter, Sample};
use crate::report::{by_engine, by_side};
use crate::run::Measured;
use crate::side::Side;
use crate::sides;

mod cells;
mod commits;
mod list;
mod map;
mod puts;
mod shared;
mod store;
mod swap;
mod tree;
mod words;

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

/// Where the stores of a suite are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// In memory: a tmpfs, standing in for persistent memory.
    Memory,
    /// On a file system of a disk.
    Disk,
}

/// A named list of workloads, and who competes in them.
pub struct Suite {
    /// Its name on the command line and in the CSV.
    pub name: &'static str,
    /// Where its stores are made.
    pub place: Place,
    /// Its sides.
    pub sides: fn() -> Vec<Box<dyn Side>>,
    /// Makes its workloads, inputs included.
    pub workloads: fn(&Scale) -> Vec<Box<dyn Workload>>,
    /// Its table on the terminal.
    pub table: fn(&[Measured]) -> String,
}

/// All suites.
pub const SUITES: &[Suite] = &[
    Suite {
        name: "core",
        place: Place::Memory,
        sides: sides::memory,
        workloads: core,
        table: by_engine::format,
    },
    Suite {
        name: "twin",
        place: Place::Memory,
        sides: sides::twin,
        workloads: twin,
        table: by_engine::format,
    },
    Suite {
        name: "media",
        place: Place::Memory,
        sides: sides::media,
        workloads: swaps,
        table: by_engine::format,
    },
    Suite {
        name: "latency",
        place: Place::Memory,
        sides: sides::latency,
        workloads: latency,
        table: by_side::format,
    },
    Suite {
        name: "typed",
        place: Place::Memory,
        sides: sides::typed,
        workloads: structures,
        table: by_engine::format,
    },
    Suite {
        name: "programs",
        place: Place::Memory,
        sides: sides::programs,
        workloads: programs,
        table: by_engine::format,
    },
    Suite {
        name: "disk",
        place: Place::Disk,
        sides: sides::disk,
        workloads: disk,
        table: by_side::format,
    },
];

/// The suite of this name.
pub fn suite(name: &str) -> Option<&'static Suite> {
    SUITES.iter().find(|suite| suite.name == name)
}

fn core(scale: &Scale) -> Vec<Box<dyn Workload>> {
    vec![
        Box::new(cells::CellsWorkload::new(scale)),
        Box::new(swap::SwapWorkload::new(scale)),
        Box::new(list::ListWorkload::new(scale)),
        Box::new(tree::TreeWorkload::new(scale)),
        Box::new(map::MapWorkload::new(scale)),
    ]
}

fn twin(scale: &Scale) -> Vec<Box<dyn Workload>> {
    let shared = shared::SharedWorkload::all(scale);
    let shared = shared.map(|workload| Box::new(workload) as Box<dyn Workload>);
    core(scale).into_iter().chain(shared).collect()
}

fn swaps(scale: &Scale) -> Vec<Box<dyn Workload>> {
    vec![Box::new(swap::SwapWorkload::new(scale))]
}

fn latency(scale: &Scale) -> Vec<Box<dyn Workload>> {
    vec![
        Box::new(commits::CommitsWorkload::new(scale, 1)),
        Box::new(commits::CommitsWorkload::new(scale, 8)),
    ]
}

fn structures(scale: &Scale) -> Vec<Box<dyn Workload>> {
    vec![
        Box::new(list::ListWorkload::new(scale)),
        Box::new(tree::TreeWorkload::new(scale)),
        Box::new(map::MapWorkload::new(scale)),
    ]
}

fn programs(scale: &Scale) -> Vec<Box<dyn Workload>> {
    let maps = tree::TreeWorkload::programs(scale);
    let mut workloads: Vec<Box<dyn Workload>> = vec![Box::new(list::ListWorkload::program(scale))];
    workloads.extend(maps.map(|map| Box::new(map) as Box<dyn Workload>));
    workloads.push(Box::new(store::StoreWorkload::new(scale)));
    workloads.push(Box::new(words::WordsWorkload::new(scale)));
    workloads
}

fn disk(scale: &Scale) -> Vec<Box<dyn Workload>> {
    vec![
        Box::new(puts::PutsWorkload::small(scale)),
        Box::new(puts::PutsWorkload::large(scale)),
        Box::new(puts::PutsWorkload::threads(scale)),
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
