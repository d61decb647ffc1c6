//! Structures that threads share, and media: the right answers on every side; an update that is lost is noticed.

use std::path::Path;
use std::sync::{Mutex, PoisonError};

use durum_bench_core::error::{Error, Result};
use durum_bench_core::inputs::{Op, Scale, Walk};
use durum_bench_core::measure::{Clock, Meter};
use durum_bench_core::report::by_engine;
use durum_bench_core::run::{Measured, Plan, run};
use durum_bench_core::side::{Role, Shared, SharedShape, Side};
use durum_bench_core::sides::{self, plain::Volatile};
use durum_bench_core::workload::suite;

const SHARED: [&str; 4] = ["map_1k", "map_1m", "tree_1k", "tree_1m"];

/// Rows of several threads count what all threads of the process do.
static ALONE: Mutex<()> = Mutex::new(());

fn run_rows(name: &str, rows: &[&str], sides: &[Box<dyn Side>]) -> Result<Vec<Measured>> {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    let plan = Plan {
        suite: suite(name).unwrap(),
        filter: rows.iter().map(|row| (*row).to_owned()).collect(),
        rounds: 1,
        scale: Scale {
            elements: 3_000,
            shared: 1_000,
            swaps: 4_096,
            ..Scale::tiny()
        },
        dir: dir.path(),
    };
    run(&plan, sides, &mut Meter::new(Clock::Wall), &mut |_| ())
}

#[test]
fn threads_that_share_a_structure_get_the_right_answers() {
    let measured = run_rows("twin", &SHARED, &sides::twin()).unwrap();
    assert_eq!(measured.len(), 24);
    for row in &measured {
        let (name, fences) = (row.row.name, |side: &str| {
            let column = row.columns.iter().find(|column| column.side == side);
            column.unwrap().median(|sample| sample.fences)
        });
        assert!(by_engine::format(std::slice::from_ref(row)).contains(name));
        for side in ["twin", "twin_lr"] {
            let transactions = if name.starts_with("tree") { 2.0 } else { 1.0 };
            let most = match () {
                () if name.contains("_read_") => 0.0,
                () if name.contains("_mixed_") => 1.1 * transactions,
                () => 2.0 * transactions,
            };
            // A pool that grows has fences of its own.
            assert!(
                fences(side) <= most + 0.05,
                "{name} {side}: {}",
                fences(side)
            );
        }
        if name.contains("_read_") {
            assert_eq!(fences("twin") + fences("twin_lr"), 0.0);
            for column in &row.columns {
                let lines = column.median(|sample| sample.write_backs);
                assert_eq!(lines, 0.0, "{name} {}", column.side);
            }
        }
    }
}

/// Each changed line goes to both copies, and a seal beside them.
#[test]
fn twin_writes_each_line_twice() {
    let measured = run_rows("twin", &["swap_64"], &sides::twin()).unwrap();
    let (columns, limit) = (&measured[0].columns, measured[0].role(Role::Limit).unwrap());
    for side in ["twin", "twin_lr"] {
        let column = columns.iter().find(|column| column.side == side).unwrap();
        let percent = by_engine::amplification(column, limit).unwrap();
        assert!((100.0..125.0).contains(&percent), "{side}: {percent} %");
    }
    let table = by_engine::format(&measured);
    assert!(
        table.contains("amplification") && table.contains(" %"),
        "{table}"
    );
}

#[test]
fn swaps_on_each_medium_get_the_right_answers_and_are_slower_where_it_is() {
    let measured = run_rows("media", &[], &sides::media()).unwrap();
    let swap = measured
        .iter()
        .find(|row| row.row.name == "swap_8")
        .unwrap();
    let ns = |side: &str| {
        let column = swap.columns.iter().find(|column| column.side == side);
        column.unwrap().ns().median
    };
    for engine in ["twin", "twin_basic", "shadow"] {
        let best = swap
            .columns
            .iter()
            .filter(|column| column.side.starts_with(engine) && column.domain == "dram")
            .map(|column| column.ns().median)
            .fold(f64::INFINITY, f64::min);
        // Some eight lines at 340 ns and a fence at 500 ns, at the least.
        let pcm = ns(&format!("{engine}_pcm"));
        assert!(pcm > 3_000.0 && pcm > best, "{engine}: {pcm} ns, {best} ns");
    }
}

/// Loses one in fifty updates.
struct Forgetful(Volatile);

struct ForgetfulShared(Box<dyn Shared>);

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

    fn shared(&self, dir: &Path, shape: SharedShape) -> Result<Box<dyn Shared>> {
        Ok(Box::new(ForgetfulShared(self.0.shared(dir, shape)?)))
    }
}

impl Shared for ForgetfulShared {
    fn load(&mut self, entries: &[Op]) -> Result<()> {
        self.0.load(entries)
    }

    fn update(&self, op: &Op) -> Result<()> {
        match op.value % 100 {
            1 => Ok(()),
            _ => self.0.update(op),
        }
    }

    fn read(&self, key: u64) -> u64 {
        self.0.read(key)
    }

    fn walk(&mut self) -> Walk {
        self.0.walk()
    }
}

#[test]
fn a_lost_update_is_noticed() {
    for row in ["map_1k_update_1", "tree_1k_mixed_2"] {
        let sides: Vec<Box<dyn Side>> = vec![Box::new(Forgetful(Volatile::default()))];
        let error = run_rows("twin", &[row], &sides).unwrap_err();
        assert!(matches!(error, Error::WrongAnswer { .. }), "{row}: {error}");
    }
}
