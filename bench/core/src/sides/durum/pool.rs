//! A pool for one run, and how it is used.

use std::fs;
use std::path::PathBuf;

use durum::{Pool, Store};

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
    pub(super) _store: Store,
    pub(super) _service: Option<Durumd>,
    pub(super) _dir: TempDir,
}

#[derive(Debug)]
pub(in crate::sides) struct TempDir(pub(in crate::sides) PathBuf);

impl Drop for TempDir {
    fn drop(&mut self) {
        // What stays behind is found by the owner of the directory above, who removes that too.
        let _ = fs::remove_dir_all(&self.0);
    }
}
