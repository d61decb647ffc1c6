//! What lies at an address.

use super::object::{Extent, Object};
use super::walk::{WINDOW, read_extent, words_of};
use super::{EXTENT_HEADER_SIZE, ExtentKind, HeapBytes, HeapError};
use crate::consts::GRANULE;
use crate::puddle::{self, BITMAP_OFFSET, PuddleHeader};

/// What lies at an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Location {
    /// The extent that contains the address.
    pub extent: Extent,
    /// Where in the extent the address points.
    pub place: Place,
}

/// Where in an extent an address points.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Into a header, a slab's bitmap, or the gap in front of the data.
    Header,
    /// Into an allocated object.
    Object {
        /// The object.
        object: Object,
        /// Bytes from its start.
        offset: u64,
    },
    /// Into an element of a slab that is free.
    FreeElement {
        /// Which element.
        element: u64,
    },
    /// Behind the last byte that the extent uses.
    Tail,
}

/// The extent, and the object in it, that contains `address`; `None` where the address is in no extent of this
/// puddle. Looks backwards in the bitmap, so it costs what the extent is long: 16 reads per MiB at most.
///
/// # Errors
/// As the items of [`extents`](super::extents), for the one extent concerned.
pub fn locate<B: HeapBytes + ?Sized>(
    bytes: &B,
    header: &PuddleHeader,
    address: u64,
) -> Result<Option<Location>, HeapError<B::Error>> {
    if header.validate().is_err() || !header.kind.holds_objects() {
        return Err(HeapError::NotData);
    }
    if address < header.heap_address() || address >= header.end() {
        return Ok(None);
    }
    let offset = address - header.address;
    let granule = (address - header.heap_address()) / GRANULE;
    let Some(start) = last_bit_until(bytes, granule)? else {
        return Ok(None);
    };
    let extent = read_extent(bytes, header, start)?;
    if granule >= start + extent.granules() {
        return Ok(None);
    }
    let inside = offset - extent.offset;
    let (data_offset, element_size) = match (extent.slab(), extent.header.kind) {
        (Some(slab), _) => (slab.geometry().data_offset, slab.element_size()),
        (None, ExtentKind::Object { data_offset, size }) => (data_offset, size),
        (None, ExtentKind::Slab { .. }) => (EXTENT_HEADER_SIZE, 1),
    };
    let place = match inside.checked_sub(data_offset) {
        None => Place::Header,
        Some(in_data) => {
            let element = in_data / element_size.max(1);
            match extent.object(element) {
                Some(object) => Place::Object {
                    object,
                    offset: in_data % element_size.max(1),
                },
                None if element < extent.places() => Place::FreeElement { element },
                None => Place::Tail,
            }
        }
    };
    Ok(Some(Location { extent, place }))
}

/// Where in the puddle the last extent ends; where the heap begins, if there is none. Costs what the unused part is
/// long: 16 reads per MiB at most.
///
/// # Errors
/// As for [`locate`].
pub fn used_end<B: HeapBytes + ?Sized>(
    bytes: &B,
    header: &PuddleHeader,
) -> Result<u64, HeapError<B::Error>> {
    if header.validate().is_err() || !header.kind.holds_objects() {
        return Err(HeapError::NotData);
    }
    Ok(
        match last_bit_until(bytes, puddle::granules(header.size) - 1)? {
            Some(granule) => {
                let extent = read_extent(bytes, header, granule)?;
                extent.offset() + extent.granules() * GRANULE
            }
            None => puddle::heap_offset(header.size),
        },
    )
}

/// The last set bit of the extent bitmap at or before `granule`.
fn last_bit_until<B: HeapBytes + ?Sized>(
    bytes: &B,
    granule: u64,
) -> Result<Option<u64>, HeapError<B::Error>> {
    let mut word_end = granule / 64 + 1;
    let mut mask = u64::MAX >> (63 - granule % 64);
    while word_end > 0 {
        let count = word_end.min(WINDOW as u64);
        let base = word_end - count;
        let mut buffer = [0; WINDOW * 8];
        let len = (count * 8) as usize;
        bytes
            .read(BITMAP_OFFSET + base * 8, &mut buffer[..len])
            .map_err(HeapError::Read)?;
        let words: [u64; WINDOW] = words_of(&buffer);
        for index in (0..count).rev() {
            let word = words[index as usize] & mask;
            mask = u64::MAX;
            if word != 0 {
                return Ok(Some(
                    (base + index) * 64 + 63 - u64::from(word.leading_zeros()),
                ));
            }
        }
        word_end = base;
    }
    Ok(None)
}
