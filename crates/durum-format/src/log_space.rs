//! The log space, a client's list of its logs: `docs/format/log-space.md`.

use std::mem::offset_of;

use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::Uuid;
use crate::consts::{ADDRESS_END, UNIT};
use crate::crc::crc32c;
use crate::error::{FormatError, check_zero};
use crate::header::{Beginning, Signature};
use crate::puddle::{PuddleHeader, PuddleKind};

/// The first eight bytes of a log space.
pub const MAGIC: [u8; 8] = *b"DURUMLSP";
/// The version that this build writes and reads.
pub const VERSION: u32 = 1;
/// Bytes of the header and of each entry: one line.
pub const ENTRY_SIZE: usize = 64;

const SIGNATURE: Signature = Signature {
    structure: "log space",
    magic: MAGIC,
    version: VERSION,
    checksum_offset: offset_of!(MediaHeader, checksum),
};
// Never renumber: the numbers are on the media.
const STATE_FREE: u32 = 0;
const STATE_ACTIVE: u32 = 1;

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct MediaHeader {
    beginning: Beginning,
    zero: U32,
    client: [u8; 16],
    reserved: [u8; 28],
    checksum: U32,
}

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct MediaEntry {
    state: U32,
    checksum: U32,
    log_id: U64,
    puddle: [u8; 16],
    address: U64,
    reserved: [u8; 24],
}

const _: () =
    assert!(size_of::<MediaHeader>() == ENTRY_SIZE && size_of::<MediaEntry>() == ENTRY_SIZE);
const _: () = assert!(offset_of!(MediaHeader, zero) == 12 && offset_of!(MediaHeader, client) == 16);
const _: () =
    assert!(offset_of!(MediaHeader, reserved) == 32 && offset_of!(MediaHeader, checksum) == 60);
const _: () = assert!(offset_of!(MediaEntry, state) == 0 && offset_of!(MediaEntry, checksum) == 4);
const _: () = assert!(offset_of!(MediaEntry, log_id) == 8 && offset_of!(MediaEntry, puddle) == 16);
const _: () =
    assert!(offset_of!(MediaEntry, address) == 32 && offset_of!(MediaEntry, reserved) == 40);

/// One log in a log space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogSpaceEntry {
    /// The log's id, which stands in its header too.
    pub log_id: u64,
    /// The log's first puddle.
    pub puddle: Uuid,
    /// Where that puddle is mapped.
    pub address: u64,
}

/// The first 64 bytes of the heap of a log space puddle.
pub fn encode_header(client: Uuid) -> [u8; ENTRY_SIZE] {
    SIGNATURE.sealed(zerocopy::transmute!(MediaHeader {
        beginning: SIGNATURE.beginning(),
        zero: 0.into(),
        client: client.0,
        reserved: [0; 28],
        checksum: 0.into(),
    }))
}

/// Where in the heap of a log space puddle the entry with this index lies.
pub const fn entry_offset(index: u64) -> u64 {
    (index + 1) * ENTRY_SIZE as u64
}

/// Entries that a heap of `heap_len` bytes has room for.
pub const fn capacity(heap_len: u64) -> u64 {
    (heap_len / ENTRY_SIZE as u64).saturating_sub(1)
}

impl LogSpaceEntry {
    /// The 64 bytes of an active entry. Writing eight zero bytes over the first eight frees it again.
    pub fn encode(&self) -> [u8; ENTRY_SIZE] {
        let mut media = MediaEntry {
            state: STATE_ACTIVE.into(),
            checksum: 0.into(),
            log_id: self.log_id.into(),
            puddle: self.puddle.0,
            address: self.address.into(),
            reserved: [0; 24],
        };
        media.checksum = crc32c(&media.as_bytes()[8..]).into();
        zerocopy::transmute!(media)
    }
}

/// What the entry with some index is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slot {
    /// Nothing.
    Free,
    /// A log.
    Active(LogSpaceEntry),
    /// An entry that is marked active, but whose checksum does not match: a crash tore it while it was appended,
    /// and then its log was never used; or it is damaged. The two look the same here. See [`LogSpace::unfinished`].
    Unfinished,
}

