//! Every side has to answer what the plain program does.

use std::collections::HashMap;
use std::path::Path;

use super::compile::Compiled;
use super::process::Process;
use super::suite::Program;
use crate::error::{Error, Result};
use crate::measure::{Clock, Sample};
use crate::workload::Row;

/// What the plain program answers, for any amount of work.
pub(super) struct Answers {
    plain: Process,
    known: HashMap<usize, Vec<String>>,
    rows: &'static [Row],
}

impl Answers {
    pub(super) fn new(
        program: &'static Program,
        compiled: &Compiled,
        is_quick: bool,
    ) -> Result<Answers> {
        let executable = compiled.executable(program, &program.sides[0].build);
        Ok(Answers {
            plain: Process::start(
                program.sides[0].name,
                &executable,
                Path::new(""),
                program.size(is_quick),
                Clock::Wall,
                None,
            )?,
            known: HashMap::new(),
            rows: program.rows,
        })
    }

    /// What each row took for one piece of work, if its answer is right.
    pub(super) fn checked(&mut self, process: &mut Process, work: usize) -> Result<Vec<Sample>> {
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
