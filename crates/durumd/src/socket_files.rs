//! The names of sockets in the file system: those that this service has made, and those that one has left which was
//! killed.

use std::fs;
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

/// A socket that this service has made.
#[derive(Debug)]
pub(crate) struct Made {
    path: PathBuf,
    device: u64,
    inode: u64,
}

impl Made {
    /// To be called as soon as it is made.
    ///
    /// # Errors
    /// As the system says.
    pub(crate) fn at(path: &Path) -> io::Result<Made> {
        let found = fs::symlink_metadata(path)?;
        Ok(Made {
            path: path.to_owned(),
            device: found.dev(),
            inode: found.ino(),
        })
    }

    /// Removes it, unless what has the name is another one by now: programs come to that.
    pub(crate) fn remove(self) {
        let found = fs::symlink_metadata(&self.path);
        match found.map(|found| (found.dev(), found.ino()) == (self.device, self.inode)) {
            Ok(true) => {
                let _ = fs::remove_file(&self.path);
            }
            Ok(false) => tracing::warn!(
                socket = %self.path.display(),
                "another socket has taken the place of this service's, and stays"
            ),
            Err(_) => {}
        }
    }
}

/// Removes a socket that a service has left which was killed, and nothing else.
///
/// # Errors
/// As the system says; what has the name and is no socket is refused.
pub(crate) fn remove_left(path: &Path) -> io::Result<()> {
    ensure_socket(path)?;
    fs::remove_file(path)
}

/// # Errors
/// As the system says; what has the name and is no socket is refused.
pub(crate) fn ensure_socket(path: &Path) -> io::Result<()> {
    if !fs::symlink_metadata(path)?.file_type().is_socket() {
        let problem = "what is there is no socket, and stays: choose another path, or move it away";
        return Err(io::Error::new(io::ErrorKind::AlreadyExists, problem));
    }
    Ok(())
}
