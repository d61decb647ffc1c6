//! The operations of the typed interface: Table 5 of the Corundum paper, beside the figures that it gives for DRAM.
//!
//! `durum-bench-typed [--rounds N] [--dir DIR] [--out DIR] [--rows NAMES]`: medians over the rounds, in which the
//! engines take turns. Each operation is timed in transactions of a thousand of them, or fewer if they are large. The
//! first figure is the operation alone, as in the paper, and the last column the paper's divided by it on Shadow; the
//! second has its share of the commit in it, because Shadow does there what others do at once. With `--out`,
//! `operations.csv` and `operations.txt` there have the same numbers, and what they come from.

use std::hint::black_box;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Parser;
use durum::Engine;
use durum::typed::*;
use durum_bench_core::command::{self, WorkDir, print};
use durum_bench_core::error::Error;
use durum_bench_core::measure::{Spread, pin};
use durum_bench_core::report::table::Table;
use durum_bench_core::report::{machine, page};
use durum_persist::domain::{Delays, emulate};
use durum_persist::line;

const NAME: &str = "durum-bench-typed";

durum::pool!(P);

/// Operations in a transaction, if they are small.
const BATCH: usize = 1000;

/// Operations in a transaction on objects of this type: so many that they stay in the second-level cache.
const fn batch_of<T>() -> usize {
    let fit = (256 << 10) / size_of::<T>();
    if fit < BATCH { fit } else { BATCH }
}
/// Transactions of a round: 50,000 operations, as in the paper.
const BATCHES: usize = 50;

type Objects<T> = PRefCell<PVec<Pbox<T, P>, P>, P>;

#[derive(PSafe, Root)]
#[repr(C)]
struct Desk {
    words: Objects<u64>,
    quarters: Objects<Block<256>>,
    integers: Objects<i32>,
    kilobytes: Objects<Block<1024>>,
    pages: Objects<Block<4096>>,
    large: Objects<Block<32768>>,
    local: PRefCell<Option<Prc<u64, P>>, P>,
    shared: PMutex<Option<Parc<u64, P>>, P>,
}

#[derive(PSafe, Clone, Copy)]
#[repr(C)]
struct Block<const N: usize> {
    bytes: [u8; N],
}

impl<const N: usize> Default for Block<N> {
    fn default() -> Self {
        Self { bytes: [7; N] }
    }
}

/// Time of the operations, and of their transactions.
#[derive(Clone, Copy, Default)]
struct Times {
    operations: Duration,
    transactions: Duration,
    count: u32,
}

impl Times {
    fn ns(self) -> (f64, f64) {
        let each = |time: Duration| time.as_nanos() as f64 / f64::from(self.count);
        (each(self.operations), each(self.transactions))
    }

    /// Runs transactions in which `operation` runs a thousand times.
    fn measure(
        batches: usize,
        operation: impl Fn(&Journal<P>) + std::panic::RefUnwindSafe,
    ) -> Times {
        Self::measure_batches(batches, BATCH, |j| {
            let begin = Instant::now();
            for _ in 0..BATCH {
                operation(j);
            }
            begin.elapsed()
        })
    }

    /// Runs transactions in which `operation` runs a thousand times; what it gives is dropped later, untimed.
    fn keep<R>(
        batches: usize,
        operation: impl Fn(&Journal<P>) -> R + std::panic::RefUnwindSafe,
    ) -> Times {
        Self::measure_batches(batches, BATCH, |j| keep(|| operation(j)))
    }

    /// Runs transactions of `count` operations each, whose time `batch` tells.
    fn measure_batches(
        batches: usize,
        count: usize,
        batch: impl Fn(&Journal<P>) -> Duration + std::panic::RefUnwindSafe,
    ) -> Times {
        let mut times = Times::default();
        for _ in 0..batches {
            let begin = Instant::now();
            let spent = P::transaction(&batch).expect("the transaction commits");
            times.add(spent, begin.elapsed(), count);
        }
        times
    }

    fn add(&mut self, operations: Duration, transaction: Duration, count: usize) {
        self.operations += operations;
        self.transactions += transaction;
        self.count += count as u32;
    }
}

/// Runs `operation` a thousand times; what it gives is dropped later, untimed.
fn keep<R>(operation: impl Fn() -> R) -> Duration {
    let mut kept = Vec::with_capacity(BATCH);
    let begin = Instant::now();
    for _ in 0..BATCH {
        kept.push(operation());
    }
    begin.elapsed()
}

