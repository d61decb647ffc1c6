//! Log entries, as the commit path writes them and recovery reads them.

use std::mem::offset_of;

use zerocopy::little_endian::U64;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::consts::LINE;
use crate::crc::{Crc, crc32c, header_and_data};

/// Bytes of an entry's header.
pub const ENTRY_HEADER_SIZE: usize = 24;
/// Bytes of the header that the checksum covers.
pub const CHECKED_HEADER_SIZE: usize = 20;
/// The sequence number of a seal: no range admits it.
pub const SEQUENCE_SEAL: u8 = 0;
/// The sequence number of undo entries, admitted by (0,2).
pub const SEQUENCE_UNDO: u8 = 1;
/// The sequence number of redo entries, admitted by (2,4).
pub const SEQUENCE_REDO: u8 = 3;

/// The most ranges of a seal: each is read at home, so they are to be few.
pub const SEAL_RANGES_LIMIT: usize = 1024;

/// In which order entries are replayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Order {
    // Never renumber: the numbers are on the media.
    /// First written, first applied; after all [`Order::Reverse`] ones. Redo.
    Forward = 0,
    /// Last written, first applied. Undo.
    Reverse = 1,
}

/// What an entry does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum EntryKind {
    // Never renumber: the numbers are on the media.
    /// Copies its data to the target.
    Copy = 1,
    /// Sets the bits of its 8-byte mask in the target word.
    SetBits = 2,
    /// Clears the bits of its 8-byte mask in the target word.
    ClearBits = 3,
    /// Closes a transaction over all entries before it.
    Seal = 4,
    /// Says that the log goes on in another puddle.
    Chain = 5,
}

impl EntryKind {
    pub(super) fn from_u8(number: u8) -> Option<Self> {
        use EntryKind::{Chain, ClearBits, Copy, Seal, SetBits};
        let mut kinds = [Copy, SetBits, ClearBits, Seal, Chain].into_iter();
        kinds.find(|kind| *kind as u8 == number)
    }
}

/// Properties of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Hash)]
pub struct EntryFlags(u8);

impl EntryFlags {
    /// None of them.
    pub const NONE: Self = Self(0);
    /// The target is volatile memory: applied on abort, ignored by recovery.
    pub const VOLATILE: Self = Self(1);
    /// Everything before this entry was durable before it was written, and it is durable before anything later is
    /// written. The next entry begins at the next line. Finding such an entry behind a gap proves damage.
    pub const FENCED: Self = Self(2);

    /// The flags as stored; `None` where a bit has no meaning.
    pub const fn from_bits(bits: u8) -> Option<Self> {
        match bits & !3 {
            0 => Some(Self(bits)),
            _ => None,
        }
    }

    /// The flags as stored.
    pub const fn bits(self) -> u8 {
        self.0
    }

    /// Both sets of flags together.
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether the target is volatile memory.
    pub const fn is_volatile(self) -> bool {
        self.0 & Self::VOLATILE.0 != 0
    }

    /// Whether the entry has a fence of its own.
    pub const fn is_fenced(self) -> bool {
        self.0 & Self::FENCED.0 != 0
    }
}

/// The first 24 bytes of an entry, unchecked, in host order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct EntryHeader {
    /// The address that the entry is about.
    pub target: u64,
    /// Bytes of data behind the header, without padding.
    pub size: u32,
    /// Compared with the range word.
    pub sequence: u8,
    /// An [`Order`].
    pub order: u8,
    /// An [`EntryKind`].
    pub kind: u8,
    /// [`EntryFlags`].
    pub flags: u8,
    /// The low half of the generation: stale entries are told without a checksum.
    pub generation_low: u32,
    /// Over log id, generation, the fields above and the data.
    pub checksum: u32,
}

const _: () = assert!(size_of::<EntryHeader>() == ENTRY_HEADER_SIZE);
const _: () = assert!(offset_of!(EntryHeader, target) == 0 && offset_of!(EntryHeader, size) == 8);
const _: () =
    assert!(offset_of!(EntryHeader, sequence) == 12 && offset_of!(EntryHeader, order) == 13);
const _: () = assert!(offset_of!(EntryHeader, kind) == 14 && offset_of!(EntryHeader, flags) == 15);
const _: () = assert!(offset_of!(EntryHeader, generation_low) == 16);
const _: () = assert!(offset_of!(EntryHeader, checksum) == CHECKED_HEADER_SIZE);

impl EntryHeader {
    /// An entry's header as the three words that are stored, checksum included. `data` is what follows it; its
    /// length must fit 32 bits (the data of longer ranges is split).
    #[inline]
    pub fn words(
        salt: &Salt,
        kind: EntryKind,
        order: Order,
        flags: EntryFlags,
        sequence: u8,
        target: u64,
        data: &[u8],
    ) -> [u64; 3] {
        header_words(salt, numbers(kind, order, flags, sequence), target, data)
    }

