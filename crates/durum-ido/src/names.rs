//! Locks of the program itself, by names that last, and what stands in their place where no lock guards a section.

use std::ffi::c_void;
use std::sync::Mutex;

use durum::primitive::locked;
use durum_format::section::Lock;

use crate::fatal::fatal;

/// A global variable that may be or hold a lock (docs/reference/ido-ir.md).
#[derive(Debug)]
#[repr(C)]
pub struct GlobalLock {
    /// Where it lies.
    pub place: *mut c_void,
    /// Its bytes.
    pub size: u64,
    /// 43 bits: a hash of its name.
    pub name: u64,
}

// SAFETY: a table of constants, as `register` demands.
unsafe impl Sync for GlobalLock {}

/// A word of 4 bytes of the variable stands in so many bits below the name.
const PLACE_BITS: u32 = 20;

static TABLES: Mutex<Vec<&'static [GlobalLock]>> = Mutex::new(Vec::new());

/// Enters the variables of a module.
///
/// # Safety
/// There are `count` of them, and they do not change as long as the program runs.
pub(crate) unsafe fn register(locks: *const GlobalLock, count: u64) {
    if count > 0 {
        // SAFETY: as the caller promises.
        let table = unsafe { std::slice::from_raw_parts(locks, count as usize) };
        locked(&TABLES).push(table);
    }
}

fn find<R>(look: impl FnMut(&GlobalLock) -> Option<R>) -> Option<R> {
    let tables = locked(&TABLES);
    tables.iter().flat_map(|table| table.iter()).find_map(look)
}

/// The name of the lock at an address; none if it is in no such variable. The program ends if another one has it, too.
pub(crate) fn name_of(address: usize) -> Option<Lock> {
    let (place, name, distance) = find(|lock| {
        let distance = address.wrapping_sub(lock.place.addr()) as u64;
        let is_in = distance < lock.size && distance / 4 < 1 << PLACE_BITS;
        is_in.then_some((lock.place, lock.name, distance))
    })?;
    if find(|other| (other.name == name && other.place != place).then_some(())).is_some() {
        fatal!(
            "the lock at {address:#x} is held by a section that stores, and has the name of another one, which would be taken in its place after a crash: two files of one name have a variable of one name; rename one"
        );
    }
    Some(Lock::named((name << PLACE_BITS) | (distance / 4)))
}

/// What a record says of so many regions that no lock guards: no variable has the name 0.
pub(crate) fn unguarded(count: u32) -> Option<Lock> {
    let is_counted = (1..1 << PLACE_BITS).contains(&count);
    is_counted.then(|| Lock::named(count.into()))
}

/// The counterpart. `None`, if the name is that of a lock.
pub(crate) fn unguarded_of(name: u64) -> Option<u32> {
    (1..1 << PLACE_BITS).contains(&name).then_some(name as u32)
}

/// Where the lock with this name lies in this run.
pub(crate) fn place_of(name: u64) -> Option<usize> {
    find(|lock| {
        let distance = (name & ((1 << PLACE_BITS) - 1)) as usize * 4;
        (name >> PLACE_BITS == lock.name).then(|| lock.place.addr() + distance)
    })
}
