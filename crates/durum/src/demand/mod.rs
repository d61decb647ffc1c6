//! Puddles that are mapped when somebody needs them (docs/internals/on-demand.md): how, and whom to ask for one.

mod opener;
mod resolver;

use std::cell::Cell;
use std::fmt::Debug;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, Weak};

use crate::error::{Error, Result};
use crate::fault::forked;
use crate::primitive::locked;
use crate::space::is_reserved;

pub(crate) use resolver::{admit, admit_or_open, may_have_been_mapped, put_placeholder, resolver};

/// When puddles are mapped, other than the root puddle of a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum PuddleMapping {
    /// When their pool is opened.
    #[default]
    Eager,
    /// When they are needed: [`PuddleMapping::Userfaultfd`] where the system has it, else [`PuddleMapping::Signal`],
    /// else [`PuddleMapping::Eager`].
    ///
    /// A system call that is given an address in a puddle which is not mapped fails with EFAULT, unless the process may
    /// have a userfaultfd for accesses of the kernel (CAP_SYS_PTRACE). [`Pool::touch`](crate::Pool::touch) maps ahead.
    /// A signal handler of the program must not access such a puddle: it may have interrupted a thread that holds what
    /// is needed to map it.
    OnDemand,
    /// When they are needed: the kernel stops a thread that accesses one, and a thread of durum's maps it.
    Userfaultfd,
    /// When they are needed: a SIGSEGV handler asks a thread of durum's. The program must not block that signal, nor
    /// take the handler away.
    Signal,
}

/// What an access does that leads to a pool of the store which is not open: through a pointer of another pool, above
/// all (Puddles, EuroSys'24, §3.5). The service is asked for the pool, as by
/// [`Store::open_pool`](crate::Store::open_pool): its grant is durable before the access goes on, and it is recovered
/// before, or moved, where that is due.
///
/// Where the service refuses, the access is SIGSEGV, as it is by [`Follow::Never`], and the log says which pool and
/// why. A pool that was opened so closes with the last handle of the store, or by
/// [`Store::let_go`](crate::Store::let_go).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Follow {
    /// SIGSEGV. Calls that are given such an address say `NotInPool`.
    Never,
    /// The pool is opened for reading only; a store to it is SIGSEGV.
    Reading,
    /// The pool is opened for writing, or for reading only where the user has no right to write it.
    Writing,
}

impl PuddleMapping {
    /// What `DURUM_MAPPING` says: `eager`, `on-demand`, `userfaultfd` or `signal`.
    pub(crate) fn of_environment() -> Option<Self> {
        match std::env::var("DURUM_MAPPING").ok()?.as_str() {
            "eager" => Some(Self::Eager),
            "on-demand" => Some(Self::OnDemand),
            "userfaultfd" => Some(Self::Userfaultfd),
            "signal" => Some(Self::Signal),
            other => {
                tracing::warn!(
                    other,
                    "DURUM_MAPPING is eager, on-demand, userfaultfd or signal"
                );
                None
            }
        }
    }
}

/// Puddles of a pool that wait to be mapped.
pub(crate) trait Waiting: Send + Sync + Debug {
    /// Maps the puddle at an address, if it is one of these. Whether it is, or was.
    ///
    /// # Errors
    /// Those of its file, and of mapping it. It waits on.
    fn map_at(&self, address: usize) -> Result<bool>;

    /// The same for a thread that is stopped at an access: where its file cannot be had, the access is a media error
    /// when this returns.
    fn map_for_access(&self, address: usize) -> bool;
}

thread_local! {
    /// Const and without destructor: safe to touch in a signal handler.
    static WORKS_FOR_STOPPED: Cell<bool> = const { Cell::new(false) };
}

/// This thread works for threads that are stopped at an access: it waits for none that does.
fn works_for_stopped() {
    WORKS_FOR_STOPPED.set(true);
}

fn does_work_for_stopped() -> bool {
    WORKS_FOR_STOPPED.get()
}

static WAITING: Mutex<Vec<Weak<dyn Waiting>>> = Mutex::new(Vec::new());
/// How many there are. 0: nobody need be asked.
static COUNT: AtomicUsize = AtomicUsize::new(0);

/// They are asked from now on, until [`leave`].
pub(crate) fn enter(waiting: &Arc<impl Waiting + 'static>) {
    let waiting = Arc::downgrade(waiting);
    let mut all = locked(&WAITING);
    all.push(waiting);
    COUNT.store(all.len(), Ordering::Release);
}

