//! Time and counts of a batch, and what to make of several rounds.

use std::sync::{Barrier, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use durum_persist::count::{self, Counters};

use crate::error::Result;
use crate::step::Marks;
use crate::syncs;

/// Which time is reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Clock {
    /// Elapsed time. Needs a quiet machine.
    Wall,
    /// CPU time of the measuring thread: what others take from the processor does not count, what they take from the
    /// caches does.
    Cpu,
}

impl Clock {
    /// As the command line has it.
    pub fn name(self) -> &'static str {
        match self {
            Clock::Wall => "wall",
            Clock::Cpu => "cpu",
        }
    }
}

/// What one operation cost on average over a batch.
#[derive(Clone, Debug, Default, PartialEq)]
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
    /// Syncs of files, background threads included.
    pub syncs: f64,
    /// The rate as a multiple of the same side's rate with one thread in the same round, in rows that ask for it.
    pub scaling: Option<f64>,
    /// Nanoseconds of each operation, where each was timed.
    pub latencies: Vec<u64>,
}

impl Sample {
    /// Of parts that did the same number of operations each.
    pub fn mean_of(parts: Vec<Sample>) -> Sample {
        let mean = |of: fn(&Sample) -> f64| parts.iter().map(of).sum::<f64>() / parts.len() as f64;
        Sample {
            ns: mean(|part| part.ns),
            fences: mean(|part| part.fences),
            write_backs: mean(|part| part.write_backs),
            bytes: mean(|part| part.bytes),
            fences_background: mean(|part| part.fences_background),
            write_backs_background: mean(|part| part.write_backs_background),
            syncs: mean(|part| part.syncs),
            scaling: None,
            latencies: parts.into_iter().flat_map(|part| part.latencies).collect(),
        }
    }

    /// Counts per operation; no times yet.
    fn counted(own: Counters, background: Counters, syncs_outside: u64, ops: usize) -> Sample {
        let per_op = |amount: u64| amount as f64 / ops as f64;
        Sample {
            fences: per_op(own.fences),
            write_backs: per_op(own.write_backs + own.streamed_lines),
            bytes: per_op(own.bytes_written),
            fences_background: per_op(background.fences),
            write_backs_background: per_op(background.write_backs + background.streamed_lines),
            syncs: per_op(own.syncs + background.syncs + syncs_outside),
            ..Sample::default()
        }
    }
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

    /// Of so many operations, the first in a new store, how many go before the batch. Where instructions are counted
    /// one by one, batches are so small that what a thread and a store do once, registering types and making logs and
    /// slabs, would be most of them.
    pub fn warm_up(&self, ops: usize) -> usize {
        match self.marks {
            Some(_) => ops / 2,
            None => 0,
        }
    }

    /// Runs a batch of `ops` operations.
    pub fn measure<R>(&mut self, ops: usize, batch: impl FnOnce() -> R) -> (Sample, R) {
        let counts = count::thread_counters();
        let background = count::background_counters();
        let syncs_outside = syncs::count();
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
        let sample = Sample {
            ns: match self.clock {
                Clock::Wall => wall_ns,
                Clock::Cpu => cpu_ns,
            } / ops as f64,
            ..Sample::counted(counts, background, syncs::count() - syncs_outside, ops)
        };
        (sample, result)
    }

    /// Runs `ops` operations and times every one. The time is elapsed time whatever the clock.
    ///
    /// # Errors
    /// The first that an operation returned; it is the last one.
    pub fn measure_lone(
        &mut self,
        ops: usize,
        mut operation: impl FnMut(usize) -> Result<()>,
    ) -> Result<Sample> {
        self.measure_elapsed(ops, || {
            let begin = Instant::now();
            let latencies = time_each(ops, &mut operation)?;
            Ok((begin.elapsed(), latencies))
        })
    }

    /// Runs `ops` operations in each worker, and times every one. Several workers have a thread each and begin
    /// together; a lone one runs on this thread. The time is elapsed time whatever the clock, since what such
    /// operations do is wait; for the same reason they do not count for [`Meter::processor_share`].
    ///
    /// # Errors
    /// The first that a worker returned; it does no more then, the others finish.
    pub fn measure_each<W>(&mut self, ops: usize, mut workers: Vec<W>) -> Result<Sample>
    where
        W: FnMut(usize) -> Result<()> + Send,
    {
        if let [lone] = &mut workers[..] {
            return self.measure_lone(ops, lone);
        }
        let total = ops * workers.len();
        self.measure_elapsed(total, || {
            let timed = workers
                .iter_mut()
                .map(|worker| move || time_each(ops, worker));
            let (elapsed, latencies) = run_together(timed.collect())?;
            Ok((elapsed, latencies.concat()))
        })
    }

