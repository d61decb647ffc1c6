//! How nvl_open and nvl_create fail: why, for whoever asks with `nvl_error`, for errno, and for the message about a
//! heap that is NULL.

use std::cell::RefCell;
use std::ffi::{CStr, CString};
use std::fmt;

use durum::service;

/// Why a heap could not be opened or made.
#[derive(Debug)]
#[non_exhaustive]
pub enum OpenError {
    /// What the store says.
    Store(durum::Error),
    /// What this runtime says: errno and a message.
    Refused(i32, String),
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Store(error) => error.fmt(f),
            Self::Refused(_, reason) => f.write_str(reason),
        }
    }
}

impl std::error::Error for OpenError {}

impl From<durum::Error> for OpenError {
    fn from(error: durum::Error) -> Self {
        Self::Store(error)
    }
}

impl OpenError {
    /// The errno that fits (docs/nvl-c.md has the table).
    pub fn errno(&self) -> i32 {
        match self {
            Self::Store(error) => errno_of(error),
            Self::Refused(errno, _) => *errno,
        }
    }
}

fn errno_of(error: &durum::Error) -> i32 {
    use durum::{Error, ErrorKind};
    use service::Error as Store;
    match error {
        Error::Store(Store::StoreMissing { .. } | Store::PoolMissing { .. }) => libc::ENOENT,
        Error::Store(Store::StoreExists { .. } | Store::PoolExists { .. }) => libc::EEXIST,
        Error::Store(Store::StoreBusy { .. } | Store::PoolOpen { .. }) => libc::EBUSY,
        Error::Store(Store::AddressConflict { .. }) => libc::EADDRINUSE,
        Error::Store(Store::AddressSpace { .. }) => libc::ENOMEM,
        Error::Store(Store::StorageFull { .. } | Store::AddressesExhausted { .. })
        | Error::LogFull { .. } => libc::ENOSPC,
        Error::Store(Store::Io { source, .. } | Store::PathRefused { source, .. }) => {
            source.raw_os_error().unwrap_or(libc::EIO)
        }
        other => match other.kind() {
            ErrorKind::Caller | ErrorKind::User => libc::EINVAL,
            ErrorKind::Data | ErrorKind::System => libc::EIO,
        },
    }
}

/// A call that failed.
struct Failure {
    /// `nvl_open("x.heap")`
    call: String,
    reason: CString,
    /// No later one went well.
    is_latest: bool,
}

thread_local! {
    /// The thread's last one.
    static LAST: RefCell<Option<Failure>> = const { RefCell::new(None) };
}

/// Remembers that a call of this thread failed: its name, the path that it was given, and why.
pub fn failed(function: &str, path: &str, reason: &str) {
    let text: Vec<u8> = reason.bytes().filter(|byte| *byte != 0).collect();
    let failure = Failure {
        call: format!("{function}(\"{path}\")"),
        reason: CString::new(text).unwrap_or_default(),
        is_latest: true,
    };
    // A thread that ends remembers nothing any more.
    let _ = LAST.try_with(|last| last.replace(Some(failure)));
}

/// Remembers that a call of this thread went well.
pub fn succeeded() {
    let _ = LAST.try_with(|last| {
        if let Some(failure) = last.borrow_mut().as_mut() {
            failure.is_latest = false;
        }
    });
}

/// Gives `f` why the thread's last call failed; "" if it did not.
pub fn with_reason<R>(f: impl FnOnce(&CStr) -> R) -> R {
    let mut f = Some(f);
    let told = LAST.try_with(|last| {
        let last = last.borrow();
        let failure = last.as_ref().filter(|failure| failure.is_latest)?;
        f.take().map(|f| f(&failure.reason))
    });
    match (told, f) {
        (Ok(Some(result)), _) => result,
        (_, Some(f)) => f(c""),
        _ => unreachable!("it is called once"),
    }
}

/// Where a heap that is NULL comes from, as far as the thread knows: the end of a sentence.
#[cold]
pub(crate) fn latest() -> String {
    let told = LAST.try_with(|last| {
        let last = last.borrow();
        let Failure {
            call,
            reason,
            is_latest,
        } = last.as_ref()?;
        let reason = reason.to_string_lossy();
        Some(match is_latest {
            true => format!(": {call} failed: {reason}"),
            false => format!("; the last that failed in this thread is {call}: {reason}"),
        })
    });
    told.ok().flatten().unwrap_or_else(|| {
        ": nvl_open and nvl_create give NULL where they fail; no call of this thread did".into()
    })
}
