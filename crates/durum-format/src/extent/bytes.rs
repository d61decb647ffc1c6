//! Where the bytes of a heap come from, and what can be wrong with them.

use super::slab::SLAB_ALIGN;
use crate::error::FormatError;

/// Where the bytes of a puddle come from: a slice, a file, a mapping read inside a guarded section.
pub trait HeapBytes {
    /// Why bytes could not be read.
    type Error;

    /// Fills `buf` with the bytes at `offset`, counted from the first byte of the puddle.
    ///
    /// # Errors
    /// Whatever reading can fail with; the walk hands it on and does not interpret it.
    fn read(&self, offset: u64, buf: &mut [u8]) -> Result<(), Self::Error>;

    /// Whether a small read costs as much as one of some kilobytes, as from a file: then a walk reads at once what lies
    /// close together.
    fn is_slow(&self) -> bool {
        false
    }
}

/// A read past the end of a slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("bytes {offset}..{} are beyond the {len} bytes at hand", offset.saturating_add(*needed))]
pub struct OutOfBounds {
    /// First byte asked for.
    pub offset: u64,
    /// Bytes asked for.
    pub needed: u64,
    /// Bytes there are.
    pub len: u64,
}

impl HeapBytes for [u8] {
    type Error = OutOfBounds;

    fn read(&self, offset: u64, buf: &mut [u8]) -> Result<(), OutOfBounds> {
        let found = usize::try_from(offset)
            .ok()
            .and_then(|from| self.get(from..)?.get(..buf.len()));
        match found {
            Some(bytes) => {
                buf.copy_from_slice(bytes);
                Ok(())
            }
            None => Err(OutOfBounds {
                offset,
                needed: buf.len() as u64,
                len: self.len() as u64,
            }),
        }
    }
}

impl<T: HeapBytes + ?Sized> HeapBytes for &T {
    type Error = T::Error;

    fn read(&self, offset: u64, buf: &mut [u8]) -> Result<(), T::Error> {
        (**self).read(offset, buf)
    }

    fn is_slow(&self) -> bool {
        (**self).is_slow()
    }
}

/// Why a walk could not go past a place.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HeapError<E> {
    /// The bytes could not be read.
    #[error("the heap cannot be read: {0}")]
    Read(#[source] E),
    /// The extent at this offset in the puddle is damaged; the error's own offset counts from there.
    #[error("extent at offset {offset:#x}: {error}")]
    Extent {
        /// Where in the puddle the extent begins.
        offset: u64,
        /// What is wrong with it.
        #[source]
        error: FormatError,
    },
    /// The extent reaches into the next one.
    #[error("extent at offset {offset:#x} ends at {end:#x}, but the next one begins at {next:#x}")]
    Overlap {
        /// Where in the puddle the extent begins.
        offset: u64,
        /// Where in the puddle it ends.
        end: u64,
        /// Where in the puddle the next one begins.
        next: u64,
    },
    /// The extent reaches past the end of the puddle.
    #[error("extent at offset {offset:#x} ends at {end:#x}, but the puddle has {size:#x} bytes")]
    PastEnd {
        /// Where in the puddle the extent begins.
        offset: u64,
        /// Where in the puddle it ends.
        end: u64,
        /// Bytes of the puddle.
        size: u64,
    },
    /// A slab that does not start at a multiple of 4 KiB.
    #[error("slab at offset {offset:#x}: slabs begin at multiples of {SLAB_ALIGN:#x}")]
    SlabAlignment {
        /// Where in the puddle the slab begins.
        offset: u64,
    },
    /// A slab in the place that belongs to the root object.
    #[error("slab at offset {offset:#x}, the place of the pool's root object")]
    SlabAtRoot {
        /// Where in the puddle the slab begins.
        offset: u64,
    },
    /// A slab marks elements that it does not have.
    #[error(
        "slab at offset {offset:#x}: bit {element} of its bitmap is set, beyond its last element"
    )]
    SlabBits {
        /// Where in the puddle the slab begins.
        offset: u64,
        /// The first such element.
        element: u64,
    },
    /// Bits of the extent bitmap behind the last granule are set.
    #[error("extent bitmap: the word at offset {offset:#x} has bits behind the last granule")]
    BitmapTail {
        /// Where in the puddle the word with such bits lies.
        offset: u64,
    },
    /// The puddle is not one with a heap.
    #[error("the puddle holds a log or a log space and has no extents")]
    NotData,
}
