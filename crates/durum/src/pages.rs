//! Which pages of a puddle a program has changed, found without its help.
//!
//! Two ways, chosen for each puddle when tracking starts:
//!
//! - [`userfault`]: the kernel write-protects pages and notes by itself which ones were written since (Linux 6.7). A
//!   first write to a page costs half a microsecond; asking takes 0.2 µs for each MiB, whatever has changed.
//! - [`trap`]: the puddle is read-only, and a SIGSEGV handler notes a page and makes it writable. Ten times as much for
//!   each page.
//!
//! Both may name pages that nobody has changed. Neither leaves one out: that would be a change that is never durable.

mod hold;
mod protect;
mod trap;
mod userfault;
mod way;

use std::ops::Range;
use std::sync::atomic::Ordering;

use crate::error::Result;
use crate::mapping::Mapping;
use durum_persist::signals::Blocked;

pub(crate) use way::Way;

/// How sections find the pages that changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum PageTracking {
    /// [`PageTracking::Userfaultfd`] where the system has it, [`PageTracking::Mprotect`] elsewhere.
    #[default]
    Auto,
    /// The kernel notes them: userfaultfd with asynchronous write protection, and `PAGEMAP_SCAN`. Linux 6.7 and later.
    Userfaultfd,
    /// A SIGSEGV handler notes them. System calls that write to a page of the pool fail (EFAULT) while it is protected.
    Mprotect,
}

/// Part of the puddle was mapped anew: the kernel does not watch it any more.
pub(crate) fn was_remapped(puddle: &Mapping) {
    puddle
        .tracking
        .is_registered
        .store(false, Ordering::Relaxed);
}

/// How a puddle is being tracked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Method {
    Userfault,
    Trap,
}

/// From here on, every change of the puddle's heap is noticed. With `is_quiet`, little has changed since the last time,
/// and to find that again is cheaper than to forget it.
///
/// # Errors
/// `System`: nothing is tracked.
pub(crate) fn start(puddle: &Mapping, wanted: PageTracking, is_quiet: bool) -> Result<Method> {
    if wanted != PageTracking::Mprotect {
        match userfault::start(puddle, puddle.heap(), is_quiet) {
            Ok(()) => return Ok(Method::Userfault),
            Err(error) if wanted == PageTracking::Userfaultfd => return Err(error),
            Err(error) => tracing::debug!(%error, "pages are tracked by mprotect"),
        }
    }
    trap::start(puddle, puddle.heap())?;
    Ok(Method::Trap)
}

/// Stops tracking, and adds ranges to `found` that hold every page which has changed.
pub(crate) fn stop(puddle: &Mapping, method: Method, found: &mut Vec<Range<usize>>) {
    let known = found.len();
    let asked = match method {
        Method::Userfault => userfault::stop(puddle.heap(), found),
        Method::Trap => {
            trap::stop(puddle, puddle.heap(), found);
            Ok(())
        }
    };
    if let Err(error) = asked {
        tracing::warn!(%error, file = %puddle.path.display(), "changed pages could not be found; all are compared");
        found.truncate(known);
        found.push(puddle.heap());
    }
}

/// The right to hold stores to pages up ([`hold`]), for a thread that lets no signal come between.
#[derive(Debug)]
pub(crate) struct Held {
    _signals: Blocked,
}

impl Held {
    /// `None` where the program has taken the signal that this needs.
    pub(crate) fn begin() -> Option<Self> {
        use libc::{SIG_SETMASK, SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGTRAP};
        if !trap::stay_installed() {
            return None;
        }
        // A handler of the program's that stores to the pool would wait for the thread that it has interrupted. Signals
        // that an access itself brings have to come.
        let passing = [SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP];
        Some(Self {
            _signals: Blocked::all_but(&passing, SIG_SETMASK),
        })
    }

    /// Runs `look` while no thread can store to these pages of the puddle; one that tries waits. `None` where the
    /// system did not allow it.
    ///
    /// `look` must take no lock, nor allocate, nor store to these pages: a thread that waits may hold any lock.
    pub(crate) fn hold<R>(
        &self,
        puddle: &Mapping,
        range: Range<usize>,
        look: impl FnOnce() -> R,
    ) -> Option<R> {
        hold::hold(puddle, range, look)
    }
}
