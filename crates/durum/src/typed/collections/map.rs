//! What the two maps have in common: slots with entries, and what std's maps offer for these.

pub(super) mod entry;
pub(super) mod iter;
pub(super) mod methods;
pub(in crate::typed) mod rebuild;
pub(super) mod slot;
pub(super) mod traits;
