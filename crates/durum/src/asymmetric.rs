//! An asymmetric fence: the two sides of a handshake that never miss each other, where one of them comes all the time
//! and the other hardly ever.
//!
//! ```text
//! light side                         heavy side
//! 1  own word = something            1  shared word = something
//! 2  (the compiler keeps the order)  2  membarrier: a full fence in every running thread
//! 3  read the shared word            3  read the others' own words
//! ```
//!
//! A processor may do step 3 of the light side before step 1. The membarrier falls somewhere between a thread's
//! instructions: behind step 1, then step 3 of the heavy side sees the own word; or before, then step 3 of the light
//! side comes later still and sees the shared one. A thread that is not running has passed a full fence when it was put
//! aside. Where the system has no membarrier, the light side makes a full fence itself.
//!
//! On it stand a [`Bias`], of the lock of Shadow's checkpoint, a bias that is given to who is alone ([`Owner`]), of the
//! lock of a pool's updates and of `durum-kv` ([`ReadersWriter`]), and a list of members (`members.rs`), of the gate of
//! a store and of the revocable reference by which the typed interface knows that its pool is open. The handles of
//! NVL-C use it directly: their words are masks of heaps and are never freed, and the list of them takes no lock.
//!
//! In `tests/loom` each of these protocols is tried with one fence on each side. That one fence on each side is what
//! the processor and the membarrier make of it, is tried by a model of its own, `asymmetric/model.rs`.

mod bias;
pub(crate) mod members;
#[cfg(test)]
mod model;
mod owner;
mod read_indicator;
mod readers_writer;

use std::sync::OnceLock;
use std::sync::atomic::{Ordering, compiler_fence, fence};

use rustix::thread::{MembarrierCommand, membarrier, membarrier_query};

use crate::error::{Error, Result};
use crate::fault::OnceInProcess;

pub use bias::{Bias, Busy, Inside};
pub use owner::{Owner, TURNS_MAX, TURNS_MIN, Turns, own_word};
pub use readers_writer::{Place, ReadersWriter};

/// How to make every running thread of this process pass a fence.
fn command() -> Option<MembarrierCommand> {
    static COMMAND: OnceLock<Option<MembarrierCommand>> = OnceLock::new();
    *COMMAND.get_or_init(|| {
        let known = membarrier_query();
        [
            MembarrierCommand::PrivateExpedited,
            MembarrierCommand::Global,
        ]
        .into_iter()
        .find(|command| known.contains_command(*command))
    })
}

/// Not when a store opens: with threads running it takes milliseconds, and few programs need it.
fn register() -> rustix::io::Result<()> {
    static REGISTERED: OnceInProcess<rustix::io::Result<()>> = OnceInProcess::new();
    *REGISTERED.get_or_init(|| membarrier(MembarrierCommand::RegisterPrivateExpedited))
}

/// Whether [`light_fence`] suffices against [`heavy_fence`], which may take milliseconds.
pub(crate) fn is_there() -> bool {
    command().is_some()
}

/// The light side's step 2.
#[inline(always)]
pub fn light_fence() {
    compiler_fence(Ordering::SeqCst);
}

/// The heavy side's step 2, however long it takes; a fence of this thread alone where [`is_there`] says no.
///
/// # Errors
/// `System`.
pub(crate) fn heavy_fence() -> Result<()> {
    fence(Ordering::SeqCst);
    let Some(command) = command() else {
        return Ok(());
    };
    if matches!(command, MembarrierCommand::PrivateExpedited) {
        register().map_err(|error| Error::system("registering for memory barriers", error))?;
    }
    membarrier(command).map_err(|error| Error::system("a barrier for all threads", error))
}

/// Whether [`fence_all`] will work, and cost no more than microseconds.
pub fn can_fence_all() -> bool {
    matches!(command(), Some(MembarrierCommand::PrivateExpedited)) && register().is_ok()
}

/// The heavy side's step 2; only where [`can_fence_all`].
pub fn fence_all() {
    fence(Ordering::SeqCst);
    if let Err(error) = membarrier(MembarrierCommand::PrivateExpedited) {
        // A program that forbids itself system calls (seccomp) has to allow this one. To go on would be to share what
        // another thread believes to be its own.
        tracing::error!(%error, "membarrier is refused, which this process was allowed to use when it began");
        std::process::abort();
    }
}
