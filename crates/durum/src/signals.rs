//! Signals: what a handler is, and which ones a thread lets through for a while.

use std::io;
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::ptr;

use libc::{c_int, c_void, sigaction, siginfo_t, sigset_t};

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

/// This thread lets only some signals through, until this is dropped.
#[derive(Debug)]
pub(crate) struct Blocked {
    before: sigset_t,
    _one_thread: PhantomData<*mut ()>,
}

impl Blocked {
    /// Blocks all but those that are raised by what the thread itself does, which have to come.
    pub(crate) fn all() -> Self {
        use libc::{SIG_BLOCK, SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGSYS, SIGTRAP};
        Self::all_but(
            &[SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGSYS],
            SIG_BLOCK,
        )
    }

    /// Blocks all but `passing`: as `SIG_BLOCK` beside what is blocked already, as `SIG_SETMASK` instead.
    pub(crate) fn all_but(passing: &[c_int], how: c_int) -> Self {
        let mut before = MaybeUninit::zeroed();
        // SAFETY: zeroed memory is a valid `sigset_t`, which the calls fill; none of them fails with valid arguments.
        let before = unsafe {
            let mut blocked = MaybeUninit::zeroed().assume_init();
            libc::sigfillset(&mut blocked);
            for signal in passing {
                libc::sigdelset(&mut blocked, *signal);
            }
            libc::pthread_sigmask(how, &blocked, before.as_mut_ptr());
            before.assume_init()
        };
        Self {
            before,
            _one_thread: PhantomData,
        }
    }
}

impl Drop for Blocked {
    fn drop(&mut self) {
        // SAFETY: the set that was there before.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &self.before, ptr::null_mut()) };
    }
}
