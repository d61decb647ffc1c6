//! What sections cost beside transactions that announce what they change, on Shadow.
//!
//! `durum-bench-sections [--rounds N] [--dir DIR] [--file]`: medians over the rounds, in which the sides take turns.
//! `--file`: the `file` domain, where DIR should be on a disk. Each answer is checked after the pool was closed and
//! opened again.

use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use clap::Parser;
use durum::{Domain, Engine, Error, PageTracking, Pool, PoolOptions, Store, StoreOptions, Tx};
use durum_bench_core::command::{self, WorkDir, print};
use durum_bench_core::error as bench_error;
use durum_bench_core::inputs::random::Random;

const NAME: &str = "durum-bench-sections";
const AREA: usize = 64 << 20;
const PAGE: usize = 4096;
const BUCKETS: usize = 1 << 16;

/// How a program tells what it changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Announced,
    Section(PageTracking),
}

const SIDES: [(&str, Side); 3] = [
    ("announced", Side::Announced),
    ("userfaultfd", Side::Section(PageTracking::Userfaultfd)),
    ("mprotect", Side::Section(PageTracking::Mprotect)),
];

#[repr(C)]
struct Node {
    key: u64,
    value: u64,
    next: *mut Node,
}
durum::describe!(Node as "section bench node" { key, value, next });

#[repr(C)]
struct Root {
    area: *mut u8,
    head: *mut Node,
    tail: *mut Node,
    length: u64,
    buckets: [*mut Node; BUCKETS],
}
durum::describe!(Root as "section bench root" { area, head, tail, length, buckets });

/// A pool, used in one of the ways.
struct Contestant {
    side: Side,
    pool: Option<Pool>,
    store: Option<Store>,
    path: PathBuf,
    domain: Domain,
    root: *mut Root,
    keys: u64,
}

impl Contestant {
    fn new(dir: &Path, name: &str, side: Side, domain: Domain) -> Result<Self, Error> {
        let path = dir.join(name);
        let store = Store::create(&path, StoreOptions::new().domain(domain))?;
        let pool = store.create_pool("bench", Self::options(side))?;
        let root = pool.root::<Root>()?;
        pool.transaction(|tx| {
            let area = tx.alloc_bytes(&pool, 0, AREA, PAGE)?;
            // SAFETY: just allocated.
            unsafe { area.write_bytes(0, AREA) };
            // SAFETY: the root; one thread.
            unsafe { tx.set(&raw mut (*root).area, area) }
        })?;
        Ok(Self {
            side,
            pool: Some(pool),
            store: Some(store),
            path,
            domain,
            root,
            keys: 0,
        })
    }

    fn options(side: Side) -> PoolOptions {
        let options = PoolOptions::new().engine(Engine::Shadow);
        match side {
            Side::Announced => options,
            Side::Section(tracking) => options.page_tracking(tracking),
        }
    }

    fn reopen(&mut self) -> Result<(), Error> {
        self.pool = None;
        if let Some(store) = self.store.take() {
            store.close()?;
        }
        let store = Store::open(&self.path, StoreOptions::new().domain(self.domain))?;
        let pool = store.open_pool("bench", Self::options(self.side))?;
        self.root = pool.root()?;
        (self.pool, self.store) = (Some(pool), Some(store));
        Ok(())
    }

    /// Runs `body` as one transaction; it is told whether to announce.
    fn update(&self, body: impl FnOnce(&Tx, bool) -> Result<(), Error>) -> Result<(), Error> {
        let Some(pool) = &self.pool else {
            return Err(Error::NoTransaction);
        };
        match self.side {
            Side::Announced => pool.transaction(|tx| body(tx, true)),
            // SAFETY: this program has one thread.
            Side::Section(_) => unsafe { pool.section(|tx| body(tx, false)) },
        }
    }

    /// Adds 1 to a word in each of these pages.
    fn pages(&self, pages: &[usize]) -> Result<(), Error> {
        // SAFETY: the root.
        let area = unsafe { (*self.root).area };
        self.update(|tx, announces| {
            for page in pages {
                // SAFETY: inside the area.
                let word = unsafe { area.add(page * PAGE + page % 500 * 8) }.cast::<u64>();
                if announces {
                    // SAFETY: one thread.
                    unsafe { tx.add(word) }?;
                }
                // SAFETY: inside the area.
                unsafe { *word += 1 };
            }
            Ok(())
        })
    }

    fn append(&mut self, count: u64) -> Result<(), Error> {
        let root = self.root;
        self.update(|tx, announces| {
            for _ in 0..count {
                let node = tx.alloc::<Node>()?;
                // SAFETY: the node is fresh; root and nodes are live, and there is one thread.
                unsafe {
                    let value = (*root).length;
                    let next = std::ptr::null_mut();
                    node.write(Node {
                        key: value,
                        value,
                        next,
                    });
                    let link = match (*root).tail.is_null() {
                        true => &raw mut (*root).head,
                        false => &raw mut (*(*root).tail).next,
                    };
                    if announces {
                        tx.add(link)?;
                        tx.add(&raw const (*root).tail)?;
                        tx.add(&raw const (*root).length)?;
                    }
                    *link = node;
                    (*root).tail = node;
                    (*root).length += 1;
                }
            }
            Ok(())
        })
    }

