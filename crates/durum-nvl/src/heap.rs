//! An open heap: the pool that it is, and what the process knows of it beside that.

use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};
use std::sync::{Mutex, MutexGuard};

use durum::{Engine, Pool, Store};
use rustc_hash::FxHashSet;

use crate::layout::{Hidden, field, word};
use crate::primitive::locked;

/// Heaps that may be open at a time: a thread's word has a bit for each.
pub(crate) const HEAPS_MAX: usize = 64;

/// An open heap.
#[derive(Debug)]
pub struct Heap {
    /// What programs have of it.
    pub(crate) handle: usize,
    pub(crate) path: PathBuf,
    /// Who opened it: a forked child has the handle, and nothing of what it is for.
    process: u32,
    pub(crate) store: Store,
    pub(crate) pool: Pool,
    /// The root object.
    pub(crate) root: usize,
    /// Held while counts, the zero list and proxies change, from the first word until that is committed.
    counts: Mutex<Counts>,
    /// Allocations that are committed and fresh. While there are none nobody has to ask whether one is.
    pub(crate) fresh: AtomicUsize,
    /// Odd while `garbage` counts: weak pointers to what is in there are null.
    pub(crate) collecting: AtomicU64,
    /// Headers of the allocations that a collection is about to free.
    pub(crate) garbage: Mutex<FxHashSet<Hidden>>,
    /// One collection at a time.
    pub(crate) collection: Mutex<()>,
    /// Segments that clauses name are locked.
    pub(crate) is_concurrent: AtomicBool,
}

/// What the lock of a heap's counts protects beside them.
#[derive(Debug)]
pub(crate) struct Counts {
    /// Length of the zero list.
    pub(crate) listed: usize,
    /// Collect when the list is as long.
    pub(crate) listed_max: usize,
}

/// A zero list below this length is not worth a collection.
pub(crate) const LISTED_MIN: usize = 1 << 16;

impl fmt::Display for Heap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\"", self.path.display())
    }
}

impl Heap {
    /// A heap that this process has opened, and that programs will know by `handle`.
    pub(crate) fn new(handle: usize, path: &Path, store: Store, pool: Pool, root: usize) -> Self {
        Self {
            handle,
            path: path.to_owned(),
            process: std::process::id(),
            store,
            pool,
            root,
            counts: Mutex::new(Counts {
                listed: 0,
                listed_max: LISTED_MIN,
            }),
            fresh: AtomicUsize::new(0),
            collecting: AtomicU64::new(0),
            garbage: Mutex::default(),
            collection: Mutex::new(()),
            is_concurrent: AtomicBool::new(std::env::var_os("DURUM_NVL_CONCURRENT").is_some()),
        }
    }

    /// Its place in the table of heaps.
    #[inline]
    pub(crate) fn index(&self) -> usize {
        self.handle % HEAPS_MAX
    }

    /// Its bit in the words of threads.
    #[inline]
    pub(crate) fn bit(&self) -> u64 {
        1 << self.index()
    }

    /// Whether this process has it by fork only.
    pub(crate) fn is_of_parent(&self) -> bool {
        self.process != std::process::id()
    }

    /// What its store has taken of addresses: the space, and the second range behind it.
    pub(crate) fn addresses(&self) -> Range<usize> {
        let info = self.store.info();
        info.base as usize..(info.base + 2 * info.space_size) as usize
    }

    /// Keeps others from changing counts.
    pub(crate) fn counts(&self) -> MutexGuard<'_, Counts> {
        locked(&self.counts)
    }

    /// The engine of the heap.
    pub(crate) fn engine(&self) -> Engine {
        self.pool.engine()
    }

    /// The link to the first allocation of the zero list, or 0.
    pub(crate) fn first_listed(&self) -> usize {
        // SAFETY: the root object, which is there as long as the pool is open.
        unsafe { word(field!(self.root, HeapRoot, zero)) as usize }
    }
}
