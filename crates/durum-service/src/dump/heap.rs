//! Puddles of a pool that is being made, filled from the first granule to the last one: objects lie in the order in
//! which they come.

use durum_format::dump::line::{is_in_slab, usual_align};
use durum_format::extent::slab::{SLAB_ALIGN, SLAB_BITMAP_OFFSET, SLAB_WORD_OFFSET};
use durum_format::extent::{self, ExtentHeader, ExtentKind, OBJECT_SIZE_END, SlabHeader};
use durum_format::puddle::{self, BITMAP_OFFSET};
use durum_format::{GRANULE, UNIT};

/// The largest puddle that is made for objects that would have room in smaller ones.
const PUDDLE_MAX: u64 = 16 << 20;

/// An object that gets a place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted {
    pub(crate) type_id: u64,
    pub(crate) size: u64,
    /// How its type is aligned.
    pub(crate) type_align: u64,
    /// How it is aligned, if it has an extent of its own though its size does not say so.
    pub(crate) align: Option<u64>,
    pub(crate) is_root: bool,
}

/// The puddle that is being filled.
pub(crate) struct Image {
    pub(crate) bytes: Vec<u8>,
    /// The first granule that is free, as are all behind it.
    free: u64,
    slab: Option<OpenSlab>,
}

/// A slab that may have room for more.
struct OpenSlab {
    type_id: u64,
    header: SlabHeader,
    /// Where in the puddle it begins.
    start: u64,
    used: u64,
}

impl Image {
    /// An empty puddle of so many bytes.
    pub(crate) fn new(size: u64, is_root: bool) -> Option<Image> {
        let mut bytes = Vec::new();
        let length = usize::try_from(size).ok()?;
        bytes.try_reserve_exact(length).ok()?;
        bytes.resize(length, 0);
        Some(Image {
            bytes,
            // The first granule of the root puddle is the root object's.
            free: u64::from(is_root),
            slab: None,
        })
    }

    fn size(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// A place for an object: where in the puddle it begins; `None` where there is no room.
    pub(crate) fn place(&mut self, wanted: &Wanted) -> Option<u64> {
        match wanted.align {
            None if is_in_slab(wanted.size) && !wanted.is_root => self.element(wanted),
            align => self.extent(wanted, align.unwrap_or(usual_align(wanted.type_align))),
        }
    }

    fn element(&mut self, wanted: &Wanted) -> Option<u64> {
        let fits = |slab: &OpenSlab| {
            slab.type_id == wanted.type_id
                && slab.header.element_size() == wanted.size
                && slab.used < slab.header.geometry().capacity
        };
        if !self.slab.as_ref().is_some_and(fits) {
            let header = SlabHeader::new(wanted.size)?;
            let extent_size = header.geometry().extent_size;
            let kind = ExtentKind::Slab { extent_size };
            let start = self.begin(wanted.type_id, kind, SLAB_ALIGN)?;
            self.put(start + SLAB_WORD_OFFSET, header.encode());
            self.slab = Some(OpenSlab {
                type_id: wanted.type_id,
                header,
                start,
                used: 0,
            });
        }
        let slab = self.slab.as_mut()?;
        let (element, start, header) = (slab.used, slab.start, slab.header);
        slab.used += 1;
        self.set_bit(start + SLAB_BITMAP_OFFSET, element);
        Some(start + header.geometry().data_offset + element * header.element_size())
    }

    fn extent(&mut self, wanted: &Wanted, data_offset: u64) -> Option<u64> {
        if wanted.is_root {
            self.free = 0;
        }
        let kind = ExtentKind::Object {
            size: wanted.size,
            data_offset,
        };
        let start = self.begin(wanted.type_id, kind, data_offset)?;
        Some(start + data_offset)
    }

    /// Begins an extent at a multiple of `align` behind all others.
    fn begin(&mut self, type_id: u64, kind: ExtentKind, align: u64) -> Option<u64> {
        let heap = puddle::heap_offset(self.size());
        let header = ExtentHeader { type_id, kind };
        // Puddles begin at multiples of 2 MiB.
        let start = (heap + self.free * GRANULE).next_multiple_of(align.max(GRANULE));
        let granule = (start - heap) / GRANULE;
        let end = granule.checked_add(header.granules())?;
        if end > puddle::granules(self.size()) {
            return None;
        }
        let [first, second] = extent::encode(&header);
        self.put(start, first);
        self.put(start + 8, second);
        self.set_bit(BITMAP_OFFSET, granule);
        self.free = end;
        self.slab = None;
        Some(start)
    }

    fn put(&mut self, at: u64, word: u64) {
        let place = self.bytes.get_mut(at as usize..at as usize + 8);
        if let Some(place) = place {
            place.copy_from_slice(&word.to_le_bytes());
        }
    }

    fn set_bit(&mut self, bitmap: u64, bit: u64) {
        if let Some(byte) = self.bytes.get_mut((bitmap + bit / 8) as usize) {
            *byte |= 1 << (bit % 8);
        }
    }
}

/// Bytes of the next puddle, for a pool of so many bytes, such that this object has room; `None` for one that no puddle
/// has room for.
pub(crate) fn next_size(pool: u64, wanted: &Wanted) -> Option<u64> {
    let align = wanted.align.unwrap_or(usual_align(wanted.type_align));
    if wanted.size >= OBJECT_SIZE_END || align > UNIT || !align.is_power_of_two() {
        return None;
    }
    // Wherever the heap begins, an extent that is aligned begins before so many bytes of it are over.
    let needed = wanted.size + 2 * align.max(SLAB_ALIGN) + GRANULE;
    let mut size = pool.clamp(UNIT, PUDDLE_MAX) / UNIT * UNIT;
    while puddle::heap_size(size) < needed {
        size += UNIT.max((needed - puddle::heap_size(size)) / UNIT * UNIT);
    }
    Some(size)
}
