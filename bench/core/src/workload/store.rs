//! Rows of the key-value store for text.

use std::path::Path;

use super::{Asked, Row, Session, Workload};
use crate::error::Result;
use crate::inputs::programs::{self, StoreInputs, Texts};
use crate::inputs::{Scale, Walk};
use crate::measure::{Meter, Sample};
use crate::side::{Side, TextStore};

const ROWS: [Row; 5] = [
    Row {
        name: "store_put",
        one_op: "transaction that puts a value of 96 bytes under one of 200,000 new keys of 24 bytes",
    },
    Row {
        name: "store_replace",
        one_op: "transaction that puts another value under one of these keys",
    },
    Row {
        name: "store_append",
        one_op: "transaction that adds 8 bytes to one of these values",
    },
    Row {
        name: "store_get",
        one_op: "search for one of these keys that reads its value",
    },
    Row {
        name: "store_delete",
        one_op: "transaction that deletes one of these keys",
    },
];

pub(crate) struct StoreWorkload {
    inputs: StoreInputs,
}

impl StoreWorkload {
    pub(crate) fn new(scale: &Scale) -> Self {
        StoreWorkload {
            inputs: programs::store(scale),
        }
    }
}

impl Workload for StoreWorkload {
    fn rows(&self) -> &[Row] {
        &ROWS
    }

    fn open<'w>(&'w self, side: &'w dyn Side, dir: &'w Path) -> Result<Box<dyn Session + 'w>> {
        Ok(Box::new(StoreSession {
            store: side.store(dir)?,
            side: side.name().to_owned(),
            inputs: &self.inputs,
        }))
    }
}

struct StoreSession<'w> {
    store: Box<dyn TextStore>,
    side: String,
    inputs: &'w StoreInputs,
}

impl Session for StoreSession<'_> {
    fn run(&mut self, row: &'static str, meter: &mut Meter) -> Result<Sample> {
        let (store, inputs) = (&mut *self.store, self.inputs);
        let asked = Asked {
            side: &self.side,
            row,
        };
        let (sample, walk) = match row {
            "store_put" => {
                let [before, measured] = inputs.puts.split(meter.warm_up(inputs.puts.count()));
                store.put(&before)?;
                (
                    changed(meter, &measured, |texts| store.put(texts))?,
                    inputs.walks[0],
                )
            }
            "store_replace" => {
                let put = |texts: &Texts| store.put(texts);
                (changed(meter, &inputs.replacements, put)?, inputs.walks[1])
            }
            "store_append" => {
                let append = |texts: &Texts| store.append(texts);
                (changed(meter, &inputs.appends, append)?, inputs.walks[2])
            }
            "store_get" => {
                let (sample, sum) =
                    meter.measure(inputs.reads.count(), || store.read(&inputs.reads));
                asked.expect(inputs.read_sum, sum)?;
                (sample, inputs.walks[2])
            }
            _ => {
                let count = inputs.deletions.count();
                let (sample, found) = meter.measure(count, || store.delete(&inputs.deletions));
                asked.expect(count as u64, found?)?;
                let nothing = Walk {
                    sorted: true,
                    ..Walk::default()
                };
                (sample, nothing)
            }
        };
        asked.expect_walk(walk, store.walk())?;
        Ok(sample)
    }
}

fn changed(
    meter: &mut Meter,
    texts: &Texts,
    change: impl FnOnce(&Texts) -> Result<()>,
) -> Result<Sample> {
    let (sample, result) = meter.measure(texts.count(), || change(texts));
    result?;
    Ok(sample)
}
