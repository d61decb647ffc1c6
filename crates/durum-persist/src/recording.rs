//! How media operations are recorded ([`crate::record`]): what the operations of [`crate::line`] and [`crate::file`]
//! call while a recorder is attached.

mod active;
mod content;
pub(crate) mod hook;
mod region;
mod trace;
mod watcher;

use std::path::PathBuf;

pub(crate) use content::{Content, PAGE, Page, next_data};
pub(crate) use region::Region;
pub(crate) use trace::{Base, BaseNode};
pub use trace::{Data, Event, EventKind, FileId, Note, Trace};

use crate::{Site, state};

/// Whether a recorder is attached to the process.
#[inline]
pub fn active() -> bool {
    state::load() & state::RECORDING != 0
}

/// How to record.
#[derive(Clone, Default, Debug)]
pub struct RecorderOptions {
    /// Leaves the write-backs, fences and syncs of this site out of the trace, as if the program had forgotten them; or
    /// has the program forget a step ([`leaves_out`](crate::record::leaves_out)).
    pub skip: Option<Site>,
    /// Files and directories that are none of the test's business, relative to the root: not in the images, not
    /// in the trace.
    pub ignore: Vec<PathBuf>,
}
