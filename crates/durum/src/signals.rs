//! Handlers of signals.

use std::io;
use std::mem::MaybeUninit;
use std::ptr;

use libc::{c_int, c_void, sigaction, siginfo_t};

/// A handler that is told of the access that a signal is about.
pub(crate) type Handler = extern "C" fn(c_int, *mut siginfo_t, *mut c_void);

/// The action that calls a handler, on the thread's signal stack if it has one, and again within itself.
pub(crate) fn action_of(handler: Handler) -> sigaction {
    // SAFETY: zeroed memory is a valid `sigaction`.
    let mut action: sigaction = unsafe { MaybeUninit::zeroed().assume_init() };
    action.sa_sigaction = handler as *const () as usize;
    action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_NODEFER;
    action
}

/// Sets the action of a signal, if there is a new one. What it was before.
pub(crate) fn set_action(signal: c_int, new: Option<&sigaction>) -> io::Result<sigaction> {
    let new = new.map_or(ptr::null(), ptr::from_ref);
    let mut old = MaybeUninit::<sigaction>::zeroed();
    // SAFETY: null, or a valid action whose handler may run at any time; zeroed memory is a valid `sigaction`.
    let (result, old) = unsafe {
        let result = libc::sigaction(signal, new, old.as_mut_ptr());
        (result, old.assume_init())
    };
    match result {
        0 => Ok(old),
        _ => Err(io::Error::last_os_error()),
    }
}