    /// The header out of the first 24 bytes of an entry.
    #[inline]
    pub fn from_bytes(bytes: &[u8; ENTRY_HEADER_SIZE]) -> Self {
        let [target, fields, tail] = words(bytes);
        Self {
            target,
            size: fields as u32,
            sequence: (fields >> 32) as u8,
            order: (fields >> 40) as u8,
            kind: (fields >> 48) as u8,
            flags: (fields >> 56) as u8,
            generation_low: tail as u32,
            checksum: (tail >> 32) as u32,
        }
    }
}

/// The four bytes of a header that say what the entry is.
#[inline]
const fn numbers(kind: EntryKind, order: Order, flags: EntryFlags, sequence: u8) -> [u8; 4] {
    [kind as u8, order as u8, flags.0, sequence]
}

/// The words of a header with these [`numbers`].
#[inline]
fn header_words(
    salt: &Salt,
    [kind, order, flags, sequence]: [u8; 4],
    target: u64,
    data: &[u8],
) -> [u64; 3] {
    let fields = (data.len() as u64 & 0xffff_ffff)
        | u64::from(sequence) << 32
        | u64::from(order) << 40
        | u64::from(kind) << 48
        | u64::from(flags) << 56;
    let checksum = salt.checksum([target, fields], data);
    [
        target,
        fields,
        u64::from(salt.generation_low) | u64::from(checksum) << 32,
    ]
}

/// Writes the words of a header to its place.
#[inline]
fn put_words(place: &mut [u8], words: [u64; 3]) {
    for (place, word) in place.as_chunks_mut::<8>().0.iter_mut().zip(words) {
        *place = word.to_le_bytes();
    }
}

/// The three words of an entry header.
#[inline]
fn words(bytes: &[u8; ENTRY_HEADER_SIZE]) -> [u64; 3] {
    let words: [U64; 3] = zerocopy::transmute!(*bytes);
    words.map(U64::get)
}

/// The checksum state after log id and generation: made once per generation, used by each of its entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Salt {
    value: u32,
    generation_low: u32,
}

impl Salt {
    /// The salt of one generation of a log.
    pub fn new(log_id: u64, generation: u64) -> Self {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&log_id.to_le_bytes());
        bytes[8..].copy_from_slice(&generation.to_le_bytes());
        Self {
            value: crc32c(&bytes),
            generation_low: generation as u32,
        }
    }

    /// The low half of the generation, as it stands in each entry.
    pub const fn generation_low(&self) -> u32 {
        self.generation_low
    }

    /// A checksum that begins with the salt: for the contents that a seal vouches for.
    pub const fn crc(&self) -> Crc {
        Crc::resume(self.value)
    }

    /// The checksum of an entry with these first two words.
    #[inline]
    pub fn checksum(&self, words: [u64; 2], data: &[u8]) -> u32 {
        header_and_data(self.value, words, self.generation_low, data)
    }
}

/// The checksum of an entry, from its definition: over log id, generation, the first 20 bytes of the header and the
/// data. Code that writes many entries keeps a [`Salt`].
pub fn entry_checksum(
    log_id: u64,
    generation: u64,
    header: &[u8; CHECKED_HEADER_SIZE],
    data: &[u8],
) -> u32 {
    let mut crc = Salt::new(log_id, generation).crc();
    crc.update(header);
    crc.update(data);
    crc.value()
}

/// `len` rounded up to a multiple of 8.
#[inline]
pub const fn padded(len: usize) -> usize {
    len.saturating_add(7) & !7
}

/// Bytes that an entry with `len` bytes of data takes: header, data, padding.
#[inline]
pub const fn entry_size(len: usize) -> usize {
    padded(len).saturating_add(ENTRY_HEADER_SIZE)
}

/// Where in the entry area the entry behind one at `offset` begins.
#[inline]
pub const fn next_entry_offset(offset: usize, len: usize, flags: EntryFlags) -> usize {
    let end = offset.saturating_add(entry_size(len));
    if flags.is_fenced() {
        end.saturating_add(LINE as usize - 1) & !(LINE as usize - 1)
    } else {
        end
    }
}

/// Bytes of data of a seal over `ranges` fresh ranges.
pub const fn seal_size(ranges: usize) -> usize {
    ranges.saturating_mul(16).saturating_add(16)
}

/// Writes an entry to the start of `out` and gives its length with padding, `None` (and nothing written) where `out`
/// is too short or the data too long.
#[inline]
fn encode(
    out: &mut [u8],
    salt: &Salt,
    numbers: [u8; 4],
    target: u64,
    data: &[u8],
) -> Option<usize> {
    u32::try_from(data.len()).ok()?;
    let total = entry_size(data.len());
    let (head, body) = out
        .get_mut(..total)?
        .split_first_chunk_mut::<ENTRY_HEADER_SIZE>()?;
    put_words(head, header_words(salt, numbers, target, data));
    // One word is by far the most common size, and a call of memcpy would cost as much as all of the above.
    if let (Ok(place), Ok(word)) = (
        <&mut [u8; 8]>::try_from(&mut *body),
        <&[u8; 8]>::try_from(data),
    ) {
        *place = *word;
        return Some(total);
    }
    if let Some(last) = body.last_chunk_mut::<8>() {
        *last = [0; 8];
    }
    if let Some(place) = body.get_mut(..data.len()) {
        place.copy_from_slice(data);
    }
    Some(total)
}

