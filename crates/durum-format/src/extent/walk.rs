//! Going over the heap of a puddle: every extent in order, every object, or the one at an address.
//!
//! Nothing is read before it is needed and nothing is kept: a walk costs one read of bitmap per 4,096 granules, one of
//! 24 bytes per extent, and one of at most 64 bytes per slab.

use std::fmt;

use super::slab::{SLAB_ALIGN, SLAB_BITMAP_OFFSET, SLAB_BITMAP_WORDS_MAX};
use super::{EXTENT_HEADER_SIZE, ExtentHeader, ExtentKind, SlabHeader, parse};
use crate::consts::GRANULE;
use crate::error::FormatError;
use crate::puddle::{self, BITMAP_OFFSET, PuddleHeader, PuddleKind};

/// Where the bytes of a puddle come from: a slice, a file, a mapping read inside a guarded section.
pub trait HeapBytes {
    /// Why bytes could not be read.
    type Error;

    /// Fills `buf` with the bytes at `offset`, counted from the first byte of the puddle.
    ///
    /// # Errors
    /// Whatever reading can fail with; the walk hands it on and does not interpret it.
    fn read(&self, offset: u64, buf: &mut [u8]) -> Result<(), Self::Error>;
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
}

/// Why a walk could not go past a place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HeapError<E> {
    /// The bytes could not be read.
    Read(E),
    /// The extent at this offset in the puddle is damaged; the error's own offset counts from there.
    Extent {
        /// Where in the puddle the extent begins.
        offset: u64,
        /// What is wrong with it.
        error: FormatError,
    },
    /// The extent reaches into the next one.
    Overlap {
        /// Where in the puddle the extent begins.
        offset: u64,
        /// Where in the puddle it ends.
        end: u64,
        /// Where in the puddle the next one begins.
        next: u64,
    },
    /// The extent reaches past the end of the puddle.
    PastEnd {
        /// Where in the puddle the extent begins.
        offset: u64,
        /// Where in the puddle it ends.
        end: u64,
        /// Bytes of the puddle.
        size: u64,
    },
    /// A slab that does not start at a multiple of 4 KiB.
    SlabAlignment {
        /// Where in the puddle the slab begins.
        offset: u64,
    },
    /// A slab in the place that belongs to the root object.
    SlabAtRoot {
        /// Where in the puddle the slab begins.
        offset: u64,
    },
    /// A slab marks elements that it does not have.
    SlabBits {
        /// Where in the puddle the slab begins.
        offset: u64,
        /// The first such element.
        element: u64,
    },
    /// Bits of the extent bitmap behind the last granule are set.
    BitmapTail {
        /// Where in the puddle the word with such bits lies.
        offset: u64,
    },
    /// The puddle is not one with a heap.
    NotData,
}

impl<E: fmt::Display> fmt::Display for HeapError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read(error) => write!(f, "the heap cannot be read: {error}"),
            Self::Extent { offset, error } => write!(f, "extent at offset {offset:#x}: {error}"),
            Self::Overlap { offset, end, next } => {
                write!(
                    f,
                    "extent at offset {offset:#x} ends at {end:#x}, but the next one begins at {next:#x}"
                )
            }
            Self::PastEnd { offset, end, size } => {
                write!(
                    f,
                    "extent at offset {offset:#x} ends at {end:#x}, but the puddle has {size:#x} bytes"
                )
            }
            Self::SlabAlignment { offset } => {
                write!(
                    f,
                    "slab at offset {offset:#x}: slabs begin at multiples of {SLAB_ALIGN:#x}"
                )
            }
            Self::SlabAtRoot { offset } => {
                write!(
                    f,
                    "slab at offset {offset:#x}, the place of the pool's root object"
                )
            }
            Self::SlabBits { offset, element } => {
                write!(
                    f,
                    "slab at offset {offset:#x}: bit {element} of its bitmap is set, beyond its last element"
                )
            }
            Self::BitmapTail { offset } => {
                write!(
                    f,
                    "extent bitmap: the word at offset {offset:#x} has bits behind the last granule"
                )
            }
            Self::NotData => {
                f.write_str("the puddle holds a log or a log space and has no extents")
            }
        }
    }
}

impl<E: std::error::Error + 'static> std::error::Error for HeapError<E> {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Read(error) => Some(error),
            Self::Extent { error, .. } => Some(error),
            _ => None,
        }
    }
}

