//! Sockets in the file system that a service has left which was killed.

use std::io;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

/// Removes a socket that a service has left which was killed, and nothing else.
///
/// # Errors
/// As the system says; what has the name and is no socket is refused.
pub(crate) fn remove(path: &Path) -> io::Result<()> {
    if !std::fs::symlink_metadata(path)?.file_type().is_socket() {
        let problem = "what is there is no socket, and stays: choose another path, or move it away";
        return Err(io::Error::new(io::ErrorKind::AlreadyExists, problem));
    }
    std::fs::remove_file(path)
}
