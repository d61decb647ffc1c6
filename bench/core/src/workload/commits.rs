//! Rows in which each transaction is timed by itself.

use std::path::Path;

use super::swap::checksum;
use super::{Asked, Row, Session, Workload};
use crate::error::Result;
use crate::inputs::{self, Scale};
use crate::measure::{Meter, Sample};
use crate::side::{Side, Swap};

/// Transactions that are timed.
const TIMED: usize = 50_000;
/// Those before, which touch every page and have the log go round.
const WARM_UP: usize = 10_000;

/// Swaps of random pairs of integers.
pub(crate) struct CommitsWorkload {
    row: Row,
    pairs_each: usize,
    pairs: Vec<[u32; 2]>,
    integers: usize,
}

impl CommitsWorkload {
    pub(crate) fn new(scale: &Scale, pairs_each: usize) -> Self {
        let row = match pairs_each {
            1 => Row {
                name: "commit_swap_1",
                one_op: "transaction that swaps 1 random pair of 10,000 integers, timed by itself",
            },
            _ => Row {
                name: "commit_swap_8",
                one_op: "transaction that swaps 8 random pairs of 10,000 integers, timed by itself",
            },
        };
        CommitsWorkload {
            row,
            pairs_each,
            pairs: inputs::pairs(scale),
            integers: scale.integers,
        }
    }
}

impl Workload for CommitsWorkload {
    fn rows(&self) -> &[Row] {
        std::slice::from_ref(&self.row)
    }

    fn open<'w>(&'w self, side: &'w dyn Side, dir: &'w Path) -> Result<Box<dyn Session + 'w>> {
        Ok(Box::new(CommitsSession {
            swap: side.swap(dir, self.integers)?,
            side: side.name().to_owned(),
            workload: self,
        }))
    }
}

struct CommitsSession<'w> {
    swap: Box<dyn Swap>,
    side: String,
    workload: &'w CommitsWorkload,
}

impl Session for CommitsSession<'_> {
    fn run(&mut self, row: &'static str, meter: &mut Meter) -> Result<Sample> {
        let workload = self.workload;
        let all = workload.pairs.len() / workload.pairs_each;
        let warm_up = WARM_UP.min(all / 2);
        let timed = TIMED.min(all - warm_up);
        let (before, rest) = workload.pairs.split_at(warm_up * workload.pairs_each);
        let mut each = rest.chunks_exact(workload.pairs_each);
        self.swap.run(before, workload.pairs_each)?;
        let swap = &mut self.swap;
        let sample = meter.measure_lone(timed, |_| match each.next() {
            Some(pairs) => swap.run(pairs, workload.pairs_each),
            None => Ok(()),
        })?;
        let done = &workload.pairs[..(warm_up + timed) * workload.pairs_each];
        let mut expected: Vec<u64> = (0..workload.integers as u64).collect();
        for [left, right] in done {
            expected.swap(*left as usize, *right as usize);
        }
        Asked {
            side: &self.side,
            row,
        }
        .expect(checksum(&expected), checksum(self.swap.values()))?;
        Ok(sample)
    }
}
