//! What the engine keeps of a thread.

use std::sync::Arc;

use super::direct::Direct;
use super::journal::Journal;
use super::section::Section;
use super::writer::Writer;
use crate::opened;
use crate::opened::{PoolInner, StoreInner};

#[derive(Debug)]
pub(super) struct OfThread {
    pub(super) journal: Arc<Journal>,
    /// The thread's log of records.
    pub(super) writer: Writer,
    /// The transaction is a section: changes that nobody announces are found.
    pub(super) section: Option<Section>,
    /// Pages of fresh objects that are home already, in order of address.
    pub(super) written: Vec<Direct>,
}

impl OfThread {
    /// The thread has a part in what all commit to from now on.
    pub(super) fn new(journal: Arc<Journal>) -> Self {
        Self {
            writer: Writer::new(&journal),
            journal,
            section: None,
            written: Vec::new(),
        }
    }
}

impl opened::OfThread for OfThread {
    fn end(&mut self, pool: Option<&PoolInner>) {
        self.written.clear();
        if let Some(mut section) = self.section.take()
            && let Some(pool) = pool
        {
            section.end(&self.journal, pool);
        }
    }

    fn leave(self: Box<Self>, _store: &Arc<StoreInner>) {
        self.writer.give_back(&self.journal);
    }
}
