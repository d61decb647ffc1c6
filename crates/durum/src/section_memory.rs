//! Memory of a pool for a runtime that records what its sections take and free (docs/format/section.md), in no
//! transaction. What its bits are, and when they change, is the caller's to see to ([`crate::alloc`]).

use durum_format::section::Bits;

use crate::alloc::{Class, Freed, Taking, objects_of, puddle_needed_at};
use crate::error::{Error, Result};
use crate::opened::{Durability, Pool};
use crate::tx::Transaction;

impl Pool {
    /// What a thread takes of this pool from now on. Goes back by [`Pool::end_taking`].
    #[doc(hidden)]
    pub fn taking(&self) -> Taking {
        Taking::new(self.inner.key)
    }

    /// Reserves `size` bytes, aligned to `align`, for objects of type `type_id`, as [`Tx::alloc_bytes`] does. Nothing
    /// of it is durable; what has to be before a record tells of it is given to `fresh`, as addresses and sizes.
    /// `is_blank`: records tell that it is to be zeros.
    ///
    /// # Errors
    /// `ObjectSize`; store errors when the pool has to grow (a full disk).
    ///
    /// [`Tx::alloc_bytes`]: crate::Tx::alloc_bytes
    #[doc(hidden)]
    pub fn take(
        &self,
        taking: &mut Taking,
        type_id: u64,
        (size, align): (usize, usize),
        is_blank: bool,
        fresh: impl FnMut(usize, usize),
    ) -> Result<*mut u8> {
        // Of one that changes nothing: who needs the store at rest waits for it.
        let passing = Transaction::begin(self, Durability::Durable)?;
        let taken = taking.take(&*self.inner, type_id, (size, align), is_blank, fresh);
        passing.commit()?;
        Ok(std::ptr::with_exposed_provenance_mut(taken?))
    }

    /// The same for a place that the thread has freed by a record, and that no section needs any more. The next record
    /// does not say any more that it was freed, and is durable before anything leads there. `None` where it does not
    /// fit.
    #[doc(hidden)]
    pub fn take_again(
        &self,
        taking: &mut Taking,
        freed: &Freed,
        type_id: u64,
        (size, align): (usize, usize),
        is_blank: bool,
    ) -> Option<*mut u8> {
        let class = Class::of(type_id, size, align)?;
        let address = taking.take_again(freed, class, is_blank)?;
        Some(std::ptr::with_exposed_provenance_mut(address))
    }

    /// A thread takes nothing any more: others may have its slabs.
    #[doc(hidden)]
    pub fn end_taking(&self, taking: Taking) {
        taking.end(&*self.inner);
    }

    /// Frees an object, for now in memory only: its place is nobody's until [`Pool::give_back`].
    ///
    /// # Errors
    /// `NotInPool`; `NotAllocated` if no live object starts there: a second free is refused.
    #[doc(hidden)]
    pub fn free_by_record(&self, object: *mut u8) -> Result<Freed> {
        let address = object.expose_provenance();
        let refused = Error::NotAllocated { address };
        let puddle = puddle_needed_at(address)?.ok_or(refused)?;
        // SAFETY: puddles live while their store is open, which the pool keeps open.
        let is_ours = unsafe { puddle.as_ref() }.pool_key == self.inner.key;
        match is_ours {
            true => Freed::object(&*self.inner, puddle, address),
            false => Err(Error::NotAllocated { address }),
        }
    }

    /// What a record of an interrupted section tells that is to be free. Nothing where it is free already, or lies in
    /// no memory of this pool.
    ///
    /// # Errors
    /// `DamagedHeap`, and those of mapping a puddle.
    #[doc(hidden)]
    pub fn freed_by_record(&self, bits: Bits) -> Result<Option<Freed>> {
        let Some(puddle) = puddle_needed_at(bits.address as usize)? else {
            return Ok(None);
        };
        // SAFETY: puddles live while their store is open, which the pool keeps open.
        match unsafe { puddle.as_ref() }.pool_key == self.inner.key {
            true => Freed::recorded(&*self.inner, puddle, bits),
            false => Ok(None),
        }
    }

    /// The objects of which a record of an interrupted section tells that they are taken, by their addresses and sizes;
    /// those that lie in memory of this pool.
    ///
    /// # Errors
    /// `DamagedHeap`, and those of mapping a puddle.
    #[doc(hidden)]
    pub fn taken_by_record(&self, bits: Bits) -> Result<Vec<(usize, usize)>> {
        let Some(puddle) = puddle_needed_at(bits.address as usize)? else {
            return Ok(Vec::new());
        };
        // SAFETY: puddles live while their store is open, which the pool keeps open.
        match unsafe { puddle.as_ref() }.pool_key == self.inner.key {
            true => objects_of(&*self.inner, puddle, bits),
            false => Ok(Vec::new()),
        }
    }

    /// The extents of slabs that have become empty, which are freed like objects.
    #[doc(hidden)]
    pub fn empty_slabs(&self) -> Vec<Freed> {
        Freed::empty_slabs(&*self.inner)
    }

    /// Lets others have what was freed: that its bits are 0 is durable, and no record tells of them any more.
    #[doc(hidden)]
    pub fn give_back(&self, freed: Vec<Freed>) {
        Freed::give_back(&*self.inner, freed);
    }
}
