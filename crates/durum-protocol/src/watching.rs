//! What is asked of a program that observes itself, and what it tells (`docs/internals/observing.md`).
//!
//! A connection carries questions and answers as [`crate::frame`] cuts them, in the form of [`crate::message`]. The
//! order of variants and fields is the form: a new question stands behind all others, and who does not know it answers
//! [`Told::Unknown`]. Numbers have names, so that more of them need no other form.

use durum_format::{EngineKind, Uuid};
use serde::{Deserialize, Serialize};

use crate::frame::FrameError;
use crate::message;

/// The most bytes of a question.
pub const QUESTION_MAX: usize = 4096;

/// The most bytes of what is told.
pub const TOLD_MAX: usize = 16 << 20;

/// The most bytes of a name, or of what a number counts.
const TEXT_MAX: usize = 255;

/// The name of an export in the directory of a watcher.
pub const SHOWN: &str = "shown";

/// What is asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Question {
    /// What the program counts: [`Told::Numbers`].
    Numbers,
    /// Pools that the program has open for writing are to be exported as they are at one moment, as [`SHOWN`] in the
    /// directory whose descriptor comes with this: [`Told::Shown`], or why not. The connection ends with the answer.
    Show {
        /// Their names; with none all that are open.
        pools: Vec<String>,
    },
}

/// What is told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Told {
    /// It is not known here what was asked.
    Unknown,
    /// What the program has counted by now.
    Numbers(Numbers),
    /// The export is there.
    Shown,
    /// There is none.
    NotShown {
        /// Why.
        problem: String,
        /// Whose turn it is.
        why: Why,
    },
}

/// Why pools are not shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Why {
    /// It was refused.
    Refused,
    /// Pointers lead to pools that were not asked for.
    NeedsMore,
    /// They are damaged.
    Damaged,
    /// The system failed.
    Failed,
}

/// What a program has counted, and what is so at the moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Numbers {
    /// The store's name for itself.
    pub store: Uuid,
    /// The process, as it sees itself.
    pub pid: u32,
    /// Microseconds that the store has been open.
    pub open_us: u64,
    /// Pools that are open.
    pub pools: Vec<OpenPool>,
    /// The numbers.
    pub all: Vec<Number>,
}

/// A pool that is open.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenPool {
    /// Its name.
    pub name: String,
    /// What runs its transactions.
    pub engine: EngineKind,
    /// It is open for reading only.
    pub is_read_only: bool,
}

/// Something that is counted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Number {
    /// Its name: small letters, digits and `_`, with the unit at the end.
    pub name: String,
    /// What it counts, in a few words.
    pub help: String,
    /// It only grows while the store is open.
    pub grows: bool,
    /// What it is: one value, or one for each pool, in the order of [`Numbers::pools`].
    pub values: Vec<u64>,
    /// There is one for each pool.
    pub is_by_pool: bool,
}

impl Numbers {
    /// Whether it can be shown: a name is one, words control no terminal, and there are as many values as there have to
    /// be.
    fn is_whole(&self) -> bool {
        let is_name = |name: &str| {
            let mut letters = name.bytes();
            letters
                .next()
                .is_some_and(|first| first.is_ascii_lowercase())
                && letters.all(|letter| matches!(letter, b'a'..=b'z' | b'0'..=b'9' | b'_'))
        };
        let is_text = |text: &str| text.len() <= TEXT_MAX && !text.chars().any(char::is_control);
        self.all.iter().all(|number| {
            let wanted = match number.is_by_pool {
                true => self.pools.len(),
                false => 1,
            };
            is_name(&number.name) && is_text(&number.help) && number.values.len() == wanted
        }) && self.pools.iter().all(|pool| is_text(&pool.name))
    }
}

/// Reads a question.
///
/// # Errors
/// [`FrameError::Message`] for bytes that are none that is known here.
pub fn question(bytes: &[u8]) -> Result<Question, FrameError> {
    message::decode(bytes)
}

/// Reads what was told. Whoever is there may send anything.
///
/// # Errors
/// [`FrameError::Message`].
pub fn told(bytes: &[u8]) -> Result<Told, FrameError> {
    match message::decode(bytes)? {
        Told::Numbers(numbers) if !numbers.is_whole() => Err(FrameError::Message(
            "numbers without a name or a value".to_owned(),
        )),
        told => Ok(told),
    }
}
