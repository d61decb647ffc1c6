//! What the threads that update and read one pool share: a readers-writer lock, and what they announce to who leads
//! (Romulus §5; docs/internals/concurrency.md). [`updates`](crate::updates) is what a program calls.
//!
//! Reading order: [`announce`] (who leads, and who waits), [`job`] (what is announced), [`ReadersWriter`] (readers),
//! [`thread`] (what a thread knows of itself).

mod announce;
mod job;
pub(crate) mod thread;

pub(crate) use announce::{Announcement, Announcements, Chain};
pub(crate) use job::Job;

use crate::asymmetric::ReadersWriter;

/// Who keeps the threads of a program apart in [`Pool::update`](crate::Pool::update) and
/// [`Pool::read`](crate::Pool::read).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Concurrency {
    /// durum: updates run one at a time and combined, reads among themselves.
    #[default]
    Combining,
    /// Nobody: for programs in which one thread at a time uses the pool. An update is a transaction, and a read is a
    /// call.
    SingleThreaded,
}

/// What the threads that use a pool share for it.
#[derive(Debug)]
pub(crate) struct Combine {
    pub(crate) announcements: Announcements<Job>,
    /// The turn has who leads, or owns the lock.
    pub(crate) lock: ReadersWriter,
    pub(crate) concurrency: Concurrency,
}

impl Combine {
    pub(crate) fn new(concurrency: Concurrency) -> Self {
        Self {
            announcements: Announcements::new(),
            lock: ReadersWriter::new(true),
            concurrency,
        }
    }
}
