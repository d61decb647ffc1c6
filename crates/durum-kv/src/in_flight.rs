//! Writes in two halves: the first one makes the change, the second one waits until it is durable.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use crate::error::Result;

/// A write that was made and may not be durable yet ([`Db::put_begin`](crate::Db::put_begin)).
///
/// As a future it is ready when it is durable, at once, as [`durum::InFlight`] is. If it is dropped, the write becomes
/// durable all the same: with the next one of this thread, with [`Db::sync`](crate::Db::sync), or when the database is
/// closed.
#[must_use = "it may not be durable yet"]
#[derive(Debug)]
pub struct InFlight<'d> {
    /// `None`: it is durable.
    left: Option<durum::InFlight<'d>>,
}

impl<'d> InFlight<'d> {
    pub(crate) fn new(left: Option<durum::InFlight<'d>>) -> Self {
        Self { left }
    }

    /// Returns when the write is durable, and with it all that this thread has written before.
    ///
    /// # Errors
    /// Those of durum.
    pub fn wait(self) -> Result<()> {
        match self.left {
            Some(left) => Ok(left.wait()?),
            None => Ok(()),
        }
    }

    /// Which record of the engine that is, for C; 0: it is durable.
    #[doc(hidden)]
    pub fn record(&self) -> u64 {
        self.left.as_ref().map_or(0, durum::InFlight::record)
    }
}

impl Future for InFlight<'_> {
    type Output = Result<()>;

    fn poll(mut self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<Result<()>> {
        let left = self.left.take();
        Poll::Ready(InFlight { left }.wait())
    }
}
