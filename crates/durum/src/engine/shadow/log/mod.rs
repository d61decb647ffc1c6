//! The logs of records: stamps, which put records in order, and the writing end of each thread's log.

pub(super) mod entries;
mod line_owners;
pub(super) mod missing;
pub(super) mod owners;
mod parts;
pub(super) mod recovery_cost;
pub(super) mod segments;
pub(super) mod stamps;
mod stream;
pub(super) mod writer;
