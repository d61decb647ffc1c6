//! What the words of records and frames mean, one type for each.

use std::fmt;
use std::num::NonZeroU64;

use serde::{Deserialize, Serialize};
use zerocopy::little_endian::{U16, U32};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::consts::ADDRESS_END;

const REGION_BITS: u32 = 16;
/// The largest hash of a function's code.
pub const FUNCTION_MAX: u64 = u64::MAX >> REGION_BITS;
const NAMED: u64 = 1 << 63;
const LOCK_ALIGN: u64 = 4;

/// Where code goes on: a function and a region of it. Never 0, which says that a thread is in no section.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Code(NonZeroU64);

impl Code {
    /// Region `region` of the function with this hash. `None` for a hash of more than 48 bits, and where both are 0.
    #[inline]
    pub const fn new(function: u64, region: u16) -> Option<Self> {
        if function > FUNCTION_MAX {
            return None;
        }
        Self::from_word(function << REGION_BITS | region as u64)
    }

    /// The code of a word on the media; `None` for 0.
    #[inline]
    pub const fn from_word(word: u64) -> Option<Self> {
        match NonZeroU64::new(word) {
            Some(word) => Some(Self(word)),
            None => None,
        }
    }

    /// The word on the media.
    #[inline]
    pub const fn to_word(self) -> u64 {
        self.0.get()
    }

    /// The hash of the function's code: 48 bits.
    pub const fn function(self) -> u64 {
        self.0.get() >> REGION_BITS
    }

    /// Which region of the function.
    pub const fn region(self) -> u16 {
        self.0.get() as u16
    }
}

impl fmt::Display for Code {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (region, function) = (self.region(), self.function());
        write!(out, "region {region} of function {function:#014x}")
    }
}

/// A lock, by an identity that lasts longer than the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Lock(u64);

/// What tells a lock from others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockKind {
    /// It lies in a persistent object, at this address.
    At(u64),
    /// It lies in a program, and has a name: 63 bits of the name's hash.
    Named(u64),
}

impl Lock {
    /// The lock at an address. `None` where no lock can lie there: it is a multiple of 4, not 0, below 2^47.
    #[inline]
    pub const fn at(address: u64) -> Option<Self> {
        if address != 0 && address < ADDRESS_END && address.is_multiple_of(LOCK_ALIGN) {
            Some(Self(address))
        } else {
            None
        }
    }

    /// The lock with a name whose hash this is. The uppermost bit of the hash does not count.
    #[inline]
    pub const fn named(hash: u64) -> Self {
        Self(hash | NAMED)
    }

    /// The lock of a word on the media; `None` for one that nobody has written.
    #[inline]
    pub const fn from_word(word: u64) -> Option<Self> {
        if word & NAMED != 0 {
            Some(Self(word))
        } else {
            Self::at(word)
        }
    }

    /// The word on the media.
    #[inline]
    pub const fn to_word(self) -> u64 {
        self.0
    }

    /// Where it lies, or what it is called.
    pub const fn kind(self) -> LockKind {
        match self.0 & NAMED {
            0 => LockKind::At(self.0),
            _ => LockKind::Named(self.0 & !NAMED),
        }
    }
}

/// A frame, as whoever relies on it names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameLink {
    /// The word of the stack at which the frame begins.
    pub index: u16,
    /// The frame's checksum: another frame in the same place is another one.
    pub checksum: u32,
}

/// How the stack of a slot is used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StackTop {
    /// The first word that is free. Frames that are named lie below.
    pub free: u16,
    /// The innermost frame; none where no caller is in the section.
    pub frame: Option<FrameLink>,
}

#[derive(Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(super) struct MediaStack {
    free: U16,
    frame: U16,
    checksum: U32,
}

const _: () = assert!(size_of::<MediaStack>() == 8);
const _: () = assert!(std::mem::offset_of!(MediaStack, free) == 0);
const _: () = assert!(std::mem::offset_of!(MediaStack, frame) == 2);
const _: () = assert!(std::mem::offset_of!(MediaStack, checksum) == 4);

impl StackTop {
    /// The word on the media. `None` for a frame at the last index there is, which no stack reaches.
    #[inline]
    pub(super) fn to_media(self) -> Option<MediaStack> {
        let (frame, checksum) = match self.frame {
            Some(link) => (link.index.checked_add(1)?, link.checksum),
            None => (0, 0),
        };
        Some(MediaStack {
            free: self.free.into(),
            frame: frame.into(),
            checksum: checksum.into(),
        })
    }

    /// The stack of a word on the media; `None` for a checksum of no frame.
    pub(super) fn from_media(media: MediaStack) -> Option<Self> {
        let (frame, checksum) = (media.frame.get(), media.checksum.get());
        let frame = match frame.checked_sub(1) {
            Some(index) => Some(FrameLink { index, checksum }),
            None if checksum == 0 => None,
            None => return None,
        };
        let free = media.free.get();
        Some(Self { free, frame })
    }
}

/// A word to be written again before the section goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Redo {
    /// Where: a multiple of 8 in the store's range.
    pub address: u64,
    /// Which of its bytes: bit i is that at `address` + i. At least one.
    pub bytes: u8,
    /// What, as a little-endian number. Nothing is said by the other bytes.
    pub value: u64,
}

const BYTES_SHIFT: u32 = 56;

impl Redo {
    /// All bytes of a word.
    pub const WHOLE: u8 = u8::MAX;

