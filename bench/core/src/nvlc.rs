//! The suite of NVL-C: kernels in C (`bench/nvlc`), compiled as plain C by Clang and by durumcc with the options that
//! the symbols of the paper's Table 3 stand for, so that its Figures 5 to 7 can be drawn. A side is a process of its
//! own, which keeps its heap; it is told how much work to do, and tells what that took.

mod compile;
mod compile_time;
mod plan;
mod process;
mod table;

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use durum_persist::domain::{self, Domain};

use crate::error::{Error, Result};
use crate::measure::{Clock, Sample, pin};
use crate::measured::{Column, Measured};
use crate::report::short;
use crate::side::Role;
use crate::workload::Row;

use compile::Compiled;
pub use plan::{NAME, Plan};
use process::Process;
use table::{BARS, PROGRAMS, Program, Side};

/// Turns before those that count.
const WARM_UP: usize = 10;

/// The rows of compile times, beside those of the programs.
pub use compile_time::ROW as COMPILE_TIME;

/// Runs the suite.
///
/// # Errors
/// A program that cannot be compiled or fails, and one whose answer is not that of the plain one.
pub fn run(plan: &Plan, progress: &mut dyn FnMut(&str)) -> Result<Vec<Measured>> {
    let mut measured = Vec::new();
    let programs = PROGRAMS
        .iter()
        .filter(|program| program.rows.iter().any(|row| plan.wants(row.name)));
    let programs: Vec<&Program> = programs.collect();
    progress("compiling");
    let compiled = Compiled::all(plan, &programs)?;
    for (dir, rounds) in &plan.places {
        let place = Place {
            dir,
            domain: domain::detect(dir).map_err(Error::file(dir))?,
            rounds: *rounds,
            clock: plan.clock,
            quick: plan.quick,
        };
        // Programs inherit it. On a disk they mostly wait, and share the work with other threads.
        let _pinned = (place.domain != Domain::File).then(pin).flatten();
        for program in &programs {
            progress(&format!("{}, {}", program.name, place.domain_name()));
            let mut rows = place.run(program, &compiled)?;
            rows.retain(|row| plan.wants(row.row.name));
            measured.append(&mut rows);
        }
    }
    if plan.wants(COMPILE_TIME.name) {
        progress("compile time");
        measured.push(compile_time::run(plan)?);
    }
    Ok(measured)
}

/// A line for each bound that was measured.
pub fn bounds(all: &[Measured]) -> String {
    let mut text = String::new();
    for bar in BARS {
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
            "{:<12} {:<5} / {:<6} {:>5}  (at most {:.2})  {verdict}\n",
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
    dir: &'p Path,
    domain: Domain,
    rounds: usize,
    clock: Clock,
    quick: bool,
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
        let mut sides = Vec::new();
        for side in program.sides {
            let heap = self.heap(program, side);
            let executable = compiled.executable(program, side);
            sides.push(Process::start(
                side.name,
                &executable,
                &heap,
                program.size,
                clock,
            )?);
        }
        let mut answers = Answers::new(program, compiled)?;
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
            let column = |(side, samples): (&Side, &Vec<Vec<Sample>>)| Column {
                side: side.name.to_owned(),
                role: side.role,
                domain: match side.role {
                    Role::Peer => "none",
                    _ => self.domain_name(),
                }
                .to_owned(),
                samples: samples[row].clone(),
            };
            program.sides.iter().zip(&samples).map(column).collect()
        };
        let rows = program.rows.iter().enumerate();
        Ok(rows
            .map(|(index, row)| Measured {
                suite: NAME,
                row: *row,
                columns: columns_of(index),
            })
            .collect())
    }

    /// A heap of the side's own; none for the plain program, whose memory is malloc's.
    fn heap(&self, program: &Program, side: &Side) -> PathBuf {
        match side.role {
            Role::Peer => PathBuf::new(),
            _ => self.dir.join(format!("{}-{}", program.name, side.name)),
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

/// What the plain program answers, for any amount of work.
struct Answers {
    plain: Process,
    known: HashMap<usize, Vec<String>>,
    rows: &'static [Row],
}

impl Answers {
    fn new(program: &'static Program, compiled: &Compiled) -> Result<Answers> {
        let executable = compiled.executable(program, &program.sides[0]);
        Ok(Answers {
            plain: Process::start(
                "plain",
                &executable,
                Path::new(""),
                program.size,
                Clock::Wall,
            )?,
            known: HashMap::new(),
            rows: program.rows,
        })
    }

    /// What each row took for one piece of work, if its answer is right.
    fn checked(&mut self, process: &mut Process, work: usize) -> Result<Vec<Sample>> {
        if !self.known.contains_key(&work) {
            let told = self.plain.run(work, self.rows)?;
            let answers = told.into_iter().map(|(_, answer)| answer).collect();
            self.known.insert(work, answers);
        }
        let told = process.run(work, self.rows)?;
        for ((row, (_, found)), expected) in self.rows.iter().zip(&told).zip(&self.known[&work]) {
            if found != expected {
                return Err(Error::WrongAnswer {
                    side: process.side.to_owned(),
                    row: row.name,
                    expected: expected.clone(),
                    found: found.clone(),
                });
            }
        }
        Ok(told.into_iter().map(|(sample, _)| sample).collect())
    }
}
