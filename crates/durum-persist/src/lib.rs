//! Write-back, fence, persistence domains, counters and the crash simulator of durum.

pub mod count;
mod delay;
pub mod domain;
pub mod file;
pub mod inject;
pub mod line;
pub mod record;
pub mod simulate;
mod state;

/// What a write-back, a fence or a sync is there for.
///
/// The text is a short phrase that names the data, e.g. `Site("log entry")`. It costs nothing in the
/// product. A recorder writes it into the trace, a crash test prints it, and a canary run names it in
/// [`record::RecorderOptions::skip`] to leave that operation out and see whether a test notices.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Site(pub &'static str);