/// A checked log space.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogSpace {
    client: Uuid,
    entries: Vec<(u64, LogSpaceEntry)>,
    unfinished: Vec<u64>,
}

impl LogSpace {
    /// Reads the log space in the puddle with this header; `heap` begins where its heap does and may be shorter than
    /// it (what is not given is not read).
    ///
    /// # Errors
    /// As [`LogSpace::parse`]; also a puddle that is no log space, or that of another client.
    pub fn of(puddle: &PuddleHeader, heap: &[u8]) -> Result<Self, FormatError> {
        puddle.check_kind(PuddleKind::LogSpace, "3 (log space)")?;
        let space = Self::parse(heap)?;
        puddle.check_owner(&SIGNATURE, "client", 16, space.client)?;
        Ok(space)
    }

    /// Reads header and entries.
    ///
    /// # Errors
    /// A foreign, newer, damaged or truncated header; an entry with a state or an address that no writer gives it.
    pub fn parse(heap: &[u8]) -> Result<Self, FormatError> {
        let mut space = Self {
            client: parse_header(heap)?,
            entries: Vec::new(),
            unfinished: Vec::new(),
        };
        let lines = heap.as_chunks::<ENTRY_SIZE>().0;
        for (index, line) in (0..).zip(lines.get(1..).unwrap_or_default()) {
            match parse_entry(line, index)? {
                // The one who frees an entry keeps its other bytes; so does who damages its state.
                Slot::Free if line.iter().any(|byte| *byte != 0) => space.unfinished.push(index),
                Slot::Free => {}
                Slot::Active(entry) => space.entries.push((index, entry)),
                Slot::Unfinished => space.unfinished.push(index),
            }
        }
        Ok(space)
    }

    /// The client whose logs these are.
    pub fn client(&self) -> Uuid {
        self.client
    }

    /// The active entries with their indices.
    pub fn entries(&self) -> &[(u64, LogSpaceEntry)] {
        &self.entries
    }

    /// Indices of entries that were being appended when a crash came, or that are damaged. To tell: a log is used only
    /// after its entry is durable, so if the client has a log puddle that no entry names and that holds entries of its
    /// current generation, the entry was durable and is damaged now.
    pub fn unfinished(&self) -> &[u64] {
        &self.unfinished
    }
}

/// Reads the 64-byte header and gives the client.
fn parse_header(bytes: &[u8]) -> Result<Uuid, FormatError> {
    let media: &MediaHeader = SIGNATURE.read(bytes)?;
    check_zero(SIGNATURE.structure, 12, media.zero.as_bytes())?;
    check_zero(SIGNATURE.structure, 32, &media.reserved)?;
    Ok(Uuid(media.client))
}

/// Reads the entry with this index.
///
/// # Errors
/// [`FormatError::Field`] with an offset in the log space.
pub fn parse_entry(line: &[u8; ENTRY_SIZE], index: u64) -> Result<Slot, FormatError> {
    let media: &MediaEntry = zerocopy::transmute_ref!(line);
    let offset = entry_offset(index);
    let field = |field, at, found: u64, expected: &'static str| {
        SIGNATURE.field(field, offset + at, found, expected)
    };
    match media.state.get() {
        // A freed entry keeps its other bytes, and a torn append may have written any of them: nobody reads them.
        STATE_FREE => Ok(Slot::Free),
        STATE_ACTIVE => {
            if crc32c(&line[8..]) != media.checksum.get() {
                return Ok(Slot::Unfinished);
            }
            check_zero(SIGNATURE.structure, offset + 40, &media.reserved)?;
            let address = media.address.get();
            if address == 0 || !address.is_multiple_of(UNIT) || address >= ADDRESS_END {
                let expected = "a multiple of 2 MiB below 2^47";
                return Err(field("puddle address", 32, address, expected));
            }
            if media.puddle == [0; 16] {
                return Err(field("puddle uuid", 16, 0, "a name that is not all zero"));
            }
            Ok(Slot::Active(LogSpaceEntry {
                log_id: media.log_id.get(),
                puddle: Uuid(media.puddle),
                address,
            }))
        }
        state => Err(field("state", 0, state.into(), "0 (free) or 1 (active)")),
    }
}