/// Has so many objects in a vector.
fn fill<T: PSafe + Default>(objects: &Objects<T>, count: usize) {
    while objects.borrow().len() < count {
        P::transaction(|j| {
            let mut objects = objects.borrow_mut(j);
            for _ in 0..BATCH.min(count - objects.len()) {
                objects.push(Pbox::new(T::default(), j), j);
            }
        })
        .expect("there is room");
    }
}

fn empty<T: PSafe>(objects: &Objects<T>) {
    P::transaction(|j| objects.borrow_mut(j).clear()).expect("objects are freed");
}

/// Allocates objects; they are freed without being timed.
fn allocate<T: PSafe + Default>(objects: &Objects<T>, batches: usize) -> Times {
    // Room that was used before: what it takes to make the pool grow is the subject of other rows.
    let batch = batch_of::<T>();
    fill(objects, batch);
    empty(objects);
    let mut times = Times::default();
    for _ in 0..batches {
        let begin = Instant::now();
        let spent = P::transaction(|j| {
            let mut objects = objects.borrow_mut(j);
            objects.reserve(batch, j);
            let begin = Instant::now();
            for _ in 0..batch {
                objects.push(Pbox::new(T::default(), j), j);
            }
            begin.elapsed()
        });
        times.add(spent.expect("there is room"), begin.elapsed(), batch);
        assert_eq!(objects.borrow().len(), batch);
        empty(objects);
    }
    times
}

/// Frees objects; they are allocated without being timed.
fn free<T: PSafe + Default>(objects: &Objects<T>, batches: usize) -> Times {
    let mut times = Times::default();
    for _ in 0..batches {
        fill(objects, batch_of::<T>());
        let begin = Instant::now();
        let spent = P::transaction(|j| {
            let mut objects = objects.borrow_mut(j);
            let mut all = Vec::with_capacity(objects.len());
            all.extend(std::iter::from_fn(|| objects.pop()));
            let begin = Instant::now();
            drop(all);
            begin.elapsed()
        });
        times.add(
            spent.expect("objects are freed"),
            begin.elapsed(),
            batch_of::<T>(),
        );
    }
    assert!(objects.borrow().is_empty());
    times
}

/// Writes to each of a thousand objects for the first time in a transaction.
fn write_first<T: PSafe + Default>(
    objects: &Objects<T>,
    batches: usize,
    write: fn(&mut T),
) -> Times {
    fill(objects, batch_of::<T>());
    let times = Times::measure_batches(batches, batch_of::<T>(), |j| {
        let mut objects = objects.borrow_mut(j);
        let begin = Instant::now();
        for object in &mut objects[..] {
            write(object);
        }
        begin.elapsed()
    });
    empty(objects);
    times
}

/// An operation of the table: its name, what the paper says (Optane, DRAM; ns), and how it is run.
struct Row {
    name: &'static str,
    optane: f64,
    dram: f64,
    run: fn(&Desk, usize) -> Times,
}

const fn row(name: &'static str, optane: f64, dram: f64, run: fn(&Desk, usize) -> Times) -> Row {
    Row {
        name,
        optane,
        dram,
        run,
    }
}

