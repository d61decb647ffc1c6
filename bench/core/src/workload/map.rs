//! Rows of the hash map: load, then YCSB A, B, C, D and F. E, which scans, is a row of the tree.

use std::path::Path;

use super::{Asked, Row, Session, Workload};
use crate::error::Result;
use crate::inputs::{self, MapInputs, Scale};
use crate::measure::{Meter, Sample};
use crate::side::{Map, Side};

const ROWS: [Row; 6] = [
    Row {
        name: "kv_load",
        one_op: "transaction that inserts one of 1 M entries (8-byte key, 100-byte value) into a hash map",
    },
    Row {
        name: "kv_a",
        one_op: "request of YCSB A: 50 % updates in a transaction each, 50 % reads, zipfian 0.99",
    },
    Row {
        name: "kv_b",
        one_op: "request of YCSB B: 5 % updates, 95 % reads, zipfian 0.99",
    },
    Row {
        name: "kv_c",
        one_op: "request of YCSB C: reads only, zipfian 0.99",
    },
    Row {
        name: "kv_d",
        one_op: "request of YCSB D: 5 % insertions, 95 % reads, mostly of what was inserted last",
    },
    Row {
        name: "kv_f",
        one_op: "request of YCSB F: 50 % reads, 50 % reads and updates of the same key, zipfian 0.99",
    },
];

pub(crate) struct MapWorkload {
    inputs: MapInputs,
}

impl MapWorkload {
    pub(crate) fn new(scale: &Scale) -> Self {
        MapWorkload {
            inputs: inputs::map(scale),
        }
    }
}

impl Workload for MapWorkload {
    fn rows(&self) -> &[Row] {
        &ROWS
    }

    fn open<'w>(&'w self, side: &'w dyn Side, dir: &'w Path) -> Result<Box<dyn Session + 'w>> {
        let map = side.map(dir, self.inputs.bucket_bits)?;
        Ok(Box::new(MapSession {
            map,
            side: side.name().to_owned(),
            inputs: &self.inputs,
        }))
    }
}

struct MapSession<'w> {
    map: Box<dyn Map>,
    side: String,
    inputs: &'w MapInputs,
}

impl Session for MapSession<'_> {
    fn run(&mut self, row: &'static str, meter: &mut Meter) -> Result<Sample> {
        let (map, inputs) = (&mut self.map, self.inputs);
        let asked = Asked {
            side: &self.side,
            row,
        };
        let requests = match row {
            "kv_load" => {
                let entries = &inputs.entries[..];
                let (before, measured) = entries.split_at(meter.warm_up(entries.len()));
                map.load(before)?;
                let (sample, result) = meter.measure(measured.len(), || map.load(measured));
                result?;
                asked.expect_walk(inputs.walk, map.walk())?;
                return Ok(sample);
            }
            "kv_a" => &inputs.a,
            "kv_b" => &inputs.b,
            "kv_c" => &inputs.c,
            "kv_d" => &inputs.d,
            _ => &inputs.f,
        };
        let (sample, sum) = meter.measure(requests.count, || map.run(&requests.ops));
        asked.expect(requests.read_sum, sum?)?;
        asked.expect_walk(requests.walk, map.walk())?;
        Ok(sample)
    }
}
