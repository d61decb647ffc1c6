//! What tests and benchmarks ask of the engine.

use super::pages::reclaim::give_all_pages_back;
use super::shared::state::Shared;
use crate::error::Result;
use crate::opened::Store;

impl Store {
    /// Gives back every private page that holds nothing but what is at home, now and whatever the limit is. How many
    /// those were; `None` if a transaction was open. For tests.
    ///
    /// # Errors
    /// `Poisoned`, `System`.
    #[doc(hidden)]
    pub fn give_pages_back(&self) -> Result<Option<usize>> {
        self.check()?;
        give_all_pages_back(&Shared::of(&self.inner), &self.inner)
    }

    /// One step of what the checkpointer does: brings home what is durable, or the part of it that makes a batch. For
    /// tests.
    ///
    /// # Errors
    /// `Poisoned`, `StorageFull`, `System`.
    #[doc(hidden)]
    pub fn step_checkpoint(&self) -> Result<()> {
        self.check()?;
        Shared::of(&self.inner).bring_batch_home()
    }

    /// From now on owners of lines order the records of Shadow pools, whenever several threads commit, also where the
    /// counter would cost less. For tests.
    #[doc(hidden)]
    pub fn order_by_owner(&self) {
        let shared = Shared::of(&self.inner);
        shared.lanes.order_by_owner(&shared.stamps);
    }

    /// Whether owners of lines order the records of Shadow pools now. For tests.
    #[doc(hidden)]
    pub fn is_ordered_by_owner(&self) -> bool {
        Shared::of(&self.inner).stamps.owners.order()
    }

    /// From now on commits of Shadow pools bring nothing home, and go on as if they did: what they have changed is lost
    /// in the end. For a benchmark of what home updates take.
    #[doc(hidden)]
    pub fn dangerous_skip_home_updates(&self) {
        Shared::of(&self.inner).lanes.skip_home();
    }

    /// Private pages that count for [`StoreOptions::private_max`], and how many were given back so far. For tests.
    #[doc(hidden)]
    pub fn private_pages(&self) -> (usize, u64) {
        let shared = Shared::of(&self.inner);
        (shared.budget.pages(), shared.budget.given_back())
    }
}
