//! Slabs: extents that hold small objects of one type and size. `docs/format/heap.md`.

use crate::consts::SLAB_OBJECT_MAX;
use crate::error::FormatError;

/// Bytes of an extent with elements of up to 64 bytes.
pub const SMALL_EXTENT: u64 = 4 << 10;
/// Bytes of an extent with larger elements.
pub const LARGE_EXTENT: u64 = 16 << 10;
/// Slab extents start at addresses that are multiples of this.
pub const SLAB_ALIGN: u64 = 4 << 10;
/// Where in the extent the word with element size, capacity and data offset lies.
pub const SLAB_WORD_OFFSET: u64 = 16;
/// Where in the extent the bitmap of its elements begins.
pub const SLAB_BITMAP_OFFSET: u64 = 24;
/// The most 64-bit words that a slab's bitmap has.
pub const SLAB_BITMAP_WORDS_MAX: usize = 8;

const STRUCTURE: &str = "slab header";

/// How a slab of a given element size is divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlabGeometry {
    /// Bytes of the whole extent.
    pub extent_size: u64,
    /// Number of elements.
    pub capacity: u64,
    /// Where in the extent element 0 begins.
    pub data_offset: u64,
    /// 64-bit words of the bitmap; bits from `capacity` on are zero.
    pub bitmap_words: u64,
}

/// The checked header of a slab.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlabHeader {
    element_size: u64,
    geometry: SlabGeometry,
}

/// Bytes that an object of `size` bytes takes in a slab, `None` where it is too large for one. Zero-sized objects take
/// a place like others, so that each has an address of its own.
pub const fn element_size(size: u64) -> Option<u64> {
    if size > SLAB_OBJECT_MAX {
        return None;
    }
    Some(if size == 0 {
        8
    } else {
        size.next_multiple_of(8)
    })
}

/// How a slab with elements of `element_size` bytes is divided. Sizes are first rounded as [`element_size()`] does;
/// larger ones give the geometry of [`SLAB_OBJECT_MAX`].
pub const fn slab_geometry(element_size_asked: u64) -> SlabGeometry {
    let size = match element_size(element_size_asked) {
        Some(size) => size,
        None => SLAB_OBJECT_MAX,
    };
    let extent_size = if size <= 64 {
        SMALL_EXTENT
    } else {
        LARGE_EXTENT
    };
    let mut capacity = (extent_size - SLAB_BITMAP_OFFSET) / size;
    while data_offset(capacity, size) + capacity * size > extent_size {
        capacity -= 1;
    }
    SlabGeometry {
        extent_size,
        capacity,
        data_offset: data_offset(capacity, size),
        bitmap_words: capacity.div_ceil(64),
    }
}

/// Where elements begin when there are `capacity` of them: behind the bitmap, aligned to the largest power of two that
/// divides their size, which then holds for each of them.
const fn data_offset(capacity: u64, size: u64) -> u64 {
    let align = 1 << size.trailing_zeros();
    (SLAB_BITMAP_OFFSET + 8 * capacity.div_ceil(64)).next_multiple_of(align)
}

const _: () = {
    let mut size = 8;
    while size <= SLAB_OBJECT_MAX {
        let slab = slab_geometry(size);
        assert!(slab.capacity > 0 && slab.bitmap_words <= SLAB_BITMAP_WORDS_MAX as u64);
        size += 8;
    }
};

impl SlabHeader {
    /// The header of a slab for objects of `size` bytes, `None` where they are too large for one.
    pub const fn new(size: u64) -> Option<Self> {
        match element_size(size) {
            Some(element_size) => Some(Self {
                element_size,
                geometry: slab_geometry(element_size),
            }),
            None => None,
        }
    }

    /// Bytes of each element: a multiple of 8 from 8 to 256.
    pub const fn element_size(&self) -> u64 {
        self.element_size
    }

    /// How the slab is divided.
    pub const fn geometry(&self) -> SlabGeometry {
        self.geometry
    }

    /// The word at [`SLAB_WORD_OFFSET`].
    pub const fn encode(&self) -> u64 {
        self.element_size | self.geometry.capacity << 16 | self.geometry.data_offset << 32
    }

    /// Reads the word at [`SLAB_WORD_OFFSET`] of an extent of `extent_size` bytes.
    ///
    /// # Errors
    /// [`FormatError::Field`] where any of its fields is not what the element size demands.
    pub fn parse(word: u64, extent_size: u64) -> Result<Self, FormatError> {
        let field = |field, offset, found: u64, expected: String| {
            FormatError::field(STRUCTURE, field, offset, found, expected)
        };
        let size = word & 0xffff;
        if size == 0 || size > SLAB_OBJECT_MAX || !size.is_multiple_of(8) {
            let expected = "a multiple of 8 from 8 to 256".into();
            return Err(field("element size", 16, size, expected));
        }
        let geometry = slab_geometry(size);
        if geometry.extent_size != extent_size {
            let expected = format!("elements that belong in an extent of {extent_size:#x} bytes");
            return Err(field("element size", 16, size, expected));
        }
        let [capacity, offset, zero] = [word >> 16 & 0xffff, word >> 32 & 0xffff, word >> 48];
        if capacity != geometry.capacity {
            let expected = geometry.capacity.to_string();
            return Err(field("capacity", 18, capacity, expected));
        }
        if offset != geometry.data_offset {
            let expected = geometry.data_offset.to_string();
            return Err(field("data offset", 20, offset, expected));
        }
        if zero != 0 {
            return Err(FormatError::Reserved {
                structure: STRUCTURE,
                offset: 22,
            });
        }
        Ok(Self {
            element_size: size,
            geometry,
        })
    }
}
