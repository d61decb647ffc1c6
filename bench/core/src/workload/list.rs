//! Rows of the linked list.

use std::path::Path;

use super::{Asked, Row, Session, Workload};
use crate::error::Result;
use crate::inputs::{self, Scale, Walk};
use crate::measure::{Meter, Sample};
use crate::side::{List, Side};

const ENDS: [Row; 3] = [
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

const STACK: [Row; 3] = [
    Row {
        name: "stack_push",
        one_op: "transaction that puts one of 200,000 values at the head of the list program's list",
    },
    Row {
        name: "stack_sum",
        one_op: "step of a walk over these values that sums them",
    },
    Row {
        name: "stack_pop",
        one_op: "transaction that takes one of these values from the head",
    },
];

type Open = fn(&dyn Side, &Path) -> Result<Box<dyn List>>;

pub(crate) struct ListWorkload {
    rows: &'static [Row; 3],
    open: Open,
    values: Vec<u64>,
}

impl ListWorkload {
    pub(crate) fn new(scale: &Scale) -> Self {
        ListWorkload {
            rows: &ENDS,
            open: |side, dir| side.list(dir),
            values: inputs::values(scale.elements),
        }
    }

    /// The list of the programs.
    pub(crate) fn program(scale: &Scale) -> Self {
        ListWorkload {
            rows: &STACK,
            open: |side, dir| side.stack(dir),
            values: inputs::values(scale.programs),
        }
    }
}

impl Workload for ListWorkload {
    fn rows(&self) -> &[Row] {
        self.rows
    }

    fn open<'w>(&'w self, side: &'w dyn Side, dir: &'w Path) -> Result<Box<dyn Session + 'w>> {
        Ok(Box::new(ListSession {
            list: (self.open)(side, dir)?,
            side: side.name().to_owned(),
            rows: self.rows,
            values: &self.values,
        }))
    }
}

struct ListSession<'w> {
    list: Box<dyn List>,
    side: String,
    rows: &'static [Row; 3],
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
        match self.rows.iter().position(|known| known.name == row) {
            Some(0) => {
                let (before, measured) = values.split_at(meter.warm_up(values.len()));
                list.append(before)?;
                let (sample, result) = meter.measure(measured.len(), || list.append(measured));
                result?;
                asked.expect_walk(full, list.sum())?;
                Ok(sample)
            }
            Some(1) => {
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
