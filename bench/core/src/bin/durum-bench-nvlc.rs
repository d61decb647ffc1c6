//! Kernels of NVL-C beside plain C: the counterparts of Figures 5 to 7 of the NVL-C paper, and compile times.

use std::fs;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use durum_bench_core::error::{Error, Result};
use durum_bench_core::measure::Clock;
use durum_bench_core::nvlc::{self, Plan};
use durum_bench_core::report::{bars, csv, machine, normalized};
use durum_persist::domain::{self, Domain};
use durum_persist::line;

const HELP: &str = "\
durum-bench-nvlc --prefix DIR [OPTIONS]

  --prefix DIR    where durumcc and libdurum are installed
  --rows NAMES    only these rows, comma separated: hash for all whose name begins so
  --rounds N      rounds in memory (default: 9); on a disk there are a third as many
  --quick         the least work and one round: does everything run and give right answers?
  --clock NAME    wall (default), or cpu: for a machine that does other things meanwhile; on a disk it is wall
  --dir DIR       where heaps in memory are made (default: /dev/shm)
  --disk-dir DIR  where those on a disk are made (default: that of --out); none: no heaps on a disk
  --out DIR       where nvlc.csv, nvlc.txt and nvlc.svg go (default: target/bench)
";

struct Options {
    prefix: PathBuf,
    rows: Vec<String>,
    rounds: usize,
    clock: Clock,
    quick: bool,
    dir: PathBuf,
    disk_dir: Option<PathBuf>,
    out: PathBuf,
}

impl Options {
    fn parse(mut args: impl Iterator<Item = String>) -> Result<Options> {
        let mut options = Options {
            prefix: PathBuf::new(),
            rows: Vec::new(),
            rounds: 9,
            clock: Clock::Wall,
            quick: false,
            dir: "/dev/shm".into(),
            disk_dir: None,
            out: "target/bench".into(),
        };
        while let Some(arg) = args.next() {
            let mut value = || {
                args.next()
                    .ok_or_else(|| Error::Usage(format!("{arg} needs a value")))
            };
            match arg.as_str() {
                "--prefix" => options.prefix = value()?.into(),
                "--rows" => options.rows.extend(value()?.split(',').map(str::to_owned)),
                "--rounds" => {
                    let value = value()?;
                    let rounds = value.parse().ok().filter(|rounds| *rounds > 0);
                    options.rounds = rounds
                        .ok_or_else(|| Error::Usage(format!("{value} rounds are not possible")))?;
                }
                "--clock" => {
                    options.clock = match value()?.as_str() {
                        "wall" => Clock::Wall,
                        "cpu" => Clock::Cpu,
                        other => return Err(Error::Usage(format!("no clock is called {other}"))),
                    }
                }
                "--quick" => options.quick = true,
                "--dir" => options.dir = value()?.into(),
                "--disk-dir" => options.disk_dir = Some(value()?.into()),
                "--out" => options.out = value()?.into(),
                "--help" | "-h" => return Err(Error::Usage(String::new())),
                other => return Err(Error::Usage(format!("unknown option {other}"))),
            }
        }
        if !options.prefix.join("bin/durumcc").is_file() {
            return Err(Error::Usage(
                "say where durumcc is: --prefix DIR".to_owned(),
            ));
        }
        if options.quick {
            options.rounds = 1;
        }
        Ok(options)
    }
}

fn main() -> ExitCode {
    match bench() {
        Ok(()) => ExitCode::SUCCESS,
        Err(Error::Usage(message)) if message.is_empty() => {
            print!("{HELP}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("durum-bench-nvlc: {error}");
            ExitCode::from(if matches!(error, Error::Usage(_)) {
                2
            } else {
                1
            })
        }
    }
}

fn bench() -> Result<()> {
    let options = Options::parse(std::env::args().skip(1))?;
    fs::create_dir_all(&options.out).map_err(Error::file(&options.out))?;
    let begin = Instant::now();
    let memory = WorkDir::create(&options.dir)?;
    let disk = disk(&options)?;
    let mut places = vec![(memory.0.clone(), options.rounds)];
    if let Some(disk) = &disk {
        places.push((disk.0.clone(), options.rounds.div_ceil(3)));
    }
    let plan = Plan {
        prefix: absolute(&options.prefix)?,
        repository: Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."),
        work_dir: memory.0.clone(),
        places,
        rows: options.rows.clone(),
        clock: options.clock,
        quick: options.quick,
    };
    let terminal = std::io::stderr().is_terminal();
    let mut progress = |text: &str| {
        if terminal {
            eprint!("\r\x1b[K{text}");
        }
    };
    let measured = nvlc::run(&plan, &mut progress)?;
    progress("");
    print(&format!("{}\n", normalized::format(&measured)))?;
    // So little work says nothing about time.
    if !options.quick {
        print(&format!("{}\n", nvlc::bounds(&measured)))?;
    }
    let description = machine::describe(&machine::Run {
        dirs: plan.places.iter().map(|(dir, _)| dir.as_path()).collect(),
        instruction: format!("{:?}", line::instruction()),
        peers: vec!["clang-19 -O2".to_owned()],
        rounds: options.rounds,
        scale: if options.quick { "quick" } else { "full" },
        clock: match options.clock {
            Clock::Wall => "wall",
            Clock::Cpu => "cpu",
        },
        pinned: None,
        processor_share: None,
        seconds: begin.elapsed().as_secs_f64(),
    });
    print(&format!("{description}\n"))?;
    write(&options.out.join("nvlc.csv"), &csv::format(&measured))?;
    write(&options.out.join("nvlc.txt"), &description)?;
    let title = "Time of NVL-C programs as a multiple of plain C";
    write(
        &options.out.join("nvlc.svg"),
        &bars::format(title, &measured),
    )
}

/// Where heaps on a disk are made: a sync elsewhere writes nothing, so there they are left out, unless the place was
/// named.
fn disk(options: &Options) -> Result<Option<WorkDir>> {
    let dir = options.disk_dir.as_ref().unwrap_or(&options.out);
    if options.disk_dir.as_deref() == Some(Path::new("none")) {
        return Ok(None);
    }
    match domain::detect(dir).map_err(Error::file(dir))? {
        Domain::File => WorkDir::create(dir).map(Some),
        _ if options.disk_dir.is_some() => Err(Error::Usage(format!(
            "{} is no file system on a disk: name another with --disk-dir",
            dir.display()
        ))),
        _ => {
            print(&format!(
                "{} is on no disk: nothing is measured there\n",
                dir.display()
            ))?;
            Ok(None)
        }
    }
}

fn absolute(path: &Path) -> Result<PathBuf> {
    std::path::absolute(path).map_err(Error::file(path))
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
        let path = parent.join(format!("durum-bench-nvlc-{}", std::process::id()));
        fs::create_dir(&path).map_err(Error::file(&path))?;
        Ok(WorkDir(path))
    }
}

impl Drop for WorkDir {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.0) {
            eprintln!(
                "durum-bench-nvlc: {} stays behind: {error}",
                self.0.display()
            );
        }
    }
}
