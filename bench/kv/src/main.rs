//! The suite `kv`: durum-kv, LevelDB and LMDB by the benchmarks of `db_bench`, each commit durable, in memory and on a
//! disk.
//!
//! Microseconds for each operation, the median of the rounds; in the last column how many times the better peer's time
//! durum's is contained in it.

mod leveldb;
mod lmdb;

use std::collections::BTreeMap;
use std::fs;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use clap::Parser;
use durum_bench_core::command::WorkDir;
use durum_bench_core::measure::Sample;
use durum_bench_core::measured::{Column, Measured};
use durum_bench_core::report::bars::Length;
use durum_bench_core::report::machine;
use durum_bench_core::report::page::{self, Page, Part};
use durum_bench_core::report::table::Table;
use durum_bench_core::side::Role;
use durum_bench_core::workload;
use durum_kv_bench::stats::Stats;
use durum_kv_bench::{Durum, Flags, Output, Store, run};
use durum_persist::domain::{Domain, detect};
use durum_persist::line;
use leveldb::LevelDb;
use lmdb::Lmdb;

const SIDES: [&str; 3] = ["durum", "leveldb", "lmdb"];

const BENCHMARKS: &str = "fillseq,readseq,readreverse,fillrandom,overwrite,compact,readrandom,readmissing,readhot,readrandommulti,seekrandom,\
    seekordered,readseq,readreverse,deleterandom,fillbatch,deleteseq,fillone,deleteone,fillsync,fill100K,fillseqmulti,\
    fillrandommulti,overwritemulti,fillseqflying,overwriteflying";

const NAME: &str = "durum-bench-kv";

/// durum-kv, LevelDB and LMDB by the benchmarks of db_bench, each commit durable.
#[derive(Parser)]
#[command(name = NAME, args_override_self = true)]
struct Options {
    /// Entries in memory.
    #[arg(long, value_name = "N", default_value = "1000000")]
    num: NonZero<u64>,
    /// Entries on the disk.
    #[arg(long, value_name = "N", default_value = "5000")]
    disk_num: NonZero<u64>,
    /// Operations of fillsync on the disk; in memory a thousandth of --num.
    #[arg(long, value_name = "N", default_value = "1000")]
    disk_sync: NonZero<u64>,
    /// Operations of fill100K on the disk; in memory a thousandth of --num.
    #[arg(long = "disk-100k", value_name = "N", default_value = "200")]
    disk_large: NonZero<u64>,
    /// Bytes of a value.
    #[arg(long, value_name = "N", default_value = "100")]
    value_size: usize,
    /// Threads of each benchmark.
    #[arg(long, value_name = "N", default_value = "1")]
    threads: NonZero<usize>,
    /// Writes of durum are buffered, and the others do not sync.
    #[arg(long)]
    buffered: bool,
    /// How often; the median counts.
    #[arg(long, value_name = "N", default_value = "3")]
    rounds: NonZero<usize>,
    /// Names with commas between them.
    #[arg(long, value_name = "LIST", default_value = BENCHMARKS, hide_default_value = true)]
    benchmarks: String,
    /// In memory.
    #[arg(long, default_value = "/dev/shm")]
    dir: PathBuf,
    /// On a disk [default: the directory of --out].
    #[arg(long, value_name = "DIR")]
    disk_dir: Option<PathBuf>,
    /// Where kv.csv, kv.txt and kv.html go.
    #[arg(long, value_name = "DIR", default_value = "target/bench")]
    out: PathBuf,
    #[arg(long, overrides_with = "disk_only")]
    memory_only: bool,
    #[arg(long)]
    disk_only: bool,
}

impl Options {
    fn durability(&self) -> &'static str {
        match self.buffered {
            true => "No commit waits for the media.",
            false => "Each commit is durable.",
        }
    }

    /// What is not as it is without options.
    fn caption(&self) -> String {
        let mut text = String::new();
        if self.value_size != 100 {
            text += &format!(", values of {} bytes", self.value_size);
        }
        if self.threads.get() > 1 {
            text += &format!(", {} threads", self.threads);
        }
        if self.buffered {
            text += ", buffered";
        }
        text
    }
}

