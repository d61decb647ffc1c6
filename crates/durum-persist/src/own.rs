//! A descriptor that the program may have closed behind our back, as daemons do with all that they do not know. Its
//! number may be another file's by then: nothing is written to that, and it is not closed.

use std::io;
use std::mem::ManuallyDrop;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// A descriptor that is used, and closed, only as long as it is the file that it was.
#[derive(Debug)]
pub struct OwnDescriptor {
    fd: ManuallyDrop<OwnedFd>,
    identity: (u64, u64),
}

impl OwnDescriptor {
    /// Takes a descriptor over.
    ///
    /// # Errors
    /// As the system says.
    pub fn new(fd: OwnedFd) -> io::Result<OwnDescriptor> {
        // Not closed where that fails: then it is closed already.
        let fd = ManuallyDrop::new(fd);
        let identity = identity(fd.as_fd())?;
        Ok(OwnDescriptor { fd, identity })
    }

    /// The descriptor, if it still is the file that it was.
    ///
    /// # Errors
    /// `NotConnected` where the program has closed it.
    pub fn get(&self) -> io::Result<BorrowedFd<'_>> {
        match identity(self.fd.as_fd()) {
            Ok(found) if found == self.identity => Ok(self.fd.as_fd()),
            _ => Err(io::ErrorKind::NotConnected.into()),
        }
    }
}

impl Drop for OwnDescriptor {
    fn drop(&mut self) {
        if self.get().is_ok() {
            // SAFETY: it is used no more.
            unsafe { ManuallyDrop::drop(&mut self.fd) };
        }
    }
}

fn identity(fd: BorrowedFd<'_>) -> io::Result<(u64, u64)> {
    let stat = rustix::fs::fstat(fd)?;
    Ok((stat.st_dev, stat.st_ino))
}
