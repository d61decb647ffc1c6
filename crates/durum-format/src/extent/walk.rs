//! Going over the heap of a puddle: every extent in order, every object, or the one at an address.
//!
//! A walk costs one read of bitmap per 4,096 granules, and one of 88 bytes per extent. Where reads are slow, and the
//! bitmap says that many extents begin close together, one read of `BLOCK` bytes gets them all.

use super::object::{Extent, ExtentObjects, Object, Slab};
use super::slab::{SLAB_ALIGN, SLAB_BITMAP_OFFSET, SLAB_BITMAP_WORDS_MAX};
use super::{ExtentKind, HeapBytes, HeapError, SlabHeader, parse};
use crate::consts::GRANULE;
use crate::puddle::{self, BITMAP_OFFSET, PuddleHeader};

/// Bitmap words read at a time.
pub(super) const WINDOW: usize = 64;

/// Bytes of an extent's header, and of a slab's word and bitmap.
const HEAD: usize = SLAB_BITMAP_OFFSET as usize + 8 * SLAB_BITMAP_WORDS_MAX;
const _: () = assert!(HEAD as u64 <= GRANULE);

/// Bytes that are read at once where many extents begin in them.
const BLOCK: u64 = 64 << 10;
/// How many have to begin there. A file in memory is read by 10 to 16 GB/s, and a small read takes 0.4 µs: a block
/// costs as much as 10 to 16 of them.
const DENSE: u32 = 24;

/// The extents of a puddle in the order of their addresses; see [`extents`].
pub struct Extents<'a, B: HeapBytes + ?Sized> {
    bytes: &'a B,
    header: PuddleHeader,
    window: [u64; WINDOW],
    /// Index of the first word in `window`, if that was read.
    window_base: Option<u64>,
    /// The granule at which the search for the next set bit begins.
    from: u64,
    /// A set bit already found.
    found: Option<u64>,
    done: bool,
    /// What was read at once, and where it begins.
    block: Vec<u8>,
    block_offset: u64,
    /// Where the last block ended of which something could not be read.
    unreadable_end: u64,
}

/// The extents of the data puddle with this `header`, in order. Each is checked: its header, a slab's header and
/// bitmap, that it lies in the puddle and does not reach into the next. A damaged extent is an `Err` item, and the
/// walk goes on behind it, so that a check can report all; a failed read of the bitmap ends the walk.
pub fn extents<'a, B: HeapBytes + ?Sized>(bytes: &'a B, header: &PuddleHeader) -> Extents<'a, B> {
    Extents {
        bytes,
        header: *header,
        window: [0; WINDOW],
        window_base: None,
        from: 0,
        found: None,
        done: false,
        block: Vec::new(),
        block_offset: 0,
        unreadable_end: 0,
    }
}

