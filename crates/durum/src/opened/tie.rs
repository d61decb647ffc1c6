//! What all handles of a store and of its pools have in common.

use std::fmt::Debug;
use std::sync::Arc;

/// With the last one pools close that nobody has a handle of. Beside `Arc<StoreInner>`, which those pools have, too.
pub(crate) type Tie = Arc<dyn Tied>;

/// Pools that are open by the store's own hand.
pub(crate) trait Tied: Send + Sync + Debug {
    /// Closes them, as far as they are open by now.
    fn let_go(&self);
}
