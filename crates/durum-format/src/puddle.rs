//! The puddle header: `docs/format/puddle.md`.

use std::mem::offset_of;

use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::Uuid;
use crate::consts::{ADDRESS_END, GRANULE, HEADER_PER_UNIT, UNIT};
use crate::error::{FormatError, check_zero};
use crate::header::{Beginning, Signature};
use crate::twin;

/// The first eight bytes of every puddle.
pub const MAGIC: [u8; 8] = *b"DURUMPUD";
/// The version that this build writes and reads.
pub const VERSION: u32 = 1;
/// Bytes that [`encode`] gives and [`parse`] looks at.
pub const ENCODED_SIZE: usize = 128;
/// Bytes at the start of a puddle that nobody but its maker writes: no log entry may target them.
pub const IMMUTABLE_SIZE: u64 = 1024;
/// Where in the puddle the extent bitmap begins.
pub const BITMAP_OFFSET: u64 = 1024;
/// Bytes of extent bitmap for each [`UNIT`].
pub const BITMAP_PER_UNIT: u64 = (UNIT - HEADER_PER_UNIT) / GRANULE / 8;

const SIGNATURE: Signature = Signature {
    structure: "puddle header",
    magic: MAGIC,
    version: VERSION,
    checksum_offset: offset_of!(Media, checksum),
};
const FLAG_ROOT: u32 = 1;
const KINDS: [PuddleKind; 7] = [
    PuddleKind::Data,
    PuddleKind::Log,
    PuddleKind::LogSpace,
    PuddleKind::Records,
    PuddleKind::Twin,
    PuddleKind::Sections,
    PuddleKind::Code,
];

/// What a puddle holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
#[repr(u32)]
pub enum PuddleKind {
    // Never renumber: the numbers are on the media.
    /// Objects of a pool.
    Data = 1,
    /// A log, or a further part of one.
    Log = 2,
    /// The list of a client's logs.
    LogSpace = 3,
    /// Redo records of a client.
    Records = 4,
    /// Objects of a pool in two copies, main and back, one behind the other.
    Twin = 5,
    /// Records of a client's sections: what their code needs to go on after a crash.
    Sections = 6,
    /// Code that completes a client's sections.
    Code = 7,
}

impl PuddleKind {
    /// Whether it holds objects of a pool. The others belong to a client.
    pub const fn holds_objects(self) -> bool {
        matches!(self, Self::Data | Self::Twin)
    }

    /// How often the file holds what is mapped at the puddle's address.
    pub const fn copies(self) -> u64 {
        match self {
            Self::Twin => 2,
            _ => 1,
        }
    }
}

/// The immutable part of a puddle's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PuddleHeader {
    /// What the puddle holds.
    pub kind: PuddleKind,
    /// The puddle's name.
    pub uuid: Uuid,
    /// The pool (puddles that hold objects) or the client (all others) that it belongs to.
    pub owner: Uuid,
    /// Where it is mapped: a multiple of [`UNIT`].
    pub address: u64,
    /// Bytes of the whole puddle: a multiple of [`UNIT`].
    pub size: u64,
    /// Whether it is the root puddle of its pool.
    pub is_root: bool,
}

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct Media {
    beginning: Beginning,
    kind: U32,
    uuid: [u8; 16],
    owner: [u8; 16],
    address: U64,
    size: U64,
    flags: U32,
    checksum: U32,
    reserved: [u8; 56],
}

const _: () = assert!(size_of::<Media>() == ENCODED_SIZE);
const _: () = assert!(offset_of!(Media, kind) == 12);
const _: () = assert!(offset_of!(Media, uuid) == 16 && offset_of!(Media, owner) == 32);
const _: () = assert!(offset_of!(Media, address) == 48 && offset_of!(Media, size) == 56);
const _: () = assert!(offset_of!(Media, flags) == 64 && offset_of!(Media, checksum) == 68);
const _: () = assert!(offset_of!(Media, reserved) == 72);
const _: () = assert!(BITMAP_PER_UNIT == 1022);
// The bitmap ends inside the header at one unit, and both grow by the unit, the header faster.
const _: () = assert!(
    BITMAP_OFFSET + BITMAP_PER_UNIT <= HEADER_PER_UNIT && BITMAP_PER_UNIT <= HEADER_PER_UNIT
);

/// Bytes of header of a puddle of `size` bytes.
pub const fn header_size(size: u64) -> u64 {
    size / UNIT * HEADER_PER_UNIT
}

