//! Rows of the B-tree.

use std::path::Path;

use super::{Asked, Row, Session, Workload};
use crate::error::Result;
use crate::inputs::{self, Scale, TreeInputs, Walk};
use crate::measure::{Meter, Sample};
use crate::side::{Side, Tree};

const ROWS: [Row; 3] = [
    Row {
        name: "btree_insert",
        one_op: "transaction that inserts one of 1 M random keys into an order-8 B-tree",
    },
    Row {
        name: "btree_lookup",
        one_op: "lookup of one of 1 M keys, in another random order",
    },
    Row {
        name: "btree_delete",
        one_op: "transaction that deletes one of 1 M keys, in a third random order",
    },
];

pub(super) struct TreeWorkload {
    inputs: TreeInputs,
}

impl TreeWorkload {
    pub(super) fn new(scale: &Scale) -> Self {
        TreeWorkload {
            inputs: inputs::tree(scale),
        }
    }
}

impl Workload for TreeWorkload {
    fn rows(&self) -> &[Row] {
        &ROWS
    }

    fn open<'w>(&'w self, side: &dyn Side, dir: &Path) -> Result<Box<dyn Session + 'w>> {
        Ok(Box::new(TreeSession {
            tree: side.tree(dir)?,
            side: side.name().to_owned(),
            inputs: &self.inputs,
        }))
    }
}

struct TreeSession<'w> {
    tree: Box<dyn Tree>,
    side: String,
    inputs: &'w TreeInputs,
}

impl Session for TreeSession<'_> {
    fn run(&mut self, row: &'static str, meter: &mut Meter) -> Result<Sample> {
        let (tree, inputs) = (&mut self.tree, self.inputs);
        let asked = Asked {
            side: &self.side,
            row,
        };
        match row {
            "btree_insert" => {
                let entries = &inputs.entries[..];
                let (before, measured) = entries.split_at(meter.warm_up(entries.len()));
                tree.insert(before)?;
                let (sample, result) = meter.measure(measured.len(), || tree.insert(measured));
                result?;
                asked.expect_walk(inputs.walk, tree.walk())?;
                Ok(sample)
            }
            "btree_lookup" => {
                let (sample, sum) =
                    meter.measure(inputs.lookups.len(), || tree.lookup(&inputs.lookups));
                asked.expect(inputs.value_sum, sum)?;
                Ok(sample)
            }
            _ => {
                let (sample, found) =
                    meter.measure(inputs.deletions.len(), || tree.delete(&inputs.deletions));
                asked.expect(inputs.entries.len() as u64, found?)?;
                asked.expect_walk(
                    Walk {
                        sorted: true,
                        ..Walk::default()
                    },
                    tree.walk(),
                )?;
                Ok(sample)
            }
        }
    }
}
