//! The address space: where puddles are mapped, and which puddle an address belongs to.
//!
//! A range is reserved once in a process for each base that a store names. A table with one entry for each 2 MiB
//! gives the puddle of an address in three instructions; it is sparse virtual memory.

use std::path::Path;
use std::ptr::{self, NonNull};
use std::sync::Mutex;
use std::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering};

use durum_format::UNIT;
use rustix::mm::{MapFlags, ProtFlags};

use crate::addresses::{Addresses, MappingKind, Refused, mapping_failed};
use crate::error::Result;
use crate::primitive::locked;

const UNIT_LOG2: u32 = UNIT.trailing_zeros();

/// What is entered for the addresses of a puddle: the space does not look at it.
pub(crate) enum Entry {}

/// Units of the first range whose puddles wait to be mapped: a bit for each.
#[derive(Default)]
pub(crate) struct Claims(Vec<u64>);

/// One reserved range of addresses.
pub(crate) struct Space {
    base: usize,
    /// Of both ranges.
    size: usize,
    addresses: Addresses,
    /// `size >> UNIT_LOG2` entries; null where no puddle is mapped.
    table: NonNull<AtomicPtr<Entry>>,
    /// Held while puddles are mapped or unmapped.
    change: Mutex<Claims>,
}

// SAFETY: the table is a leaked mapping of atomics that is never unmapped.
unsafe impl Send for Space {}
// SAFETY: all access to the table is atomic, and it is never unmapped.
unsafe impl Sync for Space {}

/// The spaces of this process. Few programs have more than one; they are never given back, because pointers into them
/// may live on.
const SPACES_MAX: usize = 8;
static SPACES: [AtomicPtr<Space>; SPACES_MAX] =
    [const { AtomicPtr::new(ptr::null_mut()) }; SPACES_MAX];
static RESERVE: Mutex<()> = Mutex::new(());
/// How many of `SPACES` are set.
static SPACE_COUNT: AtomicUsize = AtomicUsize::new(0);

impl Space {
    /// The space of `space_size` bytes at `base` and the second range behind it, reserved now if this process has not
    /// done so before.
    pub(crate) fn reserve(base: u64, space_size: u64, store: &Path) -> Result<&'static Space> {
        let (base, size) = (base as usize, 2 * space_size as usize);
        let _guard = locked(&RESERVE);
        if let Some(space) = spaces().find(|space| space.base == base && space.size == size) {
            return Ok(space);
        }
        let count = SPACE_COUNT.load(Ordering::Relaxed);
        if count == SPACES_MAX
            || spaces().any(|space| base < space.base + space.size && space.base < base + size)
        {
            return Err(Refused::taken(base, size).error(store));
        }
        let addresses = Addresses::at(base, size).map_err(|refused| refused.error(store))?;
        let bytes = (size >> UNIT_LOG2) * size_of::<AtomicPtr<Entry>>();
        // SAFETY: a fresh anonymous mapping anywhere; zero bytes are null pointers.
        let table = unsafe {
            rustix::mm::mmap_anonymous(
                ptr::null_mut(),
                bytes,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::PRIVATE | MapFlags::NORESERVE,
            )
        }
        .map_err(|errno| {
            let what = "reserving the address table";
            mapping_failed(what, errno, bytes, MappingKind::Data, store)
        })?;
        let Some(table) = NonNull::new(table.cast()) else {
            return Err(Refused::taken(base, size).error(store));
        };
        let space = Box::leak(Box::new(Space {
            base,
            size,
            addresses,
            table,
            change: Mutex::default(),
        }));
        SPACES[count].store(space, Ordering::Release);
        SPACE_COUNT.store(count + 1, Ordering::Release);
        Ok(space)
    }

    /// Makes sure that nobody else in this process has the addresses of a puddle.
    pub(crate) fn need(&self, address: usize, size: usize, store: &Path) -> Result<()> {
        self.addresses
            .need(address..address + size)
            .map_err(|refused| refused.error(store))
    }

    /// Takes the addresses of a puddle back: nothing is mapped there any more.
    pub(crate) fn give_back(&self, address: usize, size: usize) {
        self.addresses.give_back(address..address + size);
    }

    /// Where the process may not have the whole space: makes sure of the next `bytes` from `next` on, where new puddles
    /// are placed, in both ranges.
    pub(crate) fn prepare_growth(&self, next: u64, bytes: u64, store: &Path) -> Result<()> {
        if self.addresses.is_whole() || bytes == 0 {
            return Ok(());
        }
        let space_size = self.size / 2;
        let bytes = bytes.next_multiple_of(UNIT).min(space_size as u64) as usize;
        let next = next as usize;
        let upward = bytes.min(self.base + space_size - next);
        for range in [self.base, self.base + space_size] {
            let offset = next - self.base;
            self.need(range + offset, upward, store)?;
            // Placement wraps around.
            self.need(range, bytes - upward, store)?;
        }
        Ok(())
    }

    /// Keeps others from mapping and unmapping.
    pub(crate) fn changing(&self) -> std::sync::MutexGuard<'_, Claims> {
        locked(&self.change)
    }

    /// Takes the addresses of puddles that will be mapped there later. False where another one has them.
    pub(crate) fn claim(&self, address: usize, size: usize) -> bool {
        let mut claims = self.changing();
        if self.occupant(address, size).is_some() || self.is_claimed(&claims, address, size) {
            return false;
        }
        claims
            .0
            .resize((self.size >> UNIT_LOG2).div_ceil(2 * 64), 0);
        for unit in self.units(address, size) {
            claims.0[unit / 64] |= 1 << (unit % 64);
        }
        true
    }

    /// The counterpart of `claim`, also for a part.
    pub(crate) fn give_claim_back(&self, claims: &mut Claims, address: usize, size: usize) {
        for unit in self.units(address, size) {
            claims.0[unit / 64] &= !(1 << (unit % 64));
        }
    }

    /// Whether any puddle waits to be mapped in `[address, address + size)`.
    pub(crate) fn is_claimed(&self, claims: &Claims, address: usize, size: usize) -> bool {
        let is_claimed = |word: &u64, unit: usize| word >> (unit % 64) & 1 == 1;
        let mut units = self.units(address, size);
        units.any(|unit| (claims.0.get(unit / 64)).is_some_and(|word| is_claimed(word, unit)))
    }

    fn units(&self, address: usize, size: usize) -> std::ops::Range<usize> {
        let first = (address - self.base) >> UNIT_LOG2;
        first..first + (size >> UNIT_LOG2)
    }

    #[inline]
    fn slot(&self, address: usize) -> Option<&AtomicPtr<Entry>> {
        let offset = address.wrapping_sub(self.base);
        if offset >= self.size {
            return None;
        }
        // SAFETY: offset < size, so the index is inside the table.
        Some(unsafe { self.table.add(offset >> UNIT_LOG2).as_ref() })
    }

    /// Whether any puddle is mapped in `[address, address + size)`.
    pub(crate) fn occupant(&self, address: usize, size: usize) -> Option<NonNull<Entry>> {
        (address..address + size)
            .step_by(UNIT as usize)
            .find_map(|unit| NonNull::new(self.slot(unit)?.load(Ordering::Acquire)))
    }

    /// Enters a puddle in the table, or removes it (`null`).
    pub(crate) fn enter(&self, address: usize, size: usize, puddle: *mut Entry) {
        if puddle.is_null() {
            REMOVED.fetch_add(1, Ordering::Release);
        }
        for unit in (address..address + size).step_by(UNIT as usize) {
            if let Some(slot) = self.slot(unit) {
                slot.store(puddle, Ordering::Release);
            }
        }
    }

    pub(crate) fn contains(&self, address: usize, size: usize) -> bool {
        address >= self.base
            && address - self.base <= self.size
            && size <= self.size - (address - self.base)
    }
}

