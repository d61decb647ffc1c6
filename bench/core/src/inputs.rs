//! What the rows work on: made once, from a fixed seed, and given to every side alike.

pub mod programs;
pub mod random;
pub mod zipf;

use std::collections::BTreeMap;

pub use programs::Texts;
use random::{Random, mix, single_cycle};
use zipf::Zipf;

/// The exponent of YCSB's request distribution.
pub const ZIPF_THETA: f64 = 0.99;

/// How many times as many operations a row of a shared structure has if all are reads: they are that much faster, and
/// more.
pub const READS_MORE: usize = 4;

/// One key-value operation: a read where `value` is 0, else an update (or an entry to insert). The tree stores the
/// value itself, the map the 100 bytes that [`Value::of`] makes of it.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Op {
    /// The key.
    pub key: u64,
    /// The new value, or 0.
    pub value: u64,
}

/// A value of the map: 100 bytes, the size of a YCSB field and of LevelDB's benchmark values.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, durum::typed::PSafe)]
#[durum(name = "bench map value")]
pub struct Value {
    words: [u32; 25],
}

impl Value {
    /// The value that a 64-bit seed stands for.
    #[inline]
    pub fn of(seed: u64) -> Value {
        let base = (seed as u32).wrapping_add((seed >> 32) as u32);
        let word = |place: usize| base.wrapping_add((place as u32).wrapping_mul(0x9e37_79b9));
        Value {
            words: std::array::from_fn(word),
        }
    }

    /// Depends on every word: who knows it has read the whole value.
    #[inline]
    pub fn digest(&self) -> u64 {
        self.words.iter().map(|word| u64::from(*word)).sum()
    }
}

/// The bytes that a 64-bit seed stands for, in stores whose values have any length.
pub fn fill(seed: u64, value: &mut [u8]) {
    let mut word = seed;
    for bytes in value.chunks_mut(8) {
        bytes.copy_from_slice(&word.to_le_bytes()[..bytes.len()]);
        word = word.wrapping_add(0x9e37_79b9_7f4a_7c15);
    }
}

/// What a walk over a whole structure found, or should find.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Walk {
    /// Number of elements.
    pub count: u64,
    /// Wrapping sum of the values (list), of key xor value (tree), of key xor digest of the value (map).
    pub sum: u64,
    /// The keys ascend strictly, or the structure has no order.
    pub sorted: bool,
}

/// How much work each row does in one round.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scale {
    /// Elements of the list, the tree and the map.
    pub elements: usize,
    /// Nodes of the chase ring, a line each: few enough for the second-level cache. A ring that has to come from memory
    /// measures which of its lines the last-level cache happens to keep, not what following a pointer costs.
    pub ring: usize,
    /// Operations of each YCSB workload.
    pub requests: usize,
    /// Operations of each thread in the rows of structures that threads share; where all are reads, [`READS_MORE`]
    /// times as many.
    pub shared: usize,
    /// Elements of each of the programs.
    pub programs: usize,
    /// Words of the word count.
    pub words: usize,
    /// Integers that the swap rows draw from.
    pub integers: usize,
    /// Swaps of the row with one swap per transaction; the others do as many in fewer transactions.
    pub swaps: usize,
    /// Operations of `floor`, `add_8`, `alloc_8`, `alloc_256` and their frees.
    pub small: usize,
    /// Operations of `add_4096`, `alloc_4096` and its free.
    pub large: usize,
    /// Operations of `tx_empty` and `deref`.
    pub fast: usize,
    /// Entries on a disk before puts of small values begin.
    pub disk_entries: usize,
    /// Puts of small values on a disk in each row, of all threads.
    pub disk_puts: usize,
    /// Entries before, and puts of, large values on a disk.
    pub disk_large: usize,
}

impl Scale {
    /// What reported numbers come from.
    pub fn full() -> Scale {
        Scale {
            elements: 1_000_000,
            ring: 10_000,
            requests: 1_000_000,
            shared: 50_000,
            programs: 200_000,
            words: 1_000_000,
            integers: 10_000,
            swaps: 200_000,
            small: 100_000,
            large: 10_000,
            fast: 2_000_000,
            disk_entries: 50_000,
            disk_puts: 4_000,
            disk_large: 1_000,
        }
    }

