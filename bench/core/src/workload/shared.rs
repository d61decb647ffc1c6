//! Rows of structures that threads share: updates, reads and both, by one thread and by two (Romulus, SPAA'18, §6.2).

use std::path::Path;

use super::{Asked, Row, Session, Workload};
use crate::error::Result;
use crate::inputs::{self, Scale, SharedInputs, ThreadOps, Value};
use crate::measure::{Meter, Sample};
use crate::side::{Shared, SharedShape, Side};

/// The rows of one structure, in the order of [`SharedInputs::rows`].
macro_rules! rows {
    ($name:literal, $what:literal) => {
        [
            rows!($name, "update", "1", "update of a ", $what, ", by one thread"),
            rows!($name, "update", "2", "update of a ", $what, ", by two threads"),
            rows!($name, "mixed", "1", "read or, every second, update of a ", $what, ", by one thread"),
            rows!($name, "mixed", "2", "read or, every second, update of a ", $what, ", by two threads"),
            rows!($name, "read", "1", "read of a ", $what, ", by one thread"),
            rows!($name, "read", "2", "read of a ", $what, ", by two threads"),
        ]
    };
    ($name:literal, $kind:literal, $threads:literal, $($one_op:literal),*) => {
        Row {
            name: concat!($name, "_", $kind, "_", $threads),
            one_op: concat!($($one_op),*),
        }
    };
}

const MAP_SMALL: [Row; 6] = rows!("map_1k", "random key in a hash map with 1,000 entries");
const MAP_LARGE: [Row; 6] = rows!("map_1m", "random key in a hash map with 1 M entries");
const TREE_SMALL: [Row; 6] = rows!(
    "tree_1k",
    "random key in an order-8 B-tree with 1,000 entries (an update deletes and inserts)"
);
const TREE_LARGE: [Row; 6] = rows!(
    "tree_1m",
    "random key in an order-8 B-tree with 1 M entries (an update deletes and inserts)"
);

const SORTED_TINY: [Row; 6] = rows!(
    "sorted_100",
    "random key in a sorted linked list with 100 entries (an update deletes and inserts)"
);
const SORTED_SMALL: [Row; 6] = rows!(
    "sorted_1k",
    "random key in a sorted linked list with 1,000 entries (an update deletes and inserts)"
);
const RED_BLACK_SMALL: [Row; 6] = rows!(
    "rbtree_1k",
    "random key in a red-black tree with 1,000 entries (an update deletes and inserts)"
);
const RED_BLACK_LARGE: [Row; 6] = rows!(
    "rbtree_1m",
    "random key in a red-black tree with 1 M entries (an update deletes and inserts)"
);
const FIXED_TINY: [Row; 6] = rows!(
    "fixed_100",
    "random key in a hash map with 2,048 buckets and 100 entries (an update deletes and inserts)"
);
const FIXED_SMALL: [Row; 6] = rows!(
    "fixed_1k",
    "random key in a hash map with 2,048 buckets and 1,000 entries (an update deletes and inserts)"
);
const HASH_SMALL: [Row; 6] = rows!(
    "hash_1k",
    "random key in a hash map that has grown to 1,000 entries (an update deletes and inserts)"
);
const HASH_LARGE: [Row; 6] = rows!(
    "hash_1m",
    "random key in a hash map that has grown to 1 M entries (an update deletes and inserts)"
);

pub(crate) struct SharedWorkload {
    rows: &'static [Row; 6],
    shape: SharedShape,
    inputs: SharedInputs,
}

impl SharedWorkload {
    /// Each structure, with few entries and, where it is made for that, with many.
    pub(crate) fn all(scale: &Scale) -> impl Iterator<Item = SharedWorkload> {
        let [tiny, small, large] = [100, 1000, usize::MAX].map(|most| scale.elements.min(most));
        let map = |entries: usize| SharedShape::Map {
            bucket_bits: (entries as u64).next_power_of_two().ilog2(),
        };
        let ops = scale.shared;
        [
            (&MAP_SMALL, map(small), small),
            (&MAP_LARGE, map(large), large),
            (&TREE_SMALL, SharedShape::Tree, small),
            (&TREE_LARGE, SharedShape::Tree, large),
            (&SORTED_TINY, SharedShape::Sorted, tiny),
            (&SORTED_SMALL, SharedShape::Sorted, small),
            (&RED_BLACK_SMALL, SharedShape::RedBlack, small),
            (&RED_BLACK_LARGE, SharedShape::RedBlack, large),
            (&FIXED_TINY, SharedShape::Fixed, tiny),
            (&FIXED_SMALL, SharedShape::Fixed, small),
            (&HASH_SMALL, SharedShape::Hash, small),
            (&HASH_LARGE, SharedShape::Hash, large),
        ]
        .into_iter()
        .map(move |(rows, shape, entries)| {
            let content = match shape {
                SharedShape::Map { .. } => |value| Value::of(value).digest(),
                _ => |value| value,
            };
            // Each passes half of a list.
            let ops = match shape {
                SharedShape::Sorted => ops * tiny / entries,
                _ => ops,
            };
            SharedWorkload {
                rows,
                shape,
                inputs: inputs::shared(ops, entries, content),
            }
        })
    }
}

impl Workload for SharedWorkload {
    fn rows(&self) -> &[Row] {
        self.rows
    }

    fn open<'w>(&'w self, side: &'w dyn Side, dir: &'w Path) -> Result<Box<dyn Session + 'w>> {
        let mut shared = side.shared(dir, self.shape)?;
        shared.load(&self.inputs.entries)?;
        Ok(Box::new(SharedSession {
            shared,
            side: side.name().to_owned(),
            workload: self,
        }))
    }
}

struct SharedSession<'w> {
    shared: Box<dyn Shared>,
    side: String,
    workload: &'w SharedWorkload,
}

impl Session for SharedSession<'_> {
    fn run(&mut self, row: &'static str, meter: &mut Meter) -> Result<Sample> {
        let SharedWorkload { rows, inputs, .. } = self.workload;
        let asked = Asked {
            side: &self.side,
            row,
        };
        let place = rows.iter().position(|known| known.name == row);
        let inputs = &inputs.rows[place.unwrap_or(0)];
        let shared = &*self.shared;
        let worker = |thread: &ThreadOps| {
            let mut sum = 0u64;
            for op in &thread.ops {
                match op.value {
                    0 => sum = sum.wrapping_add(shared.read(op.key)),
                    _ => shared.update(op)?,
                }
            }
            Ok(sum)
        };
        let worker = &worker;
        let workers = inputs.threads.iter();
        let workers = workers.map(|thread| move || worker(thread)).collect();
        let (sample, sums) = meter.measure_together(inputs.threads[0].ops.len(), workers)?;
        for (thread, sum) in inputs.threads.iter().zip(sums) {
            asked.expect(thread.read_sum, sum)?;
        }
        asked.expect_walk(inputs.walk, self.shared.walk())?;
        Ok(sample)
    }
}
