//! Paths to values: `root.tasks[2203].name`.

use std::fmt;
use std::str::FromStr;

use super::printable;

/// Bytes and steps of a path.
const LENGTH_MAX: usize = 64 << 10;
const STEPS_MAX: usize = 1024;

/// Before the key of a map that is meant itself, and not its value: `root.places[key "Rome"]`.
pub(super) const OF_KEY: &str = "key ";

/// The way from the root, or from an object, to a value. Pointers, cells, options and counts on it are not named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Path {
    /// Where it begins, if that is not the root: the address of an object.
    pub start: Option<u64>,
    /// Its parts.
    pub steps: Vec<Step>,
}

/// A part of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// A field by name.
    Field(String),
    /// An element by number, or a map's value by key, as `inspect` shows it; behind `key ` the key itself.
    Key(String),
}

/// Why a path leads to nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    /// It is no path.
    #[error(
        "`{path}` is no path: {problem}; one looks like `root.tasks[2203].name`, a text as key is in quotes"
    )]
    Syntax {
        /// What was given.
        path: String,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// There is no such part.
    #[error("`{path}`: {problem}")]
    Nothing {
        /// The path as far as there is nothing.
        path: String,
        /// What is there.
        problem: String,
    },
    /// It goes on in another pool.
    #[error(
        "`{path}`: this pointer leaves the pool: go on in pool \"{pool}\" with the path {rest}"
    )]
    Leaves {
        /// The path as far as the pointer.
        path: String,
        /// The other pool.
        pool: String,
        /// The path from its root, with what is left of the one that was given.
        rest: String,
    },
}

impl Path {
    /// One from the same beginning with other steps.
    pub(super) fn with(&self, steps: &[Step]) -> Self {
        Self {
            steps: steps.to_vec(),
            ..*self
        }
    }
}

impl FromStr for Path {
    type Err = PathError;

    fn from_str(text: &str) -> Result<Self, PathError> {
        let refuse = |problem| PathError::Syntax {
            path: printable(text),
            problem,
        };
        if text.len() > LENGTH_MAX {
            return Err(refuse("it is too long"));
        }
        let after_root = |rest: &&str| rest.is_empty() || rest.starts_with(['.', '[']);
        let (start, rest) = match text.strip_prefix("0x") {
            Some(digits) => {
                let end = digits.find(['.', '[']).unwrap_or(digits.len());
                let (digits, rest) = digits.split_at(end);
                let start = u64::from_str_radix(digits, 16);
                (
                    Some(start.map_err(|_| refuse("it does not begin with an address"))?),
                    Some(rest),
                )
            }
            None => (None, text.strip_prefix("root")),
        };
        let rest = rest.filter(after_root);
        let mut rest = rest
            .ok_or_else(|| refuse("it does not begin with `root` or the address of an object"))?;
        let mut steps = Vec::new();
        while let Some(first) = rest.chars().next() {
            let (_, behind) = rest.split_at(first.len_utf8());
            if first == '.' {
                let (name, next) = behind.split_at(behind.find(['.', '[']).unwrap_or(behind.len()));
                if name.is_empty() {
                    return Err(refuse("a name is missing behind `.`"));
                }
                steps.push(Step::Field(name.to_owned()));
                rest = next;
            } else if first == '[' {
                let end = key_end(behind).ok_or_else(|| refuse("a `]` is missing"))?;
                let (key, next) = behind.split_at(end);
                steps.push(Step::Key(key.to_owned()));
                rest = next.get(1..).unwrap_or_default();
            } else {
                return Err(refuse("behind `]` comes `.` or `[`"));
            }
            if steps.len() > STEPS_MAX {
                return Err(refuse("it has too many parts"));
            }
        }
        Ok(Self { start, steps })
    }
}

/// Where a key ends: at the `]` that is neither in quotes nor ends brackets in it.
fn key_end(text: &str) -> Option<usize> {
    let (mut depth, mut is_quoted, mut is_escaped) = (0, false, false);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if is_quoted => is_escaped = true,
            b'"' => is_quoted = !is_quoted,
            _ if is_quoted => {}
            b']' if depth == 0 => return Some(at),
            b']' | b'}' | b')' => depth -= 1,
            b'[' | b'{' | b'(' => depth += 1,
            _ => {}
        }
    }
    None
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.start {
            Some(start) => write!(f, "{start:#x}")?,
            None => f.write_str("root")?,
        }
        self.steps.iter().try_for_each(|step| write!(f, "{step}"))
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Field(name) => write!(f, ".{}", printable(name)),
            Self::Key(key) => write!(f, "[{}]", printable(key)),
        }
    }
}
