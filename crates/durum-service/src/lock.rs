//! One writer for each store: a POSIX record lock on the file `lock`, and a table of this process.
//!
//! A record lock ends with its process, however it ends, and a forked child does not inherit it: a store is never
//! left locked, and a child never writes to its parent's store. It has two traps. It does not exclude
//! a second opener in the same process, and closing *any* descriptor of the file drops it. So a table by device
//! and inode is asked before the file is opened, and there is exactly one descriptor of it, here.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use durum_persist::file::MediaFile;
use rustix::fs::FlockOperation;
use rustix::process::{Flock, FlockType};

use crate::error::{Error, Result};
use crate::files::grown;
use crate::reading::{self, Role};

/// The file in the store directory that carries the lock. It is empty.
pub(crate) const LOCK_FILE: &str = "lock";

const ROLE: Role = Role {
    structure: "the lock",
    cure: "the next opener makes one anew",
};

/// The stores that this process holds: device and inode of the lock file, and the process that took it.
/// A forked child sees its parent's rows; their process is another, so they do not count.
static HELD: Mutex<BTreeMap<(u64, u64), u32>> = Mutex::new(BTreeMap::new());

/// The evidence that this process is the one writer of a store. Dropping it gives the store up.
#[derive(Debug)]
pub(crate) struct StoreLock {
    identity: (u64, u64),
    owner: u32,
    file: Option<MediaFile>,
}

impl StoreLock {
    /// Takes the lock of the store, or says who holds it. Never waits.
    pub(crate) fn acquire(store: &Path) -> Result<StoreLock> {
        let path = store.join(LOCK_FILE);
        let owner = std::process::id();
        // Held across stat, open and lock: two threads that open one store at the same time must not both get
        // to the open, because the loser's close would drop the winner's lock.
        let mut held = held();
        if let Some(identity) = identity(&path)?
            && held.get(&identity) == Some(&owner)
        {
            return Err(busy(store, Some(owner)));
        }
        // Made apart from opening it, through the seam for media; then this process holds no lock on it.
        match MediaFile::create_new(&path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                return Err(grown("making the lock file", &path, 0, error));
            }
            _ => {}
        }
        let file = reading::open(store, LOCK_FILE, ROLE, true)?;
        let stat = rustix::fs::fstat(&file)
            .map_err(|errno| Error::io("stat of the lock file", &path, errno.into()))?;
        let identity = (stat.st_dev, stat.st_ino);
        if held.get(&identity) == Some(&owner) {
            // The name was given to a lock that we hold already: closing this descriptor would drop that lock. It stays open
            // for the life of the process instead.
            std::mem::forget(file);
            return Err(busy(store, Some(owner)));
        }
        match rustix::fs::fcntl_lock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {
                held.insert(identity, owner);
                Ok(StoreLock {
                    identity,
                    owner,
                    file: Some(file),
                })
            }
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::ACCESS) => {
                // It may have ended in the meantime, or be invisible from here.
                match holder(&file) {
                    Ok(Holder::Process(pid)) => Err(busy(store, pid)),
                    _ => Err(busy(store, None)),
                }
            }
            Err(errno) => Err(Error::io("locking", &path, errno.into())),
        }
    }

    /// Whether this process is the one that took the lock: false in a forked child.
    pub(crate) fn is_ours(&self) -> bool {
        self.owner == std::process::id()
    }
}

impl Drop for StoreLock {
    fn drop(&mut self) {
        let mut held = held();
        // Closed while the table is held: another thread's open of the same store must not lie in between.
        drop(self.file.take());
        if held.get(&self.identity) == Some(&self.owner) && self.is_ours() {
            held.remove(&self.identity);
        }
    }
}

/// Who holds a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Holder {
    Nobody,
    /// A process, where the system tells which: it does not across containers.
    Process(Option<u32>),
}

/// Who holds the store at the moment, for tools that only read. Never opens the lock file of a store that this process
/// holds.
pub(crate) fn current_holder(store: &Path) -> Result<Holder> {
    let path = store.join(LOCK_FILE);
    let owner = std::process::id();
    let held = held();
    let Some(identity) = identity(&path)? else {
        return Ok(Holder::Nobody);
    };
    if held.get(&identity) == Some(&owner) {
        return Ok(Holder::Process(Some(owner)));
    }
    let file = reading::open(store, LOCK_FILE, ROLE, false)?;
    holder(&file).map_err(|errno| Error::io("asking for the lock", &path, errno.into()))
}

/// Who holds a record lock on the file.
fn holder(file: &MediaFile) -> rustix::io::Result<Holder> {
    let wanted = Flock::from(FlockType::WriteLock);
    Ok(match rustix::process::fcntl_getlk(file, &wanted)? {
        None => Holder::Nobody,
        Some(found) => {
            let pid = found.pid.map(|pid| pid.as_raw_nonzero().get());
            Holder::Process(pid.and_then(|pid| u32::try_from(pid).ok()))
        }
    })
}

fn identity(path: &Path) -> Result<Option<(u64, u64)>> {
    // A link is refused when it is opened, whatever it leads to.
    match fs::symlink_metadata(path) {
        Ok(metadata) => Ok(Some((metadata.dev(), metadata.ino()))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Error::io("stat of the lock file", path, error)),
    }
}

fn busy(store: &Path, pid: Option<u32>) -> Error {
    Error::StoreBusy {
        path: PathBuf::from(store),
        pid,
    }
}

fn held() -> MutexGuard<'static, BTreeMap<(u64, u64), u32>> {
    // The table is consistent after each statement: a panic elsewhere does not spoil it.
    HELD.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_opener_in_this_process_is_refused_and_does_not_drop_the_lock() {
        let directory = tempfile::tempdir().unwrap();
        let lock = StoreLock::acquire(directory.path()).unwrap();
        for _ in 0..3 {
            let error = StoreLock::acquire(directory.path()).unwrap_err();
            assert!(
                matches!(error, Error::StoreBusy { pid: Some(pid), .. } if pid == std::process::id())
            );
        }
        assert_eq!(
            current_holder(directory.path()).unwrap(),
            Holder::Process(Some(std::process::id()))
        );
        drop(lock);
        assert_eq!(current_holder(directory.path()).unwrap(), Holder::Nobody);
        drop(StoreLock::acquire(directory.path()).unwrap());
    }
}