fn main() -> ExitCode {
    match bench(&Options::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(text) => {
            eprintln!("{NAME}: {text}");
            ExitCode::from(2)
        }
    }
}

fn bench(options: &Options) -> Result<(), String> {
    fs::create_dir_all(&options.out).map_err(|error| error.to_string())?;
    let disk = options.disk_dir.as_ref().unwrap_or(&options.out);
    let places = [
        Place {
            name: "memory",
            dir: &options.dir,
            num: options.num.get(),
            few: [None; 2],
        },
        Place {
            name: "disk",
            dir: disk,
            num: options.disk_num.get(),
            few: [options.disk_sync, options.disk_large].map(|count| Some(count.get())),
        },
    ];
    let begin = Instant::now();
    let (mut dirs, mut tables) = (Vec::new(), Vec::new());
    let mut csv = String::from("place,benchmark,side,micros_per_op\n");
    let wanted = [!options.disk_only, !options.memory_only];
    for (place, _) in places.iter().zip(wanted).filter(|(_, wanted)| *wanted) {
        let (name, dir) = (place.name, place.dir);
        let domain = detect(dir).map_err(|error| format!("{}: {error}", dir.display()))?;
        if (domain == Domain::File) != (name == "disk") {
            return Err(format!(
                "{} is not a place for {name} ({domain:?})",
                dir.display()
            ));
        }
        dirs.push(dir);
        let times = measure(options, place)?;
        let mut table = table(place, &times);
        table.caption += &options.caption();
        println!("{}\n{table}", table.caption);
        tables.push((name, measured(place, &times), table));
        for (row, sides) in &times {
            for (side, micros) in SIDES.iter().zip(sides) {
                csv += &format!("{name},{},{side},{micros:.3}\n", row.name);
            }
        }
    }
    let rounds = options.rounds.get();
    let is_full = options.num.get() >= 1_000_000 && rounds > 1;
    let description = machine::describe(&machine::Run {
        dirs,
        instruction: format!("{:?}", line::instruction()),
        peers: vec![
            LevelDb::new(PathBuf::new()).version(),
            Lmdb::new(PathBuf::new()).version(),
        ],
        rounds,
        scale: if is_full { "full" } else { "quick" },
        clock: "wall",
        pinned: None,
        processor_share: None,
        seconds: begin.elapsed().as_secs_f64(),
    });
    println!("{description}");
    let text = description.to_string();
    let caption = description.caption();
    let part = |(place, measured, table): (&str, Vec<Measured>, Table)| Part {
        about: format!("{} The medians of the rounds.", options.durability()),
        ..Part::of_suite(
            &format!("Suite kv, {place}"),
            Length::Time,
            &measured,
            table,
            &caption,
        )
    };
    let parts = tables.into_iter().map(part).collect();
    let page = page::format(&Page {
        title: "Key-value stores by LevelDB's benchmarks".to_owned(),
        description,
        parts,
    });
    for (name, text) in [("kv.csv", csv), ("kv.txt", text), ("kv.html", page)] {
        let path = options.out.join(name);
        fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))?;
        println!("wrote {}", path.display());
    }
    Ok(())
}

/// Where databases lie, and how much is done there.
struct Place<'o> {
    name: &'static str,
    dir: &'o Path,
    num: u64,
    /// Operations of fillsync and of fill100K, where they are not a thousandth of `num`.
    few: [Option<u64>; 2],
}

/// A benchmark, in the order in which they ran.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Row {
    at: usize,
    name: String,
}

/// Rows, with the median of each side.
type Times = BTreeMap<Row, [f64; SIDES.len()]>;

/// What a benchmark did: operations, bytes of keys and values, keys that were found. All sides have to do the same.
fn answer(stats: &Stats) -> [u64; 3] {
    [stats.done, stats.bytes, stats.found]
}

