//! What clients are told in words alone.

use durum_service::{Error, ErrorKind};

/// A refusal, whose reason a person understands.
pub(crate) fn refused(text: String) -> Error {
    Error::Told {
        kind: ErrorKind::User,
        text,
    }
}