/// Where in a puddle of `size` bytes the heap (or the log, or the log space) begins.
pub const fn heap_offset(size: u64) -> u64 {
    header_size(size)
}

/// Bytes of heap in a puddle of `size` bytes.
pub const fn heap_size(size: u64) -> u64 {
    size / UNIT * (UNIT - HEADER_PER_UNIT)
}

/// Granules of heap in a puddle of `size` bytes; also the number of bits of its extent bitmap.
pub const fn granules(size: u64) -> u64 {
    heap_size(size) / GRANULE
}

/// 64-bit words that the extent bitmap of a puddle of `size` bytes touches; bits past [`granules`] are zero.
pub const fn bitmap_words(size: u64) -> u64 {
    granules(size).div_ceil(64)
}

/// The smallest puddle size whose heap has at least `heap_bytes` bytes. `None` where that exceeds the address space.
pub const fn size_for_heap(heap_bytes: u64) -> Option<u64> {
    let units = heap_bytes.div_ceil(UNIT - HEADER_PER_UNIT);
    let units = if units == 0 { 1 } else { units };
    match units.checked_mul(UNIT) {
        Some(size) if size <= ADDRESS_END => Some(size),
        _ => None,
    }
}

impl PuddleHeader {
    /// The first address behind the puddle.
    pub fn end(&self) -> u64 {
        self.address.saturating_add(self.size)
    }

    /// The address of the first byte of the heap.
    pub fn heap_address(&self) -> u64 {
        self.address.saturating_add(heap_offset(self.size))
    }

    /// Bytes of the puddle's file.
    pub fn file_size(&self) -> u64 {
        self.size.saturating_mul(self.kind.copies())
    }

    /// Whether `[address, address + len)` lies in the part of the puddle that log entries may write.
    pub fn admits(&self, address: u64, len: u64) -> bool {
        let Some(end) = address.checked_add(len) else {
            return false;
        };
        address >= self.address.saturating_add(IMMUTABLE_SIZE) && end <= self.end()
    }

    /// Refuses a puddle that is not of this kind.
    pub(crate) fn check_kind(
        &self,
        kind: PuddleKind,
        expected: &'static str,
    ) -> Result<(), FormatError> {
        if self.kind == kind {
            return Ok(());
        }
        Err(SIGNATURE.field("kind", 12, self.kind as u32, expected))
    }

    /// Refuses an owner, named in a structure in the puddle, that is not the puddle's.
    pub(crate) fn check_owner(
        &self,
        signature: &Signature,
        field: &'static str,
        offset: u64,
        owner: Uuid,
    ) -> Result<(), FormatError> {
        if self.owner == owner {
            return Ok(());
        }
        let found = u64::from_be_bytes(*owner.0.first_chunk().unwrap_or(&[0; 8]));
        let expected = format!("{}, the owner of the puddle", self.owner);
        Err(signature.field(field, offset, found, expected))
    }

    /// Checks what every puddle header must fulfil, also one that was not read from the media.
    ///
    /// # Errors
    /// [`FormatError::Field`] names the field.
    pub fn validate(&self) -> Result<(), FormatError> {
        let field = |field, offset, found: u64, expected: &'static str| {
            Err(SIGNATURE.field(field, offset, found, expected))
        };
        if self.uuid.is_nil() {
            return field("uuid", 16, 0, "a name that is not all zero");
        }
        if self.owner.is_nil() {
            return field("owner", 32, 0, "a name that is not all zero");
        }
        if !self.address.is_multiple_of(UNIT) || self.address == 0 || self.address >= ADDRESS_END {
            let expected = "a multiple of 2 MiB between 2 MiB and 2^47";
            return field("address", 48, self.address, expected);
        }
        if !self.size.is_multiple_of(UNIT)
            || self.size == 0
            || self.size > ADDRESS_END - self.address
        {
            let expected = "a multiple of 2 MiB that ends below 2^47";
            return field("size", 56, self.size, expected);
        }
        if self.is_root && !self.kind.holds_objects() {
            let expected = "no root flag on a puddle that holds no objects";
            return field("flags", 64, u64::from(FLAG_ROOT), expected);
        }
        Ok(())
    }
}

