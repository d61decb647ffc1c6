//! Pools as they were at some moment, while their program goes on: what it shows of them, and who asks it to.

use std::fmt;

use durum_format::Uuid;

use crate::error::Result;

/// Pools as they were at some moment.
pub trait Picture {
    /// What a puddle of them held, from its beginning on: this many bytes, one copy where there are two.
    ///
    /// # Errors
    /// `Damaged`, `Io` and others for what cannot be read.
    fn read(&self, puddle: Uuid, size: u64) -> Result<Vec<u8>>;

    /// Whether a puddle was one of theirs.
    fn has(&self, puddle: Uuid) -> bool;

    /// The puddle is not asked for any more.
    fn is_done(&self, puddle: Uuid);
}

/// Somebody wants to see a pool that this client writes ([`Service::show_pool`](crate::Service::show_pool)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asked {
    /// What is said of it is about this.
    pub showing: Uuid,
    /// The pool.
    pub pool: Uuid,
}

/// Is told of that, on a thread that must not wait.
pub type ShowFn = dyn Fn(Asked) + Send + Sync;

/// A pool that a client writes.
#[derive(Clone, PartialEq, Eq)]
pub struct InUse {
    /// The pool.
    pub pool: Uuid,
    /// The client.
    pub writer: Uuid,
    /// Its puddles with objects, and their sizes in bytes.
    pub puddles: Vec<(Uuid, u64)>,
}

impl fmt::Debug for InUse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InUse")
            .field("pool", &self.pool)
            .field("writer", &self.writer)
            .field("puddles", &self.puddles.len())
            .finish()
    }
}
