//! The sides of the disk suite give the right answers and sync as often as they promise; a lost put is noticed.
//!
//! One test: syncs are counted for the whole process, so that a second test thread's would be counted, too.

use std::path::Path;

use durum_bench_core::error::{Error, Result};
use durum_bench_core::inputs::Scale;
use durum_bench_core::measure::{Clock, Meter};
use durum_bench_core::measured::Measured;
use durum_bench_core::report::{by_side, csv, percentiles};
use durum_bench_core::run::{Plan, run};
use durum_bench_core::side::{Put, Puts, PutsShape, Role, Side};
use durum_bench_core::sides::{self, overwrite::Overwrite};
use durum_bench_core::suite::suite;
use durum_persist::domain::{Domain, detect};

const ROWS: [&str; 8] = [
    "put_seq_100",
    "put_random_100",
    "put_seq_4096",
    "put_random_4096",
    "put_threads_1",
    "put_threads_2",
    "put_threads_4",
    "put_threads_8",
];

fn run_disk(dir: &Path, sides: &[Box<dyn Side>], rows: &[&str]) -> Result<Vec<Measured>> {
    let plan = Plan {
        suite: suite("disk").unwrap(),
        filter: rows.iter().map(|row| (*row).to_owned()).collect(),
        rounds: 1,
        scale: Scale::tiny(),
        dir,
    };
    run(&plan, sides, &mut Meter::new(Clock::Wall), &mut |_| ())
}

#[test]
fn puts_are_there_and_were_synced() {
    // Not the system's directory for temporary files, which may lie in memory.
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let sides = sides::disk();
    let measured = run_disk(dir.path(), &sides, &[]).unwrap();
    assert_eq!(measured.len(), ROWS.len());
    let (table, csv) = (
        by_side::format(&measured).to_string(),
        csv::format(&measured),
    );
    let plot = percentiles::format("disk", &measured, &[]).unwrap();
    for (row, measured) in ROWS.iter().zip(&measured) {
        assert_eq!(measured.row.name, *row);
        assert_eq!(measured.columns.len(), sides.len());
        for column in &measured.columns {
            assert!(csv.contains(&format!("disk,{row},{},file,", column.side)));
        }
        assert!(table.contains(row) && plot.contains(&format!(">\n{row}\n</text>")));
    }
    if detect(dir.path()).unwrap() == Domain::File {
        syncs_are_as_promised(&measured);
    }
    a_lost_put_is_noticed(dir.path());
}

fn syncs_are_as_promised(measured: &[Measured]) {
    for measured in measured {
        let row = measured.row.name;
        for column in &measured.columns {
            let (side, syncs) = (column.side.as_str(), column.median(|sample| sample.syncs));
            // More threads may share a sync. Now and then a store grows, or brings records home, with syncs of its own.
            let (least, most) = match (side, row) {
                ("overwrite", _) => (1.0, 1.0),
                ("hybrid", _) => (2.0, 4.5),
                ("lmdb", _) => (2.0, 2.0),
                ("shadow" | "leveldb", "put_threads_2" | "put_threads_4" | "put_threads_8") => {
                    (0.125, 1.5)
                }
                _ => (1.0, 1.5),
            };
            assert!(
                least <= syncs && syncs <= most,
                "{row}, {side}: {syncs} syncs, promised {least} to {most}"
            );
        }
    }
}

/// Forgets every third put.
struct Forgetful;

struct ForgetfulPuts(Box<dyn Puts>);

struct ForgetfulPut<'s>(Box<dyn Put + Send + 's>, u32);

impl Side for Forgetful {
    fn name(&self) -> &str {
        "forgetful"
    }

    fn role(&self) -> Role {
        Role::Engine
    }

    fn domain(&self) -> &str {
        "file"
    }

    fn puts(&self, dir: &Path, shape: &PutsShape) -> Result<Box<dyn Puts>> {
        Ok(Box::new(ForgetfulPuts(Overwrite.puts(dir, shape)?)))
    }
}

impl Puts for ForgetfulPuts {
    fn handles(&mut self) -> Vec<Box<dyn Put + Send + '_>> {
        let forgetful = |put| Box::new(ForgetfulPut(put, 0)) as Box<dyn Put + Send>;
        self.0.handles().into_iter().map(forgetful).collect()
    }

    fn visit(&mut self, see: &mut dyn FnMut(u64, &[u8])) -> Result<()> {
        self.0.visit(see)
    }
}

impl Put for ForgetfulPut<'_> {
    fn put(&mut self, key: u64, value: &[u8]) -> Result<()> {
        self.1 += 1;
        if self.1.is_multiple_of(3) {
            return Ok(());
        }
        self.0.put(key, value)
    }

    fn load(&mut self, keys: &[u64], values: &[u8]) -> Result<()> {
        self.0.load(keys, values)
    }
}

fn a_lost_put_is_noticed(dir: &Path) {
    let sides: Vec<Box<dyn Side>> = vec![Box::new(Forgetful)];
    for row in ["put_seq_100", "put_random_4096", "put_threads_2"] {
        let error = run_disk(dir, &sides, &[row]).unwrap_err();
        assert!(matches!(error, Error::WrongAnswer { .. }), "{row}: {error}");
    }
}
