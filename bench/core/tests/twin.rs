//! Structures that threads share, and media: the right answers on every side; an update that is lost is noticed.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use durum_bench_core::error::{Error, Result};
use durum_bench_core::inputs::random::{Random, mix};
use durum_bench_core::inputs::{Op, Scale, Value, Walk};
use durum_bench_core::measure::{Clock, Meter};
use durum_bench_core::measured::Measured;
use durum_bench_core::report::by_engine;
use durum_bench_core::run::{Plan, run};
use durum_bench_core::side::{Role, Shared, SharedShape, Side};
use durum_bench_core::sides::durum::{Durum, begin_with};
use durum_bench_core::sides::{self, plain::Volatile};
use durum_bench_core::suite::suite;

const SHAPES: [SharedShape; 6] = [
    SharedShape::Tree,
    SharedShape::Map { bucket_bits: 6 },
    SharedShape::Sorted,
    SharedShape::RedBlack,
    SharedShape::Fixed,
    SharedShape::Hash,
];

/// Their rows.
const SHARED: [&str; 12] = [
    "map_1k",
    "map_1m",
    "tree_1k",
    "tree_1m",
    "sorted_100",
    "sorted_1k",
    "rbtree_1k",
    "rbtree_1m",
    "fixed_100",
    "fixed_1k",
    "hash_1k",
    "hash_1m",
];

/// Rows of several threads count what all threads of the process do, so that nothing else may run meanwhile.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn run_rows(name: &str, rows: &[&str], sides: &[Box<dyn Side>]) -> Result<Vec<Measured>> {
    let _alone = alone();
    begin_with(8 << 20);
    let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    let plan = Plan {
        suite: suite(name).unwrap(),
        filter: rows.iter().map(|row| (*row).to_owned()).collect(),
        rounds: 1,
        scale: Scale {
            elements: 3_000,
            shared: 1_000,
            swaps: 4_096,
            ..Scale::tiny()
        },
        dir: dir.path(),
    };
    run(&plan, sides, &mut Meter::new(Clock::Wall), &mut |_| ())
}

#[test]
fn threads_that_share_a_structure_get_the_right_answers() {
    let measured = run_rows("twin", &SHARED, &sides::twin()).unwrap();
    assert_eq!(measured.len(), 6 * SHARED.len());
    for row in &measured {
        let (name, fences) = (row.row.name, |side: &str| {
            let column = row.columns.iter().find(|column| column.side == side);
            column.unwrap().median(|sample| sample.fences)
        });
        let table = by_engine::format(std::slice::from_ref(row));
        assert!(table.to_string().contains(name));
        for side in ["twin", "twin_lr"] {
            let transactions = if name.starts_with("map") { 1.0 } else { 2.0 };
            let most = match () {
                () if name.contains("_read_") => 0.0,
                () if name.contains("_mixed_") => 1.1 * transactions,
                () => 2.0 * transactions,
            };
            // A pool that grows has fences of its own.
            assert!(
                fences(side) <= most + 0.05,
                "{name} {side}: {}",
                fences(side)
            );
        }
        if name.contains("_read_") {
            assert_eq!(fences("twin") + fences("twin_lr"), 0.0);
            for column in &row.columns {
                let lines = column.median(|sample| sample.write_backs);
                assert_eq!(lines, 0.0, "{name} {}", column.side);
            }
        }
    }
}