    /// Runs workers that do `ops` operations each, at the same time, on a thread each; a lone one runs on this thread.
    /// With several the time is elapsed time whatever the clock.
    ///
    /// # Errors
    /// The first that a worker returned; the others finish.
    pub fn measure_together<W, R>(
        &mut self,
        ops: usize,
        mut workers: Vec<W>,
    ) -> Result<(Sample, Vec<R>)>
    where
        W: FnOnce() -> Result<R> + Send,
        R: Send,
    {
        if let [_] = &workers[..] {
            let run = || workers.drain(..).map(|run| run()).collect::<Result<_>>();
            let (sample, results) = self.measure(ops, run);
            return Ok((sample, results?));
        }
        let (mut results, total) = (Vec::new(), ops * workers.len());
        let sample = self.measure_elapsed(total, || {
            let (elapsed, all) = run_together(workers)?;
            results = all;
            Ok((elapsed, Vec::new()))
        })?;
        Ok((sample, results))
    }

    /// A sample of `total` operations of all threads, which `run` times.
    fn measure_elapsed(
        &mut self,
        total: usize,
        run: impl FnOnce() -> Result<(Duration, Vec<u64>)>,
    ) -> Result<Sample> {
        let counts = count::all_counters();
        let background = count::background_counters();
        let syncs_outside = syncs::count();
        if let Some(marks) = &mut self.marks {
            marks.begin();
        }
        let (elapsed, latencies) = run()?;
        let counts = count::all_counters() - counts;
        let background = count::background_counters() - background;
        if let Some(marks) = &mut self.marks {
            let lines = counts.write_backs + counts.streamed_lines;
            marks.end(total as u64, counts.fences, lines);
        }
        Ok(Sample {
            ns: elapsed.as_nanos() as f64 / total as f64,
            latencies,
            ..Sample::counted(counts, background, syncs::count() - syncs_outside, total)
        })
    }

    /// The share of the measured time in which this thread had the processor: near 1 on a quiet machine. `None` if all
    /// that was measured waits for a disk.
    pub fn processor_share(&self) -> Option<f64> {
        (self.wall_ns > 0.0).then(|| self.cpu_ns / self.wall_ns)
    }
}

/// Runs each worker on a thread of its own; they begin together. How long it took them, and what they returned.
fn run_together<W, R>(workers: Vec<W>) -> Result<(Duration, Vec<R>)>
where
    W: FnOnce() -> Result<R> + Send,
    R: Send,
{
    let gate = Barrier::new(workers.len() + 1);
    thread::scope(|scope| {
        let start = |(index, worker): (usize, W)| {
            let gate = &gate;
            scope.spawn(move || {
                spread_out(index);
                gate.wait();
                worker()
            })
        };
        let threads: Vec<_> = workers.into_iter().enumerate().map(start).collect();
        let begin = Instant::now();
        gate.wait();
        let results: Vec<_> = threads.into_iter().map(|thread| thread.join()).collect();
        let elapsed = begin.elapsed();
        let unwound = |result: thread::Result<_>| match result {
            Ok(result) => result,
            Err(panic) => std::panic::resume_unwind(panic),
        };
        let all = results.into_iter().map(unwound).collect::<Result<_>>()?;
        Ok((elapsed, all))
    })
}

fn time_each(ops: usize, worker: &mut impl FnMut(usize) -> Result<()>) -> Result<Vec<u64>> {
    let mut latencies = Vec::with_capacity(ops);
    for index in 0..ops {
        let begin = Instant::now();
        worker(index)?;
        latencies.push(begin.elapsed().as_nanos() as u64);
    }
    Ok(latencies)
}

