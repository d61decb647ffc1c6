//! How long recovery takes after a kill in the middle of updates, by engine and size (Romulus, SPAA'18, §6.5).
//!
//! `durum-bench-recovery [--rounds N] [--dir DIR] [--only TEXT]`: medians over the rounds, of the rows that have the
//! text in their name. What was recovered is compared with what the killed process had said that it did, before the
//! time counts. The time is that of the service's recovery of the pool; opening the store's files is not in it.

use std::io::{BufRead, BufReader, Write};
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use clap::Parser;
use durum::{Engine, Error, Pool, PoolOptions, Store, StoreOptions};
use durum_bench_core::inputs::random::{Random, mix};

/// Bytes of a value, as in the other benchmarks.
const VALUE: usize = 100;
/// Bytes of a block of the pool that is filled.
const BLOCK: usize = 16 << 20;
/// What its bytes are, and what they are when they were changed.
const FILLED: u8 = 0x11;
const CHANGED: u8 = 0x7a;
/// How many times the words of the root are changed, in a transaction each, before the process says that it is ready.
const UPDATES_MIN: u64 = 100;
const WORDS: usize = 64;

#[repr(C)]
struct Node {
    key: u64,
    next: *mut Node,
    value: [u8; VALUE],
}
durum::describe!(Node as "recovery bench node" { key, next, value });

#[repr(C)]
struct Root {
    buckets: *mut *mut Node,
    bucket_count: u64,
    entries: u64,
    blocks: u64,
    /// Each begins with the address of the one before.
    last_block: *mut u8,
    /// All equal after each transaction.
    words: [u64; WORDS],
}
durum::describe!(Root as "recovery bench root" { buckets, bucket_count, entries, blocks, last_block, words });

/// What the pool holds.
#[derive(Clone, Copy)]
enum Content {
    /// A hash map with so many entries of 8 and 100 bytes.
    Entries(u64),
    /// So many blocks of bytes.
    Blocks(u64),
    /// The same, and in the end a transaction that changes so many bytes of each so many, which is where the process
    /// stops.
    Logged {
        blocks: u64,
        bytes: usize,
        stride: usize,
    },
}

impl Content {
    /// The logs of other engines than Shadow hold nothing once a transaction is over.
    fn is_for(self, engine: Engine) -> bool {
        engine == Engine::Shadow || !matches!(self, Content::Logged { .. })
    }
}

/// Each with what the paper says that Romulus takes, in ms.
const CASES: [(&str, Content, &str); 5] = [
    ("1000", Content::Entries(1000), "0.114"),
    ("1000000", Content::Entries(1_000_000), "127"),
    ("1 GiB", Content::Blocks(64), "about 1000"),
    (
        "60 MiB changed",
        Content::Logged {
            blocks: 4,
            bytes: 15 << 20,
            stride: BLOCK,
        },
        "",
    ),
    // About as many as may be left: a commit after which it is more brings them home.
    (
        "81920 words",
        Content::Logged {
            blocks: 20,
            bytes: 8,
            stride: 4096,
        },
        "",
    ),
];
const ENGINES: [(&str, Engine); 3] = [
    ("twin", Engine::Twin),
    ("shadow", Engine::Shadow),
    ("hybrid", Engine::Hybrid),
];

fn bucket(root: &Root, key: u64) -> *mut *mut Node {
    let index = mix(key) % root.bucket_count;
    // SAFETY: an element of the array.
    unsafe { root.buckets.add(index as usize) }
}

fn fill(pool: &Pool, root: *mut Root, content: Content) -> Result<(), Error> {
    match content {
        Content::Entries(entries) => {
            pool.transaction(|tx| {
                let size = 8 * entries as usize;
                let buckets = tx.alloc_bytes(pool, 0, size, 64)?;
                // SAFETY: just allocated; and the root, which this thread alone uses.
                unsafe {
                    buckets.write_bytes(0, size);
                    tx.set(&raw mut (*root).buckets, buckets.cast())?;
                    tx.set(&raw mut (*root).bucket_count, entries)
                }
            })?;
            for key in 0..entries {
                pool.transaction(|tx| {
                    let node = tx.alloc::<Node>()?;
                    // SAFETY: a fresh node, the root and its array, all of this thread alone.
                    unsafe {
                        let head = bucket(&*root, key);
                        node.write(Node {
                            key,
                            next: *head,
                            value: [key as u8; VALUE],
                        });
                        tx.set(head, node)?;
                        tx.set(&raw mut (*root).entries, key + 1)
                    }
                })?;
            }
        }
        Content::Blocks(blocks) | Content::Logged { blocks, .. } => {
            for block in 0..blocks {
                pool.transaction(|tx| {
                    let bytes = tx.alloc_bytes(pool, 0, BLOCK, 64)?;
                    // SAFETY: just allocated; and the root, which this thread alone uses.
                    unsafe {
                        bytes.write_bytes(FILLED, BLOCK);
                        bytes.cast::<*mut u8>().write((*root).last_block);
                        tx.set(&raw mut (*root).last_block, bytes)?;
                        tx.set(&raw mut (*root).blocks, block + 1)
                    }
                })?;
            }
        }
    }
    Ok(())
}

