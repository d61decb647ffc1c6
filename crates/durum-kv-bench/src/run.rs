//! The benchmarks.

use std::io::Write;
use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use crate::environment;
use crate::flags::Flags;
use crate::random::{Key, Random, Values};
use crate::stats::Stats;
use crate::store::Store;

/// Benchmarks of LevelDB's that time a part of it, which no store here need have.
const OF_LEVELDB: [&str; 3] = ["crc32c", "snappycomp", "snappyuncomp"];

/// Where a run prints: results, and what is said beside them.
#[derive(Debug)]
pub struct Output<O, E> {
    /// What a script would read.
    pub out: O,
    /// What is for people.
    pub err: E,
}

impl<O: Write, E: Write> Output<O, E> {
    fn print(&mut self, text: &str) -> Result<(), String> {
        put(&mut self.out, text)
    }

    fn tell(&mut self, text: &str) -> Result<(), String> {
        put(&mut self.err, text)
    }
}

fn put(to: &mut impl Write, text: &str) -> Result<(), String> {
    to.write_all(text.as_bytes())
        .and_then(|()| to.flush())
        .map_err(|error| format!("the output: {error}"))
}

/// What a benchmark does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Work {
    Write {
        random: bool,
        batch: u64,
    },
    /// Several keys in a call, each of which is put by itself.
    WriteMany {
        random: bool,
    },
    /// Each is durable when the next one is made.
    WriteFlying {
        random: bool,
    },
    Read(Reads),
    ReadMany,
    Scan {
        reverse: bool,
    },
    Seek {
        ordered: bool,
    },
    Delete {
        random: bool,
        batch: u64,
    },
    ReadWhileWriting,
    Open,
    Compact,
}

/// Which keys are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reads {
    Any,
    /// A thousandth as many.
    Few,
    /// Of the first hundredth.
    Hot,
    /// That are not there.
    Missing,
}

/// A benchmark as it is to be run.
#[derive(Clone, Debug)]
struct Plan {
    work: Work,
    /// The database begins empty.
    fresh: bool,
    num: u64,
    value_size: usize,
    sync: bool,
}

fn plan(name: &str, flags: &Flags) -> Option<Plan> {
    let write = |random, batch| Work::Write { random, batch };
    let delete = |random, batch| Work::Delete { random, batch };
    let mut plan = Plan {
        work: Work::Compact,
        fresh: false,
        num: flags.num,
        value_size: flags.value_size,
        sync: flags.sync,
    };
    plan.fresh = matches!(
        name,
        "fillseq"
            | "fillbatch"
            | "fillone"
            | "fillrandom"
            | "fillsync"
            | "fill100K"
            | "fillseqmulti"
            | "fillrandommulti"
            | "fillseqflying"
    );
    plan.work = match name {
        "fillseq" => write(false, 1),
        "fillbatch" => write(false, 1000),
        "fillone" => write(false, flags.num),
        "fillrandom" | "overwrite" => write(true, 1),
        "fillsync" => {
            plan.num = flags.sync_writes.unwrap_or(flags.num / 1000);
            plan.sync = true;
            write(true, 1)
        }
        "fill100K" => {
            plan.num = flags.large_writes.unwrap_or(flags.num / 1000);
            plan.value_size = 100 * 1000;
            write(true, 1)
        }
        "fillseqmulti" => Work::WriteMany { random: false },
        "fillrandommulti" | "overwritemulti" => Work::WriteMany { random: true },
        "fillseqflying" => Work::WriteFlying { random: false },
        "overwriteflying" => Work::WriteFlying { random: true },
        "readseq" => Work::Scan { reverse: false },
        "readreverse" => Work::Scan { reverse: true },
        "readrandom" => Work::Read(Reads::Any),
        "readrandommulti" => Work::ReadMany,
        "readmissing" => Work::Read(Reads::Missing),
        "readhot" => Work::Read(Reads::Hot),
        "readrandomsmall" => Work::Read(Reads::Few),
        "seekrandom" => Work::Seek { ordered: false },
        "seekordered" => Work::Seek { ordered: true },
        "deleteseq" => delete(false, 1),
        "deleterandom" => delete(true, 1),
        "deleteone" => delete(false, flags.num),
        "readwhilewriting" => Work::ReadWhileWriting,
        "open" => {
            plan.num = (flags.num / 10_000).max(1);
            Work::Open
        }
        "compact" => Work::Compact,
        _ => return None,
    };
    Some(plan)
}