    /// Little enough to be stepped through instruction by instruction.
    pub fn tiny() -> Scale {
        Scale {
            elements: 200,
            ring: 200,
            requests: 200,
            shared: 100,
            programs: 200,
            words: 2_000,
            integers: 10_000,
            swaps: 1024,
            small: 100,
            large: 50,
            fast: 100,
            disk_entries: 200,
            disk_puts: 64,
            disk_large: 64,
        }
    }

    /// A smoke test: everything runs and is verified; the times mean little.
    pub fn quick() -> Scale {
        Scale {
            elements: 20_000,
            ring: 10_000,
            requests: 20_000,
            shared: 4_000,
            programs: 10_000,
            words: 50_000,
            integers: 10_000,
            swaps: 10_240,
            small: 5_000,
            large: 500,
            fast: 50_000,
            disk_entries: 2_000,
            disk_puts: 400,
            disk_large: 100,
        }
    }
}

/// Successors in the chase ring.
pub fn ring(scale: &Scale) -> Vec<u32> {
    single_cycle(scale.ring, &mut Random::new(1))
}

/// Pairs of indices to be swapped; the two of a pair differ.
pub fn pairs(scale: &Scale) -> Vec<[u32; 2]> {
    let mut random = Random::new(2);
    let draw = |random: &mut Random| {
        let left = random.below(scale.integers);
        let right = random.below(scale.integers - 1);
        [
            left as u32,
            if right < left { right } else { right + 1 } as u32,
        ]
    };
    (0..scale.swaps).map(|_| draw(&mut random)).collect()
}

/// Values of a list of so many.
pub fn values(count: usize) -> Vec<u64> {
    (0..count as u64).map(|i| mix(i ^ 0x7a1e)).collect()
}

/// Inputs of the tree rows.
#[derive(Debug)]
pub struct TreeInputs {
    /// Entries in the order of insertion, with distinct random keys.
    pub entries: Vec<Op>,
    /// The keys in another order, for lookups.
    pub lookups: Vec<u64>,
    /// The keys in a third order, for deletions.
    pub deletions: Vec<u64>,
    /// The sum of all values.
    pub value_sum: u64,
    /// What a walk finds after all insertions.
    pub walk: Walk,
}

/// Makes the inputs of the rows of a tree with so many entries.
pub fn tree(entries_count: usize) -> TreeInputs {
    let entries = entries(entries_count);
    let mut random = Random::new(3);
    let mut shuffled = || {
        let mut keys: Vec<u64> = entries.iter().map(|entry| entry.key).collect();
        random.shuffle(&mut keys);
        keys
    };
    TreeInputs {
        lookups: shuffled(),
        deletions: shuffled(),
        value_sum: entries
            .iter()
            .fold(0, |sum, entry| sum.wrapping_add(entry.value)),
        walk: walk_of(&entries, |value| value),
        entries,
    }
}

/// One YCSB workload, with its right answer.
#[derive(Debug)]
pub struct Requests {
    /// How many requests there are; one may be two operations.
    pub count: usize,
    /// The operations, in order.
    pub ops: Vec<Op>,
    /// The sum of the digests of the values that the reads find.
    pub read_sum: u64,
    /// What a walk over the map finds afterwards.
    pub walk: Walk,
}

/// A request of YCSB E: a scan where `length` is not 0, else an insertion.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scan {
    /// The key; of a scan where it begins.
    pub key: u64,
    /// The value of the entry that is inserted.
    pub value: u64,
    /// How many entries are read, fewer at the end of the keys.
    pub length: u64,
}

/// Inputs of the row of scans.
#[derive(Debug)]
pub struct ScanInputs {
    /// Entries to load.
    pub entries: Vec<Op>,
    /// The requests, in order.
    pub requests: Vec<Scan>,
    /// The sum of the values that the scans find.
    pub read_sum: u64,
    /// What a walk finds afterwards.
    pub walk: Walk,
}

