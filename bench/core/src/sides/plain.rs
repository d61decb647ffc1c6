//! flush1 and volatile: plain stores to a mapped file, with and without write-backs.
//!
//! flush1 writes each line that a transaction wrote back once and fences once. It has no log, so a crash in the middle leaves half a
//! transaction: it is not a way to do it, but the physical limit for a row.

use std::path::Path;

use durum_persist::line;

use super::arena::Arena;
use super::lines::Lines;
use crate::error::{Error, Result};
use crate::side::{self, Role, Side};
use crate::structures::{Memory, Stored, Update, list, map, tree};

pub(super) mod cells;
mod swap;

/// From this length on flush1 copies past the cache, which is the faster way to make a range durable.
const STREAMED_LEN_MIN: usize = 512;

/// One of the two sides; `FLUSH` is flush1.
#[derive(Debug, Default)]
pub struct Plain<const FLUSH: bool>;

/// The physical limit.
pub type Flush1 = Plain<true>;
/// Plain memory.
pub type Volatile = Plain<false>;

impl<const FLUSH: bool> Side for Plain<FLUSH> {
    fn name(&self) -> &str {
        if FLUSH { "flush1" } else { "volatile" }
    }

    fn role(&self) -> Role {
        if FLUSH { Role::Limit } else { Role::Volatile }
    }

    fn domain(&self) -> &str {
        if FLUSH { "dram" } else { "none" }
    }

    fn cells(&self, dir: &Path, ring: &[u32], _objects_max: usize) -> Result<Box<dyn side::Cells>> {
        Ok(Box::new(cells::PlainCells::new(self.memory(dir)?, ring)?))
    }

    fn swap(&self, dir: &Path, count: usize) -> Result<Box<dyn side::Swap>> {
        Ok(Box::new(swap::PlainSwap::new(self.memory(dir)?, count)?))
    }

    fn list(&self, dir: &Path) -> Result<Box<dyn side::List>> {
        Ok(Box::new(list::List::new(self.memory(dir)?)?))
    }

    fn tree(&self, dir: &Path) -> Result<Box<dyn side::Tree>> {
        Ok(Box::new(tree::Tree::new(self.memory(dir)?)?))
    }

    fn map(&self, dir: &Path, bucket_bits: u32) -> Result<Box<dyn side::Map>> {
        Ok(Box::new(map::Map::new(self.memory(dir)?, bucket_bits)?))
    }
}

impl<const FLUSH: bool> Plain<FLUSH> {
    fn memory(&self, dir: &Path) -> Result<PlainMemory<FLUSH>> {
        let arena = Arena::create(&dir.join(self.name()))?;
        Ok(PlainMemory {
            arena,
            lines: Lines::default(),
        })
    }
}

/// An arena, and the lines that the running transaction wrote.
#[derive(Debug)]
pub struct PlainMemory<const FLUSH: bool> {
    arena: Arena,
    lines: Lines,
}

impl<const FLUSH: bool> PlainMemory<FLUSH> {
    /// The transaction is over.
    #[inline]
    fn commit(&mut self) {
        if FLUSH {
            self.lines.write_back();
        }
    }

    /// Overwrites a range with `image`, whose first word becomes `first_word`, and makes it durable.
    #[inline]
    fn overwrite(&mut self, target: *mut u8, image: &mut [u8], first_word: u64) {
        image[..8].copy_from_slice(&first_word.to_ne_bytes());
        if FLUSH && image.len() >= STREAMED_LEN_MIN {
            // SAFETY: the caller's target has room for `image`; the two do not overlap.
            unsafe { line::copy_streaming(target, image.as_ptr(), image.len()) };
        } else {
            // SAFETY: as above.
            unsafe { target.copy_from_nonoverlapping(image.as_ptr(), image.len()) };
            if FLUSH {
                self.lines.insert(target, image.len());
            }
        }
        self.commit();
    }
}

impl<const FLUSH: bool> Memory for PlainMemory<FLUSH> {
    type Error = Error;
    type Update<'u> = PlainUpdate<'u, FLUSH>;

    fn root<T: Stored>(&mut self) -> Result<*mut T> {
        self.zeroed_array(1)
    }

    fn zeroed_array<T: Stored>(&mut self, count: usize) -> Result<*mut T> {
        Ok(self.arena.take(count * size_of::<T>())?.cast())
    }

    #[inline]
    fn update<R>(
        &mut self,
        body: impl FnOnce(&mut PlainUpdate<'_, FLUSH>) -> Result<R>,
    ) -> Result<R> {
        let result = body(&mut PlainUpdate { memory: self })?;
        self.commit();
        Ok(result)
    }
}

/// A running transaction: it changes objects in place.
#[derive(Debug)]
pub struct PlainUpdate<'u, const FLUSH: bool> {
    memory: &'u mut PlainMemory<FLUSH>,
}

impl<const FLUSH: bool> Update for PlainUpdate<'_, FLUSH> {
    type Error = Error;

    #[inline]
    fn alloc<T: Stored>(&mut self) -> Result<*mut T> {
        let object = self.memory.arena.alloc(size_of::<T>())?;
        if FLUSH {
            self.memory.lines.insert(object, size_of::<T>());
        }
        Ok(object.cast())
    }

    #[inline]
    unsafe fn free<T: Stored>(&mut self, object: *mut T) -> Result<()> {
        self.memory.arena.free(object.cast(), size_of::<T>());
        Ok(())
    }

    #[inline]
    unsafe fn store<T: Stored>(&mut self, field: *mut T, value: T) -> Result<()> {
        // SAFETY: valid by contract.
        unsafe { field.write(value) };
        // SAFETY: the field itself.
        unsafe { self.changed(field, 1) };
        Ok(())
    }

    #[inline]
    unsafe fn edit<T: Stored>(&mut self, object: *mut T) -> Result<*mut T> {
        Ok(object)
    }

    #[inline]
    unsafe fn view<T: Stored>(&self, object: *mut T) -> *const T {
        object
    }

    #[inline]
    unsafe fn changed<T>(&mut self, first: *const T, count: usize) {
        if FLUSH {
            self.memory
                .lines
                .insert(first.cast(), count * size_of::<T>());
        }
    }
}