impl<B: HeapBytes + ?Sized> Extents<'_, B> {
    fn word(&mut self, index: u64) -> Result<u64, HeapError<B::Error>> {
        let base = index - index % WINDOW as u64;
        if self.window_base != Some(base) {
            self.window_base = None;
            let words = puddle::bitmap_words(self.header.size)
                .saturating_sub(base)
                .min(WINDOW as u64) as usize;
            let mut buffer = [0; WINDOW * 8];
            self.bytes
                .read(BITMAP_OFFSET + base * 8, &mut buffer[..words * 8])
                .map_err(HeapError::Read)?;
            self.window = words_of(&buffer);
            self.window_base = Some(base);
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

    /// The extent that begins at a granule whose bit is in the window.
    fn extent(&mut self, granule: u64) -> Checked<B> {
        let offset = puddle::heap_offset(self.header.size) + granule * GRANULE;
        let may_be_read = self.bytes.is_slow() && offset >= self.unreadable_end;
        if may_be_read && self.in_block(offset).is_none() && self.is_dense(granule) {
            let length = BLOCK.min(self.header.size.saturating_sub(offset));
            self.block.resize(length as usize, 0);
            self.block_offset = offset;
            if self.bytes.read(offset, &mut self.block).is_err() {
                // Part of it can be read, maybe: each by itself tells. A bad place of a device takes its time to fail.
                self.block.clear();
                self.unreadable_end = offset + length;
            }
        }
        match self.in_block(offset) {
            Some(head) => check_extent(&head, &self.header, granule),
            None => read_extent(self.bytes, &self.header, granule),
        }
    }

    fn in_block(&self, offset: u64) -> Option<[u8; HEAD]> {
        let from = usize::try_from(offset.checked_sub(self.block_offset)?).ok()?;
        self.block.get(from..)?.first_chunk().copied()
    }

    /// Whether many extents begin in the block behind a granule, as far as the window tells.
    fn is_dense(&self, granule: u64) -> bool {
        let at = (granule / 64) as usize % WINDOW;
        let words = self
            .window
            .iter()
            .skip(at)
            .take(1 + (BLOCK / GRANULE / 64) as usize);
        let begin = words.zip([granule % 64].into_iter().chain(std::iter::repeat(0)));
        begin
            .map(|(word, from)| (word >> from).count_ones())
            .sum::<u32>()
            >= DENSE
    }

    /// The next extent, or what is wrong with it; `None` behind the last one. An error ends the walk.
    fn step(&mut self) -> Result<Option<Checked<B>>, HeapError<B::Error>> {
        if self.header.validate().is_err() || !self.header.kind.holds_objects() {
            return Err(HeapError::NotData);
        }
        let granule = match self.found.take() {
            Some(bit) => Some(bit),
            None => self.next_bit()?,
        };
        let Some(granule) = granule else {
            return Ok(None);
        };
        let extent = self.extent(granule);
        let next = self.next_bit()?;
        self.found = next;
        Ok(Some(extent.and_then(|extent| match next {
            Some(next) if granule + extent.granules() > next => Err(HeapError::Overlap {
                offset: extent.offset,
                end: extent.offset + extent.granules() * GRANULE,
                next: puddle::heap_offset(self.header.size) + next * GRANULE,
            }),
            _ => Ok(extent),
        })))
    }
}

type Checked<B> = Result<Extent, HeapError<<B as HeapBytes>::Error>>;

impl<B: HeapBytes + ?Sized> Iterator for Extents<'_, B> {
    type Item = Checked<B>;

    fn next(&mut self) -> Option<Checked<B>> {
        if self.done {
            return None;
        }
        let step = self.step();
        self.done = !matches!(step, Ok(Some(_)));
        step.unwrap_or_else(|error| Some(Err(error)))
    }
}

pub(super) fn words_of<const WORDS: usize>(bytes: &[u8]) -> [u64; WORDS] {
    let mut words = [0; WORDS];
    for (word, bytes) in words.iter_mut().zip(bytes.as_chunks::<8>().0) {
        *word = u64::from_le_bytes(*bytes);
    }
    words
}

/// Reads and checks the extent that begins at `granule`, apart from what follows it.
pub(super) fn read_extent<B: HeapBytes + ?Sized>(
    bytes: &B,
    puddle: &PuddleHeader,
    granule: u64,
) -> Result<Extent, HeapError<B::Error>> {
    let offset = puddle::heap_offset(puddle.size) + granule * GRANULE;
    // A granule is 256 bytes, so extent header, slab word and bitmap can be read at once.
    let mut head = [0; HEAD];
    bytes.read(offset, &mut head).map_err(HeapError::Read)?;
    check_extent(&head, puddle, granule)
}

fn check_extent<E>(
    head: &[u8; HEAD],
    puddle: &PuddleHeader,
    granule: u64,
) -> Result<Extent, HeapError<E>> {
    let offset = puddle::heap_offset(puddle.size) + granule * GRANULE;
    let [type_id, word, slab_word, bitmap @ ..]: [u64; HEAD / 8] = words_of(head);
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
            let mut bitmap: [u64; SLAB_BITMAP_WORDS_MAX] = bitmap;
            // Behind it the elements begin.
            bitmap[geometry.bitmap_words as usize..].fill(0);
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
