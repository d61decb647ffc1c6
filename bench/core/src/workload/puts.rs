//! Rows of puts on a disk: one put a commit, durable when it returns, of one thread and of several.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::Path;

use super::{Asked, Row, Session, Workload};
use crate::error::{Error, Result};
use crate::inputs::random::Random;
use crate::inputs::{Scale, fill};
use crate::measure::{Meter, Sample};
use crate::side::{LARGE_VALUE, Put, Puts, PutsShape, SMALL_VALUE, Side};

const SMALL_ROWS: [Row; 2] = [
    Row {
        name: "put_seq_100",
        one_op: "durable put of a new entry behind 50 k others, keys ascending, value of 100 bytes",
    },
    Row {
        name: "put_random_100",
        one_op: "durable put of a new value, 100 bytes, for one of 54 k keys, uniformly at random",
    },
];

const LARGE_ROWS: [Row; 2] = [
    Row {
        name: "put_seq_4096",
        one_op: "durable put of a new entry behind 1 k others, keys ascending, value of 4 KiB",
    },
    Row {
        name: "put_random_4096",
        one_op: "durable put of a new value, 4 KiB, for one of 2 k keys, uniformly at random",
    },
];

const THREAD_ROWS: [Row; 4] = [
    Row {
        name: "put_threads_1",
        one_op: "durable put of a new value, 100 bytes, one thread, random keys of its own eighth of 50 k",
    },
    Row {
        name: "put_threads_2",
        one_op: "same, time per put when two threads put at the same time",
    },
    Row {
        name: "put_threads_4",
        one_op: "same, four threads",
    },
    Row {
        name: "put_threads_8",
        one_op: "same, eight threads",
    },
];

/// Within a tenth of a second a disk behaves alike for all sides; within seconds it may be ten times slower for one of
/// them.
const PARTS: usize = 8;
/// Bytes of values that are loaded in one commit.
const LOAD_BYTES: usize = 64 << 10;
/// The bits of a key that number a thread's keys; the thread's number stands above, so that each has a range of its
/// own.
const INDEX_BITS: u32 = 48;

fn key(thread: usize, index: usize) -> u64 {
    (thread as u64) << INDEX_BITS | index as u64
}

/// Which keys a row puts.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Keys {
    New,
    Known,
}

/// The row's number of threads and kind of keys.
fn plan_of(row: &str) -> (usize, Keys) {
    match row.strip_prefix("put_threads_").map(str::parse) {
        Some(Ok(threads)) => (threads, Keys::Known),
        _ if row.starts_with("put_seq") => (1, Keys::New),
        _ => (1, Keys::Known),
    }
}

pub(crate) struct PutsWorkload {
    rows: &'static [Row],
    value_len: usize,
    /// Entries before the first row, of all threads.
    entries: usize,
    /// Puts in each row, of all threads.
    puts: usize,
}

impl PutsWorkload {
    pub(crate) fn small(scale: &Scale) -> Self {
        PutsWorkload {
            rows: &SMALL_ROWS,
            value_len: SMALL_VALUE,
            entries: scale.disk_entries,
            puts: scale.disk_puts,
        }
    }

    pub(crate) fn large(scale: &Scale) -> Self {
        PutsWorkload {
            rows: &LARGE_ROWS,
            value_len: LARGE_VALUE,
            entries: scale.disk_large,
            puts: scale.disk_large,
        }
    }

    pub(crate) fn threads(scale: &Scale) -> Self {
        PutsWorkload {
            rows: &THREAD_ROWS,
            value_len: SMALL_VALUE,
            entries: scale.disk_entries,
            puts: scale.disk_puts,
        }
    }
}

impl Workload for PutsWorkload {
    fn rows(&self) -> &[Row] {
        self.rows
    }

    fn parts(&self) -> usize {
        PARTS
    }

    fn lone(&self) -> Option<usize> {
        self.rows.iter().position(|row| row.name == "put_threads_1")
    }

    fn open<'w>(&'w self, side: &'w dyn Side, dir: &'w Path) -> Result<Box<dyn Session + 'w>> {
        let threads = self.rows.iter().map(|row| plan_of(row.name).0);
        let threads = threads.max().unwrap_or(1);
        let shape = PutsShape {
            value_len: self.value_len,
            threads,
            keys_each_max: (self.entries + self.puts) / threads,
            puts_max: self.entries + self.puts * self.rows.len(),
        };
        let mut session = PutsSession {
            store: side.puts(dir, &shape)?,
            side: side.name().to_owned(),
            dir: File::open(dir).map_err(Error::file(dir))?,
            value_len: self.value_len,
            puts: self.puts / PARTS,
            seeds: vec![Vec::new(); threads],
            random: Random::new(self.puts as u64),
        };
        session.load(self.entries / threads)?;
        session.check(self.rows[0].name)?;
        Ok(Box::new(session))
    }
}

