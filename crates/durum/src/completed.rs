//! What programs were interrupted in is completed by the code that they have deposited, when somebody opens a pool that
//! it concerns (docs/internals/resumption.md). In a store whose host is this process: another one does that by itself.

use std::fmt;
use std::sync::Arc;

use durum_remote::completing;
use durum_runner::{Here, Limits};
use durum_service::Host;

use crate::error::Result;

/// Who has code complete what is left in a pool. Behind a trait, as code that is itself such code has none.
pub(crate) trait Completer: fmt::Debug + Send + Sync {
    /// Whether any was completed.
    ///
    /// # Errors
    /// Of the store.
    fn complete(&self, pool: &str) -> Result<bool>;
}

/// The store's host.
#[derive(Debug)]
pub(crate) struct ByDeposit(pub(crate) Arc<Host>);

impl Completer for ByDeposit {
    fn complete(&self, pool: &str) -> Result<bool> {
        let mut left = self.0.to_complete()?;
        // What was tried is not tried again: whoever opens the store anew does.
        left.retain(|left| {
            left.not_completed.is_none() && left.pools.iter().any(|name| name == pool)
        });
        if left.is_empty() {
            return Ok(false);
        }
        // Without bounds nobody's code is run but one's own.
        let Ok(runner) = Here::new() else {
            return Ok(false);
        };
        let mut any = false;
        for left in left {
            // Whoever opens the pool is told why not.
            let completed = completing::complete(&self.0, left.client, &runner, &Limits::default());
            any |= completed.is_ok();
        }
        Ok(any)
    }
}
