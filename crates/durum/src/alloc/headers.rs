//! Headers of extents, which are written before the bits that publish them.

use durum_format::GRANULE;
use durum_format::extent::{self, ExtentHeader, ExtentKind, SlabHeader};
use durum_persist::Site;
use durum_persist::line::{self, LINE, prefetch_to_write};

use super::puddle::Puddle;
use super::slab::Slab;
use crate::announced::{Announced, FRESH_LARGE};
use crate::before_images::before_store;
use crate::error::{Error, Result};

/// A step that a test leaves out.
const KEEP: Site = Site("snapshot: keep the place of an object that is made in place");

/// Alignments up to this one can be asked for.
pub(crate) const ALIGN_MAX: usize = 64 << 10;

/// The object that is allocated so many times later is fetched: its place is rarely in the cache, and its header is
/// written at once.
const OBJECTS_AHEAD: usize = 4;

/// The extent of the object that an allocation of `size` bytes aligned to `align` needs.
pub(super) fn object_extent(size: usize, align: usize) -> Result<(usize, usize)> {
    let refused = || Error::ObjectSize {
        size,
        align,
        size_max: (1 << 40) - 1,
        align_max: ALIGN_MAX,
    };
    if !align.is_power_of_two() || align > ALIGN_MAX || size >= 1 << 40 {
        return Err(refused());
    }
    let (data_offset, granules) =
        extent::object_extent(size as u64, align as u64).ok_or_else(refused)?;
    Ok((data_offset as usize, granules as usize))
}

/// Writes the header of a slab that is not published yet; its bitmap follows with the commit that publishes it.
pub(super) fn write_slab_header(puddle: &Puddle, slab: &Slab) {
    let words = extent::encode(&ExtentHeader {
        type_id: slab.class.type_id,
        kind: ExtentKind::Slab {
            extent_size: slab.geometry.extent_size,
        },
    });
    let Some(header) = SlabHeader::new(slab.class.element_size) else {
        return;
    };
    let words = [words[0], words[1], header.encode()];
    before_store(puddle, slab.address, size_of_val(&words), KEEP);
    let target = puddle.at(slab.address - puddle.address);
    // SAFETY: the extent was reserved, so nobody else touches its bytes; 24 bytes fit into every slab.
    unsafe { line::copy(target.as_ptr(), words.as_ptr().cast(), size_of_val(&words)) };
}

/// Writes the header of an object extent; where that begins.
pub(super) fn write_object_header(
    puddle: &Puddle,
    position: usize,
    type_id: u64,
    size: usize,
    data_offset: usize,
) -> usize {
    let kind = ExtentKind::Object {
        size: size.max(1) as u64,
        data_offset: data_offset as u64,
    };
    let words = extent::encode(&ExtentHeader { type_id, kind });
    let start = puddle.address + position * GRANULE as usize;
    // Mostly the next ones are as large and lie behind.
    prefetch_to_write(
        start + (data_offset + size).next_multiple_of(GRANULE as usize) * OBJECTS_AHEAD,
    );
    // The contents, too, which are announced to nobody.
    before_store(puddle, start, data_offset + size, KEEP);
    // SAFETY: the extent was reserved by the caller, so nobody else touches its bytes.
    unsafe {
        line::copy(
            puddle.at(start - puddle.address).as_ptr(),
            words.as_ptr().cast(),
            16,
        );
    }
    start
}

/// The same, and announces header and object; the object's address.
pub(super) fn announce_object(
    puddle: &Puddle,
    position: usize,
    announced: &mut Announced,
    type_id: u64,
    size: usize,
    data_offset: usize,
) -> usize {
    let start = write_object_header(puddle, position, type_id, size, data_offset);
    // To the end of a line, which is the extent's too.
    let end = (data_offset + size.max(1)).next_multiple_of(LINE);
    let is_small = end < FRESH_LARGE && puddle.home_offset() > 0;
    if data_offset == 16 && is_small && announced.has_many_objects() {
        // In a transaction that makes many objects others lie beside it.
        announced.insert_neighbour(start, end);
    } else if data_offset == 16 {
        announced.insert_fresh(start, end);
    } else {
        announced.insert(start, 16);
        announced.insert_fresh(start + data_offset, end - data_offset);
    }
    start + data_offset
}