/// Writes an entry that copies `data` to `target` to the start of `out`; gives its length with padding.
///
/// `None`, and nothing written, where `out` is too short or the data has 4 GiB or more.
#[inline]
pub fn encode_copy(
    out: &mut [u8],
    salt: &Salt,
    order: Order,
    flags: EntryFlags,
    sequence: u8,
    target: u64,
    data: &[u8],
) -> Option<usize> {
    let numbers = numbers(EntryKind::Copy, order, flags, sequence);
    encode(out, salt, numbers, target, data)
}

/// Writes an entry that sets (`set`) or clears the bits of `mask` in the word at `target`, as [`encode_copy`] does.
#[inline]
pub fn encode_bits(
    out: &mut [u8],
    salt: &Salt,
    set: bool,
    flags: EntryFlags,
    sequence: u8,
    target: u64,
    mask: u64,
) -> Option<usize> {
    let kind = match set {
        true => EntryKind::SetBits,
        false => EntryKind::ClearBits,
    };
    let numbers = numbers(kind, Order::Forward, flags, sequence);
    encode(out, salt, numbers, target, &mask.to_le_bytes())
}

/// Writes an entry that says that the log goes on in the puddle at `address`, as [`encode_copy`] does. It may
/// become durable by the fence behind the entries there, if the first of them is not [`EntryFlags::FENCED`].
pub fn encode_chain(out: &mut [u8], salt: &Salt, address: u64) -> Option<usize> {
    let numbers = numbers(EntryKind::Chain, Order::Forward, EntryFlags::NONE, 0);
    encode(out, salt, numbers, address, &[])
}

/// Writes a seal over the `count` entries before it and over `ranges` (address, bytes) of fresh memory, as
/// [`encode_copy`] does. `contents` is the value of a [`Salt::crc`] to which the contents of the ranges were appended
/// in order.
///
/// `flags` is [`EntryFlags::FENCED`] only where all that the seal closes over was durable before it is written.
pub fn encode_seal(
    out: &mut [u8],
    salt: &Salt,
    flags: EntryFlags,
    count: u32,
    ranges: &[(u64, u64)],
    contents: u32,
) -> Option<usize> {
    let size = seal_size(ranges.len());
    let total = entry_size(size);
    let range_count = u32::try_from(ranges.len()).ok()?;
    u32::try_from(size).ok()?;
    let out = out.get_mut(..total)?;
    let data = &mut out[ENTRY_HEADER_SIZE..];
    data[..4].copy_from_slice(&count.to_le_bytes());
    data[4..8].copy_from_slice(&range_count.to_le_bytes());
    for (place, (address, len)) in data[8..].chunks_exact_mut(16).zip(ranges) {
        place[..8].copy_from_slice(&address.to_le_bytes());
        place[8..].copy_from_slice(&len.to_le_bytes());
    }
    data[size - 8..size - 4].copy_from_slice(&contents.to_le_bytes());
    data[size - 4..size].fill(0);
    let (head, data) = out.split_at_mut(ENTRY_HEADER_SIZE);
    let numbers = numbers(EntryKind::Seal, Order::Forward, flags, SEQUENCE_SEAL);
    put_words(head, header_words(salt, numbers, 0, data));
    Some(total)
}

/// What a seal says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SealContents<'a> {
    /// Entries before it in this generation.
    pub count: u32,
    /// Checksum of the contents of the ranges.
    pub contents: u32,
    ranges: &'a [[u8; 16]],
}

impl<'a> SealContents<'a> {
    /// Reads the data of a seal; `None` where it is not of the right form.
    pub fn parse(data: &'a [u8]) -> Option<Self> {
        let (count, rest) = data.split_first_chunk::<4>()?;
        let (range_count, rest) = rest.split_first_chunk::<4>()?;
        let (rest, zero) = rest.split_last_chunk::<4>()?;
        let (ranges, contents) = rest.split_last_chunk::<4>()?;
        let (ranges, odd) = ranges.as_chunks::<16>();
        let claimed = u64::from(u32::from_le_bytes(*range_count));
        let is_as_claimed = odd.is_empty() && ranges.len() as u64 == claimed;
        let whole = is_as_claimed && ranges.len() <= SEAL_RANGES_LIMIT;
        (whole && *zero == [0; 4]).then(|| Self {
            count: u32::from_le_bytes(*count),
            contents: u32::from_le_bytes(*contents),
            ranges,
        })
    }

    /// The bytes that it vouches for.
    pub fn bytes(&self) -> u64 {
        self.ranges()
            .fold(0, |sum, (_, len)| sum.saturating_add(len))
    }

    /// The ranges it vouches for: address and bytes.
    pub fn ranges(&self) -> impl ExactSizeIterator<Item = (u64, u64)> + use<'a> {
        self.ranges.iter().map(|range| {
            let (address, len) = range.split_at(8);
            let word = |bytes: &[u8]| u64::from_le_bytes(*bytes.first_chunk().unwrap_or(&[0; 8]));
            (word(address), word(len))
        })
    }
}
