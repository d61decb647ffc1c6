//! Slots of a map's entries, as they lie in the pool. What is here calls no code of the user.

use std::marker::PhantomData;
use std::mem::offset_of;
use std::ptr;

use durum_format::types::{Count, Field, Type};

use crate::described::Walk;
use crate::typed::layout::structure;
use crate::typed::psafe::{PSafe, name_of};
use crate::typed::typed_tx::TypedTx;

/// Room for an entry.
#[repr(C)]
pub(in crate::typed::collections) struct Slot<K, V> {
    key: K,
    value: V,
}

impl<K: PSafe, V: PSafe> Slot<K, V> {
    /// The description of so many slots at an offset of a part of `map`, if they have any bytes.
    pub(in crate::typed::collections) fn row(
        map: &str,
        count: usize,
        offset: usize,
        walk: &mut Walk,
    ) -> Option<Field<String>> {
        (size_of::<Self>() > 0).then(|| {
            let slot = structure!(format!("{}.slot", map_name::<K, V>(map)), {
                key: K::layout(walk),
                value: V::layout(walk),
            });
            let slots: Type<String> = slot.array(Count::Fixed(count as u64));
            Field::new("slots", offset as u64, slots)
        })
    }
}

/// What a map is called in the store.
pub(in crate::typed::collections) fn map_name<K: PSafe, V: PSafe>(map: &str) -> String {
    format!("{map}<{},{}>", name_of::<K>(), name_of::<V>())
}

/// Where an entry lies, or could.
pub(in crate::typed::collections) struct Place<K, V> {
    address: usize,
    _entry: PhantomData<(*mut K, *mut V)>,
}

/// Copies of places, whatever lies there: a derive would ask keys and values for theirs.
macro_rules! copies {
    ($($name:ident)*) => { $(
        impl<K, V> Clone for $name<K, V> {
            fn clone(&self) -> Self {
                *self
            }
        }

        impl<K, V> Copy for $name<K, V> {}
    )* };
}

pub(in crate::typed::collections) use copies;

copies! { Place }

impl<K: PSafe, V: PSafe> Place<K, V> {
    pub(in crate::typed::collections) const HAS_POINTERS: bool = K::POINTERS || V::POINTERS;

    /// The slot of this number of those from an address on.
    #[inline(always)]
    pub(in crate::typed::collections) fn of_slot(slots: usize, slot: usize) -> Self {
        Self {
            address: slots + slot * size_of::<Slot<K, V>>(),
            _entry: PhantomData,
        }
    }

    pub(in crate::typed::collections) fn key(self) -> *mut K {
        ptr::with_exposed_provenance_mut(self.address + offset_of!(Slot<K, V>, key))
    }

    pub(in crate::typed::collections) fn value(self) -> *mut V {
        ptr::with_exposed_provenance_mut(self.address + offset_of!(Slot<K, V>, value))
    }

    /// The entry.
    ///
    /// # Safety
    /// There is one, and the map is borrowed for as long.
    #[inline(always)]
    pub(in crate::typed::collections) unsafe fn entry<'a>(self) -> (&'a K, &'a V) {
        // SAFETY: as the caller promises.
        unsafe { (&*self.key(), &*self.value()) }
    }

    /// The value of the entry, to be changed: announced.
    ///
    /// # Safety
    /// The map is borrowed to be changed for as long, and nobody else has a reference to this value.
    pub(in crate::typed::collections) unsafe fn value_to_change<'a>(
        self,
        tx: &TypedTx,
    ) -> &'a mut V {
        tx.open_to_changes(self.value());
        // SAFETY: as the caller promises.
        unsafe { &mut *self.value() }
    }

    pub(in crate::typed::collections) fn announce(self, tx: &TypedTx) {
        tx.announce(self.address, size_of::<Slot<K, V>>());
    }

    /// Replaces the value of the entry.
    pub(in crate::typed::collections) fn replace_value(self, value: V, tx: &TypedTx) -> V {
        let address = self.value().addr();
        tx.announce(address, size_of::<V>());
        // SAFETY: the entry's value, announced; the new one takes its place.
        unsafe {
            let old = tx.take_out(address);
            tx.put_in(address, value);
            old
        }
    }

    /// Stores an entry in an announced slot without one.
    pub(in crate::typed::collections) fn put(self, key: K, value: V, tx: &TypedTx) {
        // SAFETY: an announced slot without an entry.
        unsafe {
            tx.put_in(self.key().addr(), key);
            tx.put_in(self.value().addr(), value);
        }
    }

    /// Moves the entry into volatile hands. The slot is still to be given up, or filled.
    pub(in crate::typed::collections) fn take(self, tx: &TypedTx) -> (K, V) {
        // SAFETY: the entry's key and value, which the caller gives up.
        unsafe {
            (
                tx.take_out(self.key().addr()),
                tx.take_out(self.value().addr()),
            )
        }
    }

    /// Moves the entry to another, announced slot. This one is still to be given up, or filled.
    pub(in crate::typed::collections) fn move_to(self, target: Self, tx: &TypedTx) {
        if K::OWNERS || V::OWNERS {
            tx.close_ranges(self.address, size_of::<Slot<K, V>>());
        }
        self.copy_to(target, tx);
    }

    /// The same for an entry of which no range is open.
    pub(in crate::typed::collections) fn copy_to(self, target: Self, tx: &TypedTx) {
        tx.reset_words::<K>(target.key().addr(), size_of::<K>());
        tx.reset_words::<V>(target.value().addr(), size_of::<V>());
        self.copy_bytes_to(target);
    }

    /// The same where no words are used.
    pub(in crate::typed::collections) fn copy_bytes_to(self, target: Self) {
        let source = ptr::with_exposed_provenance::<Slot<K, V>>(self.address);
        // SAFETY: an entry, and a slot without one.
        unsafe {
            ptr::with_exposed_provenance_mut::<Slot<K, V>>(target.address)
                .copy_from_nonoverlapping(source, 1)
        };
    }

    /// Where an entry has been, pointers must not stay.
    pub(in crate::typed::collections) fn wipe(self) {
        if Self::HAS_POINTERS {
            // SAFETY: an announced slot without an entry.
            unsafe {
                ptr::with_exposed_provenance_mut::<Slot<K, V>>(self.address).write_bytes(0, 1)
            };
        }
    }

    /// Drops the entry. Its memory is about to be freed.
    ///
    /// # Safety
    /// Nobody uses the entry after this.
    pub(in crate::typed::collections) unsafe fn drop_entry(self, tx: &TypedTx) {
        // SAFETY: as the caller promises.
        unsafe {
            tx.drop_value::<K>(self.key().addr());
            tx.drop_value::<V>(self.value().addr());
        }
    }
}