/// The parts of a block that are changed.
fn changed_parts(bytes: usize, stride: usize) -> impl Iterator<Item = std::ops::Range<usize>> {
    // Behind the address of the block before.
    let starts = (64..BLOCK - bytes).step_by(stride);
    starts.map(move |start| start..start + bytes)
}

/// One transaction that changes parts of each block.
fn change(pool: &Pool, root: *mut Root, bytes: usize, stride: usize) -> Result<(), Error> {
    pool.transaction(|tx| {
        // SAFETY: the root and the blocks, which this thread alone uses.
        unsafe {
            let mut block = (*root).last_block;
            while !block.is_null() {
                for part in changed_parts(bytes, stride) {
                    let start = block.add(part.start);
                    tx.add_bytes(start, part.len(), durum::Announce::Backup)?;
                    start.write_bytes(CHANGED, part.len());
                }
                block = block.cast::<*mut u8>().read();
            }
        }
        Ok(())
    })
}

/// The process that is killed: fills a pool, then changes words of the root until it dies. Says so after the first
/// ones.
fn work(dir: &Path, engine: Engine, content: Content) -> Result<(), Error> {
    let store = Store::create(dir.join("store"), StoreOptions::new())?;
    let pool = store.create_pool("bench", PoolOptions::new().engine(engine))?;
    let root = pool.root::<Root>()?;
    fill(&pool, root, content)?;
    if let Content::Logged { bytes, stride, .. } = content {
        change(&pool, root, bytes, stride)?;
        println!("ready");
        // Not one more transaction: it would bring home what is logged.
        loop {
            std::thread::park();
        }
    }
    for number in 1.. {
        pool.transaction(|tx| {
            // SAFETY: the root, which this thread alone uses.
            unsafe {
                tx.add(&raw const (*root).words)?;
                (*root).words = [number; WORDS];
            }
            Ok::<_, Error>(())
        })?;
        if number == UPDATES_MIN {
            println!("ready");
        }
    }
    Ok(())
}

/// Whether the pool holds what the killed process had made.
fn check(root: &Root, content: Content) -> Result<(), String> {
    let [first, ..] = root.words;
    let is_changed = !matches!(content, Content::Logged { .. });
    if is_changed && first < UPDATES_MIN || root.words.iter().any(|word| *word != first) {
        return Err(format!("half of a transaction: {:?}", root.words));
    }
    match content {
        Content::Entries(entries) => {
            let (mut count, mut sum) = (0u64, 0u64);
            for index in 0..root.bucket_count {
                // SAFETY: an element of the array, and the nodes of its chain.
                unsafe {
                    let mut node = *root.buckets.add(index as usize);
                    while let Some(seen) = node.as_ref() {
                        count += u64::from(seen.value == [seen.key as u8; VALUE]);
                        sum += seen.key;
                        node = seen.next;
                    }
                }
            }
            match (count, sum) == (entries, entries * (entries - 1) / 2) {
                true => Ok(()),
                false => Err(format!("{count} entries with the sum {sum}")),
            }
        }
        Content::Blocks(blocks) if root.blocks == blocks => Ok(()),
        Content::Blocks(_) => Err(format!("{} blocks", root.blocks)),
        Content::Logged { bytes, stride, .. } => {
            let (mut count, mut block) = (0, root.last_block);
            while !block.is_null() {
                // SAFETY: a block.
                let found = unsafe { std::slice::from_raw_parts(block, BLOCK) };
                let mut expected = vec![FILLED; BLOCK];
                expected[..8].copy_from_slice(&found[..8]);
                for part in changed_parts(bytes, stride) {
                    expected[part].fill(CHANGED);
                }
                if found != expected {
                    return Err("a block is not what it should be".to_owned());
                }
                count += 1;
                // SAFETY: its first word.
                block = unsafe { block.cast::<*mut u8>().read() };
            }
            match count == root.blocks {
                true => Ok(()),
                false => Err(format!("{count} of {} blocks", root.blocks)),
            }
        }
    }
}

