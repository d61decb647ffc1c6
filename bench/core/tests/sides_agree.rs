//! Every side runs every row, with little work, and gives the right answers; a side that does not is refused.

use std::path::Path;

use durum_bench_core::error::{Error, Result};
use durum_bench_core::inputs::{Op, Scale, Walk};
use durum_bench_core::measure::{Clock, Meter};
use durum_bench_core::measured::Measured;
use durum_bench_core::report::bars::{self, Length};
use durum_bench_core::report::{by_engine, csv};
use durum_bench_core::run::{Plan, run};
use durum_bench_core::side::{self, Role, Side};
use durum_bench_core::sides::durum::{Durum, Style, begin_with};
use durum_bench_core::sides::{self, plain::Volatile};
use durum_bench_core::suite::suite;

/// The rows that others read from the CSV.
const CORE_ROWS: [&str; 29] = [
    "floor",
    "tx_empty",
    "add_8",
    "add_4096",
    "alloc_8",
    "alloc_256",
    "alloc_4096",
    "free_8",
    "free_256",
    "free_4096",
    "deref",
    "chase",
    "swap_1",
    "swap_8",
    "swap_64",
    "swap_1024",
    "list_append",
    "list_sum",
    "list_pop",
    "btree_insert",
    "btree_lookup",
    "btree_delete",
    "kv_load",
    "kv_a",
    "kv_b",
    "kv_c",
    "kv_d",
    "kv_f",
    "kv_e",
];

fn run_core(sides: &[Box<dyn Side>], rows: &[&str], rounds: usize) -> Result<Vec<Measured>> {
    begin_with(8 << 20);
    let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    let plan = Plan {
        suite: suite("core").unwrap(),
        filter: rows.iter().map(|row| (*row).to_owned()).collect(),
        rounds,
        // Enough for a B-tree of five levels, and for every way to repair it.
        scale: Scale {
            elements: 3_000,
            swaps: 4_096,
            ..Scale::tiny()
        },
        dir: dir.path(),
    };
    run(&plan, sides, &mut Meter::new(Clock::Cpu), &mut |_| ())
}

#[test]
fn every_side_gives_the_right_answers_in_every_row() {
    let mut sides = sides::memory();
    sides.push(Box::new(
        Durum::hybrid().with_style("hybrid in place", Style::InPlace),
    ));
    let measured = run_core(&sides, &[], 2).unwrap();
    let csv = csv::format(&measured);
    for row in CORE_ROWS {
        for side in sides.iter().filter(|side| side.role() != Role::Peer) {
            let begin = format!("core,{row},{},", side.name());
            let lines: Vec<&str> = csv
                .lines()
                .filter(|line| line.starts_with(&begin))
                .collect();
            assert_eq!(lines.len(), 1, "{begin}");
            assert_eq!(lines[0].split(',').count(), csv::HEADER.split(',').count());
        }
    }
    assert_eq!(measured.len(), CORE_ROWS.len());
    let table = by_engine::format(&measured).to_string();
    let plot = bars::format("core", Length::Time, &measured, &[]);
    for row in CORE_ROWS {
        assert!(table.contains(row));
        assert!(plot.contains(&format!(">\n{row}\n</text>")), "{row}");
    }
}

#[test]
fn hybrid_fences_no_oftener_than_promised() {
    let sides: Vec<Box<dyn Side>> = vec![Box::new(Durum::hybrid())];
    let promised = [
        ("floor", 1.0),
        ("tx_empty", 0.0),
        ("add_8", 3.0),
        ("swap_1", 3.0),
        ("swap_64", 3.0),
        ("list_append", 3.0),
        ("list_pop", 3.0),
        ("btree_insert", 3.0),
        ("alloc_8", 2.0),
        ("free_8", 1.0),
        ("deref", 0.0),
    ];
    for measured in run_core(&sides, &promised.map(|(row, _)| row), 1).unwrap() {
        let fences = measured.columns[0].median(|sample| sample.fences);
        let (_, most) = promised
            .iter()
            .find(|(row, _)| *row == measured.row.name)
            .unwrap();
        // Now and then a pool grows or a log space is set up, with fences of their own.
        assert!(
            fences <= most + 0.25,
            "{}: {fences} fences, promised {most}",
            measured.row.name
        );
    }
}

