//! Suites whose programs are kernels in C: one text each, compiled in the form of each side ([`crate::nvlc`],
//! [`crate::locks`]). A side is a process of its own, which keeps its heap; it is told how much work to do, and tells
//! what that took.

mod answers;
mod compile;
mod compile_time;
mod plan;
mod process;
mod suite;

use std::path::{Path, PathBuf};

use durum_persist::domain::{self, Domain};

use crate::error::{Error, Result};
use crate::measure::{Clock, Sample, pin};
use crate::measured::{Column, Measured};
use crate::report::short;

use answers::Answers;
use compile::Compiled;
pub use plan::Plan;
use process::Process;
pub use suite::{Bar, Build, CompileTime, Compiler, Program, Side, Suite};

/// Turns before those that count.
const WARM_UP: usize = 10;

/// Runs a suite.
///
/// # Errors
/// A program that cannot be compiled or fails, and one whose answer is not that of the plain one.
pub fn run(suite: &Suite, plan: &Plan, progress: &mut dyn FnMut(&str)) -> Result<Vec<Measured>> {
    let mut measured = Vec::new();
    let programs = suite
        .programs
        .iter()
        .filter(|program| program.rows.iter().any(|row| plan.wants(row.name)));
    let programs: Vec<&Program> = programs.collect();
    progress("compiling");
    let compiled = Compiled::all(suite, plan, &programs)?;
    for (dir, rounds) in &plan.places {
        let place = Place {
            suite: suite.name,
            dir,
            domain: domain::detect(dir).map_err(Error::file(dir))?,
            rounds: *rounds,
            clock: plan.clock,
            quick: plan.quick,
            fence_ns: plan.fence_ns,
        };
        // Programs inherit it. On a disk they mostly wait, and share the work with other threads.
        let _pinned = (place.domain != Domain::File).then(pin).flatten();
        let here = |program: &&&Program| program.on_disk || place.domain != Domain::File;
        for program in programs.iter().filter(here) {
            progress(&format!("{}, {}", program.name, place.domain_name()));
            let mut rows = place.run(program, &compiled)?;
            rows.retain(|row| plan.wants(row.row.name));
            measured.append(&mut rows);
        }
    }
    if plan.wants(compile_time::ROW.name) {
        progress("compile time");
        measured.push(compile_time::run(suite, plan)?);
    }
    Ok(measured)
}

/// A line for each bound that was measured.
pub fn bounds(suite: &Suite, all: &[Measured]) -> String {
    let mut text = String::new();
    for bar in suite.bars {
        let find = |measured: &&Measured| {
            let column = measured.columns.iter().find(|one| one.side == bar.side);
            measured.row.name == bar.row && column.is_some_and(|one| one.domain == bar.domain)
        };
        let Some(measured) = all.iter().find(find) else {
            continue;
        };
        let column = |name| measured.columns.iter().find(|one| one.side == name);
        let (Some(own), Some(other)) = (column(bar.side), column(bar.reference)) else {
            continue;
        };
        let Some(ratio) = own.ratio_to(other) else {
            continue;
        };
        let verdict = match ratio.median <= bar.most {
            true => "met",
            false => "MISSED",
        };
        text.push_str(&format!(
            "{:<12} {:<10} / {:<6} {:>5}  (at most {:.2})  {verdict}\n",
            bar.row,
            bar.side,
            bar.reference,
            short(ratio.median),
            bar.most,
        ));
    }
    text
}

/// A directory for heaps.
struct Place<'p> {
    suite: &'static str,
    dir: &'p Path,
    domain: Domain,
    rounds: usize,
    clock: Clock,
    quick: bool,
    fence_ns: Option<u64>,
}

impl Place<'_> {
    fn domain_name(&self) -> &'static str {
        match self.domain {
            Domain::Dax => "dax",
            Domain::Dram => "dram",
            _ => "file",
        }
    }

    /// Nanoseconds that a turn should take.
    fn turn_ns(&self) -> f64 {
        match self.domain {
            Domain::File => 200e6,
            _ => 50e6,
        }
    }

    fn run(&self, program: &'static Program, compiled: &Compiled) -> Result<Vec<Measured>> {
        let clock = match self.domain {
            Domain::File => Clock::Wall,
            _ => self.clock,
        };
        let taken = program.sides.iter();
        let taken: Vec<&Side> = taken
            .filter(|side| side.can_delay || self.fence_ns.is_none())
            .collect();
        let mut sides = Vec::new();
        for side in &taken {
            let heap = self.heap(program, side);
            let executable = compiled.executable(program, &side.build);
            sides.push(Process::start(
                side.name,
                &executable,
                &heap,
                program.size(self.quick),
                clock,
                self.fence_ns,
            )?);
        }
        let mut answers = Answers::new(program, compiled, self.quick)?;
        let mut work = Vec::new();
        for process in &mut sides {
            let of_turn = self.work(program, process, &mut answers)?;
            if self.domain != Domain::File && !self.quick && program.is_divisible {
                // The logs of a heap grow until they are as large as they get, one file after the other.
                answers.checked(process, WARM_UP * of_turn)?;
            }
            work.push(of_turn);
        }
        let mut samples = vec![vec![Vec::new(); program.rows.len()]; sides.len()];
        for round in 0..self.rounds {
            for turn in 0..sides.len() {
                let index = (round + turn) % sides.len();
                let rows = answers.checked(&mut sides[index], work[index])?;
                for (row, sample) in rows.into_iter().enumerate() {
                    samples[index][row].push(sample);
                }
            }
        }
        let columns_of = |row: usize| {
            let column = |(side, samples): (&&Side, &Vec<Vec<Sample>>)| Column {
                side: side.name.to_owned(),
                role: side.role,
                domain: match side.has_heap {
                    true => self.domain_name(),
                    false => "none",
                }
                .to_owned(),
                samples: samples[row].clone(),
            };
            taken.iter().zip(&samples).map(column).collect()
        };
        let rows = program.rows.iter().enumerate();
        Ok(rows
            .map(|(index, row)| Measured {
                suite: self.suite,
                row: *row,
                columns: columns_of(index),
            })
            .collect())
    }

    /// A heap of the side's own; none for one whose memory is malloc's.
    fn heap(&self, program: &Program, side: &Side) -> PathBuf {
        match side.has_heap {
            true => self.dir.join(format!("{}-{}", program.name, side.name)),
            false => PathBuf::new(),
        }
    }

    /// How much a side has to do in a turn.
    fn work(
        &self,
        program: &Program,
        process: &mut Process,
        answers: &mut Answers,
    ) -> Result<usize> {
        let least = answers.checked(process, program.least)?;
        if self.quick {
            return Ok(program.least);
        }
        if !program.is_divisible {
            return Ok(match self.domain {
                Domain::File => program.least,
                _ => program.most,
            });
        }
        let ns = least.iter().map(|sample| sample.ns).sum::<f64>();
        let fitting = self.turn_ns() / ns;
        Ok((fitting as usize).clamp(program.least, program.most))
    }
}
