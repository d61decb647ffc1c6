//! Memory in an arena, changed in place, and what a side does about the bytes that were stored.

use std::path::Path;

use durum_persist::{Site, line};

use crate::error::{Error, Result};
use crate::side::Role;
use crate::sides::arena::{Arena, CLASSES};
use crate::sides::lines::Lines;
use crate::structures::{Memory, Stored, Update};

/// From this length on flush1 copies past the cache, which is the faster way to make a range durable.
const STREAMED_LEN_MIN: usize = 512;

const ALONE: Site = Site("store that is durable alone");

/// What a side does about the bytes that were stored.
pub trait Written: Sized + 'static {
    /// The side's name.
    const NAME: &str;
    /// What it stands for.
    const ROLE: Role;
    /// The domain it works in.
    const DOMAIN: &str;
    /// The allocator's state is durable: the head of a free list and the link to the next one are words as all others.
    const DURABLE_ALLOCATOR: bool = false;
    /// Ranges from this length on are stored past the cache, and need not be told of.
    const STREAMED_LEN_MIN: usize = usize::MAX;

    /// For an arena, of which nothing has been written.
    fn new(arena: &Arena, dir: &Path) -> Result<Self>;
    /// The running transaction has stored there, or is about to.
    fn insert(&mut self, addr: *const u8, len: usize);
    /// The transaction is over.
    fn commit(&mut self);
    /// A store outside of any transaction, made durable.
    ///
    /// # Safety
    /// The range is in the arena.
    #[inline]
    unsafe fn persist(&mut self, addr: *const u8, len: usize) {
        self.insert(addr, len);
        self.commit();
    }
}

impl Written for Lines {
    const NAME: &str = "flush1";
    const ROLE: Role = Role::Limit;
    const DOMAIN: &str = "dram";
    const STREAMED_LEN_MIN: usize = STREAMED_LEN_MIN;

    fn new(_: &Arena, _: &Path) -> Result<Self> {
        Ok(Lines::default())
    }

    #[inline]
    fn insert(&mut self, addr: *const u8, len: usize) {
        self.insert(addr, len);
    }

    #[inline]
    fn commit(&mut self) {
        self.write_back();
    }

    #[inline]
    unsafe fn persist(&mut self, addr: *const u8, len: usize) {
        // SAFETY: a range of a mapped arena, by contract.
        unsafe { line::write_back(addr, len, ALONE) };
        // ORDER: the store is durable before the next one; that is the operation measured.
        line::fence(ALONE);
    }
}

/// Nothing.
#[derive(Debug)]
pub struct Forgotten;

impl Written for Forgotten {
    const NAME: &str = "volatile";
    const ROLE: Role = Role::Volatile;
    const DOMAIN: &str = "none";

    fn new(_: &Arena, _: &Path) -> Result<Self> {
        Ok(Forgotten)
    }

    #[inline]
    fn insert(&mut self, _: *const u8, _: usize) {}

    #[inline]
    fn commit(&mut self) {}
}

/// An arena, and what the running transaction wrote.
#[derive(Debug)]
pub struct PlainMemory<W> {
    pub(super) arena: Arena,
    pub(super) written: W,
    // INVARIANT: a word in the arena for each size class, where the allocator's state is durable.
    heads: *mut u64,
}

impl<W: Written> PlainMemory<W> {
    pub(super) fn new(mut arena: Arena, written: W) -> Result<Self> {
        let heads = match W::DURABLE_ALLOCATOR {
            true => arena.take(8 * CLASSES)?.cast(),
            false => std::ptr::null_mut(),
        };
        Ok(PlainMemory {
            arena,
            written,
            heads,
        })
    }

    /// An object of a size class.
    #[inline]
    fn alloc(&mut self, size: usize) -> Result<*mut u8> {
        let object = self.arena.alloc(size)?;
        if W::DURABLE_ALLOCATOR {
            self.set_head(size);
        }
        Ok(object)
    }

    /// Gives an object of a size class back.
    #[inline]
    fn free(&mut self, object: *mut u8, size: usize) {
        self.arena.free(object, size);
        if W::DURABLE_ALLOCATOR {
            // SAFETY: the head of the class; the first word of an object that nobody uses any more.
            unsafe { object.cast::<u64>().write(self.heads.add(size / 8).read()) };
            self.written.insert(object, 8);
            self.set_head(size);
        }
    }

    /// Which place of a size class comes next is different now.
    #[inline]
    fn set_head(&mut self, size: usize) {
        let head = self.heads.wrapping_add(size / 8);
        // SAFETY: the invariant of `heads`.
        unsafe { head.write(self.arena.next(size) as u64) };
        self.written.insert(head.cast(), 8);
    }

    /// Overwrites a range with `image`, whose first word becomes `first_word`, and makes it durable.
    #[inline]
    pub(super) fn overwrite(&mut self, target: *mut u8, image: &mut [u8], first_word: u64) {
        image[..8].copy_from_slice(&first_word.to_ne_bytes());
        if image.len() >= W::STREAMED_LEN_MIN {
            // SAFETY: the caller's target has room for `image`; the two do not overlap.
            unsafe { line::copy_streaming(target, image.as_ptr(), image.len(), ALONE) };
        } else {
            // SAFETY: as above.
            unsafe { target.copy_from_nonoverlapping(image.as_ptr(), image.len()) };
            self.written.insert(target, image.len());
        }
        self.written.commit();
    }
}

impl<W: Written> Memory for PlainMemory<W> {
    type Error = Error;
    type Update<'u> = PlainUpdate<'u, W>;

    fn root<T: Stored>(&mut self) -> Result<*mut T> {
        self.zeroed_array(1)
    }

    fn zeroed_array<T: Stored>(&mut self, count: usize) -> Result<*mut T> {
        Ok(self.arena.take(count * size_of::<T>())?.cast())
    }

    #[inline]
    fn update<R>(&mut self, body: impl FnOnce(&mut PlainUpdate<'_, W>) -> Result<R>) -> Result<R> {
        let result = body(&mut PlainUpdate { memory: self })?;
        self.written.commit();
        Ok(result)
    }
}

/// A running transaction: it changes objects in place.
#[derive(Debug)]
pub struct PlainUpdate<'u, W> {
    memory: &'u mut PlainMemory<W>,
}

impl<W: Written> Update for PlainUpdate<'_, W> {
    type Error = Error;

    #[inline]
    fn alloc<T: Stored>(&mut self) -> Result<*mut T> {
        let object = self.memory.alloc(size_of::<T>())?;
        self.memory.written.insert(object, size_of::<T>());
        Ok(object.cast())
    }

    #[inline]
    unsafe fn free<T: Stored>(&mut self, object: *mut T) -> Result<()> {
        self.memory.free(object.cast(), size_of::<T>());
        Ok(())
    }

    fn alloc_zeroed<T: Stored>(&mut self, count: usize) -> Result<*mut T> {
        let size = count * size_of::<T>();
        let first = self.memory.arena.alloc_any(size)?;
        // SAFETY: so many bytes that nobody uses.
        unsafe { first.write_bytes(0, size) };
        self.memory.written.insert(first, size);
        Ok(first.cast())
    }

    unsafe fn free_array<T: Stored>(&mut self, first: *mut T, count: usize) -> Result<()> {
        let size = count * size_of::<T>();
        self.memory.arena.free_any(first.cast(), size);
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
        let len = count * size_of::<T>();
        self.memory.written.insert(first.cast(), len);
    }
}
