//! Extents, the upper level of the heap: `docs/format/heap.md`.
//!
//! [`parse`] and [`slab`] know single structures, [`walk`] goes over a whole puddle, [`locate`] finds what an address
//! points to.

mod bytes;
mod locate;
mod object;
pub mod slab;
pub mod walk;

pub use bytes::{HeapBytes, HeapError, OutOfBounds};
pub use locate::{Location, Place, locate, used_end};
pub use object::{Extent, ExtentObjects, Object};
pub use slab::{SlabGeometry, SlabHeader, element_size, slab_geometry};
pub use walk::{Extents, Objects, extents, objects};

use crate::consts::{GRANULE, UNIT};
use crate::error::FormatError;

/// Bytes of the header at the start of each extent.
pub const EXTENT_HEADER_SIZE: u64 = 16;
/// The type id of bytes without a type.
pub const UNTYPED: u64 = 0;
/// Object sizes stay below this.
pub const OBJECT_SIZE_END: u64 = 1 << 48;

const STRUCTURE: &str = "extent header";
// Never renumber: the numbers are on the media.
const KIND_OBJECT: u64 = 1;
const KIND_SLAB: u64 = 2;
const DATA_SHIFT_MIN: u64 = 4;
const DATA_SHIFT_MAX: u64 = 21;

const _: () = assert!(1 << DATA_SHIFT_MIN == EXTENT_HEADER_SIZE && 1 << DATA_SHIFT_MAX == UNIT);

/// What an extent holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExtentKind {
    /// One object.
    Object {
        /// Bytes of the object, as asked for.
        size: u64,
        /// Where in the extent the object begins: a power of two from 16 to 2 MiB.
        data_offset: u64,
    },
    /// Small objects of one type and size.
    Slab {
        /// Bytes of the whole extent.
        extent_size: u64,
    },
}

/// The first 16 bytes of an extent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExtentHeader {
    /// The type of the object, or of each element of the slab; [`UNTYPED`] for plain bytes.
    pub type_id: u64,
    /// What the extent holds.
    pub kind: ExtentKind,
}

impl ExtentHeader {
    /// Granules that the extent covers, its header included.
    pub fn granules(&self) -> u64 {
        self.bytes_used().div_ceil(GRANULE)
    }

    /// Bytes from the extent's start to the end of what it holds.
    pub fn bytes_used(&self) -> u64 {
        match self.kind {
            ExtentKind::Object { size, data_offset } => data_offset.saturating_add(size),
            ExtentKind::Slab { extent_size } => extent_size,
        }
    }
}

/// The two words of an extent header. Values that [`parse`] would refuse are written as they are, cut to their
/// fields.
pub fn encode(header: &ExtentHeader) -> [u64; 2] {
    let word = match header.kind {
        ExtentKind::Object { size, data_offset } => {
            size & (OBJECT_SIZE_END - 1)
                | KIND_OBJECT << 48
                | u64::from(data_offset.trailing_zeros()) << 56
        }
        ExtentKind::Slab { extent_size } => extent_size & (OBJECT_SIZE_END - 1) | KIND_SLAB << 48,
    };
    [header.type_id, word]
}

/// Reads the two words of an extent header.
///
/// # Errors
/// [`FormatError::Field`] with an offset within the extent.
pub fn parse(words: [u64; 2]) -> Result<ExtentHeader, FormatError> {
    let field = |field, offset, found: u64, expected: &'static str| {
        FormatError::field(STRUCTURE, field, offset, found, expected)
    };
    let [type_id, word] = words;
    let size = word & (OBJECT_SIZE_END - 1);
    let shift = word >> 56;
    let kind = match word >> 48 & 0xff {
        KIND_OBJECT => {
            if size == 0 {
                return Err(field("size", 8, size, "at least 1 byte"));
            }
            if !(DATA_SHIFT_MIN..=DATA_SHIFT_MAX).contains(&shift) {
                return Err(field("data offset (log2)", 15, shift, "4 to 21"));
            }
            let data_offset = 1 << shift;
            ExtentKind::Object { size, data_offset }
        }
        KIND_SLAB => {
            if size != slab::SMALL_EXTENT && size != slab::LARGE_EXTENT {
                let expected = "0x1000 or 0x4000, the sizes of slabs";
                return Err(field("size", 8, size, expected));
            }
            if shift != 0 {
                return Err(field("data offset (log2)", 15, shift, "0 in a slab"));
            }
            ExtentKind::Slab { extent_size: size }
        }
        kind => return Err(field("kind", 14, kind, "1 (object) or 2 (slab)")),
    };
    Ok(ExtentHeader { type_id, kind })
}

/// Where the data begins, and how many granules are taken, when an object of `size` bytes aligned to `align` gets an
/// extent whose start is itself a multiple of `align`. Zero-sized objects take one byte.
///
/// `None` where `align` is not a power of two up to 2 MiB, or `size` is 2^48 or more.
pub const fn object_extent(size: u64, align: u64) -> Option<(u64, u64)> {
    if !align.is_power_of_two() || align > UNIT || size >= OBJECT_SIZE_END {
        return None;
    }
    let data_offset = if align < EXTENT_HEADER_SIZE {
        EXTENT_HEADER_SIZE
    } else {
        align
    };
    let size = if size == 0 { 1 } else { size };
    Some((data_offset, (data_offset + size).div_ceil(GRANULE)))
}
