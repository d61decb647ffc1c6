//! A pool for one run, and how it is used.

use std::fs;
use std::path::PathBuf;

use durum::{Pool, Store, Tx};

use crate::service::Durumd;

/// How a program announces its changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// `add`, then store in place. On engines whose transactions cost the same however many ranges they add.
    InPlace,
    /// Work on copies and `set` at the end. On Hybrid, where each added range costs a fence, and all sets together two.
    Deferred,
}

/// A pool in a store of its own. Fields are dropped in order: the directory goes last.
#[derive(Debug)]
pub(super) struct TempPool {
    pub(super) pool: Pool,
    /// Transactions commit in two halves.
    pub(super) flies: bool,
    pub(super) _store: Store,
    pub(super) _service: Option<Durumd>,
    pub(super) _dir: TempDir,
}

impl TempPool {
    /// A transaction. Where they fly, the next one waits for it, and [`TempPool::settle`] for the last.
    #[inline]
    pub(super) fn transaction<R>(
        &self,
        body: impl FnOnce(&Tx) -> durum::Result<R>,
    ) -> durum::Result<R> {
        match self.flies {
            true => {
                let (value, _next_waits) = self.pool.transaction_in_flight(body)?;
                Ok(value)
            }
            false => self.pool.transaction(body),
        }
    }

    /// Waits for what is in flight.
    pub(super) fn settle(&self) -> durum::Result<()> {
        match self.flies {
            true => self.pool.sync(),
            false => Ok(()),
        }
    }
}

#[derive(Debug)]
pub(in crate::sides) struct TempDir(pub(in crate::sides) PathBuf);

impl Drop for TempDir {
    fn drop(&mut self) {
        // What stays behind is found by the owner of the directory above, who removes that too.
        let _ = fs::remove_dir_all(&self.0);
    }
}