/// Forgets the last value of each batch.
struct Forgetful(Volatile);

struct ForgetfulList(Box<dyn side::List>);

impl Side for Forgetful {
    fn name(&self) -> &str {
        "forgetful"
    }

    fn role(&self) -> Role {
        Role::Engine
    }

    fn domain(&self) -> &str {
        "none"
    }

    fn cells(&self, dir: &Path, ring: &[u32], objects_max: usize) -> Result<Box<dyn side::Cells>> {
        self.0.cells(dir, ring, objects_max)
    }

    fn swap(&self, dir: &Path, count: usize) -> Result<Box<dyn side::Swap>> {
        Ok(Box::new(ForgetfulSwap(self.0.swap(dir, count)?)))
    }

    fn list(&self, dir: &Path) -> Result<Box<dyn side::List>> {
        Ok(Box::new(ForgetfulList(self.0.list(dir)?)))
    }

    fn tree(&self, dir: &Path) -> Result<Box<dyn side::Tree>> {
        Ok(Box::new(ForgetfulTree(self.0.tree(dir)?)))
    }

    fn map(&self, dir: &Path, bucket_bits: u32) -> Result<Box<dyn side::Map>> {
        Ok(Box::new(ForgetfulMap(self.0.map(dir, bucket_bits)?)))
    }
}

struct ForgetfulSwap(Box<dyn side::Swap>);

impl side::Swap for ForgetfulSwap {
    fn values(&self) -> &[u64] {
        self.0.values()
    }

    fn run(&mut self, pairs: &[[u32; 2]], per_tx: usize) -> Result<()> {
        let kept = pairs.len().saturating_sub(per_tx);
        self.0.run(&pairs[..kept], per_tx)
    }
}

impl side::List for ForgetfulList {
    fn append(&mut self, values: &[u64]) -> Result<()> {
        self.0.append(&values[..values.len().saturating_sub(1)])
    }

    fn sum(&mut self) -> Walk {
        self.0.sum()
    }

    fn pop(&mut self, count: usize) -> Result<u64> {
        self.0.pop(count)
    }
}

struct ForgetfulTree(Box<dyn side::Tree>);

impl side::Tree for ForgetfulTree {
    fn insert(&mut self, entries: &[Op]) -> Result<()> {
        self.0.insert(entries)
    }

    fn lookup(&self, keys: &[u64]) -> u64 {
        self.0.lookup(keys)
    }

    fn delete(&mut self, keys: &[u64]) -> Result<u64> {
        self.0
            .delete(&keys[..keys.len() - 1])
            .map(|found| found + 1)
    }

    fn walk(&mut self) -> Walk {
        self.0.walk()
    }
}

struct ForgetfulMap(Box<dyn side::Map>);

impl side::Map for ForgetfulMap {
    fn load(&mut self, entries: &[Op]) -> Result<()> {
        self.0.load(entries)
    }

    fn run(&mut self, ops: &[Op]) -> Result<u64> {
        let first_update = ops.iter().position(|op| op.value != 0).unwrap_or(ops.len());
        self.0.run(&ops[..first_update])
    }

    fn walk(&mut self) -> Walk {
        self.0.walk()
    }
}

#[test]
fn work_that_was_not_done_is_noticed() {
    for row in ["swap_8", "list_append", "btree_delete", "kv_a"] {
        let sides: Vec<Box<dyn Side>> = vec![Box::new(Forgetful(Volatile::default()))];
        let error = run_core(&sides, &[row], 1).unwrap_err();
        assert!(matches!(error, Error::WrongAnswer { .. }), "{row}: {error}");
    }
}
