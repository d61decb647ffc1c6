//! Sizes that every layout shares. Told in `docs/format/README.md`.

/// Puddle sizes are multiples of this many bytes, and puddle addresses are multiples of it.
pub const UNIT: u64 = 2 << 20;

/// Bytes of puddle header for each [`UNIT`] of the puddle; the rest is the heap.
pub const HEADER_PER_UNIT: u64 = 4 << 10;

/// The smallest run of bytes that the upper level of the heap hands out.
pub const GRANULE: u64 = 256;

/// Bytes of a cache line: what one write-back covers.
pub const LINE: u64 = 64;

/// Bytes of a sector: what a disk writes whole or not at all.
pub const SECTOR: u64 = 512;

/// Objects up to and including this many bytes live in slabs.
pub const SLAB_OBJECT_MAX: u64 = 256;

/// Where a store's address range begins unless its maker says otherwise.
pub const DEFAULT_BASE: u64 = 0x2000_0000_0000;

/// Bytes of a store's address range. A second range of this size lies right behind it.
pub const SPACE_SIZE: u64 = 1 << 40;

/// The largest address plus one that a store's two ranges may reach (47 bits: user space on x86-64 and AArch64).
pub const ADDRESS_END: u64 = 1 << 47;

const _: () = assert!(DEFAULT_BASE.is_multiple_of(UNIT) && SPACE_SIZE.is_multiple_of(UNIT));
const _: () = assert!(DEFAULT_BASE + 2 * SPACE_SIZE <= ADDRESS_END);
const _: () = assert!(
    (UNIT - HEADER_PER_UNIT).is_multiple_of(GRANULE) && HEADER_PER_UNIT.is_multiple_of(GRANULE)
);