const ROWS: &[Row] = &[
    row("Deref", 0.9, 1.0, |desk, batches| {
        fill(&desk.integers, 1);
        let objects = desk.integers.borrow();
        let object = &objects[0];
        Times::measure(batches, |_| {
            black_box(**black_box(object));
        })
    }),
    row("DerefMut (first)", 467.0, 235.0, |desk, batches| {
        write_first(&desk.integers, batches, |value| *value += 1)
    }),
    row("DerefMut (again)", 0.4, 0.4, |desk, batches| {
        fill(&desk.integers, 1);
        Times::measure_batches(batches, BATCH, |j| {
            let mut objects = desk.integers.borrow_mut(j);
            let value = &mut *objects[0];
            let begin = Instant::now();
            for number in 0..BATCH {
                *black_box(&mut *value) = number as i32;
            }
            begin.elapsed()
        })
    }),
    row("Alloc + init (8 B)", 734.0, 241.0, |desk, batches| {
        allocate(&desk.words, batches)
    }),
    row("Alloc + init (256 B)", 706.0, 264.0, |desk, batches| {
        allocate(&desk.quarters, batches)
    }),
    row("Alloc + init (4 kB)", 1685.0, 1907.0, |desk, batches| {
        allocate(&desk.pages, batches)
    }),
    row("Dealloc (8 B)", 632.0, 384.0, |desk, batches| {
        free(&desk.words, batches)
    }),
    row("Dealloc (256 B)", 598.0, 249.0, |desk, batches| {
        free(&desk.quarters, batches)
    }),
    row("Dealloc (4 kB)", 675.0, 248.0, |desk, batches| {
        free(&desk.pages, batches)
    }),
    row("Pbox::AtomicInit (8 B)", 822.0, 416.0, |_, batches| {
        Times::keep(batches, |j| Pbox::<u64, P>::new(1, j))
    }),
    row("Prc::AtomicInit (8 B)", 2089.0, 1210.0, |_, batches| {
        Times::keep(batches, |j| Prc::<u64, P>::new(1, j))
    }),
    row("Parc::AtomicInit (8 B)", 3508.0, 2304.0, |_, batches| {
        Times::keep(batches, |j| Parc::<u64, P>::new(1, j))
    }),
    row("TxNop", 198.0, 198.0, |_, batches| {
        let mut times = Times::default();
        let begin = Instant::now();
        for _ in 0..batches * BATCH {
            P::transaction(|_| ()).expect("nothing can fail");
        }
        times.add(begin.elapsed(), begin.elapsed(), batches * BATCH);
        times
    }),
    row("DataLog (8 B)", 574.0, 253.0, |desk, batches| {
        write_first(&desk.words, batches, |value| *value += 1)
    }),
    row("DataLog (1 kB)", 1070.0, 500.0, |desk, batches| {
        write_first(&desk.kilobytes, batches, |block| block.bytes[0] += 1)
    }),
    row("DataLog (4 kB)", 2463.0, 1510.0, |desk, batches| {
        write_first(&desk.pages, batches, |block| block.bytes[0] += 1)
    }),
    row("DropLog (8 B)", 29.0, 28.0, |desk, batches| {
        free(&desk.words, batches)
    }),
    row("DropLog (32 kB)", 28.0, 28.0, |desk, batches| {
        free(&desk.large, batches)
    }),
    row("Pbox::pclone (8 B)", 698.0, 314.0, |desk, batches| {
        fill(&desk.words, 1);
        let words = desk.words.borrow();
        let object = &words[0];
        Times::keep(batches, |j| object.pclone(j))
    }),
    row("Prc::pclone", 13.0, 8.0, |desk, batches| {
        with_local(desk, batches, |object, j| object.pclone(j))
    }),
    row("Parc::pclone", 333.0, 170.0, |desk, batches| {
        with_shared(desk, batches, |object, j| object.pclone(j))
    }),
    row("Prc::downgrade", 6.0, 6.0, |desk, batches| {
        with_local(desk, batches, |object, j| object.downgrade(j))
    }),
    row("Parc::downgrade", 335.0, 174.0, |desk, batches| {
        with_shared(desk, batches, |object, j| object.downgrade(j))
    }),
    row("Prc::PWeak::upgrade", 9.0, 9.0, |desk, batches| {
        with_local_weak(desk, batches)
    }),
    row("Parc::PWeak::upgrade", 321.0, 175.0, |desk, batches| {
        with_shared_weak(desk, batches)
    }),
    row("Prc::demote", 42.0, 43.0, |desk, batches| {
        with_local(desk, batches, |object, _| object.demote())
    }),
    row("Parc::demote", 75.0, 75.0, |desk, batches| {
        with_shared(desk, batches, |object, _| object.demote())
    }),
    row("Prc::VWeak::promote", 12.0, 13.0, |desk, batches| {
        let weak = demote_local(desk);
        Times::keep(batches, |j| weak.promote(j))
    }),
    row("Parc::VWeak::promote", 352.0, 175.0, |desk, batches| {
        let weak = demote_shared(desk);
        Times::keep(batches, |j| weak.promote(j))
    }),
];

fn demote_local(desk: &Desk) -> VWeak<u64, P, Local> {
    P::transaction(|j| {
        let mut local = desk.local.borrow_mut(j);
        if local.is_none() {
            *local = Some(Prc::new(1, j));
        }
    })
    .expect("there is room");
    let local = desk.local.borrow();
    local.as_ref().expect("just made").demote()
}

fn demote_shared(desk: &Desk) -> VWeak<u64, P> {
    P::transaction(|j| {
        let mut shared = desk.shared.lock(j);
        shared.get_or_insert_with(|| Parc::new(1, j)).demote()
    })
    .expect("there is room")
}

