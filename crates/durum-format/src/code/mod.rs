//! Code that completes the sections of a client, as its program has deposited it (docs/format/code.md).
//!
//! Reading order: this (where all lies), [`features()`] and [`architecture()`] (what the code needs of the processor),
//! [`places`] (where sections go on, for a person).

mod features;
pub mod places;

use std::mem::offset_of;

use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::consts::UNIT;
use crate::crc::crc32c;
use crate::error::{FormatError, check_zero};
use crate::header::{Beginning, Signature};
use crate::puddle::{PuddleHeader, PuddleKind, heap_size};

pub use features::{architecture, features};
use places::PLACES_MAX;

/// The first eight bytes of the heap of a puddle of code.
pub const MAGIC: [u8; 8] = *b"DURUMCOD";
/// The version that this build writes and reads.
pub const VERSION: u32 = 1;
/// Bytes of the head. The code begins behind it.
pub const HEAD_SIZE: usize = 64;
/// The most bytes of code: a service that runs it holds a copy in memory.
pub const CODE_MAX: u64 = 64 << 20;

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
    places_length: U64,
    places_sum: U32,
    reserved: [u8; 24],
    checksum: U32,
}

const _: () = assert!(size_of::<Media>() == HEAD_SIZE);
const _: () = assert!(offset_of!(Media, sum) == 12 && offset_of!(Media, length) == 16);
const _: () =
    assert!(offset_of!(Media, places_length) == 24 && offset_of!(Media, places_sum) == 32);
const _: () = assert!(offset_of!(Media, reserved) == 36 && offset_of!(Media, checksum) == 60);

/// What the head says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// Bytes of the code.
    pub length: u64,
    /// Their CRC-32C.
    pub sum: u32,
    /// Bytes of the places behind it.
    pub places_length: u64,
    /// Their CRC-32C.
    pub places_sum: u32,
}

impl Head {
    /// The head of a puddle with this code, and behind it these [places](places::Places).
    pub fn of(code: &[u8], places: &[u8]) -> Self {
        Self {
            length: code.len() as u64,
            sum: crc32c(code),
            places_length: places.len() as u64,
            places_sum: crc32c(places),
        }
    }

    /// The first 64 bytes of the heap.
    pub fn encode(&self) -> [u8; HEAD_SIZE] {
        SIGNATURE.sealed(zerocopy::transmute!(Media {
            beginning: SIGNATURE.beginning(),
            sum: self.sum.into(),
            length: self.length.into(),
            places_length: self.places_length.into(),
            places_sum: self.places_sum.into(),
            reserved: [0; 24],
            checksum: 0.into(),
        }))
    }

    /// Reads the head of the puddle with this header.
    ///
    /// # Errors
    /// A foreign, newer, damaged or truncated head; a puddle of another kind; more code and places than there is room
    /// for, and too much of either.
    pub fn parse(puddle: &PuddleHeader, heap: &[u8]) -> Result<Self, FormatError> {
        puddle.check_kind(PuddleKind::Code, "7 (code)")?;
        let media: &Media = SIGNATURE.read(heap)?;
        check_zero(SIGNATURE.structure, 36, &media.reserved)?;
        let (length, room) = (media.length.get(), room(puddle.size));
        let most = CODE_MAX.min(room);
        if length > most {
            return Err(SIGNATURE.field("length", 16, length, format!("up to {most}")));
        }
        let (places_length, room) = (media.places_length.get(), PLACES_MAX.min(room - length));
        if places_length > room {
            let expected = format!("up to {room}");
            return Err(SIGNATURE.field("length of places", 24, places_length, expected));
        }
        Ok(Self {
            length,
            sum: media.sum.get(),
            places_length,
            places_sum: media.places_sum.get(),
        })
    }

    /// Where the places begin, from the begin of the heap on.
    pub fn places_offset(&self) -> u64 {
        HEAD_SIZE as u64 + self.length
    }

    /// Whether these bytes are the code.
    pub fn is_of(&self, code: &[u8]) -> bool {
        self.length == code.len() as u64 && self.sum == crc32c(code)
    }

    /// Whether these bytes are the places.
    pub fn is_of_places(&self, places: &[u8]) -> bool {
        self.places_length == places.len() as u64 && self.places_sum == crc32c(places)
    }
}

/// How much code, with its places, a puddle of `size` bytes has room for.
pub const fn room(size: u64) -> u64 {
    heap_size(size).saturating_sub(HEAD_SIZE as u64)
}

/// The smallest size of a puddle that has room for so many bytes of code and places.
pub const fn size_for(length: u64) -> u64 {
    let mut size = UNIT;
    while room(size) < length {
        size += UNIT;
    }
    size
}
