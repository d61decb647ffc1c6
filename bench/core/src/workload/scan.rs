//! The row of scans: YCSB E on the B-tree, since the hash map of the other requests has no order.

use std::path::Path;

use super::{Asked, Row, Session, Workload};
use crate::error::Result;
use crate::inputs::{self, Scale, ScanInputs};
use crate::measure::{Meter, Sample};
use crate::side::{Side, Tree};

const ROWS: [Row; 1] = [Row {
    name: "kv_e",
    one_op: "request of YCSB E on an order-8 B-tree of 1 M keys: 95 % scans of 1 to 100 entries, 5 % insertions",
}];

pub(crate) struct ScanWorkload {
    inputs: ScanInputs,
}

impl ScanWorkload {
    pub(crate) fn new(scale: &Scale) -> Self {
        ScanWorkload {
            inputs: inputs::scans(scale),
        }
    }
}

impl Workload for ScanWorkload {
    fn rows(&self) -> &[Row] {
        &ROWS
    }

    fn open<'w>(&'w self, side: &'w dyn Side, dir: &'w Path) -> Result<Box<dyn Session + 'w>> {
        let mut tree = side.tree(dir)?;
        tree.insert(&self.inputs.entries)?;
        Ok(Box::new(ScanSession {
            tree,
            side: side.name(),
            inputs: &self.inputs,
        }))
    }
}

struct ScanSession<'w> {
    tree: Box<dyn Tree>,
    side: &'w str,
    inputs: &'w ScanInputs,
}

impl Session for ScanSession<'_> {
    fn run(&mut self, row: &'static str, meter: &mut Meter) -> Result<Sample> {
        let (tree, inputs) = (&mut self.tree, self.inputs);
        let asked = Asked {
            side: self.side,
            row,
        };
        let requests = &inputs.requests;
        let (sample, sum) = meter.measure(requests.len(), || tree.serve(requests));
        asked.expect(inputs.read_sum, sum?)?;
        asked.expect_walk(inputs.walk, tree.walk())?;
        Ok(sample)
    }
}
