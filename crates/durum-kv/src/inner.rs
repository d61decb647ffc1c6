//! What all handles of a database share.

use std::fmt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::ThreadId;

use durum::{Durability, Pool, Store};

use crate::error::{Error, Result};
use crate::lock::{ReadersWriter, Reading};
use crate::media::Database;
use crate::pins::Pins;
use crate::queue::Request;
use crate::tree::Tree;

/// The root, which stays where it is as long as the pool is open.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Root(pub(crate) *mut Database);

// SAFETY: a place in the pool, changed by the thread that has the turn to write.
unsafe impl Send for Root {}
// SAFETY: a shared reference gives the place, which only the thread with the turn changes.
unsafe impl Sync for Root {}

/// What all handles of a database share.
pub(crate) struct Inner {
    pub(crate) tree: ReadersWriter<Tree>,
    /// The number of the last commit that readers see.
    pub(crate) visible: AtomicU64,
    pub(crate) pins: Pins,
    /// The thread whose explicit transaction has the turn to write.
    pub(crate) owner: Mutex<Option<ThreadId>>,
    /// Changes that whoever writes next is to make.
    pub(crate) queue: Mutex<Vec<Arc<Request>>>,
    /// The length of `queue`.
    pub(crate) waiting: AtomicUsize,
    /// A commit takes a sync: readers go on meanwhile.
    pub(crate) has_slow_commits: bool,
    /// Writes that say nothing are buffered, as [`BUFFERED`](crate::media::BUFFERED) in the root says.
    pub(crate) is_buffered: AtomicBool,
    /// A write may be in flight. For who has the turn.
    pub(crate) flies: AtomicBool,
    pub(crate) is_read_only: bool,
    pub(crate) database: Root,
    pub(crate) pool: Pool,
    pub(crate) path: PathBuf,
    pub(crate) _store: Store,
}

impl fmt::Debug for Inner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Database")
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}

impl Inner {
    #[inline]
    pub(crate) fn visible(&self) -> u64 {
        self.visible.load(Ordering::Acquire)
    }

    /// When a write is durable that says nothing.
    pub(crate) fn durability(&self) -> Durability {
        match self.is_buffered.load(Ordering::Relaxed) {
            true => Durability::Buffered,
            false => Durability::Durable,
        }
    }

    /// # Errors
    /// durum's `ReadOnly`, before anything is changed in memory.
    pub(crate) fn check_writable(&self) -> Result<()> {
        match self.is_read_only {
            true => Err(Error::Durum(durum::Error::ReadOnly {
                pool: self.pool.name().to_owned(),
            })),
            false => Ok(()),
        }
    }

    /// The tree, which cannot change meanwhile.
    #[inline]
    pub(crate) fn readable(&self) -> Result<Reading<'_, Tree>> {
        let tree = self.tree.read();
        tree.check()?;
        Ok(tree)
    }
}