fn measure(options: &Options, place: &Place<'_>) -> Result<Times, String> {
    let mut answers: BTreeMap<Row, [u64; 3]> = BTreeMap::new();
    let mut rounds: BTreeMap<Row, [Vec<f64>; SIDES.len()]> = BTreeMap::new();
    let own = WorkDir::create(place.dir, NAME).map_err(|error| error.to_string())?;
    for _ in 0..options.rounds.get() {
        for (side, name) in SIDES.iter().enumerate() {
            let path = own.path().join(name);
            let flags = Flags {
                benchmarks: options.benchmarks.clone(),
                num: place.num,
                sync_writes: place.few[0],
                large_writes: place.few[1],
                db: path.clone(),
                sync: !options.buffered,
                buffered: options.buffered,
                value_size: options.value_size,
                threads: options.threads.get(),
                ..Flags::default()
            };
            let mut quiet = Output {
                out: std::io::sink(),
                err: std::io::sink(),
            };
            let taken = match *name {
                "durum" => run(&flags, Durum::new(&flags), &mut quiet),
                "leveldb" => run(&flags, LevelDb::new(path.clone()), &mut quiet),
                _ => run(&flags, Lmdb::new(path.clone()), &mut quiet),
            };
            let taken = taken.map_err(|error| format!("{name}: {error}"))?;
            for (at, (benchmark, stats)) in taken.into_iter().enumerate() {
                let row = Row {
                    at,
                    name: benchmark,
                };
                let own = answer(&stats);
                let first = *answers.entry(row.clone()).or_insert(own);
                if own != first {
                    return Err(format!(
                        "{name}: {} gives the answer {own:?}, another side {first:?} (operations, bytes, found)",
                        row.name
                    ));
                }
                rounds.entry(row).or_default()[side].push(stats.micros_per_op());
            }
            let _ = fs::remove_dir_all(&path);
        }
    }
    let median = |mut times: Vec<f64>| {
        times.sort_by(f64::total_cmp);
        times.get(times.len() / 2).copied().unwrap_or(f64::NAN)
    };
    Ok(rounds
        .into_iter()
        .map(|(row, sides)| (row, sides.map(median)))
        .collect())
}

/// The same for a plot, of the medians.
fn measured(place: &Place<'_>, times: &Times) -> Vec<Measured> {
    let column = |(side, micros): (&&str, &f64)| Column {
        side: (*side).to_owned(),
        role: match *side {
            "durum" => Role::Engine,
            _ => Role::Peer,
        },
        domain: place.name.to_owned(),
        samples: vec![Sample {
            ns: micros * 1e3,
            ..Sample::default()
        }],
    };
    let row = |(row, sides): (&Row, &[f64; SIDES.len()])| Measured {
        suite: "kv",
        row: workload::Row {
            // There are a few of them, and the program ends soon.
            name: row.name.clone().leak(),
            one_op: "",
        },
        columns: SIDES.iter().zip(sides).map(column).collect(),
    };
    times.iter().map(row).collect()
}

/// What the sides took, and how many times the better peer's time durum's is contained in it.
fn table(place: &Place<'_>, times: &Times) -> Table {
    let heads = std::iter::once(("", ""))
        .chain(SIDES.map(|side| (side, "\u{b5}s")))
        .chain([("better/durum", "")]);
    let mut table = Table::new(heads);
    table.words = 1;
    table.caption = format!(
        "{} ({}), {} entries, microseconds for each operation",
        place.name,
        place.dir.display(),
        place.num
    );
    for (row, sides) in times {
        let better = sides[1..].iter().copied().fold(f64::INFINITY, f64::min);
        let mut line = vec![row.name.clone()];
        line.extend(sides.map(|micros| format!("{micros:.3}")));
        line.push(format!("{:.2}", better / sides[0]));
        table.lines.push(line);
    }
    table
}
