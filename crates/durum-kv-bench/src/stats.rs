//! What a benchmark took, and how it is printed.

use std::time::{Duration, Instant};

use crate::histogram::Histogram;

/// What a thread has done.
#[derive(Clone, Debug)]
pub struct Stats {
    begin: Instant,
    end: Instant,
    /// The sum over threads.
    busy: Duration,
    /// Operations.
    pub done: u64,
    /// Bytes of keys and values.
    pub bytes: u64,
    /// Reads that found their key. LevelDB counts them in some benchmarks only.
    pub found: u64,
    /// What else is to be said.
    pub message: String,
    last: Instant,
    histogram: Option<Histogram>,
}

impl Stats {
    /// Begins to count.
    pub fn begin(histogram: bool) -> Self {
        let now = Instant::now();
        Self {
            begin: now,
            end: now,
            busy: Duration::ZERO,
            done: 0,
            bytes: 0,
            found: 0,
            message: String::new(),
            last: now,
            histogram: histogram.then(Histogram::default),
        }
    }

    /// One operation more.
    #[inline]
    pub fn finished_one(&mut self) {
        self.done += 1;
        if let Some(histogram) = &mut self.histogram {
            let now = Instant::now();
            histogram.add((now - self.last).as_secs_f64() * 1e6);
            self.last = now;
        }
    }

    /// The thread is done.
    pub fn stop(&mut self) {
        self.end = Instant::now();
        self.busy = self.end - self.begin;
    }

    /// Adds what another thread has done.
    pub fn merge(&mut self, other: &Stats) {
        self.begin = self.begin.min(other.begin);
        self.end = self.end.max(other.end);
        self.busy += other.busy;
        self.done += other.done;
        self.bytes += other.bytes;
        self.found += other.found;
        if self.message.is_empty() {
            self.message.clone_from(&other.message);
        }
        if let (Some(own), Some(more)) = (&mut self.histogram, &other.histogram) {
            own.merge(more);
        }
    }

    /// Microseconds that one operation took a thread.
    pub fn micros_per_op(&self) -> f64 {
        self.busy.as_secs_f64() * 1e6 / self.done.max(1) as f64
    }

    /// The line of a benchmark, as LevelDB prints it.
    pub fn report(&self, name: &str) -> String {
        let mut extra = String::new();
        if self.bytes > 0 {
            let seconds = (self.end - self.begin).as_secs_f64();
            extra = format!("{:6.1} MB/s", self.bytes as f64 / 1048576.0 / seconds);
        }
        if !self.message.is_empty() {
            extra += if extra.is_empty() { "" } else { " " };
            extra += &self.message;
        }
        let blank = if extra.is_empty() { "" } else { " " };
        let mut text = format!(
            "{name:<12} : {:11.3} micros/op;{blank}{extra}\n",
            self.micros_per_op()
        );
        if let Some(histogram) = &self.histogram {
            text += &format!("Microseconds per op:\n{histogram}\n");
        }
        text
    }
}