fn spaces() -> impl Iterator<Item = &'static Space> {
    // SAFETY: entries are leaked boxes, set once.
    SPACES
        .iter()
        .map_while(|space| unsafe { space.load(Ordering::Acquire).as_ref() })
}

/// Whether an address belongs to one of the process's spaces. Async-signal-safe.
pub(crate) fn is_reserved(address: usize) -> bool {
    spaces().any(|space| address.wrapping_sub(space.base) < space.size)
}

static REMOVED: AtomicU64 = AtomicU64::new(0);

/// How many puddles were removed in this process. As long as that stays the same, so does what lies at an address where
/// a puddle is.
#[inline(always)]
pub(crate) fn removed() -> u64 {
    REMOVED.load(Ordering::Acquire)
}

/// The mapped puddle that contains an address.
///
/// The pointer stays valid while the store that the puddle belongs to is open: puddles given back are kept until then.
#[inline(always)]
pub(crate) fn entry_at(address: usize) -> Option<NonNull<Entry>> {
    match in_first_space(address)? {
        Some(slot) => NonNull::new(slot.load(Ordering::Acquire)),
        None => entry_further_at(address),
    }
}

/// The same, without a call: only if it lies in the first space, where it mostly does.
#[inline(always)]
pub(crate) fn entry_near_at(address: usize) -> Option<NonNull<Entry>> {
    NonNull::new(in_first_space(address)??.load(Ordering::Acquire))
}

/// The address's place in the table of the first space, if it lies there. `None`: there is no space.
#[inline(always)]
fn in_first_space(address: usize) -> Option<Option<&'static AtomicPtr<Entry>>> {
    // SAFETY: the first entry is null or a leaked box.
    let first = unsafe { SPACES[0].load(Ordering::Acquire).as_ref() }?;
    Some(first.slot(address))
}

/// The same, where the process has several spaces.
#[inline(never)]
fn entry_further_at(address: usize) -> Option<NonNull<Entry>> {
    spaces()
        .skip(1)
        .find_map(|space| NonNull::new(space.slot(address)?.load(Ordering::Acquire)))
}

/// Whether an address lies in the second range, where the puddle in front of it has its back copy or its home.
pub(crate) fn is_behind_a_puddle(address: usize) -> bool {
    spaces().any(|space| {
        let slot = space.slot(address.wrapping_sub(space.size / 2));
        slot.is_some_and(|slot| !slot.load(Ordering::Acquire).is_null())
    })
}
