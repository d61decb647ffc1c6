//! The log header, and the part of a log that one puddle holds.

use std::mem::offset_of;

use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::{LOG_AREA_OFFSET, LOG_HEADER_SIZE, RANGE_SLOTS, RANGE_SLOTS_OFFSET, REACH_OFFSET};
use crate::Uuid;
use crate::consts::LINE;
use crate::error::{FormatError, check_zero};
use crate::header::{Beginning, Signature};
use crate::puddle::{PuddleHeader, PuddleKind, heap_size};
use crate::reach::Reach;

/// The first eight bytes of a log.
pub const MAGIC: [u8; 8] = *b"DURUMLOG";
/// The version that this build writes and reads.
pub const VERSION: u32 = 1;

const SIGNATURE: Signature = Signature {
    structure: "log header",
    magic: MAGIC,
    version: VERSION,
    checksum_offset: offset_of!(Media, checksum),
};
const FLAG_CONTINUATION: u32 = 1;

/// What the header of a log says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogHeader {
    /// Random, part of every checksum in the log.
    pub log_id: u64,
    /// Bytes for entries in this puddle.
    pub capacity: u64,
    /// The client that writes the log.
    pub owner: Uuid,
    /// Whether this puddle continues a log that begins in another.
    pub is_continuation: bool,
}

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct Media {
    beginning: Beginning,
    flags: U32,
    log_id: U64,
    capacity: U64,
    owner: [u8; 16],
    reserved: [u8; 12],
    checksum: U32,
}

const _: () = assert!(size_of::<Media>() == LOG_HEADER_SIZE);
const _: () = assert!(offset_of!(Media, flags) == 12);
const _: () = assert!(offset_of!(Media, log_id) == 16 && offset_of!(Media, capacity) == 24);
const _: () = assert!(offset_of!(Media, owner) == 32 && offset_of!(Media, reserved) == 48);
const _: () = assert!(offset_of!(Media, checksum) == 60);
const _: () = assert!(RANGE_SLOTS_OFFSET + RANGE_SLOTS as u64 * LINE == REACH_OFFSET);
const _: () = assert!(REACH_OFFSET + LINE <= LOG_AREA_OFFSET);

impl LogHeader {
    /// The header of a log, or of a part of one, that fills a puddle of `puddle_size` bytes.
    pub fn new(log_id: u64, owner: Uuid, puddle_size: u64, is_continuation: bool) -> Self {
        let capacity = heap_size(puddle_size).saturating_sub(LOG_AREA_OFFSET);
        Self {
            log_id,
            capacity,
            owner,
            is_continuation,
        }
    }

    /// The 64 bytes at the start of the puddle's heap.
    pub fn encode(&self) -> [u8; LOG_HEADER_SIZE] {
        SIGNATURE.sealed(zerocopy::transmute!(Media {
            beginning: SIGNATURE.beginning(),
            flags: u32::from(self.is_continuation).into(),
            log_id: self.log_id.into(),
            capacity: self.capacity.into(),
            owner: self.owner.0,
            reserved: [0; 12],
            checksum: 0.into(),
        }))
    }

    /// Reads and checks the header of a log in a heap of `heap_len` bytes.
    ///
    /// # Errors
    /// A foreign, newer, damaged or truncated log, told apart by [`FormatError::fault`].
    pub fn parse(bytes: &[u8], heap_len: u64) -> Result<Self, FormatError> {
        let media: &Media = SIGNATURE.read(bytes).map_err(|error| match error {
            // No durum writes this: a crash kept the word with the version off the media while the header was written.
            // To call it another version would have people look for a durum that wrote it.
            FormatError::Version {
                offset, found: 0, ..
            } => SIGNATURE.field("version", offset, 0u32, "at least 1"),
            error => error,
        })?;
        let flags = media.flags.get();
        if flags & !FLAG_CONTINUATION != 0 {
            return Err(SIGNATURE.field("flags", 12, flags, "no bits but bit 0 (continuation)"));
        }
        check_zero(SIGNATURE.structure, 48, &media.reserved)?;
        let capacity = media.capacity.get();
        if heap_len.checked_sub(LOG_AREA_OFFSET) != Some(capacity) {
            let expected = format!("the {heap_len:#x} bytes of the heap less {LOG_AREA_OFFSET:#x}");
            return Err(SIGNATURE.field("capacity", 24, capacity, expected));
        }
        Ok(Self {
            log_id: media.log_id.get(),
            capacity,
            owner: Uuid(media.owner),
            is_continuation: flags & FLAG_CONTINUATION != 0,
        })
    }
}

/// The part of a log in one puddle: a checked header, the range slots, and entries that nobody has looked at yet.
#[derive(Clone, Copy, Debug)]
pub struct LogArea<'a> {
    header: LogHeader,
    slots: [u64; RANGE_SLOTS],
    reach: Option<Reach>,
    /// As far as the reach.
    entries: &'a [u8],
    /// Behind so many bytes of `entries` all are zero.
    written: usize,
}