    /// The bits of the value that are written.
    pub fn mask(self) -> u64 {
        let of_byte = |i: u32| match self.bytes >> i & 1 {
            1 => 0xff << (8 * i),
            _ => 0,
        };
        (0..8).map(of_byte).sum()
    }

    /// The words on the media. `None` for an address that is none of a word, and without bytes.
    #[inline]
    pub(super) fn to_words(self) -> Option<[u64; 2]> {
        let is_word = self.address.is_multiple_of(8) && self.address >> BYTES_SHIFT == 0;
        let address = self.address | u64::from(self.bytes) << BYTES_SHIFT;
        (is_word && self.bytes != 0).then_some([address, self.value])
    }

    /// What two words on the media say, whatever the address and the bytes are.
    pub(super) fn from_words([address, value]: [u64; 2]) -> Self {
        Self {
            address: address & ((1 << BYTES_SHIFT) - 1),
            bytes: (address >> BYTES_SHIFT) as u8,
            value,
        }
    }
}

/// Bits of a bitmap of which nothing but this record tells yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bits {
    /// The word of the bitmap: a multiple of 8 in the store's range.
    pub address: u64,
    /// Which bits of it.
    pub mask: u64,
    /// What becomes of them.
    pub change: BitsChange,
}

/// What becomes of bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BitsChange {
    /// The section has taken what they stand for: they are 1 before it goes on.
    Taken,
    /// The same, and the bytes of what they stand for are zeros before it goes on.
    TakenBlank,
    /// A section has freed it: they are 0 when all sections have ended that were under way.
    Freed,
}

/// The bit of an address that says [`BitsChange::Freed`].
const FREED: u64 = 1;
/// The one that says [`BitsChange::TakenBlank`].
const BLANK: u64 = 2;

impl Bits {
    /// The words on the media. `None` for an address that is none of a word.
    #[inline]
    pub(super) fn to_words(self) -> Option<[u64; 2]> {
        let flag = match self.change {
            BitsChange::Taken => 0,
            BitsChange::TakenBlank => BLANK,
            BitsChange::Freed => FREED,
        };
        let is_word = self.address.is_multiple_of(8);
        is_word.then_some([self.address | flag, self.mask])
    }

    /// The bits of two words on the media, whatever the address is.
    pub(super) fn from_words([address, mask]: [u64; 2]) -> Self {
        let (flag, change) = match address & (FREED | BLANK) {
            0 => (0, BitsChange::Taken),
            BLANK => (BLANK, BitsChange::TakenBlank),
            // With both it is no address.
            _ => (FREED, BitsChange::Freed),
        };
        Self {
            address: address & !flag,
            mask,
            change,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_written_again_in_the_bytes_that_are_named() {
        let redo = |address, bytes| Redo {
            address,
            bytes,
            value: 5,
        };
        assert_eq!(redo(8, 0b1000_0011).mask(), 0xff00_0000_0000_ffff);
        assert_eq!(redo(8, Redo::WHOLE).mask(), u64::MAX);
        assert_eq!(redo(8, 3).to_words(), Some([3 << 56 | 8, 5]));
        assert_eq!(Redo::from_words([3 << 56 | 8, 5]), redo(8, 3));
        for impossible in [redo(9, 3), redo(8, 0), redo(1 << 56, 3)] {
            assert_eq!(impossible.to_words(), None);
        }
    }

    #[test]
    fn code_and_locks_come_back_and_impossible_ones_do_not_exist() {
        let code = Code::new(FUNCTION_MAX, 7).unwrap();
        assert_eq!((code.function(), code.region()), (FUNCTION_MAX, 7));
        assert_eq!(Code::from_word(code.to_word()), Some(code));
        assert_eq!(Code::new(FUNCTION_MAX + 1, 7), None);
        assert_eq!(Code::new(0, 0), None);
        assert_eq!(Code::new(0, 1).map(Code::to_word), Some(1));
        for address in [0, 2, 6, ADDRESS_END, ADDRESS_END + 4] {
            assert_eq!(Lock::at(address), None);
            assert_eq!(Lock::from_word(address), None);
        }
        for lock in [Lock::at(4).unwrap(), Lock::named(0), Lock::named(u64::MAX)] {
            assert_eq!(Lock::from_word(lock.to_word()), Some(lock));
        }
        assert_eq!(Lock::named(u64::MAX).kind(), LockKind::Named(u64::MAX >> 1));
        assert_eq!(
            Lock::at(ADDRESS_END - 4).unwrap().kind(),
            LockKind::At(ADDRESS_END - 4)
        );
    }

    #[test]
    fn a_stack_without_a_frame_has_no_checksum() {
        let none = StackTop::default();
        assert_eq!(none.to_media().unwrap().as_bytes(), [0; 8]);
        for index in [0, 1, u16::MAX - 1] {
            let frame = Some(FrameLink { index, checksum: 0 });
            let top = StackTop { free: 9, frame };
            assert_eq!(StackTop::from_media(top.to_media().unwrap()), Some(top));
        }
        let frame = Some(FrameLink {
            index: u16::MAX,
            checksum: 1,
        });
        assert!(StackTop { free: 0, frame }.to_media().is_none());
        let media = MediaStack {
            free: 0.into(),
            frame: 0.into(),
            checksum: 1.into(),
        };
        assert_eq!(StackTop::from_media(media), None);
    }
}
