//! The command that `bench/run.sh` calls.

use std::fs;
use std::io::{IsTerminal, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Instant;

use durum_bench_core::audit;
use durum_bench_core::error::{Error, Result};
use durum_bench_core::inputs::Scale;
use durum_bench_core::measure::{Clock, Meter, pin};
use durum_bench_core::report::{csv, machine, plot};
use durum_bench_core::run::{Plan, run};
use durum_bench_core::side::Side;
use durum_bench_core::sides;
use durum_bench_core::suite::{self, Place, SUITES, Suite};
use durum_persist::domain::{self, Domain};
use durum_persist::line;

const HELP: &str = "\
durum-bench [OPTIONS]

  --suite NAME    which suite to run; may be given more than once (default: all)
  --rows NAMES    only these rows, comma separated: kv_a, or kv for all whose name begins so
  --sides NAMES   only these sides, comma separated (default: all)
  --rounds N      rounds; reported are medians over them (default: 7)
  --quick         little work and one round: does everything run and give right answers?
  --clock NAME    wall (default), or cpu: for a machine that does other things meanwhile; suites on a disk keep to wall
  --dir DIR       where the stores of suites in memory are made (default: /dev/shm)
  --disk-dir DIR  where those of suites on a disk are made (default: that of --out)
  --out DIR       where latest.csv, latest.txt and latest.svg go (default: target/bench)
  --audit         step through small batches and count what is really executed, instead of measuring time; suites in memory only
  --list          print rows and sides, and stop
";

fn main() -> ExitCode {
    match bench() {
        Ok(()) => ExitCode::SUCCESS,
        Err(Error::Usage(message)) if message.is_empty() => {
            print!("{HELP}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("durum-bench: {error}");
            ExitCode::from(if matches!(error, Error::Usage(_)) {
                2
            } else {
                1
            })
        }
    }
}

struct Options {
    suites: Vec<&'static Suite>,
    rows: Vec<String>,
    sides: Vec<String>,
    rounds: usize,
    quick: bool,
    clock: Clock,
    dir: PathBuf,
    disk_dir: Option<PathBuf>,
    out: PathBuf,
    audit: bool,
    list: bool,
}

impl Options {
    fn parse(args: impl Iterator<Item = String>) -> Result<Options> {
        let mut options = Options {
            suites: Vec::new(),
            rows: Vec::new(),
            sides: Vec::new(),
            rounds: 7,
            quick: false,
            clock: Clock::Wall,
            dir: "/dev/shm".into(),
            disk_dir: None,
            out: "target/bench".into(),
            audit: false,
            list: false,
        };
        let mut args = args.peekable();
        while let Some(arg) = args.next() {
            let mut value = || {
                args.next()
                    .ok_or_else(|| Error::Usage(format!("{arg} needs a value")))
            };
            let names = |value: String| value.split(',').map(str::to_owned).collect::<Vec<_>>();
            match arg.as_str() {
                "--suite" => options.suites.push(suite(&value()?)?),
                "--rows" => options.rows.extend(names(value()?)),
                "--sides" => options.sides.extend(names(value()?)),
                "--rounds" => {
                    let value = value()?;
                    let rounds = value.parse().ok().filter(|rounds| *rounds > 0);
                    options.rounds = rounds
                        .ok_or_else(|| Error::Usage(format!("{value} rounds are not possible")))?;
                }
                "--quick" => options.quick = true,
                "--clock" => {
                    options.clock = match value()?.as_str() {
                        "wall" => Clock::Wall,
                        "cpu" => Clock::Cpu,
                        other => return Err(Error::Usage(format!("no clock is called {other}"))),
                    }
                }
                "--dir" => options.dir = value()?.into(),
                "--disk-dir" => options.disk_dir = Some(value()?.into()),
                "--out" => options.out = value()?.into(),
                "--audit" => options.audit = true,
                "--list" => options.list = true,
                "--help" | "-h" => return Err(Error::Usage(String::new())),
                other => return Err(Error::Usage(format!("unknown option {other}"))),
            }
        }
        if options.suites.is_empty() {
            options.suites = SUITES.iter().collect();
        }
        if options.audit {
            options.suites.retain(|suite| suite.place == Place::Memory);
        }
        if options.quick {
            options.rounds = 1;
        }
        Ok(options)
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

fn suite(name: &str) -> Result<&'static Suite> {
    suite::suite(name).ok_or_else(|| {
        let known: Vec<&str> = SUITES.iter().map(|suite| suite.name).collect();
        Error::Usage(format!(
            "no suite is called {name}; there is {}",
            known.join(", ")
        ))
    })
}

fn bench() -> Result<()> {
    let options = Options::parse(std::env::args().skip(1))?;
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
    let terminal = std::io::stderr().is_terminal();
    let mut progress = |text: &str| {
        if terminal {
            eprint!("\r\x1b[K{text}");
        }
    };
    let (mut measured, mut pinned) = (Vec::new(), None);
    for (suite, sides) in &suites {
        let work_dir = WorkDir::create(options.dir_of(suite))?;
        let plan = Plan {
            suite,
            filter: options.rows.clone(),
            rounds: options.rounds,
            scale: options.scale(),
            dir: &work_dir.0,
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
        }
        measured.extend(of_suite);
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
        rounds: options.rounds,
        scale: if options.quick { "quick" } else { "full" },
        clock: if options.clock == Clock::Wall {
            "wall"
        } else {
            "cpu"
        },
        pinned,
        processor_share: meter.processor_share(),
        seconds: begin.elapsed().as_secs_f64(),
    });
    print(&format!("{description}\n"))?;
    write(&options.out.join("latest.csv"), &csv::format(&measured))?;
    write(&options.out.join("latest.txt"), &description)?;
    write(&options.out.join("latest.svg"), &plot::format(&measured))
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
    let mut suites: Vec<Competition> = options
        .suites
        .iter()
        .map(|suite| (*suite, (suite.sides)()))
        .collect();
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

/// Unlike `print!`, this ends quietly where the reader has gone.
fn print(text: &str) -> Result<()> {
    match std::io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        result => result.map_err(Error::file("standard output")),
    }
}

fn write(path: &Path, text: &str) -> Result<()> {
    fs::write(path, text).map_err(Error::file(path))?;
    print(&format!("wrote {}\n", path.display()))
}

/// A directory of this run's own, removed at the end.
struct WorkDir(PathBuf);

impl WorkDir {
    fn create(parent: &Path) -> Result<WorkDir> {
        let path = parent.join(format!("durum-bench-{}", std::process::id()));
        fs::create_dir(&path).map_err(Error::file(&path))?;
        Ok(WorkDir(path))
    }
}

impl Drop for WorkDir {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.0) {
            eprintln!("durum-bench: {} stays behind: {error}", self.0.display());
        }
    }
}