/// The value below which the given share of all values lies, by rank; `None` of no values.
pub fn percentile(values: &mut [u64], share: f64) -> Option<u64> {
    let last = values.len().checked_sub(1)?;
    let rank = (share * values.len() as f64).ceil() as usize;
    let index = rank.saturating_sub(1).min(last);
    Some(*values.select_nth_unstable(index).1)
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

/// This thread stays on one processor until drop.
#[derive(Debug)]
pub struct Pinned {
    /// The processor's number.
    pub processor: usize,
    _before: Processors,
}

/// The processors that this thread may use. It may use them again on drop.
#[derive(Clone, Debug)]
pub struct Processors {
    numbers: Vec<usize>,
    set: libc::cpu_set_t,
}

impl Processors {
    /// Those of now; none where the system does not say.
    pub fn usable() -> Processors {
        // SAFETY: an all-zero set is a valid, empty one.
        let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
        // SAFETY: `set` is valid for writes of the size that is passed.
        let is_told = unsafe { libc::sched_getaffinity(0, size_of_val(&set), &raw mut set) } == 0;
        // SAFETY: the index is below CPU_SETSIZE.
        let is_usable = |cpu: &usize| is_told && unsafe { libc::CPU_ISSET(*cpu, &set) };
        let numbers = (0..libc::CPU_SETSIZE as usize).filter(is_usable).collect();
        Processors { numbers, set }
    }

    /// Their numbers, the lowest first.
    pub fn numbers(&self) -> &[usize] {
        &self.numbers
    }
}

impl Drop for Processors {
    fn drop(&mut self) {
        if !self.numbers.is_empty() {
            set_affinity(0, &self.set);
        }
    }
}

/// The processors that there are, while the measuring thread stays on one of them.
static PROCESSORS: Mutex<Vec<usize>> = Mutex::new(Vec::new());

/// Keeps this thread on one processor, the last that it may use: interrupts mostly go to the first. `None` where the
/// system refuses.
pub fn pin() -> Option<Pinned> {
    let before = Processors::usable();
    let processor = *before.numbers().last()?;
    if !stay_on(0, processor) {
        return None;
    }
    *PROCESSORS.lock().unwrap_or_else(PoisonError::into_inner) = before.numbers().to_vec();
    Some(Pinned {
        processor,
        _before: before,
    })
}

/// Keeps this thread, one of several that work at the same time, on a processor of its own as far as there are enough:
/// it has inherited the place of the measuring thread. Nothing, where that goes where it likes.
fn spread_out(index: usize) {
    let processors = PROCESSORS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(processor) = processors.iter().rev().cycle().nth(index) {
        stay_on(0, *processor);
    }
}

/// Keeps a process's first thread, or this one (0), on a processor, and what it starts; whether the system does so.
pub fn stay_on(process: i32, processor: usize) -> bool {
    // SAFETY: an all-zero set is a valid, empty one.
    let mut chosen: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: the index is below CPU_SETSIZE.
    unsafe { libc::CPU_SET(processor, &mut chosen) };
    set_affinity(process, &chosen)
}

impl Drop for Pinned {
    fn drop(&mut self) {
        PROCESSORS
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clear();
    }
}

fn set_affinity(process: i32, processors: &libc::cpu_set_t) -> bool {
    // SAFETY: a valid set of the size that is passed.
    unsafe { libc::sched_setaffinity(process, size_of_val(processors), processors) == 0 }
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
    fn a_percentile_is_the_value_of_its_rank() {
        let mut values: Vec<u64> = (1..=1000).rev().collect();
        let mut at = |share| percentile(&mut values, share);
        assert_eq!(
            (at(0.5), at(0.99), at(0.999)),
            (Some(500), Some(990), Some(999))
        );
        assert_eq!((at(0.0), at(1.0)), (Some(1), Some(1000)));
        assert_eq!(percentile(&mut [], 0.5), None);
        assert_eq!(percentile(&mut [7], 0.999), Some(7));
    }

    #[test]
    fn every_operation_of_every_worker_is_timed() {
        let worker = |_| {
            |_: usize| -> Result<()> {
                thread::sleep(std::time::Duration::from_millis(1));
                Ok(())
            }
        };
        for threads in [1, 4] {
            let workers = (0..threads).map(worker).collect();
            let sample = Meter::new(Clock::Cpu).measure_each(10, workers).unwrap();
            assert_eq!(sample.latencies.len(), 10 * threads);
            assert!(sample.latencies.iter().all(|ns| *ns >= 1_000_000));
            assert!(sample.ns >= 1e6 / threads as f64);
        }
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
