//! The command that `bench/run.sh` calls.

use std::fs;
use std::num::NonZero;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Instant;

use clap::Parser;
use durum_bench_core::audit;
use durum_bench_core::command::{self, WorkDir, print, progress, write};
use durum_bench_core::error::{Error, Result};
use durum_bench_core::inputs::Scale;
use durum_bench_core::measure::{Clock, Meter, pin};
use durum_bench_core::measured::Measured;
use durum_bench_core::report::bars::Length;
use durum_bench_core::report::page::{Page, Part};
use durum_bench_core::report::{bars, csv, machine, page, percentiles};
use durum_bench_core::run::{Plan, run};
use durum_bench_core::side::Side;
use durum_bench_core::sides;
use durum_bench_core::suite::{self, Place, SUITES, Suite};
use durum_persist::domain::{self, Domain};
use durum_persist::line;

const NAME: &str = "durum-bench";

/// Benchmarks of durum, side by side with other libraries and with the physical limit.
#[derive(Parser)]
#[command(name = NAME, args_override_self = true)]
struct Options {
    /// Which suite to run; may be given more than once [default: all].
    #[arg(long = "suite", value_name = "NAME", value_parser = suite)]
    suites: Vec<&'static Suite>,
    /// Only these rows: kv_a, or kv for all whose name begins so.
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    rows: Vec<String>,
    /// Only these sides [default: all].
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    sides: Vec<String>,
    /// Rounds; reported are medians over them.
    #[arg(long, value_name = "N", default_value = "7")]
    rounds: NonZero<usize>,
    /// Little work and one round: does everything run and give right answers?
    #[arg(long)]
    quick: bool,
    /// cpu is for a machine that does other things meanwhile; suites on a disk keep to wall.
    #[arg(long, value_enum, default_value = "wall")]
    clock: Clock,
    /// Where the stores of suites in memory are made.
    #[arg(long, default_value = "/dev/shm")]
    dir: PathBuf,
    /// Where those of suites on a disk are made [default: that of --out].
    #[arg(long, value_name = "DIR")]
    disk_dir: Option<PathBuf>,
    /// Where latest.csv, latest.txt, latest.svg, latest-latency.svg and latest.html go.
    #[arg(long, value_name = "DIR", default_value = "target/bench")]
    out: PathBuf,
    /// Step through small batches and count what is really executed, instead of measuring time; suites in memory only.
    #[arg(long)]
    audit: bool,
    /// Print rows and sides, and stop.
    #[arg(long)]
    list: bool,
}

fn main() -> ExitCode {
    command::ended(NAME, bench())
}

impl Options {
    fn suites(&self) -> Vec<&'static Suite> {
        let mut suites = match self.suites.is_empty() {
            true => SUITES.iter().collect(),
            false => self.suites.clone(),
        };
        if self.audit {
            suites.retain(|suite| suite.place == Place::Memory);
        }
        suites
    }

    fn rounds(&self) -> usize {
        if self.quick { 1 } else { self.rounds.get() }
    }

    /// Where the suite's stores are made.
    fn dir_of(&self, suite: &Suite) -> &Path {
        match suite.place {
            Place::Memory => &self.dir,
            Place::Disk => self.disk_dir.as_ref().unwrap_or(&self.out),
        }
    }

    fn scale(&self) -> Scale {
        if self.audit {
            Scale::tiny()
        } else if self.quick {
            Scale::quick()
        } else {
            Scale::full()
        }
    }
}

fn suite(name: &str) -> std::result::Result<&'static Suite, String> {
    suite::suite(name).ok_or_else(|| {
        let known: Vec<&str> = SUITES.iter().map(|suite| suite.name).collect();
        format!("there is {}", known.join(", "))
    })
}

fn bench() -> Result<()> {
    let options = Options::parse();
    let suites = chosen_sides(&options)?;
    if options.list {
        return list(&suites);
    }
    if !sides::environment_is_fair() {
        return run_again_in_fair_environment();
    }
    fs::create_dir_all(&options.out).map_err(Error::file(&options.out))?;
    for (suite, _) in &suites {
        check_place(suite, options.dir_of(suite))?;
    }
    let begin = Instant::now();
    let mut meter = Meter::new(options.clock);
    let (mut measured, mut pinned) = (Vec::new(), None);
    for (suite, sides) in &suites {
        let work_dir = WorkDir::create(options.dir_of(suite), NAME)?;
        let plan = Plan {
            suite,
            filter: options.rows.clone(),
            rounds: options.rounds(),
            scale: options.scale(),
            dir: work_dir.path(),
        };
        // On a disk the thread mostly waits, and shares the work with other threads: the system may choose the
        // processor.
        let pin = (suite.place == Place::Memory).then(pin).flatten();
        pinned = pinned.or(pin.as_ref().map(|pin| pin.processor));
        if options.audit {
            let text = audit::run(&plan, sides, &mut progress)?;
            progress("");
            print(&text)?;
            continue;
        }
        let of_suite = run(&plan, sides, &mut meter, &mut progress)?;
        progress("");
        if !of_suite.is_empty() {
            print(&format!("{}\n", (suite.table)(&of_suite)))?;
            measured.push((suite, of_suite));
        }
    }
    if options.audit {
        return Ok(());
    }
    let description = machine::describe(&machine::Run {
        dirs: suites
            .iter()
            .map(|(suite, _)| options.dir_of(suite))
            .collect(),
        instruction: format!("{:?}", line::instruction()),
        peers: suites
            .iter()
            .flat_map(|(_, sides)| sides.iter().filter_map(|side| side.version()))
            .collect(),
        rounds: options.rounds(),
        scale: if options.quick { "quick" } else { "full" },
        clock: options.clock.name(),
        pinned,
        processor_share: meter.processor_share(),
        seconds: begin.elapsed().as_secs_f64(),
    });
    print(&format!("{description}\n"))?;
    save(&options.out, &measured, description)
}

