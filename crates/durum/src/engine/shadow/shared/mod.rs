//! What all threads of a store share to commit, and the threads that work for them.

mod background;
mod checkpointer;
mod coalesce;
mod flusher;
pub(super) mod group;
pub(super) mod lanes;
pub(super) mod queue;
pub(super) mod state;