/// A checked extent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    granule: u64,
    offset: u64,
    header: ExtentHeader,
    slab: Option<Slab>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Slab {
    header: SlabHeader,
    bitmap: [u64; SLAB_BITMAP_WORDS_MAX],
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
        match &self.slab {
            Some(slab) => slab
                .bitmap
                .iter()
                .map(|word| u64::from(word.count_ones()))
                .sum(),
            None => 1,
        }
    }

    /// The objects in it, in the order of their addresses.
    pub fn objects(&self) -> ExtentObjects {
        ExtentObjects {
            extent: *self,
            next: 0,
        }
    }

    fn object(&self, element: u64) -> Option<Object> {
        match (&self.slab, self.header.kind) {
            (Some(slab), _) => {
                let allocated =
                    *slab.bitmap.get((element / 64) as usize)? >> (element % 64) & 1 == 1;
                let size = slab.header.element_size();
                allocated.then(|| Object {
                    type_id: self.header.type_id,
                    offset: self.offset + slab.header.geometry().data_offset + element * size,
                    size,
                    extent_offset: self.offset,
                    element: Some(element),
                })
            }
            (None, ExtentKind::Object { size, data_offset }) => (element == 0).then_some(Object {
                type_id: self.header.type_id,
                offset: self.offset + data_offset,
                size,
                extent_offset: self.offset,
                element: None,
            }),
            (None, ExtentKind::Slab { .. }) => None,
        }
    }

    fn places(&self) -> u64 {
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

    fn next(&mut self) -> Option<Object> {
        while self.next < self.extent.places() {
            let element = self.next;
            self.next += 1;
            if let Some(object) = self.extent.object(element) {
                return Some(object);
            }
        }
        None
    }
}

/// Bitmap words read at a time.
const WINDOW: usize = 64;

/// The extents of a puddle in the order of their addresses; see [`extents`].
pub struct Extents<'a, B: HeapBytes + ?Sized> {
    bytes: &'a B,
    header: PuddleHeader,
    window: [u64; WINDOW],
    /// Index of the first word in `window`; the window is filled when `window_valid`.
    window_base: u64,
    window_valid: bool,
    /// The granule at which the search for the next set bit begins.
    from: u64,
    /// A set bit already found.
    found: Option<u64>,
    done: bool,
}

/// The extents of the data puddle with this `header`, in order. Each is checked: its header, a slab's header and
/// bitmap, that it lies in the puddle and does not reach into the next. A damaged extent is an `Err` item, and the
/// walk goes on behind it, so that a check can report all; a failed read of the bitmap ends the walk.
pub fn extents<'a, B: HeapBytes + ?Sized>(bytes: &'a B, header: &PuddleHeader) -> Extents<'a, B> {
    Extents {
        bytes,
        header: *header,
        window: [0; WINDOW],
        window_base: 0,
        window_valid: false,
        from: 0,
        found: None,
        done: false,
    }
}

impl<B: HeapBytes + ?Sized> Extents<'_, B> {
    fn word(&mut self, index: u64) -> Result<u64, HeapError<B::Error>> {
        let base = index - index % WINDOW as u64;
        if !self.window_valid || base != self.window_base {
            self.window_valid = false;
            let words = puddle::bitmap_words(self.header.size)
                .saturating_sub(base)
                .min(WINDOW as u64) as usize;
            let mut buffer = [0; WINDOW * 8];
            self.bytes
                .read(BITMAP_OFFSET + base * 8, &mut buffer[..words * 8])
                .map_err(HeapError::Read)?;
            self.window = words_of(&buffer);
            self.window_base = base;
            self.window_valid = true;
        }
        Ok(self.window[(index - base) as usize])
    }

    /// The first set bit at or behind `from`.
    fn next_bit(&mut self) -> Result<Option<u64>, HeapError<B::Error>> {
        let granules = puddle::granules(self.header.size);
        while self.from < granules {
            let index = self.from / 64;
            let word = self.word(index)?;
            let valid = granules - index * 64;
            if valid < 64 && word >> valid != 0 {
                self.from = granules;
                return Err(HeapError::BitmapTail {
                    offset: BITMAP_OFFSET + index * 8,
                });
            }
            let rest = word >> (self.from % 64);
            if rest != 0 {
                let bit = self.from + u64::from(rest.trailing_zeros());
                self.from = bit + 1;
                return Ok(Some(bit));
            }
            self.from = (index + 1) * 64;
        }
        Ok(None)
    }
}

