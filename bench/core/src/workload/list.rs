//! Rows of the linked list.

use std::path::Path;

use super::{Asked, Row, Session, Workload};
use crate::error::Result;
use crate::inputs::{self, Scale, Walk};
use crate::measure::{Meter, Sample};
use crate::side::{List, Side};

const ROWS: [Row; 3] = [
    Row {
        name: "list_append",
        one_op: "transaction that appends one of 1 M values at the tail",
    },
    Row {
        name: "list_sum",
        one_op: "step of a walk over 1 M nodes that sums the values",
    },
    Row {
        name: "list_pop",
        one_op: "transaction that takes one of 1 M values from the head",
    },
];

pub(super) struct ListWorkload {
    values: Vec<u64>,
}

impl ListWorkload {
    pub(super) fn new(scale: &Scale) -> Self {
        ListWorkload {
            values: inputs::values(scale),
        }
    }
}

impl Workload for ListWorkload {
    fn rows(&self) -> &[Row] {
        &ROWS
    }

    fn open<'w>(&'w self, side: &dyn Side, dir: &Path) -> Result<Box<dyn Session + 'w>> {
        Ok(Box::new(ListSession {
            list: side.list(dir)?,
            side: side.name().to_owned(),
            values: &self.values,
        }))
    }
}

struct ListSession<'w> {
    list: Box<dyn List>,
    side: String,
    values: &'w [u64],
}

impl Session for ListSession<'_> {
    fn run(&mut self, row: &'static str, meter: &mut Meter) -> Result<Sample> {
        let (list, values) = (&mut self.list, self.values);
        let asked = Asked {
            side: &self.side,
            row,
        };
        let sum = values
            .iter()
            .fold(0u64, |sum, value| sum.wrapping_add(*value));
        let full = Walk {
            count: values.len() as u64,
            sum,
            sorted: true,
        };
        match row {
            "list_append" => {
                let (before, measured) = values.split_at(meter.warm_up(values.len()));
                list.append(before)?;
                let (sample, result) = meter.measure(measured.len(), || list.append(measured));
                result?;
                asked.expect_walk(full, list.sum())?;
                Ok(sample)
            }
            "list_sum" => {
                // Several walks: one alone is over in a few milliseconds.
                let walks = 4;
                let (sample, found) = meter.measure(values.len() * walks, || {
                    (0..walks).map(|_| list.sum()).all(|walk| walk == full)
                });
                asked.expect(true, found)?;
                Ok(sample)
            }
            _ => {
                let (sample, popped) = meter.measure(values.len(), || list.pop(values.len()));
                asked.expect(sum, popped?)?;
                asked.expect_walk(
                    Walk {
                        sorted: true,
                        ..Walk::default()
                    },
                    list.sum(),
                )?;
                Ok(sample)
            }
        }
    }
}
