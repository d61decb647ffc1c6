//! Which pages of a puddle a program has changed, found without its help.
//!
//! Two ways, chosen for each puddle when tracking starts:
//!
//! - [`userfault`]: the kernel write-protects pages and notes by itself which ones were written since (Linux 6.7). A first write to a page costs
//!   half a microsecond; asking takes 0.2 µs for each MiB, whatever has changed.
//! - [`trap`]: the puddle is read-only, and a SIGSEGV handler notes a page and makes it writable. Ten times as much for each page.
//!
//! Both may name pages that nobody has changed. Neither leaves one out: that would be a change that is never durable.

mod trap;
mod userfault;

use std::ops::Range;
use std::sync::atomic::AtomicBool;

use durum_format::puddle::heap_offset;

use crate::error::Result;
use crate::puddle::Puddle;
use trap::Trap;

/// Bytes of a page.
pub(crate) const PAGE: usize = 4096;

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

/// What a puddle remembers about it.
#[derive(Debug, Default)]
pub(crate) struct Tracking {
    /// The kernel watches its pages.
    is_registered: AtomicBool,
    trap: Trap,
}

/// How a puddle is being tracked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Method {
    Userfault,
    Trap,
}

/// The addresses at which objects may lie. The pages before hold allocation data, which no program changes by itself.
fn heap(puddle: &Puddle) -> Range<usize> {
    let start = puddle.address + heap_offset(puddle.size as u64) as usize;
    start..puddle.address + puddle.size
}

/// From here on, every change of the puddle's heap is noticed. With `is_quiet`, little has changed since the last time, and to find that
/// again is cheaper than to forget it.
///
/// # Errors
/// `System`: nothing is tracked.
pub(crate) fn start(puddle: &Puddle, wanted: PageTracking, is_quiet: bool) -> Result<Method> {
    if wanted != PageTracking::Mprotect {
        match userfault::start(puddle, heap(puddle), is_quiet) {
            Ok(()) => return Ok(Method::Userfault),
            Err(error) if wanted == PageTracking::Userfaultfd => return Err(error),
            Err(error) => tracing::debug!(%error, "pages are tracked by mprotect"),
        }
    }
    trap::start(puddle, heap(puddle))?;
    Ok(Method::Trap)
}

/// Stops tracking, and adds ranges to `found` that hold every page which has changed.
pub(crate) fn stop(puddle: &Puddle, method: Method, found: &mut Vec<Range<usize>>) {
    let known = found.len();
    let asked = match method {
        Method::Userfault => userfault::stop(heap(puddle), found),
        Method::Trap => {
            trap::stop(puddle, heap(puddle), found);
            Ok(())
        }
    };
    if let Err(error) = asked {
        tracing::warn!(%error, file = %puddle.path.display(), "changed pages could not be found; all are compared");
        found.truncate(known);
        found.push(heap(puddle));
    }
}
