//! The head of a puddle of sections: what it says of its slots.

use std::mem::offset_of;

use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::layout::{
    BANK_SIZE, BANKS, SLOTS_OFFSET, STACK_SIZE_MAX, SlotSalt, slot_size, slots_max,
};
use crate::Uuid;
use crate::consts::LINE;
use crate::error::{FormatError, check_zero};
use crate::header::{Beginning, Signature};

/// The first eight bytes of the heap of a puddle of sections.
pub const MAGIC: [u8; 8] = *b"DURUMSEC";
/// The version that this build writes and reads.
pub const VERSION: u32 = 1;
/// Bytes of the head: one line.
pub const HEAD_SIZE: usize = 64;

pub(super) const SIGNATURE: Signature = Signature {
    structure: "puddle of sections",
    magic: MAGIC,
    version: VERSION,
    checksum_offset: offset_of!(Media, checksum),
};

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct Media {
    beginning: Beginning,
    zero: U32,
    client: [u8; 16],
    salt: U64,
    slots: U32,
    stack_size: U32,
    reserved: [u8; 12],
    checksum: U32,
}

const _: () = assert!(size_of::<Media>() == HEAD_SIZE);
const _: () = assert!(offset_of!(Media, zero) == 12 && offset_of!(Media, client) == 16);
const _: () = assert!(offset_of!(Media, salt) == 32 && offset_of!(Media, slots) == 40);
const _: () = assert!(offset_of!(Media, stack_size) == 44 && offset_of!(Media, reserved) == 48);
const _: () = assert!(offset_of!(Media, checksum) == 60);

/// What the head says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// The client whose sections these are.
    pub client: Uuid,
    /// Drawn when the puddle was made: nothing that was written before is valid.
    pub salt: u64,
    /// How many threads have a slot.
    pub slots: u32,
    /// Bytes of each slot's stack.
    pub stack_size: u32,
}

impl Head {
    /// The first 64 bytes of the heap. The rest of it is zero when the puddle is made.
    pub fn encode(&self) -> [u8; HEAD_SIZE] {
        SIGNATURE.sealed(zerocopy::transmute!(Media {
            beginning: SIGNATURE.beginning(),
            zero: 0.into(),
            client: self.client.0,
            salt: self.salt.into(),
            slots: self.slots.into(),
            stack_size: self.stack_size.into(),
            reserved: [0; 12],
            checksum: 0.into(),
        }))
    }

    /// Reads the head of a puddle of `size` bytes, and what is reserved behind it as far as it is given.
    ///
    /// # Errors
    /// A foreign, newer, damaged or truncated head; more slots than there is room for.
    pub fn parse(heap: &[u8], size: u64) -> Result<Self, FormatError> {
        let media: &Media = SIGNATURE.read(heap)?;
        check_zero(SIGNATURE.structure, 12, media.zero.as_bytes())?;
        check_zero(SIGNATURE.structure, 48, &media.reserved)?;
        let end = heap.len().min(SLOTS_OFFSET as usize);
        let reserved = heap.get(HEAD_SIZE..end).unwrap_or_default();
        check_zero(SIGNATURE.structure, HEAD_SIZE as u64, reserved)?;
        let (slots, stack_size) = (media.slots.get(), media.stack_size.get());
        if !stack_size.is_multiple_of(LINE as u32) || !(1..=STACK_SIZE_MAX).contains(&stack_size) {
            let expected = format!("a multiple of 64, up to {STACK_SIZE_MAX:#x}");
            return Err(SIGNATURE.field("stack size", 44, stack_size, expected));
        }
        let room = slots_max(size, stack_size);
        if slots == 0 || u64::from(slots) > room {
            let expected = format!("1 to {room}, for which there is room");
            return Err(SIGNATURE.field("slots", 40, slots, expected));
        }
        Ok(Self {
            client: Uuid(media.client),
            salt: media.salt.get(),
            slots,
            stack_size,
        })
    }

    /// Where in the heap slot `slot` begins.
    pub const fn slot_offset(&self, slot: u32) -> u64 {
        SLOTS_OFFSET + slot as u64 * slot_size(self.stack_size)
    }

    /// Where in the heap a bank of a slot begins.
    pub const fn bank_offset(&self, slot: u32, bank: usize) -> u64 {
        self.slot_offset(slot) + (bank % BANKS) as u64 * BANK_SIZE
    }

    /// Where in the heap the stack of a slot begins.
    pub const fn stack_offset(&self, slot: u32) -> u64 {
        self.slot_offset(slot) + BANKS as u64 * BANK_SIZE
    }

    /// What the checksums of a slot begin with.
    pub fn slot_salt(&self, slot: u32) -> SlotSalt {
        SlotSalt::new(self.salt, slot)
    }
}
