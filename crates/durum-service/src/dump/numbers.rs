//! Which object an address is: objects have numbers in the order in which a dump has them.

use std::collections::BTreeMap;
use std::ops::Range;

use durum_format::dump::To;
use durum_format::extent::{Extent, ExtentKind};
use durum_format::puddle::PuddleHeader;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::rows::Rows;
use crate::error::Result;

/// Numbers of objects, by the extents that they lie in.
#[derive(Default)]
pub(crate) struct Numbers {
    /// By address, in each puddle.
    extents: Rows<Numbered>,
    /// By the addresses at which they begin.
    puddles: BTreeMap<u64, Puddle>,
    /// The elements that slabs have.
    bitmaps: Rows<[u64; 8]>,
    objects: u64,
}

struct Puddle {
    /// How many began before.
    number: usize,
    end: u64,
    /// Which of all extents are its.
    extents: Range<usize>,
}

/// The objects of an extent.
#[derive(Clone, Copy, Default, FromBytes, Immutable, IntoBytes, KnownLayout)]
#[repr(C)]
struct Numbered {
    /// Where the first one begins, or could.
    start: u64,
    /// Bytes of each.
    size: u64,
    /// How many there are before.
    before: u64,
    /// Which of the bitmaps, or none where there is one object.
    bitmap: u32,
    /// What the caller says of them.
    tag: u32,
}

const ALONE: u32 = u32::MAX;

/// An object, or a part of it, that an address leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    /// Its number, from 0.
    pub(crate) index: u64,
    /// How far into it.
    pub(crate) offset: u64,
    /// What was said of it.
    pub(crate) tag: u32,
}

impl Numbers {
    /// None yet, which are kept in files without names in this directory.
    ///
    /// # Errors
    /// `Io`.
    pub(crate) fn in_files(directory: &std::path::Path) -> Result<Numbers> {
        Ok(Numbers {
            extents: Rows::in_file(directory)?,
            bitmaps: Rows::in_file(directory)?,
            ..Numbers::default()
        })
    }

    /// All extents of this puddle come next, in the order of their addresses. Puddles come in any order: objects get
    /// their numbers by it.
    pub(crate) fn begin(&mut self, puddle: &PuddleHeader) {
        let (number, first) = (self.puddles.len(), self.extents.len());
        let (end, extents) = (puddle.end(), first..first);
        let begun = Puddle {
            number,
            end,
            extents,
        };
        self.puddles.insert(puddle.address, begun);
    }

    /// Adds the objects of an extent of the puddle that began last, of which the caller says `tag`.
    ///
    /// # Errors
    /// `StorageFull`, `Io`.
    pub(crate) fn add(&mut self, puddle: &PuddleHeader, extent: &Extent, tag: u32) -> Result<()> {
        let start = puddle.address + extent.offset();
        let numbered = match (extent.slab(), extent.header().kind) {
            (Some(slab), _) => {
                let bitmap = self.bitmaps.len() as u32;
                let mut bits = [0; 8];
                for object in extent.objects() {
                    let element = object.element.unwrap_or(0);
                    if let Some(word) = bits.get_mut((element / 64) as usize) {
                        *word |= 1_u64 << (element % 64);
                    }
                }
                self.bitmaps.push(&bits)?;
                Numbered {
                    start: start + slab.geometry().data_offset,
                    size: slab.element_size(),
                    before: self.objects,
                    bitmap,
                    tag,
                }
            }
            (None, ExtentKind::Object { size, data_offset }) => Numbered {
                start: start + data_offset,
                size,
                before: self.objects,
                bitmap: ALONE,
                tag,
            },
            (None, ExtentKind::Slab { .. }) => return Ok(()),
        };
        self.extents.push(&numbered)?;
        if let Some(puddle) = self.puddles.get_mut(&puddle.address) {
            puddle.extents.end = self.extents.len();
        }
        self.objects += extent.allocated();
        Ok(())
    }

    /// The objects of each extent, in order: the number of the first, from 0, how many there are, and what was said.
    pub(crate) fn groups(&self) -> impl Iterator<Item = (u64, u64, u32)> {
        let extents = (0..self.extents.len()).filter_map(|at| {
            let extent = self.extents.get(at)?;
            let end = self
                .extents
                .get(at + 1)
                .map_or(self.objects, |next| next.before);
            Some((extent.before, end - extent.before, extent.tag))
        });
        extents.filter(|(_, count, _)| *count > 0)
    }

    /// Bytes that are taken by what is known of extents.
    pub(crate) fn bytes(&self) -> u64 {
        self.extents.bytes() + self.bitmaps.bytes()
    }

    pub(crate) fn objects(&self) -> u64 {
        self.objects
    }

    /// What a pointer leads to.
    pub(super) fn find(&self, address: u64) -> To {
        match self.object(address) {
            Some(Found { index, offset, .. }) => To::Object {
                number: index + 1,
                offset,
            },
            None => To::Nowhere,
        }
    }

    /// The same; where no object begins behind one, the address of its end is its, as C lets it be.
    pub(super) fn find_or_end(&self, address: u64) -> To {
        match (self.find(address), self.find(address.wrapping_sub(1))) {
            (To::Nowhere, To::Object { number, offset }) => To::Object {
                number,
                offset: offset + 1,
            },
            (found, _) => found,
        }
    }

    /// Whether an address is one of the puddles'.
    pub(crate) fn has(&self, address: u64) -> bool {
        self.puddle(address).is_some()
    }

    /// The place of the puddle that an address is in, in the order in which they began.
    pub(crate) fn puddle_at(&self, address: u64) -> Option<usize> {
        self.puddle(address).map(|puddle| puddle.number)
    }

    fn puddle(&self, address: u64) -> Option<&Puddle> {
        let (_, puddle) = self.puddles.range(..=address).next_back()?;
        (address < puddle.end).then_some(puddle)
    }

    /// The object that an address leads to, or into.
    pub(crate) fn object(&self, address: u64) -> Option<Found> {
        let puddle = self.puddle(address)?;
        let (first, end) = (puddle.extents.start, puddle.extents.end);
        // The first one behind the address.
        let (mut low, mut high) = (first, end);
        while low < high {
            let middle = low.midpoint(high);
            match self.extents.get(middle)?.start <= address {
                true => low = middle + 1,
                false => high = middle,
            }
        }
        let extent = self
            .extents
            .get(low.checked_sub(1).filter(|at| *at >= first)?)?;
        let inside = address - extent.start;
        if extent.bitmap == ALONE {
            return (inside < extent.size).then_some(Found {
                index: extent.before,
                offset: inside,
                tag: extent.tag,
            });
        }
        let (element, offset) = (inside / extent.size, inside % extent.size);
        let bitmap = self.bitmaps.get(extent.bitmap as usize)?;
        let word = bitmap.get((element / 64) as usize)?;
        let bit = 1_u64 << (element % 64);
        if word & bit == 0 {
            return None;
        }
        let earlier = bitmap.iter().take((element / 64) as usize);
        let earlier: u32 = earlier.map(|word| word.count_ones()).sum();
        let rank = earlier + (word & (bit - 1)).count_ones();
        Some(Found {
            index: extent.before + u64::from(rank),
            offset,
            tag: extent.tag,
        })
    }
}
