//! Errors on the wire: what a program may act on comes field by field, all else as its kind and text.

use std::borrow::Cow;
use std::io;
use std::path::{Path, PathBuf};

use durum_format::section::Code;
use durum_service::{Error, ErrorKind, InterruptionDetails};
use serde::{Deserialize, Serialize};

use crate::words::constant;

/// A field of an error, and what it is on the wire.
pub trait Field: Sized {
    /// What is sent of it.
    type Sent;
    /// As it is sent.
    fn sent(self) -> Self::Sent;
    /// As it is known here.
    fn received(sent: Self::Sent) -> Self;
}

macro_rules! sent_as_they_are {
    ($($kind:ty),*) => { $(
        impl Field for $kind {
            type Sent = $kind;
            fn sent(self) -> $kind {
                self
            }
            fn received(sent: $kind) -> $kind {
                sent
            }
        }
    )* };
}

sent_as_they_are!(
    String,
    PathBuf,
    u64,
    Option<u64>,
    Option<u32>,
    Option<Code>,
    Box<InterruptionDetails>,
    Vec<String>,
    bool
);

impl Field for &'static str {
    type Sent = String;
    fn sent(self) -> String {
        self.to_owned()
    }
    fn received(sent: String) -> &'static str {
        constant(&sent)
    }
}

impl Field for Cow<'static, str> {
    type Sent = String;
    fn sent(self) -> String {
        self.into_owned()
    }
    fn received(sent: String) -> Cow<'static, str> {
        sent.into()
    }
}

/// An error of the system: its number, if it has one, and its text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OfSystem {
    /// `errno`, 0 where there is none.
    pub number: i32,
    /// What it says.
    pub text: String,
}

impl Field for io::Error {
    type Sent = OfSystem;
    fn sent(self) -> OfSystem {
        OfSystem {
            number: self.raw_os_error().unwrap_or(0),
            text: self.to_string(),
        }
    }
    fn received(sent: OfSystem) -> io::Error {
        match sent.number {
            0 => io::Error::other(sent.text),
            number => io::Error::from_raw_os_error(number),
        }
    }
}

/// What a store is called by its service, and by a client of it.
#[derive(Clone, Copy, Debug)]
pub struct Names<'n> {
    /// The directory: where the service sees it. A client may not be able to enter it.
    pub directory: &'n Path,
    /// As the client came to it.
    pub place: &'n Path,
}

/// What is sent of a field, with the store's name in it.
trait Named: Sized {
    /// With the name that the client uses.
    fn named(self, _names: Names<'_>) -> Self {
        self
    }
}

impl Named for PathBuf {
    /// Files of the store stay where they are.
    fn named(self, names: Names<'_>) -> PathBuf {
        match self == names.directory {
            true => names.place.to_owned(),
            false => self,
        }
    }
}

impl Named for String {
    /// In commands, which stand between backticks: they are for typing.
    fn named(self, names: Names<'_>) -> String {
        let directory = format!(" {} ", names.directory.display());
        let place = format!(" {} ", names.place.display());
        let part =
            |(number, part): (usize, &str)| match number % 2 == 1 && part.starts_with("durum ") {
                true => {
                    let mut command = format!("{part} ").replace(&directory, &place);
                    command.pop();
                    command
                }
                false => part.to_owned(),
            };
        let parts: Vec<String> = self.split('`').enumerate().map(part).collect();
        parts.join("`")
    }
}

impl Named for u64 {}
impl Named for Option<u64> {}
impl Named for Option<u32> {}
impl Named for Box<InterruptionDetails> {}
impl Named for Option<Code> {}
impl Named for bool {}
impl Named for Vec<String> {}
impl Named for OfSystem {}

