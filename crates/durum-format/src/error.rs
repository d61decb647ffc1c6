//! Why bytes from the media were refused.

use std::borrow::Cow;

/// What kind of refusal a [`FormatError`] is, for exit codes and advice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The bytes were never this structure: a foreign file.
    Foreign,
    /// The bytes come from another version of durum. Nothing is wrong with them.
    OtherVersion,
    /// The bytes were this structure and are damaged or cut short.
    Damaged,
}

/// A structure on the media that cannot be accepted. Offsets count from the first byte of the structure that
/// is named; who reads a file adds the file's name and where in it the structure begins.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FormatError {
    /// The first bytes are those of something else.
    #[error(
        "{structure}: offset 0 holds {found:02x?} where {expected:02x?} must stand: this is not a {structure}; \
         check that the path is right"
    )]
    Magic {
        /// Which structure was expected.
        structure: &'static str,
        /// The bytes found.
        found: [u8; 8],
        /// The bytes that mark the structure.
        expected: [u8; 8],
    },
    /// A version that this build does not read.
    #[error(
        "{structure}: version {found} at offset {offset}, but this build reads version {supported} only: use the \
         durum that wrote it; nothing was changed"
    )]
    Version {
        /// Which structure carries the version.
        structure: &'static str,
        /// Where the version stands.
        offset: u64,
        /// The version found.
        found: u32,
        /// The version this build reads.
        supported: u32,
    },
    /// A checksum that does not match the bytes it covers.
    #[error(
        "{structure}: checksum at offset {offset} is {found:#010x}, the bytes it covers give {expected:#010x}: the \
         structure is damaged"
    )]
    Checksum {
        /// Which structure is damaged.
        structure: &'static str,
        /// Where the checksum stands.
        offset: u64,
        /// The checksum of the bytes as they are.
        expected: u32,
        /// The checksum as stored.
        found: u32,
    },
    /// A reserved byte that is not zero.
    #[error(
        "{structure}: the reserved byte at offset {offset} is not zero: the structure is damaged, or was written by \
         a durum that is newer than it says"
    )]
    Reserved {
        /// Which structure.
        structure: &'static str,
        /// The first such byte.
        offset: u64,
    },
    /// Fewer bytes than the structure needs.
    #[error("{structure}: {found} bytes where {needed} are needed: the file is cut short")]
    Truncated {
        /// Which structure.
        structure: &'static str,
        /// Bytes needed.
        needed: u64,
        /// Bytes at hand.
        found: u64,
    },
    /// A field with a value that no writer gives it.
    #[error(
        "{structure}: {field} at offset {offset} is {found:#x}, expected {expected}: the structure is damaged"
    )]
    Field {
        /// Which structure.
        structure: &'static str,
        /// Which field.
        field: &'static str,
        /// Where the field stands.
        offset: u64,
        /// The value found.
        found: u64,
        /// What would have been accepted.
        expected: Cow<'static, str>,
    },
    /// A text (catalog, store file, type descriptor) that says something impossible.
    #[error("{structure}: {problem}")]
    Text {
        /// Which structure.
        structure: &'static str,
        /// What is wrong, where, and what was expected.
        problem: String,
        /// Whether the text is a foreign one or a damaged one.
        fault: Fault,
    },
}

impl FormatError {
    /// Whose bytes these are: foreign, of another version, or damaged.
    pub fn fault(&self) -> Fault {
        match self {
            Self::Magic { .. } => Fault::Foreign,
            Self::Version { .. } => Fault::OtherVersion,
            Self::Text { fault, .. } => *fault,
            _ => Fault::Damaged,
        }
    }

    /// The offset in the structure that the error speaks of, if it has one.
    pub fn offset(&self) -> Option<u64> {
        match self {
            Self::Magic { .. } => Some(0),
            Self::Version { offset, .. }
            | Self::Checksum { offset, .. }
            | Self::Reserved { offset, .. }
            | Self::Field { offset, .. } => Some(*offset),
            Self::Truncated { found, .. } => Some(*found),
            Self::Text { .. } => None,
        }
    }

    pub(crate) fn damaged_text(structure: &'static str, problem: impl Into<String>) -> Self {
        Self::Text {
            structure,
            problem: problem.into(),
            fault: Fault::Damaged,
        }
    }

    pub(crate) fn field(
        structure: &'static str,
        field: &'static str,
        offset: u64,
        found: impl Into<u64>,
        expected: impl Into<Cow<'static, str>>,
    ) -> Self {
        Self::Field {
            structure,
            field,
            offset,
            found: found.into(),
            expected: expected.into(),
        }
    }

    pub(crate) fn check_version(
        structure: &'static str,
        offset: u64,
        found: u32,
        supported: u32,
    ) -> Result<(), Self> {
        if found == supported {
            return Ok(());
        }
        Err(Self::Version {
            structure,
            offset,
            found,
            supported,
        })
    }

    pub(crate) fn check_checksum(
        structure: &'static str,
        offset: u64,
        found: u32,
        expected: u32,
    ) -> Result<(), Self> {
        if found == expected {
            return Ok(());
        }
        Err(Self::Checksum {
            structure,
            offset,
            expected,
            found,
        })
    }

    /// The refusal of a text that does not begin with `words`: it is a foreign one, or was cut off within them. A file
    /// that a crash left empty was one of ours, as far as anyone can tell.
    pub(crate) fn foreign_text(
        structure: &'static str,
        what: &str,
        words: &str,
        bytes: &[u8],
    ) -> Self {
        if words.as_bytes().starts_with(bytes) {
            return Self::Truncated {
                structure,
                needed: words.len() as u64,
                found: bytes.len() as u64,
            };
        }
        let words = words.trim_end();
        Self::Text {
            structure,
            problem: format!(
                "it does not begin with {words:?}: this is no {what}; check that the path is right"
            ),
            fault: Fault::Foreign,
        }
    }
}

/// Refuses `bytes` unless all are zero; `base` is the offset of the first of them in `structure`.
pub(crate) fn check_zero(
    structure: &'static str,
    base: u64,
    bytes: &[u8],
) -> Result<(), FormatError> {
    match bytes.iter().position(|&byte| byte != 0) {
        None => Ok(()),
        Some(at) => Err(FormatError::Reserved {
            structure,
            offset: base + at as u64,
        }),
    }
}