    fn insert(&mut self, count: u64) -> Result<(), Error> {
        let (root, first) = (self.root, self.keys);
        self.keys += count;
        self.update(|tx, announces| {
            for key in first..first + count {
                let node = tx.alloc::<Node>()?;
                let bucket = (key.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 48) as usize % BUCKETS;
                // SAFETY: as in `append`.
                unsafe {
                    let head = &raw mut (*root).buckets[bucket];
                    let next = *head;
                    node.write(Node {
                        key,
                        value: key * 3,
                        next,
                    });
                    if announces {
                        tx.add(head)?;
                    }
                    *head = node;
                }
            }
            Ok(())
        })
    }

    /// What the pool holds: the sum of the area's words, the list's length and sum, the number of keys and the sum of
    /// their values.
    fn contents(&self) -> [u64; 5] {
        // SAFETY: root, area and nodes are live.
        unsafe {
            let words = std::slice::from_raw_parts((*self.root).area.cast::<u64>(), AREA / 8);
            let follow = |mut node: *mut Node, found: &mut [u64]| {
                while !node.is_null() {
                    found[0] += 1;
                    found[1] += (*node).value;
                    node = (*node).next;
                }
            };
            let mut found = [words.iter().sum(), 0, 0, 0, 0];
            follow((*self.root).head, &mut found[1..3]);
            for bucket in (*self.root).buckets {
                follow(bucket, &mut found[3..5]);
            }
            found
        }
    }
}

/// What a row runs, and how often in a round.
struct Row {
    name: String,
    times: usize,
    run: Box<Run>,
}

type Run = dyn Fn(&mut Contestant, &mut Random) -> Result<(), Error>;

fn rows(domain: Domain) -> Vec<Row> {
    let mut rows = Vec::new();
    let fewer = if domain == Domain::File { 20 } else { 1 };
    let mut row = |name: String, times: usize, run: Box<Run>| {
        let times = (times / fewer).max(3);
        rows.push(Row { name, times, run });
    };
    for pages in [0usize, 1, 10, 100, 1000] {
        let times = 3000 / (pages / 10).max(1);
        row(
            format!("pages_{pages}"),
            times,
            Box::new(move |one, random| {
                let changed: Vec<usize> = (0..pages).map(|_| random.below(AREA / PAGE)).collect();
                one.pages(&changed)
            }),
        );
    }
    for count in [1u64, 10, 100, 1000] {
        let times = (3000 / count as usize).max(30);
        row(
            format!("list_{count}"),
            times,
            Box::new(move |one, _| one.append(count)),
        );
        row(
            format!("map_{count}"),
            times,
            Box::new(move |one, _| one.insert(count)),
        );
    }
    rows
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

fn bench(dir: &Path, rounds: usize, domain: Domain) -> Result<String, Error> {
    let mut contestants = SIDES
        .iter()
        .map(|(name, side)| Contestant::new(dir, name, *side, domain))
        .collect::<Result<Vec<_>, _>>()?;
    let mut text = format!(
        "{:<12}{:>12}{:>14}{:>14}\n",
        "us each", SIDES[0].0, SIDES[1].0, SIDES[2].0
    );
    for row in rows(domain) {
        let mut times = [const { Vec::new() }; SIDES.len()];
        for round in 0..rounds {
            for turn in 0..SIDES.len() {
                let number = (turn + round) % SIDES.len();
                // The same pages for each.
                let mut random = Random::new(round as u64 + 7);
                let one = &mut contestants[number];
                let began = Instant::now();
                for _ in 0..row.times {
                    (row.run)(one, &mut random)?;
                }
                let spent = began.elapsed().as_secs_f64() * 1e6 / row.times as f64;
                times[number].push(spent);
            }
        }
        text.push_str(&format!("{:<12}", row.name));
        for (times, width) in times.into_iter().zip([12, 14, 14]) {
            text.push_str(&format!("{:>width$.1}", median(times)));
        }
        text.push('\n');
    }
    let expected = contestants[0].contents();
    for (one, (name, _)) in contestants.iter_mut().zip(SIDES) {
        one.reopen()?;
        let found = one.contents();
        text.push_str(&match found == expected {
            true => String::new(),
            false => format!("{name}: WRONG: {found:?} instead of {expected:?}\n"),
        });
    }
    Ok(text)
}

/// What sections cost beside transactions that announce what they change.
#[derive(Parser)]
#[command(name = NAME, args_override_self = true)]
struct Options {
    #[arg(long, value_name = "N", default_value = "7")]
    rounds: NonZero<usize>,
    /// Where the pools are made.
    #[arg(long, default_value = "/dev/shm")]
    dir: PathBuf,
    /// The domain is `file`: DIR should be on a disk.
    #[arg(long)]
    file: bool,
}

fn run(options: &Options) -> Result<(), bench_error::Error> {
    let domain = match options.file {
        true => Domain::File,
        false => Domain::Dram,
    };
    let work = WorkDir::create(&options.dir, NAME)?;
    let found = bench(work.path(), options.rounds.get(), domain);
    let text = found.map_err(bench_error::Error::side("durum"))?;
    match text.contains("WRONG") {
        true => Err(bench_error::Error::Unfair(text)),
        false => print(&text),
    }
}

fn main() -> ExitCode {
    command::ended(NAME, run(&Options::parse()))
}