/// With few entries, so that a structure runs empty, and with more, so that every way to change it is taken.
#[test]
fn structures_that_are_shared_hold_what_a_model_does() {
    let _alone = alone();
    let content = |shape, value| match shape {
        SharedShape::Map { .. } => Value::of(value).digest(),
        _ => value,
    };
    let mut sides = sides::twin();
    sides.push(Box::new(Durum::hybrid()));
    sides.push(Box::new(Durum::shadow()));
    for (side, shape) in sides
        .iter()
        .flat_map(|side| SHAPES.map(|shape| (side, shape)))
    {
        let dir = tempfile::tempdir_in("/dev/shm").unwrap();
        let (mut shared, mut model) = (side.shared(dir.path(), shape).unwrap(), BTreeMap::new());
        let (mut random, mut keys) = (Random::new(6), Vec::new());
        for count in [1, 2, 3, 10, 300] {
            let more = (keys.len() as u64..count).map(|i| Op {
                key: mix(i),
                value: mix(!i) | 1,
            });
            let more: Vec<Op> = more.collect();
            shared.load(&more).unwrap();
            keys.extend(more.iter().map(|entry| entry.key));
            model.extend(more.iter().map(|entry| (entry.key, entry.value)));
            for _ in 0..4 * count {
                let key = keys[random.below(keys.len())];
                let value = random.bits() | 1;
                shared.update(&Op { key, value }).unwrap();
                model.insert(key, value);
                let walk = Walk {
                    count,
                    sum: model.iter().fold(0, |sum, (key, value)| {
                        sum.wrapping_add(key ^ content(shape, *value))
                    }),
                    sorted: true,
                };
                let what = format!("{} {shape:?} of {count}", side.name());
                assert_eq!(shared.walk(), walk, "{what}");
                assert_eq!(shared.read(key), content(shape, value), "{what}");
                assert_eq!(shared.read(!key), 0, "{what}");
            }
        }
    }
}

/// Each changed line goes to both copies, and a seal beside them.
#[test]
fn twin_writes_each_line_twice() {
    let measured = run_rows("twin", &["swap_64"], &sides::twin()).unwrap();
    let (columns, limit) = (&measured[0].columns, measured[0].role(Role::Limit).unwrap());
    for side in ["twin", "twin_lr"] {
        let column = columns.iter().find(|column| column.side == side).unwrap();
        let percent = by_engine::amplification(column, limit).unwrap();
        assert!((100.0..125.0).contains(&percent), "{side}: {percent} %");
    }
    let table = by_engine::format(&measured).to_string();
    assert!(
        table.contains("amplification") && table.contains(" %"),
        "{table}"
    );
}

#[test]
fn swaps_on_each_medium_get_the_right_answers_and_are_slower_where_it_is() {
    let measured = run_rows("media", &[], &sides::media()).unwrap();
    let swap = measured
        .iter()
        .find(|row| row.row.name == "swap_8")
        .unwrap();
    let ns = |side: &str| {
        let column = swap.columns.iter().find(|column| column.side == side);
        column.unwrap().ns().median
    };
    for engine in ["twin", "twin_basic", "shadow"] {
        let best = swap
            .columns
            .iter()
            .filter(|column| column.side.starts_with(engine) && column.domain == "dram")
            .map(|column| column.ns().median)
            .fold(f64::INFINITY, f64::min);
        // Some eight lines at 340 ns and a fence at 500 ns, at the least.
        let pcm = ns(&format!("{engine}_pcm"));
        assert!(pcm > 3_000.0 && pcm > best, "{engine}: {pcm} ns, {best} ns");
    }
}

/// Loses one in fifty updates.
struct Forgetful(Volatile);

struct ForgetfulShared(Box<dyn Shared>);

impl Side for Forgetful {
    fn name(&self) -> &str {
        "forgetful"
    }

    fn role(&self) -> Role {
        Role::Engine
    }

    fn domain(&self) -> &str {
        "none"
    }

    fn shared(&self, dir: &Path, shape: SharedShape) -> Result<Box<dyn Shared>> {
        Ok(Box::new(ForgetfulShared(self.0.shared(dir, shape)?)))
    }
}

impl Shared for ForgetfulShared {
    fn load(&mut self, entries: &[Op]) -> Result<()> {
        self.0.load(entries)
    }

    fn update(&self, op: &Op) -> Result<()> {
        match op.value % 100 {
            1 => Ok(()),
            _ => self.0.update(op),
        }
    }

    fn read(&self, key: u64) -> u64 {
        self.0.read(key)
    }

    fn walk(&mut self) -> Walk {
        self.0.walk()
    }
}

#[test]
fn a_lost_update_is_noticed() {
    for row in ["map_1k_update_1", "tree_1k_mixed_2", "sorted_100_update_2"] {
        let sides: Vec<Box<dyn Side>> = vec![Box::new(Forgetful(Volatile::default()))];
        let error = run_rows("twin", &[row], &sides).unwrap_err();
        assert!(matches!(error, Error::WrongAnswer { .. }), "{row}: {error}");
    }
}
