//! Poison: why nothing may be written any more. A failure of the media, for a whole store; or that a pool was opened
//! for reading only.

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::{Error, Result};
use crate::primitive::locked;

/// Whether a pool (or a store) may still be used, shared by all that must know.
#[derive(Debug, Default)]
pub(crate) struct Poison {
    set: AtomicBool,
    why: Mutex<Option<Why>>,
}

#[derive(Debug)]
enum Why {
    Failed(PathBuf, u64, &'static str),
    /// The pool of this name is open for reading only.
    ReadOnly(String),
}

impl Poison {
    /// That of a pool which is open for reading only.
    pub(crate) fn of_reading(pool: &str) -> Self {
        Self {
            set: AtomicBool::new(true),
            why: Mutex::new(Some(Why::ReadOnly(pool.to_owned()))),
        }
    }

    pub(crate) fn set(&self, file: &Path, offset: u64, reason: &'static str) {
        locked(&self.why).get_or_insert_with(|| Why::Failed(file.to_owned(), offset, reason));
        self.set.store(true, Ordering::Release);
    }

    #[inline]
    pub(crate) fn check(&self) -> Result<()> {
        if self.set.load(Ordering::Relaxed) {
            Err(self.error())
        } else {
            Ok(())
        }
    }

    #[cold]
    fn error(&self) -> Error {
        let (file, offset, reason) = match &*locked(&self.why) {
            Some(Why::ReadOnly(pool)) => return Error::ReadOnly { pool: pool.clone() },
            Some(Why::Failed(file, offset, reason)) => (file.clone(), *offset, *reason),
            None => Default::default(),
        };
        Error::Poisoned {
            file,
            offset,
            reason,
        }
    }
}