/// Nothing of these waits any more.
pub(crate) fn leave(waiting: *const impl Waiting) {
    let mut all = locked(&WAITING);
    all.retain(|other| other.as_ptr().addr() != waiting.addr());
    COUNT.store(all.len(), Ordering::Release);
}

/// Whether any puddle of the process may wait.
#[inline(always)]
pub(crate) fn any_may_wait() -> bool {
    COUNT.load(Ordering::Acquire) > 0
}

fn ask(mut is_its: impl FnMut(&dyn Waiting) -> Result<bool>) -> Result<bool> {
    // A forked child has none of the threads that may hold a lock.
    if !any_may_wait() || forked() {
        return Ok(false);
    }
    let all: Vec<_> = locked(&WAITING).iter().filter_map(Weak::upgrade).collect();
    for waiting in all {
        if is_its(&*waiting)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Maps the puddle at an address where none was found, if one waits to be mapped there. Whether there is one now.
///
/// # Errors
/// Those of its file, and of mapping it.
#[cold]
#[inline(never)]
pub(crate) fn map_at(address: usize) -> Result<bool> {
    ask(|waiting| waiting.map_at(address))
}

/// A store whose pools are opened when somebody accesses them.
pub(crate) trait Opens: Send + Sync + Debug {
    /// The pool that lies at an address, open or not.
    ///
    /// # Errors
    /// Those of the service: it is not to be opened.
    fn pool_at(&self, address: usize) -> Result<Option<String>>;

    /// Opens the pool, if it is the one at the address. Whether it is.
    ///
    /// # Errors
    /// As [`Store::open_pool`](crate::Store::open_pool); `AddressConflict` where another store of the process has
    /// something at the address, too.
    fn open(&self, pool: &str, address: usize) -> Result<bool>;
}

/// Has the pool opened that an address lies in, and tells somebody whether there is one now. False: nobody is told.
type AskForPool = fn(usize, opener::Answer) -> bool;

/// Known once a store follows pointers: code that opens none which does has no such thread.
static ASK_FOR_POOL: OnceLock<AskForPool> = OnceLock::new();
static OPENING: Mutex<Vec<Weak<dyn Opens>>> = Mutex::new(Vec::new());
/// How many there are.
static OPENING_COUNT: AtomicUsize = AtomicUsize::new(0);

/// Its pools are opened from now on, until [`follows_no_more`].
pub(crate) fn follows(store: &Arc<impl Opens + 'static>) {
    ASK_FOR_POOL.get_or_init(|| opener::ask_for);
    let store = Arc::downgrade(store);
    let mut all = locked(&OPENING);
    all.push(store);
    OPENING_COUNT.store(all.len(), Ordering::Release);
}

/// Nothing of this store is opened any more.
pub(crate) fn follows_no_more(store: *const impl Opens) {
    let mut all = locked(&OPENING);
    all.retain(|other| other.as_ptr().addr() != store.addr());
    OPENING_COUNT.store(all.len(), Ordering::Release);
}

/// Whether a pool may be opened by an access.
#[inline(always)]
pub(crate) fn any_follows() -> bool {
    OPENING_COUNT.load(Ordering::Acquire) > 0
}

/// A pool that was not opened, and why.
struct Refusal {
    /// Unknown where the service does not tell.
    pool: Option<String>,
    error: Box<Error>,
}

/// Opens the pool at an address where none is open, if one lies there: its name.
fn follow(address: usize) -> std::result::Result<Option<String>, Refusal> {
    if !any_follows() || forked() || !is_reserved(address) {
        return Ok(None);
    }
    let all: Vec<_> = locked(&OPENING).iter().filter_map(Weak::upgrade).collect();
    let refused = |pool| {
        move |error| Refusal {
            pool,
            error: Box::new(error),
        }
    };
    for store in all {
        if let Some(pool) = store.pool_at(address).map_err(refused(None))? {
            let opened = store.open(&pool, address);
            let opened = opened.map_err(refused(Some(pool.clone())))?;
            return Ok(opened.then_some(pool));
        }
    }
    Ok(None)
}

/// The same for a call that is given an address: whether something is open there now.
///
/// # Errors
/// As [`Store::open_pool`](crate::Store::open_pool).
#[cold]
#[inline(never)]
pub(crate) fn follow_at(address: usize) -> Result<bool> {
    let opened = follow(address).map_err(|refusal| *refusal.error)?;
    Ok(opened.is_some())
}
