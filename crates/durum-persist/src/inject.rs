//! Makes file operations fail, so that tests can see what a full or failing disk does to a store; and holds a thread up
//! at a fence, so that they can see what others do meanwhile.
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

use std::cell::Cell;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use crate::{Site, state};

/// What shall fail.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Operation {
    /// Syncs of files and directories: fail with EIO. As on Linux, what was dirty at a failed sync may never reach the
    /// media.
    Sync,
    /// Growth of files, by [`allocate`](crate::file::MediaFile::allocate), by lengthening or by a write past the
    /// end: fails with ENOSPC. Creation of files, too.
    Grow,
    /// Writes to files: fail with EIO before any byte is written.
    Write,
    /// Reads of files: fail with EIO.
    Read,
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
                Operation::Sync | Operation::Write | Operation::Read => libc::EIO,
            };
            return Err(io::Error::from_raw_os_error(code));
        }
        rule.successes -= 1;
    }
    Ok(())
}

/// Space below this directory is promised, and not reserved, until what this returns is dropped: for images of crashes,
/// whose checks would otherwise spend most of their time on pages that nobody uses.
pub(crate) fn promise_space(root: &Path) -> Promise {
    promised().push(root.to_owned());
    ANY_PROMISED.store(true, Relaxed);
    Promise {
        root: root.to_owned(),
    }
}

/// Ends it when dropped.
#[derive(Debug)]
pub(crate) struct Promise {
    root: PathBuf,
}

impl Drop for Promise {
    fn drop(&mut self) {
        let mut promised = promised();
        promised.retain(|root| *root != self.root);
        ANY_PROMISED.store(!promised.is_empty(), Relaxed);
    }
}

/// Whether a file that grows here is lengthened only.
pub(crate) fn is_promised(path: &Path) -> bool {
    ANY_PROMISED.load(Relaxed) && promised().iter().any(|root| path.starts_with(root))
}

static ANY_PROMISED: AtomicBool = AtomicBool::new(false);
static PROMISED: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

fn promised() -> MutexGuard<'static, Vec<PathBuf>> {
    PROMISED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Lets the thread that was held up go on when dropped, and no other be held up.
#[derive(Debug)]
#[must_use = "nobody is held up once this is dropped"]
pub struct Held {
    _only_one: MutexGuard<'static, ()>,
}

/// Holds up the next volunteer that comes to a fence or a sync of this site, before it, until the returned guard is
/// dropped. There is one such place in a process; asking for another one waits until the first is given up.
///
/// ```
/// use durum_persist::{Site, inject, line};
/// const DONE: Site = Site("done");
/// let held = inject::hold(DONE);
/// std::thread::scope(|scope| {
///     let other = scope.spawn(|| {
///         inject::volunteer();
///         line::fence(DONE);
///     });
///     held.wait();
///     assert!(!other.is_finished());
///     drop(held);
/// });
/// ```
pub fn hold(site: Site) -> Held {
    static ONLY_ONE: Mutex<()> = Mutex::new(());
    let only_one = ONLY_ONE.lock().unwrap_or_else(PoisonError::into_inner);
    *lock_holding() = Holding::Next(site);
    state::set(state::HELD, true);
    Held {
        _only_one: only_one,
    }
}

/// The calling thread may be held up ([`hold`]); those of other tests in the process are not.
pub fn volunteer() {
    IS_VOLUNTEER.set(true);
}

impl Held {
    /// Waits until a thread is held up.
    pub fn wait(&self) {
        let mut holding = lock_holding();
        while matches!(*holding, Holding::Next(_)) {
            holding = HOLDING_CHANGED
                .wait(holding)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        *lock_holding() = Holding::Nobody;
        state::set(state::HELD, false);
        HOLDING_CHANGED.notify_all();
    }
}

/// The calling thread comes to this place.
#[inline]
pub(crate) fn wait_at(site: Site) {
    if state::load() & state::HELD != 0 && IS_VOLUNTEER.get() {
        wait_if_held(site);
    }
}

#[cold]
fn wait_if_held(site: Site) {
    let mut holding = lock_holding();
    if !matches!(*holding, Holding::Next(wanted) if wanted == site) {
        return;
    }
    *holding = Holding::Somebody;
    HOLDING_CHANGED.notify_all();
    while matches!(*holding, Holding::Somebody) {
        holding = HOLDING_CHANGED
            .wait(holding)
            .unwrap_or_else(PoisonError::into_inner);
    }
}

#[derive(Clone, Copy, Debug)]
enum Holding {
    Nobody,
    /// The first volunteer that comes here.
    Next(Site),
    Somebody,
}

static HOLDING: Mutex<Holding> = Mutex::new(Holding::Nobody);
static HOLDING_CHANGED: Condvar = Condvar::new();

thread_local! {
    static IS_VOLUNTEER: Cell<bool> = const { Cell::new(false) };
}

fn lock_holding() -> MutexGuard<'static, Holding> {
    HOLDING.lock().unwrap_or_else(PoisonError::into_inner)
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
