//! What the engine keeps of a thread.

use std::sync::Arc;

use super::fresh::FreshRange;
use super::log::writer::Log;
use super::section::Section;
use super::shared::state::Shared;
use crate::opened;
use crate::opened::{PoolInner, StoreInner};

/// On lines of its own: the thread writes to it all the time.
#[derive(Debug)]
#[repr(align(128))]
pub(super) struct OfThread {
    pub(super) shared: Arc<Shared>,
    /// The thread's log of records.
    pub(super) log: Log,
    /// The transaction is a section: changes that nobody announces are found.
    pub(super) section: Option<Section>,
    /// Pages of fresh objects that are home already, in order of address.
    pub(super) written: Vec<FreshRange>,
    /// Fresh ranges that go home with this commit instead of into its record, while that is put together.
    pub(super) chosen: Vec<FreshRange>,
}

impl OfThread {
    /// What was kept of the thread whose transaction commits.
    #[inline(always)]
    pub(super) fn of(kept: &mut dyn opened::OfThread) -> &mut Self {
        // SAFETY: the engine runs transactions for which it has turned to this.
        unsafe { opened::kept_as(kept) }
    }

    /// The thread has a part in what all commit to from now on.
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        Self {
            log: shared.new_log(),
            shared,
            section: None,
            written: Vec::new(),
            chosen: Vec::new(),
        }
    }
}

impl opened::OfThread for OfThread {
    fn end(&mut self, pool: Option<&PoolInner>) {
        self.written.clear();
        if let Some(mut section) = self.section.take()
            && let Some(pool) = pool
        {
            section.end(&self.shared, pool);
        }
    }

    fn leave(self: Box<Self>, _store: &Arc<StoreInner>) {
        self.shared.give_back(self.log);
    }
}