struct PutsSession {
    store: Box<dyn Puts>,
    side: String,
    /// Where the store lies.
    dir: File,
    value_len: usize,
    /// Puts of a part of a row, of all threads.
    puts: usize,
    /// What the store must hold: the seed of each value, by thread and index.
    seeds: Vec<Vec<u64>>,
    /// The same stream on every side.
    random: Random,
}

/// A put that is to come: which of the thread's keys, and the seed of the value.
type Planned = (usize, u64);

impl PutsSession {
    fn load(&mut self, entries_each: usize) -> Result<()> {
        let value_len = self.value_len;
        for (thread, mut handle) in self.store.handles().into_iter().enumerate() {
            let mut random = Random::new(key(thread, 0));
            let seeds: Vec<u64> = (0..entries_each).map(|_| random.bits()).collect();
            let keys: Vec<u64> = (0..entries_each).map(|index| key(thread, index)).collect();
            let at_once = LOAD_BYTES / value_len;
            for (keys, seeds) in keys.chunks(at_once).zip(seeds.chunks(at_once)) {
                let mut values = vec![0; seeds.len() * value_len];
                for (value, seed) in values.chunks_exact_mut(value_len).zip(seeds) {
                    fill(*seed, value);
                }
                handle.load(keys, &values)?;
            }
            self.seeds[thread] = seeds;
        }
        Ok(())
    }

    /// Reads everything back and compares it, byte for byte.
    fn check(&mut self, row: &'static str) -> Result<()> {
        let asked = Asked {
            side: &self.side,
            row,
        };
        let seeds = &self.seeds;
        let mut seen: Vec<Vec<bool>> = seeds.iter().map(|of| vec![false; of.len()]).collect();
        let mut wrong = Vec::new();
        let mut expected = vec![0; self.value_len];
        self.store.visit(&mut |key, value| {
            let (thread, index) = (key >> INDEX_BITS, key & ((1 << INDEX_BITS) - 1));
            let (thread, index) = (thread as usize, index as usize);
            match seeds.get(thread).and_then(|of| of.get(index)) {
                Some(seed) => fill(*seed, &mut expected),
                None => return wrong.push(key),
            }
            let again = std::mem::replace(&mut seen[thread][index], true);
            if again || value != expected {
                wrong.push(key);
            }
        })?;
        asked.expect(Vec::new(), wrong)?;
        let missing = seen.iter().flatten().filter(|seen| !**seen).count();
        asked.expect("0 missing".to_owned(), format!("{missing} missing"))
    }

    /// The puts of each thread in a part of a row, made before they are timed.
    fn plan(&mut self, row: &str) -> Vec<Vec<Planned>> {
        let (threads, keys) = plan_of(row);
        let each = self.puts / threads;
        let (random, seeds) = (&mut self.random, &self.seeds);
        let of_thread = |thread: usize| {
            let known = seeds[thread].len();
            let put = |number: usize| match keys {
                Keys::New => (known + number, random.bits()),
                Keys::Known => (random.below(known), random.bits()),
            };
            (0..each).map(put).collect()
        };
        (0..threads).map(of_thread).collect()
    }
}

/// Does the put of that number of a thread's plan.
fn worker<'h>(
    thread: usize,
    mut handle: Box<dyn Put + Send + 'h>,
    plan: &'h [Planned],
    mut value: Vec<u8>,
) -> impl FnMut(usize) -> Result<()> + Send + 'h {
    move |number| {
        let (index, seed) = plan[number];
        fill(seed, &mut value);
        handle.put(key(thread, index), &value)
    }
}

impl Session for PutsSession {
    fn run(&mut self, row: &'static str, meter: &mut Meter) -> Result<Sample> {
        let plans = self.plan(row);
        // What was written without a sync, by whomever, would be written while this side is timed.
        // SAFETY: a call on an open descriptor.
        if unsafe { libc::syncfs(self.dir.as_raw_fd()) } != 0 {
            return Err(Error::file("the file system")(
                std::io::Error::last_os_error(),
            ));
        }
        let handles = self.store.handles().into_iter().zip(&plans).enumerate();
        let workers = handles
            .map(|(thread, (handle, plan))| worker(thread, handle, plan, vec![0; self.value_len]));
        let workers: Vec<_> = workers.collect();
        let sample = meter.measure_each(plans[0].len(), workers)?;
        for (seeds, plan) in self.seeds.iter_mut().zip(&plans) {
            for (index, seed) in plan {
                match seeds.get_mut(*index) {
                    Some(known) => *known = *seed,
                    None => seeds.push(*seed),
                }
            }
        }
        self.check(row)?;
        Ok(sample)
    }
}
