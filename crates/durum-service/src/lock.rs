//! One writer for each store: a POSIX record lock on the file `lock`, and a table of this process.
//!
//! A record lock ends with its process, however it ends, and a forked child does not inherit it: a store is never
//! left locked, and a child never writes to its parent's store. It has two traps. It does not exclude
//! a second opener in the same process, and closing *any* descriptor of the file drops it. So a table by device
//! and inode is asked before the file is opened, and there is exactly one descriptor of it, here.
//!
//! Who reads all of a store while nobody may write, such as `durum check`, shares the lock.

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
use crate::files::ensure_file;
use crate::reading::{self, Role};

/// The file in the store directory that carries the lock. It is empty.
pub(crate) const LOCK_FILE: &str = "lock";

const ROLE: Role = Role {
    structure: "the lock",
    cure: "the next opener makes one anew",
};

/// The stores that this process holds, by device and inode of the lock file.
/// A forked child sees its parent's rows; their process is another, so they do not count.
static HELD: Mutex<BTreeMap<Identity, Held>> = Mutex::new(BTreeMap::new());

type Identity = (u64, u64);

#[derive(Debug)]
struct Held {
    owner: u32,
    /// The one descriptor of the lock file in this process.
    _file: MediaFile,
    /// How many share the lock; 0 where the one writer has it.
    readers: usize,
}

/// The evidence that this process is the one writer of a store, or that nobody is. Dropping it gives the store up.
#[derive(Debug)]
pub(crate) struct StoreLock {
    identity: Identity,
    owner: u32,
}

impl StoreLock {
    /// Takes the lock of the store for its one writer, or says who holds it. Never waits.
    pub(crate) fn acquire(store: &Path) -> Result<StoreLock> {
        let path = store.join(LOCK_FILE);
        // Held across stat, open and lock: two threads that open one store at the same time must not both get
        // to the open, because the loser's close would drop the winner's lock.
        let mut held = held();
        if let Some(identity) = identity(&path)?
            && held.contains_key(&identity)
        {
            return Err(busy(store, Some(std::process::id())));
        }
        // Made apart from opening it, through the seam for media; then this process holds no lock on it.
        ensure_file(&path, "making the lock file")?;
        StoreLock::take(store, &mut held, true)
    }

    /// Keeps writers away while a store is only read, together with others who do so; `None` where there is no lock
    /// file. Writes nothing. Never waits.
    pub(crate) fn share(store: &Path) -> Result<Option<StoreLock>> {
        let owner = std::process::id();
        let mut held = held();
        let Some(identity) = identity(&store.join(LOCK_FILE))? else {
            return Ok(None);
        };
        match held.get_mut(&identity) {
            Some(Held { readers: 0, .. }) => Err(busy(store, Some(owner))),
            Some(row) => {
                row.readers += 1;
                Ok(Some(StoreLock { identity, owner }))
            }
            None => StoreLock::take(store, &mut held, false).map(Some),
        }
    }

    fn take(
        store: &Path,
        held: &mut BTreeMap<Identity, Held>,
        is_writer: bool,
    ) -> Result<StoreLock> {
        let path = store.join(LOCK_FILE);
        let owner = std::process::id();
        let file = reading::open(store, LOCK_FILE, ROLE, is_writer)?;
        let stat = rustix::fs::fstat(&file)
            .map_err(|errno| Error::io("stat of the lock file", &path, errno.into()))?;
        let identity = (stat.st_dev, stat.st_ino);
        if held.contains_key(&identity) {
            // The name was given to a lock that we hold already: closing this descriptor would drop that lock. It stays
            // open for the life of the process instead.
            std::mem::forget(file);
            return Err(busy(store, Some(owner)));
        }
        let operation = match is_writer {
            true => FlockOperation::NonBlockingLockExclusive,
            false => FlockOperation::NonBlockingLockShared,
        };
        match rustix::fs::fcntl_lock(&file, operation) {
            Ok(()) => {
                let row = Held {
                    owner,
                    _file: file,
                    readers: usize::from(!is_writer),
                };
                held.insert(identity, row);
                Ok(StoreLock { identity, owner })
            }
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::ACCESS) => {
                // It may have ended in the meantime, or be invisible from here.
                match holder(&file, FlockType::WriteLock) {
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
        // Closed while the table is held: another thread's open of the same store must not lie in between.
        let mut held = held();
        if !self.is_ours() {
            return;
        }
        if let Some(row) = held.get_mut(&self.identity) {
            row.readers = row.readers.saturating_sub(1);
            if row.readers == 0 {
                held.remove(&self.identity);
            }
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

/// Who has the store open for writing at the moment, for tools that only read. Never opens the lock file of a store
/// that this process holds.
pub(crate) fn current_writer(store: &Path) -> Result<Holder> {
    let path = store.join(LOCK_FILE);
    let held = held();
    let Some(identity) = identity(&path)? else {
        return Ok(Holder::Nobody);
    };
    match held.get(&identity) {
        Some(Held { readers: 0, .. }) => return Ok(Holder::Process(Some(std::process::id()))),
        // Those who share it are no writers, and keep writers away.
        Some(_) => return Ok(Holder::Nobody),
        None => {}
    }
    let file = reading::open(store, LOCK_FILE, ROLE, false)?;
    holder(&file, FlockType::ReadLock)
        .map_err(|errno| Error::io("asking for the lock", &path, errno.into()))
}

/// Who holds a record lock on the file that keeps one of this kind away.
pub(crate) fn holder(file: &MediaFile, wanted: FlockType) -> rustix::io::Result<Holder> {
    let wanted = Flock::from(wanted);
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

/// The table, without the rows that a parent process left in it.
fn held() -> MutexGuard<'static, BTreeMap<Identity, Held>> {
    // The table is consistent after each statement: a panic elsewhere does not spoil it.
    let mut held = HELD.lock().unwrap_or_else(PoisonError::into_inner);
    let owner = std::process::id();
    // Before this process takes a lock of its own: closing the parent's descriptor would drop that.
    held.retain(|_, row| row.owner == owner);
    held
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
            current_writer(directory.path()).unwrap(),
            Holder::Process(Some(std::process::id()))
        );
        assert!(StoreLock::share(directory.path()).is_err());
        drop(lock);
        assert_eq!(current_writer(directory.path()).unwrap(), Holder::Nobody);
        drop(StoreLock::acquire(directory.path()).unwrap());
    }

    #[test]
    fn readers_share_the_lock_keep_writers_away_and_make_none() {
        let directory = tempfile::tempdir().unwrap();
        assert!(StoreLock::share(directory.path()).unwrap().is_none());
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
        drop(StoreLock::acquire(directory.path()).unwrap());
        let first = StoreLock::share(directory.path()).unwrap().unwrap();
        let second = StoreLock::share(directory.path()).unwrap().unwrap();
        assert_eq!(current_writer(directory.path()).unwrap(), Holder::Nobody);
        drop(first);
        assert!(StoreLock::acquire(directory.path()).is_err());
        drop(second);
        drop(StoreLock::acquire(directory.path()).unwrap());
    }
}
