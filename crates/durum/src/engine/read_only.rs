//! What runs a pool that is open for reading only, whatever its engine is: nothing. Programs see the media, where all
//! is at home that was committed.

use std::ops::Range;

use crate::alloc::Puddle;
use crate::error::{Error, Result, Step};
use crate::opened::{Engine, Facts, PoolInner, TxState};

#[derive(Debug)]
pub(super) struct ReadOnly;

impl Engine for ReadOnly {
    fn facts(&self) -> Facts {
        Facts::default()
    }

    /// No transaction gets here: the pool's poison refuses it before.
    fn commit(&self, _tx: &mut TxState) -> Step {
        Err(Error::NoTransaction.into())
    }

    fn abort(&self, _tx: &mut TxState) {}

    fn persist(
        &self,
        _tx: &mut TxState,
        pool: &PoolInner,
        _ranges: &[(&Puddle, Range<usize>)],
    ) -> Result<()> {
        pool.check_usable()
    }
}
