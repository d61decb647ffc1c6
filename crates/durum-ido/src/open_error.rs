//! Why a heap was not opened.

use std::fmt;

/// Why a heap was not opened.
#[derive(Debug)]
#[non_exhaustive]
pub enum OpenError {
    /// What the store says.
    Store(durum::Error),
    /// What this runtime says, with the cure.
    Refused(String),
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Store(error) => error.fmt(f),
            Self::Refused(reason) => f.write_str(reason),
        }
    }
}

impl std::error::Error for OpenError {}

impl From<durum::Error> for OpenError {
    fn from(error: durum::Error) -> Self {
        Self::Store(error)
    }
}

pub(crate) fn refuse<T>(reason: String) -> Result<T, OpenError> {
    Err(OpenError::Refused(reason))
}
