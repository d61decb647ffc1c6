//! The suites: which workloads belong together, and who competes in them.

use crate::inputs::Scale;
use crate::measured::Measured;
use crate::report::table::Table;
use crate::report::{by_engine, by_service, by_side};
use crate::side::Side;
use crate::sides;
use crate::workload::{
    Workload, cells, commits, disjoint, euler, list, map, puts, scan, shared, store, swap, tree,
    words,
};

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
    /// Its table.
    pub table: fn(&[Measured]) -> Table,
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
        name: "threads",
        place: Place::Memory,
        sides: sides::threads,
        workloads: threads,
        table: by_side::format,
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
        name: "daemon",
        place: Place::Memory,
        sides: sides::daemon,
        workloads: served,
        table: by_service::format,
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
        Box::new(scan::ScanWorkload::new(scale)),
    ]
}

fn twin(scale: &Scale) -> Vec<Box<dyn Workload>> {
    let shared = shared::SharedWorkload::all(scale);
    let shared = shared.map(|workload| Box::new(workload) as Box<dyn Workload>);
    core(scale).into_iter().chain(shared).collect()
}

fn threads(scale: &Scale) -> Vec<Box<dyn Workload>> {
    let disjoint = disjoint::DisjointWorkload::all(scale);
    disjoint
        .map(|workload| Box::new(workload) as Box<dyn Workload>)
        .collect()
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

fn served(scale: &Scale) -> Vec<Box<dyn Workload>> {
    vec![
        Box::new(list::ListWorkload::new(scale)),
        Box::new(map::MapWorkload::new(scale)),
        Box::new(scan::ScanWorkload::new(scale)),
        Box::new(euler::EulerWorkload::new(scale)),
    ]
}

fn disk(scale: &Scale) -> Vec<Box<dyn Workload>> {
    vec![
        Box::new(puts::PutsWorkload::small(scale)),
        Box::new(puts::PutsWorkload::large(scale)),
        Box::new(puts::PutsWorkload::threads(scale)),
    ]
}
