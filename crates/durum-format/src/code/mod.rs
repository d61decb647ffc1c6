//! Code that completes the sections of a client, as its program has deposited it (docs/format/code.md).

mod features;

use std::mem::offset_of;

use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::consts::UNIT;
use crate::crc::crc32c;
use crate::error::{FormatError, check_zero};
use crate::header::{Beginning, Signature};
use crate::puddle::{PuddleHeader, PuddleKind, heap_size};

pub use features::features;

/// The first eight bytes of the heap of a puddle of code.
pub const MAGIC: [u8; 8] = *b"DURUMCOD";
/// The version that this build writes and reads.
pub const VERSION: u32 = 1;
/// Bytes of the head. The code begins behind it.
pub const HEAD_SIZE: usize = 64;

const SIGNATURE: Signature = Signature {
    structure: "puddle of code",
    magic: MAGIC,
    version: VERSION,
    checksum_offset: offset_of!(Media, checksum),
};

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct Media {
    beginning: Beginning,
    sum: U32,
    length: U64,
    reserved: [u8; 36],
    checksum: U32,
}

const _: () = assert!(size_of::<Media>() == HEAD_SIZE);
const _: () = assert!(offset_of!(Media, sum) == 12 && offset_of!(Media, length) == 16);
const _: () = assert!(offset_of!(Media, reserved) == 24 && offset_of!(Media, checksum) == 60);

/// What the head says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// Bytes of the code.
    pub length: u64,
    /// Their CRC-32C.
    pub sum: u32,
}

impl Head {
    /// The head of a puddle with this code.
    pub fn of(code: &[u8]) -> Self {
        Self {
            length: code.len() as u64,
            sum: crc32c(code),
        }
    }

    /// The first 64 bytes of the heap.
    pub fn encode(&self) -> [u8; HEAD_SIZE] {
        SIGNATURE.sealed(zerocopy::transmute!(Media {
            beginning: SIGNATURE.beginning(),
            sum: self.sum.into(),
            length: self.length.into(),
            reserved: [0; 36],
            checksum: 0.into(),
        }))
    }

    /// Reads the head of the puddle with this header.
    ///
    /// # Errors
    /// A foreign, newer, damaged or truncated head; a puddle of another kind; more code than there is room for.
    pub fn parse(puddle: &PuddleHeader, heap: &[u8]) -> Result<Self, FormatError> {
        puddle.check_kind(PuddleKind::Code, "7 (code)")?;
        let media: &Media = SIGNATURE.read(heap)?;
        check_zero(SIGNATURE.structure, 24, &media.reserved)?;
        let (length, room) = (media.length.get(), room(puddle.size));
        if length > room {
            let expected = format!("up to {room}, for which there is room");
            return Err(SIGNATURE.field("length", 16, length, expected));
        }
        Ok(Self {
            length,
            sum: media.sum.get(),
        })
    }

    /// Whether these bytes are the code.
    pub fn is_of(&self, code: &[u8]) -> bool {
        *self == Self::of(code)
    }
}

/// How much code a puddle of `size` bytes has room for.
pub const fn room(size: u64) -> u64 {
    heap_size(size).saturating_sub(HEAD_SIZE as u64)
}

/// The smallest size of a puddle that has room for so many bytes of code.
pub const fn size_for(length: u64) -> u64 {
    let mut size = UNIT;
    while room(size) < length {
        size += UNIT;
    }
    size
}
