//! Slots, banks, and how large a record and a frame may be.

use std::mem::offset_of;

use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::words::MediaStack;
use crate::consts::{LINE, UNIT};
use crate::crc::Crc;
use crate::puddle::heap_size;

/// Where in the heap the slots begin; what lies between head and slots is reserved.
pub const SLOTS_OFFSET: u64 = 4096;
/// Banks of a slot. They are written in turn.
pub const BANKS: usize = 2;
/// Bytes of a bank.
pub const BANK_SIZE: u64 = 2048;
/// Words of a bank.
pub const BANK_WORDS: usize = BANK_SIZE as usize / 8;
/// Bytes of a slot's stack unless its maker says otherwise: a slot has 64 KiB then.
pub const STACK_SIZE_DEFAULT: u32 = 61440;
/// Bytes that a slot's stack may have: the index of a word in it has 16 bits.
pub const STACK_SIZE_MAX: u32 = (u16::MAX as u32 * 8) / LINE as u32 * LINE as u32;

/// Locks that a section may hold at the same time.
pub const LOCKS_MAX: usize = 64;
/// Live-ins of a region, or of the place where a caller goes on.
pub const LIVE_INS_MAX: usize = 128;
/// Words that a record may hold to be written again.
pub const REDO_MAX: usize = 8;
/// Words of bitmaps that a record may name.
pub const BITS_MAX: usize = 16;
/// Sequence numbers are below this: whoever goes on counts up, and never meets the end.
pub const SEQUENCE_END: u64 = 1 << 63;

/// Words of the largest record: the first lock stands in its head.
pub const RECORD_WORDS_MAX: usize =
    size_of::<RecordHead>() / 8 + LIVE_INS_MAX + (LOCKS_MAX - 1) + 1 + 2 * REDO_MAX + 2 * BITS_MAX;
/// Words of the largest frame.
pub const FRAME_WORDS_MAX: usize = size_of::<FrameHead>() / 8 + LIVE_INS_MAX;

const _: () = assert!(RECORD_WORDS_MAX == 244 && RECORD_WORDS_MAX <= BANK_WORDS);
const _: () = assert!(FRAME_WORDS_MAX == 131);
const _: () = assert!(STACK_SIZE_DEFAULT.is_multiple_of(LINE as u32));
const _: () = assert!(STACK_SIZE_DEFAULT <= STACK_SIZE_MAX && STACK_SIZE_MAX == 524_224);
const _: () = assert!(slot_size(STACK_SIZE_DEFAULT) == 64 << 10);
const _: () = assert!(slots_max(UNIT, STACK_SIZE_DEFAULT) == 31);

/// Bytes of a slot.
pub const fn slot_size(stack_size: u32) -> u64 {
    BANKS as u64 * BANK_SIZE + stack_size as u64
}

/// How many slots a puddle of `size` bytes has room for.
pub const fn slots_max(size: u64, stack_size: u32) -> u64 {
    heap_size(size).saturating_sub(SLOTS_OFFSET) / slot_size(stack_size)
}

/// The bank of the record with this sequence number.
#[inline]
pub const fn bank_of(sequence: u64) -> usize {
    (sequence % BANKS as u64) as usize
}

/// Bits of [`RecordHead::more`].
pub(super) const MORE_BITS: u8 = 0x1f;
pub(super) const MORE_STACK: u8 = 0x80;

/// How a record begins.
#[derive(Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(super) struct RecordHead {
    pub(super) checksum: U32,
    pub(super) locks: u8,
    pub(super) live_ins: u8,
    pub(super) redo: u8,
    pub(super) more: u8,
    pub(super) sequence: U64,
    pub(super) code: U64,
    pub(super) first_lock: U64,
}

const _: () = assert!(size_of::<RecordHead>() == 32);
const _: () = assert!(offset_of!(RecordHead, locks) == 4 && offset_of!(RecordHead, live_ins) == 5);
const _: () = assert!(offset_of!(RecordHead, redo) == 6 && offset_of!(RecordHead, more) == 7);
const _: () = assert!(offset_of!(RecordHead, sequence) == 8 && offset_of!(RecordHead, code) == 16);
const _: () = assert!(offset_of!(RecordHead, first_lock) == 24);

/// How a frame begins.
#[derive(Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(super) struct FrameHead {
    pub(super) checksum: U32,
    pub(super) live_ins: u8,
    pub(super) zero: [u8; 3],
    pub(super) stack: MediaStack,
    pub(super) code: U64,
}

const _: () = assert!(size_of::<FrameHead>() == 24);
const _: () = assert!(offset_of!(FrameHead, live_ins) == 4 && offset_of!(FrameHead, zero) == 5);
const _: () = assert!(offset_of!(FrameHead, stack) == 8 && offset_of!(FrameHead, code) == 16);

/// What the checksums of one slot begin with: what lies in another one, or was left from another use of these bytes,
/// is not valid.
#[derive(Clone, Copy, Debug)]
pub struct SlotSalt(Crc);

impl SlotSalt {
    /// The salt of a slot, given that of its puddle.
    pub fn new(salt: u64, slot: u32) -> Self {
        let mut crc = Crc::new();
        crc.update(&salt.to_le_bytes());
        crc.update(&slot.to_le_bytes());
        Self(crc)
    }

    /// The checksum of a record or a frame, whose first four bytes are the checksum's place.
    #[inline]
    pub fn checksum(&self, bytes: &[u8]) -> u32 {
        let mut crc = self.0;
        crc.update(bytes.get(4..).unwrap_or_default());
        crc.value()
    }

    /// The same of what is being written: a head, whose first half a word is the checksum's place, and the words behind
    /// it, which lie in their place.
    #[inline]
    pub(super) fn checksum_of<const HEAD: usize>(&self, head: &[u64; HEAD], rest: &[u64]) -> u32 {
        let mut crc = self.0;
        let [first, others @ ..] = &head[..] else {
            return crc.value();
        };
        crc.update_words((u64::from_le(*first) >> 32) as u32, others, rest);
        crc.value()
    }
}