/// YCSB E: one request in twenty inserts an entry, the others read up to a hundred that follow a key, whose popularity
/// is zipfian. A tenth as many as of other requests: each reads fifty entries.
pub fn scans(scale: &Scale) -> ScanInputs {
    let entries = entries(scale.elements);
    let mut random = Random::new(6);
    let zipf = Zipf::new(scale.elements, ZIPF_THETA);
    let mut state: BTreeMap<u64, u64> = entries.iter().map(|op| (op.key, op.value)).collect();
    let mut read_sum = 0u64;
    let mut requests = Vec::new();
    for number in 0..scale.requests as u64 / 10 {
        if random.below(100) < INSERT_PERCENT {
            let (key, value) = (mix(scale.elements as u64 + number), random.bits() | 1);
            state.insert(key, value);
            requests.push(Scan {
                key,
                value,
                length: 0,
            });
        } else {
            let key = entries[zipf.item(&mut random)].key;
            let length = 1 + random.below(SCAN_MAX);
            let values = state.range(key..).take(length).map(|(_, value)| value);
            read_sum = values.fold(read_sum, |sum, value| sum.wrapping_add(*value));
            requests.push(Scan {
                key,
                value: 0,
                length: length as u64,
            });
        }
    }
    let end: Vec<Op> = (state.into_iter())
        .map(|(key, value)| Op { key, value })
        .collect();
    ScanInputs {
        entries,
        requests,
        read_sum,
        walk: walk_of(&end, |value| value),
    }
}

/// Inputs of the map rows; the workloads run one after the other on the same map.
#[derive(Debug)]
pub struct MapInputs {
    /// Entries to load.
    pub entries: Vec<Op>,
    /// What a walk over the loaded map finds.
    pub walk: Walk,
    /// log2 of the number of buckets: about one entry per bucket.
    pub bucket_bits: u32,
    /// YCSB A: half of the operations are updates.
    pub a: Requests,
    /// YCSB B: one in twenty is an update.
    pub b: Requests,
    /// YCSB C: reads only.
    pub c: Requests,
    /// YCSB D: one in twenty inserts an entry, the others mostly read what was inserted last.
    pub d: Requests,
    /// YCSB F: half of them read an entry and then update it.
    pub f: Requests,
}

/// Makes the inputs of the map rows.
pub fn map(scale: &Scale) -> MapInputs {
    let entries = entries(scale.elements);
    let digest = |seed| Value::of(seed).digest();
    let mut state = entries.clone();
    let mut random = Random::new(4);
    let zipf = Zipf::new(scale.elements, ZIPF_THETA);
    let mut requests = |update_percent: usize| {
        let mut drawing = Drawing {
            random: &mut random,
            state: &mut state,
            update_percent,
            content: digest,
        };
        let (ops, read_sum) = drawing.requests(scale.requests, |random| zipf.item(random));
        Requests {
            count: ops.len(),
            ops,
            read_sum,
            walk: walk_of(&state, digest),
        }
    };
    let [a, b, c] = [50, 5, 0].map(&mut requests);
    let d = latest(scale.requests, &zipf, &mut random, &mut state);
    let f = read_and_updated(scale.requests, &zipf, &mut random, &mut state);
    MapInputs {
        walk: walk_of(&entries, digest),
        bucket_bits: (scale.elements as u64).next_power_of_two().ilog2(),
        a,
        b,
        c,
        d,
        f,
        entries,
    }
}

/// Of YCSB D and E, the share of requests that insert an entry.
const INSERT_PERCENT: usize = 5;

/// The most entries that a request of YCSB E reads.
const SCAN_MAX: usize = 100;

/// YCSB D. `state` has the entries in the order in which they were inserted.
fn latest(count: usize, zipf: &Zipf, random: &mut Random, state: &mut Vec<Op>) -> Requests {
    let (mut ops, mut read_sum) = (Vec::with_capacity(count), 0u64);
    for _ in 0..count {
        if random.below(100) < INSERT_PERCENT {
            let key = mix(state.len() as u64);
            let value = random.bits() | 1;
            state.push(Op { key, value });
            ops.push(Op { key, value });
        } else {
            let Op { key, value } = state[state.len() - 1 - zipf.rank(random)];
            read_sum = read_sum.wrapping_add(Value::of(value).digest());
            ops.push(Op { key, value: 0 });
        }
    }
    Requests {
        count,
        ops,
        read_sum,
        walk: walk_of(state, |value| Value::of(value).digest()),
    }
}