fn with_local<R>(
    desk: &Desk,
    batches: usize,
    operation: fn(&Prc<u64, P>, &Journal<P>) -> R,
) -> Times {
    demote_local(desk);
    let local = desk.local.borrow();
    let object = local.as_ref().expect("just made");
    Times::keep(batches, |j| operation(object, j))
}

fn with_shared<R>(
    desk: &Desk,
    batches: usize,
    operation: fn(&Parc<u64, P>, &Journal<P>) -> R,
) -> Times {
    demote_shared(desk);
    Times::measure_batches(batches, BATCH, |j| {
        let shared = desk.shared.lock(j);
        let object = shared.as_ref().expect("just made");
        keep(|| operation(object, j))
    })
}

fn with_local_weak(desk: &Desk, batches: usize) -> Times {
    let weak = demote_local(desk);
    Times::measure_batches(batches, BATCH, |j| {
        let weak = weak.promote(j).expect("it lives").downgrade(j);
        keep(|| weak.upgrade(j))
    })
}

fn with_shared_weak(desk: &Desk, batches: usize) -> Times {
    let weak = demote_shared(desk);
    Times::measure_batches(batches, BATCH, |j| {
        let weak = weak.promote(j).expect("it lives").downgrade(j);
        keep(|| weak.upgrade(j))
    })
}

/// What `Deref` and `DerefMut` are compared with.
fn box_instead(batches: usize) -> [Times; 2] {
    let mut object = Box::new(1);
    let mut times = [Times::default(); 2];
    for _ in 0..batches {
        let begin = Instant::now();
        for _ in 0..BATCH {
            black_box(**black_box(&object));
        }
        times[0].add(begin.elapsed(), begin.elapsed(), BATCH);
        let value = &mut *object;
        let begin = Instant::now();
        for number in 0..BATCH {
            *black_box(&mut *value) = number as i32;
        }
        times[1].add(begin.elapsed(), begin.elapsed(), BATCH);
    }
    times
}

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
    /// Where operations.csv and operations.txt go.
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

/// Two figures for each side: the operation alone, and with its share of the commit.
fn table(all: &[Measured]) -> Table {
    let mut heads = vec![
        ("ns per operation", ""),
        ("Optane", "ns, paper"),
        ("DRAM", "ns, paper"),
    ];
    for (name, ..) in SIDES {
        heads.extend([(name, "ns, alone"), ("", "ns, with commit")]);
    }
    heads.push(("DRAM/us", "paper / ours"));
    let mut table = Table::new(heads);
    table.words = 1;
    for measured in all {
        let row = measured.row;
        let mut line = vec![
            row.name.to_owned(),
            format!("{:.1}", row.optane),
            format!("{:.1}", row.dram),
        ];
        for side in 0..SIDES.len() {
            line.extend(measured.medians(side).map(|ns| format!("{ns:.1}")));
        }
        line.push(format!("{:.1}", row.dram / measured.medians(0)[0]));
        table.lines.push(line);
    }
    table
}

/// One line for each operation and side. The medium is `dram`, or the one that is emulated.
fn csv(all: &[Measured]) -> String {
    let mut text =
        "suite,operation,engine,medium,ns,committed_ns,paper_optane_ns,paper_dram_ns\n".to_owned();
    for Measured { row, .. } in all {
        assert!(!row.name.contains(','), "a name is one field");
    }
    for measured in all {
        let row = measured.row;
        for (side, (name, ..)) in SIDES.iter().enumerate() {
            let (engine, medium) = name.split_once(' ').unwrap_or((name, "dram"));
            let [alone, committed] = measured.medians(side);
            text += &format!(
                "operations,{},{engine},{medium},{alone:.2},{committed:.2},{},{}\n",
                row.name, row.optane, row.dram
            );
        }
    }
    text
}

/// Writes the numbers, and what they come from.
fn save(out: &Path, csv: &str, text: &str, page: &str) -> std::io::Result<()> {
    std::fs::create_dir_all(out)?;
    std::fs::write(out.join("operations.csv"), csv)?;
    std::fs::write(out.join("operations.txt"), text)?;
    std::fs::write(out.join("operations.html"), page)
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
        let text = description.to_string();
        let title = "Operations of the typed interface";
        let page = page::of_table(title, &beside, table, description);
        save(out, &csv(&all), &text, &page).map_err(Error::file(out))?;
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