/// Runs the benchmarks that the flags name, and prints. What each took. A name that is no benchmark is told, and the
/// others run.
///
/// # Errors
/// What went wrong in the store or in printing.
pub fn run(
    flags: &Flags,
    mut store: impl Store,
    output: &mut Output<impl Write, impl Write>,
) -> Result<Vec<(String, Stats)>, String> {
    let version = store.version();
    let (name, version) = version.split_once(' ').unwrap_or((&version, "unknown"));
    output.tell(&format!("{:<11} version {version}\n", format!("{name}:")))?;
    output.tell(&environment::lines())?;
    output.print(&header(flags))?;
    let mut is_fresh = !flags.use_existing_db;
    store.open(is_fresh)?;
    let mut taken = Vec::new();
    // No two threads of a run draw the same keys, nor do two benchmarks.
    let mut seed = 1000;
    for name in flags.benchmarks.split(',').filter(|name| !name.is_empty()) {
        let Some(plan) = plan(name, flags) else {
            match name {
                "stats" | "sstables" => {
                    let text = store.property(&format!("leveldb.{name}"));
                    output.print(&format!(
                        "\n{}\n",
                        text.unwrap_or_else(|| "(failed)".into())
                    ))?;
                }
                "heapprofile" => output.tell("there are no heap profiles here\n")?,
                _ if OF_LEVELDB.contains(&name) => output.print(&format!(
                    "{name:<12} : skipped (times a part of LevelDB's)\n"
                ))?,
                _ => output.tell(&format!("unknown benchmark '{name}'\n"))?,
            }
            continue;
        };
        if plan.fresh {
            if flags.use_existing_db {
                output.print(&format!(
                    "{name:<12} : skipped (--use_existing_db is true)\n"
                ))?;
                continue;
            }
            if !is_fresh {
                store.open(true)?;
            }
        }
        is_fresh = false;
        let stats = match plan.work {
            Work::Open => time_opening(&plan, &mut store, flags)?,
            _ => time(&plan, flags, &store, &mut seed)?,
        };
        output.print(&stats.report(name))?;
        if let Some(comparisons) = store.take_comparisons() {
            output.print(&format!("Comparisons: {comparisons}\n"))?;
        }
        taken.push((name.to_owned(), stats));
    }
    store.close();
    Ok(taken)
}

fn header(flags: &Flags) -> String {
    let key_size = 16 + flags.key_prefix as u64;
    let compressed = flags.value_size as f64 * flags.compression_ratio;
    let mega = |value: f64| (key_size as f64 + value) * flags.num as f64 / 1048576.0;
    let mut text = format!(
        "Keys:       {key_size} bytes each\n\
        Values:     {} bytes each ({} bytes after compression)\n\
        Entries:    {}\n\
        RawSize:    {:.1} MB (estimated)\n\
        FileSize:   {:.1} MB (estimated)\n",
        flags.value_size,
        (compressed + 0.5) as u64,
        flags.num,
        mega(flags.value_size as f64),
        mega(compressed),
    );
    if cfg!(debug_assertions) {
        text += "WARNING: built with debug assertions, which take most of the time\n";
    }
    text + "------------------------------------------------\n"
}

fn time_opening(plan: &Plan, store: &mut impl Store, flags: &Flags) -> Result<Stats, String> {
    let mut stats = Stats::begin(flags.histogram);
    for _ in 0..plan.num {
        store.open(false)?;
        stats.finished_one();
    }
    stats.stop();
    Ok(stats)
}

