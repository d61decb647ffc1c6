//! Kernels in C: those of NVL-C beside plain C, the counterparts of Figures 5 to 7 of its paper; code that holds locks,
//! completed by resumption, beside other ways to make it durable, the counterparts of Figures 7 and 9 of the iDO paper.
//! And compile times.

use std::fs;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use clap::{Parser, ValueEnum};
use durum_bench_core::command::{self, WorkDir, print, progress, write};
use durum_bench_core::error::{Error, Result};
use durum_bench_core::kernels::{self, Plan, Suite};
use durum_bench_core::measure::Clock;
use durum_bench_core::report::bars::{self, Length};
use durum_bench_core::report::page::{self, Page, Part};
use durum_bench_core::report::{csv, machine, normalized};
use durum_bench_core::{locks, nvlc};
use durum_persist::domain::{self, Domain};
use durum_persist::line;

const NAME: &str = "durum-bench-kernels";

/// Kernels in C that durumcc compiles, beside plain C.
#[derive(Parser)]
#[command(name = NAME, args_override_self = true)]
struct Options {
    /// NVL-C, or code that holds locks.
    #[arg(long, value_enum)]
    suite: Name,
    /// Where durumcc and libdurum are installed.
    #[arg(long, value_name = "DIR")]
    prefix: PathBuf,
    /// Only these rows: hash for all whose name begins so.
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    rows: Vec<String>,
    /// Rounds in memory; on a disk there are a third as many.
    #[arg(long, value_name = "N", default_value = "9")]
    rounds: NonZero<usize>,
    /// Each fence takes so many nanoseconds more, as on slower media: of code that holds locks, on sides that can do
    /// that.
    #[arg(long, value_name = "NS")]
    fence_ns: Option<u64>,
    /// The least work and one round: does everything run and give right answers?
    #[arg(long)]
    quick: bool,
    /// cpu is for a machine that does other things meanwhile; on a disk it is wall.
    #[arg(long, value_enum, default_value = "wall")]
    clock: Clock,
    /// Where heaps in memory are made.
    #[arg(long, default_value = "/dev/shm")]
    dir: PathBuf,
    /// Where those on a disk are made [default: that of --out]; none: no heaps on a disk.
    #[arg(long, value_name = "DIR")]
    disk_dir: Option<PathBuf>,
    /// Where SUITE.csv, SUITE.txt, SUITE.svg and SUITE.html go.
    #[arg(long, value_name = "DIR", default_value = "target/bench")]
    out: PathBuf,
}

#[derive(Clone, Copy, ValueEnum)]
enum Name {
    Nvlc,
    Locks,
}

impl Name {
    fn suite(self) -> &'static Suite {
        match self {
            Name::Nvlc => &nvlc::SUITE,
            Name::Locks => &locks::SUITE,
        }
    }
}

fn main() -> ExitCode {
    command::ended(NAME, bench())
}

fn bench() -> Result<()> {
    let options = Options::parse();
    if !options.prefix.join("bin/durumcc").is_file() {
        return Err(Error::Usage(
            "say where durumcc is: --prefix DIR".to_owned(),
        ));
    }
    if options.fence_ns.is_some() && matches!(options.suite, Name::Nvlc) {
        return Err(Error::Usage("--fence-ns is for the suite locks".to_owned()));
    }
    let rounds = if options.quick {
        1
    } else {
        options.rounds.get()
    };
    fs::create_dir_all(&options.out).map_err(Error::file(&options.out))?;
    let begin = Instant::now();
    let memory = WorkDir::create(&options.dir, NAME)?;
    let suite = options.suite.suite();
    let disk = match suite.on_disk {
        true => disk(&options)?,
        false => None,
    };
    let mut places = vec![(memory.path().to_owned(), rounds)];
    if let Some(disk) = &disk {
        places.push((disk.path().to_owned(), rounds.div_ceil(3)));
    }
    let plan = Plan {
        prefix: absolute(&options.prefix)?,
        repository: Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."),
        work_dir: memory.path().to_owned(),
        places,
        rows: options.rows.clone(),
        clock: options.clock,
        fence_ns: options.fence_ns,
        quick: options.quick,
    };
    let measured = kernels::run(suite, &plan, &mut progress)?;
    progress("");
    let table = normalized::format(&measured);
    print(&format!("{table}\n"))?;
    // So little work says nothing about time.
    let mut bounds = String::new();
    if !options.quick {
        bounds = kernels::bounds(suite, &measured);
        print(&format!("{bounds}\n"))?;
    }
    let description = machine::describe(&machine::Run {
        dirs: plan.places.iter().map(|(dir, _)| dir.as_path()).collect(),
        instruction: format!("{:?}", line::instruction()),
        peers: vec!["clang-19 -O2".to_owned()],
        rounds,
        scale: if options.quick { "quick" } else { "full" },
        clock: options.clock.name(),
        pinned: None,
        processor_share: None,
        seconds: begin.elapsed().as_secs_f64(),
    });
    print(&format!("{description}\n"))?;
    let out = |ending| options.out.join(format!("{}.{ending}", suite.name));
    write(&out("csv"), &csv::format(&measured))?;
    write(&out("txt"), &description.to_string())?;
    let caption = description.caption();
    let plot = bars::format(suite.title, Length::TimesPlain, &measured, &caption);
    write(&out("svg"), &plot)?;
    let part = Part {
        text: bounds,
        ..Part::of_suite(suite.title, Length::TimesPlain, &measured, table, &caption)
    };
    let page = Page {
        title: format!("Suite {}", suite.name),
        description,
        parts: vec![part],
    };
    write(&out("html"), &page::format(&page))
}

/// Where heaps on a disk are made: a sync elsewhere writes nothing, so there they are left out, unless the place was
/// named.
fn disk(options: &Options) -> Result<Option<WorkDir>> {
    let dir = options.disk_dir.as_ref().unwrap_or(&options.out);
    if options.disk_dir.as_deref() == Some(Path::new("none")) {
        return Ok(None);
    }
    match domain::detect(dir).map_err(Error::file(dir))? {
        Domain::File => WorkDir::create(dir, NAME).map(Some),
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
