//! The model: what the pool of a test holds, in plain memory.

use std::ops::Range;
use std::sync::Arc;

/// Bytes of the root that tests write.
pub const BYTES: usize = 4096;
/// Places of the root that hold an object or none.
pub const SLOTS: usize = 24;

/// An object and what it is filled with. All three change in one transaction.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Slot {
    pub object: *mut u8,
    pub size: u64,
    pub tag: u64,
}
durum::describe!(Slot as "crash slot" { object, size, tag });

/// The root object of every test's pool.
#[repr(C)]
pub struct Root {
    pub bytes: [u8; BYTES],
    pub slots: [Slot; SLOTS],
    /// An object of bytes that some tests have, made before the recording.
    pub large: *mut u8,
    pub large_size: u64,
}
durum::describe!(Root as "crash root" { bytes, slots, large, large_size });

/// The type of all objects but the root. Without pointers, so that a check can tell a leak for sure; registered with
/// the root, whose pointers lead to it.
pub fn byte_type() -> u64 {
    <u8 as durum::Described>::description().id()
}

/// An object that a slot holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Blob {
    pub address: usize,
    pub size: usize,
    pub tag: u64,
}

/// What a pool holds: the bytes of the root, then those of the large object, and the slots.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct State {
    pub bytes: Arc<Vec<u8>>,
    /// Bytes that may hold anything: they were clobbered by a transaction that did not commit.
    any: Arc<Vec<bool>>,
    pub slots: [Option<Blob>; SLOTS],
    /// Objects that are allocated and that no slot holds.
    pub loose: Vec<Blob>,
}

impl State {
    pub fn new(large_size: usize) -> State {
        State {
            bytes: Arc::new(vec![0; BYTES + large_size]),
            any: Arc::new(vec![false; BYTES + large_size]),
            slots: [None; SLOTS],
            loose: Vec::new(),
        }
    }

    pub fn write(&mut self, offset: usize, bytes: &[u8]) {
        let range = offset..offset + bytes.len();
        Arc::<Vec<u8>>::make_mut(&mut self.bytes)[range.clone()].copy_from_slice(bytes);
        self.set_any(range, false);
    }

    /// The bytes may hold anything from now on.
    pub fn clobber(&mut self, offset: usize, len: usize) {
        self.set_any(offset..offset + len, true);
    }

    /// Whether a byte may hold anything.
    pub fn is_any(&self, offset: usize) -> bool {
        self.any[offset]
    }

    /// How many bytes may hold anything.
    pub fn uncertain(&self) -> usize {
        self.any.iter().filter(|any| **any).count()
    }

    fn set_any(&mut self, range: Range<usize>, any: bool) {
        // States share what does not change.
        if self.any[range.clone()].contains(&!any) {
            Arc::<Vec<bool>>::make_mut(&mut self.any)[range].fill(any);
        }
    }
}

/// What a tag fills an object with; 0 stands for zeros.
pub fn pattern(tag: u64, len: usize) -> Vec<u8> {
    if tag == 0 {
        return vec![0; len];
    }
    let mut random = super::Random::new(tag);
    let mut bytes = Vec::with_capacity(len + 8);
    while bytes.len() < len {
        bytes.extend_from_slice(&random.next().to_le_bytes());
    }
    bytes.truncate(len);
    bytes
}

/// Which lane changes which byte and slot. Lanes run in threads of their own and must not touch each other's.
#[derive(Clone)]
pub struct Owners {
    pub bytes: fn(usize) -> usize,
    pub slots: fn(usize) -> usize,
}

impl Owners {
    /// Everything belongs to the only lane.
    pub fn one() -> Owners {
        Owners {
            bytes: |_| 0,
            slots: |_| 0,
        }
    }
}

/// What was found in an image.
pub struct Found {
    pub bytes: Vec<u8>,
    pub slots: [Option<Blob>; SLOTS],
}

/// Bytes that are compared at once.
const PART: usize = 256;

impl Found {
    /// The first difference from a lane's share of `wanted`, or none.
    pub fn differs(&self, wanted: &State, owners: &Owners, lane: usize) -> Option<String> {
        if self.bytes.len() != wanted.bytes.len() {
            return Some(format!(
                "{} bytes instead of {}",
                self.bytes.len(),
                wanted.bytes.len()
            ));
        }
        // Megabytes for each image, of which most are equal.
        let parts = self.bytes.chunks(PART).zip(wanted.bytes.chunks(PART));
        for (number, (found, expected)) in parts.enumerate() {
            if found == expected {
                continue;
            }
            for (offset, (found, expected)) in (number * PART..).zip(found.iter().zip(expected)) {
                if found != expected && !wanted.any[offset] && (owners.bytes)(offset) == lane {
                    return Some(format!(
                        "byte {offset} is {found:#04x} instead of {expected:#04x}"
                    ));
                }
            }
        }
        for (index, (found, wanted)) in self.slots.iter().zip(&wanted.slots).enumerate() {
            if found != wanted && (owners.slots)(index) == lane {
                return Some(format!(
                    "slot {index} holds {found:x?} instead of {wanted:x?}"
                ));
            }
        }
        None
    }
}