/// Runs a benchmark in all its threads.
fn time(plan: &Plan, flags: &Flags, store: &impl Store, seed: &mut u64) -> Result<Stats, String> {
    let writes_beside = plan.work == Work::ReadWhileWriting;
    let threads = flags.threads + usize::from(writes_beside);
    let barrier = Barrier::new(threads);
    let first_seed = *seed + 1;
    *seed += threads as u64;
    let readers = AtomicUsize::new(flags.threads);
    let results = thread::scope(|scope| {
        let running: Vec<_> = (0..threads)
            .map(|number| {
                let (barrier, readers) = (&barrier, &readers);
                scope.spawn(move || {
                    let mut worker = Worker::new(plan, flags, store, first_seed + number as u64);
                    barrier.wait();
                    worker.stats = Stats::begin(flags.histogram);
                    let is_writer = writes_beside && number == flags.threads;
                    let result = match is_writer {
                        true => worker.write_until_done(readers),
                        false => worker.work(),
                    };
                    worker.stats.stop();
                    if !is_writer {
                        readers.fetch_sub(1, Ordering::SeqCst);
                    }
                    result.map(|()| (!is_writer).then_some(worker.stats))
                })
            })
            .collect();
        let joined = running.into_iter().map(|thread| thread.join());
        joined
            .map(|result| result.unwrap_or_else(|_| Err("a thread panicked".into())))
            .collect::<Result<Vec<_>, String>>()
    })?;
    let mut results = results.into_iter().flatten();
    let mut sum = results.next().ok_or("no thread has run")?;
    results.for_each(|stats| sum.merge(&stats));
    Ok(sum)
}

/// Gives a place that is used again and again these bytes.
fn fill(place: &mut Vec<u8>, bytes: &[u8]) {
    place.clear();
    place.extend_from_slice(bytes);
}

struct Worker<'r, S> {
    plan: &'r Plan,
    store: &'r S,
    /// Keys are drawn below it, also by benchmarks that do less.
    num: u64,
    reads: u64,
    multi: u64,
    random: Random,
    values: Values,
    key: Key,
    stats: Stats,
    histogram: bool,
}

impl<'r, S: Store> Worker<'r, S> {
    fn new(plan: &'r Plan, flags: &Flags, store: &'r S, seed: u64) -> Self {
        Self {
            plan,
            store,
            num: flags.num,
            reads: flags.reads.unwrap_or(flags.num),
            multi: flags.multi,
            random: Random::new(seed),
            values: Values::new(flags.compression_ratio, plan.value_size),
            key: Key::new(flags.key_prefix),
            stats: Stats::begin(false),
            histogram: flags.histogram,
        }
    }

    fn work(&mut self) -> Result<(), String> {
        match self.plan.work {
            Work::Write { random, batch: 1 } => self.put(random),
            Work::Write { random, batch } => self.write(random, batch, true),
            Work::WriteMany { random } => self.write_many(random),
            Work::WriteFlying { random } => self.write_flying(random),
            Work::Read(reads) => self.read(reads),
            Work::ReadMany => self.read_many(),
            Work::ReadWhileWriting => self.read(Reads::Any),
            Work::Scan { reverse } => {
                let stats = &mut self.stats;
                self.store.scan(reverse, self.reads, &mut |bytes| {
                    stats.bytes += bytes as u64;
                    stats.finished_one();
                })
            }
            Work::Seek { ordered: false } => self.seek(),
            Work::Seek { ordered: true } => self.seek_in_order(),
            Work::Delete { random, batch } => self.write(random, batch, false),
            Work::Compact => self.store.compact(),
            // Has the store for itself.
            Work::Open => Ok(()),
        }
    }

    fn number(&mut self, random: bool, at: u64) -> u64 {
        match random {
            true => self.random.below(self.num),
            false => at,
        }
    }

    fn put(&mut self, random: bool) -> Result<(), String> {
        for at in 0..self.plan.num {
            let number = self.number(random, at);
            let (key, value) = (self.key.of(number), self.values.next(self.plan.value_size));
            self.store.put(key, value, self.plan.sync)?;
            self.stats.bytes += (key.len() + value.len()) as u64;
            self.stats.finished_one();
        }
        self.say_ops();
        Ok(())
    }

    /// Puts or deletes keys, so many in a batch.
    fn write(&mut self, random: bool, batch: u64, puts: bool) -> Result<(), String> {
        let mut at = 0;
        while at < self.plan.num {
            let end = match puts {
                // A batch is always full, also where the last one goes past the end.
                true => at + batch,
                false => (at + batch).min(self.plan.num),
            };
            let mut changes = Vec::new();
            for at in at..end {
                let number = self.number(random, at);
                let key = self.key.of(number).to_vec();
                let value = puts.then(|| self.values.next(self.plan.value_size).to_vec());
                if let Some(value) = &value {
                    self.stats.bytes += (key.len() + value.len()) as u64;
                }
                changes.push((key, value));
                self.stats.finished_one();
            }
            self.store.write(&changes, self.plan.sync)?;
            at = end;
        }
        if puts {
            self.say_ops();
        }
        Ok(())
    }

