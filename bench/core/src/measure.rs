//! Time and counts of a batch, and what to make of several rounds.

use durum_persist::count;

use crate::step::Marks;

/// Which time is reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clock {
    /// Elapsed time. Needs a quiet machine.
    Wall,
    /// CPU time of the measuring thread: what others take from the processor does not count, what they take from the caches does.
    Cpu,
}

/// What one operation cost on average over a batch.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sample {
    /// Nanoseconds on the clock that was asked for.
    pub ns: f64,
    /// Fences.
    pub fences: f64,
    /// Lines written back or stored past the cache.
    pub write_backs: f64,
    /// Bytes handed to write-back or stored past the cache.
    pub bytes: f64,
    /// Fences of background threads.
    pub fences_background: f64,
    /// Lines of background threads.
    pub write_backs_background: f64,
}

/// Measures batches.
#[derive(Debug)]
pub struct Meter {
    clock: Clock,
    wall_ns: f64,
    cpu_ns: f64,
    marks: Option<Marks>,
}

impl Meter {
    /// A meter that reports the given clock.
    pub fn new(clock: Clock) -> Meter {
        Meter {
            clock,
            wall_ns: 0.0,
            cpu_ns: 0.0,
            marks: None,
        }
    }

    /// A meter that also marks each batch for the process that steps this one.
    pub fn stepped(marks: Marks) -> Meter {
        Meter {
            marks: Some(marks),
            ..Meter::new(Clock::Wall)
        }
    }

    /// Runs a batch of `ops` operations.
    pub fn measure<R>(&mut self, ops: usize, batch: impl FnOnce() -> R) -> (Sample, R) {
        let counts = count::thread_counters();
        let background = count::background_counters();
        let cpu = now_ns(libc::CLOCK_THREAD_CPUTIME_ID);
        let wall = now_ns(libc::CLOCK_MONOTONIC);
        if let Some(marks) = &mut self.marks {
            marks.begin();
        }
        let result = batch();
        let wall_ns = (now_ns(libc::CLOCK_MONOTONIC) - wall) as f64;
        let cpu_ns = (now_ns(libc::CLOCK_THREAD_CPUTIME_ID) - cpu) as f64;
        let counts = count::thread_counters() - counts;
        let background = count::background_counters() - background;
        if let Some(marks) = &mut self.marks {
            let lines = counts.write_backs + counts.streamed_lines;
            marks.end(ops as u64, counts.fences, lines);
        }
        self.wall_ns += wall_ns;
        self.cpu_ns += cpu_ns;
        let per_op = |amount: u64| amount as f64 / ops as f64;
        let sample = Sample {
            ns: match self.clock {
                Clock::Wall => wall_ns,
                Clock::Cpu => cpu_ns,
            } / ops as f64,
            fences: per_op(counts.fences),
            write_backs: per_op(counts.write_backs + counts.streamed_lines),
            bytes: per_op(counts.bytes_written),
            fences_background: per_op(background.fences),
            write_backs_background: per_op(background.write_backs + background.streamed_lines),
        };
        (sample, result)
    }

    /// The share of the measured time in which this thread had the processor: near 1 on a quiet machine.
    pub fn processor_share(&self) -> f64 {
        if self.wall_ns == 0.0 {
            1.0
        } else {
            self.cpu_ns / self.wall_ns
        }
    }
}

fn now_ns(clock: libc::clockid_t) -> i64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `time` is valid for writes; Linux has both clocks that are used here, so that the call cannot fail.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

/// Keeps this thread on one processor, the last that it may use: interrupts mostly go to the first. Its number, or
/// `None` where the system refuses.
pub fn pin() -> Option<usize> {
    // SAFETY: an all-zero set is a valid, empty one.
    let mut allowed: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: `allowed` is valid for writes of the size that is passed.
    if unsafe { libc::sched_getaffinity(0, size_of_val(&allowed), &raw mut allowed) } != 0 {
        return None;
    }
    // SAFETY: the index is below CPU_SETSIZE.
    let last =
        (0..libc::CPU_SETSIZE as usize).rfind(|cpu| unsafe { libc::CPU_ISSET(*cpu, &allowed) })?;
    // SAFETY: an all-zero set is a valid, empty one.
    let mut chosen: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: the index is below CPU_SETSIZE.
    unsafe { libc::CPU_SET(last, &mut chosen) };
    // SAFETY: `chosen` is a valid set of the size that is passed.
    (unsafe { libc::sched_setaffinity(0, size_of_val(&chosen), &raw const chosen) } == 0)
        .then_some(last)
}

/// Median and extremes of the rounds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// The median; of an even number of values the mean of the middle two.
    pub median: f64,
    /// The smallest value.
    pub min: f64,
    /// The largest value.
    pub max: f64,
}

impl Spread {
    /// Of at least one value; `None` of none.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Spread> {
        let mut values: Vec<f64> = values.into_iter().collect();
        values.sort_by(f64::total_cmp);
        let (min, max) = (*values.first()?, *values.last()?);
        let middle = values.len() / 2;
        let median = if values.len() % 2 == 1 {
            values[middle]
        } else {
            f64::midpoint(values[middle - 1], values[middle])
        };
        Some(Spread { median, min, max })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use durum_persist::{Site, line};

    #[test]
    fn the_median_is_the_middle() {
        assert_eq!(Spread::of([]), None);
        assert_eq!(
            Spread::of([3.0, 1.0, 2.0]),
            Some(Spread {
                median: 2.0,
                min: 1.0,
                max: 3.0
            })
        );
        assert_eq!(
            Spread::of([4.0, 1.0, 2.0, 3.0]),
            Some(Spread {
                median: 2.5,
                min: 1.0,
                max: 4.0
            })
        );
    }

    #[test]
    fn counts_are_per_operation() {
        let words = [0u64; 64];
        let (sample, ()) = Meter::new(Clock::Wall).measure(4, || {
            for _ in 0..4 {
                // SAFETY: the range lies in `words`.
                unsafe { line::write_back(words.as_ptr().cast(), 16, Site("test")) };
                line::fence(Site("test"));
                line::fence(Site("test"));
            }
        });
        assert!(sample.ns > 0.0);
        assert_eq!(
            (sample.fences, sample.bytes, sample.fences_background),
            (2.0, 16.0, 0.0)
        );
        assert!(sample.write_backs >= 1.0 && sample.write_backs <= 2.0);
    }
}
