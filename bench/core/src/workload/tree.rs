//! Rows of the B-tree.

use std::path::Path;

use super::{Asked, Row, Session, Workload};
use crate::error::Result;
use crate::inputs::{self, Scale, TreeInputs, Walk};
use crate::measure::{Meter, Sample};
use crate::side::{NumbersKind, Side, Tree};

const BTREE: [Row; 3] = [
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

/// The rows of a map from numbers to numbers.
macro_rules! rows {
    ($name:literal, $what:literal) => {
        [
            Row {
                name: concat!($name, "_insert"),
                one_op: concat!(
                    "transaction that inserts one of 200,000 random keys into ",
                    $what
                ),
            },
            Row {
                name: concat!($name, "_find"),
                one_op: concat!("search for one of these keys, in another order, in ", $what),
            },
            Row {
                name: concat!($name, "_remove"),
                one_op: concat!(
                    "transaction that removes one of these keys, in a third order, from ",
                    $what
                ),
            },
        ]
    };
}

const BST: [Row; 3] = rows!("bst", "a binary search tree");
const HASH: [Row; 3] = rows!("hash", "a hash map that grows");
const BPLUS: [Row; 3] = rows!("bplus", "a B+tree of fan-out 8");

type Open = fn(&dyn Side, &Path) -> Result<Box<dyn Tree>>;

pub(crate) struct TreeWorkload {
    rows: &'static [Row; 3],
    open: Open,
    inputs: TreeInputs,
}

impl TreeWorkload {
    pub(crate) fn new(scale: &Scale) -> Self {
        TreeWorkload {
            rows: &BTREE,
            open: |side, dir| side.tree(dir),
            inputs: inputs::tree(scale.elements),
        }
    }

    /// The maps of the programs.
    pub(crate) fn programs(scale: &Scale) -> [Self; 3] {
        let kinds: [(_, Open); 3] = [
            (&BST, |side, dir| side.numbers(dir, NumbersKind::Bst)),
            (&HASH, |side, dir| side.numbers(dir, NumbersKind::Hash)),
            (&BPLUS, |side, dir| side.numbers(dir, NumbersKind::BPlus)),
        ];
        kinds.map(|(rows, open)| TreeWorkload {
            rows,
            open,
            inputs: inputs::tree(scale.programs),
        })
    }
}

impl Workload for TreeWorkload {
    fn rows(&self) -> &[Row] {
        self.rows
    }

    fn open<'w>(&'w self, side: &'w dyn Side, dir: &'w Path) -> Result<Box<dyn Session + 'w>> {
        Ok(Box::new(TreeSession {
            tree: (self.open)(side, dir)?,
            side: side.name().to_owned(),
            rows: self.rows,
            inputs: &self.inputs,
        }))
    }
}

struct TreeSession<'w> {
    tree: Box<dyn Tree>,
    side: String,
    rows: &'static [Row; 3],
    inputs: &'w TreeInputs,
}

impl Session for TreeSession<'_> {
    fn run(&mut self, row: &'static str, meter: &mut Meter) -> Result<Sample> {
        let (tree, inputs) = (&mut self.tree, self.inputs);
        let asked = Asked {
            side: &self.side,
            row,
        };
        match self.rows.iter().position(|known| known.name == row) {
            Some(0) => {
                let entries = &inputs.entries[..];
                let (before, measured) = entries.split_at(meter.warm_up(entries.len()));
                tree.insert(before)?;
                let (sample, result) = meter.measure(measured.len(), || tree.insert(measured));
                result?;
                asked.expect_walk(inputs.walk, tree.walk())?;
                Ok(sample)
            }
            Some(1) => {
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
