//! The logs that a store has: its log space, the puddles of all logs, and the logs that no thread uses just now.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, Weak};

use crate::alloc::Puddle;
use crate::log::LogWriter;
use crate::primitive::locked;

/// Puddles for logs of entries that are kept for a full disk. With the puddle that each log has they hold what 100,000
/// deletes in one transaction take: 64 bytes to change what leads to an object, 32 for its bit.
pub(crate) const SPARES: usize = 4;

/// The directory of this client's logs.
#[derive(Debug)]
pub(crate) struct LogSpace {
    pub(crate) puddle: Arc<Puddle>,
    /// Index of the next free entry.
    pub(crate) next: u64,
}

#[derive(Debug, Default)]
pub(crate) struct LogsState {
    pub(crate) space: Option<LogSpace>,
    /// Logs whose thread ended; armed and empty.
    pub(crate) idle: Vec<LogWriter>,
    /// Puddles for the logs on a full disk.
    pub(crate) spares: Vec<Arc<Puddle>>,
}

/// The part of a store that knows its logs.
#[derive(Debug, Default)]
pub(crate) struct Logs {
    pub(crate) state: Mutex<LogsState>,
    /// Spares are in use: logs give back first what they could do without.
    pub(crate) lacks_spares: AtomicBool,
    /// Every log puddle, to unmap at the end: threads that live on still know theirs.
    puddles: Mutex<Vec<Weak<Puddle>>>,
}

impl Logs {
    pub(crate) fn lock(&self) -> MutexGuard<'_, LogsState> {
        locked(&self.state)
    }

    pub(crate) fn puddles(&self) -> MutexGuard<'_, Vec<Weak<Puddle>>> {
        locked(&self.puddles)
    }

    /// Unmaps every log puddle: the store closes.
    pub(crate) fn unmap(&self) {
        for puddle in self.puddles().iter().filter_map(Weak::upgrade) {
            puddle.unmap();
        }
    }
}
