//! The time of operations, alone and with their transactions.

use std::time::{Duration, Instant};

use durum::typed::*;

use crate::desk::{BATCH, P};

/// Time of the operations, and of their transactions.
#[derive(Clone, Copy, Default)]
pub struct Times {
    operations: Duration,
    transactions: Duration,
    count: u32,
}

impl Times {
    pub fn ns(self) -> (f64, f64) {
        let each = |time: Duration| time.as_nanos() as f64 / f64::from(self.count);
        (each(self.operations), each(self.transactions))
    }

    /// Runs transactions in which `operation` runs a thousand times.
    pub fn measure(
        batches: usize,
        operation: impl Fn(&Journal<P>) + std::panic::RefUnwindSafe,
    ) -> Times {
        Self::measure_batches(batches, BATCH, |j| {
            let begin = Instant::now();
            for _ in 0..BATCH {
                operation(j);
            }
            begin.elapsed()
        })
    }

    /// Runs transactions in which `operation` runs a thousand times; what it gives is dropped later, untimed.
    pub fn keep<R>(
        batches: usize,
        operation: impl Fn(&Journal<P>) -> R + std::panic::RefUnwindSafe,
    ) -> Times {
        Self::measure_batches(batches, BATCH, |j| keep(|| operation(j)))
    }

    /// Runs transactions of `count` operations each, whose time `batch` tells.
    pub fn measure_batches(
        batches: usize,
        count: usize,
        batch: impl Fn(&Journal<P>) -> Duration + std::panic::RefUnwindSafe,
    ) -> Times {
        let mut times = Times::default();
        for _ in 0..batches {
            let begin = Instant::now();
            let spent = P::transaction(&batch).expect("the transaction commits");
            times.add(spent, begin.elapsed(), count);
        }
        times
    }

    pub fn add(&mut self, operations: Duration, transaction: Duration, count: usize) {
        self.operations += operations;
        self.transactions += transaction;
        self.count += count as u32;
    }
}

/// Runs `operation` a thousand times; what it gives is dropped later, untimed.
pub fn keep<R>(operation: impl Fn() -> R) -> Duration {
    let mut kept = Vec::with_capacity(BATCH);
    let begin = Instant::now();
    for _ in 0..BATCH {
        kept.push(operation());
    }
    begin.elapsed()
}
