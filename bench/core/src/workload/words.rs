//! Rows of the word count: who brings chunks of text, and one thread or two that count them.

use std::path::Path;

use super::{Asked, Row, Session, Workload};
use crate::error::Result;
use crate::inputs::Scale;
use crate::inputs::programs::{self, WordInputs};
use crate::measure::{Meter, Sample};
use crate::side::{Side, Words};

const ROWS: [Row; 3] = [
    Row {
        name: "words_bring",
        one_op: "word of a text that is cut into chunks of 4 KiB, a transaction each",
    },
    Row {
        name: "words_count_1",
        one_op: "word of these chunks that is counted, two transactions each chunk, by one thread",
    },
    Row {
        name: "words_count_2",
        one_op: "word of these chunks that is counted, two transactions each chunk, by two threads",
    },
];

/// The place of `words_count_1`.
const LONE: usize = 1;

pub(crate) struct WordsWorkload {
    inputs: WordInputs,
}

impl WordsWorkload {
    pub(crate) fn new(scale: &Scale) -> Self {
        WordsWorkload {
            inputs: programs::words(scale),
        }
    }
}

impl Workload for WordsWorkload {
    fn rows(&self) -> &[Row] {
        &ROWS
    }

    fn lone(&self) -> Option<usize> {
        Some(LONE)
    }

    fn open<'w>(&'w self, side: &'w dyn Side, dir: &'w Path) -> Result<Box<dyn Session + 'w>> {
        Ok(Box::new(WordsSession {
            words: Some(side.words(dir)?),
            open: Box::new(|| side.words(dir)),
            side: side.name(),
            inputs: &self.inputs,
        }))
    }
}

struct WordsSession<'w> {
    /// With text, once a row has brought it.
    words: Option<Box<dyn Words>>,
    /// Makes another one, when that is gone.
    open: Box<dyn Fn() -> Result<Box<dyn Words>> + 'w>,
    side: &'w str,
    inputs: &'w WordInputs,
}

impl Session for WordsSession<'_> {
    fn run(&mut self, row: &'static str, meter: &mut Meter) -> Result<Sample> {
        let inputs = self.inputs;
        let asked = Asked {
            side: self.side,
            row,
        };
        let threads = match row {
            "words_bring" => {
                let mut words = self.words.take().map_or_else(&self.open, Ok)?;
                let (sample, result) = meter.measure(inputs.count, || words.bring(&inputs.text));
                result?;
                self.words = Some(words);
                return Ok(sample);
            }
            "words_count_1" => 1,
            _ => 2,
        };
        let mut words = match self.words.take() {
            Some(words) => words,
            None => {
                let mut words = (self.open)()?;
                words.bring(&inputs.text)?;
                words
            }
        };
        let met = words.contended();
        let shared = &*words;
        let counting = (0..threads).map(|thread| move || shared.count(thread, threads));
        let (sample, _) = meter.measure_together(inputs.count / threads, counting.collect())?;
        asked.expect(inputs.walk, words.walk())?;
        // Threads that count work on lanes of their own.
        asked.expect(met, words.contended())?;
        Ok(sample)
    }
}
