//! Poison: after a failure of the media a store may not be used any more.

use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::{Error, Result};
use crate::primitive::locked;

/// Whether a pool (or a store) may still be used, shared by all that must know.
#[derive(Debug, Default)]
pub(crate) struct Poison {
    set: AtomicBool,
    what: Mutex<Option<(std::path::PathBuf, u64, &'static str)>>,
}

impl Poison {
    pub(crate) fn set(&self, file: &Path, offset: u64, reason: &'static str) {
        locked(&self.what).get_or_insert((file.to_owned(), offset, reason));
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
        let what = locked(&self.what);
        let (file, offset, reason) = what.clone().unwrap_or_default();
        Error::Poisoned {
            file,
            offset,
            reason,
        }
    }
}
