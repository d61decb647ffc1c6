//! Compares the counts of a store with a count in plain memory.

use std::collections::HashMap;
use std::path::Path;
use std::time::{Duration, Instant};

use super::map::{Word, WordMap};
use super::pool::DemoPool;
use super::text::words;
use crate::failure::Failure;

/// Differences that are told.
const DIFFERENCES_MAX: usize = 10;

/// What a comparison found; nothing in a store where nothing was counted.
#[derive(Default)]
pub(crate) struct Verdict {
    /// Words counted, repetitions included.
    pub(crate) counted: u64,
    /// Different words.
    pub(crate) different: u64,
    /// Complete passes over the text; of the part that is furthest behind.
    pub(crate) passes: u64,
    /// Words of the text.
    pub(crate) text_words: u64,
    /// Words whose counts differ, at most so many as are told: word, stored count, true count.
    pub(crate) differences: Vec<(Word, u64, u64)>,
    /// How many there are.
    pub(crate) difference_count: u64,
}

impl Verdict {
    /// The failure that tells about differences, if there are any.
    pub(crate) fn into_result(self) -> Result<Self, Failure> {
        if self.difference_count == 0 {
            return Ok(self);
        }
        let mut message = format!("{} words are counted wrongly:", self.difference_count);
        for (word, found, expected) in &self.differences {
            message += &format!(
                "\n  {:<20} {found} in the store, {expected} in plain memory",
                word.to_string()
            );
        }
        Err(Failure::Damaged(message))
    }
}

/// Compares the counts with those of the words that the store says were counted, by the text in the store.
pub(crate) fn prefix(store: &Path) -> Result<Verdict, Failure> {
    let Some((_store, pool)) = DemoPool::open_existing(store)? else {
        return Ok(Verdict::default());
    };
    let mut expected: HashMap<Word, u64> = HashMap::new();
    for piece in pool.pieces() {
        let (counted, words_in_piece) = (piece.counted(), piece.words());
        let (passes, part) = match words_in_piece {
            0 => (0, 0),
            _ => (counted / words_in_piece, counted % words_in_piece),
        };
        for (at, word) in words(piece.text()).enumerate() {
            let count = passes + u64::from((at as u64) < part);
            if count > 0 {
                *expected.entry(word).or_default() += count;
            }
        }
    }
    Ok(compare(&pool, &expected))
}

/// A count in plain memory, and how long it took.
pub(crate) fn plain(text: &[u8]) -> (HashMap<Word, u64>, Duration) {
    let began = Instant::now();
    let mut counts: HashMap<Word, u64> = HashMap::new();
    for word in words(text) {
        *counts.entry(word).or_default() += 1;
    }
    (counts, began.elapsed())
}

/// Compares the counts with complete passes over a text, given by its count in plain memory. Of the store only the
/// counts and the number of passes are used.
pub(crate) fn passes(store: &Path, plain: &HashMap<Word, u64>) -> Result<Verdict, Failure> {
    let Some((_store, pool)) = DemoPool::open_existing(store)? else {
        return Err(Failure::Damaged("the pool with the counts is gone".into()));
    };
    let counted: u64 = pool.pieces().iter().map(|piece| piece.counted()).sum();
    let text_words: u64 = plain.values().sum();
    if !counted.is_multiple_of(text_words) {
        return Err(Failure::Damaged(format!(
            "{counted} words were counted, which is no multiple of the {text_words} words of the text"
        )));
    }
    let passes = counted / text_words;
    let expected = plain
        .iter()
        .map(|(word, count)| (*word, count * passes))
        .collect();
    Ok(compare(&pool, &expected))
}

fn compare(pool: &DemoPool, expected: &HashMap<Word, u64>) -> Verdict {
    let mut found: HashMap<Word, u64> = HashMap::new();
    let mut differences = Vec::new();
    // SAFETY: the pool is open and this process has one thread in it.
    unsafe {
        WordMap::for_each(pool.map(), |word, count| {
            *found.entry(word).or_default() += count;
        });
    }
    for (word, expected) in expected {
        let found = found.get(word).copied().unwrap_or(0);
        if found != *expected {
            differences.push((*word, found, *expected));
        }
    }
    for (word, found) in &found {
        if !expected.contains_key(word) {
            differences.push((*word, *found, 0));
        }
    }
    differences.sort_unstable();
    let pieces = pool.pieces();
    let difference_count = differences.len() as u64;
    differences.truncate(DIFFERENCES_MAX);
    Verdict {
        counted: pieces.iter().map(|piece| piece.counted()).sum(),
        different: found.len() as u64,
        passes: pieces
            .iter()
            .filter(|piece| piece.words() > 0)
            .map(|piece| piece.counted() / piece.words())
            .min()
            .unwrap_or(0),
        text_words: pieces.iter().map(|piece| piece.words()).sum(),
        differences,
        difference_count,
    }
}
