//! The log header, and the part of a log that one puddle holds.

use std::mem::offset_of;

use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::{LOG_AREA_OFFSET, LOG_HEADER_SIZE, RANGE_SLOTS, RANGE_SLOTS_OFFSET};
use crate::Uuid;
use crate::consts::LINE;
use crate::crc::crc32c;
use crate::error::{FormatError, check_zero, prefix};
use crate::puddle::{PuddleHeader, PuddleKind, heap_size};

/// The first eight bytes of a log.
pub const MAGIC: [u8; 8] = *b"DURUMLOG";
/// The version that this build writes and reads.
pub const VERSION: u32 = 1;

const STRUCTURE: &str = "log header";
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
    magic: [u8; 8],
    version: U32,
    flags: U32,
    log_id: U64,
    capacity: U64,
    owner: [u8; 16],
    reserved: [u8; 12],
    checksum: U32,
}

const _: () = assert!(size_of::<Media>() == LOG_HEADER_SIZE);
const _: () = assert!(offset_of!(Media, version) == 8 && offset_of!(Media, flags) == 12);
const _: () = assert!(offset_of!(Media, log_id) == 16 && offset_of!(Media, capacity) == 24);
const _: () = assert!(offset_of!(Media, owner) == 32 && offset_of!(Media, reserved) == 48);
const _: () = assert!(offset_of!(Media, checksum) == 60);
const _: () = assert!(RANGE_SLOTS_OFFSET + RANGE_SLOTS as u64 * LINE <= LOG_AREA_OFFSET);

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
        let mut media = Media {
            magic: MAGIC,
            version: VERSION.into(),
            flags: u32::from(self.is_continuation).into(),
            log_id: self.log_id.into(),
            capacity: self.capacity.into(),
            owner: self.owner.0,
            reserved: [0; 12],
            checksum: 0.into(),
        };
        media.checksum = crc32c(&media.as_bytes()[..offset_of!(Media, checksum)]).into();
        zerocopy::transmute!(media)
    }

    /// Reads and checks the header of a log in a heap of `heap_len` bytes.
    ///
    /// # Errors
    /// A foreign, newer, damaged or truncated log, told apart by [`FormatError::fault`].
    pub fn parse(bytes: &[u8], heap_len: u64) -> Result<Self, FormatError> {
        let head = prefix(STRUCTURE, bytes, LOG_HEADER_SIZE)?;
        let Ok(media) = Media::ref_from_bytes(head) else {
            return Err(FormatError::Truncated {
                structure: STRUCTURE,
                needed: 64,
                found: head.len() as u64,
            });
        };
        if media.magic != MAGIC {
            return Err(FormatError::Magic {
                structure: STRUCTURE,
                found: media.magic,
                expected: MAGIC,
            });
        }
        if media.version.get() == 0 {
            // No durum writes this: a crash kept the word with the version off the media while the header was written.
            // To call it another version would have a store refused for a log that was never used.
            return Err(FormatError::Field {
                structure: STRUCTURE,
                field: "version",
                offset: 8,
                found: 0,
                expected: "at least 1".into(),
            });
        }
        if media.version.get() != VERSION {
            let found = media.version.get();
            return Err(FormatError::Version {
                structure: STRUCTURE,
                offset: 8,
                found,
                supported: VERSION,
            });
        }
        let expected = crc32c(&head[..offset_of!(Media, checksum)]);
        let found = media.checksum.get();
        if found != expected {
            return Err(FormatError::Checksum {
                structure: STRUCTURE,
                offset: 60,
                expected,
                found,
            });
        }
        let flags = media.flags.get();
        if flags & !FLAG_CONTINUATION != 0 {
            return Err(FormatError::Field {
                structure: STRUCTURE,
                field: "flags",
                offset: 12,
                found: flags.into(),
                expected: "no bits but bit 0 (continuation)".into(),
            });
        }
        check_zero(
            STRUCTURE,
            offset_of!(Media, reserved) as u64,
            &media.reserved,
        )?;
        let capacity = media.capacity.get();
        if heap_len.checked_sub(LOG_AREA_OFFSET) != Some(capacity) {
            return Err(FormatError::Field {
                structure: STRUCTURE,
                field: "capacity",
                offset: 24,
                found: capacity,
                expected: format!("the {heap_len:#x} bytes of the heap less {LOG_AREA_OFFSET:#x}")
                    .into(),
            });
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
    entries: &'a [u8],
    /// Behind so many bytes of `entries` all are zero.
    written: usize,
}

impl<'a> LogArea<'a> {
    /// Reads the heap of the log puddle with this header. `heap` is the whole heap.
    ///
    /// # Errors
    /// As [`LogArea::parse`]; also a puddle that is no log, or whose log belongs to someone else.
    pub fn of(puddle: &PuddleHeader, heap: &'a [u8]) -> Result<Self, FormatError> {
        if puddle.kind != PuddleKind::Log {
            return Err(FormatError::Field {
                structure: "puddle header",
                field: "kind",
                offset: 12,
                found: puddle.kind as u64,
                expected: "2 (log)".into(),
            });
        }
        let area = Self::parse(heap)?;
        if area.header.owner != puddle.owner {
            return Err(FormatError::Field {
                structure: STRUCTURE,
                field: "owner",
                offset: 32,
                found: u64::from_be_bytes(*area.header.owner.0.first_chunk().unwrap_or(&[0; 8])),
                expected: format!("{}, the owner of the puddle", puddle.owner).into(),
            });
        }
        Ok(area)
    }

    /// Reads the whole heap of a log puddle.
    ///
    /// # Errors
    /// What is wrong with the header, or a byte that is not zero where nothing is ever written.
    pub fn parse(heap: &'a [u8]) -> Result<Self, FormatError> {
        let header = LogHeader::parse(heap, heap.len() as u64)?;
        let slots_end = RANGE_SLOTS_OFFSET as usize + RANGE_SLOTS * LINE as usize;
        let lines = heap
            .get(RANGE_SLOTS_OFFSET as usize..slots_end)
            .unwrap_or_default();
        let mut slots = [0; RANGE_SLOTS];
        for (index, (slot, line)) in slots
            .iter_mut()
            .zip(lines.chunks_exact(LINE as usize))
            .enumerate()
        {
            let Some((word, rest)) = line.split_first_chunk::<8>() else {
                continue;
            };
            *slot = u64::from_le_bytes(*word);
            check_zero(
                "range slots of a log",
                RANGE_SLOTS_OFFSET + index as u64 * LINE + 8,
                rest,
            )?;
            if header.is_continuation && *slot != 0 {
                return Err(FormatError::Reserved {
                    structure: "range slots of a log's continuation",
                    offset: RANGE_SLOTS_OFFSET + index as u64 * LINE,
                });
            }
        }
        let gap = heap
            .get(slots_end..LOG_AREA_OFFSET as usize)
            .unwrap_or_default();
        check_zero("gap behind the range slots of a log", slots_end as u64, gap)?;
        let entries = heap.get(LOG_AREA_OFFSET as usize..).unwrap_or_default();
        Ok(Self {
            header,
            slots,
            entries,
            written: entries.len(),
        })
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

    /// The bytes that may hold entries.
    pub fn entries(&self) -> &'a [u8] {
        self.entries
    }
}
