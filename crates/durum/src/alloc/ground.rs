//! What allocation asks of the pool that it works for.

use std::path::Path;
use std::sync::Arc;

use super::pool_heap::PoolHeap;
use super::puddle::Puddle;
use crate::error::Result;
use crate::poison::Poison;

/// A pool, as far as allocation knows it.
pub(crate) trait Ground {
    /// What its threads share to allocate.
    fn heap(&self) -> &PoolHeap;

    /// Its name, for errors.
    fn name(&self) -> &str;

    /// Where its files are.
    fn directory(&self) -> &Path;

    /// Whether it may be changed still.
    fn poison(&self) -> &Poison;

    /// Whether its engine wants to know of fresh objects apart from what else is announced.
    fn keeps_objects(&self) -> bool;

    /// Whether this thread is the only one that changes what the pool's transactions share, until what this returns is
    /// dropped; others wait for that, so it is to be soon. For threads that have a part in its commits.
    fn try_alone(&self) -> Option<impl Sized>;

    /// Makes a puddle of `size` bytes for it, mapped.
    ///
    /// # Errors
    /// `StorageFull`, `AddressSpace` and others: nothing is left behind.
    fn make_puddle(&self, size: u64) -> Result<Arc<Puddle>>;

    /// Maps one or more of its puddles that are not mapped yet. False: all are.
    ///
    /// # Errors
    /// Those of its file, and of mapping it.
    fn map_more(&self) -> Result<bool>;

    /// Unmaps and removes a puddle in which nothing lies.
    fn remove_puddle(&self, puddle: Arc<Puddle>);

    /// Has logs give back what they could do without: the disk is full.
    ///
    /// # Errors
    /// Those of bringing home what is logged.
    fn give_log_back(&self) -> Result<()>;

    /// Sees to it that nothing will be written to its puddles for what was committed before.
    ///
    /// # Errors
    /// As above. After one its puddles have to stay mapped.
    fn drain(&self) -> Result<()>;
}
