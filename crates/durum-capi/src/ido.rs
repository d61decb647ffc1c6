//! The function of lock-based code that can fail: it leaves code and message like all of this library. The others are
//! those of `durum_ido::abi` and `durum_ido::abi_locks`, which are in this library, too. No header declares them yet:
//! docs/reference/ido-ir.md.

use std::cell::Cell;
use std::ffi::{c_char, c_int};
use std::path::Path;

use client::{ErrorKind, StoreOptions};
use durum_ido::OpenError;

use crate::guard::{Failure, durum_errormsg, run, string};

impl From<OpenError> for Failure {
    fn from(error: OpenError) -> Self {
        match error {
            OpenError::Store(error) => error.into(),
            other => Self::argument(other.to_string()),
        }
    }
}

fn errno_of(error: &OpenError) -> c_int {
    match error {
        OpenError::Store(error) => match error.kind() {
            ErrorKind::Caller | ErrorKind::User => libc::EINVAL,
            ErrorKind::Data | ErrorKind::System => libc::EIO,
        },
        _ => libc::EINVAL,
    }
}

/// Opens the heap, or makes it, and completes the sections that a crash has interrupted. 0, or -1 with errno;
/// `nv_error` says why.
///
/// cbindgen:ignore
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nv_open(path: *const c_char) -> c_int {
    let errno = Cell::new(libc::EINVAL);
    let opened = run(|| {
        // SAFETY: a string, as the caller promises.
        let text = unsafe { string(path, "the path")? };
        durum_ido::open(Path::new(text), &StoreOptions::new()).map_err(|error| {
            errno.set(errno_of(&error));
            error.into()
        })
    });
    match opened {
        Ok(()) => 0,
        Err(_) => {
            // SAFETY: the thread's own.
            unsafe { *libc::__errno_location() = errno.get() };
            -1
        }
    }
}

/// Why the latest nv_open of this thread failed. The string is valid until the thread's next failure.
///
/// cbindgen:ignore
#[unsafe(no_mangle)]
pub extern "C" fn nv_error() -> *const c_char {
    durum_errormsg()
}