impl<'a> LogArea<'a> {
    /// Reads the heap of the log puddle with this header. `heap` is the whole heap, or as much of it as
    /// [`LogArea::length_in`] says.
    ///
    /// # Errors
    /// As [`LogArea::parse`]; also a puddle that is no log, or whose log belongs to someone else.
    pub fn of(puddle: &PuddleHeader, heap: &'a [u8]) -> Result<Self, FormatError> {
        puddle.check_kind(PuddleKind::Log, "2 (log)")?;
        let area = Self::parse_of(heap, heap_size(puddle.size))?;
        puddle.check_owner(&SIGNATURE, "owner", 32, area.header.owner)?;
        Ok(area)
    }

    /// Reads the whole heap of a log puddle.
    ///
    /// # Errors
    /// What is wrong with the header, or a byte that is not zero where nothing is ever written.
    pub fn parse(heap: &'a [u8]) -> Result<Self, FormatError> {
        Self::parse_of(heap, heap.len() as u64)
    }

    /// Reads the beginning of a heap of `heap_len` bytes.
    fn parse_of(heap: &'a [u8], heap_len: u64) -> Result<Self, FormatError> {
        let header = LogHeader::parse(heap, heap_len)?;
        let lines = heap
            .get(RANGE_SLOTS_OFFSET as usize..REACH_OFFSET as usize)
            .unwrap_or_default();
        let mut slots = [0; RANGE_SLOTS];
        let offsets = (RANGE_SLOTS_OFFSET..).step_by(LINE as usize);
        let lines = lines.chunks_exact(LINE as usize);
        for (offset, (slot, line)) in offsets.zip(slots.iter_mut().zip(lines)) {
            let Some((word, rest)) = line.split_first_chunk::<8>() else {
                continue;
            };
            *slot = u64::from_le_bytes(*word);
            check_zero("range slots of a log", offset + 8, rest)?;
            if header.is_continuation && *slot != 0 {
                return Err(FormatError::Reserved {
                    structure: "range slots of a log's continuation",
                    offset,
                });
            }
        }
        let reach = Self::reach_in(heap, header.capacity)?;
        let gap = (REACH_OFFSET + 8) as usize;
        let zeros = heap.get(gap..LOG_AREA_OFFSET as usize).unwrap_or_default();
        check_zero("gap before the entries of a log", gap as u64, zeros)?;
        let entries = heap.get(LOG_AREA_OFFSET as usize..).unwrap_or_default();
        let used = reach.map_or(header.capacity, |reach| reach.bytes);
        let entries = entries.get(..used as usize).ok_or(FormatError::Truncated {
            structure: SIGNATURE.structure,
            needed: LOG_AREA_OFFSET + used,
            found: heap.len() as u64,
        })?;
        Ok(Self {
            header,
            slots,
            reach,
            entries,
            written: entries.len(),
        })
    }

    /// How many bytes from the beginning of a heap on tell all of a log. `head` is what is before its entries,
    /// `heap_len` the bytes of the heap. `None` where only all of them do.
    ///
    /// # Errors
    /// As [`LogArea::parse`], for the header and the reach.
    pub fn length_in(head: &[u8], heap_len: u64) -> Result<Option<u64>, FormatError> {
        let header = LogHeader::parse(head, heap_len)?;
        let reach = Self::reach_in(head, header.capacity)?;
        Ok(reach.map(|reach| LOG_AREA_OFFSET + reach.bytes))
    }

    fn reach_in(heap: &[u8], capacity: u64) -> Result<Option<Reach>, FormatError> {
        let word = heap.get(REACH_OFFSET as usize..).unwrap_or_default();
        let word = word.first_chunk().copied().unwrap_or_default();
        let word = u64::from_le_bytes(word);
        Reach::from_u64(word, capacity, SIGNATURE.structure, REACH_OFFSET)
    }

    /// Whether the log may ever have gone on from this puddle in another one.
    pub fn may_be_chained(&self) -> bool {
        self.reach.is_none_or(|reach| reach.is_chained)
    }

    /// The log's header.
    pub fn header(&self) -> &LogHeader {
        &self.header
    }

    /// The words in the range slots; all zero in a continuation.
    pub fn slots(&self) -> &[u64; RANGE_SLOTS] {
        &self.slots
    }

    /// The same area, of whose heap all bytes behind the first `used` are known to be zero: these need not be looked
    /// through.
    #[must_use]
    pub fn used(mut self, used: usize) -> Self {
        let written = used.saturating_sub(LOG_AREA_OFFSET as usize);
        self.written = written.min(self.entries.len());
        self
    }

    /// The bytes of the area in which an entry may begin.
    pub(super) fn written(&self) -> usize {
        self.written
    }

    /// The bytes that may hold entries: none behind the reach.
    pub fn entries(&self) -> &'a [u8] {
        self.entries
    }
}
