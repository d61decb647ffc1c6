//! Pools as they were at some moment, while their program goes on: what it shows of them, and who asks it to.

use durum_format::Uuid;
use serde::{Deserialize, Serialize};

use crate::error::Result;

/// Pools as they were at some moment.
pub trait Picture {
    /// Fills `bytes`, which are as long as the puddle, with what it held; with one copy, where there are two.
    ///
    /// # Errors
    /// `Damaged`, `Io` and others for what cannot be read.
    fn read(&self, puddle: Uuid, bytes: &mut [u8]) -> Result<()>;

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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InUse {
    /// The pool.
    pub pool: Uuid,
    /// The client.
    pub writer: Uuid,
}

/// Where in a file a puddle is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShownAt {
    /// The puddle.
    pub puddle: Uuid,
    /// Where what it held begins, in bytes.
    pub offset: u64,
}

/// Puddles of a pool that is shown at most.
pub const SHOWN_MAX: usize = 40_000;
