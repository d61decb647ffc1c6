//! Who runs code: this process, or another one ([`Apart`](crate::Apart)).

use std::fmt;
use std::io;
use std::os::fd::OwnedFd;

use crate::bounds::{Bounds, Missing};
use crate::code::Code;
use crate::limits::Limits;
use crate::running::{Ended, Running};

/// Who runs code.
pub trait Runner: fmt::Debug + Send + Sync {
    /// Runs code, which has its end of `socket` as descriptor 3, and waits for its end.
    ///
    /// # Errors
    /// Of the system. Nothing runs on return.
    fn run(&self, code: &Code, socket: OwnedFd, limits: &Limits) -> io::Result<Ended>;
}

/// This process runs it: a child that nobody else here finds.
#[derive(Debug)]
pub struct Here(Bounds);

impl Here {
    /// With the bounds of this kernel.
    ///
    /// # Errors
    /// [`Missing`]: it has none.
    pub fn new() -> Result<Here, Missing> {
        Ok(Here(Bounds::of_this_kernel()?))
    }
}

impl Runner for Here {
    fn run(&self, code: &Code, socket: OwnedFd, limits: &Limits) -> io::Result<Ended> {
        Running::start(code, socket, &self.0, limits)?.wait()
    }
}
