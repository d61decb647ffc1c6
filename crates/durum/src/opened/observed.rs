//! A store whose program others may watch.

use std::fmt::Debug;
use std::path::Path;

/// Where it answers. Behind a trait, as code that completes sections has none.
pub(crate) trait Observed: Debug + Send + Sync {
    /// Where others come to.
    fn path(&self) -> &Path;

    /// Nobody comes any more: the store closes. Not in a forked child, where it is the parent's.
    fn stop(&self);
}

/// What an engine counts: a name with its unit, what it is, whether it only grows, and its value.
pub(crate) type Tell<'t> = &'t mut dyn FnMut(&str, &str, bool, u64);
