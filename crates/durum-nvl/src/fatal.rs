//! How a program ends that breaks a rule of NVL-C: a message with file, line and heaps, then abort().

use std::ffi::{CStr, c_char, c_uint};
use std::fmt;
use std::io::Write;

/// The place in the program that a message names.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Location {
    file: *const c_char,
    line: c_uint,
}

impl Location {
    /// The caller does not say.
    pub(crate) const UNKNOWN: Self = Self {
        file: std::ptr::null(),
        line: 0,
    };

    /// # Safety
    /// `file` is null or a string that lasts as long as the program.
    pub(crate) unsafe fn new(file: *const c_char, line: c_uint) -> Self {
        Self { file, line }
    }

    /// As `new` was given them.
    pub(crate) fn parts(self) -> (*const c_char, c_uint) {
        (self.file, self.line)
    }

    /// `FILE:LINE`, where the caller says.
    pub(crate) fn place(self) -> Option<String> {
        if self.file.is_null() {
            return None;
        }
        // SAFETY: as `new` was promised.
        let file = unsafe { CStr::from_ptr(self.file) };
        Some(format!("{}:{}", file.to_string_lossy(), self.line))
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.place() {
            Some(place) => write!(f, "{place}: "),
            None => Ok(()),
        }
    }
}

/// Ends the program with a message, which is written as for `format!`.
macro_rules! fatal {
    ($at:expr, $($message:tt)+) => {
        $crate::fatal::end($at, format_args!($($message)+))
    };
}
pub(crate) use fatal;

/// Ends the program. A transaction that is open never commits: the next opener of its store rolls it back.
#[cold]
pub(crate) fn end(at: Location, message: fmt::Arguments<'_>) -> ! {
    let text = format!("{at}nvl: {message}\n");
    // One write, so that two threads' messages do not mix; where it fails there is nobody to tell.
    let _ = std::io::stderr().write_all(text.as_bytes());
    std::process::abort()
}

/// What a `Result` of the store holds, or the end of the program.
pub(crate) trait OrFatal<T> {
    /// `doing`: what was tried, for the message.
    fn or_fatal(self, at: Location, doing: &str) -> T;
}

impl<T, E: fmt::Display> OrFatal<T> for Result<T, E> {
    #[inline]
    fn or_fatal(self, at: Location, doing: &str) -> T {
        match self {
            Ok(value) => value,
            Err(error) => fatal!(at, "{doing}: {error}"),
        }
    }
}
