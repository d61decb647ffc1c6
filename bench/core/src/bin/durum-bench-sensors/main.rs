//! What the nodes of a network have found comes together in one structure (Puddles, EuroSys'24, §5.3 and Figure 14):
//! `examples/rust/src/bin/sensors.rs`, and the same in C on libpmemobj.
//!
//! Each side has made its nodes' results before, and an empty pool at home. What is timed begins with results that
//! nobody has open, and ends when one structure, durable and open, holds all of them, and a walk over all variables has
//! summed them up. Then each variable is compared with what a plain program has found.
//!
//! Reading order: [`expected`] (the plain program), [`side`] (what a contestant does), [`ours`] and `pmdk` (the
//! contestants), [`table`] (what comes out).

mod expected;
mod ours;
#[cfg(feature = "peers")]
mod pmdk;
#[allow(dead_code, reason = "a program: its commands are not used here")]
#[path = "../../../../../examples/rust/src/bin/sensors.rs"]
mod sensors;
mod side;
mod table;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use clap::Parser;
use durum::Engine;
use durum_bench_core::command::{self, WorkDir, print, progress};
use durum_bench_core::error::{Error, Result};
use durum_bench_core::report::files::Figures;
use durum_bench_core::report::machine;
use durum_bench_core::sides::{environment_is_fair, make_environment_fair};
use durum_persist::line;

use expected::Expected;
use ours::Durum;
use side::Side;
use table::{Line, Table};

const NAME: &str = "durum-bench-sensors";

/// How long it takes to aggregate what the nodes of a network have found.
#[derive(Parser)]
#[command(name = NAME)]
struct Options {
    /// Nodes.
    #[arg(long, default_value_t = 200)]
    nodes: u64,
    /// State variables of each.
    #[arg(long, value_delimiter = ',', default_values_t = [100, 400, 1600])]
    variables: Vec<u64>,
    /// Only these sides.
    #[arg(long, value_delimiter = ',')]
    sides: Vec<String>,
    /// Rounds.
    #[arg(long, default_value_t = 7)]
    rounds: usize,
    /// Little work: does everything run and give right answers?
    #[arg(long)]
    quick: bool,
    /// Where the stores are made.
    #[arg(long, default_value = "/dev/shm")]
    dir: PathBuf,
    /// Where sensors.csv, sensors.txt, sensors.svg and sensors.html go.
    #[arg(long, value_name = "DIR", default_value = "target/bench")]
    out: PathBuf,
}

fn main() -> ExitCode {
    command::ended(NAME, run())
}

fn run() -> Result<()> {
    let mut options = Options::parse();
    if !environment_is_fair() {
        return run_again_in_fair_environment();
    }
    if options.quick {
        (options.nodes, options.variables, options.rounds) = (5, vec![20, 100], 1);
    }
    fs::create_dir_all(&options.out).map_err(Error::file(&options.out))?;
    let began = Instant::now();
    let mut table = Table::default();
    let mut sides = sides();
    if let Some(name) = options
        .sides
        .iter()
        .find(|name| sides.iter().all(|side| side.name() != **name))
    {
        return Err(Error::Usage(format!("no side is called {name}")));
    }
    sides.retain(|side| {
        options.sides.is_empty() || options.sides.iter().any(|name| side.name() == name)
    });
    for &variables in &options.variables {
        let directory = WorkDir::create(&options.dir, NAME)?;
        let expected = Expected::new(options.nodes, variables);
        table.extend(measure(
            &sides,
            &expected,
            options.rounds,
            directory.path(),
        )?);
    }
    progress("");
    let report = table.report();
    print(&format!("{report}\n"))?;
    let description = machine::describe(&machine::Run {
        dirs: vec![&options.dir],
        instruction: format!("{:?}", line::instruction()),
        peers: sides.iter().filter_map(|side| side.version()).collect(),
        rounds: options.rounds,
        scale: if options.quick { "quick" } else { "full" },
        clock: "wall",
        pinned: None,
        processor_share: None,
        seconds: began.elapsed().as_secs_f64(),
    });
    print(&format!("{description}\n"))?;
    let figures = Figures {
        name: "sensors",
        title: "What many nodes found, in one structure",
        about: "The medians of the rounds; the parts are those of the round that the median is of. The limit is this \
                project's own, a part of the time of libpmemobj.",
        csv: table.csv(),
        table: report,
        measured: table.bars(),
        description,
    };
    figures.write(&options.out)
}

/// Who competes, the peer first.
fn sides() -> Vec<Box<dyn Side>> {
    let durum = |name, engine, copies| {
        Box::new(Durum {
            name,
            engine,
            copies,
        })
    };
    vec![
        #[cfg(feature = "peers")]
        Box::new(pmdk::Pmdk),
        durum("hybrid", Engine::Hybrid, false),
        durum("shadow", Engine::Shadow, false),
        durum("shadow_copies", Engine::Shadow, true),
    ]
}

/// A line for each side. Sides take turns, and another one begins in each round.
fn measure(
    sides: &[Box<dyn Side>],
    expected: &Expected,
    rounds: usize,
    directory: &Path,
) -> Result<Vec<Line>> {
    for side in sides {
        progress(&format!(
            "{} variables, nodes of {}",
            expected.variables,
            side.name()
        ));
        let place = directory.join(side.name());
        fs::create_dir(&place).map_err(Error::file(&place))?;
        side.prepare(&place, expected)?;
    }
    let mut times = vec![Vec::new(); sides.len()];
    for round in 0..rounds {
        for turn in 0..sides.len() {
            let index = (turn + round) % sides.len();
            let side = &sides[index];
            progress(&format!(
                "{} variables, {}, round {}",
                expected.variables,
                side.name(),
                round + 1
            ));
            times[index].push(side.aggregate(&directory.join(side.name()), expected)?);
        }
    }
    Ok(table::lines(
        expected,
        sides.iter().map(|side| side.name()).zip(times),
    ))
}

/// Replaces this process by one in which the peer was loaded with the right environment.
fn run_again_in_fair_environment() -> Result<()> {
    use std::os::unix::process::CommandExt;
    let program = std::env::current_exe().map_err(Error::file("this program"))?;
    let mut command = std::process::Command::new(&program);
    make_environment_fair(command.args(std::env::args_os().skip(1)));
    Err(Error::file(program)(command.exec()))
}
