//! A program that waits for work.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use crate::error::{Error, Result};
use crate::measure::{Clock, Sample};
use crate::workload::Row;

pub(super) struct Process {
    pub(super) side: &'static str,
    clock: Clock,
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Process {
    /// Starts it. An empty heap stands for memory of malloc.
    pub(super) fn start(
        side: &'static str,
        executable: &Path,
        heap: &Path,
        size: usize,
        clock: Clock,
        fence_ns: Option<u64>,
    ) -> Result<Process> {
        let delay = fence_ns.map(|ns| ("BENCH_FENCE_NS", ns.to_string()));
        let mut child = Command::new(executable)
            .arg(heap)
            .arg(size.to_string())
            .envs(delay)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(Error::file(executable))?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            unreachable!("both are pipes");
        };
        Ok(Process {
            side,
            clock,
            child,
            input,
            output: BufReader::new(output),
        })
    }

    /// Has it do so much work. What each row took for a piece of it, and its answer.
    pub(super) fn run(&mut self, work: usize, rows: &[Row]) -> Result<Vec<(Sample, String)>> {
        writeln!(self.input, "{work}").map_err(Error::file(self.side))?;
        let mut told = Vec::new();
        for row in rows {
            let mut line = String::new();
            let read = self.output.read_line(&mut line);
            read.map_err(Error::file(self.side))?;
            let parsed = parse(&line, row.name, work as f64, self.clock);
            told.push(parsed.ok_or_else(|| {
                Error::Unfair(format!(
                    "{}, {}: it has ended, or says {line:?}",
                    self.side, row.name
                ))
            })?);
        }
        Ok(told)
    }
}

/// The line that main.c prints.
fn parse(line: &str, row: &str, work: f64, clock: Clock) -> Option<(Sample, String)> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [name, numbers @ .., answer] = &words[..] else {
        return None;
    };
    let numbers: Vec<f64> = numbers
        .iter()
        .filter_map(|word| word.parse().ok())
        .collect();
    let [wall_ns, cpu_ns, fences, write_backs, syncs, bytes] = numbers[..] else {
        return None;
    };
    let ns = match clock {
        Clock::Wall => wall_ns,
        Clock::Cpu => cpu_ns,
    };
    let sample = Sample {
        ns: ns / work,
        fences: fences / work,
        write_backs: write_backs / work,
        syncs: syncs / work,
        bytes: bytes / work,
        ..Sample::default()
    };
    (*name == row).then(|| (sample, (*answer).to_owned()))
}

impl Drop for Process {
    fn drop(&mut self) {
        // It has told all that anybody wants to know, and its heap is removed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_program_prints_is_divided_by_the_work() {
        let line = "triad 4000 3000 2 40 8 640 1.5e+18\n";
        let (sample, answer) = parse(line, "triad", 4.0, Clock::Wall).unwrap();
        assert_eq!(
            (sample.ns, sample.fences, sample.write_backs),
            (1000.0, 0.5, 10.0)
        );
        assert_eq!((sample.syncs, sample.bytes), (2.0, 160.0));
        assert_eq!(answer, "1.5e+18");
        let by_cpu = parse(line, "triad", 4.0, Clock::Cpu).unwrap();
        assert_eq!(by_cpu.0.ns, 750.0);
        assert!(parse(line, "matmul", 4.0, Clock::Wall).is_none());
        assert!(parse("", "triad", 4.0, Clock::Wall).is_none());
        assert!(parse("triad 1 2 3 answer", "triad", 4.0, Clock::Wall).is_none());
    }
}
