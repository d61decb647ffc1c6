//! Rows of swaps by one thread, and by two that have an array each.

use std::path::Path;

use super::swap::checksum;
use super::{Asked, Row, Session, Workload};
use crate::error::Result;
use crate::inputs::{self, Scale};
use crate::measure::{Clock, Meter, Sample};
use crate::side::{Side, Swaps};

macro_rules! rows {
    ($pairs:literal) => {
        [
            Row {
                name: concat!("swap_", $pairs, "_1"),
                one_op: concat!(
                    "transaction that swaps ",
                    $pairs,
                    " random pairs of 10,000 integers"
                ),
            },
            Row {
                name: concat!("swap_", $pairs, "_2"),
                one_op: "same, time per transaction of two threads that have an array each",
            },
        ]
    };
}

const ONE: [Row; 2] = rows!(1);
const EIGHT: [Row; 2] = rows!(8);
const SIXTY_FOUR: [Row; 2] = rows!(64);
const ARRAYS: usize = 2;
/// How often the pairs are swapped in larger transactions: once, a row would take some milliseconds.
const PASSES: usize = 4;
/// How often all is done without being timed: logs of small transactions grow for megabytes.
const FIRST: usize = 4;

pub(crate) struct DisjointWorkload {
    rows: &'static [Row; 2],
    per_tx: usize,
    pairs: Vec<[u32; 2]>,
    integers: usize,
}

impl DisjointWorkload {
    /// Small transactions and large ones.
    pub(crate) fn all(scale: &Scale) -> impl Iterator<Item = Self> {
        [(&ONE, 1), (&EIGHT, 8), (&SIXTY_FOUR, 64)]
            .map(|(rows, per_tx)| Self {
                rows,
                per_tx,
                pairs: inputs::pairs(scale),
                integers: scale.integers,
            })
            .into_iter()
    }
}

impl Workload for DisjointWorkload {
    fn rows(&self) -> &[Row] {
        self.rows
    }

    fn lone(&self) -> Option<usize> {
        Some(0)
    }

    fn open<'w>(&'w self, side: &'w dyn Side, dir: &'w Path) -> Result<Box<dyn Session + 'w>> {
        Ok(Box::new(DisjointSession {
            swaps: side.swaps(dir, self.integers, ARRAYS)?,
            side: side.name(),
            workload: self,
            expected: [(); ARRAYS].map(|()| (0..self.integers as u64).collect()),
        }))
    }
}

struct DisjointSession<'w> {
    swaps: Box<dyn Swaps>,
    side: &'w str,
    workload: &'w DisjointWorkload,
    /// The integers as they must be after what ran so far.
    expected: [Vec<u64>; ARRAYS],
}

impl Session for DisjointSession<'_> {
    fn run(&mut self, row: &'static str, meter: &mut Meter) -> Result<Sample> {
        let DisjointWorkload {
            rows,
            per_tx,
            pairs,
            ..
        } = self.workload;
        let threads = if row == rows[0].name { 1 } else { ARRAYS };
        // Each thread has a share of the pairs, whole transactions.
        let each = pairs.len() / threads / per_tx * per_tx;
        let swaps = &*self.swaps;
        let passes = if *per_tx == 1 { 1 } else { PASSES };
        let work = || {
            let of = |thread| {
                let pairs = &pairs[thread * each..][..each];
                move || (0..passes).try_for_each(|_| swaps.run(thread, pairs, *per_tx))
            };
            (0..threads).map(of).collect()
        };
        let ops = passes * each / per_tx;
        // First until logs have the size that they keep.
        for _ in 0..FIRST {
            Meter::new(Clock::Wall).measure_together(ops, work())?;
        }
        let (sample, _) = meter.measure_together(ops, work())?;
        let asked = Asked {
            side: self.side,
            row,
        };
        for (thread, expected) in self.expected.iter_mut().enumerate().take(threads) {
            for _ in 0..(FIRST + 1) * passes {
                for [left, right] in &pairs[thread * each..][..each] {
                    expected.swap(*left as usize, *right as usize);
                }
            }
            asked.expect(checksum(expected), checksum(&self.swaps.values(thread)))?;
        }
        Ok(sample)
    }
}
