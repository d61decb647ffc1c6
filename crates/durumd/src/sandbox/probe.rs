//! Tries what the service must not be able to do.

use std::io;
use std::net::TcpListener;
use std::path::Path;
use std::process::Command;

/// What was tried, and whether it was refused.
pub(crate) struct Tried {
    pub(crate) what: String,
    pub(crate) is_refused: bool,
}

/// Tries all of it, after the service was narrowed.
pub(crate) fn all(store: &Path) -> Vec<Tried> {
    let beside = store.with_extension("tried");
    let tried = |what: &str, outcome: io::Result<()>| Tried {
        what: what.to_owned(),
        is_refused: outcome.is_err_and(|error| error.kind() == io::ErrorKind::PermissionDenied),
    };
    vec![
        tried(
            "reading /etc/passwd",
            std::fs::read("/etc/passwd").map(drop),
        ),
        tried(
            "making a file beside the store",
            std::fs::write(&beside, "").and_then(|()| std::fs::remove_file(&beside)),
        ),
        tried(
            "executing a program",
            Command::new("/bin/true").status().map(drop),
        ),
        tried(
            "opening a TCP port",
            TcpListener::bind("127.0.0.1:0").map(drop),
        ),
        tried(
            "sending a signal to itself",
            rustix::process::test_kill_process(rustix::process::getpid()).map_err(io::Error::from),
        ),
        tried("executing what was data", executable_memory()),
    ]
}

fn executable_memory() -> io::Result<()> {
    use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};
    let all = ProtFlags::READ | ProtFlags::WRITE | ProtFlags::EXEC;
    // SAFETY: new memory, which nobody knows of, goes again.
    unsafe {
        let memory = mmap_anonymous(std::ptr::null_mut(), 4096, all, MapFlags::PRIVATE)?;
        Ok(munmap(memory, 4096)?)
    }
}
