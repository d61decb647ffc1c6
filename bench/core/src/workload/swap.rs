//! Rows of swaps.

use std::path::Path;

use super::{Asked, Row, Session, Workload};
use crate::error::Result;
use crate::inputs::{self, Scale};
use crate::measure::{Meter, Sample};
use crate::side::{Side, Swap};

const ROWS: [Row; 4] = [
    Row {
        name: "swap_1",
        one_op: "transaction that swaps 1 random pair of 10,000 integers",
    },
    Row {
        name: "swap_8",
        one_op: "transaction that swaps 8 random pairs of 10,000 integers",
    },
    Row {
        name: "swap_64",
        one_op: "transaction that swaps 64 random pairs of 10,000 integers",
    },
    Row {
        name: "swap_1024",
        one_op: "transaction that swaps 1024 random pairs of 10,000 integers",
    },
];

pub(crate) struct SwapWorkload {
    pairs: Vec<[u32; 2]>,
    integers: usize,
}

impl SwapWorkload {
    pub(crate) fn new(scale: &Scale) -> Self {
        SwapWorkload {
            pairs: inputs::pairs(scale),
            integers: scale.integers,
        }
    }
}

impl Workload for SwapWorkload {
    fn rows(&self) -> &[Row] {
        &ROWS
    }

    fn open<'w>(&'w self, side: &'w dyn Side, dir: &'w Path) -> Result<Box<dyn Session + 'w>> {
        Ok(Box::new(SwapSession {
            swap: side.swap(dir, self.integers)?,
            side: side.name().to_owned(),
            pairs: &self.pairs,
            expected: (0..self.integers as u64).collect(),
        }))
    }
}

struct SwapSession<'w> {
    swap: Box<dyn Swap>,
    side: String,
    pairs: &'w [[u32; 2]],
    /// The integers as they must be after what ran so far.
    expected: Vec<u64>,
}

impl Session for SwapSession<'_> {
    fn run(&mut self, row: &'static str, meter: &mut Meter) -> Result<Sample> {
        let per_tx = match row {
            "swap_1" => 1,
            "swap_8" => 8,
            "swap_64" => 64,
            _ => 1024,
        };
        // The first part warms up; both parts are whole transactions of every size.
        let (warm_up, measured) = self.pairs.split_at(self.pairs.len() / 10 / 1024 * 1024);
        let measured = &measured[..measured.len() / per_tx * per_tx];
        self.swap.run(warm_up, per_tx)?;
        let (sample, result) =
            meter.measure(measured.len() / per_tx, || self.swap.run(measured, per_tx));
        result?;
        for [left, right] in warm_up.iter().chain(measured) {
            self.expected.swap(*left as usize, *right as usize);
        }
        Asked {
            side: &self.side,
            row,
        }
        .expect(checksum(&self.expected), checksum(self.swap.values()))?;
        Ok(sample)
    }
}

/// Depends on every integer and its place.
pub(crate) fn checksum(values: &[u64]) -> u64 {
    values.iter().zip(1u64..).fold(0, |sum, (value, place)| {
        sum.wrapping_add(inputs::random::mix(value ^ place << 32))
    })
}
