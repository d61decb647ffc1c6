//! What sections may point to in the program, by names that last: code that completes them has it elsewhere.

use std::ffi::c_void;
use std::sync::{Mutex, OnceLock};

use durum::primitive::locked;

/// A function, a constant or a variable of the program (docs/reference/ido-ir.md).
#[derive(Debug)]
#[repr(C)]
pub struct Addressed {
    /// Where it lies.
    pub place: *const c_void,
    /// How many addresses from there on lead to it.
    pub size: u64,
    /// 30 bits of a hash of its name, or of what is in it.
    pub name: u64,
}

// SAFETY: a table of constants, as `register` demands.
unsafe impl Sync for Addressed {}

static TABLES: Mutex<Vec<&'static [Addressed]>> = Mutex::new(Vec::new());

/// Enters what a module tells.
///
/// # Safety
/// There are `count` of them, and they do not change as long as the program runs.
pub(crate) unsafe fn register(table: *const Addressed, count: u64) {
    if count > 0 {
        // SAFETY: as the caller promises.
        let table = unsafe { std::slice::from_raw_parts(table, count as usize) };
        locked(&TABLES).push(table);
    }
}

/// Of all modules, in order of places. A name that two of them have in different places is nobody's.
#[derive(Debug)]
struct Objects(Vec<Object>);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Object {
    place: u64,
    size: u64,
    name: u64,
}

impl Objects {
    fn of(tables: &[&[Addressed]]) -> Objects {
        let all = tables.iter().flat_map(|table| table.iter());
        let mut objects: Vec<Object> = all
            .map(|one| Object {
                place: one.place.addr() as u64,
                size: one.size,
                name: one.name,
            })
            .collect();
        // What is declared in several files, or in none that was linked.
        objects.sort_unstable_by_key(|object| (object.name, object.place, object.size));
        objects.dedup_by_key(|object| (object.name, object.place));
        let twice = |name| {
            let first = objects.partition_point(|object| object.name < name);
            objects.get(first + 1).is_some_and(|next| next.name == name)
        };
        let mut known: Vec<Object> = (objects.iter())
            .filter(|object| object.place != 0 && !twice(object.name))
            .copied()
            .collect();
        known.sort_unstable();
        Objects(known)
    }

    fn told(&self, address: u64) -> Option<(u64, u64)> {
        let behind = self.0.partition_point(|object| object.place <= address);
        let object = self.0.get(behind.checked_sub(1)?)?;
        let distance = address - object.place;
        (distance < object.size).then_some((object.name, distance))
    }

    fn place_of(&self, name: u64, distance: u64) -> Option<u64> {
        let object = self.0.iter().find(|object| object.name == name)?;
        (distance < object.size).then_some(object.place + distance)
    }
}

/// All that was told when a section first had a pointer into the program: modules that come later have no part in it.
fn objects() -> &'static Objects {
    static OBJECTS: OnceLock<Objects> = OnceLock::new();
    OBJECTS.get_or_init(|| Objects::of(&locked(&TABLES)))
}

/// The name of what an address leads to, and the distance from its begin.
pub(crate) fn told(address: u64) -> Option<(u64, u64)> {
    objects().told(address)
}

/// The counterpart, in this run; `None`, if there is no such name here, or not so much of it.
pub(crate) fn place_of(name: u64, distance: u64) -> Option<u64> {
    objects().place_of(name, distance)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(place: usize, size: u64, name: u64) -> Addressed {
        let place = std::ptr::without_provenance(place);
        Addressed { place, size, name }
    }

    #[test]
    fn names_and_distances_lead_to_the_same_elsewhere() {
        let here = Objects::of(&[&[at(100, 4, 7), at(104, 9, 8)], &[at(300, 1, 9)]]);
        let there = Objects::of(&[&[at(900, 9, 8)], &[at(300, 1, 9), at(40, 4, 7)]]);
        for (address, elsewhere) in [(100, 40), (103, 43), (104, 900), (112, 908), (300, 300)] {
            let (name, distance) = here.told(address).unwrap();
            assert_eq!(there.place_of(name, distance), Some(elsewhere));
        }
        for address in [99, 113, 299, 301] {
            assert_eq!(here.told(address), None, "{address}");
        }
        assert_eq!(there.place_of(7, 4), None);
        assert_eq!(there.place_of(5, 0), None);
    }

    #[test]
    fn a_name_that_two_have_is_nobodys() {
        let both = Objects::of(&[
            &[at(100, 4, 7), at(200, 4, 7)],
            &[at(300, 4, 8)],
            &[at(300, 4, 8)],
        ]);
        assert_eq!(both.told(100), None);
        assert_eq!(both.place_of(7, 0), None);
        assert_eq!(both.told(301), Some((8, 1)));
        assert_eq!(Objects::of(&[&[at(0, 4, 7)]]).told(1), None);
    }
}
