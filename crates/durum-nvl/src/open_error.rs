//! How nvl_open and nvl_create fail: why, for whoever asks with `nvl_error`, for errno, and for the message about a
//! heap that is NULL.

use std::cell::RefCell;
use std::ffi::{CString, c_char};
use std::fmt;
use std::io;
use std::path::Path;

/// Why a heap could not be opened or made.
#[derive(Debug)]
#[non_exhaustive]
pub enum OpenError {
    /// What the store says.
    Store(durum::Error),
    /// The same in words of NVL-C, with its cure.
    Told(Box<durum::Error>, String),
    /// What this runtime says: errno and a message.
    Refused(i32, String),
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Store(error) => error.fmt(f),
            Self::Told(_, reason) | Self::Refused(_, reason) => f.write_str(reason),
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
    /// The errno that fits (docs/tutorials/nvl-c.md has the table).
    pub fn errno(&self) -> i32 {
        match self {
            Self::Store(error) => errno_of(error),
            Self::Told(error, _) => errno_of(error),
            Self::Refused(errno, _) => *errno,
        }
    }

    /// What nvl_open says where the store has no heap. A store that `durum init` makes has none, so the store's own
    /// cure would not help.
    pub(crate) fn of_open(path: &Path, error: durum::Error) -> Self {
        use durum::StoreError as Store;
        let path = path.display();
        let text = match &error {
            durum::Error::Store(Store::StoreMissing {
                path: store,
                missing,
                can_be_made: true,
            }) => {
                let store = store.display();
                format!(
                    "{store}: no durum store here ({missing} is missing); make the heap with nvl_create(\"{path}\")"
                )
            }
            durum::Error::Store(Store::PoolMissing { store, name }) => {
                let store = store.display();
                format!(
                    "{store}: no pool \"{name}\"; make the heap with nvl_create(\"{path}\"), or see which pools there are: `durum ls {store}`"
                )
            }
            _ => return Self::Store(error),
        };
        Self::Told(Box::new(error), text)
    }
}

fn errno_of(error: &durum::Error) -> i32 {
    use durum::StoreError as Store;
    use durum::{Error, ErrorKind};
    match error {
        Error::Store(Store::StoreMissing { .. } | Store::PoolMissing { .. }) => libc::ENOENT,
        Error::Store(Store::StoreExists { .. } | Store::PoolExists { .. }) => libc::EEXIST,
        Error::Store(
            Store::StoreBusy { .. }
            | Store::StoreServed { .. }
            | Store::PoolBusy { .. }
            | Store::PoolOpen { .. },
        ) => libc::EBUSY,
        Error::Store(Store::ServiceGone { .. }) => libc::ECONNREFUSED,
        Error::Store(Store::AddressConflict { .. } | Store::Unmovable { .. }) => libc::EADDRINUSE,
        Error::Store(Store::AddressSpace { .. }) => libc::ENOMEM,
        Error::Store(Store::StorageFull { .. } | Store::AddressesExhausted { .. })
        | Error::LogFull { .. } => libc::ENOSPC,
        Error::Store(Store::Io { source, .. } | Store::PathRefused { source, .. })
        | Error::System { source, .. } => errno_of_io(source),
        other => match other.kind() {
            ErrorKind::Caller | ErrorKind::User => libc::EINVAL,
            ErrorKind::Data | ErrorKind::System => libc::EIO,
        },
    }
}

/// The system's own number, or, where the store has put a cure behind the system's message, one for the kind.
fn errno_of_io(error: &io::Error) -> i32 {
    error.raw_os_error().unwrap_or(match error.kind() {
        io::ErrorKind::PermissionDenied => libc::EACCES,
        io::ErrorKind::OutOfMemory => libc::ENOMEM,
        _ => libc::EIO,
    })
}

/// A call that failed.
struct Failure {
    function: String,
    path: String,
    reason: CString,
    /// What nvl_open said before, where this is nvl_create of the same path: it is mostly the reason for both.
    before: Option<String>,
    /// No later one went well.
    is_latest: bool,
}

thread_local! {
    /// The thread's last one.
    static LAST: RefCell<Option<Failure>> = const { RefCell::new(None) };
}

impl fmt::Display for Failure {
    /// `nvl_open("x.heap")`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}(\"{}\")", self.function, self.path)
    }
}

/// Remembers that a call of this thread failed: its name, the path that it was given, and why.
pub fn failed(function: &str, path: &str, reason: &str) {
    let text: Vec<u8> = reason.bytes().filter(|byte| *byte != 0).collect();
    // A thread that ends remembers nothing any more.
    let _ = LAST.try_with(|last| {
        let mut last = last.borrow_mut();
        let before = last.take().filter(|earlier| {
            earlier.is_latest && earlier.function != function && earlier.path == path
        });
        *last = Some(Failure {
            function: function.to_owned(),
            path: path.to_owned(),
            reason: CString::new(text).unwrap_or_default(),
            before: before
                .map(|earlier| format!("{earlier} failed: {}", earlier.reason.to_string_lossy())),
            is_latest: true,
        });
    });
}

/// Remembers that a call of this thread went well.
pub fn succeeded() {
    let _ = LAST.try_with(|last| {
        if let Some(failure) = last.borrow_mut().as_mut() {
            failure.is_latest = false;
        }
    });
}

/// Why the thread's last call failed; "" if it did not. The string is valid until the next of these calls in this
/// thread.
pub fn reason() -> *const c_char {
    let told = LAST.try_with(|last| {
        let last = last.borrow();
        let failure = last.as_ref().filter(|failure| failure.is_latest)?;
        Some(failure.reason.as_ptr())
    });
    told.ok().flatten().unwrap_or(c"".as_ptr())
}

/// Where a heap that is NULL comes from, as far as the thread knows: the end of a sentence.
#[cold]
pub(crate) fn latest() -> String {
    let told = LAST.try_with(|last| {
        let last = last.borrow();
        let failure = last.as_ref()?;
        let reason = failure.reason.to_string_lossy();
        let before = match &failure.before {
            Some(before) => format!("; before it, {before}"),
            None => String::new(),
        };
        Some(match failure.is_latest {
            true => format!(": {failure} failed: {reason}{before}"),
            false => {
                format!("; the last that failed in this thread is {failure}: {reason}{before}")
            }
        })
    });
    told.ok().flatten().unwrap_or_else(|| {
        ": nvl_open and nvl_create give NULL where they fail; no call of this thread did".into()
    })
}