/// The first 128 bytes of a puddle. The rest of the header is zero when the puddle is made.
pub fn encode(header: &PuddleHeader) -> [u8; ENCODED_SIZE] {
    SIGNATURE.sealed(zerocopy::transmute!(Media {
        beginning: SIGNATURE.beginning(),
        kind: (header.kind as u32).into(),
        uuid: header.uuid.0,
        owner: header.owner.0,
        address: header.address.into(),
        size: header.size.into(),
        flags: u32::from(header.is_root).into(),
        checksum: 0.into(),
        reserved: [0; 56],
    }))
}

/// As [`parse`], for a puddle that is to be where `expected` says. Its maker has written another address, with the
/// checksum that goes with it, and whoever moved it may have written a part of the header anew. All else has to be
/// right.
///
/// # Errors
/// As for [`parse`].
pub fn parse_moved(
    bytes: &[u8],
    file_len: u64,
    expected: &PuddleHeader,
) -> Result<PuddleHeader, FormatError> {
    let moved = [
        offset_of!(Media, address)..offset_of!(Media, size),
        offset_of!(Media, checksum)..offset_of!(Media, reserved),
    ];
    let encoded = encode(expected);
    let mut whole = bytes.to_vec();
    for range in moved {
        if let (Some(found), Some(written)) = (whole.get_mut(range.clone()), encoded.get(range)) {
            found.copy_from_slice(written);
        }
    }
    match whole.starts_with(&encoded) {
        true => parse(&whole, file_len),
        // Tells what is wrong with it as it is.
        false => parse(bytes, file_len),
    }
}

/// As [`parse`], for a puddle whose header is being changed from `before` to `expected`: any of its bytes may be those
/// of the one or of the other. Then it is `expected`.
///
/// # Errors
/// As for [`parse`].
pub fn parse_between(
    bytes: &[u8],
    file_len: u64,
    before: &PuddleHeader,
    expected: &PuddleHeader,
) -> Result<PuddleHeader, FormatError> {
    let (before, after) = (encode(before), encode(expected));
    let mut whole = bytes.to_vec();
    for ((found, before), after) in whole.iter_mut().zip(before).zip(after) {
        if *found == before {
            *found = after;
        }
    }
    match whole.starts_with(&after) {
        true => parse(&whole, file_len),
        // Tells what is wrong with it as it is.
        false => parse(bytes, file_len),
    }
}

/// Reads and checks the header of a puddle whose file has `file_len` bytes. `bytes` begins with the file's first
/// byte; 128 are needed, and where more of the first 1024 are given, the reserved ones among them are checked too.
///
/// # Errors
/// A foreign, newer, damaged or truncated puddle, told apart by [`FormatError::fault`].
pub fn parse(bytes: &[u8], file_len: u64) -> Result<PuddleHeader, FormatError> {
    let media: &Media = SIGNATURE.read(bytes)?;
    let number = media.kind.get();
    let kind = KINDS.into_iter().find(|kind| *kind as u32 == number);
    let kind = kind.ok_or_else(|| {
        let expected = "1 (data), 2 (log), 3 (log space), 4 (records), 5 (twin) or 6 (sections)";
        SIGNATURE.field("kind", 12, number, expected)
    })?;
    let flags = media.flags.get();
    if flags & !FLAG_ROOT != 0 {
        let expected = "no bits but bit 0 (root puddle)";
        return Err(SIGNATURE.field("flags", 64, flags, expected));
    }
    let is_root = flags & FLAG_ROOT != 0;
    let end = IMMUTABLE_SIZE as usize;
    let state = twin::STATE_OFFSET as usize;
    let reserved = match kind == PuddleKind::Twin && is_root {
        true => [72..state, state + 8..end],
        false => [72..end, end..end],
    };
    for part in reserved {
        let given = part.start..part.end.min(bytes.len());
        let given = bytes.get(given).unwrap_or_default();
        check_zero(SIGNATURE.structure, part.start as u64, given)?;
    }
    let header = PuddleHeader {
        kind,
        uuid: Uuid(media.uuid),
        owner: Uuid(media.owner),
        address: media.address.get(),
        size: media.size.get(),
        is_root,
    };
    header.validate()?;
    // A longer file is refused as well: the tail would hold bytes that nothing accounts for.
    let expected = header.file_size();
    if file_len < expected {
        return Err(FormatError::Truncated {
            structure: "puddle file",
            needed: expected,
            found: file_len,
        });
    }
    if file_len > expected {
        let expected = format!("a size that goes with the file, which has {file_len:#x} bytes");
        return Err(SIGNATURE.field("size", 56, header.size, expected));
    }
    Ok(header)
}
