//! What the headers of puddles, logs and log spaces have in common.
//!
//! Eight bytes that say what it is, a version, and a checksum of all bytes before it. Reserved bytes are zero
//! ([`check_zero`](crate::error::check_zero)). What each header says besides is checked by its own module, behind this.

use std::borrow::Cow;

use zerocopy::little_endian::U32;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::crc::crc32c;
use crate::error::FormatError;

/// How every header begins.
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(crate) struct Beginning {
    magic: [u8; 8],
    version: U32,
}

const VERSION_OFFSET: u64 = 8;
const _: () = assert!(std::mem::offset_of!(Beginning, version) as u64 == VERSION_OFFSET);

/// What tells one kind of header from all other bytes.
pub(crate) struct Signature {
    /// What it is called in errors.
    pub(crate) structure: &'static str,
    pub(crate) magic: [u8; 8],
    /// The version that this build writes and reads.
    pub(crate) version: u32,
    /// Where the checksum stands, and what it covers: all bytes before.
    pub(crate) checksum_offset: usize,
}

impl Signature {
    /// The first bytes of a header.
    pub(crate) fn beginning(&self) -> Beginning {
        Beginning {
            magic: self.magic,
            version: self.version.into(),
        }
    }

    /// The header with its checksum, when all else is there.
    pub(crate) fn sealed<const SIZE: usize>(&self, mut header: [u8; SIZE]) -> [u8; SIZE] {
        let (covered, rest) = header.split_at_mut(self.checksum_offset);
        rest[..4].copy_from_slice(&crc32c(covered).to_le_bytes());
        header
    }

    /// The struct that `bytes` begin with.
    ///
    /// # Errors
    /// A foreign, newer, damaged or truncated header, in the order of the checks.
    pub(crate) fn read<'a, M>(&self, bytes: &'a [u8]) -> Result<&'a M, FormatError>
    where
        M: FromBytes + KnownLayout + Immutable + Unaligned,
    {
        let structure = self.structure;
        let truncated = || FormatError::Truncated {
            structure,
            needed: size_of::<M>() as u64,
            found: bytes.len() as u64,
        };
        let (header, _) = M::ref_from_prefix(bytes).map_err(|_| truncated())?;
        let (beginning, _) = Beginning::ref_from_prefix(bytes).map_err(|_| truncated())?;
        if beginning.magic != self.magic {
            return Err(FormatError::Magic {
                structure,
                found: beginning.magic,
                expected: self.magic,
            });
        }
        // Before the checksum: a newer version may keep its checksum elsewhere, and is to be refused by its name.
        FormatError::check_version(
            structure,
            VERSION_OFFSET,
            beginning.version.get(),
            self.version,
        )?;
        let (covered, rest) = bytes.split_at(self.checksum_offset);
        let (found, _) = U32::ref_from_prefix(rest).map_err(|_| truncated())?;
        FormatError::check_checksum(
            structure,
            covered.len() as u64,
            found.get(),
            crc32c(covered),
        )?;
        Ok(header)
    }

    /// A field with a value that no writer gives it.
    pub(crate) fn field(
        &self,
        field: &'static str,
        offset: u64,
        found: impl Into<u64>,
        expected: impl Into<Cow<'static, str>>,
    ) -> FormatError {
        FormatError::field(self.structure, field, offset, found, expected)
    }
}
