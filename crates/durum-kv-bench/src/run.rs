//! The benchmarks.

use std::io::Write;
use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use crate::flags::Flags;
use crate::random::{Key, Random, Values};
use crate::stats::Stats;
use crate::store::Store;

/// What a benchmark does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Work {
    Write {
        random: bool,
        batch: u64,
    },
    Read {
        range: u64,
        missing: bool,
        few: bool,
    },
    Scan {
        reverse: bool,
    },
    Seek {
        ordered: bool,
    },
    Delete {
        random: bool,
    },
    ReadWhileWriting,
    Open,
    Compact,
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
    let read = |range, missing| Work::Read {
        range,
        missing,
        few: false,
    };
    let mut plan = Plan {
        work: Work::Compact,
        fresh: false,
        num: flags.num,
        value_size: flags.value_size,
        sync: flags.sync,
    };
    plan.fresh = matches!(
        name,
        "fillseq" | "fillbatch" | "fillrandom" | "fillsync" | "fill100K"
    );
    plan.work = match name {
        "fillseq" => write(false, 1),
        "fillbatch" => write(false, 1000),
        "fillrandom" | "overwrite" => write(true, 1),
        "fillsync" => {
            plan.num = (flags.num / 1000).max(1);
            plan.sync = true;
            write(true, 1)
        }
        "fill100K" => {
            plan.num = (flags.num / 1000).max(1);
            plan.value_size = 100 * 1000;
            write(true, 1)
        }
        "readseq" => Work::Scan { reverse: false },
        "readreverse" => Work::Scan { reverse: true },
        "readrandom" => read(flags.num, false),
        "readmissing" => read(flags.num, true),
        "readhot" => read(flags.num.div_ceil(100), false),
        "readrandomsmall" => Work::Read {
            range: flags.num,
            missing: false,
            few: true,
        },
        "seekrandom" => Work::Seek { ordered: false },
        "seekordered" => Work::Seek { ordered: true },
        "deleteseq" => Work::Delete { random: false },
        "deleterandom" => Work::Delete { random: true },
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

/// Runs the benchmarks that the flags name, and prints. What each took.
///
/// # Errors
/// What went wrong in the store; a name that is no benchmark.
pub fn run(
    flags: &Flags,
    mut store: impl Store,
    out: &mut dyn Write,
) -> Result<Vec<(String, Stats)>, String> {
    let print = |out: &mut dyn Write, text: &str| {
        out.write_all(text.as_bytes())
            .and_then(|()| out.flush())
            .map_err(|error| format!("the output: {error}"))
    };
    print(out, &header(flags, &store.version()))?;
    let mut is_fresh = !flags.use_existing_db;
    store.open(is_fresh)?;
    let mut taken = Vec::new();
    // No two threads of a run draw the same keys, nor do two benchmarks.
    let mut seed = 1000;
    for name in flags.benchmarks.split(',').filter(|name| !name.is_empty()) {
        if let "stats" | "sstables" = name {
            let text = store.property(&format!("leveldb.{name}"));
            print(
                out,
                &format!("\n{}\n", text.unwrap_or_else(|| "(failed)".into())),
            )?;
            continue;
        }
        let plan =
            plan(name, flags).ok_or_else(|| format!("unknown benchmark '{name}'; see --help"))?;
        if plan.fresh {
            if flags.use_existing_db {
                print(
                    out,
                    &format!("{name:<12} : skipped (--use_existing_db is true)\n"),
                )?;
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
        print(out, &stats.report(name))?;
        taken.push((name.to_owned(), stats));
    }
    store.close();
    Ok(taken)
}

fn header(flags: &Flags, version: &str) -> String {
    let key_size = 16 + flags.key_prefix as u64;
    let compressed = (flags.value_size as f64 * flags.compression_ratio + 0.5) as u64;
    let mega = |value: u64| ((key_size + value) * flags.num) as f64 / 1048576.0;
    format!(
        "Store:      {version}\n\
        Keys:       {key_size} bytes each\n\
        Values:     {} bytes each ({compressed} bytes after compression)\n\
        Entries:    {}\n\
        RawSize:    {:.1} MB (estimated)\n\
        ------------------------------------------------\n",
        flags.value_size,
        flags.num,
        mega(flags.value_size as u64),
    )
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

struct Worker<'r, S> {
    plan: &'r Plan,
    store: &'r S,
    reads: u64,
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
            reads: flags.reads.unwrap_or(flags.num),
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
            Work::Write { random, batch } => self.write(random, batch),
            Work::Read {
                range,
                missing,
                few,
            } => self.read(range, missing, few),
            Work::ReadWhileWriting => self.read(self.plan.num, false, false),
            Work::Scan { reverse } => {
                let (seen, bytes) = self.store.scan(reverse, self.reads)?;
                self.stats.done = seen;
                self.stats.bytes = bytes;
                Ok(())
            }
            Work::Seek { ordered } => self.seek(ordered),
            Work::Delete { random } => self.delete(random),
            Work::Compact => {
                self.store.compact()?;
                self.stats.finished_one();
                Ok(())
            }
            // Has the store for itself.
            Work::Open => Ok(()),
        }
    }

    fn number(&mut self, random: bool, at: u64) -> u64 {
        match random {
            true => self.random.below(self.plan.num),
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

    fn write(&mut self, random: bool, batch: u64) -> Result<(), String> {
        let mut at = 0;
        while at < self.plan.num {
            let end = (at + batch).min(self.plan.num);
            let mut changes = Vec::new();
            for at in at..end {
                let number = self.number(random, at);
                let value = self.values.next(self.plan.value_size).to_vec();
                changes.push((self.key.of(number).to_vec(), Some(value)));
                self.stats.bytes += (changes.last()).map_or(0, |(key, _)| key.len() as u64);
                self.stats.bytes += self.plan.value_size as u64;
                self.stats.finished_one();
            }
            self.store.write(&changes, self.plan.sync)?;
            at = end;
        }
        self.say_ops();
        Ok(())
    }

    /// As LevelDB does, where it is another number than usual.
    fn say_ops(&mut self) {
        if self.plan.num < 100_000 {
            self.stats.message = format!("({} ops)", self.plan.num);
        }
    }

    fn read(&mut self, range: u64, missing: bool, few: bool) -> Result<(), String> {
        let reads = match few {
            true => (self.reads / 1000).max(1),
            false => self.reads,
        };
        let (mut found, mut value, mut absent) = (0, Vec::new(), Vec::new());
        for _ in 0..reads {
            let number = self.random.below(range);
            let mut key = self.key.of(number);
            if missing {
                // Between two keys: one that is there, and something behind it.
                absent.clear();
                absent.extend_from_slice(key);
                absent.push(b'.');
                key = &absent;
            }
            value.clear();
            found += u64::from(self.store.get(key, &mut value)?);
            self.stats.finished_one();
        }
        self.stats.message = format!("({found} of {reads} found)");
        Ok(())
    }

    fn seek(&mut self, ordered: bool) -> Result<(), String> {
        let (mut found, mut number) = (0, 0);
        for _ in 0..self.reads {
            number = match ordered {
                true => (number + self.random.below(100)) % self.plan.num,
                false => self.random.below(self.plan.num),
            };
            found += u64::from(self.store.seek(self.key.of(number))?);
            self.stats.finished_one();
        }
        self.stats.message = format!("({found} of {} found)", self.plan.num);
        Ok(())
    }

    fn delete(&mut self, random: bool) -> Result<(), String> {
        for at in 0..self.plan.num {
            let number = self.number(random, at);
            let change = [(self.key.of(number).to_vec(), None)];
            self.store.write(&change, self.plan.sync)?;
            self.stats.finished_one();
        }
        Ok(())
    }

    /// Writes as long as others read. What it takes is not counted.
    fn write_until_done(&mut self, readers: &AtomicUsize) -> Result<(), String> {
        while readers.load(Ordering::SeqCst) > 0 {
            let number = self.random.below(self.plan.num);
            let value = self.values.next(self.plan.value_size);
            self.store.put(self.key.of(number), value, self.plan.sync)?;
        }
        self.stats = Stats::begin(self.histogram);
        Ok(())
    }
}
