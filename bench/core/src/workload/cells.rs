//! Rows of single operations.

use std::path::Path;

use super::{Asked, Row, Session, Workload};
use crate::error::Result;
use crate::inputs::{self, Scale};
use crate::measure::{Meter, Sample};
use crate::side::{AREA_SIZE, Cells, Side};

const ROWS: [Row; 12] = [
    Row {
        name: "floor",
        one_op: "store of 8 bytes, made durable alone, no transaction",
    },
    Row {
        name: "tx_empty",
        one_op: "transaction that does nothing",
    },
    Row {
        name: "add_8",
        one_op: "transaction that snapshots and overwrites 8 bytes",
    },
    Row {
        name: "add_4096",
        one_op: "transaction that snapshots and overwrites 4096 bytes",
    },
    Row {
        name: "alloc_8",
        one_op: "transaction that allocates and writes one object of 8 bytes",
    },
    Row {
        name: "free_8",
        one_op: "transaction that frees one object of 8 bytes",
    },
    Row {
        name: "alloc_256",
        one_op: "transaction that allocates and writes one object of 256 bytes",
    },
    Row {
        name: "free_256",
        one_op: "transaction that frees one object of 256 bytes",
    },
    Row {
        name: "alloc_4096",
        one_op: "transaction that allocates and writes one object of 4096 bytes",
    },
    Row {
        name: "free_4096",
        one_op: "transaction that frees one object of 4096 bytes",
    },
    Row {
        name: "deref",
        one_op: "read through one stored pointer, always the same",
    },
    Row {
        name: "chase",
        one_op: "step of a dependent walk over a random ring of 1 M 64-byte nodes",
    },
];

pub(crate) struct CellsWorkload {
    scale: Scale,
    ring: Vec<u32>,
}

impl CellsWorkload {
    pub(crate) fn new(scale: &Scale) -> Self {
        CellsWorkload {
            ring: inputs::ring(scale),
            scale: scale.clone(),
        }
    }
}

impl Workload for CellsWorkload {
    fn rows(&self) -> &[Row] {
        &ROWS
    }

    fn open<'w>(&'w self, side: &'w dyn Side, dir: &'w Path) -> Result<Box<dyn Session + 'w>> {
        let objects_max = self.scale.small.max(self.scale.large);
        let cells = side.cells(dir, &self.ring, objects_max)?;
        Ok(Box::new(CellsSession {
            cells,
            side: side.name().to_owned(),
            scale: &self.scale,
        }))
    }
}

struct CellsSession<'w> {
    cells: Box<dyn Cells>,
    side: String,
    scale: &'w Scale,
}

impl Session for CellsSession<'_> {
    fn run(&mut self, row: &'static str, meter: &mut Meter) -> Result<Sample> {
        let (small, large, fast) = (self.scale.small, self.scale.large, self.scale.fast);
        match row {
            "floor" => self.floor(row, small, meter),
            "tx_empty" => {
                self.cells.tx_empty(fast / 10)?;
                let (sample, result) = meter.measure(fast, || self.cells.tx_empty(fast));
                result.map(|()| sample)
            }
            "add_8" => self.add(row, 8, small, meter),
            "add_4096" => self.add(row, 4096, large, meter),
            "alloc_8" => self.alloc(row, 8, small, meter),
            "alloc_256" => self.alloc(row, 256, small, meter),
            "alloc_4096" => self.alloc(row, 4096, large, meter),
            "free_8" | "free_256" => self.free(row, small, meter),
            "free_4096" => self.free(row, large, meter),
            "deref" => {
                self.cells.deref(fast / 10);
                let (sample, sum) = meter.measure(fast, || self.cells.deref(fast));
                self.asked(row).expect(fast as u64, sum)?;
                Ok(sample)
            }
            _ => self.chase(row, meter),
        }
    }
}

impl CellsSession<'_> {
    fn asked(&self, row: &'static str) -> Asked<'_> {
        Asked {
            side: &self.side,
            row,
        }
    }

    fn floor(&mut self, row: &'static str, count: usize, meter: &mut Meter) -> Result<Sample> {
        let stride = 64;
        self.cells.floor(stride, AREA_SIZE / stride)?;
        let (sample, result) = meter.measure(count, || self.cells.floor(stride, count));
        result?;
        self.check_area(row, stride, &[0; 8], count)?;
        Ok(sample)
    }

    fn add(
        &mut self,
        row: &'static str,
        len: usize,
        count: usize,
        meter: &mut Meter,
    ) -> Result<Sample> {
        let stride = len.max(64);
        let image = image(len);
        self.cells.add(stride, &image, AREA_SIZE / stride)?;
        let (sample, result) = meter.measure(count, || self.cells.add(stride, &image, count));
        result?;
        self.check_area(row, stride, &image, count)?;
        Ok(sample)
    }

    /// Each place holds `image`, and as first word the number of the last operation that met it.
    fn check_area(
        &self,
        row: &'static str,
        stride: usize,
        image: &[u8],
        count: usize,
    ) -> Result<()> {
        let places = AREA_SIZE / stride;
        for place in 0..places.min(count) {
            let last = place + (count - 1 - place) / places * places;
            let mut expected = image.to_vec();
            expected[..8].copy_from_slice(&(last as u64).to_ne_bytes());
            let found = &self.cells.area()[place * stride..][..image.len()];
            self.asked(row).expect(&expected[..], found)?;
        }
        Ok(())
    }

    /// Allocates into memory that was used and freed before, so that no side pays for first-touch page faults.
    fn alloc(
        &mut self,
        row: &'static str,
        len: usize,
        count: usize,
        meter: &mut Meter,
    ) -> Result<Sample> {
        let image = image(len);
        self.cells.alloc(&image, count)?;
        self.cells.free(count)?;
        let (sample, result) = meter.measure(count, || self.cells.alloc(&image, count));
        result?;
        let last_word = |first: u64| match len {
            8 => first,
            _ => u64::from_ne_bytes([0xd5; 8]),
        };
        let expected = (0..count as u64).fold(0u64, |sum, first| {
            sum.wrapping_add(first ^ last_word(first) << 32)
        });
        self.asked(row).expect(expected, self.cells.objects_sum())?;
        Ok(sample)
    }

    fn free(&mut self, row: &'static str, count: usize, meter: &mut Meter) -> Result<Sample> {
        let (sample, result) = meter.measure(count, || self.cells.free(count));
        result?;
        self.asked(row).expect(0, self.cells.objects_sum())?;
        Ok(sample)
    }

    fn chase(&mut self, row: &'static str, meter: &mut Meter) -> Result<Sample> {
        let nodes = self.scale.ring;
        let rounds = self.scale.fast.div_ceil(nodes);
        self.cells.chase(nodes);
        let (sample, sum) = meter.measure(nodes * rounds, || self.cells.chase(nodes * rounds));
        let expected = (nodes as u64 * (nodes as u64 - 1) / 2) * rounds as u64;
        self.asked(row).expect(expected, sum)?;
        Ok(sample)
    }
}

fn image(len: usize) -> Vec<u8> {
    vec![0xd5; len]
}
