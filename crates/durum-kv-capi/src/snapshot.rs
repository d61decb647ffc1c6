//! What C has of a snapshot.

use std::sync::Arc;

use kv::Snapshot;

use crate::dependents::{Dependent, Dependents};

/// A database as it was.
#[derive(Debug)]
pub struct leveldb_snapshot_t {
    /// None: its database is closed.
    pub(crate) snapshot: Option<Snapshot>,
    pub(crate) among: Arc<Dependents>,
}

impl Dependent for leveldb_snapshot_t {
    fn end(&mut self) {
        self.snapshot = None;
    }
}
