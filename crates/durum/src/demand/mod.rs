//! Puddles that are mapped when somebody needs them (docs/internals/on-demand.md): how, and whom to ask for one.

mod resolver;

use std::fmt::Debug;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Weak};

use crate::error::Result;
use crate::fault::forked;
use crate::primitive::locked;

pub(crate) use resolver::{admit, may_have_been_mapped, put_placeholder, resolver};

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