impl<B: HeapBytes + ?Sized> Iterator for Extents<'_, B> {
    type Item = Result<Extent, HeapError<B::Error>>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.done {
            return None;
        }
        if self.header.validate().is_err() || self.header.kind != PuddleKind::Data {
            self.done = true;
            return Some(Err(HeapError::NotData));
        }
        let bit = match self.found.take() {
            Some(bit) => Some(bit),
            None => match self.next_bit() {
                Ok(bit) => bit,
                Err(error) => {
                    self.done = true;
                    return Some(Err(error));
                }
            },
        };
        let Some(granule) = bit else {
            self.done = true;
            return None;
        };
        let extent = read_extent(self.bytes, &self.header, granule);
        let next = match self.next_bit() {
            Ok(next) => next,
            Err(error) => {
                self.done = true;
                return Some(Err(error));
            }
        };
        self.found = next;
        Some(extent.and_then(|extent| match next {
            Some(next) if granule + extent.granules() > next => Err(HeapError::Overlap {
                offset: extent.offset,
                end: extent.offset + extent.granules() * GRANULE,
                next: puddle::heap_offset(self.header.size) + next * GRANULE,
            }),
            _ => Ok(extent),
        }))
    }
}

fn words_of<const WORDS: usize>(bytes: &[u8]) -> [u64; WORDS] {
    let mut words = [0; WORDS];
    for (word, bytes) in words.iter_mut().zip(bytes.as_chunks::<8>().0) {
        *word = u64::from_le_bytes(*bytes);
    }
    words
}

/// Reads and checks the extent that begins at `granule`, apart from what follows it.
fn read_extent<B: HeapBytes + ?Sized>(
    bytes: &B,
    puddle: &PuddleHeader,
    granule: u64,
) -> Result<Extent, HeapError<B::Error>> {
    let offset = puddle::heap_offset(puddle.size) + granule * GRANULE;
    // A granule is 256 bytes, so extent header and slab word can be read at once.
    let mut head = [0; 24];
    bytes.read(offset, &mut head).map_err(HeapError::Read)?;
    let [type_id, word, slab_word] = words_of(&head);
    let damaged = |error| HeapError::Extent { offset, error };
    let header = parse([type_id, word]).map_err(damaged)?;
    if granule + header.granules() > puddle::granules(puddle.size) {
        let end = offset.saturating_add(header.bytes_used());
        return Err(HeapError::PastEnd {
            offset,
            end,
            size: puddle.size,
        });
    }
    let slab = match header.kind {
        ExtentKind::Object { .. } => None,
        ExtentKind::Slab { extent_size } => {
            if puddle.is_root && granule == 0 {
                return Err(HeapError::SlabAtRoot { offset });
            }
            // Puddles are aligned to 2 MiB, so the offset is aligned as the address is.
            if !offset.is_multiple_of(SLAB_ALIGN) {
                return Err(HeapError::SlabAlignment { offset });
            }
            let slab = SlabHeader::parse(slab_word, extent_size).map_err(damaged)?;
            let geometry = slab.geometry();
            let mut bitmap_bytes = [0; SLAB_BITMAP_WORDS_MAX * 8];
            let len = (geometry.bitmap_words * 8) as usize;
            bytes
                .read(offset + SLAB_BITMAP_OFFSET, &mut bitmap_bytes[..len])
                .map_err(HeapError::Read)?;
            let bitmap: [u64; SLAB_BITMAP_WORDS_MAX] = words_of(&bitmap_bytes);
            let tail = geometry.capacity % 64;
            let last = bitmap[geometry.bitmap_words as usize - 1];
            if tail != 0 && last >> tail != 0 {
                let element = geometry.capacity + u64::from((last >> tail).trailing_zeros());
                return Err(HeapError::SlabBits { offset, element });
            }
            Some(Slab {
                header: slab,
                bitmap,
            })
        }
    };
    Ok(Extent {
        granule,
        offset,
        header,
        slab,
    })
}

/// All objects of a puddle; see [`objects`].
pub struct Objects<'a, B: HeapBytes + ?Sized> {
    extents: Extents<'a, B>,
    current: Option<ExtentObjects>,
}

/// All objects of the data puddle with this `header`, in the order of their addresses. Damaged extents are `Err`
/// items as in [`extents`].
pub fn objects<'a, B: HeapBytes + ?Sized>(bytes: &'a B, header: &PuddleHeader) -> Objects<'a, B> {
    Objects {
        extents: extents(bytes, header),
        current: None,
    }
}

impl<B: HeapBytes + ?Sized> Iterator for Objects<'_, B> {
    type Item = Result<Object, HeapError<B::Error>>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(object) = self.current.as_mut().and_then(Iterator::next) {
                return Some(Ok(object));
            }
            match self.extents.next()? {
                Ok(extent) => self.current = Some(extent.objects()),
                Err(error) => return Some(Err(error)),
            }
        }
    }
}

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
/// As the items of [`extents`], for the one extent concerned.
pub fn locate<B: HeapBytes + ?Sized>(
    bytes: &B,
    header: &PuddleHeader,
    address: u64,
) -> Result<Option<Location>, HeapError<B::Error>> {
    if header.validate().is_err() || header.kind != PuddleKind::Data {
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
