//! Rows of work that threads do on parts of their own: Euler's identity over an array (Puddles, EuroSys'24, Figure 12).

use std::path::Path;

use super::{Asked, Row, Session, Workload};
use crate::error::Result;
use crate::inputs::Scale;
use crate::measure::{Meter, Sample};
use crate::side::{Array, Side, euler};

const ROWS: [Row; 2] = [
    Row {
        name: "euler_1",
        one_op: "Euler's identity for one of 1 M numbers, 1,000 in a transaction, by one thread",
    },
    Row {
        name: "euler_2",
        one_op: "Euler's identity for one of 1 M numbers, 1,000 in a transaction, by two threads, half of the array each",
    },
];

/// Numbers that a transaction replaces: a small part of the array.
const PER_TX: usize = 1000;

pub(crate) struct EulerWorkload {
    count: usize,
}

impl EulerWorkload {
    pub(crate) fn new(scale: &Scale) -> Self {
        EulerWorkload {
            count: scale.elements,
        }
    }
}

impl Workload for EulerWorkload {
    fn rows(&self) -> &[Row] {
        &ROWS
    }

    /// The place of `euler_1`.
    fn lone(&self) -> Option<usize> {
        Some(0)
    }

    fn open<'w>(&'w self, side: &'w dyn Side, dir: &'w Path) -> Result<Box<dyn Session + 'w>> {
        Ok(Box::new(EulerSession {
            array: side.array(dir, self.count)?,
            side: side.name(),
            expected: (0..self.count).map(|number| number as f64).collect(),
        }))
    }
}

struct EulerSession<'w> {
    array: Box<dyn Array>,
    side: &'w str,
    /// The numbers as they must be after what ran so far.
    expected: Vec<f64>,
}

impl Session for EulerSession<'_> {
    fn run(&mut self, row: &'static str, meter: &mut Meter) -> Result<Sample> {
        let threads = if row == "euler_1" { 1 } else { 2 };
        let part = self.expected.len() / threads;
        let array = &*self.array;
        let work = (0..threads)
            .map(|thread| move || array.euler(thread * part..(thread + 1) * part, PER_TX));
        let (sample, _) = meter.measure_together(part, work.collect())?;
        for number in &mut self.expected[..part * threads] {
            *number = euler(*number);
        }
        let asked = Asked {
            side: self.side,
            row,
        };
        let numbers = self.array.numbers();
        let wrong =
            (self.expected.iter().zip(numbers)).position(|(expected, found)| expected != found);
        asked.expect((self.expected.len(), None), (numbers.len(), wrong))?;
        Ok(sample)
    }
}
