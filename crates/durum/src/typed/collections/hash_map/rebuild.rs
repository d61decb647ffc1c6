//! A hash map that is built anew: every entry is put into a table of as many groups, which then takes the place of the
//! one that is there.

use std::hash::Hash;

use durum_service::{NewPuddles, Room};

use super::PHashMap;
use super::hasher::hash_of;
use super::table::Table;
use crate::typed::collections::map::rebuild::{
    DAMAGED, Keys, MapType, NO_KEY, Outcome, Rebuild, asked, doubled,
};
use crate::typed::collections::map::slot::map_name;
use crate::typed::pool_type::PoolType;
use crate::typed::psafe::PSafe;

impl<K: PSafe, V: PSafe, P: PoolType> MapType for PHashMap<K, V, P> {
    fn parts() -> [String; 2] {
        [".group", ".slot"].map(|part| map_name::<K, V>("PHashMap") + part)
    }
}

impl<K: PSafe + Eq + Hash, V: PSafe, P: PoolType> Rebuild for PHashMap<K, V, P> {
    fn room(&self, most: u64) -> u64 {
        let table = Table::<K, V>::at(self.table, self.groups);
        // Each group has a word at least.
        let fits = self.groups as u64 <= most / size_of::<u64>() as u64;
        let bytes = table.bytes().filter(|_| fits && self.table != 0);
        bytes.map_or(0, |bytes| bytes.saturating_add(Table::<K, V>::ALIGN) as u64)
    }

    unsafe fn rebuild(&self, new: &mut NewPuddles, room: &mut Room) -> Outcome {
        if self.table == 0 {
            return Ok(Ok(()));
        }
        let (old, align) = (self.table(), Table::<K, V>::ALIGN);
        let whole = old.bytes().filter(|_| self.groups.is_power_of_two());
        let found = new.object(self.table as u64)?;
        let Some(bytes) = whole.filter(|bytes| found.is_some_and(|has| *bytes as u64 <= has))
        else {
            return Ok(Err(DAMAGED.to_owned()));
        };
        if !new.claim(bytes as u64) || old.entries().count() != self.len {
            return Ok(Err(DAMAGED.to_owned()));
        }
        let keys = Keys::<K>::new();
        let has_keys = old.entries().all(|found| {
            // SAFETY: a place of the table; nobody writes the map meanwhile.
            unsafe { keys.is_key(found.place().key()) }
        });
        if !has_keys {
            return Ok(Err(NO_KEY.to_owned()));
        }
        let room = room.zeroed(bytes.saturating_add(align))?;
        let start = room.as_mut_ptr().expose_provenance();
        let made = Table::<K, V>::at(start.next_multiple_of(align), self.groups);
        let put = asked("`Hash` or `Eq`", || {
            old.entries().try_for_each(|found| {
                // SAFETY: an entry; nobody writes the map meanwhile.
                let key = unsafe { &*found.place().key() };
                let hash = hash_of(self.seed, key);
                match made.find(hash, |other| other == key) {
                    Some(_) => Err(doubled(key)),
                    None => {
                        made.put_copy(hash, found);
                        Ok(())
                    }
                }
            })
        });
        if let Err(why) = put.and_then(|put| put) {
            return Ok(Err(why));
        }
        let from = std::ptr::with_exposed_provenance::<u8>(made.start());
        // SAFETY: as many bytes of the room, which nobody has any more.
        let table = unsafe { std::slice::from_raw_parts(from, bytes) };
        new.write(self.table as u64, table)?;
        Ok(Ok(()))
    }
}
