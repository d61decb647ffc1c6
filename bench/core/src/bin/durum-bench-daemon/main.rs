//! What asking the service costs, what many clients take, and what the end of one costs the next: the figures that the
//! Puddles paper (EuroSys'24, §5.1) gives, and those that this project has set itself. Transactions are rows of
//! `durum-bench --suite daemon`.
//!
//! Reading order: [`table`] (what comes out), [`bare`] (programs that do the least that has to be done), [`registry`]
//! (stores that know of much), [`requests`], [`mapping`], [`shipping`], [`deaths`] and [`clients`] (rows), [`parts`]
//! (what the processes do that rows start).

mod bare;
mod clients;
mod deaths;
mod mapping;
mod parts;
mod placed;
mod registry;
mod requests;
mod shipping;
mod table;

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Parser;
use durum_bench_core::command::{self, WorkDir, print, progress};
use durum_bench_core::error::{Error, Result};
use durum_bench_core::report::files::Figures;
use durum_bench_core::report::machine;
use durum_persist::domain::{self, Domain};
use durum_persist::line;

use bare::Bare;
use table::Table;

const NAME: &str = "durum-bench-daemon";

/// What a service costs.
#[derive(Parser)]
#[command(name = NAME)]
struct Options {
    /// Only rows whose names begin so.
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    rows: Vec<String>,
    /// Little work: does everything run and give right answers?
    #[arg(long)]
    quick: bool,
    /// Where stores in memory are made.
    #[arg(long, default_value = "/dev/shm")]
    dir: PathBuf,
    /// Where those on a disk are made; none: nowhere [default: that of --out].
    #[arg(long, value_name = "DIR")]
    disk_dir: Option<PathBuf>,
    /// Where daemon.csv, daemon.txt, daemon.html and the plots go.
    #[arg(long, value_name = "DIR", default_value = "target/bench")]
    out: PathBuf,
    /// The part that this process plays, for another one of this program.
    #[arg(long, hide = true)]
    part: Option<String>,
    /// The store that the part is about.
    #[arg(long, hide = true)]
    store: Option<PathBuf>,
}

/// What rows are measured with.
struct Bench {
    table: Table,
    /// Where stores are made, and how that place is called.
    places: Vec<(WorkDir, &'static str)>,
    is_quick: bool,
    rows: Vec<String>,
}

impl Bench {
    /// Where the row is to be measured: nowhere, if nobody asked for it.
    fn wants(&self, row: &str) -> bool {
        progress(row);
        self.rows.is_empty() || self.rows.iter().any(|begin| row.starts_with(begin))
    }

    fn memory(&self) -> &std::path::Path {
        self.places[0].0.path()
    }

    /// So many, or few in a quick run.
    fn count(&self, full: usize, quick: usize) -> usize {
        if self.is_quick { quick } else { full }
    }
}

fn main() -> ExitCode {
    command::ended(NAME, run())
}

fn run() -> Result<()> {
    let options = Options::parse();
    if let Some(part) = &options.part {
        let store = options.store.unwrap_or_default();
        return parts::play(part, &store);
    }
    fs::create_dir_all(&options.out).map_err(Error::file(&options.out))?;
    let began = Instant::now();
    // Before there are threads, which a fork would leave behind.
    let bare = Bare::start(&options.dir)?;
    let mut places = vec![(WorkDir::create(&options.dir, NAME)?, "memory")];
    let disk = options.disk_dir.as_ref().unwrap_or(&options.out);
    let is_wanted = disk.as_os_str() != "none";
    if is_wanted && domain::detect(disk).map_err(Error::file(disk))? == Domain::File {
        places.push((WorkDir::create(disk, NAME)?, "disk"));
    }
    let mut bench = Bench {
        table: Table::default(),
        places,
        is_quick: options.quick,
        rows: options.rows,
    };
    requests::measure(&mut bench, &bare)?;
    mapping::measure(&mut bench)?;
    shipping::measure(&mut bench)?;
    deaths::measure(&mut bench)?;
    clients::measure(&mut bench)?;
    progress("");
    let table = bench.table.report();
    print(&format!("{table}\n"))?;
    let dirs = bench.places.iter().map(|(dir, _)| dir.path());
    let description = machine::describe(&machine::Run {
        dirs: dirs.collect(),
        instruction: format!("{:?}", line::instruction()),
        peers: Vec::new(),
        rounds: 1,
        scale: if bench.is_quick { "quick" } else { "full" },
        clock: "wall",
        pinned: None,
        processor_share: None,
        seconds: began.elapsed().as_secs_f64(),
    });
    print(&format!("{description}\n"))?;
    let figures = Figures {
        name: "daemon",
        title: "What asking a service costs",
        about: "The limit is this project's own, of the figure or of its ratio to the one beside it.",
        csv: bench.table.csv(),
        table,
        measured: bench.table.bars(),
        description,
    };
    figures.write(&options.out)
}

/// For `map_err` on what the service and its client say.
fn said<E: std::error::Error + Send + Sync + 'static>(error: E) -> Error {
    Error::side(NAME)(error)
}

/// A wrong answer, whose time would mean nothing.
fn check<T: PartialEq + std::fmt::Debug>(row: &'static str, expected: T, found: T) -> Result<()> {
    if expected == found {
        return Ok(());
    }
    Err(Error::WrongAnswer {
        side: NAME.to_owned(),
        row,
        expected: format!("{expected:?}"),
        found: format!("{found:?}"),
    })
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times.get(times.len() / 2).copied().unwrap_or_default()
}
