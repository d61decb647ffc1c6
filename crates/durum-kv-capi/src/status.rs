//! What went wrong, in LevelDB's codes and words, as far as it has them.

use std::error::Error as _;
use std::ffi::c_int;
use std::io;

use durum_service::Error as StoreError;
use kv::{Error, ErrorKind};

/// What `durum_kv_error_code` says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Code {
    IoError = 1,
    InvalidArgument = 2,
    Corruption = 3,
    NotFound = 4,
}

impl Code {
    /// How LevelDB's messages of the kind begin.
    fn prefix(self) -> &'static str {
        match self {
            Code::IoError => "IO error: ",
            Code::InvalidArgument => "Invalid argument: ",
            Code::Corruption => "Corruption: ",
            Code::NotFound => "NotFound: ",
        }
    }
}

/// Why a call failed.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    code: Code,
    text: String,
}

impl Failure {
    pub(crate) fn new(code: Code, text: impl Into<String>) -> Self {
        let text = text.into();
        Self { code, text }
    }

    pub(crate) fn argument(text: impl Into<String>) -> Self {
        Self::new(Code::InvalidArgument, text)
    }

    pub(crate) fn code(&self) -> c_int {
        self.code as c_int
    }

    pub(crate) fn message(&self) -> String {
        format!("{}{}", self.code.prefix(), self.text)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        match &error {
            Error::Missing { path } => Self::argument(format!(
                "{}: does not exist (create_if_missing is false)",
                path.display()
            )),
            Error::Exists { path } => Self::argument(format!(
                "{}: exists (error_if_exists is true)",
                path.display()
            )),
            Error::Comparator { stored, given, .. } => Self::argument(format!(
                "{stored} does not match existing comparator : {given}"
            )),
            Error::Durum(durum::Error::Store(StoreError::StoreBusy { path, pid })) => {
                // By such a text programs know that somebody has the database open.
                let lock = path.join("LOCK");
                let reason = match pid {
                    Some(pid) if *pid == std::process::id() => "already held by process".into(),
                    Some(pid) => format!("Resource temporarily unavailable (process {pid})"),
                    None => String::from("Resource temporarily unavailable"),
                };
                Self::new(Code::IoError, format!("lock {}: {reason}", lock.display()))
            }
            Error::Durum(durum::Error::Store(busy @ StoreError::PoolBusy { name })) => {
                Self::new(Code::IoError, format!("lock {name}: {busy}"))
            }
            _ => Self::new(code(&error), error.to_string()),
        }
    }
}

fn code(error: &Error) -> Code {
    match error.kind() {
        // As in LevelDB, it says that a file or directory is missing.
        ErrorKind::System if is_missing_file(error) => Code::NotFound,
        ErrorKind::System => Code::IoError,
        // LevelDB says so of a path where no directory can be.
        ErrorKind::User if is_path(error) => match is_missing_file(error) {
            true => Code::NotFound,
            false => Code::IoError,
        },
        ErrorKind::Data => Code::Corruption,
        ErrorKind::Caller | ErrorKind::User => Code::InvalidArgument,
    }
}

fn is_path(error: &Error) -> bool {
    matches!(
        error,
        Error::Durum(durum::Error::Store(StoreError::PathRefused { .. }))
    )
}

fn is_missing_file(error: &Error) -> bool {
    let mut cause = error.source();
    while let Some(error) = cause {
        if let Some(system) = error.downcast_ref::<io::Error>() {
            return system.kind() == io::ErrorKind::NotFound;
        }
        cause = error.source();
    }
    false
}
