//! How a program ends that breaks a rule of sections: a message, then abort(). What it was doing goes on when the
//! heap is opened again.

use std::fmt;
use std::io::Write;

/// Ends the program with a message, which is written as for `format!`.
macro_rules! fatal {
    ($($message:tt)+) => {
        $crate::fatal::end(format_args!($($message)+))
    };
}
pub(crate) use fatal;

/// Ends the program.
#[cold]
pub(crate) fn end(message: fmt::Arguments<'_>) -> ! {
    end_at(format_args!("ido: {message}"))
}

/// The same with a message that tells a place first.
#[cold]
pub(crate) fn end_at(message: fmt::Arguments<'_>) -> ! {
    let text = format!("{message}\n");
    // One write, so that two threads' messages do not mix; where it fails there is nobody to tell.
    let _ = std::io::stderr().write_all(text.as_bytes());
    std::process::abort()
}

/// What a `Result` holds, or the end of the program.
pub(crate) trait OrFatal<T> {
    /// `doing`: what was tried, for the message.
    fn or_fatal(self, doing: &str) -> T;
}

impl<T, E: fmt::Display> OrFatal<T> for Result<T, E> {
    #[inline]
    fn or_fatal(self, doing: &str) -> T {
        match self {
            Ok(value) => value,
            Err(error) => fatal!("{doing}: {error}"),
        }
    }
}