/// Writes the figures of each suite, and what they come from.
fn save(
    out: &Path,
    measured: &[(&&'static Suite, Vec<Measured>)],
    description: machine::Description,
) -> Result<()> {
    let rows = measured.iter().flat_map(|(_, rows)| rows);
    let all: Vec<Measured> = rows.cloned().collect();
    let caption = description.caption();
    write(&out.join("latest.csv"), &csv::format(&all))?;
    write(&out.join("latest.txt"), &description.to_string())?;
    let bars = bars::format("durum and others", Length::Time, &all, &caption);
    write(&out.join("latest.svg"), &bars)?;
    if let Some(plot) = percentiles::format("Latency", &all, &caption) {
        write(&out.join("latest-latency.svg"), &plot)?;
    }
    let part = |(suite, rows): &(&&Suite, Vec<Measured>)| {
        let (title, table) = (format!("Suite {}", suite.name), (suite.table)(rows));
        Part::of_suite(&title, Length::Time, rows, table, &caption)
    };
    let parts = measured.iter().map(part).collect();
    let names: Vec<&str> = measured.iter().map(|(suite, _)| suite.name).collect();
    let page = Page {
        title: format!("Suites: {}", names.join(", ")),
        description,
        parts,
    };
    write(&out.join("latest.html"), &page::format(&page))
}

/// A suite on a disk means nothing where a sync writes nothing.
fn check_place(suite: &Suite, dir: &Path) -> Result<()> {
    if suite.place == Place::Memory {
        return Ok(());
    }
    match domain::detect(dir).map_err(Error::file(dir))? {
        Domain::File => Ok(()),
        other => Err(Error::Usage(format!(
            "suite {}: {} is no file system on a disk ({}): a sync there writes nothing; name another with --disk-dir",
            suite.name,
            dir.display(),
            if other == Domain::Dram {
                "tmpfs"
            } else {
                "persistent memory"
            },
        ))),
    }
}

/// Replaces this process by one in which the peer was loaded with the right environment.
fn run_again_in_fair_environment() -> Result<()> {
    let program = std::env::current_exe().map_err(Error::file("this program"))?;
    let mut command = Command::new(&program);
    sides::make_environment_fair(command.args(std::env::args_os().skip(1)));
    Err(Error::file(program)(command.exec()))
}

/// A suite and those who take part in it.
type Competition = (&'static Suite, Vec<Box<dyn Side>>);

/// The suites with the sides that were asked for; without a suite in which nobody is left.
fn chosen_sides(options: &Options) -> Result<Vec<Competition>> {
    let suites = options.suites().into_iter();
    let mut suites: Vec<Competition> = suites.map(|suite| (suite, (suite.sides)())).collect();
    for name in &options.sides {
        let mut sides = suites.iter().flat_map(|(_, sides)| sides);
        if !sides.any(|side| side.name() == name) {
            return Err(Error::Usage(format!("no side is called {name}")));
        }
    }
    if !options.sides.is_empty() {
        for (_, sides) in &mut suites {
            sides.retain(|side| options.sides.iter().any(|name| side.name() == name));
        }
        suites.retain(|(_, sides)| !sides.is_empty());
    }
    Ok(suites)
}

fn list(suites: &[Competition]) -> Result<()> {
    let mut text = String::new();
    for (suite, sides) in suites {
        for workload in (suite.workloads)(&Scale::quick()) {
            for row in workload.rows() {
                text.push_str(&format!(
                    "{:<6} {:<19} {}\n",
                    suite.name, row.name, row.one_op
                ));
            }
        }
        let names: Vec<&str> = sides.iter().map(|side| side.name()).collect();
        text.push_str(&format!("{:<6} sides: {}\n", suite.name, names.join(", ")));
    }
    print(&text)
}
