//! Makes file operations fail, so that tests can see what a full or failing disk does to a store.
//!
//! ```
//! use durum_persist::{Site, file::MediaFile, inject};
//! let dir = tempfile::tempdir()?;
//! let file = MediaFile::create_new(&dir.path().join("log"))?;
//! let _fault = inject::fail_after(inject::Operation::Sync, 1, dir.path());
//! file.sync(Site("first"))?; // one more succeeds
//! assert!(file.sync(Site("second")).is_err());
//! # Ok::<(), std::io::Error>(())
//! ```

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What shall fail.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Operation {
    /// Syncs of files and directories: fail with EIO. As on Linux, what was dirty at a failed sync may never reach the media.
    Sync,
    /// Growth of files, by [`allocate`](crate::file::MediaFile::allocate), by lengthening or by a write past the
    /// end: fails with ENOSPC. Creation of files, too.
    Grow,
    /// Writes to files: fail with EIO before any byte is written.
    Write,
}

/// Ends the failures when dropped.
#[derive(Debug)]
#[must_use = "the failures end when this is dropped"]
pub struct Fault {
    id: u64,
}

/// Lets `successes` more operations of this kind on files below `root` succeed; all later ones fail until the
/// returned guard is dropped. In force for all threads of the process.
pub fn fail_after(operation: Operation, successes: u64, root: &Path) -> Fault {
    static NEXT_ID: AtomicU64 = AtomicU64::new(0);
    let id = NEXT_ID.fetch_add(1, Relaxed);
    rules().push(Rule {
        id,
        operation,
        successes,
        root: root.to_owned(),
    });
    ANY.store(true, Relaxed);
    Fault { id }
}

/// [`fail_after`] for syncs of any file of the process.
pub fn fail_sync_after(successes: u64) -> Fault {
    fail_after(Operation::Sync, successes, Path::new(""))
}

impl Drop for Fault {
    fn drop(&mut self) {
        let mut rules = rules();
        rules.retain(|rule| rule.id != self.id);
        ANY.store(!rules.is_empty(), Relaxed);
    }
}

/// Whether a file operation that makes a file `new_len` bytes long, if it is shorter, shall fail for want of space.
#[inline]
pub(crate) fn check_growth(
    path: &Path,
    new_len: u64,
    len: impl FnOnce() -> io::Result<u64>,
) -> io::Result<()> {
    // The old length costs a system call: only tests pay it.
    if ANY.load(Relaxed) && new_len > len()? {
        check_rules(Operation::Grow, path)?;
    }
    Ok(())
}

/// Whether this operation shall fail, and how.
#[inline]
pub(crate) fn check(operation: Operation, path: &Path) -> io::Result<()> {
    if ANY.load(Relaxed) {
        check_rules(operation, path)
    } else {
        Ok(())
    }
}

#[cold]
fn check_rules(operation: Operation, path: &Path) -> io::Result<()> {
    for rule in rules().iter_mut() {
        if rule.operation != operation || !path.starts_with(&rule.root) {
            continue;
        }
        if rule.successes == 0 {
            let code = match operation {
                Operation::Grow => libc::ENOSPC,
                Operation::Sync | Operation::Write => libc::EIO,
            };
            return Err(io::Error::from_raw_os_error(code));
        }
        rule.successes -= 1;
    }
    Ok(())
}

struct Rule {
    id: u64,
    operation: Operation,
    successes: u64,
    root: PathBuf,
}

static ANY: AtomicBool = AtomicBool::new(false);
static RULES: Mutex<Vec<Rule>> = Mutex::new(Vec::new());

fn rules() -> MutexGuard<'static, Vec<Rule>> {
    RULES.lock().unwrap_or_else(PoisonError::into_inner)
}