/// Defines the errors that come field by field. Their order is the protocol's: new ones go to the end.
macro_rules! failures {
    ($($name:ident { $($field:ident: $kind:ty),* }),* $(,)?) => {
        /// An error, as it is sent.
        #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
        #[allow(missing_docs)] // They are those of `durum_service::Error`.
        pub enum Failure {
            /// Any other.
            Told { kind: Cause, text: String },
            $($name { $($field: <$kind as Field>::Sent),* }),*
        }

        impl From<Error> for Failure {
            fn from(error: Error) -> Failure {
                match error {
                    $(Error::$name { $($field),* } => Failure::$name { $($field: Field::sent($field)),* },)*
                    other => Failure::Told {
                        kind: other.kind().into(),
                        text: other.to_string(),
                    },
                }
            }
        }

        impl Failure {
            /// As it is told to a client: with the name by which that came to the store, so that what to do about it
            /// can be done where the client is.
            #[must_use]
            pub fn named(self, names: Names<'_>) -> Failure {
                match self {
                    $(Failure::$name { $($field),* } => Failure::$name { $($field: Named::named($field, names)),* },)*
                    Failure::Told { kind, text } => Failure::Told {
                        kind,
                        text: text.named(names),
                    },
                }
            }
        }

        impl From<Failure> for Error {
            fn from(failure: Failure) -> Error {
                match failure {
                    $(Failure::$name { $($field),* } => {
                        Error::$name { $($field: <$kind as Field>::received($field)),* }
                    })*
                    Failure::Told { kind, text } => Error::Told {
                        kind: kind.into(),
                        text,
                    },
                }
            }
        }
    };
}

failures! {
    Closed { store: PathBuf },
    ClientUnknown { client: String },
    PoolNotOpen { pool: String },
    PoolOpen { name: String, operation: &'static str },
    PuddleUnknown { store: PathBuf, uuid: String },
    PuddleRefused { uuid: String, reason: &'static str },
    PuddleSize { size: u64, unit: u64, max: u64 },
    TypeRefused { id: u64, reason: String },
    PoolBusy { name: String },
    PoolMissing { store: PathBuf, name: String },
    PoolExists { store: PathBuf, name: String },
    PoolName { name: String, reason: &'static str },
    AddressesExhausted { store: PathBuf, size: u64, space: u64 },
    NothingKept { store: PathBuf, pool: String, reason: &'static str },
    PoolNotQuarantined { store: PathBuf, pool: String, reason: String, cure: String },
    PoolWaits { store: PathBuf, pool: String, others: Vec<String> },
    GarbageUnjudged { store: PathBuf, pool: String, reason: String },
    Damaged {
        file: PathBuf, structure: &'static str, offset: u64, problem: String, cure: Cow<'static, str>
    },
    FileMissing { file: PathBuf, structure: &'static str, cure: Cow<'static, str> },
    NotAFile {
        file: PathBuf, found: &'static str, expected: &'static str, structure: &'static str, cure: Cow<'static, str>
    },
    PoolQuarantined { store: PathBuf, pool: String, log: PathBuf, reason: String },
    PoolRefused { store: PathBuf, pool: String, reason: String, cure: String },
    PartsKept { store: PathBuf, operation: &'static str, pools: Vec<String>, cure: String },
    StorageFull { path: PathBuf, bytes: u64 },
    Io { operation: &'static str, path: PathBuf, offset: Option<u64>, source: io::Error },
    Poisoned { store: PathBuf, file: PathBuf },
    NotPermitted { what: String, operation: &'static str, uid: u64, cure: &'static str },
    ModeRefused { mode: u64 },
    QuotaExceeded { uid: u64, quota: &'static str, used: u64, more: u64, limit: u64 },
    PoolInterrupted {
        store: PathBuf, pool: String, sections: u64, first: Option<Code>, details: Box<InterruptionDetails>,
        others: Vec<String>
    },
}

impl Failure {
    /// As it is told to who does not know an error of this name: its kind and text.
    #[must_use]
    pub fn unnamed(self) -> Failure {
        let error = Error::from(self);
        Failure::Told {
            kind: error.kind().into(),
            text: error.to_string(),
        }
    }
}

/// Who can act on an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs)] // They are those of `durum_service::ErrorKind`.
pub enum Cause {
    Caller,
    User,
    Data,
    System,
}

impl From<ErrorKind> for Cause {
    fn from(kind: ErrorKind) -> Cause {
        match kind {
            ErrorKind::Caller => Cause::Caller,
            ErrorKind::User => Cause::User,
            ErrorKind::Data => Cause::Data,
            ErrorKind::System => Cause::System,
        }
    }
}

impl From<Cause> for ErrorKind {
    fn from(cause: Cause) -> ErrorKind {
        match cause {
            Cause::Caller => ErrorKind::Caller,
            Cause::User => ErrorKind::User,
            Cause::Data => ErrorKind::Data,
            Cause::System => ErrorKind::System,
        }
    }
}
