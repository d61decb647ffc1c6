//! A pool as the shared data structures see memory.

use std::sync::Arc;

use durum::{Pool, Tx};

use super::edits::Edits;
use super::pool::{Style, TempPool};
use crate::error::{Error, Result};
use crate::structures::{Memory, Stored, Update};

/// A pool, and room for working copies.
pub(super) struct DurumMemory {
    pub(super) name: &'static str,
    /// Shared by memories of several threads, which keep to objects of their own.
    pub(super) temp: Arc<TempPool>,
    pub(super) style: Style,
    edits: Edits,
    /// Objects allocated in the running transaction; they are changed in place.
    fresh: Vec<usize>,
}

impl DurumMemory {
    pub(super) fn new(name: &'static str, temp: Arc<TempPool>, style: Style) -> Self {
        DurumMemory {
            name,
            temp,
            style,
            edits: Edits::new(),
            fresh: Vec::new(),
        }
    }

    /// For `map_err`.
    pub(super) fn said(&self) -> impl FnOnce(durum::Error) -> Error {
        Error::side(self.name)
    }

    /// Zeroed memory that stays, on a line boundary.
    pub(super) fn zeroed(&mut self, size: usize) -> Result<*mut u8> {
        let pool = &self.temp.pool;
        let made = pool.transaction(|tx| alloc_zeroed(tx, pool, size));
        made.map_err(self.said())
    }
}

/// Zeroed memory without a type, on a line boundary.
fn alloc_zeroed(tx: &Tx, pool: &Pool, size: usize) -> std::result::Result<*mut u8, durum::Error> {
    let bytes = tx.alloc_bytes(pool, 0, size, 64)?;
    // SAFETY: just allocated, so nobody else touches its bytes.
    unsafe { bytes.write_bytes(0, size) };
    Ok(bytes)
}

impl Memory for DurumMemory {
    type Error = durum::Error;
    type Update<'u> = DurumUpdate<'u>;

    fn root<T: Stored>(&mut self) -> Result<*mut T> {
        self.temp.pool.root::<T>().map_err(self.said())
    }

    fn zeroed_array<T: Stored>(&mut self, count: usize) -> Result<*mut T> {
        Ok(self.zeroed(count * size_of::<T>())?.cast())
    }

    #[inline]
    fn update<R>(
        &mut self,
        body: impl FnOnce(&mut DurumUpdate<'_>) -> std::result::Result<R, durum::Error>,
    ) -> Result<R> {
        let DurumMemory {
            temp,
            style,
            edits,
            fresh,
            ..
        } = self;
        let done = temp.transaction(|tx| {
            let mut update = DurumUpdate {
                tx,
                pool: &temp.pool,
                style: *style,
                edits,
                fresh,
            };
            update.edits.clear();
            update.fresh.clear();
            let result = body(&mut update)?;
            update.set_changes()?;
            Ok(result)
        });
        done.map_err(self.said())
    }
}

/// A running transaction.
pub(super) struct DurumUpdate<'u> {
    tx: &'u Tx,
    pool: &'u Pool,
    style: Style,
    edits: &'u mut Edits,
    fresh: &'u mut Vec<usize>,
}

impl DurumUpdate<'_> {
    #[inline]
    fn set_changes(&mut self) -> std::result::Result<(), durum::Error> {
        for (target, source, len) in self.edits.changes() {
            // SAFETY: part of an object that `edit` was given as valid, and of its copy; one thread.
            unsafe { self.tx.set_bytes(target, source, len)? };
        }
        Ok(())
    }
}

impl Update for DurumUpdate<'_> {
    type Error = durum::Error;

    #[inline]
    fn alloc<T: Stored>(&mut self) -> std::result::Result<*mut T, durum::Error> {
        let object = self.tx.alloc::<T>()?;
        self.fresh.push(object.addr());
        Ok(object)
    }

    #[inline]
    unsafe fn free<T: Stored>(&mut self, object: *mut T) -> std::result::Result<(), durum::Error> {
        self.edits.forget(object.addr());
        // SAFETY: by contract nothing uses the object any more.
        unsafe { self.tx.free(object) }
    }

    fn alloc_zeroed<T: Stored>(
        &mut self,
        count: usize,
    ) -> std::result::Result<*mut T, durum::Error> {
        Ok(alloc_zeroed(self.tx, self.pool, count * size_of::<T>())?.cast())
    }

    unsafe fn free_array<T: Stored>(
        &mut self,
        first: *mut T,
        _: usize,
    ) -> std::result::Result<(), durum::Error> {
        // SAFETY: by contract nothing uses the array any more.
        unsafe { self.tx.free(first) }
    }

    #[inline]
    unsafe fn store<T: Stored>(
        &mut self,
        field: *mut T,
        value: T,
    ) -> std::result::Result<(), durum::Error> {
        match self.style {
            // SAFETY: valid by contract; one thread.
            Style::Deferred => unsafe { self.tx.set(field, value) },
            Style::InPlace => {
                // In memory, whatever it is made of: else the compiler puts it aside word by word where it announces.
                let value = std::hint::black_box(value);
                // SAFETY: valid by contract; one thread.
                unsafe { self.tx.add(field)? };
                // SAFETY: valid by contract, and announced.
                unsafe { field.write(value) };
                Ok(())
            }
        }
    }

    #[inline]
    unsafe fn edit<T: Stored>(
        &mut self,
        object: *mut T,
    ) -> std::result::Result<*mut T, durum::Error> {
        if self.fresh.contains(&object.addr()) {
            return Ok(object);
        }
        match self.style {
            Style::Deferred => {
                // SAFETY: valid by contract.
                let copy = unsafe { self.edits.copy_of(object.cast(), size_of::<T>()) };
                Ok(copy.cast())
            }
            Style::InPlace => {
                // SAFETY: valid by contract; one thread.
                unsafe { self.tx.add(object)? };
                Ok(object)
            }
        }
    }

    #[inline]
    unsafe fn view<T: Stored>(&self, object: *mut T) -> *const T {
        match self.style {
            Style::Deferred => self
                .edits
                .find(object.addr())
                .map_or(object.cast_const(), |copy| copy.cast()),
            Style::InPlace => object,
        }
    }

    #[inline]
    unsafe fn changed<T>(&mut self, first: *const T, count: usize) {
        if self.style == Style::Deferred {
            self.edits.changed(first.addr(), count * size_of::<T>());
        }
    }
}
