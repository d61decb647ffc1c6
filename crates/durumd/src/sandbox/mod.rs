//! What the service takes from itself before it reads a byte of a client's: files by Landlock ([`files`]), system calls
//! by seccomp ([`calls`]). Both need no right, and hold for all threads that begin later. [`probe`] tries whether they
//! hold.
//!
//! What is refused is an error of that call, and no end of the process: a call that a library makes in a case that
//! nobody thought of costs one request, and the kernel's log names it.

pub(crate) mod calls;
mod files;
pub(crate) mod probe;

use std::path::{Path, PathBuf};

/// Narrows this process, and says how far: what the kernel does not have is left out. To be called while there is one
/// thread. `own` are sockets that the service makes and removes.
pub(crate) fn narrow(store: &Path, own: &[PathBuf]) {
    match files::narrow(store, own) {
        Ok(()) => {
            tracing::info!(store = %store.display(), "landlock: no file beside the store is within reach")
        }
        Err(problem) => {
            tracing::warn!("no landlock, so all files of this user are within reach: {problem}")
        }
    }
    match calls::narrow() {
        Ok(count) => tracing::info!(calls = count, "seccomp: all other system calls are refused"),
        Err(problem) => {
            tracing::warn!("no seccomp, so all system calls are within reach: {problem}")
        }
    }
}
