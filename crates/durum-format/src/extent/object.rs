//! An extent that was read and checked, and the objects in it.

use super::slab::SLAB_BITMAP_WORDS_MAX;
use super::{ExtentHeader, ExtentKind, SlabHeader};

/// A checked extent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    pub(super) granule: u64,
    pub(super) offset: u64,
    pub(super) header: ExtentHeader,
    pub(super) slab: Option<Slab>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Slab {
    pub(super) header: SlabHeader,
    pub(super) bitmap: [u64; SLAB_BITMAP_WORDS_MAX],
}

impl Extent {
    /// The first granule, counted from the start of the heap.
    pub fn granule(&self) -> u64 {
        self.granule
    }

    /// Where in the puddle the extent begins.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Its header.
    pub fn header(&self) -> &ExtentHeader {
        &self.header
    }

    /// The type of its object or elements.
    pub fn type_id(&self) -> u64 {
        self.header.type_id
    }

    /// Granules that it covers.
    pub fn granules(&self) -> u64 {
        self.header.granules()
    }

    /// The slab header, where it is a slab.
    pub fn slab(&self) -> Option<&SlabHeader> {
        self.slab.as_ref().map(|slab| &slab.header)
    }

    /// The words of the slab's bitmap that are in use; empty for an object.
    pub fn slab_bitmap(&self) -> &[u64] {
        match &self.slab {
            Some(slab) => slab
                .bitmap
                .get(..slab.header.geometry().bitmap_words as usize)
                .unwrap_or_default(),
            None => &[],
        }
    }

    /// Elements of the slab that are allocated; 1 for an object.
    pub fn allocated(&self) -> u64 {
        let ones = |slab: &Slab| {
            slab.bitmap
                .iter()
                .map(|word| u64::from(word.count_ones()))
                .sum()
        };
        self.slab.as_ref().map_or(1, ones)
    }

    /// The objects in it, in the order of their addresses.
    pub fn objects(&self) -> ExtentObjects {
        ExtentObjects {
            extent: *self,
            next: 0,
        }
    }

    pub(super) fn object(&self, element: u64) -> Option<Object> {
        let (is_allocated, size, data_offset) = match (&self.slab, self.header.kind) {
            (Some(slab), _) => {
                let word = *slab.bitmap.get((element / 64) as usize)?;
                let size = slab.header.element_size();
                let data_offset = slab.header.geometry().data_offset + element * size;
                (word >> (element % 64) & 1 == 1, size, data_offset)
            }
            (None, ExtentKind::Object { size, data_offset }) => (element == 0, size, data_offset),
            (None, ExtentKind::Slab { .. }) => return None,
        };
        is_allocated.then(|| Object {
            type_id: self.header.type_id,
            offset: self.offset + data_offset,
            size,
            extent_offset: self.offset,
            element: self.slab.as_ref().map(|_| element),
        })
    }

    /// Objects that it has room for.
    pub(super) fn places(&self) -> u64 {
        self.slab.map_or(1, |slab| slab.header.geometry().capacity)
    }
}

/// An allocated object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Object {
    /// Its type.
    pub type_id: u64,
    /// Where in the puddle its first byte lies.
    pub offset: u64,
    /// Its bytes: as asked for, or the element size in a slab.
    pub size: u64,
    /// Where in the puddle its extent begins.
    pub extent_offset: u64,
    /// Which element of a slab it is, if it is one.
    pub element: Option<u64>,
}

/// The objects of one extent.
#[derive(Clone, Debug)]
pub struct ExtentObjects {
    extent: Extent,
    next: u64,
}

impl Iterator for ExtentObjects {
    type Item = Object;

    #[inline]
    fn next(&mut self) -> Option<Object> {
        let places = self.extent.places();
        while self.next < places {
            let element = self.next;
            // Free elements are passed by the word.
            let rest = match &self.extent.slab {
                Some(slab) => slab.bitmap.get((element / 64) as usize)? >> (element % 64),
                None => 1,
            };
            self.next = match rest {
                0 => (element / 64 + 1) * 64,
                rest => element + u64::from(rest.trailing_zeros()) + 1,
            };
            if rest != 0 {
                return self.extent.object(self.next - 1);
            }
        }
        None
    }
}