/// YCSB F: a request is a read, or a read and an update of the same key.
fn read_and_updated(count: usize, zipf: &Zipf, random: &mut Random, state: &mut [Op]) -> Requests {
    let (mut ops, mut read_sum) = (Vec::with_capacity(2 * count), 0u64);
    for _ in 0..count {
        let entry = &mut state[zipf.item(random)];
        read_sum = read_sum.wrapping_add(Value::of(entry.value).digest());
        ops.push(Op {
            key: entry.key,
            value: 0,
        });
        if random.below(100) < 50 {
            entry.value = random.bits() | 1;
            ops.push(*entry);
        }
    }
    Requests {
        count,
        ops,
        read_sum,
        walk: walk_of(state, |value| Value::of(value).digest()),
    }
}

/// Inputs of the rows of a structure that threads share; they run one after the other on the same structure.
#[derive(Debug)]
pub struct SharedInputs {
    /// Entries to load.
    pub entries: Vec<Op>,
    /// Updates, half of each, and reads: by one thread, then by two.
    pub rows: Vec<SharedRow>,
}

/// Inputs of one of those rows.
#[derive(Debug)]
pub struct SharedRow {
    /// The operations of each thread, as many of each. Threads have keys of their own, so that there is one right
    /// answer.
    pub threads: Vec<ThreadOps>,
    /// What a walk finds after all of them.
    pub walk: Walk,
}

/// What one thread does.
#[derive(Debug)]
pub struct ThreadOps {
    /// The operations, in order.
    pub ops: Vec<Op>,
    /// The sum of the values that the reads find; in the map, of their digests.
    pub read_sum: u64,
}

/// Makes the inputs of a structure with so many entries, where each thread does so many operations in a row, and
/// `content` is what a read finds of a value.
pub fn shared(ops: usize, entries_count: usize, content: fn(u64) -> u64) -> SharedInputs {
    let entries = entries(entries_count);
    let mut state = entries.clone();
    let mut random = Random::new(5);
    let mut row = |update_percent: usize, threads: usize| {
        let ops = match update_percent {
            0 => ops * READS_MORE,
            _ => ops,
        };
        let ops_of = |thread: usize| {
            let mut drawing = Drawing {
                random: &mut random,
                state: &mut state,
                update_percent,
                content,
            };
            let (ops, read_sum) = drawing.requests(ops, |random| {
                random.below(entries_count / threads) * threads + thread
            });
            ThreadOps { ops, read_sum }
        };
        SharedRow {
            threads: (0..threads).map(ops_of).collect(),
            walk: walk_of(&state, content),
        }
    };
    let mut rows = Vec::new();
    for update_percent in [100, 50, 0] {
        rows.extend([row(update_percent, 1), row(update_percent, 2)]);
    }
    SharedInputs { entries, rows }
}

/// Of requests: reads, and updates of entries whose state goes on.
struct Drawing<'a> {
    random: &'a mut Random,
    state: &'a mut [Op],
    update_percent: usize,
    /// What a read finds of a value.
    content: fn(u64) -> u64,
}

impl Drawing<'_> {
    /// The requests, each of the entry that `place` draws, and the sum of what their reads find.
    fn requests(
        &mut self,
        count: usize,
        mut place: impl FnMut(&mut Random) -> usize,
    ) -> (Vec<Op>, u64) {
        let mut read_sum = 0u64;
        let mut ops = Vec::with_capacity(count);
        for _ in 0..count {
            let entry = &mut self.state[place(self.random)];
            let mut op = Op {
                key: entry.key,
                value: 0,
            };
            if self.random.below(100) < self.update_percent {
                op.value = self.random.bits() | 1;
                entry.value = op.value;
            } else {
                read_sum = read_sum.wrapping_add((self.content)(entry.value));
            }
            ops.push(op);
        }
        (ops, read_sum)
    }
}

/// Entries with distinct random keys (`mix` is a bijection) and random values that are not 0.
fn entries(count: usize) -> Vec<Op> {
    let entry = |i: u64| Op {
        key: mix(i),
        value: mix(!i) | 1,
    };
    (0..count as u64).map(entry).collect()
}

fn walk_of(entries: &[Op], content: fn(u64) -> u64) -> Walk {
    let sum = entries.iter().fold(0u64, |sum, entry| {
        sum.wrapping_add(entry.key ^ content(entry.value))
    });
    Walk {
        count: entries.len() as u64,
        sum,
        sorted: true,
    }
}
