//! Stores that a transaction has deferred to its commit.

use std::ptr::NonNull;

use crate::alloc::Puddle;

/// A change that `set` deferred to the commit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Set {
    pub(crate) puddle: NonNull<Puddle>,
    pub(crate) target: usize,
    pub(crate) len: usize,
    /// Where the bytes start in `TxState::set_bytes`.
    pub(crate) from: usize,
}