    /// The same, several in a call that is no batch.
    fn write_many(&mut self, random: bool) -> Result<(), String> {
        let mut pairs = Vec::new();
        let mut at = 0;
        while at < self.plan.num {
            let end = (at + self.multi).min(self.plan.num);
            pairs.resize_with((end - at) as usize, Default::default);
            for ((key, value), at) in pairs.iter_mut().zip(at..) {
                let number = self.number(random, at);
                fill(key, self.key.of(number));
                fill(value, self.values.next(self.plan.value_size));
                self.stats.bytes += (key.len() + value.len()) as u64;
            }
            self.store.multi_put(&pairs, self.plan.sync)?;
            pairs.iter().for_each(|_| self.stats.finished_one());
            at = end;
        }
        self.say_ops();
        Ok(())
    }

    /// Puts keys that are durable when the next one is put.
    fn write_flying(&mut self, random: bool) -> Result<(), String> {
        for at in 0..self.plan.num {
            let number = self.number(random, at);
            let (key, value) = (self.key.of(number), self.values.next(self.plan.value_size));
            self.store.put_begin(key, value)?;
            self.stats.bytes += (key.len() + value.len()) as u64;
            self.stats.finished_one();
        }
        self.store.wait()?;
        self.say_ops();
        Ok(())
    }

    /// Where a benchmark makes fewer writes than there are entries.
    fn say_ops(&mut self) {
        if self.plan.num != self.num {
            self.stats.message = format!("({} ops)", self.plan.num);
        }
    }

    fn read(&mut self, which: Reads) -> Result<(), String> {
        let reads = match which {
            Reads::Few => self.reads / 1000,
            _ => self.reads,
        };
        let range = match which {
            Reads::Hot => self.num.div_ceil(100),
            _ => self.num,
        };
        let mut value = Vec::new();
        for _ in 0..reads {
            let mut key = self.key.of(self.random.below(range));
            if which == Reads::Missing {
                // All keys are one byte longer than this.
                key = &key[..key.len() - 1];
            }
            value.clear();
            self.stats.found += u64::from(self.store.get(key, &mut value)?);
            self.stats.finished_one();
        }
        if let Reads::Any | Reads::Few = which {
            self.say_found();
        }
        Ok(())
    }

    fn read_many(&mut self) -> Result<(), String> {
        let (mut keys, mut values) = (Vec::new(), Vec::new());
        let mut left = self.reads;
        while left > 0 {
            let count = left.min(self.multi);
            keys.resize_with(count as usize, Vec::new);
            for key in &mut keys {
                fill(key, self.key.of(self.random.below(self.num)));
            }
            values.clear();
            self.stats.found += self.store.multi_get(&keys, &mut values)?;
            keys.iter().for_each(|_| self.stats.finished_one());
            left -= count;
        }
        self.say_found();
        Ok(())
    }

    fn say_found(&mut self) {
        self.stats.message = format!("({} of {} found)", self.stats.found, self.plan.num);
    }

    fn seek(&mut self) -> Result<(), String> {
        for _ in 0..self.reads {
            let number = self.random.below(self.num);
            self.stats.found += u64::from(self.store.seek(self.key.of(number))?);
            self.stats.finished_one();
        }
        self.say_found();
        Ok(())
    }

    fn seek_in_order(&mut self) -> Result<(), String> {
        let (random, num, key, stats) =
            (&mut self.random, self.num, &mut self.key, &mut self.stats);
        let mut number = 0;
        let next = &mut |into: &mut Vec<u8>| {
            number = (number + random.below(100)) % num;
            into.clear();
            into.extend_from_slice(key.of(number));
        };
        let seen = &mut |found| {
            stats.found += u64::from(found);
            stats.finished_one();
        };
        self.store.seek_many(self.reads, next, seen)?;
        self.say_found();
        Ok(())
    }

    /// Writes as long as others read. What it takes is not counted.
    fn write_until_done(&mut self, readers: &AtomicUsize) -> Result<(), String> {
        while readers.load(Ordering::SeqCst) > 0 {
            let number = self.random.below(self.num);
            let value = self.values.next(self.plan.value_size);
            self.store.put(self.key.of(number), value, self.plan.sync)?;
        }
        self.stats = Stats::begin(self.histogram);
        Ok(())
    }
}
