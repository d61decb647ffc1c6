//! What a puddle remembers of how its pages are watched ([`pages`](crate::pages) watches them). Signal handlers look at
//! it: atomics only.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};

/// What a puddle remembers about it.
#[derive(Debug, Default)]
pub(crate) struct Tracking {
    /// The kernel watches its pages.
    pub(crate) is_registered: AtomicBool,
    pub(crate) trap: Trap,
    pub(crate) hold: Hold,
}

/// What the handler for SIGSEGV knows of a puddle that is read-only.
#[derive(Debug, Default)]
pub(crate) struct Trap {
    pub(crate) is_armed: AtomicBool,
    /// A bit for each page: it was written.
    pub(crate) written: OnceLock<Box<[AtomicU64]>>,
    /// The system had no room for another protected piece: any page may have been written.
    pub(crate) is_full: AtomicBool,
}

/// What it knows of pages to which stores are held up.
#[derive(Debug, Default)]
pub(crate) struct Hold {
    pub(crate) start: AtomicUsize,
    /// 0: nothing is held.
    pub(crate) end: AtomicUsize,
    /// How often something was.
    pub(crate) times: AtomicUsize,
}