/// One kill; how long recovery took.
fn round(dir: &Path, engine: usize, case: usize, wait: Duration) -> Result<Duration, String> {
    let said = |error: std::io::Error| error.to_string();
    let program = std::env::current_exe().map_err(said)?;
    let mut child = Command::new(program)
        .args(["--work", &engine.to_string(), &case.to_string(), "--dir"])
        .arg(dir)
        .stdout(Stdio::piped())
        .spawn()
        .map_err(said)?;
    let mut line = String::new();
    if let Some(out) = child.stdout.take() {
        BufReader::new(out).read_line(&mut line).map_err(said)?;
    }
    std::thread::sleep(wait);
    child.kill().map_err(said)?;
    child.wait().map_err(said)?;
    if line != "ready\n" {
        return Err("the process ended before it was killed".to_owned());
    }
    let recovered = || -> Result<(Duration, Result<(), String>), Error> {
        let store = Store::open(dir.join("store"), StoreOptions::new())?;
        let time = store
            .recovery()
            .map_or(Duration::ZERO, |report| report.log_time);
        let pool = store.open_pool("bench", PoolOptions::new().engine(ENGINES[engine].1))?;
        // SAFETY: the root, which nobody changes.
        let checked = check(unsafe { &*pool.root::<Root>()? }, CASES[case].1);
        Ok((time, checked))
    };
    let (time, checked) = recovered().map_err(|error| error.to_string())?;
    checked.map(|()| time)
}

fn bench(dir: &Path, rounds: usize, only: &str) -> Result<(), String> {
    let said = |error: std::io::Error| error.to_string();
    let mut out = std::io::stdout();
    let (mut random, head) = (
        Random::new(6),
        "recovery of      engine    ms  min-max  the paper's Romulus, ms",
    );
    writeln!(out, "{head}").map_err(said)?;
    for (case, (name, content, paper)) in CASES.iter().enumerate() {
        let engines = ENGINES.iter().enumerate();
        for (engine, (engine_name, _)) in engines.filter(|(_, (engine_name, engine))| {
            content.is_for(*engine) && format!("{name} {engine_name}").contains(only)
        }) {
            let mut times = Vec::new();
            for _ in 0..rounds {
                let dir = dir.join(format!("durum-bench-recovery-{}", std::process::id()));
                std::fs::create_dir(&dir).map_err(said)?;
                let wait = Duration::from_micros(random.below(20_000) as u64);
                let time = round(&dir, engine, case, wait);
                std::fs::remove_dir_all(&dir).map_err(said)?;
                times.push(time.map_err(|error| format!("{engine_name}, {name}: {error}"))?);
            }
            times.sort();
            let ms = |time: Duration| time.as_secs_f64() * 1e3;
            let (min, median, max) = (times[0], times[rounds / 2], times[rounds - 1]);
            writeln!(
                out,
                "{name:<16} {engine_name:<8} {:>6.3}  {:.3}-{:.3}  {paper}",
                ms(median),
                ms(min),
                ms(max)
            )
            .map_err(said)?;
        }
    }
    Ok(())
}

/// How long recovery takes after a kill in the middle of updates.
#[derive(Parser)]
#[command(name = "durum-bench-recovery", args_override_self = true)]
struct Options {
    #[arg(long, value_name = "N", default_value = "5")]
    rounds: NonZero<usize>,
    /// Where the stores are made.
    #[arg(long, default_value = "/dev/shm")]
    dir: PathBuf,
    /// Only rows with this text in their names.
    #[arg(long, value_name = "TEXT", default_value = "")]
    only: String,
    /// The process that is killed: the places of its engine and of its case.
    #[arg(long, num_args = 2, hide = true)]
    work: Vec<usize>,
}

fn main() -> ExitCode {
    let options = Options::parse();
    let result = match options.work[..] {
        [engine, case] => {
            work(&options.dir, ENGINES[engine].1, CASES[case].1).map_err(|error| error.to_string())
        }
        _ => bench(&options.dir, options.rounds.get(), &options.only),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("durum-bench-recovery: {error}");
            ExitCode::FAILURE
        }
    }
}
