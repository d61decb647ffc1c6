//! Which signals a thread lets through for a while. A thread that is started meanwhile inherits that for its life, so
//! the handlers of a program run in threads that it knows.

use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::ptr;

use libc::{c_int, sigset_t};

/// This thread lets only some signals through, until this is dropped.
#[derive(Debug)]
pub struct Blocked {
    before: sigset_t,
    _one_thread: PhantomData<*mut ()>,
}

impl Blocked {
    /// Blocks all but those that are raised by what the thread itself does, which have to come.
    pub fn all() -> Self {
        use libc::{SIG_BLOCK, SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGSYS, SIGTRAP};
        Self::all_but(
            &[SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGSYS],
            SIG_BLOCK,
        )
    }

    /// Blocks all but `passing`: as `SIG_BLOCK` beside what is blocked already, as `SIG_SETMASK` instead.
    pub fn all_but(passing: &[c_int], how: c_int) -> Self {
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
