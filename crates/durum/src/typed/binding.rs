//! Bindings: what ties a pool type to the one pool that is open under it.
//!
//! How a transaction knows that the pool is open, and keeps it so, is told in [`revocable`](super::revocable).

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use super::deferred_drops::DeferredDrops;
use super::pool_id::PoolId;
use super::revocable::Revocable;
use super::volatile_words::{VolatileWords, WordsMapping};
use crate::error::{Error, Result};
use crate::opened::{Pool, Store};
use crate::primitive::locked;

/// An open pool, as the threads share it.
#[derive(Debug)]
pub struct OpenPool {
    // In this order: the pool closes before its store, and the words go last.
    pub(super) pool: Pool,
    pub(super) store: Store,
    /// The store was opened for this pool.
    pub(super) closes_store: bool,
    /// Different for each opening in this process.
    pub(super) serial: u64,
    /// Address of the `RootHeader`, at the start of the root object.
    pub(super) root: usize,
    pub(super) deferred_drops: DeferredDrops,
    pub(super) finds_deadlocks: bool,
    pub(super) _words: WordsMapping,
    pub(super) _identity: Identity,
}

/// The right to have a pool open under a pool type's identity.
///
/// Two pool types that a macro declares at one place have one identity, and the compiler takes pointers into either for
/// pointers into the other. So they are not open at the same time.
#[derive(Debug)]
pub(super) struct Identity(PoolId);

static IDENTITIES: Mutex<Vec<PoolId>> = Mutex::new(Vec::new());

impl Identity {
    fn take(id: PoolId, binding: &Binding) -> Result<Self> {
        let mut taken = locked(&IDENTITIES);
        if taken.contains(&id) {
            return Err(binding.in_use());
        }
        taken.push(id);
        Ok(Self(id))
    }
}

impl Drop for Identity {
    fn drop(&mut self) {
        let mut taken = locked(&IDENTITIES);
        taken.retain(|id| *id != self.0);
    }
}

/// What a pool type has in common between threads.
#[derive(Debug)]
pub struct Binding {
    pub(super) name: &'static str,
    pub(super) words: VolatileWords,
    /// The serial of the open pool, or 0.
    serial: AtomicU64,
    pub(super) open: Revocable<OpenPool>,
}

impl Binding {
    #[doc(hidden)]
    pub const fn new(name: &'static str) -> Self {
        Self {
            name,
            words: VolatileWords::new(),
            serial: AtomicU64::new(0),
            open: Revocable::new(),
        }
    }

    /// The number of the opening that lasts, or 0.
    #[inline]
    pub(super) fn serial(&self) -> u64 {
        self.serial.load(Ordering::Acquire)
    }

    pub(super) fn not_open(&self) -> Error {
        Error::NotOpen {
            pool_type: self.name,
        }
    }

    fn in_use(&self) -> Error {
        Error::PoolTypeInUse {
            pool_type: self.name,
        }
    }

    /// Ties a pool to the type. While `make` runs nobody else does.
    pub(super) fn open(
        &'static self,
        id: PoolId,
        make: impl FnOnce(&'static VolatileWords, Identity) -> Result<OpenPool>,
    ) -> Result<Arc<OpenPool>> {
        let mut locked = self.open.lock();
        // A pool that was closed during transactions is there until these have ended.
        if locked.is_in_use() {
            return Err(self.in_use());
        }
        let identity = Identity::take(id, self)?;
        let open = Arc::new(make(&self.words, identity)?);
        self.serial.store(open.serial, Ordering::Release);
        locked.publish(open.clone());
        Ok(open)
    }

    /// Unties the pool: no transaction begins any more, and the pool closes when the last one has ended.
    ///
    /// `open` is the reference of whoever closes the pool. It is given up under the lock, as all are, so that nobody
    /// opens another pool before this one is closed.
    pub(super) fn close(&self, open: Arc<OpenPool>) {
        let mut locked = self.open.lock();
        self.serial.store(0, Ordering::Release);
        let given_back = locked.revoke();
        // The last reference closes the pool, which takes its time. The lock makes whoever opens it again wait.
        drop(open);
        drop(given_back);
        drop(locked);
    }
}
