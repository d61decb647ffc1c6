//! The operations of the typed interface: Table 5 of the Corundum paper, beside the figures that it gives for DRAM.
//!
//! `durum-bench-typed [--rounds N] [--dir DIR] [--out DIR] [--rows NAMES]`: medians over the rounds, in which the
//! engines take turns. Each operation is timed in transactions of a thousand of them, or fewer if they are large. The
//! first figure is the operation alone, as in the paper, and the last column the paper's divided by it on Shadow; the
//! second has its share of the commit in it, because Shadow does there what others do at once. With `--out`,
//! `operations.csv` and `operations.txt` there have the same numbers, and what they come from.

mod desk;
mod report;
mod rows;
mod times;

use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use clap::Parser;
use durum::Engine;
use durum::typed::*;
use durum_bench_core::command::{self, WorkDir, print};
use durum_bench_core::error::Error;
use durum_bench_core::measure::{Spread, pin};
use durum_bench_core::report::files::Figures;
use durum_bench_core::report::machine;
use durum_persist::domain::{Delays, emulate};
use durum_persist::line;

use desk::{Desk, P};
use report::{bars, csv, table};
use rows::{ROWS, Row, box_instead};

const NAME: &str = "durum-bench-typed";

/// Transactions of a round: 50,000 operations, as in the paper.
const BATCHES: usize = 50;

/// What is measured on: an engine, and a medium that is emulated.
const SIDES: [(&str, Engine, Option<Delays>); 6] = [
    ("shadow", Engine::Shadow, None),
    ("hybrid", Engine::Hybrid, None),
    ("shadow STT", Engine::Shadow, Some(Delays::STT_RAM)),
    ("hybrid STT", Engine::Hybrid, Some(Delays::STT_RAM)),
    ("shadow PCM", Engine::Shadow, Some(Delays::PCM)),
    ("hybrid PCM", Engine::Hybrid, Some(Delays::PCM)),
];

/// Operations of the typed interface, one by one.
#[derive(Parser)]
#[command(name = NAME, args_override_self = true)]
struct Arguments {
    #[arg(long, value_name = "N", default_value = "7")]
    rounds: NonZero<usize>,
    /// Where the pools are made.
    #[arg(long, default_value = "/dev/shm")]
    dir: PathBuf,
    /// Where operations.csv, operations.txt, operations.html and the plots go.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Only rows with one of these in their names.
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    rows: Vec<String>,
    /// Less work, and one round.
    #[arg(long)]
    quick: bool,
    /// Whether it runs and gives right answers, no more.
    #[arg(long, conflicts_with = "quick")]
    tiny: bool,
}

impl Arguments {
    /// A name for how much is done: rounds, and transactions of a round.
    fn scale(&self) -> (&'static str, usize, usize) {
        match (self.quick, self.tiny) {
            (true, _) => ("quick", 1, 25),
            (_, true) => ("tiny", 1, 1),
            _ => ("full", self.rounds.get(), BATCHES),
        }
    }
}

/// Opens the pool of a side, which is made at the first time.
fn open(dir: &Path, engine: Engine) -> durum::Result<RootGuard<Desk, P>> {
    let pool = durum::PoolOptions::new().engine(engine);
    P::open::<Desk>(
        dir.join(format!("{engine:?}")),
        OpenOptions::new().create(true).pool(pool),
    )
}

/// What was measured of an operation: each round on each side.
struct Measured {
    row: &'static Row,
    samples: [Vec<(f64, f64)>; SIDES.len()],
}

impl Measured {
    /// The operation alone, and with its share of the commit.
    fn medians(&self, side: usize) -> [f64; 2] {
        let of = |of: fn(&(f64, f64)) -> f64| median(self.samples[side].iter().map(of));
        [of(|ns| ns.0), of(|ns| ns.1)]
    }
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    Spread::of(values).map_or(f64::NAN, |spread| spread.median)
}

/// The operations, and what a `Box` takes to be read and to be written.
fn measure(arguments: &Arguments, dir: &Path) -> durum::Result<(Vec<Measured>, [f64; 2])> {
    let is_wanted = |row: &&Row| {
        let mut names = arguments.rows.iter();
        arguments.rows.is_empty() || names.any(|name| row.name.contains(name.as_str()))
    };
    let wanted = ROWS.iter().filter(is_wanted);
    let mut all: Vec<Measured> = wanted
        .map(|row| Measured {
            row,
            samples: Default::default(),
        })
        .collect();
    let mut plain = [Vec::new(), Vec::new()];
    let (_, rounds, batches) = arguments.scale();
    for _ in 0..rounds {
        for (plain, times) in plain.iter_mut().zip(box_instead(batches)) {
            plain.push(times.ns().0);
        }
        for (side, (_, engine, delays)) in SIDES.iter().enumerate() {
            let desk = open(dir, *engine)?;
            for measured in &mut all {
                emulate(*delays);
                let times = (measured.row.run)(&desk, batches);
                emulate(None);
                measured.samples[side].push(times.ns());
            }
            desk.close()?;
        }
    }
    Ok((all, plain.map(|ns| median(ns.into_iter()))))
}

fn run(arguments: &Arguments, dir: &Path, pinned: Option<usize>) -> Result<String, Error> {
    let begin = Instant::now();
    let (all, plain) = measure(arguments, dir).map_err(Error::side("durum"))?;
    let (scale, rounds, _) = arguments.scale();
    let table = table(&all);
    let [read, written] = plain;
    let beside = format!("a Box instead: Deref {read:.1} ns, DerefMut {written:.1} ns");
    let told = format!("{table}{beside}\n");
    if let Some(out) = &arguments.out {
        let description = machine::describe(&machine::Run {
            dirs: vec![&arguments.dir],
            instruction: format!("{:?}", line::instruction()),
            peers: Vec::new(),
            rounds,
            scale,
            clock: "wall",
            pinned,
            processor_share: None,
            seconds: begin.elapsed().as_secs_f64(),
        });
        let figures = Figures {
            name: "operations",
            title: "Operations of the typed interface",
            about: &beside,
            csv: csv(&all),
            table,
            measured: bars(&all, plain),
            description,
        };
        figures.write(out)?;
    }
    Ok(told)
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let pin = pin();
    let dir = WorkDir::create(&arguments.dir, NAME);
    let told = dir.and_then(|dir| {
        run(
            &arguments,
            dir.path(),
            pin.as_ref().map(|pin| pin.processor),
        )
    });
    command::ended(NAME, told.and_then(|text| print(&text)))
}
