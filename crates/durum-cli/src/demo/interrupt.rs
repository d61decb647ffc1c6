//! Notes Ctrl-C, so that the demo can say in which state it leaves the store, and `explore` can clear up.

use std::sync::atomic::{AtomicBool, Ordering};

static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// From now on Ctrl-C and SIGTERM are noted and do not end the process.
pub(crate) fn watch() {
    extern "C" fn note(_signal: libc::c_int) {
        INTERRUPTED.store(true, Ordering::Relaxed);
    }
    for signal in [libc::SIGINT, libc::SIGTERM] {
        // SAFETY: the handler only stores to an atomic, which is allowed in a signal handler.
        unsafe { libc::signal(signal, note as *const () as libc::sighandler_t) };
    }
}

/// Whether the user wants the end.
pub(crate) fn wanted() -> bool {
    INTERRUPTED.load(Ordering::Relaxed)
}
